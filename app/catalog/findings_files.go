package catalog

import (
	"fmt"
	"slices"

	"loom/app/loom"
)

// files looks whether the files that an action names are there.
func (f *finder) files(plugin *loom.PluginType, action loom.ServiceAction, name loom.TaskAction) {
	f.action = name
	defer func() { f.action = "" }()
	for _, ref := range f.asked {
		if ref.NamedBy(plugin, action) {
			f.resource(ref, "")
		}
	}
	for _, file := range loom.FilesOf(plugin, action) {
		f.anyOf(file.Refs, pointer("provisioner", "actions", name, "fields", file.Field), file.Value, file.Name)
	}
}

// resource looks whether a plugin resource is live, or will be with the next sync.
func (f *finder) resource(ref loom.ResourceRef, field string) {
	f.anyOf([]loom.ResourceRef{ref}, field, ref.Name, ref.Name)
}

// anyOf looks whether one of some plugin resources is there.
func (f *finder) anyOf(refs []loom.ResourceRef, field, value, name string) {
	if f.asked != nil {
		for _, ref := range refs {
			if slices.Contains(f.asked, ref) {
				f.uses(ref)
			}
		}
		return
	}
	if slices.ContainsFunc(refs, func(r loom.ResourceRef) bool { return f.resources[r] }) {
		return
	}
	ref := refs[0]
	f.tell(loom.Finding{Severity: loom.FindingError, Code: loom.FindingDangling, Field: field, Value: value, File: ref,
		Message: fmt.Sprintf("The %s “%s” is neither active nor staged.", loom.FileWord(ref.Type), name),
		Remedy:  fmt.Sprintf("Upload it to /v2/plugins/%s/%s/%s/%s and stage it, or correct the name.", ref.Kind, ref.Plugin, ref.Type, ref.Name)})
}

// uses notes that the entry that is looked at names a resource.
func (f *finder) uses(ref loom.ResourceRef) {
	users := f.users[ref]
	last := len(users) - 1
	if last < 0 || users[last].Kind != f.about.Kind || users[last].Name != f.about.Name {
		users, last = append(users, loom.ResourceUser{Kind: f.about.Kind, Name: f.about.Name}), last+1
	}
	if f.action != "" && !slices.Contains(users[last].Actions, f.action) {
		users[last].Actions = append(users[last].Actions, f.action)
	}
	f.users[ref] = users
}
