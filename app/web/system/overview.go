package system

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// Above these a figure of the installation is marked.
const (
	longWait        = time.Minute
	longTransaction = time.Minute
	oldLease        = 8 * time.Second
)

// systemOverview is the installation at a glance: what is wrong, each with what helps, then
// figures.
func (s *Server) systemOverview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	figures, failed := s.Processes.Figures(r.Context())
	uses, err := s.Accounts.ListTenants(r.Context(), actor, "", loom.Page{Limit: loom.MaxPageLimit})
	if err != nil {
		return err
	}
	orphans, err := s.Processes.Orphans(r.Context(), actor)
	if err != nil {
		return err
	}
	leftovers, err := s.Processes.Leftovers(r.Context(), actor)
	if err != nil {
		return err
	}
	parts := append(workerParts(figures, uses.Items), s.parts(r, actor, figures, failed)...)
	if n := len(orphans) + len(leftovers); n > 0 {
		parts = append(parts, part{name: "Orphans and leftovers", state: stateWarning, detail: ui.Count(n, "machine", "machines") + " that no cluster uses may go on costing.", action: "Orphans", href: route.SystemOrphans()})
	}
	tenants := strconv.Itoa(len(uses.Items))
	if uses.Next != "" {
		tenants += "+"
	}
	waiting := 0
	for _, q := range figures.Queues {
		waiting += q.Waits
	}
	var tiles []ui.TileModel
	if f := figures.Workers; f != nil {
		tiles = append(tiles, ui.TileModel{Number: strconv.Itoa(f.Busy) + " of " + strconv.Itoa(f.Capacity), Label: "Workers busy", Href: route.SystemWorkers()})
	}
	tiles = append(tiles, ui.TileModel{Number: strconv.Itoa(waiting), Label: "Tasks queued", Href: route.SystemQueues()},
		ui.TileModel{Number: tenants, Label: "Tenants", Href: route.SystemTenants()})
	if n, err := s.Processes.LiveNodes(r.Context(), actor); err == nil {
		tiles = append(tiles, ui.TileModel{Number: strconv.Itoa(n), Label: "Live nodes", Href: route.SystemClusters()})
	}
	m := adminview.PageModel{Title: "System", Parts: []templ.Component{problems(parts, s.Now()), ui.Tiles(tiles), clusterGrid(figures)},
		Calls: []ui.JSONCall{page.Call("queues", http.MethodGet, "/v2/metrics/queues", ""), page.Call("processes", http.MethodGet, "/v2/processes", "")}}
	return s.LiveSheet(w, r, actor, route.TopicSystem(), page.SystemFrame("System", route.System()), m)
}

// problems are the parts that are not well, the worst first.
func problems(parts []part, now time.Time) templ.Component {
	rank := func(p part) int {
		if p.state == stateBad {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		return rank(a) - rank(b)
	})
	g := adminview.TableModel{ID: "problems", Caption: "Problems", Now: now, Columns: []ui.Column{{Label: "Part"}, {Label: "State"}, {Label: "Since"}, {Label: "Detail"}, {Label: "Action", LabelHidden: true}},
		Empty: ui.EmptyModel{Icon: "check-circle", Text: "All parts are well.", Action: ui.ButtonModel{Label: "Status", Href: route.SystemStatus()}}}
	for _, p := range parts {
		if p.state == stateGood || p.state == stateNotUsed {
			continue
		}
		row := []adminview.Cell{{Text: p.name}, {State: &p.state}, {Time: p.since}, {Text: p.detail}, {}}
		if p.href != "" {
			row[4].Buttons = []ui.ButtonModel{{Label: p.action, Href: p.href, Small: true}}
		}
		g.Rows = append(g.Rows, row)
	}
	return adminview.Table(g)
}

// workerParts say that fewer workers run than tenants are promised, and who has none.
func workerParts(f loom.Figures, tenants []loom.Tenant) []part {
	var parts []part
	if f.Workers != nil && f.Workers.Assigned < f.Workers.Wanted {
		parts = append(parts, part{name: "Workers", state: stateWarning, action: "Workers", href: route.SystemWorkers(),
			detail: "Tenants are promised " + ui.Count(f.Workers.Wanted, "worker", "workers") + ", but only " + strconv.Itoa(f.Workers.Assigned) + " could be assigned. Start another provisioner, or raise LOOM_PROVISIONER_CAPACITY."})
	}
	var names []string
	for _, t := range tenants {
		if t.Workers == 0 && t.ID != loom.SuperTenant {
			names = append(names, t.Name)
		}
	}
	const none = "Without workers none of its tasks run."
	switch {
	case len(names) == 0:
	case len(names) == 1:
		parts = append(parts, part{name: "Tenant " + names[0], state: stateWarning, detail: none, action: "Give it workers", href: route.SystemTenantTab(names[0], tabQuotas)})
	default:
		shown := names[:min(len(names), maxNamed)]
		text := strings.Join(shown, ", ")
		if more := len(names) - len(shown); more > 0 {
			text += " and " + strconv.Itoa(more) + " more"
		}
		parts = append(parts, part{name: ui.Count(len(names), "tenant", "tenants") + " without workers", state: stateWarning, detail: text + ": none of their tasks run.", action: "Tenants", href: route.SystemTenants()})
	}
	return parts
}

func clusterGrid(f loom.Figures) templ.Component {
	var defs []ui.Def
	for _, status := range loom.ClusterStatuses {
		if n, ok := f.Clusters[status]; ok {
			defs = append(defs, ui.Def{Term: ui.ClusterState(status).Word, Text: strconv.Itoa(n)})
		}
	}
	if f.LeasesEnding != nil {
		defs = append(defs, ui.Def{Term: "Leases that end within a day", Text: strconv.Itoa(*f.LeasesEnding)})
	}
	return adminview.Card("clusters-title", "Clusters of all tenants", ui.Definitions(defs))
}
