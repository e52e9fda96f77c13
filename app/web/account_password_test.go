package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web"
)

// asks signs in with a generated password of somebody new, who has to change it.
func (r *rooms) asked(id string) (v *visitor, password string) {
	r.t.Helper()
	made, err := r.accounts.CreateUserIn(r.ctx, "demo", loom.UserID(id), loom.RoleAdmin)
	check(r.t, err)
	r.passwords["demo/"+id] = made
	return r.signedIn("demo", id), made.Reveal()
}

// TestGeneratedPasswordComesFirst: until the password that an administrator generated is
// changed every page leads to the form, also parts of pages and what is sent; signing
// out works. Then it goes on where one wanted to.
func TestGeneratedPasswordComesFirst(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v, made := r.asked("ana")
	const form = "/account/password"
	for path, to := range map[string]string{
		"/": form + "?next=%2F", "/clusters?status=active": form + "?next=%2Fclusters%3Fstatus%3Dactive", "/admin/users": form + "?next=%2Fadmin%2Fusers",
		"/account": form + "?next=%2Faccount", "/account/tokens": form + "?next=%2Faccount%2Ftokens",
	} {
		v.get(path).goes(t, to)
	}
	v.post("/account", "displayName", "x").goes(t, form)
	v.post("/account/tokens", "name", "x", "scopes", "read", "expires", "30").goes(t, form)
	if a := v.get("/clusters/rows", "HX-Request", "true"); a.header.Get("HX-Redirect") != form {
		t.Errorf("a part of a page: status %d to %q", a.status, a.header.Get("HX-Redirect"))
	}
	if a := v.get("/events?topic=user"); a.status == http.StatusOK {
		t.Errorf("a stream of events: status %d", a.status)
	}
	var tokens int
	check(t, r.db.GetContext(r.ctx, &tokens, `SELECT count(*) FROM tokens`))
	if tokens != 0 {
		t.Errorf("%d tokens were made", tokens)
	}

	v.get(form+"?next=%2Fclusters").shows(t, 200, "An administrator generated your current password", "Sign out", `value="/clusters"`).hides(t, "Back to your account")
	v.get(form+"?next=https://evil.example/").shows(t, 200).hides(t, "evil.example")
	const fresh = "four words in a row"
	v.post(form, "oldPassword", made, "password", made, "repeat", made).shows(t, 422, "This is your current password", "An administrator generated").hides(t, made)
	v.post(form, "oldPassword", made, "password", "Basketball1", "repeat", "Basketball1").shows(t, 422, "one of the most common passwords")
	v.post(form, "oldPassword", made, "password", fresh, "repeat", fresh, "next", "/clusters?sort=name").goes(t, "/clusters?sort=name")
	v.get("/clusters").shows(t, 200, "Changed your password")

	out, _ := r.asked("ben")
	out.post("/logout").goes(t, "/login")
	out.get("/clusters").goes(t, "/login?next=%2Fclusters")
	elsewhere, _ := r.asked("carl")
	elsewhere.get("/login").goes(t, form+"?next=%2Flogin")
}

// TestPasswordOfFirstStartMayStay: a notice asks for another one, which can be put aside.
func TestPasswordOfFirstStartMayStay(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "user")
	const notice = "Your password was generated."
	v.get("/").shows(t, 200, notice, `href="/account/password"`)
	old := r.passwords["demo/user"].Reveal()
	v.get("/account/password").shows(t, 200, "Back to your account").hides(t, "An administrator generated")
	v.post("/account/password", "oldPassword", old, "password", "four words in a row", "repeat", "four words in a row", "next", "/clusters").goes(t, "/clusters")
	v.get("/").shows(t, 200).hides(t, notice)
}

