package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/views/adminview"
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
	open, testing, err := s.Fleet.OpenProbe(r.Context(), actor, name)
	if err != nil {
		return err
	}
	m := officeview.SheetModel{
		Title: "Test of " + name, Intro: "A provisioner signs in to the provider, checks what it is set up with and lists the sizes and images there are. Nothing is made.",
		TabsLabel: "Parts of " + name, Tabs: entryHead(loom.KindProvider, entry, tabTest).Tabs,
		Calls: []ui.JSONCall{call("test", http.MethodPost, "/v2/providers/"+name+"/probe", "")},
	}
	page := entryFrame(loom.KindProvider, name, tabTest)
	q := searchOf(r.URL.Query())
	still, err := s.lastProbeParts(r, actor, name, q, testing)
	if err != nil {
		return err
	}
	if !testing && !wants(r, regionID) {
		act := officeview.Act(route.AdminProbe(name), ui.ButtonModel{Label: "Test provider", Busy: "Asking…", Icon: "play", Kind: ui.Primary, Submit: true})
		m.Parts = append([]templ.Component{act}, still...)
		return s.sheet(w, r, actor, http.StatusOK, page, m)
	}
	if testing {
		m.Parts = []templ.Component{ui.Banner(testingBanner(open))}
	} else { // the region of a page that waited: the answer is there
		m.Parts = []templ.Component{ui.Banner(ui.BannerModel{Tone: ui.ToneOK, Text: "The test has ended.", Action: "Show the answer", ActionHref: route.AdminProbe(name)})}
		m.Parts = append(m.Parts, still...)
		still = nil
	}
	return s.liveSheet(w, r, actor, route.TopicTenant(), page, m, still...)
}

// testingBanner says how far a test is.
func testingBanner(open fleet.OpenProbe) ui.BannerModel {
	waited := ui.Duration(open.Now.Sub(open.Asked).Truncate(time.Second))
	switch {
	case open.Started:
		return ui.BannerModel{Tone: ui.ToneRun, Text: "A provisioner is asking the provider, since " + waited + ". The answer comes here."}
	case open.Now.Sub(open.Asked) > slowProbe:
		return ui.BannerModel{Tone: ui.ToneWarn, Text: "No provisioner has taken the test for " + waited + ". Start one with “loom provisioner”, or ask a superadmin why none takes work; the test begins as soon as one does."}
	}
	return ui.BannerModel{Tone: ui.ToneRun, Text: "The test waits for a provisioner, since " + waited + ". The answer comes here."}
}

// slowProbe is how long a test may wait for a provisioner before the page wonders.
const slowProbe = 15 * time.Second

// lastProbeParts are the answer of the test before.
func (s *Server) lastProbeParts(r *http.Request, actor loom.Actor, name, q string, testing bool) ([]templ.Component, error) {
	probe, err := s.Fleet.LastProbe(r.Context(), actor, name)
	if errors.Is(err, loom.NotFound) {
		if testing {
			return nil, nil
		}
		return []templ.Component{ui.Empty(ui.EmptyModel{Icon: "cloud", Text: "The provider was not tested yet."})}, nil
	}
	if err != nil {
		return nil, err
	}
	return s.probeParts(name, q, probe), nil
}

func (s *Server) probeParts(provider, q string, p loom.Probe) []templ.Component {
	use := func(what, id string) officeview.Cell {
		href := route.Query(adminview.ProbeUse(provider), what, id)
		attrs := ui.OpensDialog(href)
		attrs["aria-label"] = "Use " + id
		return officeview.Cell{Buttons: []ui.ButtonModel{{Label: "Use", Small: true, Href: href, Attrs: attrs}}}
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
	if len(p.Flavors)+len(p.Images) == 0 {
		return parts
	}
	filters := officeview.FiltersModel{Action: route.AdminProbe(provider), Target: offersID, Fields: []ui.FieldModel{
		{Name: "q", Label: "Search sizes and images", LabelHidden: true, Kind: ui.FieldSearch, Width: "full", Value: q, Placeholder: "Search sizes and images by id or name", Optional: true, MaxLength: 200}}}
	empty := ui.EmptyModel{Icon: "cloud", Text: "The provider lists none."}
	if q != "" {
		filters.Clear = route.AdminProbe(provider)
		empty = ui.EmptyModel{Icon: "search", Text: "None matches.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.AdminProbe(provider)}}
	}
	flavors := officeview.GridModel{ID: "flavors", ShowCaption: true, Empty: empty, Columns: []ui.Column{{Label: "Flavor"}, {Label: "Name", Low: true}, {Label: "Processors", Numeric: true, Low: true}, {Label: "Memory", Numeric: true}, {Label: "Use"}}}
	n := 0
	for _, f := range p.Flavors {
		if !offerMatches(q, f.ID, f.Name) {
			continue
		}
		if n++; n <= maxOffers {
			flavors.Rows = append(flavors.Rows, []officeview.Cell{{Text: f.ID, Mono: true}, {Text: f.Name}, {Text: unless0(f.VCPU, "")}, {Text: unless0(f.RAM, " MB")}, use(fieldFlavor, f.ID)})
		}
	}
	flavors.Caption = offersCaption("Sizes, for hardware types", n)
	images := officeview.GridModel{ID: "images", ShowCaption: true, Empty: empty, Columns: []ui.Column{{Label: "Image"}, {Label: "Name"}, {Label: "Use"}}}
	n = 0
	for _, i := range p.Images {
		if !offerMatches(q, i.ID, i.Name) {
			continue
		}
		if n++; n <= maxOffers {
			images.Rows = append(images.Rows, []officeview.Cell{{Text: i.ID, Mono: true}, {Text: i.Name}, use(fieldImage, i.ID)})
		}
	}
	images.Caption = offersCaption("Images, for image types", n)
	return append(parts, officeview.Filters(filters), officeview.Region(offersID, nil, officeview.Grid(flavors), officeview.Grid(images)))
}

// offersID is the part of the page that a search changes.
const offersID = "offers"

// offerMatches looks for all words of a search in the id and the name of an offer.
func offerMatches(q, id, name string) bool {
	text := strings.ToLower(id + " " + name)
	for _, word := range strings.Fields(strings.ToLower(q)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// offersCaption says of a long list that it was cut.
func offersCaption(title string, n int) string {
	if n <= maxOffers {
		return title
	}
	return title + ": the first " + strconv.Itoa(maxOffers) + " of " + strconv.Itoa(n) + ", search for others"
}

func unless0(n int, unit string) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + unit
}

func (s *Server) adminProbeAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	name := entryName(r)
	if err := s.Fleet.BeginProbe(r.Context(), actor, name); err != nil {
		return err
	}
	http.Redirect(w, r, route.AdminProbe(name), http.StatusSeeOther)
	return nil
}
