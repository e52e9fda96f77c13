package account

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/accountview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// paramOther asks for the tenant field where there is only one tenant to sign in
// to, for superadmins.
const paramOther = "other"

// loginForm shows the sign-in page; who is signed in goes on at once.
func (s *Server) loginForm(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	next := route.Local(q.Get(accountview.FieldNext), "")
	_, _, err := s.Sessions.Actor(r)
	if err == nil {
		return httpx.SeeOther(w, r, route.Local(next, route.Home()))
	}
	if loom.AsError(err).Kind != loom.Unauthenticated || httpx.MustChangePassword(err) {
		return err
	}
	m := accountview.LoginModel{Next: next, Tenant: repeated(q.Get(accountview.FieldTenant))}
	only, err := s.Accounts.OnlyTenant(r.Context())
	if err != nil {
		return err
	}
	if only != "" && m.Tenant == "" && q.Get(paramOther) == "" {
		m.TenantHidden, m.Only = true, only
	}
	return s.loginPage(w, r, http.StatusOK, m)
}

// login signs in. A form without a tenant field means the only tenant.
func (s *Server) login(w http.ResponseWriter, r *http.Request) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	user, tenant := f.Get(accountview.FieldUser), f.Get(accountview.FieldTenant)
	m := accountview.LoginModel{
		Next: route.Local(f.Get(accountview.FieldNext), ""), User: repeated(user), Tenant: repeated(tenant),
		TenantHidden: !f.Has(accountview.FieldTenant), Keep: f.Get(accountview.FieldKeep) == "true",
	}
	if m.TenantHidden {
		if tenant, err = s.Accounts.OnlyTenant(r.Context()); err != nil {
			return err
		}
		m.TenantHidden, m.Only = tenant != "", tenant
	}
	if errs := loginErrors(user, tenant, f.Get(accountview.FieldPassword)); len(errs) > 0 {
		m.Errors = ui.NewFormErrors("You are not signed in yet.", errs)
		return s.loginPage(w, r, http.StatusUnprocessableEntity, m)
	}
	actor, cookie, expires, err := s.Accounts.SignIn(r.Context(), account.SignInInput{
		Tenant: tenant, User: user, Password: loom.NewSecret(f.Get(accountview.FieldPassword)), Keep: m.Keep,
		Address: httpx.Address(r), Agent: r.UserAgent(), Previous: s.Sessions.Cookie(r), Device: s.Sessions.Device(r),
	})
	if err != nil {
		return s.loginRefused(w, r, m, err)
	}
	s.Sessions.SignedIn(w, cookie, expires, m.Keep)
	s.Sessions.Know(w, r, actor)
	return httpx.SeeOther(w, r, route.Local(m.Next, route.Home()))
}

// loginRefused shows the form again: the same words whatever was wrong, or how
// long to wait.
func (s *Server) loginRefused(w http.ResponseWriter, r *http.Request, m accountview.LoginModel, err error) error {
	e := loom.AsError(err)
	if e.Kind != loom.Unauthenticated && e.Kind != loom.Throttled {
		return err
	}
	accountRetryAfter(w, e)
	m.Errors = ui.FormErrors{Title: e.Message}
	return s.loginPage(w, r, httpx.PageStatus(e.Kind), m)
}

// maxRepeated is the longest name that a sign-in form repeats, in bytes: nobody has a longer
// one, and whoever sends it is not known.
const maxRepeated = 255

// repeated is a name as a sign-in form shows it again: empty if it is too long.
func repeated(name string) string {
	if len(name) > maxRepeated {
		return ""
	}
	return name
}

func loginErrors(user, tenant, password string) []loom.FieldError {
	var errs []loom.FieldError
	if user == "" {
		errs = append(errs, loom.FieldError{Field: accountview.FieldUser, Message: "Enter your user name."})
	}
	if password == "" {
		errs = append(errs, loom.FieldError{Field: accountview.FieldPassword, Message: "Enter your password."})
	}
	if tenant == "" {
		errs = append(errs, loom.FieldError{Field: accountview.FieldTenant, Message: "Enter the name of your tenant."})
	}
	return errs
}

