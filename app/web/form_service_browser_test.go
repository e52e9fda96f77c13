//go:build browser

package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"loom/app/loom"
	"loom/app/testkit/browser"
)

// TestServiceByKeyboard makes a small web server by the form alone, without
// pointing: its actions, a parameter, its check, what it needs, its link, and a look at the order.
func TestServiceByKeyboard(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	b := browser.New(t, browser.Options{})
	hands := b.Keyboard()
	b.Open(r.server.URL + "/login?tenant=demo")
	hands.Fill("the user name", "input[name=user]", "admin")
	hands.Fill("the password", "input[name=password]", r.passwords["demo/admin"].Reveal())
	hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	b.Wait("the home page", func() bool { return b.URL() == r.server.URL+"/" })
	b.Open(r.server.URL + "/admin/services")
	hands.Activate("a new service", "a[href='/admin/services/new']")
	b.WaitFor("#editor input[name=name]")
	// A letter is no mistake, nor is a name before it was left.
	hands.Fill("a letter of the label", "input[name=label]", "W")
	b.WaitText("Still needed")
	if b.Has("#validation .c-banner") {
		t.Error("the check scolds before a field was left")
	}
	hands.Fill("a name that is none", "input[name=name]", "web 8081")
	hands.Activate("how it looks", "#about > details > summary")
	b.WaitText("1 error:")
	b.Do("back to the top", chromedp.Focus(chromedp.CSS("#editor input[name=name]")))
	hands.Fill("the name", "input[name=name]", "web8081")
	for _, a := range [][2]string{
		{"install", `-c 'command -v python3'`}, {"configure", `-c 'mkdir -p /srv/web8081'`},
		{"start", `-c 'nohup python3 -m http.server 8081 -d /srv/web8081 >/dev/null 2>&1 &'`}, {"stop", `-c 'pkill -f "http.server 8081" || true'`},
	} {
		hands.Fill("the script of "+a[0], "input[name='provisioner.actions."+a[0]+".fields.script']", "sh")
		hands.Fill("the arguments of "+a[0], "input[name='provisioner.actions."+a[0]+".fields.args']", a[1])
	}
	hands.Activate("one more parameter", "button[value='add:parameters']")
	b.Wait("the focus in the new row", focused(b, "input[name='parameters[0].key']"))
	hands.Fill("its key", "input[name='parameters[0].key']", "web8081.title")
	hands.Fill("its label", "input[name='parameters[0].label']", "Title")
	b.WaitText("Nothing checks whether the service works.")
	hands.Fill("the check", "input[name='check.command']", "curl -sf http://127.0.0.1:8081/")
	b.Wait("nothing left to say", func() bool { return b.Has("#validation [data-tone=ok]") && !b.Has("#validation .c-reasons") })
	hands.Fill("haproxy among the services", "input[name='relation.dependencies.runtime.requires'][value=haproxy]", " ")
	b.WaitText("Services: start requires haproxy")
	b.WaitFor("#draft-picture a[href='/admin/services/haproxy']")
	hands.Activate("one more link", "button[value='add:links']")
	b.Wait("the focus in the new row", focused(b, "input[name='links[0].url']"))
	hands.Fill("its address", "input[name='links[0].url']", "http://%ip.access_v4.self%:8081/")
	hands.Activate("the preview of the order", "#advanced details:last-child > summary")
	hands.Activate("the order", "button[value='order:order']")
	b.WaitText("Stages of a new cluster")
	hands.Activate("create", "#editor .c-actions button[type=submit]")
	b.WaitText("Saved the service web8081 as version 1.")
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
	entry, _, err := r.catalog.Entry(r.ctx, r.visitor().actor("demo"), loom.KindService, "web8081", 0)
	check(t, err)
	s := entry.(*loom.Service)
	if len(s.Provisioner.Actions) != 4 || s.Provisioner.Actions[loom.ActionStop].Fields["args"] != `-c 'pkill -f "http.server 8081" || true'` || len(s.Links) != 1 ||
		len(s.Dependencies.Runtime.Requires) != 1 || len(s.Parameters) != 1 || s.Parameters[0].Key != "web8081.title" || s.Check == nil || s.Check.Command != "curl -sf http://127.0.0.1:8081/" {
		t.Errorf("stored: %+v", s)
	}
}
