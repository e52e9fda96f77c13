package account

import (
	"net/http"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/accountview"
	"loom/views/layout"
	"loom/views/route"
)

// accountPassword is the form for a new password on a page of its own.
func (s *Server) accountPassword(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m, err := s.passwordModel(r, actor, r.URL.Query().Get(accountview.FieldNext))
	if err != nil {
		return err
	}
	return s.passwordPage(w, r, http.StatusOK, m)
}

func (s *Server) passwordModel(r *http.Request, actor loom.Actor, next string) (accountview.PasswordModel, error) {
	_, session, err := s.Sessions.ActorChanging(r)
	return accountview.PasswordModel{
		User: string(actor.User), Alone: true, Next: route.Local(next, route.Home()), Required: session.PasswordChange == loom.PasswordRequired,
	}, err
}

func (s *Server) passwordPage(w http.ResponseWriter, r *http.Request, status int, m accountview.PasswordModel) error {
	bare := layout.BareModel{Title: "New password", Theme: page.Theme(r), Version: s.Version}
	return httpx.Render(w, r, status, layout.WrapBare(bare, accountview.PasswordPage(m)))
}

// accountPasswordSave changes one's own password, on the page of the account or on that
// of the form alone.
func (s *Server) accountPasswordSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	m, err := s.passwordModel(r, actor, f.Get(accountview.FieldNext))
	if err != nil {
		return err
	}
	fresh := f.Get(accountview.FieldPassword)
	m.EndTokens = f.Get(accountview.FieldEndTokens) == "true"
	if fresh != f.Get(accountview.FieldRepeat) {
		err = loom.InvalidFields([]loom.FieldError{{Field: accountview.FieldRepeat, Message: "The two new passwords differ; type the same twice."}})
	} else {
		old := loom.NewSecret(f.Get(accountview.FieldOldPassword))
		err = s.Accounts.ChangePassword(r.Context(), actor, old, loom.NewSecret(fresh), s.Sessions.Cookie(r), m.EndTokens)
	}
	alone := m.Required || f.Has(accountview.FieldNext)
	if errs, status, ok := page.FormErrors(err, "The password was not changed."); ok {
		accountRetryAfter(w, loom.AsError(err))
		m.Errors = errs
		if alone {
			return s.passwordPage(w, r, status, m)
		}
		return s.accountPage(w, r, actor, status, func(page *accountview.AccountModel) { page.PasswordErrors, page.EndTokens = errs, m.EndTokens })
	}
	if err != nil {
		return err
	}
	if !actor.ActsAbroad() {
		s.Sessions.Know(w, r, actor) // a new password forgets all browsers
	}
	said := httpx.Flash{Tone: "ok", Text: "Changed your password. You are signed out everywhere else."}
	if m.EndTokens {
		said.Text = "Changed your password. You are signed out everywhere else, and your API tokens are revoked."
	}
	if alone {
		return s.Say(w, r, m.Next, said)
	}
	return s.Say(w, r, route.Account(), said)
}
