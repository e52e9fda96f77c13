package clusters

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"loom/app/loom"
	"loom/app/places"
	"loom/app/store"
	"loom/planner"
)

// change is a change of a cluster as it could be carried out: the body of a preview. A
// create is a change from nothing, a delete one to nothing. It holds copies of all that
// the plan is computed from, and no secret but what people wrote into the config.
type change struct {
	Kind   loom.ChangeKind    `json:"kind"`
	Action loom.ClusterAction `json:"action"`
	// Input is the request, without sensitive provider fields.
	Input    PreviewInput   `json:"input"`
	Cluster  loom.ClusterID `json:"cluster"`
	Name     string         `json:"name"`
	Template loom.Base      `json:"template"`
	// Provider is as it is now, with the cluster's own fields.
	Provider loom.Provider `json:"-"`
	// Building is what the provider builds by the preview, nil where no machine is made.
	Building      *machineSpec `json:"provider,omitempty"`
	Before, After state
	// SetsConfig reports whether the cluster gets another config, which may be empty.
	SetsConfig bool `json:"setsConfig,omitempty"`
	// Services are those that are added, removed or upgraded, sorted.
	Services []string `json:"services,omitempty"`
	// Because says of each service that is added why it comes on these nodes and no others.
	Because map[string]string `json:"because,omitempty"`
	// Files are those of services that are upgraded which are others than when the service was
	// set up, by service.
	Files map[string][]string `json:"files,omitempty"`
	// Remaining is what a repair does, or finishes, on nodes that stay.
	Remaining planner.RemainingActions `json:"rest,omitempty"`
	// Why says how the nodes that leave were chosen, where the request names none.
	Why []string `json:"why,omitempty"`
	// New is what else a create works out, Followed what a retry or a rollback is about.
	New      *newCluster `json:"new,omitempty"`
	Followed *followUp   `json:"followed,omitempty"`
	// Types are the entries of the types of machines that are to be made, Versions the
	// catalog entries that must still be the newest ones.
	Types    loom.TypeSettings    `json:"types"`
	Versions []store.EntryVersion `json:"versions"`
	// Pinned are versions that the request names or an update brings, which must still be there.
	Pinned []store.EntryVersion `json:"pinned,omitempty"`
	// OnFailure is what a failure of the operation does, "" where there is no operation.
	OnFailure string `json:"onFailure"`
	// Fields are the provider fields of the request, sensitive ones left out; those
	// are named by Sensitive and must come again.
	Fields    map[string]any `json:"fields,omitempty"`
	Sensitive []string       `json:"sensitive,omitempty"`
	Warnings  []string       `json:"warnings"`

	// unchosen are, of warnings about them, the services that could be chosen.
	unchosen map[string]string
	of       *kind
	partly   bool // settings may be missing: a template is tried
	plan     loom.Plan
	planned  bool
}

// state is a cluster before or after a change. Its config is there where that changes or
// an earlier operation is followed.
type state struct {
	planner.State
	// Template is whole, in a create and a sync.
	Template *loom.Template `json:",omitempty"`
}

// layout is the state without the config.
func (s *state) layout() planner.State { return planner.State{Nodes: s.Nodes, Services: s.Services} }

// request is what a change is worked out from.
type request struct {
	actor   loom.Actor
	cluster loom.Cluster
	in      PreviewInput
}

// kind is how changes of one kind follow from a request, and how they are shown.
type kind struct {
	// check finds what is wrong with the request itself, nil for nothing.
	check func(in PreviewInput) []loom.FieldError
	// members picks the nodes of a cluster that the request may be about, nil for those
	// that are not on their way out.
	members func(ctx context.Context, u *Clusters, cluster loom.Cluster, all []loom.Node) ([]loom.Node, error)
	// draft works out what is after the change, nil where all stays.
	draft func(ctx context.Context, u *Clusters, r request, c *change) error
	// plan plans what leads there.
	plan func(ctx context.Context, u *Clusters, c *change, tenant loom.TenantID) (loom.Plan, error)
	// layout reports whether it changes nodes, or what is on them, by their difference.
	layout bool
	// installs reports whether services come, in any version.
	installs bool
	// show fills in what a preview shows, summary begins its sentence.
	show    func(v *PreviewView, c *change, list *changeList) error
	summary func(v *PreviewView) string
	// configFrom is the reason why values of the config change, "" for the request.
	configFrom string
	// reason completes what is said of a service on a node, nil where the request says it.
	reason func(c *change, line *ChangeLine, actions map[loom.TaskAction]bool)
}

