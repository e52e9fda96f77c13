package catalog

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/planner/macro"
)

// macros looks for wrong macros in a config that stands at a place.
func (f *finder) macros(config map[string]any, at ...any) {
	for _, p := range macro.Validate(config) {
		f.macro(pointer(at...)+p.Pointer, p)
	}
}

// links looks for wrong macros in links, macro.MaxProblems at most.
func (f *finder) links(links []loom.Link) {
	wrong := 0
	for i, link := range links {
		for _, p := range macro.ValidateText(link.URL) {
			if wrong++; wrong > macro.MaxProblems {
				return
			}
			f.macro(pointer("links", i, "url"), p)
		}
	}
}

func (f *finder) macro(field string, p macro.Problem) {
	p.Pointer = ""
	value := p.Macro
	p.Macro = ""
	message := "A macro is wrong: " + p.String()
	if value != "" {
		message = fmt.Sprintf("The macro “%s” is wrong: %s", value, p.String())
	}
	f.say(loom.FindingError, loom.FindingMacro, field, value, strings.TrimSuffix(message, ".")+".",
		"Write it as %host.service.NAME% and the like; a plain percent sign is written twice.")
}

// mentioned lists the macros of a config at a place and of links, each with its place in
// the entry.
func mentioned(config map[string]any, links []loom.Link, at ...any) []macro.Mention {
	all := macro.Mentions(config)
	for i := range all {
		all[i].Pointer = pointer(at...) + all[i].Pointer
	}
	for i, link := range links {
		for _, m := range macro.Mentions(map[string]any{"url": link.URL}) {
			m.Pointer = pointer("links", i, "url")
			all = append(all, m)
		}
	}
	return all
}

// stays says that a macro stays as it is written, for a reason; of an entry
// macro.MaxProblems times at most.
func (f *finder) stays(field string, m macro.Mention, why, remedy string) {
	if f.stayed++; f.stayed > macro.MaxProblems {
		return
	}
	f.say(loom.FindingWarning, loom.FindingMacro, field, m.Macro, fmt.Sprintf("The macro “%s” %s.", m.Macro, why), remedy)
}

// wrongName says of a macro that no catalog entry or provider can fill it: its service is
// not there, or its type of address is a known one with a letter wrong.
func (f *finder) wrongName(field string, m macro.Mention) bool {
	addresses := []string{loom.AccessV4, loom.BindV4}
	if near := loom.Nearest(m.Address, addresses); m.Address != "" && !slices.Contains(addresses, m.Address) && near != "" {
		f.stays(field, m, fmt.Sprintf("asks for addresses of the type “%s”; did you mean “%s”?", m.Address, near), "Correct the type of address.")
		return true
	}
	if _, there := f.services[m.Service]; m.Service == "" || there {
		return false
	}
	why := fmt.Sprintf("names the service “%s”, which does not exist", m.Service)
	if f.provided[m.Service] {
		why = fmt.Sprintf("names “%s”, which services provide but none is called; macros take names of services", m.Service)
	}
	f.stays(field, m, why, "Correct the name, or store a service of that name.")
	return true
}

// unknown looks for macros of a part that nothing can fill. Which services are on a
// cluster the templates say that include it.
func (f *finder) unknown(config map[string]any, links []loom.Link) {
	for _, m := range mentioned(config, links, "defaults", "config") {
		f.wrongName(m.Pointer, m)
	}
}

// strangersOf looks for macros of a service that no cluster with it can fill: of services
// that are not there, or that conflict with it.
func (f *finder) strangersOf(s *loom.Service) {
	for _, m := range mentioned(s.Defaults(), s.Links, "defaultConfig") {
		if !f.wrongName(m.Pointer, m) && m.Service != "" && f.conflict(s.Name, m.Service) {
			f.stays(m.Pointer, m, fmt.Sprintf("names the service “%s”, which conflicts with this one, so no cluster has both", m.Service), "Correct the name, or take the conflict out.")
		}
	}
}

// conflict reports whether two services keep each other out of a cluster.
func (f *finder) conflict(a, b string) bool {
	keepsOut := func(a, b string) bool {
		other := f.services[b]
		return slices.ContainsFunc(f.services[a].Dependencies.Conflicts, func(name string) bool {
			return name == other.Name || slices.Contains(other.Dependencies.Provides, name)
		})
	}
	return a != b && (keepsOut(a, b) || keepsOut(b, a))
}

// strangers looks for macros that no cluster made from a template can fill: in its own
// config and links, and in what its services and parts bring along. What others build on
// may get its services there.
func (f *finder) strangers(t *loom.Template, merged loom.Template) {
	mayHave := map[string]bool{}
	for _, name := range slices.Concat(merged.Defaults.Services, merged.Compatibility.Services) {
		mayHave[name] = true
	}
	open := len(merged.Compatibility.Services) == 0 || f.extended[t.Name]
	apart := func(m macro.Mention) bool { return m.Service != "" && !open && !mayHave[m.Service] }
	const remedy = "Correct the name, or add the service to the template's defaults or compatibility."
	own := mentioned(t.Defaults.Config, t.Links, "defaults", "config")
	for _, m := range own {
		switch {
		case f.wrongName(m.Pointer, m):
		case apart(m):
			f.stays(m.Pointer, m, fmt.Sprintf("names the service “%s”, which is neither among the services of the template nor compatible with it", m.Service), remedy)
		case m.Index >= 0 && m.Index >= most(merged, m.Service):
			f.stays(m.Pointer, m, fmt.Sprintf("asks for node %d of the service “%s”, counted from 0, and at most %d nodes of a cluster have it", m.Index, m.Service, most(merged, m.Service)), "Lower the index, or allow more nodes.")
		case m.Self && strings.HasPrefix(m.Pointer, "/links/"):
			f.stays(m.Pointer, m, "asks for a node of its own, and a link of a template belongs to none", "Name a service and an index, such as %ip.access_v4.service.NAME[0]%.")
		}
	}
	for i, name := range t.Defaults.Services {
		s := f.services[name]
		for _, m := range mentioned(s.Defaults(), nil) {
			if _, there := f.services[m.Service]; there && apart(m) {
				f.stays(pointer("defaults", "services", i), m, fmt.Sprintf("of the default config of the service “%s” names the service “%s”, which is neither among the services of the template nor compatible with it", name, m.Service), remedy)
			}
		}
	}
	for i, include := range t.Includes {
		p, _ := f.entries[loom.KindPartialTemplate][include.Name].(*loom.PartialTemplate)
		if p == nil {
			continue // dangling
		}
		for _, m := range mentioned(p.Defaults.Config, p.Links) {
			if _, there := f.services[m.Service]; there && apart(m) {
				f.stays(pointer("includes", i, "name"), m, fmt.Sprintf("of the partial template “%s” names the service “%s”, which is neither among the services of the template nor compatible with it", include.Name, m.Service), remedy)
			}
		}
	}
}

// most is on how many nodes of a cluster of a template a service can be.
func most(merged loom.Template, service string) int {
	_, high := merged.Constraints.Size.Bounds()
	if high == loom.Unlimited {
		high = math.MaxInt
	}
	if q := merged.Constraints.Services[service].Quantities; q != nil && q.Max != nil {
		high = min(high, *q.Max)
	}
	return high
}
