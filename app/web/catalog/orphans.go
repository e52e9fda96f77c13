package catalog

import (
	"errors"
	"net/http"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// adminOrphans shows the machines at a provider that nobody uses.
func (s *Server) adminOrphans(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	entry, _, err := s.Catalog.Entry(r.Context(), actor, loom.KindProvider, entryName(r), 0)
	if err != nil {
		return err
	}
	name := entry.Meta().Name
	sweep, orphans, err := s.Processes.Sweep(r.Context(), actor, name)
	if err != nil {
		return err
	}
	last, progress := s.LookCells(sweep)
	looks := adminview.TableModel{ID: "looks", Caption: "Search", Now: s.Now(), Columns: []ui.Column{{Label: "Last search"}, {Label: "Result"}}, Rows: [][]adminview.Cell{{last, progress}}}
	grid := adminview.TableModel{ID: "orphans", Caption: "Orphans", ShowCaption: true, Now: s.Now(),
		Columns: []ui.Column{{Label: "Machine"}, {Label: "Cluster"}, {Label: "First seen"}}, Empty: ui.EmptyModel{Icon: "check-circle", Text: "No orphans are known."}}
	for _, o := range orphans {
		grid.Rows = append(grid.Rows, []adminview.Cell{{Text: o.Machine, Mono: true, Sub: page.OrphanName(o)}, {Text: o.Cluster.String(), Mono: true}, {Time: o.FirstSeen}})
	}
	m := adminview.PageModel{
		Title: "Orphans at " + name, Intro: "Machines that carry a tag of Loom although no live node claims them, or it has another machine. They may go on running and costing; a superadmin removes them. Providers with clusters are searched every hour.",
		TabsLabel: "Parts of " + name, Tabs: entryHead(loom.KindProvider, entry, tabOrphans).Tabs,
		Parts: []templ.Component{adminview.Table(looks), adminview.Act(route.AdminOrphans(name), page.LookNow), adminview.Table(grid)},
		Calls: []ui.JSONCall{page.Call("search", http.MethodGet, "/v2/providers/"+name+"/sweep", ""), page.Call("look now", http.MethodPost, "/v2/providers/"+name+"/sweep", "")},
	}
	return s.LiveSheet(w, r, actor, route.TopicTenant(), entryFrame(loom.KindProvider, name, tabOrphans), m)
}

func (s *Server) adminOrphansLook(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	name := entryName(r)
	err := s.Processes.BeginSweep(r.Context(), actor, name)
	said := httpx.Flash{Tone: "ok", Text: "Searching " + name + "; the result comes here."}
	if errors.Is(err, loom.Conflict) {
		said, err = httpx.Flash{Tone: "warn", Text: loom.AsError(err).Message}, nil
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminOrphans(name), said)
}
