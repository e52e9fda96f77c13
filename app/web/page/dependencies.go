package page

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/planner/dependencies"
	"loom/planner/draw"
	"loom/views/route"
	"loom/views/ui"
)

// tieLabels is what a picture of services says that the graph does not know.
type tieLabels struct {
	id, title string
	// href leads to a service; "" for one that leads nowhere.
	href func(service string) string
	// line stands beneath the name of a service.
	line func(service string) string
	// icon is that of a service.
	icon func(service string) string
	// missing stands beneath what is not there: "not in the catalog".
	missing string
}

var tieKinds = map[dependencies.Kind]ui.TieKind{
	dependencies.Requires: ui.TieRequires, dependencies.Uses: ui.TieUses, dependencies.Provides: ui.TieProvides, dependencies.Follows: ui.TieFollows, dependencies.Conflicts: ui.TieConflicts,
}

var tieSorts = map[dependencies.Sort]ui.TieSort{dependencies.Service: ui.TieService, dependencies.Name: ui.TieName, dependencies.Missing: ui.TieMissing}

// tiesModel turns what services have to do with each other into a picture and its
// table. middle names the service it is about, "" for none.
func tiesModel(graph dependencies.Graph, middle string, l tieLabels) ui.TiesModel {
	m := ui.TiesModel{ID: l.id, Title: l.title, Description: tiesText(graph)}
	d := draw.Dependencies(graph)
	m.Width, m.Height = d.Width, d.Height
	for _, b := range d.Vertices {
		box := ui.TieBox{ID: b.ID, X: b.X, Y: b.Y, Sort: tieSorts[b.Sort], Title: b.Name, Middle: b.Sort == dependencies.Service && b.Name == middle}
		switch b.Sort {
		case dependencies.Service:
			box.Href, box.Line, box.Icon = l.href(b.Name), l.line(b.Name), l.icon(b.Name)
			box.Label = b.Name + ", " + box.Line
		case dependencies.Name:
			box.Line, box.Label = "provided name", b.Name+", a name that services provide"
		case dependencies.Missing:
			box.Line, box.Label = l.missing, b.Name+", "+l.missing
		}
		m.Boxes = append(m.Boxes, box)
	}
	for _, t := range d.Edges {
		m.Lines = append(m.Lines, ui.TieLine{From: t.FromID, To: t.ToID, Kind: tieKinds[t.Kind], Path: t.Path, Backwards: t.Backwards,
			Text: t.Text, X: t.X, Y: t.Y, Circle: t.Cycle, Label: tieSentence(graph, t.Edge)})
	}
	for i, c := range graph.Cycles {
		if i == maxTieCircles {
			m.Circles = append(m.Circles, "And "+ui.Count(len(graph.Cycles)-i, "circle", "circles")+" more.")
			break
		}
		m.Circles = append(m.Circles, circleSentence(c))
	}
	m.Rows = tieRows(graph, middle, l)
	if len(m.Rows) > maxTieRows {
		m.Rest = ui.Count(len(m.Rows)-maxTieRows, "service", "services") + " more."
		m.Rows = m.Rows[:maxTieRows]
	}
	if len(m.Boxes) == 0 {
		m.Nothing = "These are " + ui.Count(len(graph.Vertices), "service or name", "services and names") + " with " + ui.Count(len(graph.Edges), "relation", "relations") + ", too many for a picture."
	}
	return m
}

// Bounds of what stands beside a picture.
const (
	maxTieRows    = 200
	maxTieRefs    = 50
	maxTieCircles = 20
	maxTieCircle  = 20
)

// few cuts the list of a cell, and says how many more there are.
func few(refs []ui.TieRef) []ui.TieRef {
	if len(refs) <= maxTieRefs {
		return refs
	}
	return append(refs[:maxTieRefs:maxTieRefs], ui.TieRef{Note: "and " + strconv.Itoa(len(refs)-maxTieRefs) + " more"})
}

// tiesText counts a picture for those who do not see it.
func tiesText(graph dependencies.Graph) string {
	services := 0
	for _, t := range graph.Vertices {
		if t.Sort == dependencies.Service {
			services++
		}
	}
	return ui.Count(services, "service", "services") + " with " + ui.Count(len(graph.Edges), "relation", "relations") + ". The table below says the same."
}

