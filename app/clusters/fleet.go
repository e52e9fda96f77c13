package clusters

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Effect is what a change does to a cluster: the strongest that its plan shows.
type Effect string

// The effects, the weakest first. Impossible is a change that is refused.
const (
	EffectUnaffected Effect = "unaffected"
	EffectInPlace    Effect = "in_place"
	EffectRestart    Effect = "restart"
	EffectReplace    Effect = "replace"
	EffectImpossible Effect = "impossible"
)

// Effects are all effects, the weakest first.
var Effects = []Effect{EffectUnaffected, EffectInPlace, EffectRestart, EffectReplace, EffectImpossible}

var effectWords = map[Effect]string{
	EffectUnaffected: "unaffected", EffectInPlace: "in place", EffectRestart: "restart", EffectReplace: "replace machines", EffectImpossible: "impossible",
}

// Word is the effect in words: "in place".
func (e Effect) Word() string { return effectWords[e] }

// FleetKinds are the kinds of changes that a fleet preview is about.
var FleetKinds = []loom.ChangeKind{loom.ChangeUpdate, loom.ChangeAddServices, loom.ChangeConfigure, loom.ChangeRestart, loom.ChangeRollback}

// fleetTime is how long a fleet preview takes at most.
const fleetTime = time.Minute

// fleetBatch is how many clusters a fleet preview reads at once.
const fleetBatch = 200

// FleetInput asks what a change would do to each cluster of a tenant, or to those that a search
// finds.
type FleetInput struct {
	// Change is the request, the same for all clusters. Its cluster and provider fields are not read.
	Change PreviewInput
	// Drafts, of an update, are entries as they would be saved.
	Drafts []Draft
	// Rollout, of a rollback, is the number of the rollout that is rolled back.
	Rollout int
	// Files, of an update, brings the staged files as well, as if they were released: to the services
	// that ran another content of them.
	Files bool
	// Q is a search in the words of the list of clusters, "" for all clusters.
	Q string
}

// Draft is a catalog entry that is not saved.
type Draft = store.EntryDraft

// FleetPreview is what a change would do to clusters, all seen at one moment.
type FleetPreview struct {
	Kind loom.ChangeKind
	Q    string
	// Entries are what an update brings; drafts are numbered as saving would number them.
	Entries []EntryVersion
	// Files are the staged files that an update brings.
	Files []loom.Resource
	// Clusters is how many there are, Counts how many of them have which effect.
	Clusters int
	Counts   map[Effect]int
	// Groups are clusters with the same effect for the same reason, the strongest effect first.
	Groups []FleetGroup
	// Cost of an hour before and after, nil if a type names none. Clusters for which the change is
	// impossible stay as they are.
	Before, After *float64
}

// FleetGroup are clusters to which a change does the same for the same reason.
type FleetGroup struct {
	Effect Effect
	// Code and Reason say why the change is impossible.
	Code, Reason string
	// Services are those that are stopped for it.
	Services []string
	// Tasks counts the tasks of all clusters by action, Replaced the nodes that get another machine.
	Tasks    map[loom.TaskAction]int
	Replaced int
	Members  []FleetMember
}

// Why says in a few words what the effect is about: nodes, services, or the reason why the change
// is impossible.
func (g *FleetGroup) Why() string {
	switch {
	case g.Replaced > 0:
		return count(g.Replaced, "node")
	case len(g.Services) > 0:
		return loom.And(g.Services)
	}
	return g.Reason
}

// Summary counts the clusters by effect, the strongest first: "3 impossible, 380 restart".
func (p *FleetPreview) Summary() string { return effectsSummary(p.Counts) }

func effectsSummary(counts map[Effect]int) string {
	var parts []string
	for _, e := range slices.Backward(Effects) {
		if n := counts[e]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, e.Word()))
		}
	}
	return strings.Join(parts, ", ")
}

