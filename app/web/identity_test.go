package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"loom/app/idp"
	"loom/app/loom"
	"loom/app/testkit/idptest"
)

// company is an installation with an identity provider, which pages made.
type company struct {
	*rooms
	idp      *idptest.Provider
	admin    *visitor
	provider string // path of its page
	id       string
}

func newCompany(t *testing.T) *company {
	t.Helper()
	p := idptest.Start(t)
	c := companyAt(t, p.Issuer, idptest.ClientID, idptest.Secret)
	c.idp = p
	return c
}

// companyAt has a provider that the test started.
func companyAt(t *testing.T, issuer, clientID, secret string) *company {
	t.Helper()
	c := &company{rooms: newRooms(t)}
	c.accounts.Identity, c.accounts.PublicURL = idp.New(idp.Options{Reach: loom.Anywhere(), PlainHTTP: true}), c.server.URL
	c.admin = c.signedIn("demo", "admin")
	c.admin.get("/admin/identity").shows(t, 200, "No identity providers yet.")
	c.admin.post("/admin/identity", "name", "Example", "issuer", "ftp://x", "clientId", "loom", "userClaim", "preferred_username", "subjectClaim", "sub", "maxAgeDays", "30", "enabled", "true").
		shows(t, 422, "The identity provider was not created.", "Enter a URL that begins with https://", "Enter the client secret")
	made := c.admin.post("/admin/identity", "name", "Example", "issuer", issuer, "clientId", clientID, "clientSecret", secret,
		"userClaim", "preferred_username", "subjectClaim", "sub", "maxAgeDays", "30", "enabled", "true")
	if made.status != http.StatusSeeOther {
		t.Fatalf("status %d: %s", made.status, made.body)
	}
	c.provider, c.id = made.location, strings.TrimPrefix(made.location, "/admin/identity/")
	return c
}

// travel follows a visitor from the page of Loom to the provider and back, and returns the answer to that.
func (c *company) travel(t *testing.T, v *visitor, to string) answer {
	t.Helper()
	if strings.HasPrefix(to, "/") {
		went := v.get(to)
		if went.status != http.StatusSeeOther {
			t.Fatalf("%s: status %d %s", to, went.status, went.body)
		}
		to = went.location
	}
	req, err := http.NewRequestWithContext(v.ctx, http.MethodGet, to, nil)
	check(t, err)
	back := v.do(req)
	path, ok := strings.CutPrefix(back.location, c.server.URL)
	if !ok {
		t.Fatalf("the provider sends to %q", back.location)
	}
	return v.get(path)
}

var hiddenInput = regexp.MustCompile(`name="(rules|hash)" value="([^"]*)"`)

// apply sends what a preview shows.
func (c *company) apply(t *testing.T, preview answer) answer {
	t.Helper()
	var pairs []string
	for _, m := range hiddenInput.FindAllStringSubmatch(preview.body, -1) {
		pairs = append(pairs, m[1], strings.NewReplacer("&#34;", `"`, "&amp;", "&", "&#39;", "'").Replace(m[2]))
	}
	return c.admin.post(c.provider+"/rules/apply", pairs...)
}

