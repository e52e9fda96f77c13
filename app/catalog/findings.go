package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/planner"
)

// finder finds what in a catalog would not work. It is pure: it looks at the
// entries it is given only. Make it with newFinder.
type finder struct {
	// entries are the newest versions by kind and name, plugin types included.
	entries map[loom.EntityKind]map[string]loom.Entry
	// provided maps a name to a service that provides it under that name.
	provided map[string]bool
	services map[string]loom.Service
	// resources are those of plugins that are active or staged.
	resources map[loom.ResourceRef]bool
	// asked, if set, limits the search to what names these resources, and users are the answer.
	// action is that of the service that is looked at.
	asked  []loom.ResourceRef
	users  map[loom.ResourceRef][]loom.ResourceUser
	action loom.TaskAction
	// cycles maps a service to the circle that it is part of, once looked for.
	cycles map[string]circle
	// merged holds merged templates by name.
	merged map[string]mergeResult
	// extended holds the templates that others build on.
	extended map[string]bool
	// hardware and images are, for a provider, the types that can be used with it.
	hardware, images map[string][]string
	budget           budget
	// plain says that addresses without HTTPS are taken.
	plain bool
	// quick leaves out whether templates have layouts, which takes time.
	quick bool
	// local is the most that one machine may have, on each host that makes machines.
	local []loom.LocalLimits

	found []loom.Finding
	about loom.Finding // kind, name and version of the entry looked at
	// stayed counts its macros that stay as they are written, said its findings.
	stayed int
	said   map[loom.FindingSeverity]int
}

// Bounds of findings: a catalog of short names could have millions.
const (
	// maxFindings is how many a check gives.
	maxFindings = 10_000
	// maxOfEntry is how many of one severity it gives of one entry.
	maxOfEntry = 100
	// maxOfCircle is how many services of a circle are named.
	maxOfCircle = 20
)

type mergeResult struct {
	template loom.Template
	err      error
}

func newFinder() *finder {
	f := &finder{entries: map[loom.EntityKind]map[string]loom.Entry{}, provided: map[string]bool{}, services: map[string]loom.Service{}, resources: map[loom.ResourceRef]bool{},
		merged: map[string]mergeResult{}, extended: map[string]bool{}, hardware: map[string][]string{}, images: map[string][]string{}}
	for _, kind := range loom.EntityKinds {
		f.entries[kind] = map[string]loom.Entry{}
	}
	return f
}

// add puts an entry into the catalog, in place of one of its name.
func (f *finder) add(kind loom.EntityKind, entry loom.Entry) {
	f.entries[kind][entry.Meta().Name] = entry
}

// find gives the findings of the wanted entries, by kind, name and place, up to
// maxFindings of them. The error is set when ctx ends first.
func (f *finder) find(ctx context.Context, wanted func(kind loom.EntityKind, name string) bool) ([]loom.Finding, error) {
	f.index()
	f.budget = newBudget(ctx)
	defer f.budget.stop()
	for _, kind := range loom.TenantKinds {
		for _, name := range slices.Sorted(maps.Keys(f.entries[kind])) {
			if !wanted(kind, name) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if len(f.found) >= maxFindings {
				f.about = loom.Finding{Kind: kind, Name: name, Version: f.entries[kind][name].Meta().Version}
				f.found = append(f.found, f.further(loom.FindingError, fmt.Sprintf("A check gives %d findings, and there are these already: this entry and those after it were not looked at.", maxFindings)))
				return f.found, nil
			}
			f.entry(kind, f.entries[kind][name])
		}
	}
	return f.found, nil
}

// index prepares what several entries are held against.
func (f *finder) index() {
	for name, entry := range f.entries[loom.KindService] {
		s := entry.(*loom.Service)
		f.services[name] = *s
		for _, provided := range s.Dependencies.Provides {
			f.provided[provided] = true
		}
	}
	for _, entry := range f.entries[loom.KindTemplate] {
		if t := entry.(*loom.Template); t.Extends != nil {
			f.extended[t.Extends.Name] = true
		}
	}
	for _, kind := range []struct {
		kind   loom.EntityKind
		key    string
		usable map[string][]string
	}{{loom.KindHardwareType, hardwareKey, f.hardware}, {loom.KindImageType, imageKey, f.images}} {
		for _, name := range slices.Sorted(maps.Keys(f.entries[kind.kind])) {
			for provider, terms := range providerMap(f.entries[kind.kind][name]) {
				if terms[kind.key] != "" {
					kind.usable[provider] = append(kind.usable[provider], name)
				}
			}
		}
	}
}

// Keys of a provider map without which a type cannot be used.
const (
	hardwareKey = "flavor"
	imageKey    = "image"
)

func providerMap(entry loom.Entry) map[string]map[string]string {
	switch e := entry.(type) {
	case *loom.HardwareType:
		return e.ProviderMap
	case *loom.ImageType:
		return e.ProviderMap
	}
	return nil
}

