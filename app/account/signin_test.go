package account_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/loom"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	actor, first := b.signIn(t, "superadmin", "admin")
	if actor.Role != loom.RoleSuperadmin || actor.Tenant != loom.SuperTenant || actor.Via != "session" || actor.Scopes != nil {
		t.Errorf("signed in as %+v", actor)
	}
	if len(first.Reveal()) != 43 || b.count(t, `SELECT count(*) FROM sessions WHERE encode(id, 'escape') LIKE '%' || $1 || '%'`, first.Reveal()) != 0 {
		t.Error("the cookie is short, or stored")
	}
	got, session, err := b.ActorBySession(b.ctx, first, "192.0.2.1")
	if err != nil || got.Account() != actor.Account() || got.TenantName != "superadmin" {
		t.Fatalf("by session: %+v, %v", got, err)
	}
	if life := session.Expires.Sub(session.Created); life < 12*time.Hour-time.Minute || life > 12*time.Hour+time.Minute {
		t.Errorf("a session lives %s", life)
	}
	_, _, expires, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: "user", Password: b.passwords["demo/user"], Keep: true, Agent: strings.Repeat("ü\x00", 300)})
	if err != nil || time.Until(expires) < 29*24*time.Hour {
		t.Errorf("kept until %s, %v", expires, err)
	}

	if err := b.SetSessionData(b.ctx, first, map[string]string{"flash": "Saved."}); err != nil {
		t.Fatal(err)
	}
	if data, err := b.SessionData(b.ctx, first); err != nil || data["flash"] != "Saved." {
		t.Errorf("data %v, %v", data, err)
	}

	// Seen at most once a minute.
	b.exec(t, `UPDATE sessions SET last_seen_at = now() - interval '30 s'`)
	if _, before, _ := b.ActorBySession(b.ctx, first, "192.0.2.9"); before.Address != "192.0.2.1" {
		t.Errorf("touched after 30 s: %+v", before)
	}
	b.exec(t, `UPDATE sessions SET last_seen_at = now() - interval '61 s'`)
	for range 2 {
		_, session, err = b.ActorBySession(b.ctx, first, "192.0.2.9")
		if err != nil {
			t.Fatal(err)
		}
	}
	if session.Address != "192.0.2.9" || time.Since(session.LastUsed) > 30*time.Second {
		t.Errorf("not touched after a minute: %+v", session)
	}

	// Signing in again with the old cookie at hand ends the old session.
	_, second, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "superadmin", User: "admin", Password: b.passwords["superadmin/admin"], Previous: first})
	if err != nil {
		t.Fatal(err)
	}
	for name, cookie := range map[string]loom.Secret{"rotated": first, "none": {}, "made up": loom.NewSecret(strings.Repeat("A", 43))} {
		if _, _, err := b.ActorBySession(b.ctx, cookie, ""); !errors.Is(err, loom.Unauthenticated) {
			t.Errorf("%s cookie: %v", name, err)
		}
		if _, err := b.SessionData(b.ctx, cookie); !errors.Is(err, loom.Unauthenticated) {
			t.Errorf("data of %s cookie: %v", name, err)
		}
		if err := b.SetSessionData(b.ctx, cookie, nil); !errors.Is(err, loom.Unauthenticated) {
			t.Errorf("writing data of %s cookie: %v", name, err)
		}
	}
	if _, err := b.SignOut(b.ctx, actor, second); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.ActorBySession(b.ctx, second, ""); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("after signing out: %v", err)
	}
	_, third := b.signIn(t, "superadmin", "admin")
	b.exec(t, `UPDATE sessions SET expires_at = now()`)
	if _, _, err := b.ActorBySession(b.ctx, third, ""); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("an expired session: %v", err)
	}
}

func TestEndingSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, mine := b.signIn(t, "demo", "user")
	b.signIn(t, "demo", "user")
	_, theirs := b.signIn(t, "demo", "admin")
	_, session, err := b.ActorBySession(b.ctx, theirs, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.EndSession(b.ctx, b.user, session.ID); !errors.Is(err, loom.NotFound) {
		t.Errorf("a user ends an administrator's session: %v", err)
	}
	for _, id := range []string{"", "zz", hex.EncodeToString(make([]byte, 32))} {
		if err := b.EndSession(b.ctx, b.admin, id); !errors.Is(err, loom.NotFound) {
			t.Errorf("session %q: %v", id, err)
		}
	}
	own, err := b.Sessions(b.ctx, b.user)
	if err != nil || len(own) != 2 {
		t.Fatalf("own sessions %v, %v", own, err)
	}
	if err := b.EndSession(b.ctx, b.admin, own[0].ID); err != nil {
		t.Errorf("an administrator ends a user's session: %v", err)
	}
	b.signIn(t, "demo", "user")
	if err := b.ChangePassword(b.ctx, b.user, b.passwords["demo/user"], loom.NewSecret("a new password"), mine, false); err != nil {
		t.Fatal(err)
	}
	if left, err := b.Sessions(b.ctx, b.user); err != nil || len(left) != 1 {
		t.Errorf("after a new password %d sessions, %v", len(left), err)
	}
	if _, _, err := b.ActorBySession(b.ctx, mine, ""); err != nil {
		t.Errorf("the session that changed the password ended: %v", err)
	}
	if err := b.ChangePassword(b.ctx, b.user, b.passwords["demo/user"], loom.NewSecret("another password"), mine, false); fieldsOf(err) != "oldPassword" {
		t.Errorf("a wrong old password: %v", err)
	}
	if err := b.ChangePassword(b.ctx, b.user, loom.NewSecret("a new password"), loom.NewSecret("short"), mine, false); fieldsOf(err) != "password" {
		t.Errorf("a short new password: %v", err)
	}
}

func TestWrongSignInsAllGetTheSameAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	messages := map[string]bool{}
	for name, in := range map[string]account.SignInInput{
		"wrong password": {Tenant: "demo", User: "user", Password: loom.NewSecret("wrong")},
		"unknown user":   {Tenant: "demo", User: "nobody", Password: loom.NewSecret("wrong")},
		"unknown tenant": {Tenant: "nowhere", User: "user", Password: loom.NewSecret("wrong")},
		"empty":          {},
		"unstorable":     {Tenant: "demo\x00", User: "\xff", Password: loom.NewSecret("wrong"), Address: "\x00"},
		"other tenant":   {Tenant: "superadmin", User: "admin", Password: b.passwords["demo/admin"]},
		"huge":           {Tenant: strings.Repeat("x", 10000), User: strings.Repeat("y", 10000), Password: loom.NewSecret("wrong")},
	} {
		_, cookie, _, err := b.SignIn(b.ctx, in)
		if !errors.Is(err, loom.Unauthenticated) || !cookie.IsZero() {
			t.Errorf("%s: %v", name, err)
		}
		messages[err.Error()] = true
	}
	if len(messages) != 1 {
		t.Errorf("answers differ: %v", messages)
	}
}

