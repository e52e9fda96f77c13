package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/store"
)

// EntryVersion names a version of a catalog entry.
type EntryVersion = store.EntryVersion

// maxEntries is how many entries an update names at most.
const maxEntries = 1000

// updatable are the kinds of entries that clusters keep copies of. They keep none of their
// provider: they always use its newest version.
var updatable = []loom.EntityKind{loom.KindTemplate, loom.KindPartialTemplate, loom.KindService, loom.KindHardwareType, loom.KindImageType}

// checkUpdate finds what is wrong with the entries that an update names.
func checkUpdate(in PreviewInput) []loom.FieldError {
	entries := in.Change.Entries
	if len(entries) > maxEntries {
		return []loom.FieldError{{Field: "entries", Message: fmt.Sprintf("Name at most %d entries.", maxEntries)}}
	}
	var errs []loom.FieldError
	for i, e := range entries {
		field := fmt.Sprintf("entries[%d]", i)
		errs = append(errs, checkStorable(field+".name", e.Name)...)
		same := func(o store.EntryVersion) bool { return o.Kind == e.Kind && o.Name == e.Name }
		switch {
		case e.Kind == loom.KindProvider:
			errs = append(errs, loom.FieldError{Field: field + ".kind", Message: "Clusters always use the newest version of their provider. Leave it out."})
		case !slices.Contains(updatable, e.Kind):
			errs = append(errs, loom.FieldError{Field: field + ".kind", Message: fmt.Sprintf("The kind is one of %s.", kindWords(updatable))})
		case e.Name == "":
			errs = append(errs, loom.FieldError{Field: field + ".name", Message: "Name the entry."})
		case e.Version < 0:
			errs = append(errs, loom.FieldError{Field: field + ".version", Message: "A version is 1 or more. Leave it out for the newest."})
		case slices.IndexFunc(entries, same) < i:
			errs = append(errs, loom.FieldError{Field: field, Message: fmt.Sprintf("The %s “%s” is named twice.", e.Kind.Word(), e.Name)})
		}
	}
	return errs
}

// errUpToDate is the cause of a Conflict about an update that changes nothing.
var errUpToDate = errors.New("the cluster is up to date")

func kindWords(kinds []loom.EntityKind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, ", ")
}

// update is what an update brings to a cluster: entries of a world, all where none is named.
type update struct {
	*world
	entries []store.EntryVersion
	// files are those that changed since a service of the cluster was set up, by service.
	files map[string][]string
}

// names reports whether the update is about an entry.
func (up *update) names(kind loom.EntityKind, name string) bool {
	return len(up.entries) == 0 || slices.ContainsFunc(up.entries, func(e store.EntryVersion) bool { return e.Kind == kind && e.Name == name })
}

// draftUpdate brings a cluster to versions of the entries that it is made of.
func draftUpdate(ctx context.Context, u *Clusters, r request, c *change) error {
	tenant, entries := r.cluster.Owner.Tenant, r.in.Change.Entries
	w, err := u.readWorld(ctx, tenant, loom.TenantKinds...)
	if err != nil {
		return err
	}
	if err := u.readVersions(ctx, tenant, w, entries); err != nil {
		return err
	}
	if errs := w.unused(r.cluster, c.After.Nodes, entries); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	files, err := u.changedFiles(ctx, r.cluster)
	if err != nil {
		return err
	}
	if err := u.updateTo(ctx, c, r.cluster, &update{w, entries, files}); err != nil {
		return err
	}
	if !c.updates(r.cluster) {
		return &loom.Error{Kind: loom.Conflict, Err: errUpToDate, Message: "The cluster is up to date: none of these entries is newer than its copy."}
	}
	return nil
}

// unused finds named entries that a cluster is not made of.
func (w *world) unused(cluster loom.Cluster, nodes []loom.Node, entries []store.EntryVersion) []loom.FieldError {
	parts := map[string]bool{}
	_, _ = w.template(cluster.Template.Name, func(_ loom.EntityKind, e *loom.Base) { parts[e.Name] = true })
	var errs []loom.FieldError
	for i, e := range entries {
		var used bool
		switch e.Kind {
		case loom.KindTemplate, loom.KindPartialTemplate:
			used = parts[e.Name]
		case loom.KindService:
			_, used = cluster.Services[e.Name]
		case loom.KindHardwareType:
			used = slices.ContainsFunc(nodes, func(n loom.Node) bool { return n.HardwareType == e.Name })
		case loom.KindImageType:
			used = slices.ContainsFunc(nodes, func(n loom.Node) bool { return n.ImageType == e.Name })
		}
		if !used {
			errs = append(errs, loom.FieldError{Field: fmt.Sprintf("entries[%d]", i), Message: fmt.Sprintf("Cluster %s does not use the %s “%s”.", cluster.ID, e.Kind.Word(), e.Name)})
		}
	}
	return errs
}

