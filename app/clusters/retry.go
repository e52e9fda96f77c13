package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
	"loom/solver"
)

// maxSkipped is how many tasks a retry may leave out.
const maxSkipped = 1000

// draftRetry works out what is left of the latest operation.
func draftRetry(ctx context.Context, u *Clusters, r request, c *change) error {
	actor, cluster, in := r.actor, r.cluster, r.in.Change
	latest, err := lastBegun(ctx, u.q, cluster)
	if err != nil {
		return err
	}
	number := in.Operation
	if number == 0 {
		number = latest.Ref.Number
	}
	op, err := u.operationOf(ctx, cluster, number)
	if err != nil {
		return err
	}
	if number != latest.Ref.Number {
		return loom.NewError(loom.Conflict, "Only the latest operation that began can be retried, and that is operation %d.", latest.Ref.Number)
	}
	if len(in.Skip) > 0 {
		if err := actor.May(loom.Override, actor.InTenant()); err != nil {
			return err
		}
		if err := loom.InvalidFields(loom.CheckReason("reason", in.Reason)); err != nil {
			return err
		}
		if len(in.Skip) > maxSkipped {
			return invalid("skip", "A retry leaves out at most %d tasks.", maxSkipped)
		}
	}
	if in.amends() {
		if len(in.Skip) > 0 {
			return invalid("skip", "A retry leaves out tasks, or changes services and config; not both.")
		}
		return u.draftAmended(ctx, r, c, op, amendment{
			Newest: in.Services, Remove: in.RemoveServices, Config: in.patch(),
		})
	}
	c.Action = op.Action
	if err := c.policy(in.OnFailure, op.OnFailure); err != nil {
		return err
	}
	c.Followed = &followUp{Of: number, By: actor.User}
	if err := u.makePlan(ctx, cluster.Owner.Tenant, c); err != nil {
		return err
	}
	if cluster.Protected && op.Action == loom.Rollback && deletes(c.plan) {
		return isProtected()
	}
	return nil
}

// planRetry plans the tasks that are left, and behind them those that are left out.
func planRetry(ctx context.Context, u *Clusters, c *change, tenant loom.TenantID) (loom.Plan, error) {
	f, asked := c.Followed, c.Input.Change
	op, err := store.OperationByRef(ctx, u.q, tenant, loom.OperationRef{Cluster: c.Cluster, Number: f.Of})
	if err != nil {
		return loom.Plan{}, err
	}
	plans, err := store.PlansOf(ctx, u.q, tenant, op)
	if err != nil {
		return loom.Plan{}, err
	}
	course := planner.ProgressOf(plans)
	if err := loom.InvalidFields(checkSkipped(course, asked.Skip)); err != nil {
		return loom.Plan{}, err
	}
	skip := map[int]bool{}
	for _, number := range asked.Skip {
		skip[number] = true
	}
	open := contract(course.Plan, skip)
	plan, err := planner.PlanRetry(open, func(number int) bool { return course.Done(number) || skip[number] })
	if err != nil {
		return loom.Plan{}, err
	}
	f.skipped = map[int]store.Skip{}
	if len(skip) == 0 {
		return plan, nil
	}
	plan = renumber(plan, len(skip))
	for i := range course.Plan.Tasks {
		if t := course.Plan.Tasks[i]; skip[t.Number] {
			t.Number, t.Level, t.Rank, t.Critical = len(plan.Tasks)+1, 1, 1, false
			plan.Tasks = append(plan.Tasks, t)
			f.skipped[t.Number] = store.Skip{By: f.By, Reason: asked.Reason}
		}
	}
	return plan, nil
}

// checkSkipped finds what is wrong with the tasks that a retry is to leave out.
func checkSkipped(course *planner.Progress, skip []int) []loom.FieldError {
	var errs []loom.FieldError
	for i, number := range skip {
		field := fmt.Sprintf("skip[%d]", i)
		switch {
		case number < 1 || number > len(course.Plan.Tasks):
			errs = append(errs, loom.FieldError{Field: field, Message: fmt.Sprintf("The operation has no task %d.", number)})
		case course.Done(number):
			errs = append(errs, loom.FieldError{Field: field, Message: fmt.Sprintf("Task %d is done; it does not run again.", number)})
		}
	}
	return errs
}

// renumber makes room for n more tasks behind those of a plan.
func renumber(plan loom.Plan, n int) loom.Plan {
	last := len(plan.Tasks)
	plan.Edges = slices.Clone(plan.Edges)
	for i := range plan.Edges {
		e := &plan.Edges[i]
		if e.From > last {
			e.From += n
		}
		if e.To > last {
			e.To += n
		}
	}
	return plan
}

