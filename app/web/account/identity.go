package account

import (
	"net/http"
	"slices"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/accountview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// loginAt sends somebody to an identity provider.
func (s *Server) loginAt(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	m := accountview.LoginModel{Next: route.Local(q.Get(accountview.FieldNext), ""), Tenant: repeated(q.Get(accountview.FieldTenant))}
	at, cookie, err := s.Accounts.BeginAttempt(r.Context(), r.PathValue("provider"), account.Attempt{Next: m.Next, Tenant: m.Tenant})
	if err != nil {
		return s.attemptRefused(w, r, m, err)
	}
	s.Sessions.Attempt(w, r, cookie)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, at, http.StatusSeeOther)
	return nil
}

// attemptRefused shows the sign-in form with why an identity provider signed nobody in.
func (s *Server) attemptRefused(w http.ResponseWriter, r *http.Request, m accountview.LoginModel, err error) error {
	e := loom.AsError(err)
	switch e.Kind {
	case loom.Invalid, loom.Forbidden, loom.Conflict, loom.NotFound, loom.Throttled, loom.Unavailable:
	default:
		return err
	}
	accountRetryAfter(w, e)
	m.Errors = ui.FormErrors{Title: e.Message}
	status := httpx.PageStatus(e.Kind)
	if e.Kind == loom.Invalid {
		status = http.StatusBadRequest
	}
	only, err := s.Accounts.OnlyTenant(r.Context())
	if err != nil {
		return err
	}
	if only != "" && m.Tenant == "" {
		m.TenantHidden, m.Only = true, only
	}
	return s.loginPage(w, r, status, m)
}

// loginBack signs somebody in who comes back from an identity provider.
func (s *Server) loginBack(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	names, attempts := s.Sessions.Attempts(r)
	done, err := s.Accounts.FinishAttempt(r.Context(), account.ProviderAnswer{
		Provider: r.PathValue("provider"), State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Refused: q.Get("error"),
		Attempts: attempts, Session: s.Sessions.Cookie(r), Address: httpx.Address(r), Agent: r.UserAgent(),
	})
	if done.Used >= 0 {
		s.Sessions.EndAttempt(w, names[done.Used])
	}
	connects := done.Connect != (loom.Account{})
	switch {
	case err != nil && connects && loom.AsError(err).Kind != loom.Internal:
		return s.Say(w, r, route.AccountSignIn(), httpx.Flash{Tone: "bad", Text: loom.AsError(err).Message})
	case err != nil:
		return s.attemptRefused(w, r, accountview.LoginModel{Next: route.Local(done.Next, ""), Tenant: done.Tenant, Claims: done.Claims}, err)
	case connects:
		return s.Say(w, r, route.AccountSignIn(), httpx.Flash{Tone: "ok", Text: "Connected with " + done.Provider.Name + "."})
	case len(done.Tenants) > 0:
		bare := layout.BareModel{Title: "Choose a tenant", Theme: page.Theme(r), Version: s.Version}
		return httpx.Render(w, r, http.StatusOK, layout.WrapBare(bare, accountview.TenantsPage(accountview.TenantsModel{Provider: done.Provider, Next: done.Next, Tenants: done.Tenants})))
	}
	s.Sessions.SignedIn(w, done.Cookie, done.Expires, false)
	return httpx.SeeOther(w, r, route.Local(done.Next, route.Home()))
}

// loginEnded hears from an identity provider that a sign-in ended there.
func (s *Server) loginEnded(w http.ResponseWriter, r *http.Request) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := s.Accounts.ProviderLogout(r.Context(), r.PathValue("provider"), f.Get("logout_token")); err != nil {
		if loom.AsError(err).Kind != loom.Invalid {
			return err
		}
		http.Error(w, "The logout token was not taken.", http.StatusBadRequest)
		return nil
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// leavePage leads to another site.
func (s *Server) leavePage(w http.ResponseWriter, r *http.Request, m accountview.LeaveModel) error {
	w.Header().Set("Refresh", "0; url="+m.URL)
	w.Header().Set("Cache-Control", "no-store")
	bare := layout.BareModel{Title: m.Title, Theme: page.Theme(r), Version: s.Version}
	return httpx.Render(w, r, http.StatusOK, layout.WrapBare(bare, accountview.LeavePage(m)))
}

// accountSignIn shows how the user signs in.
func (s *Server) accountSignIn(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m := accountview.SignInModel{Now: s.Now(), User: string(actor.User), Role: actor.RoleWords(), Builtin: actor.User == loom.AdminUser}
	var err error
	if m.Identities, err = s.Accounts.Identities(r.Context(), actor, actor.User); err != nil {
		return err
	}
	if m.Groups, err = s.Accounts.GroupsOf(r.Context(), actor, actor.User); err != nil {
		return err
	}
	if m.HasPassword, err = s.Accounts.HasPassword(r.Context(), actor); err != nil {
		return err
	}
	providers, err := s.Accounts.SignInProviders(r.Context(), actor.TenantName)
	if err != nil {
		return err
	}
	m.Others = slices.DeleteFunc(providers, func(p loom.IdentityProvider) bool {
		return slices.ContainsFunc(m.Identities, func(i account.IdentityOf) bool { return i.Provider == p.ID })
	})
	return s.Render(w, r, actor, http.StatusOK, page.AccountFrame("Sign-in", route.AccountSignIn()), accountview.SignInPage(m))
}

// accountConnect sends the user to an identity provider, to sign in with it from then on.
func (s *Server) accountConnect(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	if actor.ActsAsAnother() {
		return loom.NewError(loom.Forbidden, "You act as somebody else and cannot connect an account for them.")
	}
	at, cookie, err := s.Accounts.BeginAttempt(r.Context(), f.Get(accountview.FieldProvider), account.Attempt{Connect: actor.Account()})
	if err != nil {
		return err
	}
	s.Sessions.Attempt(w, r, cookie)
	return s.leavePage(w, r, accountview.LeaveModel{Title: "Connect an account", Text: "Sign in with the account to connect.", URL: at, Label: "Continue"})
}

func (s *Server) accountDisconnect(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	if err := s.Accounts.Disconnect(r.Context(), actor, f.Get(accountview.FieldProvider)); err != nil {
		return err
	}
	return s.Say(w, r, route.AccountSignIn(), httpx.Flash{Tone: "ok", Text: "Disconnected."})
}