// Strongest is the strongest effect. Clusters that no change can begin on now don't count: that
// they are busy says nothing about the change.
func (p *FleetPreview) Strongest() Effect {
	strongest := EffectUnaffected
	for _, g := range p.Groups {
		if g.Code != "busy" && g.Code != "state" && slices.Index(Effects, g.Effect) > slices.Index(Effects, strongest) {
			strongest = g.Effect
		}
	}
	return strongest
}

// FleetMember is a cluster of a group.
type FleetMember struct {
	ID   loom.ClusterID
	Name string
}

// fleet is what a fleet preview reads once for many clusters.
type fleet struct {
	world *world
	// files are the changed files by cluster; with release, as if staged files were released.
	files   map[loom.ClusterID][]store.ChangedFile
	release bool
	// operations are, of a rollback, those that are rolled back.
	operations map[loom.ClusterID]int
	// done are, of a rollout that is resumed, its own operations on clusters that get another turn.
	done map[loom.ClusterID]int
}

// FleetPreview works out what a change would do to each cluster, as a preview of that cluster alone
// would say, and stores nothing. Errors: Forbidden for others than administrators; Invalid;
// NotFound for a version of an entry; Throttled while others run; Unavailable after a minute.
func (u *Clusters) FleetPreview(ctx context.Context, actor loom.Actor, in FleetInput) (FleetPreview, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return FleetPreview{}, err
	}
	return u.previewClusters(ctx, actor, in, func(loom.RolloutCluster) {})
}

// previewClusters is FleetPreview for whoever may; each is called with every cluster that the
// change is about.
func (u *Clusters) previewClusters(ctx context.Context, actor loom.Actor, in FleetInput, each func(c loom.RolloutCluster)) (FleetPreview, error) {
	p := FleetPreview{Kind: in.Change.Kind, Q: in.Q, Counts: map[Effect]int{}}
	in.Change = in.request()
	f := store.ClusterFilter{Viewer: store.SeenBy(actor), Statuses: slices.DeleteFunc(slices.Clone(loom.ClusterStatuses), func(s loom.ClusterStatus) bool { return s == loom.ClusterTerminated })}
	if err := loom.InvalidFields(append(checkFleet(in), readSearch(in.Q, &f)...)); err != nil {
		return p, err
	}
	if !u.fleets.Try(actor.Tenant) {
		return p, &loom.Error{Kind: loom.Throttled, RetryAfter: 10 * time.Second, Message: "Another fleet preview is running. Try again in a moment."}
	}
	defer u.fleets.Give(actor.Tenant)
	limited, stop := context.WithTimeout(ctx, fleetTime)
	defer stop()
	_, err := store.AtOneMoment(limited, u.db, func(tx *sqlx.Tx) (struct{}, error) {
		at := *u
		at.q = tx
		return struct{}{}, at.previewFleet(limited, actor, in, f, newFleetSum(&p, each))
	})
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = loom.NewError(loom.Unavailable, "The fleet preview took longer than a minute. Narrow it with a search.")
	}
	return p, err
}

// request is the request with the drafts among the entries, in the order given.
func (in *FleetInput) request() PreviewInput {
	change := in.Change
	change.ProviderFields, change.Cluster = nil, 0
	change.Change.Entries = slices.Clone(change.Change.Entries)
	for _, d := range in.Drafts {
		change.Change.Entries = append(change.Change.Entries, EntryVersion{Kind: d.Kind, Name: d.Entry.Meta().Name})
	}
	return change
}

// checkFleet finds what is wrong with a request whatever the clusters are.
func checkFleet(in FleetInput) []loom.FieldError {
	change := in.Change
	if !slices.Contains(FleetKinds, change.Kind) {
		words := make([]string, len(FleetKinds))
		for i, k := range FleetKinds {
			words[i] = string(k)
		}
		return []loom.FieldError{{Field: "kind", Message: fmt.Sprintf("The kind is one of %s.", loom.Or(words))}}
	}
	if change.Kind == loom.ChangeRollback && in.Rollout < 1 {
		return []loom.FieldError{{Field: "request.rollout", Message: "Name the rollout to roll back by its number."}}
	}
	if len(in.Drafts) > 0 && change.Kind != loom.ChangeUpdate {
		return []loom.FieldError{{Field: "entries", Message: "Only an update brings entries."}}
	}
	if in.Files && change.Kind != loom.ChangeUpdate {
		return []loom.FieldError{{Field: "resources", Message: "Only an update brings staged files."}}
	}
	if check := kinds[change.Kind].check; check != nil {
		return check(change)
	}
	return nil
}

