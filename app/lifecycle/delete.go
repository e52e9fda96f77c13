package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// DeleteInput may bring provider fields where the cluster's own are not enough.
type DeleteInput struct {
	ProviderFields map[string]any
}

// deleteDraft is the body of a preview that deletes a cluster: copies of all the
// plan is computed from.
type deleteDraft struct {
	Name        string                  `json:"name"`
	Description string                  `json:"description"`
	Template    loom.Base               `json:"template"`
	Provider    loom.Provider           `json:"provider"`
	Services    map[string]loom.Service `json:"services"`
	Nodes       []loom.Node             `json:"nodes"`
	Warnings    []string                `json:"warnings"`
}

func (d *deleteDraft) plan() (loom.Plan, error) {
	return planner.Make(loom.ClusterDelete, d.Nodes, d.Services, planner.Scope{})
}

// draftDelete reads a cluster and works out its end. Conflict when its state
// does not allow that.
func (u *Clusters) draftDelete(ctx context.Context, actor loom.Actor, id loom.ClusterID) (*deleteDraft, loom.Cluster, error) {
	cluster, err := store.ClusterByID(ctx, u.db, actor.Tenant, id)
	if err := visible(actor, id, cluster.Owner, err); err != nil {
		return nil, cluster, err
	}
	if err := u.mayBegin(ctx, u.db, cluster, loom.VerbDelete); err != nil {
		return nil, cluster, err
	}
	nodes, err := store.NodesByCluster(ctx, u.db, actor.Tenant, id)
	if err != nil {
		return nil, cluster, err
	}
	d := &deleteDraft{
		Name: cluster.Name, Description: cluster.Description, Template: cluster.Template.Base, Provider: cluster.Provider,
		Services: cluster.Services, Warnings: []string{},
	}
	for _, n := range nodes {
		if n.State == loom.NodeDeleted {
			continue
		}
		if n.State == loom.NodeFailed {
			d.Warnings = append(d.Warnings, fmt.Sprintf("Node %d failed before; look whether its machine is really gone afterwards.", n.Number))
		}
		// Facts may hold credentials and change nothing in the plan.
		n.Results, n.Actions, n.ServiceStates = nil, nil, nil
		d.Nodes = append(d.Nodes, n)
	}
	return d, cluster, nil
}

// mayBegin answers Conflict, with the sentence why, unless the verb is allowed now.
func (u *Clusters) mayBegin(ctx context.Context, q sqlx.ExtContext, c loom.Cluster, verb loom.ClusterVerb) error {
	latest, err := latestOperation(ctx, q, c)
	if err != nil {
		return err
	}
	if why := c.WhyNot(verb, latest); why != "" {
		return loom.NewError(loom.Conflict, "%s", why)
	}
	return nil
}

// latestOperation reads the newest operation, nil before the first.
func latestOperation(ctx context.Context, q sqlx.ExtContext, c loom.Cluster) (*loom.Operation, error) {
	if c.LatestOperation == 0 {
		return nil, nil
	}
	op, err := store.OperationByRef(ctx, q, c.Owner.Tenant, loom.OperationRef{Cluster: c.ID, Number: c.LatestOperation})
	if err != nil {
		return nil, err
	}
	return &op, nil
}

// errMoved says that the cluster changed between reading it and locking it.
var errMoved = errors.New("the cluster changed meanwhile")

// Delete deletes a cluster at once. A cluster that is gone already gives the
// zero reference and no error. Errors: NotFound, Conflict (pending, protected),
// Invalid with missing provider fields.
func (u *Clusters) Delete(ctx context.Context, actor loom.Actor, id loom.ClusterID, in DeleteInput) (loom.OperationRef, error) {
	if err := actor.Require(loom.ScopeClusterWrite); err != nil {
		return loom.OperationRef{}, err
	}
	return u.deleteIf(ctx, actor, id, in, nil)
}

