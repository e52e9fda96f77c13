package clusters

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// alteration is a change of the layout or of the versions of services (changes.md):
// part of the body of a preview. The draft that holds it has the nodes and services
// as they are to be.
type alteration struct {
	Asked ChangeInput `json:"asked"`
	// Was is the cluster before.
	Was planner.State `json:"was"`
	// Services are those that are removed or upgraded, sorted.
	Services []string `json:"services,omitempty"`
	// Files are those of services that are upgraded which are others than when the service was
	// set up, by service.
	Files map[string][]string `json:"files,omitempty"`
	// Types are the entries of the types of machines that are to be made, Versions the
	// catalog entries that must still be the newest ones.
	Types    store.TypeSettings   `json:"types"`
	Versions []store.EntryVersion `json:"versions"`
	// Rest is what a repair finishes on nodes that stay.
	Rest planner.Rest `json:"rest,omitempty"`
	// Why says how the nodes that leave were chosen, where the request names none.
	Why []string `json:"why,omitempty"`
}

// alters reports whether requests of a kind become an alteration.
func alters(kind loom.PreviewKind) bool {
	switch kind {
	case loom.PreviewExpand, loom.PreviewShrink, loom.PreviewRemoveServices, loom.PreviewUpgrade, loom.PreviewResize, loom.PreviewRepair:
		return true
	}
	return false
}

// Begin begins at once what a preview of the request would show: an operation on a
// cluster that is there, of the kinds add_services, expand, shrink, remove_services,
// upgrade, resize and repair. Errors: those of Preview, and Invalid with the missing
// provider fields.
func (u *Clusters) Begin(ctx context.Context, actor loom.Actor, in PreviewInput) (loom.OperationRef, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	if in.Kind != loom.PreviewAddServices && !alters(in.Kind) {
		return loom.OperationRef{}, loom.NewError(loom.Invalid, "“%.40s” is no change of a layout.", in.Kind)
	}
	ref, _, err := u.atOnce(ctx, actor, in, nil)
	return ref, err
}

// draftAlter works out the nodes and services that a request leads to.
func (u *Clusters) draftAlter(ctx context.Context, d *liveDraft, cluster loom.Cluster, in ChangeInput) error {
	d.Altered = &alteration{
		Asked: in, Was: planner.State{Nodes: slices.Clone(d.Nodes), Services: cluster.Services}, Versions: []store.EntryVersion{},
		Types: store.TypeSettings{Hardware: map[string]map[string]string{}, Image: map[string]map[string]string{}},
	}
	if errs := checkAlteration(in); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	if err := checkDead(in); err != nil {
		return err
	}
	d.Nodes = slices.Clone(d.Nodes)
	var err error
	switch d.Kind {
	case loom.PreviewExpand:
		err = u.draftExpand(ctx, d, cluster, in)
	case loom.PreviewShrink:
		err = u.draftShrink(ctx, d, cluster, in)
	case loom.PreviewRemoveServices:
		err = u.draftRemove(ctx, d, cluster, in)
	case loom.PreviewUpgrade:
		err = u.draftUpgrade(ctx, d, cluster, in)
	case loom.PreviewResize:
		err = u.draftResize(ctx, d, cluster, in)
	case loom.PreviewRepair:
		err = u.draftRepair(ctx, d, cluster, in)
	}
	if err != nil || d.Kind == loom.PreviewUpgrade { // which has looked at its own config
		return err
	}
	return d.checkMacros(cluster.Owner.User, "config", cluster.Config)
}

// checkDead returns Invalid for nodes that are called dead and are not named.
func checkDead(in ChangeInput) error {
	for _, id := range in.Dead {
		if !slices.Contains(in.Nodes, id) {
			return invalid("dead", "Node “%.40s” is not among the nodes that the request names; name it there as well.", id)
		}
	}
	return nil
}

// checkAlteration finds what is wrong with a request whatever the cluster is.
func checkAlteration(in ChangeInput) []loom.FieldError {
	var errs []loom.FieldError
	for i, name := range in.Services {
		errs = append(errs, checkStorable(fmt.Sprintf("services[%d]", i), name)...)
	}
	errs = append(errs, checkStorable("hardwaretype", in.HardwareType)...)
	if in.Batch < 0 {
		errs = append(errs, loom.FieldError{Field: "batch", Message: "A batch has at least 1 node."})
	}
	if in.MinHealthy != nil && *in.MinHealthy < 0 {
		errs = append(errs, loom.FieldError{Field: "minHealthy", Message: "The number of nodes that must be up is 0 or more."})
	}
	return errs
}

