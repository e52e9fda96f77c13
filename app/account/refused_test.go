package account_test

import (
	"testing"

	"loom/app/account"
	"loom/app/loom"
)

// TestRefusedSignInsAreRecorded: of users that are there, and not each single one.
func TestRefusedSignInsAreRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	wrong := func(user string) {
		t.Helper()
		_, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: user, Password: loom.NewSecret("not the password"), Address: "192.0.2.9"})
		if err == nil {
			t.Fatal("signed in")
		}
	}
	wrong("user")
	wrong("user")
	wrong("nobody")
	if n := b.count(t, `SELECT count(*) FROM audit WHERE result = 'refused'`); n != 1 {
		t.Errorf("%d entries", n)
	}
	if n := b.count(t, `SELECT count(*) FROM audit WHERE result = 'refused' AND verb = 'sign_in' AND kind = 'session' AND actor = 'user' AND object = 'user'
		AND address = '192.0.2.9' AND tenant_id = $1 AND after = '{"reason": "wrong password"}'`, b.user.Tenant); n != 1 {
		t.Error("the entry is another one")
	}
	b.exec(t, `UPDATE audit SET created_at = now() - interval '11 minutes'`)
	b.exec(t, `UPDATE users SET disabled = true WHERE id = 'user'`)
	_, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: "user", Password: b.passwords["demo/user"]})
	if err == nil || b.count(t, `SELECT count(*) FROM audit WHERE after = '{"reason": "the user is disabled"}'`) != 1 {
		t.Errorf("a disabled user: %v", err)
	}
}