func (u *Clusters) previewFleet(ctx context.Context, actor loom.Actor, in FleetInput, f store.ClusterFilter, sum *fleetSum) error {
	w, err := u.readWorld(ctx, actor.Tenant, loom.TenantKinds...)
	if err != nil {
		return err
	}
	if sum.Entries, err = u.overlay(ctx, actor.Tenant, w, in); err != nil {
		return err
	}
	in.Change.Change.Entries = sum.Entries
	if in.Files {
		if sum.Files, err = u.stagedFiles(ctx, actor.Tenant); err != nil {
			return err
		}
	}
	ids, err := store.ClusterIDs(ctx, u.q, actor.Tenant, f)
	if err != nil {
		return err
	}
	u.fleet = &fleet{world: w, release: in.Files}
	if in.Change.Kind == loom.ChangeRollback {
		if _, err := store.RolloutByNumber(ctx, u.q, actor.Tenant, in.Rollout); err != nil {
			return noRollout(in.Rollout, err)
		}
		if u.fleet.operations, err = store.ChangedByRollout(ctx, u.q, actor.Tenant, in.Rollout); err != nil {
			return err
		}
		ids = slices.DeleteFunc(ids, func(id loom.ClusterID) bool { return u.fleet.operations[id] == 0 })
	}
	sum.Clusters = len(ids)
	for batch := range slices.Chunk(ids, fleetBatch) {
		if err := u.previewBatch(ctx, actor, in.Change, batch, sum); err != nil {
			return err
		}
	}
	sum.finish()
	return nil
}

// overlay takes the entries of an update into a world and returns their versions: those that the
// request names, and drafts with the numbers that saving would give them.
func (u *Clusters) overlay(ctx context.Context, tenant loom.TenantID, w *world, in FleetInput) ([]EntryVersion, error) {
	entries := slices.Clone(in.Change.Change.Entries)
	saved := entries[:len(entries)-len(in.Drafts)]
	if err := u.readVersions(ctx, tenant, w, saved); err != nil {
		return nil, err
	}
	for i := range saved {
		if saved[i].Version == 0 {
			saved[i].Version = w.version(saved[i])
		}
	}
	for i, d := range in.Drafts {
		highest, err := store.CatalogVersionNumber(ctx, u.q, tenant, d.Kind, d.Entry.Meta().Name)
		if err != nil {
			return nil, err
		}
		d.Entry.Meta().Version = highest + 1
		entries[len(saved)+i].Version = highest + 1
		w.put(d.Entry)
	}
	return entries, nil
}

// previewBatch reads some clusters and works out the effect on each.
func (u *Clusters) previewBatch(ctx context.Context, actor loom.Actor, in PreviewInput, ids []loom.ClusterID, sum *fleetSum) error {
	clusters, err := store.ClustersByIDs(ctx, u.q, actor.Tenant, ids)
	if err != nil {
		return err
	}
	nodes, err := store.NodesByClusters(ctx, u.q, actor.Tenant, ids)
	if err != nil {
		return err
	}
	latest, err := store.LatestOperations(ctx, u.q, actor.Tenant, ids, false)
	if err != nil {
		return err
	}
	files, err := store.ChangedFiles(ctx, u.q, actor.Tenant, u.fleet.release, ids...)
	if err != nil {
		return err
	}
	u.fleet.files = map[loom.ClusterID][]store.ChangedFile{}
	for _, f := range files {
		u.fleet.files[f.Cluster] = append(u.fleet.files[f.Cluster], f)
	}
	operations := map[loom.ClusterID]*loom.Operation{}
	for i := range latest {
		operations[latest[i].Ref.Cluster] = &latest[i]
	}
	for _, cluster := range clusters {
		if err := ctx.Err(); err != nil {
			return err
		}
		op := operations[cluster.ID]
		if op != nil && op.NeverBegan() {
			if op, err = lastBegun(ctx, u.q, cluster); err != nil {
				return err
			}
		}
		members := living(nodes[cluster.ID])
		if kinds[in.Kind].members == nil {
			members = slices.DeleteFunc(members, func(n loom.Node) bool { return n.Leaving })
		}
		if err := u.previewMember(ctx, actor, in, cluster, members, op, sum); err != nil {
			return err
		}
	}
	return nil
}

