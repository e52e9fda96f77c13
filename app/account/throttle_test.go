package account_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/loom"
)

// try signs in at demo and gives the kind of what came of it, "" for a session.
func (b bundle) try(t *testing.T, user, password, address string, device loom.Secret) loom.Kind {
	t.Helper()
	_, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: user, Password: loom.NewSecret(password), Address: address, Device: device})
	if err == nil {
		return ""
	}
	return loom.AsError(err).Kind
}

// ahead lets no wait end while the test looks.
func (b bundle) ahead(t *testing.T) {
	t.Helper()
	b.exec(t, `UPDATE sign_in_failures SET last_at = now() + interval '1 hour'`)
}

// fill counts wrong passwords as if they had been tried.
func (b bundle) fill(t *testing.T, subjects string, failures int) {
	t.Helper()
	b.exec(t, `UPDATE sign_in_failures SET failures = $2, last_at = now() + interval '1 hour' WHERE subject LIKE $1`, subjects, failures)
}

// device gives the cookie by which a browser of a user is known.
func (b bundle) device(t *testing.T, actor loom.Actor) loom.Secret {
	t.Helper()
	cookie, err := b.Device(b.ctx, actor)
	if err != nil || cookie.IsZero() {
		t.Fatalf("no device cookie: %v", err)
	}
	return cookie
}

// TestStrangersLockNobodyOut: fifty wrong passwords for fifty names from one address, and
// five for one name, hold up that address and nobody else.
func TestStrangersLockNobodyOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const stranger = "203.0.113.66"
	for range 5 {
		if kind := b.try(t, "user", "wrong", stranger, loom.Secret{}); kind != loom.Unauthenticated {
			t.Fatalf("a wrong password: %s", kind)
		}
	}
	for i := range 45 {
		if kind := b.try(t, fmt.Sprintf("name-%d", i), "wrong", stranger, loom.Secret{}); kind != loom.Unauthenticated {
			t.Fatalf("wrong name %d: %s", i, kind)
		}
	}
	b.ahead(t)
	for _, user := range []string{"user", "admin", "nobody"} {
		if kind := b.try(t, user, "wrong", stranger, loom.Secret{}); kind != loom.Throttled {
			t.Errorf("the stranger goes on with %s: %q", user, kind)
		}
	}
	for _, user := range []string{"user", "admin"} {
		if kind := b.try(t, user, b.passwords["demo/"+user].Reveal(), "192.0.2.7", loom.Secret{}); kind != "" {
			t.Errorf("%s is held up elsewhere: %q", user, kind)
		}
	}
}

// TestWaitsByPlace: after five wrong passwords a name waits at that address only, an IPv6
// address being its /64; after a hundred within ten minutes the name waits everywhere.
func TestWaitsByPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	right := b.passwords["demo/user"].Reveal()
	for i := range 5 {
		if kind := b.try(t, "user", "wrong", fmt.Sprintf("2001:db8:1:2::%x", i+1), loom.Secret{}); kind != loom.Unauthenticated {
			t.Fatalf("a wrong password: %s", kind)
		}
	}
	b.ahead(t)
	for address, want := range map[string]loom.Kind{
		"2001:db8:1:2:ffff::9": loom.Throttled, "2001:db8:1:3::1": "", "192.0.2.8": "", "": "",
	} {
		if kind := b.try(t, "user", right, address, loom.Secret{}); kind != want {
			t.Errorf("from %q: %q, want %q", address, kind, want)
		}
	}

	b = setup(t)
	right = b.passwords["demo/user"].Reveal()
	if kind := b.try(t, "user", "wrong", "192.0.2.1", loom.Secret{}); kind != loom.Unauthenticated {
		t.Fatal(kind)
	}
	known, _ := b.signIn(t, "demo", "user")
	cookie := b.device(t, known)
	b.exec(t, `UPDATE sign_in_failures SET failures = 99 WHERE subject LIKE 'name:%'`)
	if kind := b.try(t, "user", "wrong", "192.0.2.2", loom.Secret{}); kind != loom.Unauthenticated {
		t.Errorf("the hundredth: %q", kind)
	}
	b.ahead(t)
	if kind := b.try(t, "user", right, "192.0.2.3", loom.Secret{}); kind != loom.Throttled {
		t.Errorf("the 101st, from anywhere: %q", kind)
	}
	if kind := b.try(t, "admin", b.passwords["demo/admin"].Reveal(), "192.0.2.3", loom.Secret{}); kind != "" {
		t.Errorf("another name: %q", kind)
	}
	if kind := b.try(t, "user", right, "192.0.2.3", cookie); kind != "" {
		t.Errorf("the known browser: %q", kind)
	}
	b.exec(t, `UPDATE sign_in_failures SET since = since - interval '11 minutes' WHERE subject LIKE 'name:%'`)
	if kind := b.try(t, "user", right, "192.0.2.4", loom.Secret{}); kind != "" {
		t.Errorf("after ten minutes: %q", kind)
	}
}

