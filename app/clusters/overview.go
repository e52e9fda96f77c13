package clusters

import (
	"context"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner/macro"
)

// ClusterView is a cluster as its page and its API object show it.
type ClusterView struct {
	loom.Cluster
	// Nodes by number, with their history; secrets among their facts are masked. They
	// are those of the layout and those on their way out; of a cluster that was deleted
	// those that it had then. FormerNodes left it before.
	Nodes, FormerNodes []loom.Node
	// Unmet are the services that do not serve, by node; only of
	// nodes that are ready or failed.
	Unmet map[loom.NodeID]Unmet
	// Links of the template, macros expanded; what cannot be expanded yet stays as written.
	// Those that name a service that is not on the cluster are left out.
	// OpenLinks are those of them that lead to services of which one runs.
	Links, OpenLinks []loom.Link
	// NodeLinks are the links of the services of each node, in the same way, and
	// ServiceLinks the same by service.
	NodeLinks    map[loom.NodeID][]loom.Link
	ServiceLinks map[loom.NodeID]map[string][]loom.Link
	// Health is what checks saw of the cluster and its nodes.
	Health loom.ClusterHealth
	// Latest is the newest operation, nil before the first.
	Latest *loom.Operation
	// Allowed says of each verb why it cannot begin now, "" when it can.
	Allowed map[loom.ChangeKind]string
	// NewerTemplate is the newest released version of the template, 0 unless it is newer
	// than the cluster's copy.
	NewerTemplate int
	// Deprecated are the versions that the cluster is made of and that carry a message to its
	// owner.
	Deprecated []store.VersionState
	// Rollout is the rollout that will change the cluster or changes it, number 0 for none.
	Rollout ClusterRollout
	Lease   loom.LeaseLimits
	// LeaseNote is a sentence about the end of the lease, "" while there is none to say.
	LeaseNote string
	// Grace is how long the machines stay after the end of the lease.
	Grace time.Duration
	// Skipped are tasks that somebody left out and that no later operation ran, the
	// first 100.
	Skipped []loom.Task
	// Leftovers are machines that a delete left behind, for administrators.
	Leftovers []loom.Leftover
}

// ClusterRollout is the rollout that will change a cluster or changes it.
type ClusterRollout = store.ClusterRollout

// maxShownSkipped is how many tasks that were left out a cluster shows.
const maxShownSkipped = 100

// Cluster reads a cluster with all its page shows. NotFound for clusters that
// the actor may not see.
func (u *Clusters) Cluster(ctx context.Context, actor loom.Actor, id loom.ClusterID) (ClusterView, error) {
	v, err := u.overview(ctx, actor, id, store.NodesByCluster)
	if err != nil {
		return v, err
	}
	for _, nodes := range [][]loom.Node{v.Nodes, v.FormerNodes} {
		for i := range nodes {
			maskFacts(&nodes[i])
		}
	}
	history, err := store.NodeActions(ctx, u.q, actor.Tenant, id, "", maxNodeActions)
	for _, nodes := range [][]loom.Node{v.Nodes, v.FormerNodes} {
		for i := range nodes {
			nodes[i].Actions = history[nodes[i].ID]
		}
	}
	return v, err
}

// Overview reads a cluster as Cluster does, without the history of its nodes and what
// tasks learned of them, which of a large one is most of the work. NotFound.
func (u *Clusters) Overview(ctx context.Context, actor loom.Actor, id loom.ClusterID) (ClusterView, error) {
	return u.overview(ctx, actor, id, store.NodesBriefly)
}

// readNodes reads the nodes of a cluster.
type readNodes func(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) ([]loom.Node, error)

