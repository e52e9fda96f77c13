package web

import (
	"maps"
	"slices"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// pluginOf names what carries a task out.
func pluginOf(v lifecycle.ClusterView, t loom.Task) string {
	switch {
	case t.Service != "":
		return v.Services[t.Service].Provisioner.Actions[t.Action].Type
	case t.Action == loom.ActionBootstrap:
		return "automators of the node"
	case t.Action == loom.ActionKeys:
		return "Loom"
	}
	return v.Provider.Type
}

// taskInput is what the plugin is given, as far as it may be shown: of a service the
// fields of its action, of a machine those of the provider. Secrets are masked.
func taskInput(v lifecycle.ClusterView, t loom.Task) clusterview.TaskInput {
	m := clusterview.TaskInput{Config: route.Query(route.ClusterTab(v.ID, "config"), "macros", "expanded", "node", string(t.Node))}
	fields := map[string]any{}
	if t.Service != "" {
		for key, value := range v.Services[t.Service].Provisioner.Actions[t.Action].Fields {
			fields[key] = value
		}
	} else if t.Action != loom.ActionBootstrap && t.Action != loom.ActionKeys {
		maps.Copy(fields, v.Provider.Fields)
	}
	m.Fields = shownFields(fields)
	return m
}

// shownFields lists what a plugin is given or gives back, by name; secrets are masked.
func shownFields(fields map[string]any) []ui.Def {
	var list []ui.Def
	shown, _ := loom.MaskSecrets(fields).(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(shown)) {
		list = append(list, ui.Def{Term: key, Text: factText(shown[key]), Mono: true})
	}
	return list
}
