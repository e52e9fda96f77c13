package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
)

// provider looks at the settings of a provider.
func (f *finder) provider(p *loom.Provider) {
	f.incomplete(p)
	if plugin, ok := f.entries[loom.KindProviderType][p.Type].(*loom.PluginType); ok {
		f.fields(loom.KindProviderType, plugin, p.Fields, "provisioner")
		for _, name := range plugin.Unverified(p.Fields) {
			f.say(loom.FindingWarning, loom.FindingInsecure, pointer("provisioner", name), "false", fieldLabel(plugin, name)+" is off. "+loom.Unverifiable,
				"Turn it on. For a private certificate authority, enter its certificate.")
		}
	}
}

// actions looks at what the actions of a service tell their automators.
func (f *finder) actions(s *loom.Service) {
	for _, name := range slices.Sorted(maps.Keys(s.Provisioner.Actions)) {
		action := s.Provisioner.Actions[name]
		plugin, ok := f.entries[loom.KindAutomatorType][action.Type].(*loom.PluginType)
		if !ok {
			continue // dangling
		}
		if len(plugin.Actions) > 0 && !slices.Contains(plugin.Actions, name) {
			var has []string
			for _, a := range plugin.Actions {
				has = append(has, string(a))
			}
			f.say(loom.FindingError, loom.FindingDangling, pointer("provisioner", "actions", name, "type"), action.Type,
				fmt.Sprintf("The automator type “%s” has no action “%s”, so it would fail.", action.Type, name), fmt.Sprintf("Take the action out, or let another automator carry it out; this one has %s.", loom.And(has)))
		}
		values := make(map[string]any, len(action.Fields))
		for field, value := range action.Fields {
			values[field] = value
		}
		if missing := lacking(plugin, values); missing != "" {
			f.say(loom.FindingError, loom.FindingIncomplete, pointer("provisioner", "actions", name, "fields"), "",
				fmt.Sprintf("The action “%s” is incomplete: set %s.", name, missing), fmt.Sprintf("Give %s in “fields”.", lackingNames(plugin, values)))
		}
		f.fields(loom.KindAutomatorType, plugin, values, "provisioner", "actions", name, "fields")
		f.files(plugin, action, name)
	}
}

// lacking says what would complete a required set of the fields that an
// administrator gives, by the labels of the fields; "" when one is complete.
func lacking(plugin *loom.PluginType, present map[string]any) string {
	return lackingWords(plugin, present, func(name string) string { return fieldLabel(plugin, name) })
}

// lackingNames is lacking by the names that the fields have on the wire.
func lackingNames(plugin *loom.PluginType, present map[string]any) string {
	return lackingWords(plugin, present, func(name string) string { return "“" + name + "”" })
}

func lackingWords(plugin *loom.PluginType, present map[string]any, word func(name string) string) string {
	var ways []string
	for _, set := range plugin.Parameters["admin"].Missing(present) {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(set)) {
			words = append(words, word(name))
		}
		ways = append(ways, loom.And(words))
	}
	return loom.Or(slices.Compact(ways))
}

// fieldLabel is what people call a field of a plugin.
func fieldLabel(plugin *loom.PluginType, name string) string {
	for _, group := range plugin.Parameters {
		if label := group.Fields[name].Label; label != "" {
			return "“" + label + "”"
		}
	}
	return "“" + name + "”"
}

// fields holds values against the fields that a plugin type declares. A type that
// declares none says nothing about its fields. Values of sensitive fields are not
// looked at: they are sealed apart.
func (f *finder) fields(kind loom.EntityKind, plugin *loom.PluginType, values map[string]any, at ...any) {
	declared := map[string]loom.FieldSchema{}
	for _, group := range plugin.Parameters {
		maps.Copy(declared, group.Fields)
	}
	if len(declared) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(declared))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		place, text := pointer(append(slices.Clone(at), name)...), loom.FieldText(values[name])
		schema, known := declared[name]
		switch {
		case !known:
			remedy := fmt.Sprintf("Take it out; the %s “%s” has the fields %s.", kind.Word(), plugin.Name, loom.And(names))
			if near := loom.Nearest(name, names); near != "" {
				remedy = fmt.Sprintf("Did you mean “%s”? Else take it out.", near)
			}
			f.tell(loom.Finding{Severity: loom.FindingWarning, Code: loom.FindingPointless, Field: place, Value: name, Unknown: true,
				Message: fmt.Sprintf("The %s “%s” has no field “%s”, so this is without effect.", kind.Word(), plugin.Name, name), Remedy: remedy})
		case schema.IsSensitive() || text == "":
		case schema.ResourceType != "" && len(loom.RefsOf(plugin.Name, name, text)) == 0: // that may be a command
			f.resource(loom.ResourceRef{Kind: string(kind), Plugin: plugin.Name, Type: schema.ResourceType, Name: text}, place)
		default:
			takes := cmp.Or(schema.CheckValue(values[name]), schema.CheckFormat(values[name], f.plain))
			if takes != "" {
				f.say(loom.FindingWarning, loom.FindingIncomplete, place, text, fmt.Sprintf("The field %s cannot be “%s”. %s", fieldLabel(plugin, name), text, takes), "Give such a value, or leave the field empty.")
			}
		}
	}
}

// itself looks for names that a service both needs and keeps away, and for
// relations of a service to itself, which mean nothing: a service satisfies its
// own requirements, and conflicts with others only.
func (f *finder) itself(s *loom.Service) {
	d := s.Dependencies
	own, against := offers(*s), map[string]bool{}
	for _, name := range d.Conflicts {
		against[name] = true
	}
	for i, name := range d.Conflicts {
		if name == s.Name && !f.provided[name] {
			f.say(loom.FindingWarning, loom.FindingPointless, pointer("dependencies", "conflicts", i), name,
				"It conflicts with itself, which is without effect: it conflicts with other services only.", "Remove the name.")
		}
	}
	for _, phase := range []struct {
		name     string
		requires []string
	}{{"install", d.Install.Requires}, {"runtime", d.Runtime.Requires}} {
		for i, name := range phase.requires {
			at := pointer("dependencies", phase.name, "requires", i)
			_, there := f.services[name]
			switch {
			case name == s.Name:
				f.say(loom.FindingWarning, loom.FindingPointless, at, name, "It requires itself, which has no effect.", "Remove the name.")
			case !own[name] && against[name] && (there || f.provided[name]):
				f.say(loom.FindingError, loom.FindingUnsolvable, at, name, fmt.Sprintf("It both requires “%s” and conflicts with it, so no cluster can have it.", name),
					"Take the name out of “requires” or out of “conflicts”.")
			}
		}
	}
}
