package web

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/accountview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// accountForm reads the fields of a form.
func accountForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	httpx.LimitBody(w, r)
	if err := r.ParseForm(); err != nil {
		return nil, httpx.BodyError(err, "The form could not be read.")
	}
	return r.PostForm, nil
}

// accountRetryAfter tells programs too how long to wait, for errors that are
// shown with their form and not by the wrapper.
func accountRetryAfter(w http.ResponseWriter, e *loom.Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds()+0.999)))
	}
}

// accountErrors turns the errors of a form into what its page shows, with the status
// of the answer. ok is false for an error that belongs to no form.
func accountErrors(err error, title string) (errs ui.FormErrors, status int, ok bool) {
	e := loom.AsError(err)
	switch e.Kind {
	case loom.Invalid, loom.Conflict, loom.Throttled:
	default:
		return errs, 0, false
	}
	errs = ui.NewFormErrors(title, e.Fields)
	if len(e.Fields) == 0 {
		errs.Items = []ui.FormError{{Message: e.Message}}
	}
	return errs, httpx.PageStatus(e.Kind), true
}

// accountConfirm answers with a question: in the dialog for a link that opens one,
// as a page else.
func (s *Server) accountConfirm(w http.ResponseWriter, r *http.Request, actor loom.Actor, m layout.Model, form templ.Component) error {
	if httpx.IsFragment(r) && r.Header.Get("HX-Target") == "dialog" {
		return s.fragment(w, r, http.StatusOK, accountview.ConfirmDialog(m.Title, form))
	}
	return s.render(w, r, actor, http.StatusOK, m, accountview.ConfirmPage(m.Title, form))
}

func accountFrame(title, here string) layout.Model {
	m := layout.Model{Title: title, Section: "Account", Area: layout.AreaAccount, Here: here}
	if here != route.Account() {
		m.Crumbs = []ui.Crumb{{Label: "Account", Href: route.Account()}, {Label: title}}
	}
	return m
}
