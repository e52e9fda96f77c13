package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// liveDraft is an operation on a cluster that is there, as it could be carried
// out: the body of its preview. It holds copies of all the plan is computed
// from, and no secret but what people wrote into the config.
type liveDraft struct {
	Kind   loom.PreviewKind   `json:"kind"`
	Action loom.ClusterAction `json:"action"`
	// Service is the one service that a start, stop or restart names, "" for all.
	Service     string                  `json:"service,omitempty"`
	Name        string                  `json:"name"`
	Description string                  `json:"description"`
	Template    loom.Base               `json:"template"`
	Provider    loom.Provider           `json:"provider"`
	Services    map[string]loom.Service `json:"services"`
	Nodes       []loom.Node             `json:"nodes"`
	// Configure is the request of a configure, Added what an add_services brings.
	Configure *ConfigureInput `json:"configure,omitempty"`
	Added     *addition       `json:"added,omitempty"`
	// Before and After are the configs, where the config changes.
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
	// Fields are the provider fields of the request, sensitive ones left out; those
	// are named by Sensitive and must come again.
	Fields    map[string]any `json:"fields,omitempty"`
	Sensitive []string       `json:"sensitive,omitempty"`
	Warnings  []string       `json:"warnings"`
}

// plan is pure: the same draft always gives the same plan.
func (d *liveDraft) plan() (loom.Plan, error) {
	scope := planner.Scope{}
	if d.Service != "" {
		scope.Services = []string{d.Service}
	}
	if d.Added != nil {
		scope.Services, scope.Nodes = d.Added.New, d.Added.Nodes
	}
	return planner.Make(d.Action, d.Nodes, d.Services, scope)
}

// setsConfig reports whether the cluster gets another config, which may be empty.
func (d *liveDraft) setsConfig() bool { return d.Configure != nil || len(d.After) > 0 }

// actionOf is the operation that a request becomes.
func actionOf(in *PreviewInput) loom.ClusterAction {
	switch in.Kind {
	case loom.PreviewConfigure:
		if in.Configure.Restart {
			return loom.ClusterConfigureWithRestart
		}
		return loom.ClusterConfigure
	case loom.PreviewAddServices:
		return loom.AddServices
	case loom.PreviewStart:
		return loom.StartServices
	case loom.PreviewStop:
		return loom.StopServices
	case loom.PreviewRestart:
		return loom.RestartServices
	}
	return loom.ClusterDelete
}

// draftLive reads a cluster and works out what a request does to it. Errors:
// NotFound for the cluster, and for a service or a revision of the config that it
// does not have; Conflict when its state does not allow that; Invalid; of adding
// services also Unsolvable and Unavailable.
func (u *Clusters) draftLive(ctx context.Context, actor loom.Actor, in PreviewInput) (*liveDraft, loom.Cluster, error) {
	if in.Kind == loom.PreviewConfigure {
		if err := loom.InvalidFields(in.Configure.check()); err != nil {
			return nil, loom.Cluster{}, err
		}
	}
	cluster, nodes, err := u.atOneMoment(ctx, actor, in)
	if err != nil {
		return nil, cluster, err
	}
	d := &liveDraft{
		Kind: in.Kind, Action: actionOf(&in), Service: in.Service, Name: cluster.Name, Description: cluster.Description,
		Template: cluster.Template.Base, Provider: cluster.Provider, Services: cluster.Services, Nodes: nodes, Warnings: []string{},
	}
	switch in.Kind {
	case loom.PreviewConfigure:
		err = u.draftConfig(ctx, d, cluster, in.Configure)
	case loom.PreviewAddServices:
		err = u.draftAdd(ctx, d, cluster, in.Services)
	}
	if err != nil {
		return nil, cluster, err
	}
	if err := u.draftFields(ctx, d, in.ProviderFields); err != nil {
		return nil, cluster, err
	}
	return d, cluster, u.warnLive(ctx, actor, d)
}

// atOneMoment reads a cluster that a request may change now, and its nodes as they
// were with it: a layout must not be looked for in halves of two states.
func (u *Clusters) atOneMoment(ctx context.Context, actor loom.Actor, in PreviewInput) (loom.Cluster, []loom.Node, error) {
	for range maxTries {
		cluster, err := store.ClusterByID(ctx, u.db, actor.Tenant, in.Cluster)
		if err := visible(actor, in.Cluster, cluster.Owner, err); err != nil {
			return cluster, nil, err
		}
		if _, there := cluster.Services[in.Service]; in.Service != "" && !there {
			return cluster, nil, noService(cluster.ID, in.Service)
		}
		if err := u.mayBegin(ctx, u.db, cluster, in.Kind.Verb()); err != nil {
			return cluster, nil, err
		}
		nodes, err := u.liveNodes(ctx, actor, cluster.ID)
		if err != nil {
			return cluster, nil, err
		}
		if in.Kind != loom.PreviewAddServices {
			return cluster, nodes, nil
		}
		if again, err := store.ClusterByID(ctx, u.db, actor.Tenant, in.Cluster); err != nil || again.Revision == cluster.Revision {
			return cluster, nodes, err
		}
	}
	return loom.Cluster{}, nil, keepsChanging()
}