// TestUnknownNamesWaitAlike: what waits does not tell which names there are.
func TestUnknownNamesWaitAlike(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, user := range []string{"user", "nobody"} {
		for range 5 {
			if kind := b.try(t, user, "wrong", "192.0.2.1", loom.Secret{}); kind != loom.Unauthenticated {
				t.Errorf("%s: %q", user, kind)
			}
		}
		b.ahead(t)
		if kind := b.try(t, user, "wrong", "192.0.2.1", loom.Secret{}); kind != loom.Throttled {
			t.Errorf("the sixth of %s: %q", user, kind)
		}
	}
	if n := b.count(t, `SELECT count(DISTINCT failures) FROM sign_in_failures WHERE subject LIKE 'pair:%'`); n != 1 {
		t.Errorf("%d different counts", n)
	}
}

// TestDeviceCookie: a browser that signed in before counts by itself, for its name only,
// for 180 days and as long as the password is the same; the cookie gives nothing else.
func TestDeviceCookie(t *testing.T) {
	t.Parallel()
	b := setup(t)
	right := b.passwords["demo/user"].Reveal()
	known, session := b.signIn(t, "demo", "user")
	cookie := b.device(t, known)
	admin, _ := b.signIn(t, "demo", "admin")
	others := b.device(t, admin)
	for range 5 {
		b.try(t, "user", "wrong", "192.0.2.1", loom.Secret{})
	}
	b.ahead(t)
	open, err := base64.RawURLEncoding.DecodeString(cookie.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := b.ring.OpenBytes("device cookie", open)
	if err != nil {
		t.Fatal(err)
	}
	// aged is the cookie as it would be after some time.
	aged := func(age time.Duration) loom.Secret {
		var fields map[string]any
		if err := json.Unmarshal(plain, &fields); err != nil {
			t.Fatal(err)
		}
		fields["made"] = time.Now().Add(-age).Unix()
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := b.ring.SealBytes("device cookie", text)
		if err != nil {
			t.Fatal(err)
		}
		return loom.NewSecret(base64.RawURLEncoding.EncodeToString(sealed))
	}
	forged := []byte(cookie.Reveal())
	forged[len(forged)/2] ^= 1
	for name, c := range map[string]struct {
		device loom.Secret
		known  bool
	}{
		"its own":   {cookie, true},
		"too old":   {aged(account.DeviceLife + time.Hour), false},
		"forged":    {loom.NewSecret(string(forged)), false},
		"no cookie": {loom.Secret{}, false},
		"too long":  {loom.NewSecret(strings.Repeat("a", 2000)), false},
	} {
		if got := b.Browser(c.device); (got != "") != c.known || strings.Contains(got, "user") {
			t.Errorf("%s: the browser is %q", name, got)
		}
	}
	if b.Browser(cookie) == b.Browser(others) {
		t.Error("browsers of two users are one")
	}
	for name, c := range map[string]struct {
		device loom.Secret
		want   loom.Kind
	}{
		"its own": {cookie, ""}, "none": {loom.Secret{}, loom.Throttled}, "another user's": {others, loom.Throttled},
		"forged": {loom.NewSecret(string(forged)), loom.Throttled}, "not sealed": {loom.NewSecret(base64.RawURLEncoding.EncodeToString(plain)), loom.Throttled},
		"garbage": {loom.NewSecret("ü\x00"), loom.Throttled}, "179 days old": {aged(179 * 24 * time.Hour), ""}, "181 days old": {aged(181 * 24 * time.Hour), loom.Throttled},
	} {
		if kind := b.try(t, "user", right, "192.0.2.1", c.device); kind != c.want {
			t.Errorf("%s: %q, want %q", name, kind, c.want)
		}
	}
	if kind := b.try(t, "user", "wrong", "192.0.2.1", cookie); kind != loom.Unauthenticated {
		t.Errorf("a wrong password from a known browser: %q", kind)
	}
	if _, _, err := b.ActorBySession(b.ctx, cookie, "192.0.2.1"); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("the cookie is a session: %v", err)
	}

	// It has a count of its own, which fills like others.
	b.fill(t, "device:%", 6)
	if kind := b.try(t, "user", right, "192.0.2.1", cookie); kind != loom.Throttled {
		t.Errorf("after many wrong passwords from the known browser: %q", kind)
	}
	if kind := b.try(t, "user", right, "192.0.2.200", loom.Secret{}); kind != "" {
		t.Errorf("elsewhere after wrong ones from the known browser: %q", kind)
	}
	b.exec(t, `DELETE FROM sign_in_failures WHERE subject LIKE 'device:%'`)

	if err := b.ChangePassword(b.ctx, b.user, b.passwords["demo/user"], loom.NewSecret("quite another password"), session, false); err != nil {
		t.Fatal(err)
	}
	if kind := b.try(t, "user", "quite another password", "192.0.2.1", cookie); kind != loom.Throttled {
		t.Errorf("the cookie of the old password: %q", kind)
	}
	if kind := b.try(t, "user", "quite another password", "192.0.2.1", b.device(t, b.user)); kind != "" {
		t.Errorf("the cookie of the new password: %q", kind)
	}
}