// kinds says how changes of each kind are made; a create begins with draftCreate.
var kinds = map[loom.ChangeKind]*kind{
	loom.ChangeCreate:         {plan: planSteps, show: showCreate, summary: summarizeCreate},
	loom.ChangeConfigure:      {check: checkConfigure, draft: draftConfigure, plan: planSteps, show: showInPlace, summary: summarizeConfigure},
	loom.ChangeAddServices:    {draft: draftAdd, plan: planAdd, installs: true, show: showAdd, summary: summarizeAdd, configFrom: "It is a default of the new services.", reason: reasonOfAdding},
	loom.ChangeRemoveServices: {draft: draftRemove, plan: planLayout, layout: true, show: showLayout, summary: summarizeRemove},
	loom.ChangeStart:          {plan: planServices, show: showInPlace, summary: summarizeRun, reason: reasonOfRunning},
	loom.ChangeStop:           {plan: planServices, show: showInPlace, summary: summarizeRun, reason: reasonOfRunning},
	loom.ChangeRestart:        {plan: planServices, show: showInPlace, summary: summarizeRun, reason: reasonOfRunning},
	loom.ChangeExpand:         {draft: layoutDraft(draftExpand), plan: planLayout, layout: true, show: showLayout, summary: summarizeExpand},
	loom.ChangeShrink:         {members: livingMembers, draft: layoutDraft(draftShrink), plan: planLayout, layout: true, show: showLayout, summary: summarizeShrink},
	loom.ChangeUpgrade:        {draft: layoutDraft(draftUpgrade), plan: planLayout, layout: true, installs: true, show: showLayout, summary: summarizeUpgrade, configFrom: fromNewVersions},
	loom.ChangeUpdate:         {check: checkUpdate, draft: layoutDraft(draftUpdate), plan: planLayout, layout: true, installs: true, show: showUpdate, summary: summarizeUpdate, configFrom: fromNewVersions},
	loom.ChangeResize:         {draft: layoutDraft(draftResize), plan: planLayout, layout: true, show: showLayout, summary: summarizeResize},
	loom.ChangeRepair:         {check: checkRepair, members: repairable, draft: layoutDraft(draftRepair), plan: planLayout, layout: true, show: showLayout, summary: summarizeRepair},
	loom.ChangeRollback:       {members: livingMembers, draft: draftRollback, plan: planRollback, layout: true, show: showLayout, summary: summarizeRollback, configFrom: "It was so before."},
	loom.ChangeRetry:          {members: livingMembers, draft: draftRetry, plan: planRetry, show: showInPlace, summary: summarizeRetry},
	loom.ChangeAuthorize:      {draft: draftAuthorize, plan: planAuthorize, show: showInPlace, summary: summarizeAuthorize},
	loom.ChangeSync:           {check: checkSync, draft: draftSync, plan: planNothing, show: showTemplate, summary: summarizeSync},
	loom.ChangeDelete:         {members: livingMembers, draft: draftDelete, plan: planDelete, show: showDelete, summary: summarizeDelete},
}

// amended is how a retry that changes what failed is made, and a configure or a removal of
// services that becomes one.
var amended = kind{plan: planAmended, layout: true, show: showLayout, summary: summarizeAmended, configFrom: fromNewVersions}

// inPlace is how nodes are repaired whose machines stay.
var inPlace = kind{plan: planLayout, show: showInPlace, summary: summarizeInPlace, reason: reasonOfRepair}

const fromNewVersions = "It is a default of the new versions."

// kindOf returns how a change is made, nil for a kind that does not exist.
func kindOf(c *change) *kind {
	if c.Followed != nil && c.Followed.Amends {
		return &amended
	}
	if c.Kind == loom.ChangeRepair && !c.Input.Change.How.Replaces() {
		return &inPlace
	}
	return kinds[c.Kind]
}

