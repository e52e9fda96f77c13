package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/accountview"
	"loom/views/layout"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// officeRows is how many rows are on a page of a list.
const officeRows = 25

// regionID is the part of a page that is fetched again.
const regionID = "live"

// system is a page for superadmins.
func (s *Server) system(h httpx.ActorHandler) http.Handler {
	return s.page(func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		if !actor.IsSuperadmin() {
			return loom.NewError(loom.Forbidden, "This page needs the role of a superadmin; ask whoever runs Loom.")
		}
		return h(w, r, actor)
	})
}

// systemFrame is the frame of the system pages, with its rail.
func systemFrame(title, here string, crumbs ...ui.Crumb) layout.Model {
	m := layout.Model{Title: title, Section: "System", Area: layout.AreaSystem, Here: here}
	if len(crumbs) > 0 {
		m.Crumbs = append([]ui.Crumb{{Label: "System", Href: route.System()}}, crumbs...)
	}
	m.Rail = []layout.RailItem{
		railItem("Overview", "activity", route.System(), here),
		railItem("Status", "check-circle", route.SystemStatus(), here),
		railItem("Tenants", "layers", route.SystemTenants(), here),
		railItem("Clusters", "cluster", route.SystemClusters(), here),
		railItem("Activity", "list", route.SystemActivity(), here),
		railItem("Usage", "clock", route.SystemUsage(), here),
		railItem("Audit", "shield", route.SystemAudit(), here),
		{Heading: "Work"},
		railItem("Workers", "server", route.SystemWorkers(), here),
		railItem("Queues", "clock", route.SystemQueues(), here),
		railItem("River jobs", "file", route.SystemJobs(), here),
		railItem("Hooks", "external", route.SystemHooks(), here),
		{Heading: "Machines"},
		railItem("Orphans", "disk", route.SystemOrphans(), here),
		railItem("Plugin types", "box", route.SystemPlugins(), here),
	}
	return m
}

// sheet answers with a page of parts.
func (s *Server) sheet(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, page layout.Model, m officeview.SheetModel) error {
	if m.Title == "" {
		m.Title = page.Title
	}
	return s.render(w, r, actor, status, page, officeview.Sheet(m))
}

// liveSheet answers with a page whose parts are fetched again as one when a topic is
// signalled, and every few seconds: what waits and what is busy changes more often
// than is signalled. Asked for the region alone, it answers with that. What is still
// stands below and is not fetched again.
func (s *Server) liveSheet(w http.ResponseWriter, r *http.Request, actor loom.Actor, topic string, page layout.Model, m officeview.SheetModel, still ...templ.Component) error {
	attrs := ui.Live(r.URL.RequestURI(), topic)
	attrs["hx-trigger"] = "loom:live, every 10s"
	region := officeview.Region(regionID, attrs, m.Parts...)
	if wants(r, regionID) {
		return s.fragment(w, r, http.StatusOK, region)
	}
	m.Parts = append([]templ.Component{region}, still...)
	page.Topics = []string{topic}
	reloading(r, &page, true)
	return s.sheet(w, r, actor, http.StatusOK, page, m)
}

// badConfirm is the error of a form in which the wrong name was typed.
func badConfirm(title, name string) ui.FormErrors {
	return ui.NewFormErrors(title, []loom.FieldError{{Field: officeview.FieldConfirm, Message: "Type “" + name + "” exactly as it is written."}})
}

// turned gives the links to the neighbours of a page of a list.
func turned(label, base, next, prev string, filters ...string) ui.PaginationModel {
	m := ui.PaginationModel{Label: label}
	if next != "" {
		m.Next = route.Query(base, append(filters[:len(filters):len(filters)], "after", next)...)
	}
	if prev != "" {
		m.Prev = route.Query(base, append(filters[:len(filters):len(filters)], "before", prev)...)
	}
	return m
}

// pathNumber reads a number of the path. NotFound.
func pathNumber(r *http.Request, name, what string) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil || n <= 0 {
		return 0, loom.NewError(loom.NotFound, "There is no %s “%.40s”.", what, r.PathValue(name))
	}
	return n, nil
}

// call is a call of the REST API as people type it.
func call(label, method, path, body string) ui.JSONCall {
	curl := `curl -H "Authorization: Bearer $LOOM_TOKEN" `
	if method != http.MethodGet {
		curl += "-X " + method + " "
	}
	if body != "" {
		curl += "-H 'Content-Type: application/json' -d '" + strings.ReplaceAll(body, "'", `'\''`) + "' "
	}
	return ui.JSONCall{Label: label, Curl: curl + `"$LOOM_URL` + path + `"`}
}

// ofLimit is a quota for people, under the number that is used of it.
func ofLimit(quota int) string {
	if quota >= loom.Unlimited {
		return "no limit"
	}
	return "of " + strconv.Itoa(quota)
}

// usedOf is how much of a quota is used, for people.
func usedOf(n, quota int) string {
	if quota >= loom.Unlimited {
		return strconv.Itoa(n) + ", no limit"
	}
	return strconv.Itoa(n) + " of " + strconv.Itoa(quota)
}

// opening is a button that opens a question in the dialog.
func opening(label, about, href string, kind ui.ButtonKind) ui.ButtonModel {
	attrs := ui.OpensDialog(href)
	if about != "" {
		attrs["aria-label"] = about
	}
	return ui.ButtonModel{Label: label, Kind: kind, Small: true, Href: href, Attrs: attrs}
}

func field(m ui.FieldModel, errs ui.FormErrors) templ.Component {
	m.Error = errs.For(m.Name)
	return ui.Field(m)
}

// confirmAnswer is accountConfirm with a status of its own.
func (s *Server) confirmAnswer(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m layout.Model, form templ.Component) error {
	if status == http.StatusOK {
		return s.accountConfirm(w, r, actor, m, form)
	}
	return s.render(w, r, actor, status, m, accountview.ConfirmPage(m.Title, form))
}

// exportsOf are the addresses of the whole list that a page shows a part of, as files;
// empty where the REST API has none.
func (s *Server) exportsOf(r *http.Request) (csv, json string) {
	d, ok := s.documentOf(r)
	if !ok || !d.list || len(d.columns) == 0 {
		return "", ""
	}
	return s.exportsAt(r.URL.EscapedPath(), r.URL.Query())
}

// exportsAt are those of a list that another page shows a part of.
func (s *Server) exportsAt(page string, q url.Values) (csv, json string) {
	if s.API == nil {
		return "", ""
	}
	kept := url.Values{}
	for name, values := range q {
		if !slices.Contains([]string{"after", "before", "as"}, name) {
			kept[name] = values
		}
	}
	if len(kept) > 0 {
		page += "?" + kept.Encode()
	}
	return route.Export(page, asCSV), route.Export(page, asAll)
}