// TestOwnPasswordWaitsAlone: strangers at the page of sign-in do not keep anybody from
// changing the own password.
func TestOwnPasswordWaitsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, session := b.signIn(t, "demo", "user")
	b.user.Address = "192.0.2.1"
	for range 5 {
		b.try(t, "user", "wrong", "192.0.2.1", loom.Secret{})
	}
	b.ahead(t)
	if err := b.ChangePassword(b.ctx, b.user, b.passwords["demo/user"], loom.NewSecret("quite another password"), session, false); err != nil {
		t.Errorf("held up by strangers: %v", err)
	}
}

// TestUnlock: an operator lets a user try again at once, wherever he is; it is on record.
func TestUnlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	right := b.passwords["demo/user"].Reveal()
	known, _ := b.signIn(t, "demo", "user")
	cookie := b.device(t, known)
	b.try(t, "user", "wrong", "192.0.2.1", loom.Secret{})
	b.try(t, "user", "wrong", "192.0.2.1", cookie)
	b.try(t, "admin", "wrong", "192.0.2.9", loom.Secret{})
	for _, subjects := range []string{"pair:%", "name:%", "device:%"} {
		b.fill(t, subjects, 1000)
	}
	for _, device := range []loom.Secret{{}, cookie} {
		if kind := b.try(t, "user", right, "192.0.2.1", device); kind != loom.Throttled {
			t.Fatalf("not held up: %q", kind)
		}
	}
	for _, c := range []struct{ tenant, user string }{{"demo", "nobody"}, {"nowhere", "user"}} {
		if err := b.Unlock(b.ctx, c.tenant, loom.UserID(c.user)); !errors.Is(err, loom.NotFound) {
			t.Errorf("unlock %v: %v", c, err)
		}
	}
	if err := b.Unlock(b.ctx, "demo", "user"); err != nil {
		t.Fatal(err)
	}
	for _, device := range []loom.Secret{{}, cookie} {
		if kind := b.try(t, "user", right, "192.0.2.1", device); kind != "" {
			t.Errorf("after unlocking: %q", kind)
		}
	}
	if kind := b.try(t, "admin", b.passwords["demo/admin"].Reveal(), "192.0.2.9", loom.Secret{}); kind != loom.Throttled {
		t.Errorf("another user is unlocked too: %q", kind)
	}
	if n := b.count(t, `SELECT count(*) FROM audit WHERE verb = 'unlock' AND kind = 'user' AND object = 'user' AND via = 'cli'`); n != 1 {
		t.Errorf("%d entries of the audit", n)
	}
}