// previewMember works out the effect on one cluster.
func (u *Clusters) previewMember(ctx context.Context, actor loom.Actor, in PreviewInput, cluster loom.Cluster, nodes []loom.Node, latest *loom.Operation, sum *fleetSum) error {
	c, code, why, err := u.changeOfMember(ctx, actor, u.fleet, in, cluster, nodes, latest)
	switch {
	case err != nil:
		return err
	case code == upToDate:
		sum.unaffected(cluster, nodes)
	case code != "":
		sum.refused(cluster, nodes, code, why)
	default:
		sum.planned(cluster, nodes, c)
	}
	return nil
}

// changeOfMember is the change of one of many clusters, or the code and the reason why there is none.
// latest is the newest operation of the cluster that began.
func (u *Clusters) changeOfMember(ctx context.Context, actor loom.Actor, f *fleet, in PreviewInput, cluster loom.Cluster, nodes []loom.Node, latest *loom.Operation) (c *change, code, why string, err error) {
	in, code, why = f.requestOf(in, cluster, nodes, latest)
	if code != "" {
		return nil, code, why, nil
	}
	if c, err = u.changeAt(ctx, actor, in, cluster, nodes); err != nil {
		if code, why = refusal(cluster, err); code != "" {
			err = nil
		}
	}
	return c, code, why, err
}

// upToDate is the code of a cluster on which a change has nothing to do.
const upToDate = "up to date"

// requestOf is the request for one of many clusters, or why there is none, as changeOfMember says it.
func (f *fleet) requestOf(in PreviewInput, cluster loom.Cluster, nodes []loom.Node, latest *loom.Operation) (of PreviewInput, code, why string) {
	in.Cluster = cluster.ID
	if why := cluster.WhyNot(in.Kind, latest); why != "" {
		return in, whyCode(cluster), why
	}
	if in.Kind == loom.ChangeRollback {
		in.Change.Operation = f.operations[cluster.ID]
		if latest != nil && latest.Ref.Number != in.Change.Operation && latest.Ref.Number != f.done[cluster.ID] {
			return in, "state", fmt.Sprintf("Operation %d came after operation %d.", latest.Ref.Number, in.Change.Operation)
		}
	}
	if in.Kind == loom.ChangeUpdate && (len(in.Change.Entries) > 0 || f.release) {
		in.Change.Entries = f.withStaged(cluster, f.world.used(cluster, nodes, in.Change.Entries))
		if len(in.Change.Entries) == 0 {
			return in, upToDate, ""
		}
	}
	return in, "", ""
}

// used are those of the entries that a cluster is made of.
func (w *world) used(cluster loom.Cluster, nodes []loom.Node, entries []EntryVersion) []EntryVersion {
	unused := map[string]bool{}
	for _, e := range w.unused(cluster, nodes, entries) {
		unused[e.Field] = true
	}
	var used []EntryVersion
	for i, e := range entries {
		if !unused["entries["+strconv.Itoa(i)+"]"] {
			used = append(used, e)
		}
	}
	return used
}

// stagedFiles lists the files that a release would put in use.
func (u *Clusters) stagedFiles(ctx context.Context, tenant loom.TenantID) ([]loom.Resource, error) {
	all, err := store.Resources(ctx, u.q, tenant, loom.ResourceRef{Kind: string(loom.KindAutomatorType)})
	return slices.DeleteFunc(all, func(r loom.Resource) bool { return r.Live || !r.Slated }), err
}