func (u *Clusters) overview(ctx context.Context, actor loom.Actor, id loom.ClusterID, read readNodes) (ClusterView, error) {
	var v ClusterView
	cluster, latest, err := u.load(ctx, actor, id)
	if err != nil {
		return v, err
	}
	v.Cluster, v.Latest = cluster, latest
	all, err := read(ctx, u.kept, actor.Tenant, id)
	if err != nil {
		return v, err
	}
	if err := u.splitNodes(ctx, &v, all); err != nil {
		return v, err
	}
	v.expandLinks()
	if v.Health, err = store.HealthOfCluster(ctx, u.kept, actor.Tenant, id); err != nil {
		return v, err
	}
	if err := u.unmet(ctx, &v); err != nil {
		return v, err
	}
	if v.Allowed, err = u.allowed(ctx, actor, cluster, latest); err != nil {
		return v, err
	}
	if v.Skipped, err = store.SkippedTasks(ctx, u.kept, actor.Tenant, id, maxShownSkipped); err != nil {
		return v, err
	}
	if err := u.readLease(ctx, actor, &v); err != nil {
		return v, err
	}
	v.Lease = cluster.Template.Administration.Lease.Limits(cluster.Created, cluster.Expires)
	return v, u.readNotices(ctx, &v)
}

// readNotices says which versions of the cluster's template and services are deprecated, whether
// there is a newer template, and which rollout will change the cluster.
func (u *Clusters) readNotices(ctx context.Context, v *ClusterView) error {
	if v.Status == loom.ClusterTerminated {
		return nil
	}
	used := []EntryVersion{{Kind: loom.KindTemplate, Name: v.Template.Name, Version: v.Template.Version}}
	for _, name := range sortedNames(v.Services) {
		used = append(used, EntryVersion{Kind: loom.KindService, Name: name, Version: v.Services[name].Version})
	}
	states, rollout, err := store.ClusterNotices(ctx, u.kept, v.Owner.Tenant, v.ID, used)
	v.Rollout = rollout
	for _, s := range states {
		if s.Kind == loom.KindTemplate && s.Newest > s.Version {
			v.NewerTemplate = s.Newest
		}
		if s.Deprecation != "" {
			v.Deprecated = append(v.Deprecated, s)
		}
	}
	return err
}

// splitNodes separates the nodes of a cluster from those that left it in an earlier operation.
func (u *Clusters) splitNodes(ctx context.Context, v *ClusterView, all []loom.Node) error {
	gone := func(n loom.Node) bool { return n.Leaving && n.State == loom.NodeDeleted }
	switch {
	case v.Latest != nil && v.Latest.Action == loom.ClusterDelete:
		before, err := store.SnapshotBefore(ctx, u.q, v.Owner.Tenant, v.Latest.Ref)
		if err != nil {
			return err
		}
		if before != nil {
			had := map[loom.NodeID]bool{}
			for _, n := range before.Nodes {
				had[n.ID] = true
			}
			gone = func(n loom.Node) bool { return !had[n.ID] }
			break
		}
		gone = func(loom.Node) bool { return false }
	case v.Status == loom.ClusterTerminated:
		gone = func(loom.Node) bool { return false }
	}
	for _, n := range all {
		if gone(n) {
			v.FormerNodes = append(v.FormerNodes, n)
		} else {
			v.Nodes = append(v.Nodes, n)
		}
	}
	return nil
}

// load reads a cluster that the actor may see, and its latest operation.
func (u *Clusters) load(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.Cluster, *loom.Operation, error) {
	cluster, err := store.ClusterByID(ctx, u.kept, actor.Tenant, id)
	if err := allowed(actor, loom.See, id, cluster.Object(), err); err != nil {
		return loom.Cluster{}, nil, err
	}
	latest, err := latestOperation(ctx, u.kept, cluster)
	if err != nil {
		return cluster, nil, err
	}
	return cluster, latest, u.explainWaiting(ctx, actor.Tenant, latest)
}

// allowed says of each verb why the actor cannot begin it now. A refused operation changed nothing.
func (u *Clusters) allowed(ctx context.Context, actor loom.Actor, c loom.Cluster, latest *loom.Operation) (map[loom.ChangeKind]string, error) {
	if latest != nil && latest.NeverBegan() {
		var err error
		if latest, err = lastBegun(ctx, u.kept, c); err != nil {
			return nil, err
		}
	}
	out := map[loom.ChangeKind]string{}
	for _, verb := range loom.ClusterChanges {
		out[verb] = WhyNot(actor, c, verb, latest)
	}
	return out, nil
}

