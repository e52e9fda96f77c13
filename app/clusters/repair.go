package clusters

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// repairSteps are the task actions of the ways to repair a node whose machine stays, in
// their order.
var repairSteps = map[loom.RepairHow][]loom.TaskAction{
	loom.RepairByRestart:   {loom.ActionStop, loom.ActionStart},
	loom.RepairByConfigure: {loom.ActionBootstrap, loom.ActionStop, loom.ActionConfigure, loom.ActionStart},
	loom.RepairByReboot:    {loom.ActionReboot, loom.ActionConfirm, loom.ActionStart},
}

// checkRepair finds what is wrong with the request itself.
func checkRepair(in PreviewInput) []loom.FieldError {
	var errs []loom.FieldError
	asked := in.Change
	if asked.How.Action() == "" {
		return []loom.FieldError{{Field: "how", Message: "Say " + loom.Or(repairWords()) + "."}}
	}
	if len(asked.Services) > 0 && asked.How != loom.RepairByRestart && asked.How != loom.RepairByConfigure {
		errs = append(errs, loom.FieldError{Field: "services", Message: "Services are named only with “restart” and “configure” as “how”; leave this out."})
	}
	if len(asked.Dead) > 0 && !asked.How.Replaces() {
		errs = append(errs, loom.FieldError{Field: "dead", Message: "Only machines that are replaced can be dead; leave this out."})
	}
	return errs
}

func repairWords() []string {
	words := make([]string, len(loom.RepairHows))
	for i, how := range loom.RepairHows {
		words[i] = "“" + string(how) + "”"
	}
	return words
}

