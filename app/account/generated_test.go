package account_test

import (
	"context"
	"errors"
	"testing"

	"loom/app/account"
	"loom/app/loom"
)

// changeOf gives what a new session of a user says of his password.
func (b bundle) changeOf(t *testing.T, tenant, user string, password loom.Secret) loom.PasswordChange {
	t.Helper()
	b.passwords[tenant+"/"+user] = password
	_, cookie := b.signIn(t, tenant, user)
	_, session, err := b.ActorBySession(b.ctx, cookie, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	return session.PasswordChange
}

// TestGeneratedPasswords: those of the first start may stay, those generated for others
// have to be changed, and chosen ones need nothing.
func TestGeneratedPasswords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, who := range []struct{ tenant, user string }{{"superadmin", "admin"}, {"demo", "admin"}, {"demo", "user"}} {
		if got := b.changeOf(t, who.tenant, who.user, b.passwords[who.tenant+"/"+who.user]); got != loom.PasswordAsked {
			t.Errorf("%v of the first start: %q", who, got)
		}
	}
	chosen := loom.NewSecret("four words in a row")
	made := func(_ loom.User, password loom.Secret, err error) (loom.Secret, error) { return password, err }
	for _, c := range []struct {
		what, tenant, user string
		want               loom.PasswordChange
		give               func() (loom.Secret, error)
	}{
		{"a new user", "demo", "ana", loom.PasswordRequired, func() (loom.Secret, error) {
			return made(b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ana"}))
		}},
		{"a new user with a chosen password", "demo", "ben", "", func() (loom.Secret, error) {
			_, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ben", Password: chosen})
			return chosen, err
		}},
		{"a reset", "demo", "ben", loom.PasswordRequired, func() (loom.Secret, error) { return b.ResetPassword(b.ctx, b.admin, "ben", false) }},
		{"a chosen one of an administrator", "demo", "ben", "", func() (loom.Secret, error) {
			_, err := b.UpdateUser(b.ctx, b.admin, "ben", account.UserChange{Password: &chosen})
			return chosen, err
		}},
		{"the administrator of a new tenant", "field", "admin", loom.PasswordRequired, func() (loom.Secret, error) {
			_, password, err := b.CreateTenantWithSignIn(b.ctx, b.super, account.TenantInput{Name: "field"})
			return password, err
		}},
		{"a new user of the command line", "demo", "carl", loom.PasswordRequired, func() (loom.Secret, error) { return b.CreateUserIn(b.ctx, "demo", "carl", loom.RoleUser) }},
		{"a reset on the command line", "demo", "admin", loom.PasswordRequired, func() (loom.Secret, error) { return b.SetPassword(b.ctx, "demo", "admin", loom.Secret{}) }},
		{"one's own change", "demo", "ana", "", func() (loom.Secret, error) {
			ana := b.user
			ana.User = "ana"
			return chosen, b.ChangePassword(b.ctx, ana, b.passwords["demo/ana"], chosen, loom.Secret{}, false)
		}},
	} {
		password, err := c.give()
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got := b.changeOf(t, c.tenant, c.user, password); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// TestEndTokens: a new password ends API tokens where that is asked for, and only there.
func TestEndTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	present := b.passwords["demo/user"]
	token := func() loom.Secret {
		t.Helper()
		_, secret, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: "ci", Scopes: []loom.Scope{loom.ScopeRead}})
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	works := func(secret loom.Secret) bool {
		_, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret, Address: "192.0.2.1"})
		return err == nil
	}
	own := func(text string) func(end bool) error {
		return func(end bool) error {
			fresh := loom.NewSecret(text)
			err := b.ChangePassword(b.ctx, b.user, present, fresh, loom.Secret{}, end)
			present = fresh
			return err
		}
	}
	reset := func(end bool) (err error) {
		present, err = b.ResetPassword(b.ctx, b.admin, "user", end)
		return err
	}
	for what, change := range map[string][2]func(end bool) error{
		"one's own change": {own("four words in a row"), own("another four words")}, "a reset": {reset, reset},
	} {
		secret := token()
		if err := change[0](false); err != nil || !works(secret) {
			t.Errorf("%s without the wish: %v, the token works: %v", what, err, works(secret))
		}
		if err := change[1](true); err != nil || works(secret) {
			t.Errorf("%s with the wish: %v, the token works: %v", what, err, works(secret))
		}
	}
	if n := b.count(t, `SELECT count(*) FROM audit WHERE kind = 'user' AND after->>'changed' = 'password and API tokens'`); n != 2 {
		t.Errorf("%d entries of the audit say that tokens ended, want 2", n)
	}
	if _, err := b.UpdateUser(b.ctx, b.admin, "user", account.UserChange{EndTokens: true}); fieldsOf(err) != "endTokens" {
		t.Errorf("tokens without a password: %v", err)
	}
}

// TestSignedInIsTold: whoever keeps generated passwords hears of their first use, and
// nothing of wrong ones.
func TestSignedInIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var told []string
	b.SignedIn = func(_ context.Context, tenant string, user loom.UserID) { told = append(told, tenant+"/"+string(user)) }
	unused := func() bool {
		t.Helper()
		unused, err := b.PasswordUnused(b.ctx, "demo", "user", b.passwords["demo/user"])
		if err != nil {
			t.Fatal(err)
		}
		return unused
	}
	b.try(t, "user", "wrong", "192.0.2.1", loom.Secret{})
	if len(told) != 0 || !unused() {
		t.Errorf("after a wrong password: %v, unused %v", told, unused())
	}
	b.signIn(t, "demo", "user")
	if len(told) != 1 || told[0] != "demo/user" || unused() {
		t.Errorf("after a sign-in: %v, unused %v", told, unused())
	}
	fresh, err := b.SetPassword(b.ctx, "demo", "user", loom.Secret{})
	if err != nil || unused() {
		t.Errorf("the old one after a reset: %v, unused %v", err, unused())
	}
	b.passwords["demo/user"] = fresh
	if !unused() {
		t.Error("nobody has signed in with the new one")
	}
	if _, err := b.PasswordUnused(b.ctx, "nowhere", "user", fresh); errors.Is(err, loom.NotFound) {
		t.Errorf("of a tenant that is gone: %v", err)
	}
}