// updateTo works out what an update makes of a cluster. Unsolvable where the nodes as they are
// do not satisfy what it brings.
func (u *Clusters) updateTo(ctx context.Context, c *change, cluster loom.Cluster, up *update) error {
	if err := c.take(cluster, up); err != nil {
		return err
	}
	after := cluster
	after.Services = c.After.Services
	if c.After.Template != nil {
		after.Template = *c.After.Template
		if err := checkTemplate(after, after.Template, c.After.Nodes); err != nil {
			return err
		}
	}
	if len(c.Services) > 0 {
		if err := u.checkRules(ctx, after, c.After.Nodes, after.Services); err != nil {
			return err
		}
	}
	if cluster.Protected && len(c.replaced()) > 0 {
		return loom.NewError(loom.Conflict, "The cluster is protected, and new machines have empty disks. Unprotect it first.")
	}
	config, err := c.mergeDefaults(cluster, c.Services)
	if err != nil {
		return err
	}
	return c.checkConfig(cluster.Owner.User, &after.Template, "config", config)
}

// take changes the copies of a cluster as an update says.
func (c *change) take(cluster loom.Cluster, up *update) error {
	if err := c.updateTemplate(cluster, up); err != nil {
		return err
	}
	c.updateServices(cluster, up)
	c.updateMachines(cluster, up)
	return nil
}

// updateTemplate takes the template with all its parts, if the update names any of them and
// they say something else than the cluster's copy.
func (c *change) updateTemplate(cluster loom.Cluster, up *update) error {
	named := up.names(loom.KindTemplate, cluster.Template.Name)
	var used []store.EntryVersion
	t, err := up.template(cluster.Template.Name, func(kind loom.EntityKind, e *loom.Base) {
		named = named || up.names(kind, e.Name)
		used = append(used, store.EntryVersion{Kind: kind, Name: e.Name, Version: e.Version})
	})
	switch {
	case isNotFound(err) && len(up.entries) == 0:
		c.warn("The template “%s” is no longer in the catalog. The cluster keeps its copy.", cluster.Template.Name)
		return nil
	case isNotFound(err) && !named:
		return nil
	case err != nil:
		return templateError(cluster.Template.Name, err)
	case !named || t.Version == cluster.Template.Version && sameJSON(document(cluster.Template), document(t)):
		return nil
	}
	c.Before.Template, c.After.Template, c.Template = &cluster.Template, &t, t.Base
	c.Pinned = append(c.Pinned, used...)
	return nil
}

// updateServices takes the versions of services, and sets up again those that do other work or
// whose files changed.
func (c *change) updateServices(cluster loom.Cluster, up *update) {
	c.After.Services = maps.Clone(cluster.Services)
	for _, name := range sortedNames(cluster.Services) {
		if !up.names(loom.KindService, name) {
			continue
		}
		next, there := up.services[name]
		if !there {
			c.warn("The service “%s” is no longer in the catalog and stays unchanged.", name)
			continue
		}
		present := cluster.Services[name]
		if next.Version != present.Version {
			c.After.Services[name] = next
			c.Pinned = append(c.Pinned, store.EntryVersion{Kind: loom.KindService, Name: name, Version: next.Version})
		}
		if files := up.files[name]; len(files) > 0 {
			if c.Files == nil {
				c.Files = map[string][]string{}
			}
			c.Files[name] = files
		}
		if next.Version != present.Version && !next.SameWork(&present) || len(up.files[name]) > 0 {
			c.Services = append(c.Services, name)
		}
	}
	for i := range c.After.Nodes {
		n := &c.After.Nodes[i]
		if slices.ContainsFunc(n.Services, func(name string) bool { return slices.Contains(c.Services, name) }) {
			n.Automators = automatorsOf(n.Services, c.After.Services)
		}
	}
	c.warnOfUses(c.Services)
}

// updateMachines gives a new machine to each node whose types now mean another flavor or image.
// Other settings of the types are taken without one.
func (c *change) updateMachines(cluster loom.Cluster, up *update) {
	view := &catalogView{hardware: up.hardware, images: up.images}
	for i := range c.After.Nodes {
		n := &c.After.Nodes[i]
		now := *n
		next := newChange(c.Input, c.of)
		next.Provider = c.Provider
		next.applyTypeSettings(view, &now)
		if up.names(loom.KindHardwareType, n.HardwareType) {
			n.Flavor = now.Flavor
			c.takeType(loom.KindHardwareType, n.HardwareType, cluster.Types.Hardware, next.Types.Hardware, c.Types.Hardware, next.Versions, n.Flavor != c.Before.Nodes[i].Flavor)
		}
		if up.names(loom.KindImageType, n.ImageType) {
			n.Image, n.SSHUser = now.Image, now.SSHUser
			c.takeType(loom.KindImageType, n.ImageType, cluster.Types.Image, next.Types.Image, c.Types.Image, next.Versions, n.Image != c.Before.Nodes[i].Image)
		}
		if before := c.Before.Nodes[i]; n.Flavor != before.Flavor || n.Image != before.Image {
			n.Incarnation++
		}
	}
}