// newChange is a change of nothing yet.
func newChange(in PreviewInput, of *kind) *change {
	return &change{
		Kind: in.Kind, Action: in.Kind.Change().Action, Input: in, of: of, Versions: []store.EntryVersion{}, Warnings: []string{},
		Types: loom.TypeSettings{Hardware: map[string]map[string]string{}, Image: map[string]map[string]string{}},
	}
}

// makePlan computes the plan, once. What it reads in the database does not change any more.
func (u *Clusters) makePlan(ctx context.Context, tenant loom.TenantID, c *change) error {
	if c.planned {
		return nil
	}
	err := c.mayPlan(ctx)
	if err != nil {
		return err
	}
	c.plan, err = c.of.plan(ctx, u, c, tenant)
	c.planned = err == nil
	return err
}

const (
	// maxPlacements is how many services all nodes of a cluster have together: a plan has
	// several tasks for each, and is made in memory.
	maxPlacements = 100_000
	// weightOfPlacement is what one takes of the room for requests, in bytes.
	weightOfPlacement = 512
)

// mayPlan returns Exhausted for more services on all nodes than there may be, and waits
// until there is room for the plan. A cluster that has more already can become smaller.
func (c *change) mayPlan(ctx context.Context) error {
	before, after := placements(c.Before.Nodes), placements(c.After.Nodes)
	if after > maxPlacements && after > before {
		return loom.NewError(loom.Exhausted, "All nodes together would have %d services, each counted on each of its nodes; a cluster has %d at most. Ask for fewer nodes or services.", after, maxPlacements)
	}
	return places.Hold(ctx, int64(max(before, after))*weightOfPlacement)
}

func placements(nodes []loom.Node) (n int) {
	for i := range nodes {
		n += len(nodes[i].Services)
	}
	return n
}

// planSteps plans the fixed steps of an action on all nodes.
func planSteps(_ context.Context, _ *Clusters, c *change, _ loom.TenantID) (loom.Plan, error) {
	return c.steps(planner.Scope{})
}

func (c *change) steps(scope planner.Scope) (loom.Plan, error) {
	return planner.Make(c.Action, c.After.Nodes, c.After.Services, scope)
}

// planLayout plans what leads from the layout before to the one after.
func planLayout(_ context.Context, _ *Clusters, c *change, _ loom.TenantID) (loom.Plan, error) {
	asked := &c.Input.Change
	return planner.MakeChange(planner.Change{
		Action: c.Action, Before: c.Before.layout(), After: c.plannedLayout(), Batch: asked.Batch, MinHealthy: asked.MinHealthy,
		Remaining: c.Remaining, Reinstall: c.reinstalled(), Dead: asked.Dead})
}

// plannedLayout is the layout after, as it is planned. The planner takes another version of a
// service for other work; an update takes versions that mean the same on machines as well.
func (c *change) plannedLayout() planner.State {
	after := c.After.layout()
	if c.Kind != loom.ChangeUpdate {
		return after
	}
	after.Services = maps.Clone(after.Services)
	for name, s := range after.Services {
		if present, there := c.Before.Services[name]; there && s.SameOnMachines(&present) {
			s.Version = present.Version
			after.Services[name] = s
		}
	}
	return after
}

func planNothing(context.Context, *Clusters, *change, loom.TenantID) (loom.Plan, error) {
	return loom.Plan{}, nil
}

// CheckPolicy finds what is wrong with the failure policy that a request for an
// operation names, about the field onFailure. An action of "" is a
// request without an operation.
func CheckPolicy(action loom.ClusterAction, asked string) []loom.FieldError {
	if asked != loom.OnFailureUndo {
		return loom.CheckOnFailure("onFailure", asked)
	}
	why := loom.ChangeSync.Change().NotUndone
	if action != "" {
		why = action.WhyNotUndone()
	}
	if why == "" {
		return nil
	}
	return []loom.FieldError{{Field: "onFailure", Message: why + " Leave this out, or say “keep”."}}
}