func tieSentence(graph dependencies.Graph, t dependencies.Edge) string {
	text := graph.Vertices[t.From].Name + " " + t.Kind.String() + " " + graph.Vertices[t.To].Name
	if note := tieNote(t); note != "" {
		text += ", " + note
	}
	return text
}

// tieNote says for which actions a need holds.
func tieNote(t dependencies.Edge) string {
	if !t.Kind.Needs() {
		return ""
	}
	var parts []string
	if t.Install {
		text := "to install"
		if t.SameNode {
			text += " on the same node"
		}
		parts = append(parts, text)
	}
	if t.Runtime {
		parts = append(parts, "to run")
	}
	return strings.Join(parts, " and ")
}

func circleSentence(c dependencies.Cycle) string {
	phase := "when they start and stop"
	if c.Install {
		phase = "when they are installed"
	}
	path, more := c.Path, ""
	if services := len(path) - 1; services > maxTieCircle {
		path, more = path[:maxTieCircle], " and so on; there are "+strconv.Itoa(services)+" in it"
	}
	return "These services wait for each other in a circle " + phase + ": " + strings.Join(path, " → ") + more +
		". A cluster with all of them cannot be planned; take one of these dependencies out."
}

// tieRows lists each service with what it says of others, the middle one first.
func tieRows(graph dependencies.Graph, middle string, l tieLabels) []ui.TieRow {
	rows := map[int]*ui.TieRow{}
	var order []int
	for i, t := range graph.Vertices {
		if t.Sort == dependencies.Service {
			rows[i] = &ui.TieRow{Name: t.Name, Href: l.href(t.Name), Middle: t.Name == middle}
			order = append(order, i)
		}
	}
	ref := func(t dependencies.Edge, to int) ui.TieRef {
		vertex := graph.Vertices[to]
		r := ui.TieRef{Name: vertex.Name, Note: tieNote(t), Missing: vertex.Sort == dependencies.Missing}
		if vertex.Sort == dependencies.Service {
			r.Href = l.href(vertex.Name)
		}
		return r
	}
	for _, t := range graph.Edges {
		row := rows[t.From]
		switch t.Kind {
		case dependencies.Requires:
			row.Requires = append(row.Requires, ref(t, t.To))
		case dependencies.Uses:
			row.Uses = append(row.Uses, ref(t, t.To))
		case dependencies.Provides:
			row.Provides = append(row.Provides, ref(t, t.To))
		case dependencies.Follows:
			row.Follows = append(row.Follows, ref(t, t.To))
		case dependencies.Conflicts:
			row.Conflicts = append(row.Conflicts, ref(t, t.To))
			if other := rows[t.To]; other != nil {
				other.Conflicts = append(other.Conflicts, ref(t, t.From))
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank(rows[a].Middle), rank(rows[b].Middle)) })
	out := make([]ui.TieRow, len(order))
	for i, at := range order {
		r := *rows[at]
		r.Requires, r.Uses, r.Provides, r.Follows, r.Conflicts = few(r.Requires), few(r.Uses), few(r.Provides), few(r.Follows), few(r.Conflicts)
		out[i] = r
	}
	return out
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// tieHops are links to more or less of the surroundings of a service.
func tieHops(base string, hops int) []ui.Tab {
	var tabs []ui.Tab
	for n := 1; n <= dependencies.MaxDistance; n++ {
		label := "Direct relations"
		if n > 1 {
			label = ui.Count(n, "hop", "hops")
		}
		tabs = append(tabs, ui.Tab{Label: label, Href: route.Query(base, "hops", string(rune('0'+n))) + "#" + tiesID, Current: n == hops})
	}
	return tabs
}

// tiesID is the id of the one picture of services of a page.
const tiesID = "relations"

// HopsOf reads how far a picture reaches; 1 unless the query says otherwise.
func HopsOf(text string) int {
	if len(text) == 1 && text[0] >= '1' && text[0] <= '0'+dependencies.MaxDistance {
		return int(text[0] - '0')
	}
	return 1
}

// iconsOf gives the icons of services.
func iconsOf(services map[string]loom.Service) func(string) string {
	return func(name string) string { return ui.GlyphOf(services[name].Icon, "box") }
}

// versionLine says what is known of a service of the catalog.
func versionLine(services map[string]loom.Service) func(string) string {
	return func(name string) string {
		s := services[name]
		text := ui.Count(len(s.Provisioner.Actions), "action", "actions")
		if s.Deprecated {
			text += ", deprecated"
		}
		return text
	}
}

// Services gives the newest version of every service of the actor's tenant by name.
func (s *Shared) Services(ctx context.Context, actor loom.Actor) (map[string]loom.Service, error) {
	found, err := s.Catalog.Newest(ctx, actor, loom.KindService)
	return ServicesIn(found), err
}

// ServicesIn picks the services out of entries.
func ServicesIn(found map[loom.EntityKind][]loom.Entry) map[string]loom.Service {
	services := make(map[string]loom.Service, len(found[loom.KindService]))
	for _, e := range found[loom.KindService] {
		if s, ok := e.(*loom.Service); ok {
			services[s.Name] = *s
		}
	}
	return services
}

// ServiceTies is the picture around a service of the catalog; page is where it is
// shown, href leads to services.
func ServiceTies(services map[string]loom.Service, name string, hops int, page string, href func(string) string) ui.TiesModel {
	graph := dependencies.Around(services, name, hops)
	if len(graph.Edges) == 0 {
		return ui.TiesModel{ID: tiesID, Nothing: "It has nothing to do with other services: it needs none, and none names it."}
	}
	m := tiesModel(graph, name, tieLabels{
		id: tiesID, title: "What " + name + " has to do with other services", href: href, line: versionLine(services), icon: iconsOf(services), missing: "not in the catalog",
	})
	m.Hops = tieHops(page, hops)
	return m
}

// TemplateTies is the picture of the services that clusters of a template may
// have; nil when it names none. A template that allows every service shows its own
// with all that they need.
func TemplateTies(services map[string]loom.Service, t loom.Template, href func(string) string) *ui.TiesModel {
	set := subset(services, t.Defaults.Services, t.Compatibility.Services)
	if len(t.Compatibility.Services) == 0 {
		set = closure(services, t.Defaults.Services)
	}
	if len(set) == 0 {
		return nil
	}
	m := tiesModel(dependencies.Of(set), "", tieLabels{
		id: tiesID, title: "Services of the template " + t.Name, href: href, icon: iconsOf(services), missing: "not in this template",
		line: func(name string) string { // of a picture, which has few
			switch {
			case slices.Contains(t.Defaults.Services, name):
				return "in a new cluster"
			case slices.Contains(t.Compatibility.Services, name):
				return "can be added"
			}
			return "needed by others"
		},
	})
	return &m
}

// ClusterTies is the picture of the services of a cluster, as it has them; nil when
// it has none. Those that the catalog does not know any more lead to their row.
func ClusterTies(v clusters.ClusterView, known map[string]loom.Service) *ui.TiesModel {
	if len(v.Services) == 0 {
		return nil
	}
	on := map[string]int{}
	for _, n := range v.Nodes {
		for _, name := range n.Services {
			on[name]++
		}
	}
	row := ui.TiesModel{ID: tiesID}
	m := tiesModel(dependencies.Of(v.Services), "", tieLabels{
		id: tiesID, title: "Services of the cluster " + v.Name, icon: iconsOf(v.Services), missing: "not on this cluster",
		line: func(name string) string { return "on " + ui.Count(on[name], "node", "nodes") },
		href: func(name string) string {
			if _, there := known[name]; there {
				return route.CatalogService(name)
			}
			return "#" + row.RowID(name)
		},
	})
	return &m
}

// closure adds to names what these require, as far as the catalog has it, the
// services that provide a required name included.
func closure(services map[string]loom.Service, names []string) map[string]loom.Service {
	providers := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		for _, also := range services[name].Dependencies.Provides {
			providers[also] = append(providers[also], name)
		}
	}
	set := map[string]loom.Service{}
	for queue := slices.Clone(names); len(queue) > 0; {
		name := queue[0]
		queue = queue[1:]
		s, there := services[name]
		if _, known := set[name]; known || !there {
			continue
		}
		set[name] = s
		for _, required := range slices.Concat(s.Dependencies.Install.Requires, s.Dependencies.Runtime.Requires) {
			queue = append(append(queue, required), providers[required]...)
		}
	}
	return set
}

// subset gives the services of these names that are there.
func subset(services map[string]loom.Service, names ...[]string) map[string]loom.Service {
	set := map[string]loom.Service{}
	for _, name := range slices.Concat(names...) {
		if s, there := services[name]; there {
			set[name] = s
		}
	}
	return set
}
