package page

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
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// Confirm answers with a question: in the dialog for a link that opens one,
// as a page else.
func (s *Shared) Confirm(w http.ResponseWriter, r *http.Request, actor loom.Actor, m layout.Model, form templ.Component) error {
	if httpx.IsFragment(r) && r.Header.Get("HX-Target") == "dialog" {
		return s.Fragment(w, r, http.StatusOK, accountview.ConfirmDialog(m.Title, form))
	}
	return s.Render(w, r, actor, http.StatusOK, m, accountview.ConfirmPage(m.Title, form))
}

// OfficeRows is how many rows are on a page of a list.
const OfficeRows = 25

// RegionID is the part of a page that is fetched again.
const RegionID = "live"

// Sheet answers with a page of parts.
func (s *Shared) Sheet(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, page layout.Model, m adminview.PageModel) error {
	if m.Title == "" {
		m.Title = page.Title
	}
	return s.Render(w, r, actor, status, page, adminview.Page(m))
}

// LiveSheet answers with a page whose parts are fetched again as one when a topic is
// signalled, and every few seconds: what waits and what is busy changes more often
// than is signalled. Asked for the region alone, it answers with that. What is still
// stands below and is not fetched again.
func (s *Shared) LiveSheet(w http.ResponseWriter, r *http.Request, actor loom.Actor, topic string, page layout.Model, m adminview.PageModel, still ...templ.Component) error {
	attrs := ui.Live(r.URL.RequestURI(), topic)
	attrs["hx-trigger"] = "loom:live, every 10s"
	region := adminview.Region(RegionID, attrs, m.Parts...)
	if Wants(r, RegionID) {
		return s.Fragment(w, r, http.StatusOK, region)
	}
	m.Parts = append([]templ.Component{region}, still...)
	page.Topics = []string{topic}
	Reloading(r, &page, true)
	return s.Sheet(w, r, actor, http.StatusOK, page, m)
}

// BadConfirm is the error of a form in which the wrong name was typed.
func BadConfirm(title, name string) ui.FormErrors {
	return ui.NewFormErrors(title, []loom.FieldError{{Field: adminview.FieldConfirm, Message: "Type “" + name + "” exactly."}})
}

// Turned gives the links to the neighbours of a page of a list.
func Turned(label, base, next, prev string, filters ...string) ui.PaginationModel {
	m := ui.PaginationModel{Label: label}
	if next != "" {
		m.Next = route.Query(base, append(filters[:len(filters):len(filters)], "after", next)...)
	}
	if prev != "" {
		m.Prev = route.Query(base, append(filters[:len(filters):len(filters)], "before", prev)...)
	}
	return m
}

// PathNumber reads a number of the path. NotFound.
func PathNumber(r *http.Request, name, what string) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil || n <= 0 {
		return 0, loom.NewError(loom.NotFound, "There is no %s “%.40s”.", what, r.PathValue(name))
	}
	return n, nil
}

// Call is a call of the REST API as people type it.
func Call(label, method, path, body string) ui.JSONCall {
	curl := `curl -H "Authorization: Bearer $LOOM_TOKEN" `
	if method != http.MethodGet {
		curl += "-X " + method + " "
	}
	if body != "" {
		curl += "-H 'Content-Type: application/json' -d '" + strings.ReplaceAll(body, "'", `'\''`) + "' "
	}
	return ui.JSONCall{Label: label, Curl: curl + `"$LOOM_URL` + path + `"`}
}

// OfLimit is a quota for people, under the number that is used of it.
func OfLimit(quota int) string {
	if quota >= loom.Unlimited {
		return "no limit"
	}
	return "of " + strconv.Itoa(quota)
}

// UsedOf is how much of a quota is used, for people.
func UsedOf(n, quota int) string {
	if quota >= loom.Unlimited {
		return strconv.Itoa(n) + ", no limit"
	}
	return strconv.Itoa(n) + " of " + strconv.Itoa(quota)
}

// Opening is a button that opens a question in the dialog.
func Opening(label, about, href string, kind ui.ButtonKind) ui.ButtonModel {
	attrs := ui.OpensDialog(href)
	if about != "" {
		attrs["aria-label"] = about
	}
	return ui.ButtonModel{Label: label, Kind: kind, Small: true, Href: href, Attrs: attrs}
}

// Asking is an entry of a menu that asks in a dialog, or in a page without scripts, before it does something.
func Asking(label, icon, href string) ui.MenuItem {
	return ui.MenuItem{Label: label, Icon: icon, Href: href, Attrs: ui.OpensDialog(href)}
}

// Deleting is the last entry of a menu, which asks before it deletes.
func Deleting(href string) ui.MenuItem {
	item := Asking("Delete", "trash", href)
	item.Danger, item.Divider = true, true
	return item
}

// Field is a field of a form with its error.
func Field(m ui.FieldModel, errs ui.FormErrors) templ.Component {
	m.Error = errs.For(m.Name)
	return ui.Field(m)
}

// AnswerConfirm is accountConfirm with a status of its own.
func (s *Shared) AnswerConfirm(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m layout.Model, form templ.Component) error {
	if status == http.StatusOK {
		return s.Confirm(w, r, actor, m, form)
	}
	return s.Render(w, r, actor, status, m, accountview.ConfirmPage(m.Title, form))
}

// ExportsOf are the addresses of the whole list that a page shows a part of, as files;
// empty where the REST API has none.
func (s *Shared) ExportsOf(r *http.Request) (csv, json string) {
	d, ok := s.documentOf(r)
	if !ok || !d.List || len(d.Columns) == 0 {
		return "", ""
	}
	return s.ExportsAt(r.URL.EscapedPath(), r.URL.Query())
}

// ExportsAt are those of a list that another page shows a part of.
func (s *Shared) ExportsAt(page string, q url.Values) (csv, json string) {
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
	return route.Export(page, AsCSV), route.Export(page, AsAll)
}