// takeType takes the settings of a type for the provider if they changed, or if a node gets another
// machine for them: an expand may have taken them for the nodes that it added.
func (c *change) takeType(kind loom.EntityKind, name string, present, next, into map[string]map[string]string, versions []store.EntryVersion, replaces bool) {
	settings, there := next[name]
	if !there || !replaces && maps.Equal(settings, present[name]) {
		return
	}
	into[name] = settings
	for _, v := range versions {
		if v.Kind == kind && v.Name == name && !slices.Contains(c.Pinned, v) {
			c.Pinned = append(c.Pinned, v)
		}
	}
}

// updates reports whether anything of the cluster's copies differs.
func (c *change) updates(cluster loom.Cluster) bool {
	return c.After.Template != nil || len(c.Services) > 0 || len(c.Types.Hardware)+len(c.Types.Image) > 0 ||
		!maps.Equal(versionsOf(cluster.Services), versionsOf(c.After.Services))
}

// NewerEntry is a catalog entry that a cluster is made of, and that says something else now.
type NewerEntry struct {
	Kind loom.EntityKind
	Name string
	// From and To are versions. Both are 0 for types of machines: clusters keep the settings of
	// these without a version.
	From, To int
	// Present and Next are the cluster's copy and the entry; nil for types of machines.
	Present, Next loom.Entry
	// Files are those that changed since a service was set up, Machines how many nodes get
	// another machine.
	Files    []string
	Machines int
}

// Newer lists what an update would bring to a cluster. NotFound.
func (u *Clusters) Newer(ctx context.Context, actor loom.Actor, id loom.ClusterID) ([]NewerEntry, error) {
	cluster, _, err := u.load(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	nodes, err := u.members(ctx, cluster, loom.ChangeUpdate)
	if err != nil {
		return nil, err
	}
	w, err := u.readWorld(ctx, cluster.Owner.Tenant, loom.TenantKinds...)
	if err != nil {
		return nil, err
	}
	files, err := u.changedFiles(ctx, cluster)
	if err != nil {
		return nil, err
	}
	c := newChange(PreviewInput{Kind: loom.ChangeUpdate, Cluster: id}, kinds[loom.ChangeUpdate])
	c.Provider = cluster.Provider
	c.Before.Nodes, c.After.Nodes = nodes, slices.Clone(nodes)
	up := &update{w, nil, files}
	if err := c.take(cluster, up); err != nil {
		return nil, err
	}
	var newer []NewerEntry
	if t := c.After.Template; t != nil {
		newer = append(newer, NewerEntry{Kind: loom.KindTemplate, Name: t.Name, From: cluster.Template.Version, To: t.Version, Present: &cluster.Template, Next: t})
	}
	for _, name := range sortedNames(c.After.Services) {
		present, next := cluster.Services[name], c.After.Services[name]
		if present.Version != next.Version || len(c.Files[name]) > 0 {
			newer = append(newer, NewerEntry{Kind: loom.KindService, Name: name, From: present.Version, To: next.Version, Present: &present, Next: &next, Files: c.Files[name]})
		}
	}
	for _, of := range []struct {
		kind  loom.EntityKind
		types map[string]map[string]string
		moved func(before, after *loom.Node, name string) bool
	}{
		{loom.KindHardwareType, c.Types.Hardware, func(b, a *loom.Node, name string) bool { return a.HardwareType == name && a.Flavor != b.Flavor }},
		{loom.KindImageType, c.Types.Image, func(b, a *loom.Node, name string) bool { return a.ImageType == name && a.Image != b.Image }},
	} {
		for _, name := range sortedNames(of.types) {
			e := NewerEntry{Kind: of.kind, Name: name}
			for i := range c.After.Nodes {
				if of.moved(&c.Before.Nodes[i], &c.After.Nodes[i], name) {
					e.Machines++
				}
			}
			newer = append(newer, e)
		}
	}
	return newer, nil
}

func showUpdate(v *PreviewView, c *change, list *changeList) error {
	if err := showLayout(v, c, list); err != nil {
		return err
	}
	list.documents("service", "", checksOf(c.Before.Services), checksOf(c.After.Services), nil)
	return nil
}

func summarizeUpdate(v *PreviewView) string {
	var parts []string
	if n := len(v.Changed); n > 0 {
		parts = append(parts, "brings "+count(n, "service")+" to another version")
	}
	if v.NodesReplaced > 0 {
		parts = append(parts, "replaces "+count(v.NodesReplaced, "machine"))
	}
	if len(parts) == 0 {
		return "Updates the cluster’s copies of catalog entries" + v.reconfigures()
	}
	text := loom.And(parts)
	return strings.ToUpper(text[:1]) + text[1:] + v.reconfigures()
}