// contract leads the order of a plan past some of its tasks: what is behind one waits
// for what that waited for.
func contract(plan loom.Plan, past map[int]bool) loom.Plan {
	if len(past) == 0 {
		return plan
	}
	before, after := make([][]int, plan.EndVertex()+1), make([][]int, plan.EndVertex()+1)
	have := make(map[loom.Edge]bool, len(plan.Edges))
	add := func(from, to int) {
		if e := (loom.Edge{From: from, To: to}); !have[e] {
			have[e] = true
			before[to], after[from] = append(before[to], from), append(after[from], to)
		}
	}
	for _, e := range plan.Edges {
		add(e.From, e.To)
	}
	gate := func(v int) bool { return v > len(plan.Tasks) }
	for number := range plan.Tasks {
		if number++; !past[number] {
			continue
		}
		for _, from := range before[number] {
			for _, to := range after[number] {
				if !have[loom.Edge{From: from, To: number}] || !have[loom.Edge{From: number, To: to}] {
					continue
				}
				if !gate(from) || !gate(to) {
					add(from, to)
					continue
				}
				// A gate never follows a gate: what is behind it waits for its tasks.
				for _, task := range before[from] {
					if have[loom.Edge{From: task, To: from}] {
						add(task, to)
					}
				}
			}
		}
		for _, from := range before[number] {
			delete(have, loom.Edge{From: from, To: number})
		}
		for _, to := range after[number] {
			delete(have, loom.Edge{From: number, To: to})
		}
	}
	out := plan
	out.Edges = nil
	for e := range have {
		out.Edges = append(out.Edges, e)
	}
	slices.SortFunc(out.Edges, func(a, b loom.Edge) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return a.To - b.To
	})
	return out
}

func summarizeRetry(v *PreviewView) string {
	skipped := ""
	if v.Skipped > 0 {
		skipped = ", skips " + count(v.Skipped, "task")
	}
	return fmt.Sprintf("Continues operation %d%s", v.Of, skipped)
}

// An operation that failed because of what the catalog or the config said is retried with a change: it
//  leads to where it was to lead to, with newer versions of services, another
// config, or without services. Undone, it goes back to before the failed one.

// amendment is what a retry changes.
type amendment struct {
	// Newest are services that come in their newest version, Remove those that leave.
	Newest, Remove []string
	// Config is another config, nil for none.
	Config *ConfigureInput
}

// draftAmended works out a retry that changes what failed.
func (u *Clusters) draftAmended(ctx context.Context, r request, c *change, op loom.Operation, what amendment) error {
	cluster, asked := r.cluster, r.in.Change
	if op.Action == loom.ClusterDelete {
		return loom.NewError(loom.Conflict, "Operation %d is a delete and takes no versions or config. Retry it unchanged.", op.Ref.Number)
	}
	f := &followUp{Of: op.Ref.Number, By: r.actor.User, Amends: true}
	if err := u.readPresent(ctx, cluster, f); err != nil {
		return err
	}
	if f.Failed != op.Ref.Number {
		return loom.NewError(loom.Conflict, "Operation %d left nothing unfinished, so it can't continue.", op.Ref.Number)
	}
	of, err := f.lineage(ctx, u.q, cluster.Owner.Tenant, op.Ref)
	if err != nil {
		return err
	}
	if of.Goal == nil && op.Action != loom.ClusterCreate && of.First == nil {
		return loom.NewError(loom.Conflict, "An earlier release of Loom began operation %d and did not keep the layout before it. Retry it unchanged.", op.Ref.Number)
	}
	f.Goal.Nodes = of.After.Nodes
	if len(f.Goal.Nodes) == 0 {
		return loom.NewError(loom.Conflict, "Operation %d leads to no nodes, so nothing can change. Retry it unchanged.", op.Ref.Number)
	}
	c.Action, c.Followed, c.of = op.Action, f, &amended
	if err := c.policy(asked.OnFailure, op.OnFailure); err != nil {
		return err
	}
	c.Before.Nodes = f.Goal.Nodes
	c.After.Nodes = slices.Clone(f.Goal.Nodes)
	c.After.Services = maps.Clone(cluster.Services)
	if err := u.amendServices(ctx, c, cluster, what); err != nil {
		return err
	}
	if err := u.amendConfig(ctx, c, cluster, what.Config); err != nil {
		return err
	}
	if !c.SetsConfig {
		c.Before.Config, c.After.Config = cluster.Config, cluster.Config
	}
	if err := u.makePlan(ctx, cluster.Owner.Tenant, c); err != nil {
		return err
	}
	if cluster.Protected && op.Action == loom.Rollback && deletes(c.plan) {
		return isProtected()
	}
	return nil
}