// entry looks at one entry. Each finding comes once.
func (f *finder) entry(kind loom.EntityKind, entry loom.Entry) {
	meta := entry.Meta()
	f.about = loom.Finding{Kind: kind, Name: meta.Name, Version: meta.Version}
	f.stayed, f.said = 0, map[loom.FindingSeverity]int{}
	first := len(f.found)
	for _, r := range references(entry) {
		f.reference(r)
	}
	switch e := entry.(type) {
	case *loom.Provider:
		f.provider(e)
	case *loom.HardwareType:
		f.unmapped(e.ProviderMap, hardwareKey)
		f.flavors(e)
	case *loom.ImageType:
		f.unmapped(e.ProviderMap, imageKey)
	case *loom.Service:
		f.cycle(e)
		f.itself(e)
		f.actions(e)
		f.macros(e.Defaults(), "defaultConfig")
		f.links(e.Links)
		f.strangersOf(e)
	case *loom.PartialTemplate:
		f.ignored(e)
		f.macros(e.Defaults.Config, "defaults", "config")
		f.links(e.Links)
		f.unknown(e.Defaults.Config, e.Links)
	case *loom.Template:
		f.template(e)
	}
	for _, severity := range loom.FindingSeverities {
		if more := f.said[severity] - maxOfEntry; more > 0 {
			f.found = append(f.found, f.further(severity, fmt.Sprintf("There are %d more like these in this entry.", more)))
		}
	}
	own := f.found[first:]
	slices.SortStableFunc(own, func(a, b loom.Finding) int {
		return cmp.Or(slices.Index(loom.FindingSeverities, a.Severity)-slices.Index(loom.FindingSeverities, b.Severity), cmp.Compare(a.Code, b.Code))
	})
}

// say adds a finding, unless the entry has too many of that severity.
func (f *finder) say(severity loom.FindingSeverity, code loom.FindingCode, field, value, message, remedy string) {
	f.tell(loom.Finding{Severity: severity, Code: code, Field: field, Value: value, Message: message, Remedy: remedy})
}

// tell is say for a finding that says more than these.
func (f *finder) tell(found loom.Finding) {
	if f.said[found.Severity]++; f.said[found.Severity] > maxOfEntry {
		return
	}
	found.Kind, found.Name, found.Version = f.about.Kind, f.about.Name, f.about.Version
	f.found = append(f.found, found)
}

// further stands for findings that are not given.
func (f *finder) further(severity loom.FindingSeverity, message string) loom.Finding {
	found := f.about
	found.Severity, found.Code, found.Message, found.Remedy = severity, loom.FindingMore, message, "Mend what is named, and check again."
	return found
}

// there reports whether what is named is there.
func (f *finder) there(r reference) bool {
	_, there := f.entries[r.kind][r.name]
	return there || r.provided && f.provided[r.name]
}

// reference looks whether what is named is there.
func (f *finder) reference(r reference) {
	if f.there(r) {
		return
	}
	severity := loom.FindingWarning
	if r.stops {
		severity = loom.FindingError
	}
	message := fmt.Sprintf("There is no %s “%s”.", r.kind.Word(), r.name)
	if r.provided {
		message = fmt.Sprintf("There is no service “%s”, nor one that provides it.", r.name)
	}
	remedy := fmt.Sprintf("Store %s of this name, or take the name out.", r.kind.OneWord())
	if r.kind.Global() {
		remedy = "Name a type that is registered, or run the plugin that brings this one."
	}
	f.tell(loom.Finding{Severity: severity, Code: loom.FindingDangling, Field: r.field, Value: r.name, Message: message, Remedy: remedy, Missing: r.kind})
}

// incomplete looks whether one required set of the provider's type is given;
// sealed settings count as given.
func (f *finder) incomplete(p *loom.Provider) {
	plugin, ok := f.entries[loom.KindProviderType][p.Type].(*loom.PluginType)
	if !ok {
		return // dangling
	}
	present := maps.Clone(p.Fields)
	if present == nil {
		present = map[string]any{}
	}
	for _, field := range p.Sealed {
		present[field] = true
	}
	missing := lacking(plugin, present)
	if missing == "" {
		return
	}
	f.say(loom.FindingError, loom.FindingIncomplete, pointer("provisioner"), "", "It is incomplete: set "+missing+".",
		"Give "+lackingNames(plugin, present)+" in “provisioner”; secrets are sealed and never shown again.")
}

// unmapped looks whether any provider can use a type.
func (f *finder) unmapped(providers map[string]map[string]string, key string) {
	for name, terms := range providers {
		if _, there := f.entries[loom.KindProvider][name]; there && terms[key] != "" {
			return
		}
	}
	f.say(loom.FindingWarning, loom.FindingNoMapping, pointer("providermap"), "", "No provider can use it.",
		"Map it to at least one provider of the catalog, with “"+key+"”.")
}

