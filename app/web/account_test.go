package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"loom/app/account"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.visitor()
	v.get("/account").goes(t, "/login?next=%2Faccount")
	v.get("/login?next=/account").shows(t, 200, "Sign in", `name="next" value="/account"`, "another tenant").hides(t, `name="tenant"`)
	v.get("/login?other=1").shows(t, 200, `name="tenant"`)
	v.get("/login?tenant=demo").shows(t, 200, `name="tenant"`, `value="demo"`)

	v.post("/login", "user", "", "password", "").shows(t, 422, "Enter your user name.", "Enter your password.")
	wrong := v.post("/login", "user", "user", "password", "planted-guess").shows(t, 401, "The user name, password or tenant is wrong.", `value="user"`)
	wrong.hides(t, "planted-guess")
	v.post("/login", "tenant", "nowhere", "user", "user", "password", "x").shows(t, 401, "The user name, password or tenant is wrong.", `value="nowhere"`)

	// The only tenant is meant where none is named.
	password := r.passwords["demo/user"].Reveal()
	a := v.post("/login", "user", "user", "password", password, "next", "/account", "keep", "true").goes(t, "/account")
	cookie := a.header.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Lax", "Max-Age="} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie lacks %s", part)
		}
	}
	v.get("/login").goes(t, "/")
	v.get("/account").shows(t, 200, "user", "demo")

	out := v.post("/logout").goes(t, "/login")
	if out.header.Get("Clear-Site-Data") == "" {
		t.Error("signing out does not clear site data")
	}
	v.get("/account").goes(t, "/login?next=%2Faccount")

	super := r.signedIn("superadmin", "admin")
	super.get("/account").shows(t, 200, "superadmin")
}

func TestSignInGoesNowhereElse(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	password := r.passwords["demo/user"].Reveal()
	for _, next := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "javascript:alert(1)", "account"} {
		v := r.visitor()
		v.get("/login?next="+next).shows(t, 200).hides(t, "evil.example", "javascript:")
		v.post("/login", "user", "user", "password", password, "next", next).goes(t, "/")
	}
}

func TestSignInIsThrottled(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.visitor()
	for range 20 {
		a := v.post("/login", "user", "user", "password", "wrong")
		if a.status == http.StatusTooManyRequests {
			a.shows(t, 429, "Too many wrong passwords; try again in")
			if a.header.Get("Retry-After") == "" {
				t.Error("the answer does not say how long to wait")
			}
			return
		}
		a.shows(t, 401)
	}
	t.Error("20 wrong passwords in a row were all answered")
}

func TestProfileAndKeys(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "user")
	v.post("/account", "displayName", "Ana", "email", "no address").shows(t, 422, "The profile was not saved.", "This is not an email address.", `value="no address"`)
	v.post("/account", "displayName", "Ana <b>", "email", "ana@example.org").goes(t, "/account")
	v.get("/account").shows(t, 200, "Saved your profile.", "Ana &lt;b&gt;", "ana@example.org").hides(t, "Ana <b>")
	v.get("/account").hides(t, "Saved your profile.")

	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIrTBkKSl3mXDgNoEM5pGEq4XcUYkT5yXq0z2jM9TzXl ana@laptop"
	v.post("/account/keys", "sshKeys", key+"\r\n\r\nnonsense").shows(t, 422, "Line 3: This is not an SSH public key", key)
	private := "-----BEGIN OPENSSH PRIVATE KEY-----\nplanted-private\n-----END OPENSSH PRIVATE KEY-----"
	v.post("/account/keys", "sshKeys", private).shows(t, 422, "This is a private key.").hides(t, "planted-private")
	v.post("/account/keys", "sshKeys", key+"\n").goes(t, "/account")
	v.get("/account").shows(t, 200, "Added.", "SHA256:", `<th scope="row">ana@laptop</th>`).hides(t, key)
	v.post("/account/keys", "sshKeys", key+"\nnonsense").shows(t, 422, "Line 2: This is not an SSH public key")
	v.post("/account/keys", "sshKeys", "").shows(t, 422, "Paste a public key.")

	const second = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0UWnRQhVRKDWVy2a3VzJZrSXjGWGGVZO9sTKVPiXFo ana@desk"
	v.post("/account/keys", "sshKeys", second+"\n"+key).goes(t, "/account")
	shown := v.get("/account").shows(t, 200, `<th scope="row">ana@laptop</th>`, `<th scope="row">ana@desk</th>`)
	if n := strings.Count(shown.body, "ana@laptop</th>"); n != 1 {
		t.Errorf("a key that was added twice is shown %d times", n)
	}
	laptop, _ := account.SSHKeyOf(key)
	v.post("/account/keys", "removeKey", laptop.Fingerprint).goes(t, "/account")
	v.get("/account").shows(t, 200, "Removed the key.", "ana@desk").hides(t, "ana@laptop")
}