func noService(id loom.ClusterID, name string) error {
	return loom.NewError(loom.NotFound, "Cluster %s has no service “%.255s”.", id, name)
}

// liveNodes reads the nodes that have or may have a machine.
func (u *Clusters) liveNodes(ctx context.Context, actor loom.Actor, id loom.ClusterID) ([]loom.Node, error) {
	return livingNodes(ctx, u.db, actor.Tenant, id)
}

func livingNodes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID) ([]loom.Node, error) {
	all, err := store.NodesByCluster(ctx, q, tenant, id)
	if err != nil {
		return nil, err
	}
	var nodes []loom.Node
	for _, n := range all {
		if n.State == loom.NodeDeleted {
			continue
		}
		// Facts may hold credentials and change nothing in the plan.
		n.Results, n.Actions = nil, nil
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// draftFields takes the provider fields of a preview's request. What is still
// missing is not an error here: it may come with Apply.
func (u *Clusters) draftFields(ctx context.Context, d *liveDraft, given map[string]any) error {
	if len(given) == 0 {
		return nil
	}
	if errs := checkStorable("providerFields", given); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	t, err := store.ProviderType(ctx, u.db, d.Provider.Type)
	if err != nil {
		return err
	}
	fields := takeFields(t, d.Provider, nil, given)
	d.Fields, d.Sensitive = fields.open, slices.Sorted(maps.Keys(fields.sealed))
	return loom.InvalidFields(fields.errs)
}

// warnLive lists what a person should know before it happens.
func (u *Clusters) warnLive(ctx context.Context, actor loom.Actor, d *liveDraft) error {
	for _, n := range d.Nodes {
		switch {
		case n.State != loom.NodeFailed:
		case d.Kind == loom.PreviewDelete:
			d.Warnings = append(d.Warnings, fmt.Sprintf("Node %d failed before; look whether its machine is really gone afterwards.", n.Number))
		default:
			d.Warnings = append(d.Warnings, fmt.Sprintf("Node %d failed before; its tasks may fail again.", n.Number))
		}
	}
	if d.Kind == loom.PreviewDelete {
		return nil
	}
	if plan, err := d.plan(); err != nil {
		return err
	} else if len(plan.Tasks) == 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("No service defines an action that this needs, so nothing runs on the machines (%s).", d.Action.Verb()))
	}
	if d.Added != nil {
		if err := u.warnOfAutomators(ctx, actor.Tenant, d); err != nil {
			return err
		}
	}
	if d.Action == loom.ClusterConfigure {
		d.Warnings = append(d.Warnings, "Services are not restarted; one that reads its settings only when it starts keeps the old ones.")
	}
	tenant, err := store.Tenant(ctx, u.db, actor.Tenant)
	if err == nil && tenant.Workers == 0 {
		d.Warnings = append(d.Warnings, noWorkers)
	}
	return err
}

// mayBegin answers Conflict, with the sentence why, unless the verb is allowed now.
func (u *Clusters) mayBegin(ctx context.Context, q sqlx.ExtContext, c loom.Cluster, verb loom.ClusterVerb) error {
	latest, err := latestOperation(ctx, q, c)
	if err != nil {
		return err
	}
	if why := c.WhyNot(verb, latest); why != "" {
		if verb == loom.VerbDelete && c.Status == loom.ClusterPending && c.WhyNot(loom.VerbAbort, latest) == "" {
			why += " A delete with “abort” ends it first."
		}
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

// maxTries is how often a request at once reads a cluster anew that keeps moving.
const maxTries = 3

func keepsChanging() error {
	return loom.NewError(loom.Conflict, "The cluster keeps changing; try again.")
}

// atOnce drafts and begins an operation in one go, as applying its preview would,
// provided that still, unless nil, holds. It gives the cluster as it was read.
func (u *Clusters) atOnce(ctx context.Context, actor loom.Actor, in PreviewInput, still func(c loom.Cluster) bool) (loom.OperationRef, loom.Cluster, error) {
	var none loom.OperationRef
	verb := "update"
	if in.Kind == loom.PreviewDelete {
		verb = "delete"
	}
	// Reading and planning happen outside the transaction; when the cluster moved
	// before its lock was had, all is read once more.
	for try := 0; ; try++ {
		given := in
		given.ProviderFields = nil // those are taken under the lock, sensitive ones as well
		d, cluster, err := u.draftLive(ctx, actor, given)
		if err != nil || still != nil && !still(cluster) {
			return none, cluster, err
		}
		plan, err := d.plan()
		if err != nil {
			return none, cluster, err
		}
		ref, err := store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.OperationRef, error) {
			return u.begin(ctx, tx, actor, cluster, d, plan, in.ProviderFields, verb)
		})
		var old *stale
		if errors.Is(err, errMoved) || errors.As(err, &old) {
			if try < maxTries {
				continue
			}
			err = keepsChanging()
		}
		return ref, cluster, err
	}
}