// draftRepair replaces the machines of nodes, or repairs them in place.
func draftRepair(ctx context.Context, u *Clusters, r request, c *change) error {
	cluster, in := r.cluster, r.in.Change
	if len(in.Nodes) == 0 {
		return invalid("nodes", "Name the nodes to repair by their ids.")
	}
	if err := checkNodes(cluster, c.After.Nodes, in.Nodes); err != nil {
		return err
	}
	if !in.How.Replaces() {
		c.of, c.Action = &inPlace, in.How.Action()
	}
	if in.How == loom.RepairByReboot {
		if err := u.checkReboot(ctx, cluster, c, in.Nodes); err != nil {
			return err
		}
	}
	cv, err := u.readTypes(ctx, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	var before, after, out, bare []loom.Node
	returns := false
	lost, err := u.nodesOfFailedDelete(ctx, cluster)
	if err != nil {
		return err
	}
	past, err := u.pastOf(ctx, cluster, c.After.Nodes)
	if err != nil {
		return err
	}
	for _, n := range c.After.Nodes {
		was := n
		named := slices.Contains(in.Nodes, n.ID)
		switch {
		case named && in.How.Replaces():
			returns = returns || n.Leaving
			n.Incarnation, n.Leaving = n.Incarnation+1, false
			c.applyTypeSettings(cv, &n)
		case n.Leaving && !lost[n.ID] && !named:
			out = append(out, n)
			continue
		case n.Leaving && !lost[n.ID] || past.lacksMachine(&n):
			bare = append(bare, n)
		}
		n.Leaving = false // the cluster lives on
		before, after = append(before, was), append(after, n)
	}
	if len(bare) > 0 && !in.How.Replaces() {
		return invalid("nodes", "%s no machine that stays; replace %s first.", nodesText(bare, "has", "have"), itOrThem(bare))
	}
	if len(bare) > 0 {
		return invalid("nodes", "%s no machine; name %s as well.", nodesText(bare, "has", "have"), itOrThem(bare))
	}
	c.Before.Nodes, c.After.Nodes = before, after
	if err := c.checkServices(); err != nil {
		return err
	}
	c.warnOfLeaving(out)
	if err := u.draftRemaining(ctx, c, cluster, past); err != nil {
		return err
	}
	if returns {
		if err := u.checkRules(ctx, cluster, c.After.Nodes, c.After.Services); err != nil {
			return err
		}
	}
	if quota := c.more(); quota > 0 {
		use, err := store.QuotaUse(ctx, u.q, cluster.Owner.Tenant)
		if err != nil {
			return err
		}
		return use.Check(0, quota)
	}
	return nil
}

// checkReboot finds nodes whose machine cannot be rebooted: it does not answer, and the
// provider does not reboot machines through its API.
func (u *Clusters) checkReboot(ctx context.Context, cluster loom.Cluster, c *change, nodes []loom.NodeID) error {
	t, err := store.ProviderType(ctx, u.q, c.Provider.Type)
	if t.Reboots || errors.Is(err, loom.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	health, err := store.HealthOfCluster(ctx, u.q, cluster.Owner.Tenant, cluster.ID)
	if err != nil {
		return err
	}
	var silent []loom.Node
	for _, n := range c.After.Nodes {
		if slices.Contains(nodes, n.ID) && slices.ContainsFunc(health.Nodes, func(h loom.NodeHealth) bool { return h.Node == n.ID && h.Status.Silent() }) {
			silent = append(silent, n)
		}
	}
	if len(silent) == 0 {
		return nil
	}
	return invalid("nodes", "%s not answer, and Loom reboots machines of providers of type “%s” over SSH only. Start %s by hand, or replace %s.",
		nodesText(silent, "does", "do"), c.Provider.Type, itOrThem(silent), itOrThem(silent))
}

// nodesOfFailedDelete returns the nodes that a delete, which failed, was to take away: with a
// repair they are the cluster again.
func (u *Clusters) nodesOfFailedDelete(ctx context.Context, cluster loom.Cluster) (map[loom.NodeID]bool, error) {
	lost := map[loom.NodeID]bool{}
	if cluster.Status != loom.ClusterIncomplete || cluster.LatestOperation == 0 {
		return lost, nil
	}
	ref := loom.OperationRef{Cluster: cluster.ID, Number: cluster.LatestOperation}
	for ref.Number > 0 { // a delete that was retried was once begun by another operation
		op, err := store.OperationByRef(ctx, u.q, cluster.Owner.Tenant, ref)
		if err != nil {
			return nil, err
		}
		if op.Action != loom.ClusterDelete {
			return lost, nil
		}
		before, err := store.SnapshotBefore(ctx, u.q, cluster.Owner.Tenant, ref)
		if err != nil {
			return nil, err
		}
		if before != nil {
			for _, n := range before.Nodes {
				lost[n.ID] = true
			}
		}
		ref.Number = op.Concerns
	}
	return lost, nil
}

// BeginRepair begins the repair of one node. Within the transaction that begins it, allow,
// unless nil, is called first and begun last; an error of either ends it and is returned.
// Errors: those of Begin.
func (u *Clusters) BeginRepair(ctx context.Context, actor loom.Actor, r loom.Repair, allow func(ctx context.Context, tx *sqlx.Tx) error,
	begun func(ctx context.Context, tx *sqlx.Tx, ref loom.OperationRef) error) (loom.OperationRef, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	in := PreviewInput{Kind: loom.ChangeRepair, Cluster: r.Cluster, Change: ChangeInput{Nodes: []loom.NodeID{r.Node}, How: r.How}}
	if r.Service != "" {
		in.Change.Services = []string{r.Service}
	}
	if r.How.Replaces() {
		in.Change.Dead = in.Change.Nodes // whatever is replaced here is gone
	}
	ref, _, err := u.execute(ctx, actor, in, conditions{allow: allow, begun: begun})
	return ref, err
}

// repairable are the nodes of a cluster that can be repaired.
func repairable(ctx context.Context, u *Clusters, cluster loom.Cluster, all []loom.Node) ([]loom.Node, error) {
	lost, err := u.nodesOfFailedDelete(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var nodes []loom.Node
	for _, n := range all {
		if n.State != loom.NodeDeleted || lost[n.ID] || !n.Leaving {
			n.Results, n.Actions = nil, nil
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// checkServices returns Invalid for services that are on none of the nodes to repair, and for
// nodes that have none of the services.
func (c *change) checkServices() error {
	in, found := c.Input.Change, map[string]bool{}
	if len(in.Services) == 0 {
		return nil
	}
	var none []loom.Node
	for _, n := range c.After.Nodes {
		if !slices.Contains(in.Nodes, n.ID) {
			continue
		}
		has := slices.DeleteFunc(slices.Clone(in.Services), func(name string) bool { return !slices.Contains(n.Services, name) })
		for _, name := range has {
			found[name] = true
		}
		if len(has) == 0 {
			none = append(none, n)
		}
	}
	for _, name := range in.Services {
		if !found[name] {
			return invalid("services", "None of these nodes has the service “%.255s”.", name)
		}
	}
	if len(none) > 0 {
		return invalid("nodes", "%s none of these services; leave %s out.", nodesText(none, "has", "have"), itOrThem(none))
	}
	return nil
}

// asks reports whether a repair in place asks for a service on a node, with "" for anything
// on the node.
func (c *change) asks(node loom.NodeID, service string) bool {
	in := &c.Input.Change
	return !in.How.Replaces() && slices.Contains(in.Nodes, node) && (service == "" || len(in.Services) == 0 || slices.Contains(in.Services, service))
}

// repairLine says what a repair in place does to a node.
func (c *change) repairLine(line *ChangeLine, node loom.NodeID) {
	var names []string
	for _, name := range sortedNames(c.Remaining[node]) {
		if name != "" && c.asks(node, name) {
			names = append(names, name)
		}
	}
	list := ": " + strings.Join(names, ", ") + "."
	switch how := c.Input.Change.How; {
	case !c.asks(node, ""):
		line.Because = "An earlier operation did not make it ready."
	case how == loom.RepairByReboot && len(names) == 0:
		line.Change, line.Because = "restart", "It is rebooted."
	case how == loom.RepairByReboot:
		line.Change, line.Because = "restart", "It is rebooted, and its services are started"+list
	case len(names) == 0:
		line.Because = "None of its services should run, so nothing is restarted."
	case how == loom.RepairByConfigure:
		line.Because = "Its services are configured and restarted" + list
	default:
		line.Because = "Its services are restarted" + list
	}
}

// reasonOfRepair explains what a repair in place does to services that it was not asked for.
func reasonOfRepair(c *change, line *ChangeLine, _ map[loom.TaskAction]bool) {
	i := slices.IndexFunc(c.After.Nodes, func(n loom.Node) bool { return n.Number == line.Node })
	if !c.asks(c.After.Nodes[i].ID, line.Name) {
		line.Because = unfinished
	}
}

func summarizeInPlace(v *PreviewView) string {
	in := &v.Request.Change
	what, where := "the services of ", ""
	if len(in.Services) > 0 {
		what, where = strings.Join(in.Services, ", "), " on "
	}
	nodes := where + count(len(in.Nodes), "node")
	switch in.How {
	case loom.RepairByReboot:
		return "Reboots " + nodes
	case loom.RepairByConfigure:
		return "Configures and restarts " + what + nodes
	}
	return "Restarts " + what + nodes
}

func summarizeRepair(v *PreviewView) string {
	return "Replaces the machines of " + count(v.NodesReplaced, "node") + v.reconfigures()
}

// A repair leads a cluster back to what it should be: beside the nodes that it makes
// anew, it finishes on the others what operations that failed left half way, and starts
// what should run. What somebody stopped or left out on purpose stays so.

// history is what was last done on nodes and on the services there.
type history map[loom.NodeID]map[string]map[loom.TaskAction]store.Step

// pastOf reads the history of those nodes on which something does not run.
func (u *Clusters) pastOf(ctx context.Context, c loom.Cluster, nodes []loom.Node) (history, error) {
	var ids []loom.NodeID
	for i := range nodes {
		n := &nodes[i]
		if n.State != loom.NodeReady || slices.ContainsFunc(n.Services, func(name string) bool { return !runs(c.Services[name], n.ServiceStates[name]) }) {
			ids = append(ids, n.ID)
		}
	}
	past := history{}
	if len(ids) == 0 {
		return past, nil
	}
	steps, err := store.LatestSteps(ctx, u.q, c.Owner.Tenant, c.ID, ids)
	for _, s := range steps {
		if past[s.Node] == nil {
			past[s.Node] = map[string]map[loom.TaskAction]store.Step{}
		}
		if past[s.Node][s.Service] == nil {
			past[s.Node][s.Service] = map[loom.TaskAction]store.Step{}
		}
		past[s.Node][s.Service][s.Action] = s
	}
	return past, err
}

// runs reports whether nothing is left to wish of a service in a state.
func runs(s loom.Service, state loom.ServiceState) bool { return s.Serves(state) }

// awaitsReplacement reports whether the machine of a node was to be replaced by an operation that
// did not get to it: what that was to do on the new one is not to be done.
func (h history) awaitsReplacement(n loom.NodeID) (operation int, waits bool) {
	remove, was := h[n][""][loom.ActionDelete]
	return remove.Operation, was && remove.Open && !remove.Tried
}

// open reports whether the action is left to be done by what failed.
func (h history) open(n loom.NodeID, service string, action loom.TaskAction) bool {
	s := h[n][service][action]
	operation, waits := h.awaitsReplacement(n)
	return s.Open && (!waits || s.Operation != operation)
}

// lacksMachine reports whether a node has no machine to do anything on.
func (h history) lacksMachine(n *loom.Node) bool {
	return n.State == loom.NodePlanned || n.State == loom.NodeDeleted || n.State != loom.NodeReady && h.open(n.ID, "", loom.ActionCreate)
}

// wanted reports whether a service should run on a node, by the last operation that was
// about that; known is false where none was. A START that was left out is no wish.
func (h history) wanted(n loom.NodeID, service string) (runs, known bool) {
	start, starts := h[n][service][loom.ActionStart]
	stop, stops := h[n][service][loom.ActionStop]
	last := start
	if stops && (!starts || stop.Operation > start.Operation) {
		last = stop
	}
	return last.Of != loom.StopServices && (!starts || start.Operation < last.Operation || start.Status != loom.TaskSkipped), starts || stops
}

// remaining returns what is left to do on a node that stays, by service; nil for nothing.
func (h history) remaining(n *loom.Node, services map[string]loom.Service) map[string][]loom.TaskAction {
	rest := map[string][]loom.TaskAction{}
	for _, action := range []loom.TaskAction{loom.ActionConfirm, loom.ActionBootstrap} {
		// A reboot that failed is not to be finished by repairs of other nodes.
		if h.open(n.ID, "", action) && h[n.ID][""][action].Of != loom.RepairReboot {
			rest[""] = append(rest[""], action)
		}
	}
	for _, name := range n.Services {
		s, state := services[name], n.ServiceStates[name]
		if runs(s, state) || h[n.ID][name] == nil {
			continue
		}
		if state == loom.ServiceFailed && h.open(n.ID, name, loom.ActionStop) {
			if h.open(n.ID, name, loom.ActionInstall) {
				continue // an earlier version may run, which only its own definition stops
			}
			rest[name] = append(rest[name], loom.ActionStop)
		}
		for _, action := range []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionInitialize} {
			if s.Defines(action) && h.open(n.ID, name, action) {
				rest[name] = append(rest[name], action)
			}
		}
		if wanted, known := h.wanted(n.ID, name); s.Defines(loom.ActionStart) && wanted && known {
			rest[name] = append(rest[name], loom.ActionStart)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return rest
}

// addRepair adds what a repair in place does to a node to what is left to do there. The
// actions of services that an earlier operation did not install wait for nothing else.
func (c *change) addRepair(past history, n *loom.Node, rest map[string][]loom.TaskAction) map[string][]loom.TaskAction {
	all := map[string][]loom.TaskAction{}
	maps.Copy(all, rest)
	add := func(name string, action loom.TaskAction) {
		if !slices.Contains(all[name], action) {
			all[name] = append(all[name], action)
		}
	}
	for _, action := range repairSteps[c.Input.Change.How] {
		if action.OfNode() {
			add("", action)
			continue
		}
		for _, name := range n.Services {
			s := c.After.Services[name]
			named := len(c.Input.Change.Services) > 0 || past.shouldRun(n, name, &s)
			if named && c.asks(n.ID, name) && s.Defines(action) && !past.open(n.ID, name, loom.ActionInstall) {
				add(name, action)
			}
		}
	}
	return all
}

// shouldRun reports whether a service runs on a node, or should.
func (h history) shouldRun(n *loom.Node, name string, s *loom.Service) bool {
	wanted, known := h.wanted(n.ID, name)
	return runs(*s, n.ServiceStates[name]) || wanted && known
}

// draftRemaining finds what is left to do on the nodes that a repair does not replace, and
// warns of what stays as it is.
func (u *Clusters) draftRemaining(ctx context.Context, c *change, cluster loom.Cluster, past history) error {
	c.Remaining = planner.RemainingActions{}
	stopped, down, begun := map[string][]loom.Node{}, map[string][]loom.Node{}, map[string][]loom.Node{}
	c.diffNodes(func(before, after *loom.Node) {
		if before == nil || after == nil {
			return
		}
		made := before.Incarnation != after.Incarnation
		if rest := past.remaining(before, c.After.Services); !made {
			if c.asks(after.ID, "") {
				rest = c.addRepair(past, before, rest)
			}
			if len(rest) > 0 {
				c.Remaining[after.ID] = rest
			}
		}
		for _, name := range after.Services {
			if s := c.After.Services[name]; runs(s, before.ServiceStates[name]) || !s.Defines(loom.ActionStart) {
				continue
			}
			wanted, known := past.wanted(after.ID, name)
			switch {
			case made && known && !wanted:
				begun[name] = append(begun[name], *after)
			case made || slices.Contains(c.Remaining[after.ID][name], loom.ActionStart):
			case known && !wanted && before.ServiceStates[name] == loom.ServiceStopped:
				stopped[name] = append(stopped[name], *after)
			default:
				down[name] = append(down[name], *after)
			}
		}
	})
	for _, name := range sortedNames(c.After.Services) {
		if nodes := stopped[name]; len(nodes) > 0 {
			c.warn("%s “%s” stopped, as requested before.", nodesText(nodes, "keeps", "keep"), name)
		}
		if nodes := down[name]; len(nodes) > 0 {
			c.warn("%s “%s” stopped. Include %s to change that.", nodesText(nodes, "keeps", "keep"), name, itOrThem(nodes))
		}
		if nodes := begun[name]; len(nodes) > 0 {
			c.warn("%s “%s”, which was stopped on request or left out: everything on a new machine is started.", nodesText(nodes, "starts", "start"), name)
		}
	}
	return u.warnOfUnfinished(ctx, c, cluster)
}

// warnOfUnfinished says what of an operation that failed is left undone by a repair: it
// puts services right that do not run, and leaves alone what runs.
func (u *Clusters) warnOfUnfinished(ctx context.Context, c *change, cluster loom.Cluster) error {
	op, err := u.halfDone(ctx, cluster)
	if err != nil || op == nil || op.Undone || op.Action == loom.ClusterDelete {
		return err
	}
	plans, err := store.PlansOf(ctx, u.q, cluster.Owner.Tenant, *op)
	if err != nil {
		return err
	}
	course := planner.ProgressOf(plans)
	alone := map[loom.NodeID]bool{}
	c.diffNodes(func(before, after *loom.Node) {
		if before != nil && after != nil && before.Incarnation == after.Incarnation {
			alone[after.ID] = true
		}
	})
	left := 0
	for _, t := range course.Plan.Tasks {
		if alone[t.Node] && !course.Done(t.Number) && !slices.Contains(c.Remaining[t.Node][t.Service], t.Action) {
			left++
		}
	}
	if left > 0 {
		c.warn("Operation %d (%s) did not finish, and the repair leaves out %s of it on other nodes; retry it first if that is still wanted.",
			op.Ref.Number, op.Action.Verb(), count(left, "task"))
	}
	return nil
}

// resumes reports whether a repair goes on with a service on a node that stays.
func (c *change) resumes(node loom.NodeID, service string) bool {
	return len(c.Remaining[node][service]) > 0
}