// TestIdentityInPages sets up a provider by forms alone; a newcomer signs in with it and out again.
func TestIdentityInPages(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	at := c.admin.post("/admin/groups", "name", "Staff").location
	group := strings.TrimPrefix(at, "/admin/groups/")
	c.admin.get(c.provider).shows(t, 200, c.server.URL+"/login/"+c.id+"/callback", c.server.URL+"/login/"+c.id+"/logout", "No rules yet")
	c.admin.post(c.provider+"/check").shows(t, 200, "The provider answers.", c.idp.Issuer+"/auth")
	c.admin.get(c.provider+"/rules").shows(t, 200, "Add rule", "Staff")
	c.admin.post(c.provider+"/rules", "group", group, "conditions[0].claim", "groups", "conditions[0].op", "matches", "conditions[0].value", "(a", "conditions[1].op", "is", "conditions[2].op", "is").
		shows(t, 422, "The rule was not added.", "This is no regular expression", `value="(a"`)

	c.admin.post(c.provider+"/rules", "group", group, "conditions[0].claim", "groups", "conditions[0].op", "is", "conditions[0].value", "staff", "conditions[1].op", "is", "conditions[2].op", "is").
		shows(t, 200, "Without a role, a group lets nobody sign in. Give one to: Staff.")
	c.admin.post(at+"/roles", "role", "user").goes(t, at)

	newcomer := c.visitor()
	c.idp.Become(map[string]any{"sub": "1", "preferred_username": "eve", "groups": []string{"staff"}})
	newcomer.get("/login").shows(t, 200, "Sign in with Example", "/login/"+c.id)
	c.travel(t, newcomer, "/login/"+c.id).shows(t, 403, "no rule gives you a place", "preferred_username", "eve")

	preview := c.admin.post(c.provider+"/rules", "group", group, "conditions[0].claim", "groups", "conditions[0].op", "is", "conditions[0].value", "staff", "conditions[1].op", "is", "conditions[2].op", "is").
		shows(t, 200, "Preview of rules", "1 person has signed in with Example so far; the new rules match 1.", "Nobody gains or loses a role")
	c.apply(t, preview).goes(t, c.provider)
	c.apply(t, preview).shows(t, 409, "Something has changed since the preview", "Apply rules")

	if a := c.travel(t, newcomer, "/login/"+c.id+"?next=%2Fcatalog"); a.status != http.StatusSeeOther || a.location != "/catalog" {
		t.Fatalf("status %d to %q", a.status, a.location)
	}
	newcomer.get("/catalog").shows(t, 200, "eve")
	newcomer.get("/account").shows(t, 200, "You sign in with Example and have no password.").hides(t, "Current password")
	newcomer.get("/account/sign-in").shows(t, 200, "Staff", "groups is “staff”", "Member")
	c.admin.get("/admin/users/eve").shows(t, 200, "Signed in with Example", "Staff")
	newcomer.get("/admin").shows(t, 403)
	c.visitor().get("/login/dialog", "HX-Request", "true").shows(t, 200, "Session expired", "Sign in with Example", `target="_blank"`)
	newcomer.get("/account/session").shows(t, 200, "sign in with Example again", "/login/"+c.id)
	newcomer.post("/account/session").shows(t, 409, "sign in there again")
	for _, next := range []string{"https://evil.example/", "//evil.example", `/\evil.example`} {
		if a := c.travel(t, newcomer, "/login/"+c.id+"?next="+url.QueryEscape(next)); a.status != http.StatusSeeOther || strings.Contains(a.location, "evil") {
			t.Errorf("next %q leads to %q", next, a.location)
		}
	}

	// The preview of the rule's end names who loses what.
	rules := c.admin.get(c.provider).shows(t, 200, "1 user signs in with it.")
	remove := hiddenInput.FindStringSubmatch(rules.body)
	c.apply(t, c.admin.post(c.provider+"/rules/preview", "rules", strings.ReplaceAll(remove[2], "&#34;", `"`)).shows(t, 200, "1 user loses the role “user”", "eve", "cannot sign in any longer")).goes(t, c.provider)
	newcomer.get("/catalog").goes(t, "/login?next=%2Fcatalog")
	c.apply(t, preview).shows(t, 409)
	again := c.admin.post(c.provider+"/rules", "group", group, "conditions[0].claim", "groups", "conditions[0].op", "is", "conditions[0].value", "staff", "conditions[1].op", "is", "conditions[2].op", "is").shows(t, 200, "1 user gains the role “user”", "eve")
	c.apply(t, again).goes(t, c.provider)

	// Signing out leads to the provider, too; a sign-in that ended there ends here.
	c.travel(t, newcomer, "/login/"+c.id)
	out := newcomer.post("/logout").shows(t, 200, "You are signed out of Loom.", c.idp.Issuer+"/end")
	if refresh := out.header.Get("Refresh"); !strings.HasPrefix(refresh, "0; url="+c.idp.Issuer+"/end?") {
		t.Errorf("it leads to %q", refresh)
	}
	newcomer.get("/catalog").goes(t, "/login?next=%2Fcatalog")
	c.travel(t, newcomer, "/login/"+c.id)
	newcomer.get("/catalog").shows(t, 200)
	stranger := c.visitor()
	stranger.post("/login/"+c.id+"/logout", "logout_token", "x").shows(t, 400)
	stranger.post("/login/"+c.id+"/logout", "logout_token", c.idp.Logout("1", map[string]any{"sub": "1"})).shows(t, 200)
	newcomer.get("/catalog").goes(t, "/login?next=%2Fcatalog")

	c.admin.post(c.provider, "name", "Example", "issuer", c.idp.Issuer, "clientId", "", "userClaim", "preferred_username", "subjectClaim", "sub", "maxAgeDays", "30").shows(t, 422, "The identity provider was not changed.")
	c.admin.post(c.provider, "name", "Example", "issuer", c.idp.Issuer, "clientId", idptest.ClientID, "userClaim", "preferred_username", "subjectClaim", "sub", "maxAgeDays", "7").goes(t, c.provider)
	c.visitor().get("/login").hides(t, "Sign in with Example")
	c.admin.get(c.provider+"/delete").shows(t, 200, "1 user no longer signs in with it")
	c.admin.post(c.provider+"/delete").goes(t, "/admin/identity")
	c.admin.get(c.provider).shows(t, 404)
}

// TestConnectInPages: a user connects an account of a provider with himself, in the browser in which he began.
func TestConnectInPages(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	user := c.signedIn("demo", "user")
	user.get("/account/sign-in").shows(t, 200, "Connect Example")
	c.idp.Become(map[string]any{"sub": "9", "preferred_username": "whoever"})
	leave := user.post("/account/sign-in", "provider", c.id).shows(t, 200, "Connect an account")
	to, ok := strings.CutPrefix(leave.header.Get("Refresh"), "0; url=")
	if !ok {
		t.Fatal("the page leads nowhere")
	}
	c.travel(t, user, to).goes(t, "/account/sign-in")
	user.get("/account/sign-in").shows(t, 200, "Connected with Example.", "whoever", "Disconnect")
	other := c.visitor()
	if a := c.travel(t, other, "/login/"+c.id); a.status != http.StatusSeeOther {
		t.Errorf("the connected user signs in: %d", a.status)
	}
	other.get("/account").shows(t, 200, ">user<")
	user.post("/account/sign-in/disconnect", "provider", c.id).goes(t, "/account/sign-in")
	user.post("/account/sign-in/disconnect", "provider", c.id).shows(t, 404)
	c.travel(t, c.visitor(), "/login/"+c.id).shows(t, 403)
	c.admin.get("/account/sign-in").shows(t, 200).hides(t, "Connect Example") // the built-in administrator
}

// TestProviderAway: where the provider does not answer, passwords work, and the page says so.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	c.idp.Stop()
	c.visitor().get("/login/"+c.id).shows(t, 503, "does not answer", "Password")
	c.visitor().get("/login/none").shows(t, 404, "Password")
	c.visitor().get("/login/"+c.id+"/callback?state=x&code=y").shows(t, 400, "did not start in this browser")
	c.admin.post(c.provider+"/check").shows(t, 200, "does not answer")
	c.signedIn("demo", "user")
}
