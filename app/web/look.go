package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// lookNow asks for a search.
var lookNow = ui.ButtonModel{Label: "Look now", Busy: "Asking…", Icon: "search", Submit: true}

// lookCells say when a provider was last searched for orphans, and what is under way.
func (s *Server) lookCells(l loom.Sweep) (last, progress officeview.Cell) {
	if l.Last != nil {
		last = officeview.Cell{Time: *l.Last, Sub: l.Failure}
	} else {
		last = officeview.Cell{Text: "never"}
	}
	switch {
	case l.Asked == nil && l.Failure != "":
		progress = officeview.Cell{State: &ui.State{Word: "Failed", Icon: "error", Tone: ui.ToneBad}}
	case l.Asked == nil:
		progress = officeview.Cell{Text: ui.Count(l.Found, "orphan", "orphans")}
	case l.Started:
		progress = officeview.Cell{State: &ui.State{Word: "Looking", Icon: "search", Tone: ui.ToneRun}, Sub: "since " + s.waited(*l.Asked)}
	default:
		progress = officeview.Cell{State: &ui.State{Word: "Waiting for a provisioner", Icon: "clock", Tone: ui.ToneRun}, Sub: "since " + s.waited(*l.Asked)}
	}
	return last, progress
}

func (s *Server) waited(since time.Time) string {
	return ui.Duration(max(0, s.now().Sub(since)).Truncate(time.Second))
}

// looksPart lists when providers were searched for orphans, with the button that
// searches all of them now.
func (s *Server) looksPart(r *http.Request, actor loom.Actor) ([]templ.Component, error) {
	sweeps, err := s.Fleet.Sweeps(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	grid := officeview.GridModel{ID: "looks", Caption: "Searches for orphans", ShowCaption: true, Now: s.now(),
		Columns: []ui.Column{{Label: "Provider"}, {Label: "Tenant"}, {Label: "Last search"}, {Label: "Result"}},
		Empty:   ui.EmptyModel{Icon: "search", Text: "No provider may have machines: there are no clusters, and none ended within a week."}}
	for _, l := range sweeps {
		last, progress := s.lookCells(l)
		grid.Rows = append(grid.Rows, []officeview.Cell{{Text: l.Provider}, {Text: l.TenantName, Mono: true}, last, progress})
	}
	parts := []templ.Component{officeview.Grid(grid)}
	if len(sweeps) > 0 {
		parts = append(parts, officeview.Act(route.SystemOrphansLook(), lookNow))
	}
	return parts, nil
}

func (s *Server) systemOrphansLook(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	n, err := s.Fleet.BeginSweeps(r.Context(), actor)
	said := httpx.Flash{Tone: "ok", Text: "Searching " + ui.Count(n, "provider", "providers") + "; results come here."}
	if errors.Is(err, loom.Conflict) {
		said, err = httpx.Flash{Tone: "warn", Text: loom.AsError(err).Message}, nil
	}
	if err != nil {
		return err
	}
	return s.say(w, r, route.SystemOrphans(), said)
}

// adminOrphans shows the machines at a provider that nobody uses.
func (s *Server) adminOrphans(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	entry, _, err := s.Catalog.Entry(r.Context(), actor, loom.KindProvider, entryName(r), 0)
	if err != nil {
		return err
	}
	name := entry.Meta().Name
	sweep, orphans, err := s.Fleet.Sweep(r.Context(), actor, name)
	if err != nil {
		return err
	}
	last, progress := s.lookCells(sweep)
	looks := officeview.GridModel{ID: "looks", Caption: "Search", Now: s.now(), Columns: []ui.Column{{Label: "Last search"}, {Label: "Result"}}, Rows: [][]officeview.Cell{{last, progress}}}
	grid := officeview.GridModel{ID: "orphans", Caption: "Orphans", ShowCaption: true, Now: s.now(),
		Columns: []ui.Column{{Label: "Machine"}, {Label: "Cluster"}, {Label: "First seen"}}, Empty: ui.EmptyModel{Icon: "check-circle", Text: "No orphans are known."}}
	for _, o := range orphans {
		grid.Rows = append(grid.Rows, []officeview.Cell{{Text: o.Machine, Mono: true, Sub: orphanName(o)}, {Text: o.Cluster.String(), Mono: true}, {Time: o.FirstSeen}})
	}
	m := officeview.SheetModel{
		Title: "Orphans at " + name, Intro: "Machines that carry a tag of Loom although no live node claims them, or it has another machine. They may go on running and costing; a superadmin removes them. Providers with clusters are searched every hour.",
		TabsLabel: "Parts of " + name, Tabs: entryHead(loom.KindProvider, entry, tabOrphans).Tabs,
		Parts: []templ.Component{officeview.Grid(looks), officeview.Act(route.AdminOrphans(name), lookNow), officeview.Grid(grid)},
		Calls: []ui.JSONCall{call("search", http.MethodGet, "/v2/providers/"+name+"/sweep", ""), call("look now", http.MethodPost, "/v2/providers/"+name+"/sweep", "")},
	}
	return s.liveSheet(w, r, actor, route.TopicTenant(), entryFrame(loom.KindProvider, name, tabOrphans), m)
}

// orphanName is what an orphan is called, and what the node of that name has.
func orphanName(o loom.Orphan) string {
	if o.Own == "" {
		return o.Name
	}
	return "The node " + o.Name + " has " + o.Own + "."
}

func (s *Server) adminOrphansLook(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	name := entryName(r)
	err := s.Fleet.BeginSweep(r.Context(), actor, name)
	said := httpx.Flash{Tone: "ok", Text: "Searching " + name + "; the result comes here."}
	if errors.Is(err, loom.Conflict) {
		said, err = httpx.Flash{Tone: "warn", Text: loom.AsError(err).Message}, nil
	}
	if err != nil {
		return err
	}
	return s.say(w, r, route.AdminOrphans(name), said)
}