// policy finds what a failure does: the request says it, else the template, or the
// operation that is retried, as far as operations of the kind can be undone.
func (c *change) policy(asked, otherwise string) error {
	if errs := CheckPolicy(c.Action, asked); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	c.OnFailure = cmp.Or(asked, otherwise)
	if c.OnFailure != loom.OnFailureUndo || !c.Action.Undoable() {
		c.OnFailure = loom.OnFailureKeep
	}
	return nil
}

func (c *change) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// reinstalled are the services that are put on machines again, whether their definition changed or
// not.
func (c *change) reinstalled() []string { return sortedNames(c.Files) }

// version adds an entry to those that must still be the newest ones.
func (c *change) version(kind loom.EntityKind, e *loom.Base) {
	v := store.EntryVersion{Kind: kind, Name: e.Name, Version: e.Version}
	if !slices.Contains(c.Versions, v) {
		c.Versions = append(c.Versions, v)
	}
}

// shown are the nodes and services that a preview is about: those that a delete takes,
// else those after the change.
func (c *change) shown() planner.State {
	if c.Kind == loom.ChangeDelete {
		return c.Before.State
	}
	return c.After.State
}

// diffNodes calls what for each node before with the node after, either nil where there
// is none, by number.
func (c *change) diffNodes(what func(before, after *loom.Node)) {
	after := make(map[loom.NodeID]*loom.Node, len(c.After.Nodes))
	for i := range c.After.Nodes {
		after[c.After.Nodes[i].ID] = &c.After.Nodes[i]
	}
	for i := range c.Before.Nodes {
		n := &c.Before.Nodes[i]
		what(n, after[n.ID])
		delete(after, n.ID)
	}
	for i := range c.After.Nodes {
		if after[c.After.Nodes[i].ID] != nil {
			what(nil, &c.After.Nodes[i])
		}
	}
}

// filter returns the nodes after, or before where they leave, of which is holds.
func (c *change) filter(is func(before, after *loom.Node) bool) []loom.Node {
	var picked []loom.Node
	c.diffNodes(func(before, after *loom.Node) {
		switch {
		case !is(before, after):
		case after == nil:
			picked = append(picked, *before)
		default:
			picked = append(picked, *after)
		}
	})
	return picked
}

// added are the nodes that come, removed those that go, replaced those that get
// another machine.
func (c *change) added() []loom.Node {
	return c.filter(func(before, _ *loom.Node) bool { return before == nil })
}

func (c *change) removed() []loom.Node {
	return c.filter(func(_, after *loom.Node) bool { return after == nil })
}

func (c *change) replaced() []loom.Node {
	return c.filter(func(before, after *loom.Node) bool {
		return before != nil && after != nil && before.Incarnation != after.Incarnation
	})
}

// more is how many nodes the operation needs of the tenant's quota beyond those that
// count already.
func (c *change) more() int {
	return len(c.filter(func(before, after *loom.Node) bool {
		return after != nil && (before == nil || before.State == loom.NodeDeleted)
	}))
}

// newLayout is what is stored when the operation begins, on a cluster that was as said.
func (c *change) newLayout(was *loom.Snapshot) store.NewLayout {
	if c.Followed != nil {
		return c.followedLayout(was)
	}
	l := store.NewLayout{Made: c.added(), Types: c.Types}
	if c.Kind != loom.ChangeDelete && !reflect.DeepEqual(versionsOf(c.Before.Services), versionsOf(c.After.Services)) {
		l.Services = c.After.Services
	}
	c.diffNodes(func(before, after *loom.Node) {
		switch {
		case before == nil:
		case after == nil:
			l.Leaving = append(l.Leaving, before.ID)
		case !reflect.DeepEqual(before, after):
			l.Changed = append(l.Changed, *after)
		}
	})
	return l
}

// versionsOf returns the version of each service.
func versionsOf(services map[string]loom.Service) map[string]int {
	versions := make(map[string]int, len(services))
	for name, s := range services {
		versions[name] = s.Version
	}
	return versions
}

func numbers(nodes []loom.Node) []int {
	list := make([]int, len(nodes))
	for i, n := range nodes {
		list[i] = n.Number
	}
	slices.Sort(list)
	return list
}
