//go:build browser

package web_test

import (
	"regexp"
	"testing"

	"loom/app/testkit/browser"
)

// TestNewUserByKeyboard makes a user without pointing and signs in as him with the
// password that was shown once, which he has to change.
func TestNewUserByKeyboard(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	b := browser.New(t, browser.Options{})
	hands := b.Keyboard()
	signIn := func(user, password string) {
		b.Open(r.server.URL + "/login?tenant=demo")
		hands.Fill("the user name", "input[name=user]", user)
		hands.Fill("the password", "input[name=password]", password)
		hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	}
	home := func() {
		b.Wait("the home page", func() bool { return b.URL() == r.server.URL+"/" })
	}
	signIn("admin", r.passwords["demo/admin"].Reveal())
	home()
	b.Open(r.server.URL + "/admin/new-user")
	hands.Fill("the user name", "form[action='/admin/users'] input[name=id]", "eve")
	hands.Activate("create", "form[action='/admin/users'][method=post] button[type=submit]")
	b.WaitText("User eve was created")
	shown := regexp.MustCompile(`Password\s+(\S+)`).FindStringSubmatch(b.Text())
	if shown == nil {
		t.Fatalf("the page shows no password:\n%s", b.Text())
	}
	hands.Activate("it is copied", "form[data-dirty] button[type=submit]")
	b.WaitFor("a[href='/admin/users/eve']")
	hands.Activate("the account menu", "button.l-user")
	hands.Activate("sign out", "form[action='/logout'] button")
	b.WaitFor("input[name=password]")
	signIn("eve", shown[1])
	b.WaitText("An administrator generated your current password")
	hands.Fill("the present password", "input[name=oldPassword]", shown[1])
	hands.Fill("the new password", "input[name=password]", "four words in a row")
	hands.Fill("it again", "input[name=repeat]", "four words in a row")
	hands.Activate("change", "form[action^='/account/password'] button[type=submit]")
	home()
	b.WaitText("eve")
	b.Open(r.server.URL + "/admin/users")
	b.WaitText("administrator") // he may not
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
