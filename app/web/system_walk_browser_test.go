//go:build browser

package web_test

import (
	"testing"

	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestSystemWalked changes a password, signs out and in, and makes, changes and deletes a
// tenant, after a mistake in each, with the keyboard alone and by forms without scripts.
func TestSystemWalked(t *testing.T) {
	t.Parallel()
	for _, walk := range officeWalks {
		t.Run(walk.name, func(t *testing.T) {
			t.Parallel()
			w := newWalker(t, walk.options)
			hands := walk.hands(w)
			w.walkPassword(hands)
			w.walkSignIn(hands)
			w.walkTenant(hands)
			if complaints := w.b.Complaints(); len(complaints) != 0 {
				t.Errorf("the browser complains: %q", complaints)
			}
		})
	}
}

const newPassword = "four words in a row"

func (w *walker) walkPassword(hands browser.Hands) {
	w.t.Helper()
	b := w.b
	b.Open(w.server.URL + route.Account())
	fill := func(old string) {
		w.t.Helper()
		hands.Fill("the present password", "input[name=oldPassword]", old)
		hands.Fill("the new one", "form[action='"+route.AccountPassword("")+"'] input[name=password]", newPassword)
		hands.Fill("the new one again", "input[name=repeat]", newPassword)
		hands.Activate("change it", submit(route.AccountPassword("")))
	}
	fill("not the present one")
	w.atItsField("a wrong present password", "input[name=oldPassword]")
	if got := b.Value("input[name=repeat]"); got != "" {
		w.t.Errorf("a password came back: %q", got)
	}
	fill(w.passwords["demo/admin"].Reveal())
	b.WaitGone(".c-summary")
	b.WaitText("password")
}

func (w *walker) walkSignIn(hands browser.Hands) {
	w.t.Helper()
	b := w.b
	b.Open(w.server.URL + route.Account())
	hands.Activate("the menu of the account", "button.l-user")
	hands.Activate("sign out", submit(route.Logout()))
	b.WaitFor("input[name=user]")
	b.Open(w.server.URL + "/login?tenant=demo")
	hands.Fill("the user name", "input[name=user]", "admin")
	hands.Fill("the old password", "input[name=password]", w.passwords["demo/admin"].Reveal())
	hands.Activate("sign in", submit("/login"))
	w.summaryHasFocus()
	if got := b.Value("input[name=user]"); got != "admin" {
		w.t.Errorf("the user name is now %q", got)
	}
	hands.Fill("the new password", "input[name=password]", newPassword)
	hands.Activate("sign in", submit("/login"))
	b.Wait("the home page", func() bool { return b.URL() == w.server.URL+"/" })
	hands.Activate("the menu of the account", "button.l-user")
	hands.Activate("sign out", submit(route.Logout()))
	b.WaitFor("input[name=user]")
	b.Open(w.server.URL + "/login?tenant=superadmin")
	hands.Fill("the user name", "input[name=user]", "admin")
	hands.Fill("the password", "input[name=password]", w.passwords["superadmin/admin"].Reveal())
	hands.Activate("sign in", submit("/login"))
	b.Wait("the home page", func() bool { return b.URL() == w.server.URL+"/" })
}

func (w *walker) walkTenant(hands browser.Hands) {
	w.t.Helper()
	b, at := w.b, route.SystemTenant("walked")
	b.Open(w.server.URL + route.SystemTenantNew())
	hands.Fill("a name that is taken", "input[name=name]", "demo")
	hands.Fill("workers", "input[name=workers]", "1")
	hands.Activate("create", submit(route.SystemTenants()))
	w.atItsField("a taken name", "input[name=name]")
	if got := b.Value("input[name=workers]"); got != "1" {
		w.t.Errorf("the workers are now %q", got)
	}
	hands.Fill("the name", "input[name=name]", "walked")
	hands.Activate("create", submit(route.SystemTenants()))
	w.atItsField("workers that nobody has", "input[name=workers]")
	hands.Fill("no workers", "input[name=workers]", "0")
	hands.Activate("create", submit(route.SystemTenants()))
	b.WaitText("Tenant walked was created")
	hands.Activate("the password is copied", "form[data-dirty] button[type=submit]")
	b.WaitFor("a[href='" + at + "/edit']")
	hands.Activate("quotas", "a[href='"+at+"/edit']")
	b.WaitFor(submit(at))
	hands.Fill("workers", "input[name=workers]", "2")
	hands.Activate("save", submit(at))
	w.atItsField("workers that nobody has", "input[name=workers]")
	hands.Fill("no workers", "input[name=workers]", "0")
	hands.Fill("a quota", "input[name=maxNodes]", "7")
	hands.Activate("save", submit(at))
	b.WaitText("0 of 7")
	hands.Activate("the menu", "button[popovertarget=page-menu]")
	hands.Activate("delete", "a[href='"+route.SystemTenantDelete("walked")+"']")
	b.WaitFor("input[name=confirm]")
	if w.scripts {
		b.WaitFor("[data-confirm][aria-disabled=true]")
	}
	hands.Fill("half of the name", "input[name=confirm]", "walk")
	hands.Activate("delete", submit(route.SystemTenantDelete("walked")))
	if w.scripts { // nothing is sent, and the field says why
		b.WaitFor("input[name=confirm]:invalid")
	} else {
		w.atItsField("half of a name", "input[name=confirm]")
	}
	hands.Fill("the name", "input[name=confirm]", "walked")
	hands.Activate("delete", submit(route.SystemTenantDelete("walked")))
	b.Wait("the list without it", func() bool {
		return b.URL() == w.server.URL+route.SystemTenants() && b.Has("main h1") && !b.Has("main a[href='"+at+"']")
	})
}
