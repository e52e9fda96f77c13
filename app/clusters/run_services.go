package clusters

import (
	"context"
	"fmt"

	"loom/app/loom"
	"loom/planner"
)

// ServicesInput starts, stops or restarts services of a cluster.
type ServicesInput struct {
	// Kind is loom.ChangeStart, ChangeStop or ChangeRestart.
	Kind loom.ChangeKind
	// Service is the one asked for, "" for all. Others that it needs, or that need
	// it, are covered as well.
	Service        string
	ProviderFields map[string]any
}

// RunServices starts, stops or restarts services of a cluster at once. Errors:
// NotFound, also for a service that is not on the cluster, Conflict, Invalid.
func (u *Clusters) RunServices(ctx context.Context, actor loom.Actor, id loom.ClusterID, in ServicesInput) (loom.OperationRef, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	switch in.Kind {
	case loom.ChangeStart, loom.ChangeStop, loom.ChangeRestart:
	default:
		return loom.OperationRef{}, loom.NewError(loom.Invalid, "Services can be started, stopped and restarted, not “%.40s”.", in.Kind)
	}
	ref, _, err := u.execute(ctx, actor, PreviewInput{Kind: in.Kind, Cluster: id, Service: in.Service, ProviderFields: in.ProviderFields}, nil)
	return ref, err
}

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

// reasonOfRunning says why a service that the request does not name is started or stopped.
func reasonOfRunning(c *change, line *Change, actions map[loom.TaskAction]bool) {
	named := c.Input.Service
	switch {
	case named == "" || named == line.Name:
	case c.Kind == loom.ChangeStart, !actions[loom.ActionStop] && c.Kind == loom.ChangeRestart && !dependsOn(c.After.Services, line.Name, named):
		line.Because = fmt.Sprintf("“%s” needs it to run.", named)
	default:
		line.Because = fmt.Sprintf("It needs “%s” to run.", named)
	}
}