// again are the services that are put on machines again, whether their definition changed or
// not.
func (d *liveDraft) again() []string { return sortedNames(d.Altered.Files) }

// versions are the catalog entries that must still be the newest ones.
func (d *liveDraft) versions() []store.EntryVersion {
	switch {
	case d.Added != nil:
		return d.Added.Versions
	case d.Altered != nil:
		return d.Altered.Versions
	}
	return nil
}

func (d *liveDraft) version(kind loom.EntityKind, e *loom.Base) {
	v := store.EntryVersion{Kind: kind, Name: e.Name, Version: e.Version}
	if !slices.Contains(d.Altered.Versions, v) {
		d.Altered.Versions = append(d.Altered.Versions, v)
	}
}

// furnish gives a node whose machine is to be made what its types say of the provider
// now. A type that is gone, or says nothing of it any more, leaves what the node had.
func (d *liveDraft) furnish(w *world, n *loom.Node) {
	hardware, image := w.hardwareType(n.HardwareType), w.imageType(n.ImageType)
	if size := hardware.ProviderMap[d.Provider.Name]; size["flavor"] != "" {
		n.Flavor, d.Altered.Types.Hardware[hardware.Name] = size["flavor"], size
		d.version(loom.KindHardwareType, &hardware.Base)
	}
	if root := image.ProviderMap[d.Provider.Name]; root["image"] != "" {
		n.Image, n.SSHUser, d.Altered.Types.Image[image.Name] = root["image"], loom.DefaultSSHUser, root
		if user := root["sshuser"]; user != "" {
			n.SSHUser = user
		}
		d.version(loom.KindImageType, &image.Base)
	}
}

// pairs calls what for each node before with the node after, either nil where there
// is none, by number.
func (d *liveDraft) pairs(what func(before, after *loom.Node)) {
	after := make(map[loom.NodeID]*loom.Node, len(d.Nodes))
	for i := range d.Nodes {
		after[d.Nodes[i].ID] = &d.Nodes[i]
	}
	for i := range d.Altered.Was.Nodes {
		n := &d.Altered.Was.Nodes[i]
		what(n, after[n.ID])
		delete(after, n.ID)
	}
	for i := range d.Nodes {
		if after[d.Nodes[i].ID] != nil {
			what(nil, &d.Nodes[i])
		}
	}
}

// pick gives the nodes after, or before where they leave, of which is holds.
func (d *liveDraft) pick(is func(before, after *loom.Node) bool) []loom.Node {
	var picked []loom.Node
	if d.Altered == nil {
		return nil
	}
	d.pairs(func(before, after *loom.Node) {
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

// made are the nodes that come, leavers those that go, replaced those that get
// another machine.
func (d *liveDraft) made() []loom.Node {
	return d.pick(func(before, _ *loom.Node) bool { return before == nil })
}

func (d *liveDraft) leavers() []loom.Node {
	return d.pick(func(_, after *loom.Node) bool { return after == nil })
}

func (d *liveDraft) replaced() []loom.Node {
	return d.pick(func(before, after *loom.Node) bool {
		return before != nil && after != nil && before.Incarnation != after.Incarnation
	})
}

// more is how many nodes the operation needs of the tenant's quota beyond those that
// count already.
func (d *liveDraft) more() int {
	return len(d.made()) + len(d.pick(func(before, after *loom.Node) bool {
		return before != nil && after != nil && before.State == loom.NodeDeleted
	}))
}

// alteredLayout is what is stored when the operation begins.
func (d *liveDraft) alteredLayout() store.NewLayout {
	l := store.NewLayout{Made: d.made(), TypeSettings: d.Altered.Types}
	if !reflect.DeepEqual(versionsOf(d.Altered.Was.Services), versionsOf(d.Services)) {
		l.Services = d.Services
	}
	d.pairs(func(before, after *loom.Node) {
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

// versionsOf gives the version of each service.
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
