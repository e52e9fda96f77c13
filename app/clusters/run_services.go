package clusters

import (
	"context"
	"fmt"

	"loom/app/loom"
	"loom/planner"
)

// planServices plans the steps of the one service that the request names, or of all.
func planServices(_ context.Context, _ *Clusters, c *change, _ loom.TenantID) (loom.Plan, error) {
	scope := planner.Scope{}
	if c.Input.Service != "" {
		scope.Services = []string{c.Input.Service}
	}
	return c.steps(scope)
}

func summarizeRun(v *PreviewView) string {
	word := map[loom.ChangeKind]string{loom.ChangeStart: "Starts", loom.ChangeStop: "Stops", loom.ChangeRestart: "Restarts"}[v.Kind]
	return word + " " + count(len(v.Affected), "service")
}

// reasonOfRunning explains why a service that the request does not name is started or stopped.
func reasonOfRunning(c *change, line *ChangeLine, actions map[loom.TaskAction]bool) {
	named := c.Input.Service
	switch {
	case named == "" || named == line.Name:
	case c.Kind == loom.ChangeStart, !actions[loom.ActionStop] && c.Kind == loom.ChangeRestart && !dependsOn(c.After.Services, line.Name, named):
		line.Because = fmt.Sprintf("“%s” needs it to run.", named)
	default:
		line.Because = fmt.Sprintf("It needs “%s” to run.", named)
	}
}
