package clusters

import (
	"context"
	"fmt"

	"loom/app/loom"
	"loom/planner"
)

// draftAuthorize looks whether there is anything to put anywhere. Who asked is kept with
// the operation, and the tasks read the keys when they run.
func draftAuthorize(ctx context.Context, u *Clusters, r request, c *change) error {
	keys, err := accountKeys(ctx, u.q, r.actor)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return loom.NewError(loom.Conflict, "Your account has no SSH keys; add one there first.")
	}
	if len(c.ready()) == 0 {
		return loom.NewError(loom.Conflict, "No node of the cluster is ready.")
	}
	for _, n := range c.After.Nodes {
		if n.State != loom.NodeReady {
			c.warn("Node %d is not ready and is left out; it gets the keys when its machine is made.", n.Number)
		}
	}
	return nil
}

// ready are the nodes with a machine that serves.
func (c *change) ready() []loom.NodeID {
	ids := []loom.NodeID{}
	for _, n := range c.After.Nodes {
		if n.State == loom.NodeReady {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

func planAuthorize(_ context.Context, _ *Clusters, c *change, _ loom.TenantID) (loom.Plan, error) {
	return c.steps(planner.Scope{Nodes: c.ready()})
}

func summarizeAuthorize(v *PreviewView) string {
	return fmt.Sprintf("Puts your SSH keys on %s", count(v.ByAction[loom.ActionKeys], "node"))
}