// amendServices takes newest versions, and takes services off.
func (u *Clusters) amendServices(ctx context.Context, c *change, cluster loom.Cluster, what amendment) error {
	if err := checkOnCluster(cluster, slices.Concat(what.Newest, what.Remove)); err != nil {
		return err
	}
	for _, name := range what.Newest {
		if slices.Contains(what.Remove, name) {
			return invalid("services", "“%s” is to be removed; do not name it among those that come in their newest version.", name)
		}
	}
	catalog, err := store.Services(ctx, u.q, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(what.Newest))) {
		newest, there := catalog[name]
		switch {
		case !there:
			return invalid("services", "The catalog no longer has a service “%s”, so there is nothing newer.", name)
		case newest.Version == cluster.Services[name].Version:
			c.warn("Nothing is newer than version %d of “%s”.", newest.Version, name)
		default:
			c.After.Services[name] = newest
			c.Services = append(c.Services, name)
			c.version(loom.KindService, &newest.Base)
		}
	}
	remove := slices.Compact(slices.Sorted(slices.Values(what.Remove)))
	if len(remove) > 0 {
		solving, stop := u.startSearch(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
		defer stop()
		q := solverCluster(cluster, c.After.Nodes, c.After.Services)
		_, unsat, err := solver.Remove(solving, q, remove)
		if err != nil {
			return err
		}
		if unsat != nil {
			return unsolvable(unsat, c.After.Nodes, removals(remove, solver.SuggestChange(solving, q, nil, remove, unsat)))
		}
	}
	maps.DeleteFunc(c.After.Services, func(name string, _ loom.Service) bool { return slices.Contains(remove, name) })
	for i := range c.After.Nodes {
		n := &c.After.Nodes[i]
		kept := slices.DeleteFunc(slices.Clone(n.Services), func(name string) bool { return slices.Contains(remove, name) })
		if len(kept) < len(n.Services) || slices.ContainsFunc(kept, func(name string) bool { return slices.Contains(c.Services, name) }) {
			n.Services, n.Automators = kept, automatorsOf(kept, c.After.Services)
		}
	}
	if len(c.Services) > 0 {
		c.warnOfUses(c.Services)
		if err := u.checkRules(ctx, cluster, c.After.Nodes, servicesOn(c.After.Nodes, c.After.Services)); err != nil {
			return err
		}
	}
	c.Followed.Newest, c.Followed.Removed = slices.Clone(c.Services), remove
	return nil
}

// amendConfig lays defaults of newer versions below the config that is asked for.
func (u *Clusters) amendConfig(ctx context.Context, c *change, cluster loom.Cluster, asked *ConfigureInput) error {
	field, before := "config", cluster.Config
	if asked != nil {
		field = asked.field()
		if err := loom.InvalidFields(asked.check()); err != nil {
			return err
		}
		if err := u.readConfig(ctx, c, cluster, asked); err != nil {
			return err
		}
		cluster.Config = c.After.Config
		if before == nil {
			before = cluster.Config
		}
	}
	after, err := c.mergeDefaults(cluster, c.Followed.Newest)
	if err != nil {
		return err
	}
	c.SetsConfig, c.Before.Config, c.After.Config = !sameJSON(before, after), before, after
	return c.checkConfig(cluster.Owner.User, &cluster.Template, field, after)
}

