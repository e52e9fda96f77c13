//go:build browser

package web_test

import (
	"strings"
	"testing"

	"loom/views/route"
)

// TestGeneratedPasswordWalked: whoever signs in with a generated password chooses another
// one, after mistakes, with the keyboard alone and by forms without scripts.
func TestGeneratedPasswordWalked(t *testing.T) {
	t.Parallel()
	for _, walk := range officeWalks {
		t.Run(walk.name, func(t *testing.T) {
			t.Parallel()
			w := newWalker(t, walk.options)
			hands, b := walk.hands(w), w.b
			_, made := w.asked("ana")
			b.Open(w.server.URL + route.Account())
			hands.Activate("the menu of the account", "button.l-user")
			hands.Activate("sign out", submit(route.Logout()))
			b.WaitFor("input[name=user]")
			b.Open(w.server.URL + "/login?tenant=demo&next=%2Faccount%2Ftokens")
			hands.Fill("the user name", "input[name=user]", "ana")
			hands.Fill("the password", "input[name=password]", made)
			hands.Activate("sign in", submit("/login"))
			b.WaitText("An administrator generated your current password")
			if w.scripts {
				w.looks("the form for a new password")
			}
			fill := func(fresh string) {
				t.Helper()
				hands.Fill("the present password", "input[name=oldPassword]", made)
				hands.Fill("the new one", "input[name=password]", fresh)
				hands.Fill("the new one again", "input[name=repeat]", fresh)
				hands.Activate("change it", submit(route.AccountPassword("")))
			}
			fill("Basketball1")
			w.atItsField("a common password", "input[name=password]")
			if w.scripts {
				w.looks("the form with a mistake")
			}
			b.Open(w.server.URL + route.Clusters())
			b.Wait("the form again", func() bool {
				return strings.HasPrefix(b.URL(), w.server.URL+route.AccountPassword("")+"?next=")
			})
			fill(newPassword)
			b.Wait("the page that was wanted", func() bool { return b.URL() == w.server.URL+route.Clusters() })
			b.WaitText("Changed your password")
			if complaints := b.Complaints(); len(complaints) != 0 {
				t.Errorf("the browser complains: %q", complaints)
			}
		})
	}
}