// withStaged adds to the entries of an update the services of a cluster to which staged files
// would bring another content.
func (f *fleet) withStaged(cluster loom.Cluster, entries []EntryVersion) []EntryVersion {
	staged := changedIn(cluster, slices.DeleteFunc(slices.Clone(f.files[cluster.ID]), func(c store.ChangedFile) bool { return !c.Staged }))
	for _, name := range sortedNames(staged) {
		next, there := f.world.services[name]
		if there && !slices.ContainsFunc(entries, func(e EntryVersion) bool { return e.Kind == loom.KindService && e.Name == name }) {
			entries = append(entries, EntryVersion{Kind: loom.KindService, Name: name, Version: next.Version})
		}
	}
	return entries
}

// whyCode says of what kind the reason is why a change cannot begin now.
func whyCode(c loom.Cluster) string {
	switch {
	case c.Status == loom.ClusterPending || c.DeleteWanted != "":
		return "busy"
	case c.Status == loom.ClusterActive && c.Protected:
		return "protected"
	}
	return "state"
}

// refusal says of what kind an error about a cluster is, and why the change is refused. The code
// is "" for an error that is not about the cluster.
func refusal(cluster loom.Cluster, err error) (code, why string) {
	e := loom.AsError(err)
	switch {
	case errors.Is(err, errUpToDate):
		code = upToDate
	case e.Kind == loom.Unsolvable:
		code = "unsolvable"
	case e.Kind == loom.Exhausted:
		code = "quota"
	case e.Kind == loom.NotFound:
		code = "gone"
	case e.Kind == loom.Conflict && cluster.Protected:
		code = "protected"
	case e.Kind == loom.Conflict:
		code = "state"
	case e.Kind == loom.Invalid && len(e.Missing) > 0:
		code = "credentials"
	case e.Kind == loom.Invalid:
		code = "parameters"
	}
	return code, refusalReason(err)
}

// refusalReason is what a preview of the cluster alone says: the sentence of the error, or the
// reasons of the solver.
func refusalReason(err error) string {
	e := loom.AsError(err)
	var reasons []string
	switch {
	case e.Unsat != nil:
		for _, r := range e.Unsat.Reasons {
			reasons = append(reasons, r.Message)
		}
	case len(e.Fields) > 0:
		for _, f := range e.Fields {
			reasons = append(reasons, f.Message)
		}
	}
	if len(reasons) == 0 {
		return e.Message
	}
	return strings.Join(reasons, " ")
}

// fleetSum puts the effects on clusters together.
type fleetSum struct {
	*FleetPreview
	groups map[string]*FleetGroup
	// unpriced is set once a type names no cost.
	before, after float64
	unpriced      bool
	// each is called with every cluster that the change is about.
	each func(c loom.RolloutCluster)
}

func newFleetSum(p *FleetPreview, each func(c loom.RolloutCluster)) *fleetSum {
	return &fleetSum{FleetPreview: p, groups: map[string]*FleetGroup{}, each: each}
}

func (s *fleetSum) group(g FleetGroup) *FleetGroup {
	key := fmt.Sprintf("%s\n%s\n%s\n%q", g.Effect, g.Code, g.Reason, g.Services)
	if s.groups[key] == nil {
		g.Tasks = map[loom.TaskAction]int{}
		s.groups[key] = &g
	}
	return s.groups[key]
}

func (s *fleetSum) add(cluster loom.Cluster, g FleetGroup) *FleetGroup {
	s.Counts[g.Effect]++
	of := s.group(g)
	of.Members = append(of.Members, FleetMember{ID: cluster.ID, Name: cluster.Name})
	return of
}

func (s *fleetSum) refused(cluster loom.Cluster, nodes []loom.Node, code, reason string) {
	s.add(cluster, FleetGroup{Effect: EffectImpossible, Code: code, Reason: reason})
	s.each(loom.RolloutCluster{Cluster: cluster.ID, Name: cluster.Name, Effect: string(EffectImpossible), Nodes: len(nodes), Status: loom.RolloutSkipped, Note: reason})
	s.price(nodes, cluster.Types, nodes, cluster.Types)
}

