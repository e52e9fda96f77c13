package catalog

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// maxOffers is how many sizes or images a page shows.
const maxOffers = 200

// adminProbe shows what a provider answered when it was last asked.
func (s *Server) adminProbe(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.probePage(w, r, actor, nil)
}

// probePage is adminProbe; refused says why no test began.
func (s *Server) probePage(w http.ResponseWriter, r *http.Request, actor loom.Actor, refused *loom.Error) error {
	entry, info, err := s.Catalog.Entry(r.Context(), actor, loom.KindProvider, entryName(r), 0)
	if err != nil {
		return err
	}
	name := entry.Meta().Name
	open, testing, err := s.Processes.OpenProbe(r.Context(), actor, name)
	if err != nil {
		return err
	}
	last, err := s.Processes.LastProbe(r.Context(), actor, name)
	if err != nil && !errors.Is(err, loom.NotFound) {
		return err
	}
	tested := err == nil
	m := adminview.PageModel{
		Title: "Test of " + name, Intro: "A provisioner signs in to the provider, checks what it is set up with and lists the sizes and images there are. Nothing is made.",
		TabsLabel: "Parts of " + name, Tabs: entryHead(loom.KindProvider, entry, tabTest).Tabs,
		Calls: []ui.JSONCall{page.Call("test", http.MethodPost, "/v2/providers/"+name+"/probe", "")},
	}
	frame := entryFrame(loom.KindProvider, name, tabTest)
	c := adminview.ConnectionModel{State: notTested, Now: s.Now(), Bare: true}
	switch {
	case testing:
		c = s.connection(open)
		c.Before = stepsOf(last.Answer)
	case tested:
		c = s.storedConnection(last, info.Time)
	default:
		c.Note = "The provider was not tested yet."
	}
	c.Bare = true
	status := http.StatusOK
	if refused != nil {
		c.Note, c.Tone, status = refused.Message, ui.ToneBad, httpx.PageStatus(refused.Kind)
	}
	var still []templ.Component
	if tested {
		still = s.offerParts(name, page.SearchOf(r.URL.Query()), last.Answer)
	}
	if testing {
		m.Parts = []templ.Component{adminview.Connection(c)}
		return s.LiveSheet(w, r, actor, route.TopicTenant(), frame, m, still...)
	}
	act := adminview.Act(route.AdminProbe(name), ui.ButtonModel{Label: "Test connection", Busy: "Testing…", Icon: "play", Kind: ui.Primary, Submit: true})
	if page.Wants(r, page.RegionID) { // the region of a page that waited: the answer is there
		m.Parts = []templ.Component{adminview.Connection(c), act}
		if len(last.Answer.Flavors)+len(last.Answer.Images) > 0 {
			m.Parts = append(m.Parts, adminview.Link("Show sizes and images", route.AdminProbe(name)))
		}
		return s.LiveSheet(w, r, actor, route.TopicTenant(), frame, m)
	}
	m.Parts = append([]templ.Component{act, adminview.Connection(c)}, still...)
	return s.Sheet(w, r, actor, status, frame, m)
}

// offerParts are the sizes and images of an answer.
func (s *Server) offerParts(provider, q string, p loom.Probe) []templ.Component {
	use := func(what, id string) adminview.Cell {
		href := route.Query(adminview.ProbeUse(provider), what, id)
		attrs := ui.OpensDialog(href)
		attrs["aria-label"] = "Use " + id
		return adminview.Cell{Buttons: []ui.ButtonModel{{Label: "Use", Small: true, Href: href, Attrs: attrs}}}
	}
	if len(p.Flavors)+len(p.Images) == 0 {
		if !p.OK {
			return nil
		}
		parts := []templ.Component{adminview.Text("This provider lists no sizes or images. Enter the names that it knows them by.")}
		for _, o := range []struct{ member, label string }{{fieldFlavor, "Size"}, {fieldImage, "Image"}} {
			parts = append(parts, adminview.UseNamed(adminview.ProbeUse(provider), o.member, o.label))
		}
		return parts
	}
	filters := adminview.FiltersModel{Action: route.AdminProbe(provider), Target: offersID, Fields: []ui.FieldModel{
		{Name: "q", Label: "Search sizes and images", LabelHidden: true, Kind: ui.FieldSearch, Width: "full", Value: q, Placeholder: "Search sizes and images by id or name", Optional: true, MaxLength: 200}}}
	empty := ui.EmptyModel{Icon: "cloud", Text: "The provider lists none."}
	if q != "" {
		filters.Clear = route.AdminProbe(provider)
		empty = ui.EmptyModel{Icon: "search", Text: "None matches.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.AdminProbe(provider)}}
	}
	flavors := adminview.TableModel{ID: "flavors", ShowCaption: true, Empty: empty, Columns: []ui.Column{{Label: "Flavor"}, {Label: "Name"}, {Label: "Processors", Numeric: true}, {Label: "Memory", Numeric: true}, {Label: "Use"}}}
	n := 0
	for _, f := range p.Flavors {
		if !offerMatches(q, f.ID, f.Name) {
			continue
		}
		if n++; n <= maxOffers {
			flavors.Rows = append(flavors.Rows, []adminview.Cell{{Text: f.ID, Mono: true}, {Text: f.Name}, {Text: unless0(f.VCPU, "")}, {Text: unless0(f.RAM, " MB")}, use(fieldFlavor, f.ID)})
		}
	}
	flavors.Caption = offersCaption("Sizes, for hardware types", n)
	images := adminview.TableModel{ID: "images", ShowCaption: true, Empty: empty, Columns: []ui.Column{{Label: "Image"}, {Label: "Name"}, {Label: "Use"}}}
	n = 0
	for _, i := range p.Images {
		if !offerMatches(q, i.ID, i.Name) {
			continue
		}
		if n++; n <= maxOffers {
			images.Rows = append(images.Rows, []adminview.Cell{{Text: i.ID, Mono: true}, {Text: i.Name}, use(fieldImage, i.ID)})
		}
	}
	images.Caption = offersCaption("Images, for image types", n)
	return []templ.Component{adminview.Filters(filters), adminview.Region(offersID, nil, adminview.Table(flavors), adminview.Table(images))}
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
	_, err := s.Processes.BeginProbe(r.Context(), actor, name)
	if e := loom.AsError(err); err != nil && (e.Kind == loom.Unavailable || e.Kind == loom.Throttled) {
		return s.probePage(w, r, actor, e)
	}
	if err != nil {
		return err
	}
	http.Redirect(w, r, route.AdminProbe(name), http.StatusSeeOther)
	return nil
}
