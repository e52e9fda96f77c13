package admin

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// adminFilesRelease puts in use what is staged, and says what that was.
func (s *Server) adminFilesRelease(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	coming, going, err := s.Catalog.ResourcesWaiting(r.Context(), actor)
	if err != nil {
		return err
	}
	if err := s.Catalog.Sync(r.Context(), actor); err != nil {
		return err
	}
	flash := httpx.Flash{Tone: "ok", Text: "Nothing to release."}
	if coming+going > 0 {
		flash.Text = page.Capital(filesText(coming, going, "released", "withdrawn")) + "."
	}
	return s.Say(w, r, adminview.FilesRelease(), flash)
}

// adminFilesReleaseAsk shows what a sync would do, and who has fetched what.
func (s *Server) adminFilesReleaseAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return err
	}
	set, fetches, err := s.Catalog.Fetched(r.Context(), actor)
	if err != nil {
		return err
	}
	m := adminview.PageModel{Title: "Release files", Intro: "A release puts all staged versions in use and takes all withdrawn ones out of use, at once. Running tasks keep their files."}
	m.Parts = []templ.Component{syncGrid(resources)}
	coming, going, err := s.Catalog.ResourcesWaiting(r.Context(), actor)
	if err != nil {
		return err
	}
	var still []templ.Component
	if coming > 0 {
		still = append(still, adminview.FleetPanel(adminview.FleetPanelModel{Action: adminview.FilesFleetEffect(),
			Note: "Machines get released files with their next task. To bring the files to a service at once, update its clusters: this is what such an update does."}))
	}
	if coming+going > 0 {
		m.Parts = append(m.Parts, adminview.Act(adminview.FilesRelease(), ui.ButtonModel{Label: "Release files", Busy: "Releasing…", Icon: "rotate", Kind: ui.Primary, Submit: true}))
	}
	m.Parts = append(m.Parts, s.fetchGrid(set, fetches))
	return s.LiveSheet(w, r, actor, route.TopicTenant(), fileFrame("Release"), m, still...)
}

// adminFilesFleet says what updates would do to each cluster once the staged files are released.
func (s *Server) adminFilesFleet(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m, err := s.FleetEffect(r, actor, nil, true)
	if err != nil {
		return err
	}
	return s.FleetAnswer(w, r, actor, fileFrame(adminview.FleetTitle), m, ui.ButtonModel{Label: "Back to the release", Href: adminview.FilesRelease()})
}

// syncGrid lists what changes by name: the version in use now, and that after.
func syncGrid(resources []loom.Resource) templ.Component {
	type change struct{ now, then *loom.Resource }
	byRef, order := map[loom.ResourceRef]*change{}, []loom.ResourceRef{}
	for i, r := range resources {
		if !r.Live && !r.Slated {
			continue
		}
		c := byRef[r.ResourceRef]
		if c == nil {
			c = &change{}
			byRef[r.ResourceRef] = c
			order = append(order, r.ResourceRef)
		}
		if r.Live {
			c.now = &resources[i]
		}
		if r.Slated {
			c.then = &resources[i]
		}
	}
	grid := adminview.TableModel{ID: "outcome", Caption: "Changes of the release", ShowCaption: true, Columns: []ui.Column{{Label: "File"}, {Label: "Change"}, {Label: "Version"}},
		Empty: ui.EmptyModel{Icon: "check-circle", Text: "Nothing to release.", More: "Files", MoreHref: route.AdminResources()}}
	for _, ref := range order {
		c := byRef[ref]
		row := []adminview.Cell{{Text: ref.Name, Mono: true, Sub: ref.Plugin + " · " + ref.Type}, {}, {}}
		switch {
		case c.now == c.then:
			continue
		case c.now == nil:
			row[1].State, row[2].Text = &ui.State{Word: "Added", Icon: "plus", Tone: ui.ToneOK}, ui.Version(c.then.Version)
			row[2].Href = adminview.File(ref, c.then.Version)
		case c.then == nil:
			row[1].State, row[2].Text = &ui.State{Word: "Removed", Icon: "minus", Tone: ui.ToneBad}, ui.Version(c.now.Version)
			row[2].Href = adminview.File(ref, c.now.Version)
		default:
			row[1].State, row[2].Text = &ui.State{Word: "Replaced", Icon: "rotate", Tone: ui.ToneWarn}, ui.Version(c.now.Version)+" → "+ui.Version(c.then.Version)
			row[2].Href = adminview.File(ref, c.then.Version)
		}
		grid.Rows = append(grid.Rows, row)
	}
	return adminview.Table(grid)
}

func (s *Server) fetchGrid(set int, fetches []catalog.ResourceFetch) templ.Component {
	grid := adminview.TableModel{ID: "fetches", Caption: "Who has fetched set " + strconv.Itoa(set), ShowCaption: true, Now: s.Now(),
		Columns: []ui.Column{{Label: "Host of provisioners"}, {Label: "State"}, {Label: "Has set", Numeric: true}, {Label: "Fetched"}},
		Empty:   ui.EmptyModel{Icon: "server", Text: "No provisioner has fetched anything yet; each does with its next task."}}
	for _, f := range fetches {
		state := ui.State{Word: "Has it", Icon: "check-circle", Tone: ui.ToneOK}
		if f.Set < set {
			state = ui.State{Word: "With its next task", Icon: "clock", Tone: ui.ToneIdle}
		}
		grid.Rows = append(grid.Rows, []adminview.Cell{{Text: f.Host, Mono: true}, {State: &state}, {Text: strconv.Itoa(f.Set)}, {Time: f.Time}})
	}
	return adminview.Table(grid)
}
