package web

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// maxOffers is how many sizes or images a page shows.
const maxOffers = 200

// adminProbe shows what a provider answered when it was last asked.
func (s *Server) adminProbe(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	entry, _, err := s.Catalog.Entry(r.Context(), actor, loom.KindProvider, entryName(r), 0)
	if err != nil {
		return err
	}
	name := entry.Meta().Name
	m := officeview.SheetModel{
		Title: "Test of " + name, Intro: "A provisioner signs in to the provider, checks what it is set up with and lists the sizes and images there are. Nothing is made.",
		TabsLabel: "Parts of " + name, Tabs: entryHead(loom.KindProvider, entry, tabTest).Tabs,
		Parts: []templ.Component{officeview.Act(route.AdminProbe(name), ui.ButtonModel{Label: "Test provider", Busy: "Testing…", Icon: "play", Kind: ui.Primary, Submit: true})},
		Calls: []ui.JSONCall{call("test", http.MethodPost, "/v2/providers/"+name+"/probe", "")},
	}
	probe, err := s.Fleet.LastProbe(r.Context(), actor, name)
	switch {
	case errors.Is(err, loom.NotFound):
		m.Parts = append(m.Parts, ui.Empty(ui.EmptyModel{Icon: "cloud", Text: "The provider was not tested yet."}))
	case err != nil:
		return err
	default:
		m.Parts = append(m.Parts, s.probeParts(name, probe)...)
	}
	return s.sheet(w, r, actor, http.StatusOK, entryFrame(loom.KindProvider, name, tabTest), m)
}

func (s *Server) probeParts(provider string, p loom.Probe) []templ.Component {
	use := func(kind loom.EntityKind, what, id string) officeview.Cell {
		return officeview.Cell{Text: "Use in a new " + kind.Word(), Href: route.Query(route.AdminNew(kind), fieldProvider, provider, what, id)}
	}
	banner := ui.BannerModel{Tone: ui.ToneOK, Text: "The provider works as it is set up."}
	if !p.OK {
		banner = ui.BannerModel{Tone: ui.ToneBad, Text: "The provider cannot be used as it is set up; see what failed."}
	}
	checks := officeview.GridModel{ID: "checks", Caption: "Checks", ShowCaption: true, Columns: []ui.Column{{Label: "Check"}, {Label: "Result"}, {Label: "Answer"}}, Empty: ui.EmptyModel{Icon: "list", Text: "Nothing was checked."}}
	for _, c := range p.Checks {
		state := ui.State{Word: "Good", Icon: "check-circle", Tone: ui.ToneOK}
		if !c.OK {
			state = ui.State{Word: "Failed", Icon: "error", Tone: ui.ToneBad}
		}
		checks.Rows = append(checks.Rows, []officeview.Cell{{Text: c.Name}, {State: &state}, {Text: c.Message}})
	}
	parts := []templ.Component{ui.Banner(banner), ui.Definitions([]ui.Def{{Term: "Asked", Value: ui.Time(p.Time, s.now())}}), officeview.Grid(checks)}
	if len(p.Flavors) > 0 {
		g := officeview.GridModel{ID: "flavors", Caption: "Sizes, for hardware types", ShowCaption: true, Columns: []ui.Column{{Label: "Flavor"}, {Label: "Name"}, {Label: "Processors", Numeric: true}, {Label: "Memory", Numeric: true}, {Label: "Use"}}}
		for _, f := range p.Flavors[:min(len(p.Flavors), maxOffers)] {
			g.Rows = append(g.Rows, []officeview.Cell{{Text: f.ID, Mono: true}, {Text: f.Name}, {Text: unless0(f.VCPU, "")}, {Text: unless0(f.RAM, " MB")}, use(loom.KindHardwareType, fieldFlavor, f.ID)})
		}
		parts = append(parts, officeview.Grid(g))
	}
	if len(p.Images) > 0 {
		g := officeview.GridModel{ID: "images", Caption: "Images, for image types", ShowCaption: true, Columns: []ui.Column{{Label: "Image"}, {Label: "Name"}, {Label: "Use"}}}
		for _, i := range p.Images[:min(len(p.Images), maxOffers)] {
			g.Rows = append(g.Rows, []officeview.Cell{{Text: i.ID, Mono: true}, {Text: i.Name}, use(loom.KindImageType, fieldImage, i.ID)})
		}
		parts = append(parts, officeview.Grid(g))
	}
	return parts
}

func unless0(n int, unit string) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + unit
}

func (s *Server) adminProbeAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	name := entryName(r)
	if _, err := s.Fleet.Probe(r.Context(), actor, name); err != nil {
		return err
	}
	http.Redirect(w, r, route.AdminProbe(name), http.StatusSeeOther)
	return nil
}