func TestThrottling(t *testing.T) {
	t.Parallel()
	b := setup(t)
	try := func(user, password, address string) error {
		_, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: user, Password: loom.NewSecret(password), Address: address})
		return err
	}
	back := func(seconds int) {
		b.exec(t, `UPDATE sign_in_failures SET last_at = last_at - make_interval(secs => $1)`, seconds)
	}
	right := b.passwords["demo/user"].Reveal()
	for range 4 {
		try("user", "wrong", "192.0.2.1")
	}
	if err := try("user", right, "192.0.2.1"); err != nil {
		t.Fatalf("right after four wrong ones: %v", err)
	}
	for range 5 { // a right one has started the count again
		if err := try("user", "wrong", "192.0.2.1"); !errors.Is(err, loom.Unauthenticated) {
			t.Fatalf("within the first five: %v", err)
		}
	}
	// wait moves the last try an hour ahead, so that a slow machine cannot let the
	// wait pass before it is looked at.
	wait := func(limit time.Duration) {
		t.Helper()
		begun := time.Now()
		b.exec(t, `UPDATE sign_in_failures SET last_at = now() + interval '1 hour' WHERE subject LIKE 'pair:%'`)
		err := try("user", right, "192.0.2.1")
		after := loom.AsError(err).RetryAfter - time.Hour
		if !errors.Is(err, loom.Throttled) || after > limit || after < limit-time.Since(begun) {
			t.Fatalf("want a wait of %s: %v, %s", limit, err, after)
		}
		b.exec(t, `UPDATE sign_in_failures SET last_at = now() WHERE subject LIKE 'pair:%'`)
	}
	wait(time.Second)
	back(1)
	if err := try("user", "wrong", "192.0.2.1"); !errors.Is(err, loom.Unauthenticated) {
		t.Fatalf("after the wait: %v", err)
	}
	wait(2 * time.Second)
	b.exec(t, `UPDATE sign_in_failures SET failures = 500 WHERE subject LIKE 'pair:%'`)
	wait(time.Minute)
	if err := try("admin", "wrong", "192.0.2.1"); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("another user is not held up: %v", err)
	}
	back(60)
	if err := try("user", right, "192.0.2.1"); err != nil {
		t.Errorf("right after the wait: %v", err)
	}

	// An hour ahead again: what is over the limit may be tried once a second.
	b.exec(t, `UPDATE sign_in_failures SET failures = 50, last_at = now() + interval '1 hour' WHERE subject = 'address:192.0.2.1'`)
	if err := try("admin", "x", "192.0.2.1"); !errors.Is(err, loom.Throttled) {
		t.Errorf("the 51st from an address: %v", err)
	}
	if err := try("nobody", "x", "192.0.2.2"); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("another address is not held up: %v", err)
	}
	b.exec(t, `UPDATE sign_in_failures SET since = since - interval '11 minutes'`)
	if err := try("admin", "x", "192.0.2.1"); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("after ten minutes: %v", err)
	}

	// Many at once do not pass together.
	var wg sync.WaitGroup
	var mu sync.Mutex
	tried := 0
	for range 12 {
		wg.Go(func() {
			if err := try("parallel", "wrong", "192.0.2.3"); errors.Is(err, loom.Unauthenticated) {
				mu.Lock()
				defer mu.Unlock()
				tried++
			}
		})
	}
	wg.Wait()
	// A sixth may get through when the machine is slow and a second goes by.
	if tried < 5 || tried > 7 {
		t.Errorf("%d of 12 tries at once were made, want 5", tried)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token, text, err := b.CreateToken(b.ctx, b.admin, account.NewToken{Name: " ci ", Scopes: []loom.Scope{loom.ScopeCatalogWrite, loom.ScopeRead, loom.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text.Reveal(), "loom_") || len(text.Reveal()) != 48 || token.Prefix != text.Reveal()[:9] || token.Name != "ci" || len(token.Scopes) != 2 {
		t.Errorf("token %+v", token)
	}
	if days := time.Until(token.Expires).Hours() / 24; days < 364 || days > 366 {
		t.Errorf("without a wish a token lives %.0f days", days)
	}
	actor, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: text, Address: "192.0.2.1"})
	if err != nil || actor.Via != "token:ci" || actor.Role != loom.RoleAdmin || actor.MayAtAll(loom.Administer) == nil || actor.MayAtAll(loom.Publish) != nil {
		t.Fatalf("actor %+v, %v", actor, err)
	}
	if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: text, Address: "192.0.2.2"}); err != nil {
		t.Fatal(err)
	}
	listed, err := b.Tokens(b.ctx, b.admin)
	if err != nil || len(listed) != 1 || listed[0].LastUsed.IsZero() || listed[0].LastAddress != "192.0.2.1" {
		t.Errorf("listed %+v, %v (use is noted once a minute)", listed, err)
	}
	if _, _, err := b.CreateToken(b.ctx, actor, account.NewToken{Name: "x", Scopes: []loom.Scope{loom.ScopeRead}}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a token without the scope admin makes tokens: %v", err)
	}

	past, soon, far := time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now().AddDate(2, 0, 0)
	read := []loom.Scope{loom.ScopeRead}
	for want, in := range map[string]account.NewToken{
		"name":      {Scopes: read},
		"scopes":    {Name: "x"},
		"scopes[1]": {Name: "x", Scopes: []loom.Scope{loom.ScopeRead, loom.ScopeCatalogWrite}},
		"scopes[0]": {Name: "x", Scopes: []loom.Scope{"all"}},
		"expires":   {Name: "x", Scopes: read, Expires: &past},
	} {
		if _, _, err := b.CreateToken(b.ctx, b.user, in); !errors.Is(err, loom.Invalid) || fieldsOf(err) != want {
			t.Errorf("%s: fields %q, %v", want, fieldsOf(err), err)
		}
	}
	if _, _, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: "x", Scopes: read, Expires: &far}); fieldsOf(err) != "expires" {
		t.Errorf("a token for two years: %v", err)
	}
	b.exec(t, `UPDATE tenants SET settings = '{"maxTokenDays": null}' WHERE id = $1`, b.user.Tenant)
	if forever, _, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: "x", Scopes: read}); err != nil || !forever.Expires.IsZero() {
		t.Errorf("a token for ever: %+v, %v", forever, err)
	}

	short, shortText, err := b.CreateTokenFor(b.ctx, loom.SystemActor(loom.SuperTenant, "superadmin"), "demo", "user", account.NewToken{Name: "cli", Scopes: []loom.Scope{loom.ScopeAdmin}, Expires: &soon})
	if err != nil || short.Account != b.user.Account() {
		t.Fatalf("for the command line: %+v, %v", short, err)
	}
	if _, _, err := b.CreateTokenFor(b.ctx, b.admin, "demo", "user", account.NewToken{Name: "x", Scopes: read}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("an administrator makes tokens for others: %v", err)
	}
	for _, who := range [][2]string{{"nowhere", "user"}, {"demo", "nobody"}} {
		if _, _, err := b.CreateTokenFor(b.ctx, b.super, who[0], loom.UserID(who[1]), account.NewToken{Name: "x", Scopes: read}); !errors.Is(err, loom.NotFound) {
			t.Errorf("%v: %v", who, err)
		}
	}
	if err := b.RevokeToken(b.ctx, b.user, token.ID); !errors.Is(err, loom.NotFound) {
		t.Errorf("a user revokes an administrator's token: %v", err)
	}
	if err := b.RevokeToken(b.ctx, b.admin, short.ID); err != nil {
		t.Errorf("an administrator revokes a user's token: %v", err)
	}
	b.exec(t, `UPDATE tokens SET expires_at = now() WHERE id = $1`, token.ID)
	for name, text := range map[string]loom.Secret{
		"revoked": shortText, "expired": text, "none": {}, "dummy": loom.NewSecret("1234567890abcdef"), "made up": loom.NewSecret("loom_" + strings.Repeat("A", 43)),
	} {
		if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: text}); !errors.Is(err, loom.Unauthenticated) {
			t.Errorf("%s token: %v", name, err)
		}
	}
}

