package catalog

import (
	"fmt"
	"slices"
	"strings"

	"loom/app/loom"
)

// MissedFile is the file that a finding of a service misses; false for any other finding.
func MissedFile(service *loom.Service, f loom.Finding) (loom.ResourceRef, bool) {
	at, is := strings.CutPrefix(f.Field, "/provisioner/actions/")
	action, field, _ := strings.Cut(at, "/fields/")
	if !is || f.Code != loom.FindingDangling || f.Kind != loom.KindService || f.Name != service.Name {
		return loom.ResourceRef{}, false
	}
	automator := service.Provisioner.Actions[loom.TaskAction(action)].Type
	refs := loom.RefsOf(automator, field, f.Value)
	if len(refs) == 0 {
		return loom.ResourceRef{}, false
	}
	return refs[0], true
}

// files looks whether the files that an action names are there.
func (f *finder) files(plugin *loom.PluginType, action loom.ServiceAction, name loom.TaskAction) {
	if f.asked != nil && f.asked.NamedBy(plugin, action) {
		f.resource(*f.asked, "")
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
		if user := (EntryName{Kind: f.about.Kind, Name: f.about.Name}); slices.Contains(refs, *f.asked) && !slices.Contains(f.users, user) {
			f.users = append(f.users, user)
		}
		return
	}
	if slices.ContainsFunc(refs, func(r loom.ResourceRef) bool { return f.resources[r] }) {
		return
	}
	ref := refs[0]
	f.say(loom.FindingError, loom.FindingDangling, field, value,
		fmt.Sprintf("The %s “%s” is neither active nor staged.", FileWord(ref.Type), name),
		fmt.Sprintf("Upload it to /v2/plugins/%s/%s/%s/%s and stage it, or correct the name.", ref.Kind, ref.Plugin, ref.Type, ref.Name))
}

// FileWord is a resource type as people call one of its files: "data bag".
func FileWord(resourceType string) string {
	return strings.TrimSuffix(strings.ReplaceAll(resourceType, "_", " "), "s")
}
