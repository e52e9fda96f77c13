package clusters

import (
	"context"
	"fmt"
	"slices"

	"loom/app/loom"
	"loom/planner"
)

// planServices plans the steps of the one service that the request names, or of all. A
// service that is stopped starts with the stopped services that need it: its stop took them along.
func planServices(_ context.Context, _ *Clusters, c *change, _ loom.TenantID) (loom.Plan, error) {
	scope := planner.Scope{}
	if c.Input.Service != "" {
		scope.Services = []string{c.Input.Service}
		if c.Kind == loom.ChangeStart && c.stopped(c.Input.Service) {
			for _, name := range sortedNames(c.After.Services) {
				if c.stopped(name) && dependsOn(c.After.Services, name, c.Input.Service) {
					scope.Services = append(scope.Services, name)
				}
			}
		}
	}
	return c.steps(scope)
}

// stopped reports whether a service is stopped on any node.
func (c *change) stopped(service string) bool {
	return slices.ContainsFunc(c.After.Nodes, func(n loom.Node) bool { return n.ServiceStates[service] == loom.ServiceStopped })
}

func summarizeRun(v *PreviewView) string {
	word := map[loom.ChangeKind]string{loom.ChangeStart: "Starts", loom.ChangeStop: "Stops", loom.ChangeRestart: "Restarts"}[v.Kind]
	return word + " " + count(len(v.Affected), "service")
}

// reasonOfRunning explains why a service that the request does not name is started or stopped.
func reasonOfRunning(c *change, line *ChangeLine, _ map[loom.TaskAction]bool) {
	named := c.Input.Service
	switch {
	case named == "" || named == line.Name:
	case dependsOn(c.After.Services, line.Name, named):
		line.Because = fmt.Sprintf("It needs “%s” to run.", named)
	case dependsOn(c.After.Services, named, line.Name):
		line.Because = fmt.Sprintf("“%s” needs it to run.", named)
	default:
		line.Because = fmt.Sprintf("A service that starts with “%s” needs it to run.", named)
	}
}
