//go:build browser

package web_test

import (
	"testing"

	"loom/app/testkit/browser"
)

// TestServiceFormFits: the form of nginx is at most 2,250 pixels high, with scripts and without;
// a letter that is typed is no error; a service that is ticked changes the title at once.
func TestServiceFormFits(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]browser.Options{"scripts": {Width: 1440}, "no scripts": {Width: 1440, NoScript: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalker(t, o)
			b, hands := w.b, w.hands
			if !o.NoScript {
				b.Open(w.server.URL + "/admin/services/new")
				hands.Fill("a letter", "input[name=label]", "W")
				b.WaitText("Still needed")
				if b.Has("#validation .c-banner") || b.Has("#validation [data-tone=bad]") || b.Has("#editor [aria-invalid]") {
					t.Error("a letter is taken for an error")
				}
				hands.Activate("cancel", "#editor button[value=cancel]")
				b.WaitFor("#list")
			}
			b.Open(w.server.URL + "/admin/services/nginx/edit")
			b.WaitFor("#relations")
			hands.Activate("hide the notice about the password", "#banners .c-close") // it is none of the form
			b.Wait("the form alone", func() bool { return !b.Has("#banners .c-banner") && b.Has("#relations") })
			if _, bottom := boxOf(b, "body"); bottom > 2250 {
				t.Errorf("the page is %.0f px high", bottom)
			}
			if o.NoScript {
				hands.Fill("HAProxy", "input[name='relation.dependencies.runtime.uses'][value=haproxy]", " ")
				hands.Activate("save", "#editor .c-form-bar button[data-kind=primary]")
				b.WaitText("Saved the service nginx as version 2.")
				return
			}
			hands.Fill("HAProxy", "input[name='relation.dependencies.runtime.uses'][value=haproxy]", " ")
			b.WaitText("Services: start uses haproxy")
			w.looks("the form of a service")
		})
	}
}
