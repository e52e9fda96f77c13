package clusters

import (
	"context"
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
	Service     string    `json:"service,omitempty"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Template    loom.Base `json:"template"`
	// Provider is as it is now, with the cluster's own fields.
	Provider loom.Provider `json:"-"`
	// Building is what the provider builds by the preview, nil where no machine is made.
	Building *building               `json:"provider,omitempty"`
	Services map[string]loom.Service `json:"services"`
	Nodes    []loom.Node             `json:"nodes"`
	// Configure is the request of a configure, Added what an add_services brings,
	// Altered what becomes of the layout otherwise: nodes and services are those after it.
	Configure *ConfigureInput `json:"configure,omitempty"`
	Added     *addition       `json:"added,omitempty"`
	Altered   *alteration     `json:"altered,omitempty"`
	// Followed is what a retry or a rollback is about.
	Followed *following `json:"followed,omitempty"`
	// OnFailure is what a failure of the operation does, AskedPolicy what the request
	// said of that.
	OnFailure   string `json:"onFailure"`
	AskedPolicy string `json:"askedPolicy,omitempty"`
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
	if d.Followed != nil {
		return d.Followed.plan, nil
	}
	if d.Altered != nil {
		return planner.MakeChange(planner.Change{
			Action: d.Action, Before: d.Altered.Was, After: planner.State{Nodes: d.Nodes, Services: d.Services},
			Batch: d.Altered.Asked.Batch, MinHealthy: d.Altered.Asked.MinHealthy, Rest: d.Altered.Rest,
			Again: d.again(), Dead: d.Altered.Asked.Dead})
	}
	scope := planner.Scope{}
	if d.Service != "" {
		scope.Services = []string{d.Service}
	}
	if d.Added != nil {
		scope.Services, scope.Nodes = d.Added.New, d.Added.Nodes
	}
	if d.Kind == loom.PreviewAuthorize {
		scope.Nodes = d.ready()
	}
	return planner.Make(d.Action, d.Nodes, d.Services, scope)
}

// setsConfig reports whether the cluster gets another config, which may be empty.
func (d *liveDraft) setsConfig() bool {
	if d.Followed != nil {
		return d.Followed.Config
	}
	return d.Configure != nil || len(d.After) > 0
}

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
	case loom.PreviewRemoveServices:
		return loom.RemoveServices
	case loom.PreviewExpand:
		return loom.ClusterExpand
	case loom.PreviewShrink:
		return loom.ClusterShrink
	case loom.PreviewUpgrade:
		return loom.ClusterUpgrade
	case loom.PreviewResize:
		return loom.ClusterResize
	case loom.PreviewRepair:
		return loom.ClusterRepair
	case loom.PreviewRollback:
		return loom.Rollback
	case loom.PreviewAuthorize:
		return loom.ClusterAuthorize
	}
	return loom.ClusterDelete
}

// draftLive reads a cluster and works out what a request does to it. Errors:
// NotFound for the cluster, and for a service or a revision of the config that it
// does not have; Conflict when its state does not allow that; Invalid; where the
// layout changes also Unsolvable, Unavailable and Exhausted.
func (u *Clusters) draftLive(ctx context.Context, actor loom.Actor, in PreviewInput) (*liveDraft, loom.Cluster, error) {
	if in.Kind == loom.PreviewConfigure {
		if err := loom.InvalidFields(in.Configure.check()); err != nil {
			return nil, loom.Cluster{}, err
		}
	}
	if err := loom.InvalidFields(slices.Concat(checkCount(in.Services), checkCount(in.Change.Services), checkCount(in.Change.RemoveServices))); err != nil {
		return nil, loom.Cluster{}, err
	}
	cluster, nodes, err := u.atOneMoment(ctx, actor, in)
	if err != nil {
		return nil, cluster, err
	}
	d := &liveDraft{
		Kind: in.Kind, Action: actionOf(&in), Service: in.Service, Name: cluster.Name, Description: cluster.Description,
		Template: cluster.Template.Base, Provider: cluster.Provider, Services: cluster.Services, Nodes: nodes, Warnings: []string{},
	}
	switch {
	case cluster.Status != loom.ClusterActive && (in.Kind == loom.PreviewConfigure || in.Kind == loom.PreviewRemoveServices):
		err = u.draftOtherWord(ctx, actor, d, cluster, in)
	case in.Kind == loom.PreviewConfigure:
		err = u.draftConfig(ctx, d, cluster, in.Configure)
	case in.Kind == loom.PreviewAddServices:
		err = u.draftAdd(ctx, d, cluster, in.Services)
	case alters(in.Kind):
		err = u.draftAlter(ctx, d, cluster, in.Change)
	case in.Kind == loom.PreviewRetry:
		err = u.draftRetry(ctx, actor, d, cluster, in.Change)
	case in.Kind == loom.PreviewRollback:
		err = u.draftRollback(ctx, d, cluster, in.Change)
	case in.Kind == loom.PreviewAuthorize:
		err = u.draftAuthorize(ctx, actor, d)
	}
	if err == nil && d.Followed == nil {
		err = d.policy(in.Change.OnFailure, cluster.Template.Administration.OnFailure)
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
		if err := allowed(actor, verbOf(in.Kind).Reading(), in.Cluster, cluster.Owner, err); err != nil {
			return cluster, nil, err
		}
		if _, there := cluster.Services[in.Service]; in.Service != "" && !there {
			return cluster, nil, noService(cluster.ID, in.Service)
		}
		if err := u.mayBegin(ctx, u.db, cluster, in.Kind.Verb()); err != nil {
			return cluster, nil, err
		}
		nodes, err := u.members(ctx, cluster, in.Kind)
		if err != nil {
			return cluster, nil, err
		}
		if in.Kind != loom.PreviewAddServices && in.Kind != loom.PreviewConfigure && !alters(in.Kind) && !followsUp(in.Kind) {
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

// members gives the nodes that a request may be about. Those on their way out are
// left to what takes machines away or makes them anew; what a failed delete took
// away already can be repaired.
func (u *Clusters) members(ctx context.Context, c loom.Cluster, kind loom.PreviewKind) ([]loom.Node, error) {
	all, err := store.NodesByCluster(ctx, u.db, c.Owner.Tenant, c.ID)
	if err != nil {
		return nil, err
	}
	switch kind {
	case loom.PreviewDelete, loom.PreviewShrink, loom.PreviewRollback, loom.PreviewRetry:
		return living(all), nil
	case loom.PreviewRepair:
		return u.withLost(ctx, c, all)
	}
	return slices.DeleteFunc(living(all), func(n loom.Node) bool { return n.Leaving }), nil
}

// living are the nodes that have or may have a machine, by number. Their facts may
// hold credentials and change nothing in a plan; they are left out.
func living(all []loom.Node) []loom.Node {
	var nodes []loom.Node
	for _, n := range all {
		if n.State != loom.NodeDeleted {
			n.Results, n.Actions = nil, nil
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// AbortFirst ends the sentence why a busy cluster is not deleted, in words of the REST
// API; pages put the name of their button in its place.
const AbortFirst = " A delete with “abort” ends it first."

// mayBegin answers Conflict, with the sentence why, unless the verb is allowed now.
func (u *Clusters) mayBegin(ctx context.Context, q sqlx.ExtContext, c loom.Cluster, verb loom.ClusterVerb) error {
	latest, err := lastBegun(ctx, q, c)
	if err != nil {
		return err
	}
	if why := c.WhyNot(verb, latest); why != "" {
		if verb == loom.VerbDelete && c.DeleteAborts(latest) {
			why += AbortFirst
		}
		return loom.NewError(loom.Conflict, "%s", why)
	}
	return nil
}

// lastBegun reads the newest operation that began or may still begin: what was refused
// changed nothing. Nil before the first.
func lastBegun(ctx context.Context, q sqlx.ExtContext, c loom.Cluster) (*loom.Operation, error) {
	op, err := latestOperation(ctx, q, c)
	for err == nil && op != nil && op.NeverBegan() && op.Ref.Number > 1 && c.Status != loom.ClusterTerminated {
		c.LatestOperation--
		op, err = latestOperation(ctx, q, c)
	}
	return op, err
}

// latestOperation reads the newest operation, nil before the first.
func latestOperation(ctx context.Context, q sqlx.ExtContext, c loom.Cluster) (*loom.Operation, error) {
	if c.LatestOperation == 0 {
		return nil, nil
	}
	op, err := operationOf(ctx, q, c.Owner.Tenant, loom.OperationRef{Cluster: c.ID, Number: c.LatestOperation})
	if err != nil {
		return nil, err
	}
	return &op, nil
}
