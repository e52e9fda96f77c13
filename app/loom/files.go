package loom

import (
	"maps"
	"slices"
	"strings"
)

// FilesOf lists the plugin resources that an action of a service names in the fields of its
// automator type, in order. A field that may as well hold a command or a path counts: that
// no file of such a name is there is for the caller to find.
func FilesOf(plugin *PluginType, action ServiceAction) []ResourceRef {
	var refs []ResourceRef
	add := func(typ, name string) {
		ref := ResourceRef{Kind: string(KindAutomatorType), Plugin: plugin.Name, Type: typ, Name: name}
		if _, has := plugin.ResourceTypes[typ]; has && name != "" && !strings.ContainsAny(name, "/ \t\n") && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(action.Fields)) {
		value := strings.TrimSpace(action.Fields[name])
		if schema, known := plugin.Schema(name); known && schema.ResourceType != "" {
			add(schema.ResourceType, value)
		}
		if name == runListField {
			for item := range strings.SplitSeq(value, ",") {
				recipe, in := strings.CutPrefix(strings.TrimSpace(item), "recipe[")
				if cookbook, _, _ := strings.Cut(strings.TrimSuffix(recipe, "]"), "::"); in {
					add("cookbooks", cookbook)
				}
				if role, is := strings.CutPrefix(strings.TrimSpace(item), "role["); is {
					add("roles", strings.TrimSuffix(role, "]")+".json")
				}
			}
		}
	}
	return refs
}

// runListField is the field of Chef that names cookbooks and roles within a text.
const runListField = "run_list"

// SetsUp reports whether an action puts a service on a machine as its files say, so that
// newer files call for it again.
func (a TaskAction) SetsUp() bool {
	return a == ActionInstall || a == ActionConfigure || a == ActionStart
}

// FileKey names a resource of an automator type as nodes keep it: "shell/scripts/web.sh".
func (r ResourceRef) FileKey() string { return r.Plugin + "/" + r.Type + "/" + r.Name }
