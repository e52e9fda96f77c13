package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// PreviewInput asks for a preview. Create is read for the kind create, Cluster
// for the others.
type PreviewInput struct {
	Kind    loom.ChangeKind
	Cluster loom.ClusterID
	Create  loom.CreateInput
	// Service is the one that a start, stop or restart names, "" for all.
	Service string
	// Services are the ones that an add_services names.
	Services []string
	// Configure is read for the kind configure.
	Configure *ConfigureInput
	// Change is read for the kinds that change the layout or follow an operation.
	Change ChangeInput
	// Abort, of a delete, would end a running operation first. That cannot be
	// previewed: what is there to delete is known only afterwards.
	Abort bool
	// ProviderFields of a kind other than create.
	ProviderFields map[string]any
}

// ChangeInput is what a request says of a change of the layout, and of
// a rollback or a retry of an operation. Each kind of preview reads its own part.
type ChangeInput struct {
	// Machines is the total number of nodes that an expand or a shrink leads to; 0
	// where a shrink names nodes.
	Machines int
	// Nodes are those that leave or are repaired, How the way in which they are repaired.
	Nodes []loom.NodeID
	How   loom.RepairHow `json:",omitempty"`
	// Dead are those of Nodes whose machines do not answer: nothing is stopped on them.
	Dead []loom.NodeID
	// Services are those to remove, to upgrade or to repair, or whose nodes get other
	// hardware; none means all where that is allowed, and those that should run in a repair.
	Services []string
	// Entries are what an update brings, in the named versions: 0 is the newest. None means
	// the newest of all that the cluster is made of.
	Entries []store.EntryVersion `json:",omitempty"`
	// HardwareType is the one that a resize leads to.
	HardwareType string
	// Batch is how many nodes are changed at a time; 0 counts as 1.
	Batch int
	// MinHealthy is how many nodes of each service must be up at any time; nil leaves
	// that to the planner.
	MinHealthy *int
	// OnFailure is loom.OnFailureKeep, loom.OnFailureUndo or "" for what the template says.
	OnFailure string
	// Operation is the number of the one that is rolled back or retried.
	Operation int
	// Skip are numbers of tasks of that operation which a retry leaves out, Reason why.
	Skip   []int
	Reason string
	// RemoveServices and ConfigPatch are what a retry changes beside the versions of
	// Services.
	RemoveServices []string
	ConfigPatch    map[string]any
}

// amends reports whether a retry asks for something else than the operation it is about.
func (in *ChangeInput) amends() bool {
	return len(in.Services)+len(in.RemoveServices) > 0 || in.ConfigPatch != nil
}

func (in *ChangeInput) patch() *ConfigureInput {
	if in.ConfigPatch == nil {
		return nil
	}
	return &ConfigureInput{ConfigPatch: in.ConfigPatch}
}

// PreviewUnsaved returns what Preview would show without storing it: the answer has no
// id. Forms ask it while they are filled in. Where the plan neither makes nor deletes machines
// it has a hash, with which ApplyUnsaved does just that. Errors: as Preview.
func (u *Clusters) PreviewUnsaved(ctx context.Context, actor loom.Actor, in PreviewInput) (PreviewView, error) {
	if err := actor.May(loom.Operate.Reading(), actor.Mine()); err != nil {
		return PreviewView{}, err
	}
	p, c, err := u.preview(ctx, actor, in)
	if err != nil {
		return PreviewView{}, err
	}
	if keepsMachines(c.plan) {
		if _, err := u.hash(ctx, &p, c); err != nil {
			return PreviewView{}, err
		}
	}
	p.ID = ""
	return u.view(ctx, actor, p, c)
}

// keepsMachines reports whether a plan neither makes nor deletes machines.
func keepsMachines(plan loom.Plan) bool {
	return !slices.ContainsFunc(plan.Tasks, func(t loom.PlanTask) bool { return t.Action == loom.ActionCreate || t.Action == loom.ActionDelete })
}

// preview works out a preview, which has no hash yet.
func (u *Clusters) preview(ctx context.Context, actor loom.Actor, in PreviewInput) (loom.Preview, *change, error) {
	p := loom.Preview{ID: loom.PreviewID(uuid.NewString()), Kind: in.Kind, Owner: actor.Account()}
	if in.Kind == loom.ChangeCreate {
		c, _, err := u.draftCreate(ctx, actor, in.Create, true)
		if err != nil {
			return p, nil, err
		}
		p.Cluster = c.Cluster
		return p, c, u.makePlan(ctx, actor.Tenant, c)
	}
	c, cluster, err := u.changeOf(ctx, actor, in)
	if in.Abort && cluster.Status == loom.ClusterPending && errors.Is(err, loom.Conflict) {
		err = asConflict(err, "%s A delete that aborts it has no preview; delete at once instead.", loom.AsError(err).Message)
	}
	if err != nil {
		return p, nil, err
	}
	p.Cluster, p.Revision = cluster.ID, cluster.Revision
	if makesMachines(c.plan) {
		if err := checkPermitted(ctx, u.q, actor.Tenant, c.Provider, c.plan); err != nil {
			return p, nil, err
		}
		b, _, err := machineSpecOf(ctx, u.q, c.Provider)
		c.Building = &b
		return p, c, err
	}
	return p, c, nil
}

