package page

import (
	"net/http"
	"regexp"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// leadToPassword sends whoever has to choose a new password to the form for it.
func (s *Shared) leadToPassword(w http.ResponseWriter, r *http.Request) {
	next := ""
	if r.Method == http.MethodGet && !httpx.IsFragment(r) {
		next = r.URL.RequestURI()
	}
	httpx.SeeOther(w, r, route.AccountPassword(route.Local(next, ""))) //nolint:errcheck // it returns none
}

// passwordNotice asks who signs in with a password of the first start to change it.
func passwordNotice(actor loom.Actor, session loom.Session) (ui.BannerModel, bool) {
	if session.PasswordChange != loom.PasswordAsked || actor.ActsAbroad() {
		return ui.BannerModel{}, false
	}
	return ui.BannerModel{Key: "password", Tone: ui.ToneRun, Text: "Your password was generated.",
		Action: "Choose your own", ActionHref: route.AccountPassword("")}, true
}

var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)

// WithoutPrivateKeys leaves out what was pasted by mistake: it must not come back
// in a page.
func WithoutPrivateKeys(text string) string { return privateKey.ReplaceAllString(text, "") }

// MadePassword shows a generated password, this once, with where to sign in.
func (s *Shared) MadePassword(r *http.Request, title, tenant, user string, password loom.Secret, back string) templ.Component {
	at := s.signInAddress(r, tenant)
	return adminview.Secret(adminview.SecretModel{
		Title: title, Warning: "Copy the password now. Loom shows it only once.", Back: back, Button: "I have copied the password",
		Facts: []ui.Def{{Term: "Sign in at", Value: ui.CopyText(at, "address")}, {Term: "Tenant", Text: tenant, Mono: true}, {Term: "User name", Text: user, Mono: true},
			{Term: "Password", Value: ui.CopyText(password.Reveal(), "password")}},
		All: "Sign in at: " + at + "\nTenant: " + tenant + "\nUser name: " + user + "\nPassword: " + password.Reveal() + "\n", What: "the sign-in",
	})
}