func TestPasswordChange(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v, other := r.signedIn("demo", "user"), r.signedIn("demo", "user")
	old := r.passwords["demo/user"].Reveal()
	const fresh = "planted fresh password"
	v.post("/account/password", "oldPassword", old, "password", fresh, "repeat", "something else").shows(t, 422, "The two new passwords differ").hides(t, fresh, old)
	v.post("/account/password", "oldPassword", old, "password", "short", "repeat", "short").shows(t, 422, "characters")
	v.post("/account/password", "oldPassword", "wrong", "password", fresh, "repeat", fresh).shows(t, 422, "This is not your current password.").hides(t, fresh)
	v.post("/account/password", "oldPassword", old, "password", fresh, "repeat", fresh).goes(t, "/account")
	v.get("/account").shows(t, 200, "Changed your password")
	other.get("/account").goes(t, "/login?next=%2Faccount")
}

var secretText = regexp.MustCompile(`loom_[A-Za-z0-9_-]{30,}`)

func TestTokens(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "user")
	v.get("/account/tokens").shows(t, 200, "No API tokens yet").hides(t, "catalog:write")
	v.post("/account/tokens", "name", "", "scopes", "read", "expires", "30").shows(t, 422, "A token has a name")
	v.post("/account/tokens", "name", "x", "expires", "30").shows(t, 422, "Choose at least one scope")
	v.post("/account/tokens", "name", "x", "scopes", "catalog:write", "expires", "30").shows(t, 422, "for publishers and administrators only")
	v.post("/account/tokens", "name", "x", "scopes", "read", "expires", "4000").shows(t, 422, "Choose one of the lives that are offered.")

	made := v.post("/account/tokens", "name", "nightly", "scopes", "clusters:write", "expires", "30").shows(t, 200, "Loom shows it only once", "/v2/whoami", "data-dirty")
	secret := secretText.FindString(made.body)
	if secret == "" {
		t.Fatal("the new token is not shown")
	}
	list := v.get("/account/tokens").shows(t, 200, "nightly", "clusters:write", secret[:9]).hides(t, secret)
	for _, page := range []string{"/account", "/account/sessions"} {
		v.get(page).shows(t, 200).hides(t, secret)
	}

	ask := regexp.MustCompile(`/account/tokens/\d+/revoke`).FindString(list.body)
	r.signedIn("demo", "admin").get(ask).shows(t, 404)
	v.get(ask).shows(t, 200, "<html", "Revoke token nightly")
	v.get(ask, "HX-Request", "true", "HX-Target", "dialog").shows(t, 200, "dialog-title", "data-close-dialog").hides(t, "<html")
	v.post(ask).goes(t, "/account/tokens")
	v.get("/account/tokens").shows(t, 200, "Revoked the token nightly.", "No API tokens yet")
	v.post(ask).shows(t, 404)
}