// lineage reads what Back is asked about: the operation and those it goes on with.
func (f *followUp) lineage(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (*loom.Lineage, error) {
	op, err := store.OperationByRef(ctx, q, tenant, ref)
	if err != nil {
		return nil, err
	}
	return store.LineageOf(ctx, q, tenant, op, f.Goal.Snapshot())
}

// planAmended plans what leads on from what failed.
func planAmended(ctx context.Context, u *Clusters, c *change, tenant loom.TenantID) (loom.Plan, error) {
	f := c.Followed
	of, err := f.lineage(ctx, u.q, tenant, loom.OperationRef{Cluster: c.Cluster, Number: f.Failed})
	if err != nil {
		return loom.Plan{}, err
	}
	in := planner.RollbackInputOf(of)
	in.To, in.Mends, in.Batch = c.After.State, true, 1
	if in.Plan.Action == loom.ClusterCreate {
		in.Batch = len(c.After.Nodes) // nothing serves yet
	}
	in.HasMachine = func(id loom.NodeID) bool { return slices.Contains(f.Machines, id) }
	plan, err := planner.PlanRollback(in)
	f.old = in.Definitions()
	return plan, err
}

// storedAmended is what is stored of a retry that changes what failed, beside its plan.
func (f *followUp) storedAmended(op store.NewOperation) store.NewOperation {
	op.Concerns = f.Of
	start, before := *op.Before, *op.Before
	before.Services = maps.Clone(before.Services)
	if before.Services == nil {
		before.Services = map[string]loom.Service{}
	}
	maps.Copy(before.Services, f.old)
	op.Start, op.Before = &start, &before
	return op
}

func summarizeAmended(v *PreviewView) string {
	text := fmt.Sprintf("Continues operation %d", v.Of)
	if len(v.Newest) > 0 {
		text += ", takes the newest version of " + strings.Join(v.Newest, ", ")
	}
	if len(v.Removed) > 0 {
		text += ", removes " + strings.Join(v.Removed, ", ")
	}
	if v.Config != nil {
		text += ", changes the config"
	}
	return text
}

// followUp is an operation that goes on with an earlier one, or takes it back: part of
// the body of a preview. What it holds does not change any more, nor does what it
// names: the plan, which is computed from both, is not stored.
type followUp struct {
	// Of is the number of the operation that is retried or rolled back.
	Of int `json:"of"`
	// Failed is the number of the newest operation that left things half done, 0 for
	// none; Goal is the layout that it was to lead to, or else the one that is there,
	// Machines the nodes that had a machine when the change was worked out.
	Failed   int           `json:"failed,omitempty"`
	Goal     planner.State `json:"goal"`
	Machines []loom.NodeID `json:"machines,omitempty"`
	// Unrecorded are nodes after the change of which there is no record any more.
	Unrecorded []loom.NodeID `json:"lost,omitempty"`
	// By is who leaves out tasks.
	By loom.UserID `json:"by,omitempty"`
	// Amends says that a retry leads to something else than the operation it is about.
	Amends bool `json:"mends,omitempty"`
	// Newest are the services that come in another version then, Removed those that leave.
	Newest  []string `json:"newest,omitempty"`
	Removed []string `json:"removed,omitempty"`

	old     map[string]loom.Service
	skipped map[int]store.Skip
}

// operationOf reads an operation that a request names. NotFound, about its field.
func (u *Clusters) operationOf(ctx context.Context, cluster loom.Cluster, number int) (loom.Operation, error) {
	op, err := store.OperationByRef(ctx, u.q, cluster.Owner.Tenant, loom.OperationRef{Cluster: cluster.ID, Number: number})
	if isNotFound(err) {
		return op, missing("operation", "Cluster %s has no operation %d.", cluster.ID, number)
	}
	return op, err
}

// completeOperation completes what is stored of an operation that follows another one.
func (c *change) completeOperation(ctx context.Context, tx *sqlx.Tx, op store.NewOperation) (store.NewOperation, error) {
	f := c.Followed
	if f == nil {
		return op, nil
	}
	if f.Amends {
		return f.storedAmended(op), nil
	}
	op.Concerns, op.Retries, op.Skipped = f.Of, c.Kind == loom.ChangeRetry, f.skipped
	if op.Retries {
		// It ends where the first one would have, and goes back to before that.
		before, err := store.SnapshotBefore(ctx, tx, op.Tenant, loom.OperationRef{Cluster: op.Cluster, Number: f.Of})
		op.Before = before
		return op, err
	}
	if f.Failed == 0 {
		return op, nil
	}
	// What a failed operation was to remove may still be there, and is known from
	// before it only.
	before, err := store.SnapshotBefore(ctx, tx, op.Tenant, loom.OperationRef{Cluster: op.Cluster, Number: f.Failed})
	if err != nil || before == nil {
		return op, err
	}
	services := maps.Clone(before.Services)
	maps.Copy(services, f.Goal.Services)
	op.Before.Services = services
	return op, nil
}

// followedLayout is what is stored when the operation begins: nothing for a retry.
func (c *change) followedLayout(was *loom.Snapshot) store.NewLayout {
	f, to := c.Followed, c.After.State
	if c.Kind == loom.ChangeRetry && !f.Amends {
		return store.NewLayout{}
	}
	stays := make(map[loom.NodeID]bool, len(to.Nodes))
	for _, n := range to.Nodes {
		stays[n.ID] = true
	}
	l := store.NewLayout{Types: c.Types}
	for _, n := range to.Nodes {
		if slices.Contains(f.Unrecorded, n.ID) {
			l.Made = append(l.Made, n)
		} else {
			l.Changed = append(l.Changed, n)
		}
	}
	services := maps.Clone(to.Services)
	for _, n := range was.Nodes {
		if stays[n.ID] {
			continue
		}
		l.Leaving = append(l.Leaving, n.ID)
		// What is on a node that leaves stays known until it is gone.
		for _, name := range n.Services {
			if _, known := services[name]; known {
				continue
			}
			if s, there := was.Services[name]; there && services != nil {
				services[name] = s
			}
		}
	}
	if len(to.Nodes) > 0 {
		l.Services = services
	}
	return l
}

// servicesOn returns those of the services that are on a node.
func servicesOn(nodes []loom.Node, services map[string]loom.Service) map[string]loom.Service {
	there := map[string]loom.Service{}
	for _, n := range nodes {
		for _, name := range n.Services {
			if s, known := services[name]; known {
				there[name] = s
			}
		}
	}
	return there
}