// changeOf reads a cluster and works out what a request does to it, with its plan. Errors:
// NotFound for the cluster, and for a service or a revision of the config that it
// does not have; Conflict when its state does not allow that; Invalid; where the
// layout changes also Unsolvable, Unavailable and Exhausted.
func (u *Clusters) changeOf(ctx context.Context, actor loom.Actor, in PreviewInput) (*change, loom.Cluster, error) {
	of := kinds[in.Kind]
	if of == nil || in.Kind == loom.ChangeCreate {
		return nil, loom.Cluster{}, loom.InvalidFields([]loom.FieldError{{Field: "kind", Message: noKind()}})
	}
	if of.check != nil {
		if err := loom.InvalidFields(of.check(in)); err != nil {
			return nil, loom.Cluster{}, err
		}
	}
	if err := loom.InvalidFields(slices.Concat(checkCount(in.Services), checkCount(in.Change.Services), checkCount(in.Change.RemoveServices))); err != nil {
		return nil, loom.Cluster{}, err
	}
	cluster, nodes, err := u.consistentRead(ctx, actor, in)
	if err != nil {
		return nil, cluster, err
	}
	c, err := u.changeAt(ctx, actor, in, cluster, nodes)
	return c, cluster, err
}

// changeAt works out what a request does to a cluster as it was read, with its plan. Errors: those
// of changeOf but NotFound for the cluster.
func (u *Clusters) changeAt(ctx context.Context, actor loom.Actor, in PreviewInput, cluster loom.Cluster, nodes []loom.Node) (*change, error) {
	of := kinds[in.Kind]
	c := newChange(in, of)
	c.Input.Create, c.Input.ProviderFields, c.Input.Abort = loom.CreateInput{}, nil, false
	c.Cluster, c.Name, c.Template, c.Provider = cluster.ID, cluster.Name, cluster.Template.Base, cluster.Provider
	c.Before.State = planner.State{Nodes: nodes, Services: cluster.Services}
	c.After.State = planner.State{Nodes: slices.Clone(nodes), Services: cluster.Services}
	if of.draft != nil {
		if err := of.draft(ctx, u, request{actor, cluster, in}, c); err != nil {
			return nil, err
		}
	}
	if c.Action == "" { // nothing is begun
		return c, nil
	}
	if c.Followed == nil {
		if err := c.policy(in.Change.OnFailure, cluster.Template.Administration.OnFailure); err != nil {
			return nil, err
		}
	}
	if err := u.takeRequestFields(ctx, c, in.ProviderFields); err != nil {
		return nil, err
	}
	if err := u.makePlan(ctx, actor.Tenant, c); err != nil {
		return nil, err
	}
	if u.fleet != nil {
		return c, nil
	}
	return c, u.warnOf(ctx, actor, c)
}

// consistentRead reads a cluster that a request may change now, and its nodes as they
// were with it: a layout must not be looked for in halves of two states.
func (u *Clusters) consistentRead(ctx context.Context, actor loom.Actor, in PreviewInput) (loom.Cluster, []loom.Node, error) {
	for range maxReads {
		cluster, err := store.ClusterByID(ctx, u.q, actor.Tenant, in.Cluster)
		if err := allowed(actor, verbOf(in.Kind).Reading(), in.Cluster, cluster.Object(), err); err != nil {
			return cluster, nil, err
		}
		if _, there := cluster.Services[in.Service]; in.Service != "" && !there {
			return cluster, nil, noService(cluster.ID, in.Service)
		}
		if err := u.checkAllowed(ctx, u.q, cluster, in.Kind); err != nil {
			return cluster, nil, err
		}
		nodes, err := u.members(ctx, cluster, in.Kind)
		if err != nil {
			return cluster, nil, err
		}
		if again, err := store.ClusterByID(ctx, u.q, actor.Tenant, in.Cluster); err != nil || again.Revision == cluster.Revision {
			return cluster, nodes, err
		}
	}
	return loom.Cluster{}, nil, keepsChanging()
}

func noService(id loom.ClusterID, name string) error {
	return loom.NewError(loom.NotFound, "Cluster %s has no service “%.255s”.", id, name)
}

