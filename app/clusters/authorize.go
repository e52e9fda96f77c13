package clusters

import (
	"context"
	"fmt"

	"loom/app/loom"
	"loom/planner"
)

// Authorize puts the SSH keys of the actor's account on the ready nodes of a cluster, and
// on those that come later, as far as the actor may see it then. Those of the owner and of
// others who asked come again as their accounts have them. Errors: NotFound; Conflict for
// an account without keys, without a ready node, and when the state of the cluster does
// not allow it; Invalid with missing provider fields.
func (u *Clusters) Authorize(ctx context.Context, actor loom.Actor, id loom.ClusterID, fields map[string]any) (loom.OperationRef, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	ref, _, err := u.execute(ctx, actor, PreviewInput{Kind: loom.ChangeAuthorize, Cluster: id, ProviderFields: fields}, nil)
	return ref, err
}

// draftAuthorize looks whether there is anything to put anywhere. Who asked is kept with
// the operation, and the tasks read the keys when they run.
func draftAuthorize(ctx context.Context, u *Clusters, r request, c *change) error {
	keys, err := accountKeys(ctx, u.db, r.actor)
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
