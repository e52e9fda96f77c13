package web

import (
	"net/http"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/accountview"
	"loom/views/layout"
	"loom/views/route"
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
	f, err := accountForm(w, r)
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
		errs = append(errs, loom.FieldError{Field: accountview.FieldUser, Message: "Give your user name."})
	}
	if password == "" {
		errs = append(errs, loom.FieldError{Field: accountview.FieldPassword, Message: "Give your password."})
	}
	if tenant == "" {
		errs = append(errs, loom.FieldError{Field: accountview.FieldTenant, Message: "Give the name of your tenant."})
	}
	return errs
}

func (s *Server) loginPage(w http.ResponseWriter, r *http.Request, status int, m accountview.LoginModel) error {
	if m.TenantHidden {
		m.OtherHref = route.Query(route.Login(m.Next), paramOther, "1")
	}
	bare := layout.BareModel{Title: "Sign in", Theme: theme(r), Version: s.Version}
	return httpx.Render(w, r, status, layout.WrapBare(bare, accountview.LoginPage(m)))
}

// logout ends the session. Clear-Site-Data leaves cookies alone, since the theme
// is one and stays; that of the session is removed by itself.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	if err := s.Sessions.SignOut(w, r); err != nil {
		return err
	}
	w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	return httpx.SeeOther(w, r, route.Login(""))
}
