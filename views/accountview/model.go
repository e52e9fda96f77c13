// Package accountview holds the pages around the person who is signed in:
// sign-in, account, API tokens and sessions.
//
// It calls no use case; it shows what they return. A secret
// appears only in NewTokenModel, which is rendered once and never stored. A
// newcomer's usual mistake: giving a password field a value; ui.Field drops it.
package accountview

import (
	"time"

	"loom/app/account"
	"loom/app/loom"
	"loom/views/ui"
)

// LoginModel is the sign-in form.
type LoginModel struct {
	// Next is the local path to go to afterwards, "" for the start page.
	Next string
	User string
	// Tenant is shown in its field; with TenantHidden there is no field and the
	// server fills in the only tenant.
	Tenant       string
	TenantHidden bool
	// Only is the tenant that the server fills in, OtherHref leads to the form with
	// the tenant field; both "" where the field is shown.
	Only      string
	OtherHref string
	Keep      bool
	Errors    ui.FormErrors
	// Providers are the identity providers to sign in with.
	Providers []loom.IdentityProvider
	// Claims are what a provider says of somebody who belongs to no tenant.
	Claims loom.Claims
}

// TenantsModel is the choice of a tenant after a sign-in at an identity provider.
type TenantsModel struct {
	Provider loom.IdentityProvider
	Next     string
	Tenants  []string
}

// LeaveModel is a page that leads to another site by itself. The content policy keeps forms from
// doing so.
type LeaveModel struct{ Title, Text, URL, Label string }

// SignInModel is the page of how the user signs in.
type SignInModel struct {
	Now        time.Time
	User       string
	Role       string
	Groups     []loom.Group
	Identities []account.IdentityOf
	// Others are providers that the user is not connected with. HasPassword says that he can
	// sign in without them; Builtin that he is the built-in administrator.
	Others      []loom.IdentityProvider
	HasPassword bool
	Builtin     bool
}

// AccountModel is the account page: three forms, each with errors of its own.
type AccountModel struct {
	User, Role, Tenant string
	// Zone is the time zone, which is chosen among the preferences.
	Zone string

	DisplayName, Email string
	ProfileErrors      ui.FormErrors

	// Keys are SSH public keys to add, one per line, KeyRows those that are stored.
	Keys    string
	KeyRows []KeyRow
	// KeysError names the lines that are wrong.
	KeysError  string
	KeysErrors ui.FormErrors

	PasswordErrors ui.FormErrors
	EndTokens      bool
	// Provider is the identity provider of a user who has no password, "" for others.
	Provider string
}

// KeyRow is an SSH key, by which people tell it from others.
type KeyRow struct{ Name, Kind, Fingerprint string }

// PasswordModel is the form for a new password.
type PasswordModel struct {
	User string
	// Alone says that the form has a page of its own, from which Next, a local path, is
	// where to go; Required that the user gets to no other before.
	Alone    bool
	Next     string
	Required bool
	// EndTokens revokes the API tokens, too.
	EndTokens bool
	Errors    ui.FormErrors
}

func (m PasswordModel) width() string {
	if m.Alone {
		return "full"
	}
	return ""
}

func (m PasswordModel) kind() ui.ButtonKind {
	if m.Alone {
		return ui.Primary
	}
	return ui.Secondary
}

// TokensModel is the page of API tokens.
type TokensModel struct {
	Now    time.Time
	Tokens []loom.Token
	// New is the token that was just made, nil otherwise.
	New *NewTokenModel

	Name    string
	Scopes  []ui.Choice
	Expires []ui.Option
	// Until is the last day of a token, as it was typed.
	Until  string
	Errors ui.FormErrors
	// CSV and JSON give the whole list as files; empty for none.
	CSV, JSON string
}

// NewTokenModel shows a token's secret, this once, with a call that uses it.
type NewTokenModel struct {
	Name, Secret, Curl string
	// Note is said beneath, about the old secret of a token that was rotated.
	Note string
}

// SessionsModel is the list of sign-ins.
type SessionsModel struct {
	Now      time.Time
	Sessions []loom.Session
	// Present is the id of the one of this browser, which is not ended here but by signing out.
	Present string
	// CSV and JSON are the list as files; empty for none.
	CSV, JSON string
}

// Names of the fields of the forms; the handlers read them.
const (
	FieldNext        = "next"
	FieldUser        = "user"
	FieldPassword    = "password"
	FieldTenant      = "tenant"
	FieldKeep        = "keep"
	FieldDisplayName = "displayName"
	FieldEmail       = "email"
	FieldKeys        = "sshKeys"
	FieldRemoveKey   = "removeKey"
	FieldOldPassword = "oldPassword"
	FieldRepeat      = "repeat"
	FieldName        = "name"
	FieldScope       = "scopes"
	FieldExpires     = "expires"
	FieldUntil       = "until"
	FieldSession     = "session"
	FieldOthers      = "others"
	FieldEndTokens   = "endTokens"
	FieldProvider    = "provider"
)