func TestActingAs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tokens := map[string]loom.Secret{}
	for name, actor := range map[string]loom.Actor{"super": b.super, "admin": b.admin, "user": b.user} {
		_, text, err := b.CreateToken(b.ctx, actor, account.NewToken{Name: name, Scopes: []loom.Scope{loom.ScopeAdmin}})
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = text
	}
	if _, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "off"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.UpdateUser(b.ctx, b.admin, "off", account.UserChange{Disabled: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		token, tenant, user string
		want                loom.Kind
		role                loom.Role
		via                 string
	}{
		{"user", "", "", "", loom.RoleUser, "token:user"},
		{"user", "demo", "user", "", loom.RoleUser, "token:user"},
		{"user", "", "admin", loom.Forbidden, "", ""},
		{"user", "superadmin", "admin", loom.Forbidden, "", ""},
		{"user", "nowhere", "", loom.Forbidden, "", ""},
		{"admin", "demo", "user", "", loom.RoleUser, "token:admin by admin"},
		{"admin", "", "nobody", loom.NotFound, "", ""},
		{"admin", "", "off", loom.Forbidden, "", ""},
		{"admin", "superadmin", "", loom.Forbidden, "", ""},
		{"super", "demo", "user", "", loom.RoleUser, "token:super by superadmin/admin"},
		{"super", "demo", "", "", loom.RoleAdmin, "token:super by superadmin/admin"},
		{"super", "nowhere", "admin", loom.NotFound, "", ""},
		{"super", "demo\x00", "\xff", loom.NotFound, "", ""},
	} {
		actor, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: tokens[c.token], AsTenant: c.tenant, AsUser: c.user})
		if c.want != "" {
			if !errors.Is(err, c.want) {
				t.Errorf("%s as %s/%s: %v", c.token, c.tenant, c.user, err)
			}
			continue
		}
		if err != nil || actor.Role != c.role || actor.Via != c.via || c.user != "" && string(actor.User) != c.user || c.tenant != "" && actor.TenantName != c.tenant {
			t.Errorf("%s as %s/%s: %+v, %v", c.token, c.tenant, c.user, actor, err)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM audit WHERE verb = 'act_as'`); n == 0 {
		t.Error("acting as another left no trace")
	}
}