// TestPasswordEndsTokens: the form offers to revoke API tokens, unchecked; so does an
// administrator's reset.
func TestPasswordEndsTokens(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	box := regexp.MustCompile(`<input[^>]*name="endTokens"[^>]*>`)
	offers := func(a answer) {
		t.Helper()
		a.shows(t, 200)
		if got := box.FindString(a.body); !strings.Contains(got, `type="checkbox"`) || !strings.Contains(got, `value="true"`) || strings.Contains(got, "checked") {
			t.Errorf("the box is %q", got)
		}
	}
	token := func() loom.Secret {
		t.Helper()
		_, secret, err := r.accounts.CreateTokenFor(r.ctx, loom.SystemActor(loom.SuperTenant, "superadmin"), "demo", "user", account.NewToken{Name: "ci", Scopes: []loom.Scope{loom.ScopeRead}})
		check(t, err)
		return secret
	}
	works := func(secret loom.Secret, want bool) {
		t.Helper()
		if _, err := r.accounts.ActorByToken(r.ctx, account.TokenInput{Secret: secret, Address: "192.0.2.1"}); (err == nil) != want {
			t.Errorf("the token: %v", err)
		}
	}
	user, admin := r.signedIn("demo", "user"), r.signedIn("demo", "admin")
	offers(user.get("/account"))
	offers(user.get("/account/password"))
	offers(admin.get("/admin/users/user/password"))

	secret, old := token(), r.passwords["demo/user"].Reveal()
	user.post("/account/password", "oldPassword", old, "password", "four words in a row", "repeat", "four words in a row").goes(t, "/account")
	user.get("/account").shows(t, 200, "You are signed out everywhere else.")
	works(secret, true)
	user.post("/account/password", "oldPassword", "wrong", "password", "another four words", "repeat", "another four words", "endTokens", "true").shows(t, 422)
	works(secret, true)
	user.post("/account/password", "oldPassword", "four words in a row", "password", "another four words", "repeat", "another four words", "endTokens", "true").goes(t, "/account")
	user.get("/account").shows(t, 200, "your API tokens are revoked")
	works(secret, false)

	secret = token()
	admin.post("/admin/users/user/password").shows(t, 200, "New password of user")
	works(secret, true)
	admin.post("/admin/users/user/password", "endTokens", "true").shows(t, 200, "New password of user", "To be changed at the next sign-in")
	works(secret, false)
}

// TestKnownBrowser: a sign-in leaves a cookie by which the browser is known later on,
// HttpOnly and SameSite=Lax, Secure where browsers use TLS; signing out keeps it, and
// strangers at the same address do not hold that browser up.
func TestKnownBrowser(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		r := makeRooms(t, false, func(d *web.Deps) { d.Sessions = httpx.NewSessions(d.Accounts, secure) })
		v := r.visitor()
		password := r.passwords["demo/user"].Reveal()
		a := v.post("/login", "tenant", "demo", "user", "user", "password", password)
		var device *http.Cookie
		for _, line := range a.header.Values("Set-Cookie") {
			c, err := http.ParseSetCookie(line)
			check(t, err)
			if strings.HasSuffix(c.Name, "-device") {
				device = c
			}
		}
		if device == nil || !device.HttpOnly || device.SameSite != http.SameSiteLaxMode || device.Secure != secure || device.MaxAge != 180*24*3600 || device.Path != "/" {
			t.Fatalf("secure %v: the cookie is %v", secure, device)
		}
		if strings.Contains(device.Value, "demo") || len(device.Value) > 1024 {
			t.Errorf("the cookie holds %s", device.Value)
		}
		if secure { // the client does not send it over plain HTTP
			if device.Name != "__Host-loom-device" {
				t.Errorf("the cookie is named %s", device.Name)
			}
			continue
		}
		v.post("/logout").goes(t, "/login")
		stranger := r.visitor()
		for range 5 {
			stranger.post("/login", "tenant", "demo", "user", "user", "password", "wrong").shows(t, 401)
		}
		_, err := r.db.Exec(`UPDATE sign_in_failures SET last_at = now() + interval '1 hour'`)
		check(t, err)
		stranger.post("/login", "tenant", "demo", "user", "user", "password", password).shows(t, 429)
		v.post("/login", "tenant", "demo", "user", "user", "password", password).goes(t, "/")
	}
}