// TestTokenLives: a token ends after some days, on a day, or never, as the tenant permits.
func TestTokenLives(t *testing.T) {
	t.Parallel()
	r := makeRooms(t, true)
	v := r.signedIn("demo", "user")
	v.post("/account/tokens", "name", "x", "scopes", "read", "expires", "never").shows(t, 422, "Choose one of the lives that are offered.")
	v.post("/account/tokens", "name", "x", "scopes", "read", "expires", "date", "until", "soon").shows(t, 422, "Enter the last day as year-month-day", `value="soon"`)
	v.post("/account/tokens", "name", "x", "scopes", "read", "expires", "date", "until", "2001-01-01").shows(t, 422, "This time is over already.")
	v.post("/account/tokens", "name", "x", "scopes", "read", "expires", "date", "until", "2199-01-01").shows(t, 422, "live at most 365 days")
	day := time.Now().AddDate(0, 0, 20).Format(time.DateOnly)
	v.post("/account/tokens", "name", "until a day", "scopes", "read", "expires", "date", "until", day).shows(t, 200, "Token until a day")
	v.get("/account/tokens").shows(t, 200, "until a day", "Until a date", "/account/tokens?as=csv").hides(t, `value="never"`)
	v.get("/account/sessions").shows(t, 200, "/account/sessions?as=csv", "/account/sessions?as=json-all")
	v.get("/account/sessions?as=csv").shows(t, 200, "signed in,last used,address,browser", "127.0.0.1")
	boss := r.signedIn("demo", "admin")
	boss.post("/admin/settings", "leaseReminderHours", "", "leaseGraceHours", "0", "repairsPerDay", "20", "maxTokenDays", "45").goes(t, "/admin/settings")
	v.get("/account/tokens").shows(t, 200, "45 days, the longest here", "30 days").hides(t, ">90 days")
	boss.post("/admin/settings", "leaseReminderHours", "", "leaseGraceHours", "0", "repairsPerDay", "20", "maxTokenDays", "").goes(t, "/admin/settings")
	v.get("/account/tokens").shows(t, 200, `value="never"`, "No expiry")
	v.post("/account/tokens", "name", "endless", "scopes", "read", "expires", "never").shows(t, 200, "Token endless")
}

func TestSessions(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "user")
	v.get("/account/sessions").shows(t, 200, "This browser").hides(t, "Sign out everywhere else")
	other := r.signedIn("demo", "user")
	page := v.get("/account/sessions").shows(t, 200, "Sign out everywhere else")
	id := regexp.MustCompile(`name="session" value="([0-9a-f]+)"`).FindStringSubmatch(page.body)
	if id == nil {
		t.Fatal("the other session cannot be ended")
	}
	stranger := r.signedIn("superadmin", "admin")
	stranger.post("/account/sessions", "session", id[1]).shows(t, 404)
	v.post("/account/sessions", "session", id[1]).goes(t, "/account/sessions")
	other.get("/account").goes(t, "/login?next=%2Faccount")
	third := r.signedIn("demo", "user")
	v.post("/account/sessions", "others", "true").goes(t, "/account/sessions")
	third.get("/account").goes(t, "/login?next=%2Faccount")
	v.get("/account").shows(t, 200)
}

func TestCatalogForUsers(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "user")
	v.get("/catalog").shows(t, 200, "Load-balanced web cluster", "2–500 nodes", "/clusters/new?template=web-cluster", "3 templates").hides(t, "/admin/")
	v.get("/catalog?q=redis").shows(t, 200, "Replicated Redis").hides(t, "Load-balanced web cluster")
	v.get("/services").shows(t, 200, "HAProxy", "Redis primary", "/catalog/services/haproxy", "v1")
	v.get("/services?q=redis").shows(t, 200, "Redis primary").hides(t, "HAProxy")
	v.get("/services?q=nothing+like+it").shows(t, 200, "No matches.", "Clear filters")
	v.get("/services?after=damaged").shows(t, 422)
	v.get("/catalog?q=nothing+like+it").shows(t, 200, "No template matches", "Clear search")
	v.get("/catalog", "HX-Request", "true").shows(t, 200, "<main").hides(t, "<html")
	v.get("/catalog/web-cluster").shows(t, 200, "haproxy and nginx are never on the same node.", "haproxy is on exactly 1 node.", "Create cluster", "Page title")
	v.get("/catalog/none").shows(t, 404, "There is no template")
	a := v.get("/catalog/web-cluster?as=json").shows(t, 200, `"name":"web-cluster"`)
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("the JSON view has the type %q", got)
	}
	v.get("/catalog?after=damaged").shows(t, 422)

	admin := r.signedIn("demo", "admin")
	admin.post("/admin/templates", "body", `{"name":"broken","extends":{"name":"nowhere"}}`).goes(t, "/admin/templates/broken")
	v.get("/catalog").shows(t, 200, "Cannot be used now")
	v.get("/catalog/broken").shows(t, 200, "No cluster can be made from this template now").hides(t, "template=broken")
}