// flavors looks whether a size is one that local machines can have: their form of flavors
// is known, and so is the most that one may have on each host.
func (f *finder) flavors(h *loom.HardwareType) {
	for _, name := range slices.Sorted(maps.Keys(h.ProviderMap)) {
		p, there := f.entries[loom.KindProvider][name].(*loom.Provider)
		flavor := h.ProviderMap[name][hardwareKey]
		if !there || p.Type != loom.LocalProvider || flavor == "" {
			continue
		}
		place := pointer("providermap", name, hardwareKey)
		limits, err := loom.ParseLocalFlavor(flavor)
		if err != nil {
			f.say(loom.FindingError, loom.FindingIncomplete, place, flavor, fmt.Sprintf("The flavor “%s” is not one of local machines: %v.", flavor, err),
				"Give limits such as “mem=512m,pids=256,cpu=100,cores=1,disk=4g”; each may be left out.")
			continue
		}
		have, most, above := "", "", len(f.local) > 0
		for _, ceiling := range f.local {
			if above {
				have, most, above = limits.Above(ceiling)
			}
		}
		if above {
			f.say(loom.FindingError, loom.FindingIncomplete, place, flavor, fmt.Sprintf("Local machines of this size are refused: “%s” is more than “%s”, the most that one may have.", have, most),
				"Lower the limit, or have the operator raise LOOM_LOCAL_MACHINE_MAX.")
		}
	}
}

// circle is services that wait for each other, and which of them comes after one.
// The text is that of all of them: each its own would cost the square of the circle.
type circle struct {
	text string
	next string
}

// circles looks for the services that wait for themselves.
func (f *finder) circles() map[string]circle {
	found := map[string]circle{}
	for _, path := range planner.CheckCycles(f.services) {
		way, services := path, len(path)-1 // ends where it began
		more := ""
		if services > maxOfCircle {
			way, more = path[:maxOfCircle], fmt.Sprintf(" and so on; there are %d in it", services)
		}
		text := "These services depend on each other in a circle: " + strings.Join(way, " → ") + more + "."
		for i, name := range path[:services] {
			if _, known := found[name]; !known {
				found[name] = circle{text, path[i+1]}
			}
		}
	}
	return found
}

// cycle looks whether a service waits for itself. The finding stands at the
// dependency that leads on.
func (f *finder) cycle(s *loom.Service) {
	if f.cycles == nil {
		f.cycles = f.circles()
	}
	c, part := f.cycles[s.Name]
	if !part {
		return
	}
	f.say(loom.FindingError, loom.FindingCycle, f.leads(s, c.next), c.next, c.text, "Take one of these dependencies out; a cluster with all of them cannot be planned.")
}

// leads gives the place of the dependency that leads from a service to another.
func (f *finder) leads(s *loom.Service, next string) string {
	names := offers(f.services[next])
	for _, r := range references(s) {
		conflict := strings.HasPrefix(r.field, "/dependencies/conflicts/")
		if r.kind == loom.KindService && r.provided && !conflict && names[r.name] {
			return r.field
		}
	}
	return pointer("dependencies")
}

// offers are the names under which others find a service.
func offers(s loom.Service) map[string]bool {
	names := map[string]bool{s.Name: true}
	for _, name := range s.Dependencies.Provides {
		names[name] = true
	}
	return names
}

// layout looks for sets of services that mean nothing sensible.
func (f *finder) layout(l loom.LayoutConstraints) {
	for i, set := range l.CantCoexist {
		if len(set) == 1 {
			f.say(loom.FindingWarning, loom.FindingPointless, pointer("constraints", "layout", "cantcoexist", i), set[0],
				fmt.Sprintf("This set names one service only, so “%s” may be on no node.", set[0]),
				"Name at least two services that may not share a node, or remove the set.")
		}
	}
}

// uncheckedServices are the services that do something and whose trouble nobody would notice;
// deprecated ones are on their way out.
func (f *finder) uncheckedServices(wanted func(kind loom.EntityKind, name string) bool) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.services)) {
		if s := f.services[name]; s.Unchecked() && !s.Deprecated && wanted(loom.KindService, name) {
			names = append(names, name)
		}
	}
	return names
}

// unchecked returns one finding for all of them.
func (f *finder) unchecked(wanted func(kind loom.EntityKind, name string) bool) []loom.Finding {
	names := f.uncheckedServices(wanted)
	if len(names) == 0 {
		return nil
	}
	const shown = 5
	list := slices.Clone(names)
	if len(list) > shown {
		list = append(list[:shown], fmt.Sprintf("%d more", len(names)-shown))
	}
	return []loom.Finding{{Severity: loom.FindingWarning, Code: loom.FindingUnchecked, Kind: loom.KindService, Name: names[0], Version: f.services[names[0]].Version,
		Message: "Nothing checks whether these services work: " + loom.And(list) + ".", Remedy: "Give each a check: a command, a URL or a port."}}
}
