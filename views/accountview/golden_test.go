package accountview_test

import (
	"testing"
	"time"

	"github.com/a-h/templ"

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
	filled.Tokens = []accountview.TokenRow{{Name: "nightly", Prefix: "loom_nigh", Scopes: "read", Created: now.Add(-time.Hour), Expires: now.Add(24 * time.Hour),
		ExpiresSoon: true, LastUsed: now.Add(-time.Minute), LastAddress: "192.0.2.7", Revoke: "/account/tokens/1/revoke"}}
	revoke := accountview.RevokeForm(accountview.RevokeModel{Name: "nightly", Prefix: "loom_nigh", Action: "/account/tokens/1/revoke"})
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
		"sessions": accountview.SessionsPage(accountview.SessionsModel{Now: now, Others: true, Sessions: []accountview.SessionRow{
			{ID: "a1", Browser: "Firefox on Linux", Agent: "Mozilla", Address: "192.0.2.7", Created: now, LastUsed: now, Expires: now.Add(time.Hour), Present: true},
			{ID: "b2", Browser: "curl", Address: "192.0.2.8", Created: now, LastUsed: now, Expires: now.Add(time.Hour)},
		}}),
	})
}