// WhyNot says why the actor cannot begin a change of a cluster now, "" where he can.
func WhyNot(actor loom.Actor, c loom.Cluster, verb loom.ChangeKind, latest *loom.Operation) string {
	actor.Scopes = nil // said to whoever holds a token when he tries
	if err := actor.May(verbOf(verb), c.Object()); err != nil {
		return loom.AsError(err).Message
	}
	return c.WhyNot(verb, latest)
}

// Actions says of each verb why it cannot begin now, "" when it can.
func (u *Clusters) Actions(ctx context.Context, actor loom.Actor, id loom.ClusterID) (map[loom.ChangeKind]string, error) {
	cluster, latest, err := u.load(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return u.allowed(ctx, actor, cluster, latest)
}

// Latest reads a cluster that the actor may see and its newest operation, nil
// before the first. NotFound.
func (u *Clusters) Latest(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.Cluster, *loom.Operation, error) {
	return u.load(ctx, actor, id)
}

func (v *ClusterView) expandLinks() {
	v.NodeLinks, v.ServiceLinks = map[loom.NodeID][]loom.Link{}, map[loom.NodeID]map[string][]loom.Link{}
	linked := false // of most clusters no service has any
	for _, service := range v.Services {
		linked = linked || len(service.Links) > 0
	}
	if !linked && len(v.Template.Links) == 0 {
		return
	}
	told := slices.DeleteFunc(slices.Clone(v.Nodes), func(n loom.Node) bool { return n.Leaving })
	if len(told) == 0 {
		told = v.Nodes // all of it goes or is gone
	}
	facts := macro.NewFacts(string(v.Owner.User), properties(told))
	v.Links = expanded(facts, v.Template.Links, "")
	v.OpenLinks = expanded(facts, slices.DeleteFunc(slices.Clone(v.Template.Links), func(l loom.Link) bool { return !v.opens(l) }), "")
	for _, n := range v.Nodes {
		v.ServiceLinks[n.ID] = map[string][]loom.Link{}
		for _, name := range n.Services {
			if len(v.Services[name].Links) == 0 {
				continue
			}
			links := expanded(facts, v.Services[name].Links, n.ID)
			v.ServiceLinks[n.ID][name] = links
			v.NodeLinks[n.ID] = append(v.NodeLinks[n.ID], links...)
		}
	}
}

// Runs reports whether a service is on a node in the state in which it serves: started,
// or there, where it is not a thing to start.
func (v *ClusterView) Runs(n *loom.Node, service string) bool {
	return n.State == loom.NodeReady && runs(v.Services[service], n.ServiceStates[service])
}

// opens reports whether each service that a link of the template names runs on a node;
// one that names none opens once the cluster is there.
func (v *ClusterView) opens(l loom.Link) bool {
	named := false
	for _, m := range macro.Mentions(map[string]any{"url": l.URL}) {
		if m.Service == "" {
			continue
		}
		named = true
		if !slices.ContainsFunc(v.Nodes, func(n loom.Node) bool { return slices.Contains(n.Services, m.Service) && v.Runs(&n, m.Service) }) {
			return false
		}
	}
	return named || v.Status == loom.ClusterActive
}

// expanded fills the macros of links for a node, "" for none. A link to a service that
// is not on the cluster, such as one that was removed, leads nowhere and is left out.
func expanded(facts *macro.Facts, links []loom.Link, self loom.NodeID) []loom.Link {
	var out []loom.Link
	for _, l := range links {
		if !facts.Lacks(l.URL) {
			out = append(out, loom.Link{Label: l.Label, URL: facts.ExpandLink(l.URL, self)})
		}
	}
	return out
}

// Unmet is what keeps a machine from being a node that serves.
type Unmet struct {
	// Services are those that do not serve, in the order of the node's.
	Services []string
	// Wanted reports whether one of them should: it failed, or an operation has it still
	// to do or left it half way. Others were stopped or skipped on purpose.
	Wanted bool
}

// unmet finds the services of a cluster that do not serve.
func (u *Clusters) unmet(ctx context.Context, v *ClusterView) error {
	v.Unmet = map[loom.NodeID]Unmet{}
	var doubtful []loom.Node // a stopped service tells only by its history whether it should run
	for _, n := range v.Nodes {
		if n.State != loom.NodeReady && n.State != loom.NodeFailed {
			continue
		}
		var m Unmet
		stopped := false
		for _, name := range n.Services {
			if v.Runs(&n, name) {
				continue
			}
			m.Services = append(m.Services, name)
			switch state := n.ServiceStates[name]; {
			case n.Leaving, state != loom.ServiceFailed && v.Status == loom.ClusterActive:
			case state == loom.ServiceStopped:
				stopped = true
			default:
				m.Wanted = true
			}
		}
		if len(m.Services) == 0 {
			continue
		}
		v.Unmet[n.ID] = m
		if stopped && !m.Wanted {
			doubtful = append(doubtful, n)
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	past, err := u.pastOf(ctx, v.Cluster, doubtful)
	for _, n := range doubtful {
		m := v.Unmet[n.ID]
		for _, name := range m.Services {
			runs, known := past.wanted(n.ID, name)
			m.Wanted = m.Wanted || n.ServiceStates[name] == loom.ServiceStopped && (runs || !known)
		}
		v.Unmet[n.ID] = m
	}
	return err
}

// ConfigProblem is a macro of a config that cannot be filled in.
type ConfigProblem struct {
	// Pointer is the JSON pointer of the value that holds it, Macro the macro as written,
	// "" where the problem is with the value as a whole.
	Pointer, Macro string
	// Reason is a sentence for people.
	Reason string
}

// ExpandedConfig is the config of the cluster with its macros filled in as a task on a
// node would read it, "" for none; what cannot be filled in yet stays as written, and
// the sentences say why. Secrets are not masked.
func (v *ClusterView) ExpandedConfig(self loom.NodeID) (config map[string]any, problems []ConfigProblem) {
	told := slices.DeleteFunc(slices.Clone(v.Nodes), func(n loom.Node) bool { return n.Leaving || n.State == loom.NodeDeleted })
	expanded, found := macro.NewFacts(string(v.Owner.User), properties(told)).Expand(v.Config, self)
	if expanded == nil {
		expanded = v.Config
	}
	for _, p := range found {
		problems = append(problems, ConfigProblem{Pointer: p.Pointer, Macro: p.Macro, Reason: p.Reason})
	}
	return expanded, problems
}

// readLease reads what is to be said of the end of a cluster's lease and of machines
// that its delete left behind.
func (u *Clusters) readLease(ctx context.Context, actor loom.Actor, v *ClusterView) error {
	if v.Status == loom.ClusterTerminated {
		return nil
	}
	settings, err := store.Settings(ctx, u.kept, actor.Tenant)
	if err != nil {
		return err
	}
	end, now, err := store.LeaseEndOf(ctx, u.kept, actor.Tenant, v.ID)
	if err != nil {
		return err
	}
	v.Grace = time.Duration(settings.LeaseGraceHours) * time.Hour
	v.LeaseNote = settings.LeaseNotice(end, loom.LeaseSoon(v.Created, v.Expires, now), anyStopped(v.Nodes), now.In(loom.ZoneOf(ctx)))
	if actor.May(loom.Override.Reading(), actor.InTenant()) == nil && v.Status != loom.ClusterActive {
		v.Leftovers, err = store.Leftovers(ctx, u.kept, actor.Tenant, v.ID)
	}
	return err
}

// anyStopped reports whether a service is stopped somewhere.
func anyStopped(nodes []loom.Node) bool {
	for _, n := range nodes {
		for _, state := range n.ServiceStates {
			if state == loom.ServiceStopped {
				return true
			}
		}
	}
	return false
}
