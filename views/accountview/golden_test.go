package accountview_test

import (
	"testing"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/testkit/golden"
	"loom/views/accountview"
	"loom/views/ui"
)

var now = time.Date(2026, time.June, 9, 14, 0, 0, 0, time.UTC)

func TestGolden(t *testing.T) {
	t.Parallel()
	errors := ui.FormErrors{Title: "The profile was not saved.", Items: []ui.FormError{{Field: accountview.FieldEmail, FieldID: "f-email", Message: "This is no email address."}}}
	tokens := accountview.TokensModel{
		Now: now, Scopes: []ui.Choice{{Value: "read", Label: "read", Checked: true}, {Value: "catalog:write", Label: "catalog:write", WhyNot: "For administrators only."}},
		Expires: []ui.Option{{Value: "30", Label: "30 days", Selected: true}},
	}
	filled := tokens
	filled.New = &accountview.NewTokenModel{Name: "laptop", Secret: "loom_abc", Curl: "curl …"}
	filled.Tokens = []loom.Token{{ID: 1, Name: "nightly", Prefix: "loom_nigh", Scopes: []loom.Scope{loom.ScopeRead}, Created: now.Add(-time.Hour), Expires: now.Add(24 * time.Hour),
		LastUsed: now.Add(-time.Minute), LastAddress: "192.0.2.7"}}
	revoke := accountview.RevokeForm(filled.Tokens[0])
	golden.HTML(t, map[string]templ.Component{
		"password": accountview.PasswordPage(accountview.PasswordModel{User: "ana", Alone: true, Next: "/clusters", Required: true, Errors: ui.FormErrors{
			Title: "The password was not changed.", Items: []ui.FormError{{Field: accountview.FieldPassword, FieldID: "f-password", Message: "This is one of the most common passwords."}}}}),
		"login":        accountview.LoginPage(accountview.LoginModel{Next: "/clusters", TenantHidden: true, OtherHref: "/login?other=1"}),
		"login-wrong":  accountview.LoginPage(accountview.LoginModel{User: "ana", Tenant: "demo", Keep: true, Errors: ui.FormErrors{Title: "The user name, password or tenant is wrong."}}),
		"account":      accountview.AccountPage(accountview.AccountModel{User: "ana", Role: "user", Tenant: "demo", DisplayName: "Ana <b>", Email: "x", Keys: "ssh-ed25519 AAAA", ProfileErrors: errors}),
		"tokens":       accountview.TokensPage(filled),
		"tokens-empty": accountview.TokensPage(tokens),
		"revoke":       accountview.ConfirmPage("Revoke token nightly", revoke),
		"revoke-box":   accountview.ConfirmDialog("Revoke token nightly", revoke),
		"sessions": accountview.SessionsPage(accountview.SessionsModel{Now: now, Present: "a1", Sessions: []loom.Session{
			{ID: "a1", Agent: "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", Address: "192.0.2.7", Created: now, LastUsed: now, Expires: now.Add(time.Hour)},
			{ID: "b2", Agent: "curl/8", Address: "192.0.2.8", Created: now, LastUsed: now, Expires: now.Add(time.Hour)},
		}}),
	})
}