func (s *Server) loginPage(w http.ResponseWriter, r *http.Request, status int, m accountview.LoginModel) error {
	tenant := m.Tenant
	if m.TenantHidden {
		tenant = m.Only
	}
	providers, err := s.Accounts.SignInProviders(r.Context(), tenant)
	if err != nil {
		return err
	}
	m.Providers = providers
	if m.TenantHidden {
		m.OtherHref = route.Query(route.Login(m.Next), paramOther, "1")
	}
	bare := layout.BareModel{Title: "Sign in", Theme: page.Theme(r), Version: s.Version}
	return httpx.Render(w, r, status, layout.WrapBare(bare, accountview.LoginPage(m)))
}

// logout ends the session. Clear-Site-Data leaves cookies alone, since the theme
// is one and stays; that of the session is removed by itself.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	leave, err := s.Sessions.SignOut(w, r)
	if err != nil {
		return err
	}
	w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	if leave != "" {
		return s.leavePage(w, r, accountview.LeaveModel{Title: "Signed out of Loom", Text: "You are signed out of Loom. Your organization signs you out next.", URL: leave, Label: "Continue"})
	}
	return httpx.SeeOther(w, r, route.Login(""))
}

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
	tellLeft(w, session.Expires.Sub(s.Now()))
	provider, err := s.Accounts.ProviderOfSession(r.Context(), actor, s.Sessions.Cookie(r))
	if err != nil {
		return err
	}
	ends := ui.Relative(session.Expires, s.Now()) + ", at " + ui.ViewerOf(r.Context()).In(session.Expires).Format("15:04 MST")
	if page.Wants(r, page.DialogID) {
		return s.Fragment(w, r, http.StatusOK, sharedview.SessionDialog(ends, provider))
	}
	page := page.AccountFrame("Your sign-in", route.AccountSessions())
	page.Crumbs = []ui.Crumb{{Label: "Account", Href: route.Account()}, {Label: "Sessions", Href: route.AccountSessions()}, {Label: "Your sign-in"}}
	return s.Render(w, r, actor, http.StatusOK, page, sharedview.SessionPage(ends, provider))
}

// sessionExtend prolongs the sign-in.
func (s *Server) sessionExtend(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	expires, err := s.Accounts.ExtendSession(r.Context(), actor, s.Sessions.Cookie(r))
	if err != nil {
		return err
	}
	said := "You stay signed in until " + ui.ViewerOf(r.Context()).Moment(expires) + "."
	if httpx.IsFragment(r) {
		tellLeft(w, expires.Sub(s.Now()))
		w.Header().Set(headerSaid, said)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.Say(w, r, route.AccountSessionExtend(), httpx.Flash{Tone: "ok", Text: said})
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
		bare := layout.BareModel{Title: "Sign in", Theme: page.Theme(r), Version: s.Version}
		return httpx.Render(w, r, status, layout.WrapBare(bare, accountview.LoginPage(accountview.LoginModel{User: m.User, Tenant: m.Tenant, TenantHidden: m.TenantHidden, Errors: m.Errors})))
	}
	only, err := s.Accounts.OnlyTenant(r.Context())
	if err != nil {
		return err
	}
	if m.Providers, err = s.Accounts.SignInProviders(r.Context(), cmp.Or(m.Tenant, only)); err != nil {
		return err
	}
	return httpx.Render(w, r, status, sharedview.SignInDialog(m))
}

// signInAgain signs in from the dialog.
func (s *Server) signInAgain(w http.ResponseWriter, r *http.Request) error {
	f, err := page.ReadForm(w, r)
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
	tellLeft(w, expires.Sub(s.Now()))
	w.Header().Set(headerSaid, "You are signed in. Repeat your last step.")
	w.WriteHeader(http.StatusNoContent)
	return nil
}