// snapshot reads the layout of a cluster, whose lock the caller holds.
func snapshot(ctx context.Context, tx *sqlx.Tx, c loom.Cluster) (*loom.Snapshot, error) {
	nodes, err := livingNodes(ctx, tx, c.Owner.Tenant, c.ID)
	return &loom.Snapshot{Nodes: nodes, Services: c.Services, Config: c.Config}, err
}

// layout is what the cluster, which was as said, is to be.
func (d *liveDraft) layout(was *loom.Snapshot) store.NewLayout {
	var l store.NewLayout
	switch {
	case d.Kind == loom.PreviewDelete:
		for _, n := range was.Nodes {
			l.Leaving = append(l.Leaving, n.ID)
		}
	case d.Added != nil:
		l.Services, l.Changed = d.Services, d.changedNodes()
	}
	return l
}

// begin starts the operation, under the lock of the cluster. The error is errMoved
// unless the cluster is as it was seen, *stale unless the catalog is.
func (u *Clusters) begin(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, seen loom.Cluster, d *liveDraft, plan loom.Plan, given map[string]any, verb string) (loom.OperationRef, error) {
	var none loom.OperationRef
	cluster, err := store.LockCluster(ctx, tx, actor.Tenant, seen.ID)
	if err := visible(actor, seen.ID, cluster.Owner, err); err != nil {
		return none, err
	}
	if err := u.mayBegin(ctx, tx, cluster, d.Kind.Verb()); err != nil {
		return none, err
	}
	if cluster.Revision != seen.Revision {
		return none, errMoved
	}
	if d.Added != nil {
		if err := d.addedNow(ctx, tx, actor.Tenant); err != nil {
			return none, err
		}
	}
	if err := u.takeProviderFields(ctx, tx, actor, &cluster, given); err != nil {
		return none, err
	}
	if d.setsConfig() {
		if err := store.SetClusterConfig(ctx, tx, actor.Tenant, cluster.ID, d.After); err != nil {
			return none, err
		}
	}
	was, err := snapshot(ctx, tx, cluster)
	if err != nil {
		return none, err
	}
	// Before the plan is stored: a hook that is asked hears what the nodes are to be.
	if err := store.SetLayout(ctx, tx, actor.Tenant, cluster.ID, d.layout(was)); err != nil {
		return none, err
	}
	if cluster.DeleteWanted != "" {
		if err := store.SetDeleteWanted(ctx, tx, actor.Tenant, cluster.ID, ""); err != nil {
			return none, err
		}
	}
	if err := store.SetClusterStatus(ctx, tx, actor.Tenant, cluster.ID, loom.ClusterPending); err != nil {
		return none, err
	}
	op, err := store.InsertPlan(ctx, tx, store.NewOperation{
		Tenant: actor.Tenant, Cluster: cluster.ID, Action: d.Action, RequestedBy: actor.User, OnFailure: loom.OnFailureKeep, Before: was,
	}, plan)
	if err != nil {
		return none, err
	}
	before := map[string]any{"name": cluster.Name, "status": cluster.Status}
	after := map[string]any{"operationId": op.Ref.String(), "action": d.Action}
	if d.Service != "" {
		after["service"] = d.Service
	}
	if d.Added != nil {
		before["services"], after["services"] = sortedNames(cluster.Services), sortedNames(d.Services)
		after["nodes"] = len(d.Added.Nodes)
	}
	if d.setsConfig() {
		if err := store.InsertConfigRevision(ctx, tx, actor.Tenant, op.Ref, actor.User); err != nil {
			return none, err
		}
		before["config"], after["config"], after["changed"] = d.Before, d.After, paths(differences(d.Before, d.After))
	}
	err = store.InsertAudit(ctx, tx, loom.AuditEntry{
		Actor: actor, Verb: verb, Kind: "cluster", Object: cluster.ID.String(), Result: "ok", Before: before, After: after,
	})
	if err != nil {
		return none, err
	}
	return op.Ref, store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, cluster.ID)...)
}