// deleteIf is Delete for a cluster of which still, unless nil, holds as it is
// read, which its revision guards until the lock; otherwise it does nothing.
func (u *Clusters) deleteIf(ctx context.Context, actor loom.Actor, id loom.ClusterID, in DeleteInput, still func(c loom.Cluster) bool) (loom.OperationRef, error) {
	var none loom.OperationRef
	// Reading and planning happen outside the transaction; when the cluster moved
	// before its lock was had, all is read once more.
	for try := 0; ; try++ {
		d, cluster, err := u.draftDelete(ctx, actor, id)
		if err != nil {
			if cluster.Status == loom.ClusterTerminated && actor.MaySee(cluster.Owner) {
				return none, nil
			}
			return none, err
		}
		if still != nil && !still(cluster) {
			return none, nil
		}
		plan, err := d.plan()
		if err != nil {
			return none, err
		}
		ref, err := store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.OperationRef, error) {
			return u.beginDelete(ctx, tx, actor, cluster, plan, in.ProviderFields, "delete")
		})
		if errors.Is(err, errMoved) && try < 3 {
			continue
		}
		if errors.Is(err, errMoved) {
			return none, asConflict(loom.NewError(loom.Conflict, "moved"), "The cluster keeps changing; try again.")
		}
		return ref, err
	}
}

// beginDelete starts the operation, under the lock of the cluster.
func (u *Clusters) beginDelete(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, seen loom.Cluster, plan loom.Plan, given map[string]any, verb string) (loom.OperationRef, error) {
	var none loom.OperationRef
	cluster, err := store.LockCluster(ctx, tx, actor.Tenant, seen.ID)
	if err := visible(actor, seen.ID, cluster.Owner, err); err != nil {
		return none, err
	}
	if err := u.mayBegin(ctx, tx, cluster, loom.VerbDelete); err != nil {
		return none, err
	}
	if cluster.Revision != seen.Revision {
		return none, errMoved
	}
	if err := u.takeProviderFields(ctx, tx, actor, &cluster, given); err != nil {
		return none, err
	}
	if err := store.SetClusterStatus(ctx, tx, actor.Tenant, cluster.ID, loom.ClusterPending); err != nil {
		return none, err
	}
	op, err := store.InsertPlan(ctx, tx, store.NewOperation{
		Tenant: actor.Tenant, Cluster: cluster.ID, Action: loom.ClusterDelete, RequestedBy: actor.User, OnFailure: loom.OnFailureKeep,
	}, plan)
	if err != nil {
		return none, err
	}
	err = store.InsertAudit(ctx, tx, loom.AuditEntry{
		Actor: actor, Verb: verb, Kind: "cluster", Object: cluster.ID.String(), Result: "ok",
		Before: map[string]any{"name": cluster.Name, "status": cluster.Status},
		After:  map[string]any{"operationId": op.Ref.String(), "action": loom.ClusterDelete},
	})
	if err != nil {
		return none, err
	}
	return op.Ref, store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, cluster.ID)...)
}

// takeProviderFields lays the given fields over what the cluster has (entities.md
// 17). A provider type that is gone answers NotFound, as machines cannot be
// reached without its plugin.
func (u *Clusters) takeProviderFields(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, cluster *loom.Cluster, given map[string]any) error {
	if errs := checkStorable("providerFields", given); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	t, err := store.ProviderType(ctx, tx, cluster.Provider.Type)
	if err != nil {
		return err
	}
	entity := store.ClusterSecrets(cluster.ID)
	stored, err := store.Secrets(ctx, tx, actor.Tenant, entity)
	if err != nil {
		return err
	}
	fields := takeFields(t, cluster.Provider, sortedNames(stored), given)
	if err := loom.InvalidFields(fields.errs); err != nil {
		return err
	}
	if err := missingError(fields.missing); err != nil {
		return err
	}
	if len(fields.open) > 0 {
		cluster.Provider = withFields(cluster.Provider, fields.open)
		if err := store.SetClusterProvider(ctx, tx, actor.Tenant, cluster.ID, cluster.Provider); err != nil {
			return err
		}
	}
	if len(fields.sealed) == 0 {
		return nil
	}
	// Given secrets replace all earlier ones but the key pair of the cluster.
	for name := range stored {
		if name == fieldPrivateKey || name == fieldPublicKey {
			continue
		}
		if err := store.DeleteSecrets(ctx, tx, actor.Tenant, entity, name); err != nil {
			return err
		}
	}
	sealed, err := u.seal(actor.Tenant, cluster.ID, fields.sealed)
	if err != nil {
		return err
	}
	return store.PutSecrets(ctx, tx, actor.Tenant, entity, actor.User, sealed)
}
