package web

import (
	"net/http"
	"strconv"
	"time"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/accountview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// Headers by which static/js/session.js knows how a sign-in stands, and what to say.
const (
	headerLeft = "Loom-Session-Left"
	headerSaid = "Loom-Said"
)

func tellLeft(w http.ResponseWriter, left time.Duration) {
	w.Header().Set(headerLeft, strconv.Itoa(int(left.Seconds())))
}

// sessionShow says when the sign-in ends and offers to go on with it.
func (s *Server) sessionShow(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	_, session, err := s.Sessions.Actor(r)
	if err != nil {
		return err
	}
	tellLeft(w, session.Expires.Sub(s.now()))
	ends := ui.Relative(session.Expires, s.now()) + ", at " + ui.ViewerOf(r.Context()).In(session.Expires).Format("15:04 MST")
	if wants(r, dialogID) {
		return s.fragment(w, r, http.StatusOK, sharedview.SessionDialog(ends))
	}
	page := accountFrame("Your sign-in", route.AccountSessions())
	page.Crumbs = []ui.Crumb{{Label: "Account", Href: route.Account()}, {Label: "Sessions", Href: route.AccountSessions()}, {Label: "Your sign-in"}}
	return s.render(w, r, actor, http.StatusOK, page, sharedview.SessionPage(ends))
}

// sessionExtend prolongs the sign-in.
func (s *Server) sessionExtend(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	expires, err := s.Accounts.ExtendSession(r.Context(), actor, s.Sessions.Cookie(r))
	if err != nil {
		return err
	}
	said := "You stay signed in until " + ui.ViewerOf(r.Context()).Moment(expires) + "."
	if httpx.IsFragment(r) {
		tellLeft(w, expires.Sub(s.now()))
		w.Header().Set(headerSaid, said)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.say(w, r, route.AccountSessionExtend(), httpx.Flash{Tone: "ok", Text: said})
}

// signInDialog is the sign-in form of a page whose sign-in ended meanwhile.
func (s *Server) signInDialog(w http.ResponseWriter, r *http.Request) error {
	only, err := s.Accounts.OnlyTenant(r.Context())
	if err != nil {
		return err
	}
	m := sharedview.SignInModel{User: repeated(r.URL.Query().Get("user")), TenantHidden: only != ""}
	return s.showSignIn(w, r, http.StatusOK, m)
}

// showSignIn answers with the content of the dialog, and those who come here without
// one with the page.
func (s *Server) showSignIn(w http.ResponseWriter, r *http.Request, status int, m sharedview.SignInModel) error {
	if !httpx.IsFragment(r) {
		if r.Method == http.MethodGet {
			return httpx.SeeOther(w, r, route.Login(""))
		}
		bare := layout.BareModel{Title: "Sign in", Theme: theme(r), Version: s.Version}
		return httpx.Render(w, r, status, layout.WrapBare(bare, accountview.LoginPage(accountview.LoginModel{User: m.User, Tenant: m.Tenant, TenantHidden: m.TenantHidden, Errors: m.Errors})))
	}
	return httpx.Render(w, r, status, sharedview.SignInDialog(m))
}

// signInAgain signs in from the dialog.
func (s *Server) signInAgain(w http.ResponseWriter, r *http.Request) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	user, tenant := f.Get(accountview.FieldUser), f.Get(accountview.FieldTenant)
	m := sharedview.SignInModel{User: repeated(user), Tenant: repeated(tenant), TenantHidden: !f.Has(accountview.FieldTenant)}
	if m.TenantHidden {
		if tenant, err = s.Accounts.OnlyTenant(r.Context()); err != nil {
			return err
		}
		m.TenantHidden = tenant != ""
	}
	if errs := loginErrors(user, tenant, f.Get(accountview.FieldPassword)); len(errs) > 0 {
		m.Errors = ui.NewFormErrors("You are not signed in yet.", errs)
		return s.showSignIn(w, r, http.StatusUnprocessableEntity, m)
	}
	actor, cookie, expires, err := s.Accounts.SignIn(r.Context(), account.SignInInput{
		Tenant: tenant, User: user, Password: loom.NewSecret(f.Get(accountview.FieldPassword)),
		Address: httpx.Address(r), Agent: r.UserAgent(), Previous: s.Sessions.Cookie(r), Device: s.Sessions.Device(r),
	})
	if e := loom.AsError(err); err != nil && (e.Kind == loom.Unauthenticated || e.Kind == loom.Throttled) {
		accountRetryAfter(w, e)
		m.Errors = ui.FormErrors{Title: e.Message}
		return s.showSignIn(w, r, httpx.PageStatus(e.Kind), m)
	}
	if err != nil {
		return err
	}
	s.Sessions.SignedIn(w, cookie, expires, false)
	s.Sessions.Know(w, r, actor)
	if !httpx.IsFragment(r) {
		return httpx.SeeOther(w, r, route.Home())
	}
	tellLeft(w, expires.Sub(s.now()))
	w.Header().Set(headerSaid, "You are signed in; do again what you did last.")
	w.WriteHeader(http.StatusNoContent)
	return nil
}
