//go:build browser

package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"loom/app/testkit/browser"
	"loom/app/testkit/glewlwyd"
	"loom/views/route"
)

// TestGlewlwydWalked signs in with a real provider: by its password page and without it, out of
// Loom and on to the provider, out at the provider and so out of Loom; and as somebody whom no
// rule gives a place.
func TestGlewlwydWalked(t *testing.T) {
	t.Parallel()
	p := glewlwyd.Start(t)
	c := companyAt(t, p.Issuer, glewlwyd.ClientID, p.Secret)
	p.Register(c.accounts.CallbackURL(c.id))
	c.admin.post(c.provider+"/check").shows(t, 200, "The provider answers.", p.Issuer+"/auth", "does not announce back-channel logout")
	at := c.admin.post("/admin/groups", "name", "Staff").location
	c.admin.post(at+"/roles", "role", "user").goes(t, at)
	c.apply(t, c.admin.post(c.provider+"/rules", "group", strings.TrimPrefix(at, "/admin/groups/"),
		"conditions[0].claim", "groups", "conditions[0].op", "is", "conditions[0].value", "staff", "conditions[1].op", "is", "conditions[2].op", "is")).goes(t, c.provider)

	b := browser.New(t, browser.Options{})
	hands := b.Mouse()
	const goOn, signOut = "#root button.btn-success", "#root button.btn-danger"
	// The provider's pages still move while they load: no pointing there.
	press := func(what, selector string) {
		t.Helper()
		b.WaitFor(selector)
		b.Do(what, chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).click()", selector)))
	}
	begin := func() {
		t.Helper()
		b.Open(c.server.URL + "/login?next=%2Faccount%2Fsign-in")
		hands.Activate("sign in with Example", "a[href^='/login/"+c.id+"']")
	}
	signIn := func(user, password string) {
		t.Helper()
		begin()
		b.WaitFor("#username")
		b.Do("the user name", chromedp.SendKeys(chromedp.CSS("#username"), user))
		b.Do("the password", chromedp.SendKeys(chromedp.CSS("#password"), password))
		press("sign in", "#root form button")
		const grant = ".carousel-item.active button.btn-primary"
		b.WaitText("Client access grant")
		press("grant access", grant)
		b.WaitGone(grant)
		press("continue", goOn)
	}

	signIn(glewlwyd.Eve, glewlwyd.EvePassword)
	b.WaitText("groups is “staff”")
	b.WaitText("eve@example.com")
	c.admin.get("/admin/users/eve").shows(t, 200, "Eve")
	hands.Activate("the menu of the account", "button.l-user")
	hands.Activate("sign out", submit(route.Logout()))
	b.WaitFor(signOut)
	end := b.URL()
	if !strings.HasPrefix(end, strings.TrimSuffix(p.Issuer, "/api/oidc")+"/login.html?") || !strings.Contains(end, "prompt=end_session") {
		t.Errorf("signing out leads to %s", end)
	}

	begin() // she did not sign out there
	press("continue", goOn)
	b.WaitText("groups is “staff”")
	b.Open(end)
	b.WaitText("Loom") // before it knows the client, its button breaks the page
	press("sign out at the provider", signOut)
	b.WaitText("You are disconnected") // it does not lead back
	b.Wait("the end of the session", func() bool {
		b.Open(c.server.URL + route.Clusters())
		return strings.HasPrefix(b.URL(), c.server.URL+"/login?next=")
	})

	signIn(glewlwyd.Bob, glewlwyd.BobPassword)
	b.WaitText("no rule gives you a place")
	b.WaitText("bob@example.com")
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