func (s *fleetSum) unaffected(cluster loom.Cluster, nodes []loom.Node) {
	s.add(cluster, FleetGroup{Effect: EffectUnaffected})
	s.price(nodes, cluster.Types, nodes, cluster.Types)
}

func (s *fleetSum) planned(cluster loom.Cluster, nodes []loom.Node, c *change) {
	effect, services := c.effect()
	member := loom.RolloutCluster{Cluster: cluster.ID, Name: cluster.Name, Effect: string(effect), Nodes: len(nodes), Replaced: len(c.replaced()),
		Tasks: map[loom.TaskAction]int{}, Digest: c.digest(), Status: loom.RolloutWaits}
	of := s.add(cluster, FleetGroup{Effect: effect, Services: services})
	of.Replaced += member.Replaced
	for _, t := range c.plan.Tasks {
		of.Tasks[t.Action]++
		member.Tasks[t.Action]++
	}
	s.each(member)
	s.price(c.Before.Nodes, cluster.Types, c.After.Nodes, cluster.Types.With(c.Types))
}

// effect is what the change does to its cluster, with the services that are stopped for it.
func (c *change) effect() (Effect, []string) {
	services := stoppedServices(c)
	switch {
	case len(c.replaced()) > 0:
		return EffectReplace, services
	case len(services) > 0:
		return EffectRestart, services
	}
	return EffectInPlace, services
}

// digest is a hash of what the change does, whatever the ids and revisions are: its tasks in
// their order, and the versions that it leads from and to.
func (c *change) digest() string {
	h := sha256.New()
	for _, t := range c.plan.Tasks {
		fmt.Fprintf(h, "%d %q %q %t\n", t.NodeNumber, t.Service, t.Action, t.Old)
	}
	fmt.Fprintln(h, c.plan.Edges)
	was := versionsOf(c.Before.Services)
	for _, name := range sortedNames(c.After.Services) {
		if version := c.After.Services[name].Version; version != was[name] {
			fmt.Fprintf(h, "%q %d %d\n", name, was[name], version)
		}
	}
	if c.After.Template != nil {
		fmt.Fprintf(h, "%q %d\n", c.After.Template.Name, c.After.Template.Version)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// stoppedServices are the services that stay on a node and are stopped on it, sorted.
func stoppedServices(c *change) []string {
	stays := map[loom.NodeID][]string{}
	for _, n := range c.After.Nodes {
		stays[n.ID] = n.Services
	}
	stopped := map[string]bool{}
	for _, t := range c.plan.Tasks {
		if t.Action == loom.ActionStop && slices.Contains(stays[t.Node], t.Service) {
			stopped[t.Service] = true
		}
	}
	return sortedNames(stopped)
}

// price adds what the nodes of a cluster cost an hour before and after.
func (s *fleetSum) price(before []loom.Node, was loom.TypeSettings, after []loom.Node, becomes loom.TypeSettings) {
	one := func(nodes []loom.Node, types loom.TypeSettings, into *float64) {
		for i := range nodes {
			cost, known := hourCost(types.Hardware[nodes[i].HardwareType])
			s.unpriced = s.unpriced || !known
			*into += cost
		}
	}
	one(before, was, &s.before)
	one(after, becomes, &s.after)
}

// finish sorts the groups, the strongest effect and the largest group first.
func (s *fleetSum) finish() {
	for _, key := range slices.Sorted(maps.Keys(s.groups)) {
		s.Groups = append(s.Groups, *s.groups[key])
	}
	slices.SortStableFunc(s.Groups, func(a, b FleetGroup) int {
		return cmp.Or(cmp.Compare(slices.Index(Effects, b.Effect), slices.Index(Effects, a.Effect)), cmp.Compare(len(b.Members), len(a.Members)))
	})
	if !s.unpriced {
		s.Before, s.After = &s.before, &s.after
	}
}