// takeRequestFields takes the provider fields of a preview's request. What is still
// missing is not an error here: it may come with Apply.
func (u *Clusters) takeRequestFields(ctx context.Context, c *change, given map[string]any) error {
	if len(given) == 0 {
		return nil
	}
	if errs := checkStorable("providerFields", given); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	t, err := store.ProviderType(ctx, u.q, c.Provider.Type)
	if err != nil {
		return err
	}
	fields := takeFields(t, c.Provider, nil, given)
	c.Fields, c.Sensitive = fields.open, slices.Sorted(maps.Keys(fields.sealed))
	return loom.InvalidFields(fields.errs)
}

// members returns the nodes that a request may be about. Those on their way out are
// left to what takes machines away or makes them anew; what a failed delete took
// away already can be repaired.
func (u *Clusters) members(ctx context.Context, c loom.Cluster, kind loom.ChangeKind) ([]loom.Node, error) {
	all, err := store.NodesByCluster(ctx, u.q, c.Owner.Tenant, c.ID)
	if err != nil {
		return nil, err
	}
	if pick := kinds[kind].members; pick != nil {
		return pick(ctx, u, c, all)
	}
	return slices.DeleteFunc(living(all), func(n loom.Node) bool { return n.Leaving }), nil
}

// livingMembers picks all nodes that have or may have a machine.
func livingMembers(_ context.Context, _ *Clusters, _ loom.Cluster, all []loom.Node) ([]loom.Node, error) {
	return living(all), nil
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

// checkAllowed returns Conflict, with the sentence why, unless the verb is allowed now.
func (u *Clusters) checkAllowed(ctx context.Context, q sqlx.ExtContext, c loom.Cluster, verb loom.ChangeKind) error {
	latest, err := lastBegun(ctx, q, c)
	if err != nil {
		return err
	}
	if why := c.WhyNot(verb, latest); why != "" {
		if verb == loom.ChangeDelete && c.DeleteAborts(latest) {
			why += AbortFirst
		}
		return loom.NewError(loom.Conflict, "%s", why)
	}
	return nil
}

// noKind says which kinds of previews there are.
func noKind() string {
	words := make([]string, len(loom.PreviewKinds))
	for i, k := range loom.PreviewKinds {
		words[i] = string(k)
	}
	return "There are previews of the kinds " + strings.Join(words, ", ") + "."
}

// encodeRequest is what is kept of a request until its operation begins: everything but
// provider fields that are secret.
func encodeRequest(in PreviewInput) ([]byte, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the request for a %s: %w", in.Kind, err)
	}
	return data, nil
}

// Resubmit asks again for an operation that never began, because a hook refused it or
// somebody aborted it before: the same request, as if it were new. Errors: NotFound;
// Conflict for an operation that began, and for one whose request was not kept; those of
// the request itself.
func (u *Clusters) Resubmit(ctx context.Context, actor loom.Actor, of loom.OperationRef, fields map[string]any) (loom.OperationRef, error) {
	var none loom.OperationRef
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return none, err
	}
	if err := u.May(ctx, actor, loom.Operate, of.Cluster); err != nil {
		return none, err
	}
	in, err := u.RefusedRequest(ctx, actor, of)
	if err != nil {
		return none, err
	}
	if in.Kind == loom.ChangeCreate {
		for name, value := range fields {
			if in.Create.ProviderFields == nil {
				in.Create.ProviderFields = map[string]any{}
			}
			in.Create.ProviderFields[name] = value
		}
		return u.Create(ctx, actor, in.Create)
	}
	in.ProviderFields = fields
	ref, _, err := u.execute(ctx, actor, in, conditions{})
	return ref, err
}

// RefusedRequest reads the request for an operation that never began. Errors: NotFound, and
// Conflict for one that began and for one whose request was not kept.
func (u *Clusters) RefusedRequest(ctx context.Context, actor loom.Actor, of loom.OperationRef) (PreviewInput, error) {
	var in PreviewInput
	op, err := u.Operation(ctx, actor, of)
	if err != nil {
		return in, err
	}
	if !op.NeverBegan() {
		return in, loom.NewError(loom.Conflict, "Operation %d began; only one that was refused can be asked for again as it was.", of.Number)
	}
	data, err := store.OperationRequest(ctx, u.q, actor.Tenant, of)
	if err != nil {
		return in, err
	}
	if len(data) == 0 {
		return in, loom.NewError(loom.Conflict, "The request for operation %d was not kept; make it again.", of.Number)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&in); err != nil {
		return in, fmt.Errorf("decode the request for operation %s: %w", of, err)
	}
	return in, nil
}
