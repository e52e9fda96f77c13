package system

import (
	"net/http"
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

// systemOverview is the installation at a glance: figures, and what is wrong.
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
	tenants := strconv.Itoa(len(uses.Items))
	if uses.Next != "" {
		tenants += "+"
	}
	waiting := 0
	for _, q := range figures.Queues {
		waiting += q.Waits
	}
	tiles := []ui.TileModel{{Number: tenants, Label: "Tenants", Href: route.SystemTenants()}}
	if f := figures.Workers; f != nil {
		free := max(f.Capacity-f.Assigned, 0)
		tile := ui.TileModel{Number: strconv.Itoa(free) + " / " + strconv.Itoa(f.Capacity), Label: "Workers available", Note: strconv.Itoa(f.Assigned) + " assigned to tenants", Href: route.SystemWorkers()}
		if f.Assigned < f.Wanted {
			tile.Note, tile.Tone = strconv.Itoa(f.Wanted-f.Assigned)+" of "+strconv.Itoa(f.Wanted)+" wanted are missing", ui.ToneWarn
		}
		tiles = append(tiles, tile, ui.TileModel{Number: strconv.Itoa(f.Busy), Label: "Tasks running", Href: route.SystemQueues()})
	}
	tiles = append(tiles, ui.TileModel{Number: strconv.Itoa(waiting), Label: "Tasks queued", Href: route.SystemQueues()})
	if n, err := s.Processes.LiveNodes(r.Context(), actor); err == nil {
		tiles = append(tiles, ui.TileModel{Number: strconv.Itoa(n), Label: "Live nodes", Href: route.SystemClusters()})
	}
	machines := ui.TileModel{Number: strconv.Itoa(len(orphans) + len(leftovers)), Label: "Orphans and leftovers", Href: route.SystemOrphans()}
	if len(orphans)+len(leftovers) > 0 {
		machines.Tone, machines.Note = ui.ToneWarn, "may go on costing"
	}
	tiles = append(tiles, machines)
	m := adminview.PageModel{Title: "System", Intro: "The whole installation at this moment. Programs read the same at /metrics, and whether a process works at /healthz and /readyz.",
		Parts:   []templ.Component{ui.Tiles(tiles), statusGrid(figures, failed), clusterGrid(figures)},
		Banners: append(workerAlert(figures), workerlessAlert(uses.Items)...), Calls: []ui.JSONCall{page.Call("queues", http.MethodGet, "/v2/metrics/queues", ""), page.Call("processes", http.MethodGet, "/v2/processes", "")}}
	return s.LiveSheet(w, r, actor, route.TopicSystem(), page.SystemFrame("System", route.System()), m)
}

// workerAlert says that fewer workers run than tenants are promised.
func workerAlert(f loom.Figures) []ui.BannerModel {
	if f.Workers == nil || f.Workers.Assigned >= f.Workers.Wanted {
		return nil
	}
	return []ui.BannerModel{{Tone: ui.ToneWarn, Action: "Workers", ActionHref: route.SystemWorkers(),
		Text: "Tenants are promised " + ui.Count(f.Workers.Wanted, "worker", "workers") + ", but only " + strconv.Itoa(f.Workers.Assigned) + " could be assigned. Start another provisioner, or raise LOOM_PROVISIONER_CAPACITY."}}
}

// workerlessAlert names the tenants that have no workers.
func workerlessAlert(tenants []loom.Tenant) []ui.BannerModel {
	var names []string
	for _, t := range tenants {
		if t.Workers == 0 && t.ID != loom.SuperTenant {
			names = append(names, t.Name)
		}
	}
	switch {
	case len(names) == 0:
		return nil
	case len(names) == 1:
		return []ui.BannerModel{{Tone: ui.ToneWarn, Text: "The tenant " + names[0] + " has no workers, so none of its tasks run.", Action: "Give it workers", ActionHref: route.SystemTenant(names[0]) + "#edit-title"}}
	case len(names) > maxNamed:
		names = append(names[:maxNamed], strconv.Itoa(len(names)-maxNamed)+" more")
	}
	return []ui.BannerModel{{Tone: ui.ToneWarn, Text: "These tenants have no workers, so none of their tasks run: " + strings.Join(names, ", ") + ". Open each to give it some.", Action: "Tenants", ActionHref: route.SystemTenants()}}
}

// check is a line of the status: what, how it is, and the figure.
func check(what string, good bool, text string) []adminview.Cell {
	state := ui.State{Word: "Good", Icon: "check-circle", Tone: ui.ToneOK}
	if !good {
		state = ui.State{Word: "Needs attention", Icon: "alert", Tone: ui.ToneWarn}
	}
	return []adminview.Cell{{Text: what, State: &state, Sub: text}}
}

// unused is a line of the status of something that nobody uses.
func unused(what, text string) []adminview.Cell {
	return []adminview.Cell{{Text: what, State: &ui.State{Word: "Not used", Icon: "circle", Tone: ui.ToneIdle}, Sub: text}}
}

func statusGrid(f loom.Figures, failed error) templ.Component {
	g := adminview.TableModel{ID: "status", Caption: "Status", ShowCaption: true, Columns: []ui.Column{{Label: "Component, State"}}, Empty: ui.EmptyModel{Icon: "alert", Text: "Nothing could be read."}}
	if failed != nil {
		g.Rows = append(g.Rows, check("Figures", false, "Some could not be read in time; the database is slow or away."))
	}
	g.Rows = append(g.Rows, processRows(f, nil)...)
	if d := f.Database; d != nil {
		g.Rows = append(g.Rows, check("Database", d.OldestTransaction < longTransaction, ui.Count(d.Connections, "connection", "connections")+", the oldest open transaction is "+ui.Duration(d.OldestTransaction)+" old"))
	}
	oldest, waits := time.Duration(0), "no task waits for a worker"
	for _, q := range f.Queues {
		oldest = max(oldest, q.Oldest)
		waits = "the oldest task waits " + ui.Duration(oldest)
	}
	g.Rows = append(g.Rows, check("Queues", oldest < longWait, waits))
	if h := f.Hooks; h != nil {
		row := check("Hooks", h.Waiting == 0, ui.Count(h.Enabled, "hook is", "hooks are")+" called, "+ui.Count(h.Waiting, "delivery is", "deliveries are")+" to be tried")
		if *h == (loom.HookFigure{}) {
			row = unused("Hooks", "no tenant has a hook that is called")
		}
		g.Rows = append(g.Rows, row)
	}
	return adminview.Table(g)
}

// processRows tells of each kind of process whether one is alive.
func processRows(f loom.Figures, failed error) [][]adminview.Cell {
	if failed != nil && f.Processes == nil {
		return [][]adminview.Cell{check("Processes", false, "They could not be read in time.")}
	}
	var rows [][]adminview.Cell
	for _, kind := range []string{loom.ProcessWeb, loom.ProcessScheduler, loom.ProcessProvisioner} {
		found := loom.ProcessFigure{Kind: kind}
		for _, p := range f.Processes {
			if p.Kind == kind {
				found = p
			}
		}
		text := strconv.Itoa(found.Count) + " alive"
		if found.Count > 0 {
			text += ", last heartbeat " + ui.Duration(found.LeaseAge) + " ago"
		} else {
			text = "none; start one with “loom " + kind + "”"
		}
		rows = append(rows, check(page.Capital(kind)+" processes", found.Count > 0 && found.LeaseAge < oldLease, text))
	}
	return rows
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
