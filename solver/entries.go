package solver

import (
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
)

// placeholder stands for what only the one who changes the catalog can know.
const placeholder = "?"

// entries are changes of catalog entries, for what neither request nor template can
// mend: a requirement that nothing provides, a conflict, types without an entry for
// the provider.
func (g *suggester) entries() []part {
	in := g.with(g.withoutProblems()).targetInput()
	var out []part
	for _, m := range in.missing() {
		out = append(out, withoutDependency(in, m.service, m.name, "requires"))
	}
	for _, c := range in.clashes(maxClashes) {
		out = append(out, withoutDependency(in, c.service, c.name, "conflicts with"))
	}
	asked := g.with(g.withoutProblems())
	if g.ask.move.kind == resizeMove {
		asked = &g.ask // the type asked for may be the only one that changes anything
	}
	made, makes := asked.asInput()
	if !makes {
		return out
	}
	in.HardwareType = made.HardwareType
	if _, reasons := in.checkHardware(); len(reasons) > 0 && len(in.HardwareTypes) > 0 {
		name := in.HardwareTypes[0].Name
		if slices.ContainsFunc(in.HardwareTypes, func(h loom.HardwareType) bool { return h.Name == in.HardwareType }) {
			name = in.HardwareType
		}
		out = append(out, part{kind: entryPart, words: fmt.Sprintf("give hardware type %s a flavor for provider %s", name, in.Provider),
			merge: map[string]any{"hardwaretypes": map[string]any{name: map[string]any{"providermap": map[string]any{in.Provider: map[string]any{"flavor": placeholder}}}}},
			entry: func(in *Input) {
				in.HardwareTypes = slices.Clone(in.HardwareTypes)
				for i, h := range in.HardwareTypes {
					if h.Name == name {
						in.HardwareTypes[i].ProviderMap = mapped(h.ProviderMap, in.Provider, "flavor")
					}
				}
			}})
	}
	if _, reasons := in.checkImages(); len(reasons) > 0 && len(in.ImageTypes) > 0 && g.ask.move.kind != resizeMove {
		name := in.ImageTypes[0].Name
		if slices.ContainsFunc(in.ImageTypes, func(t loom.ImageType) bool { return t.Name == in.ImageType }) {
			name = in.ImageType
		}
		out = append(out, part{kind: entryPart, words: fmt.Sprintf("give image type %s an image for provider %s", name, in.Provider),
			merge: map[string]any{"imagetypes": map[string]any{name: map[string]any{"providermap": map[string]any{in.Provider: map[string]any{"image": placeholder}}}}},
			entry: func(in *Input) {
				in.ImageTypes = slices.Clone(in.ImageTypes)
				for i, t := range in.ImageTypes {
					if t.Name == name {
						in.ImageTypes[i].ProviderMap = mapped(t.ProviderMap, in.Provider, "image")
					}
				}
			}})
	}
	return out
}

func mapped(entries map[string]map[string]string, provider, key string) map[string]map[string]string {
	out := maps.Clone(entries)
	if out == nil {
		out = map[string]map[string]string{}
	}
	entry := maps.Clone(out[provider])
	if entry == nil {
		entry = map[string]string{}
	}
	entry[key] = placeholder
	out[provider] = entry
	return out
}

// withoutDependency takes a name out of what a service requires or conflicts with.
func withoutDependency(in Input, service, name, verb string) part {
	drop := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
	}
	was := in.Catalog[service].Dependencies
	change := map[string]any{}
	if verb == "requires" {
		for key, phase := range map[string]loom.PhaseDependency{"install": was.Install, "runtime": was.Runtime} {
			if slices.Contains(phase.Requires, name) {
				change[key] = map[string]any{"requires": orEmpty(drop(phase.Requires))}
			}
		}
	} else {
		change["conflicts"] = orEmpty(drop(was.Conflicts))
	}
	return part{kind: entryPart, words: fmt.Sprintf("take %s from what service %s %s", name, service, verb),
		merge: map[string]any{"services": map[string]any{service: map[string]any{"dependencies": change}}},
		entry: func(in *Input) {
			in.Catalog = maps.Clone(in.Catalog)
			s := in.Catalog[service]
			if verb == "requires" {
				s.Dependencies.Install.Requires = drop(s.Dependencies.Install.Requires)
				s.Dependencies.Runtime.Requires = drop(s.Dependencies.Runtime.Requires)
			} else {
				s.Dependencies.Conflicts = drop(s.Dependencies.Conflicts)
			}
			in.Catalog[service] = s
		}}
}

// changed is the catalog with one service changed.
func changed(catalog map[string]loom.Service, name string, change func(*loom.Service)) map[string]loom.Service {
	catalog = maps.Clone(catalog)
	s := catalog[name]
	change(&s)
	catalog[name] = s
	return catalog
}
