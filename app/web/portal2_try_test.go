package web_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// TestTrySaysOnce: notes about one service are one note, which adds it; sizes of one pattern are
// one line.
func TestTrySaysOnce(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.get("/admin/templates/web-cluster/try").shows(t, 200, ">2–500<", "1 × haproxy", "n−1 × nginx").hides(t, "2 × nginx</li>")
	v.get("/admin/templates/web-cluster/try?try.machines=500").shows(t, 200, "500 nodes, 2 services", "499 × nginx")
	r.importSample()
	const at = "/admin/templates/hadoop-distributed/try"
	v.get(at+"?try.machines=10000").shows(t, 200, ">9501–10000<")
	page := v.get(at).shows(t, 200, "7 services can use “kerberos-client”", "n−1 × ")
	notes := cut(page.body[:strings.Index(page.body, `id="sizes-title"`)], `id="notes"`, "</ul>")
	if n := strings.Count(notes, "<li"); n < 3 || n > 6 {
		t.Errorf("%d notes: %s", n, notes)
	}
	// The template does not allow it: it is added to the template alone.
	page.hides(t, `aria-label="Add kerberos-client"`)
	edit := v.get("/admin/templates/hadoop-distributed/edit/try").shows(t, 200, `aria-label="Add kerberos-client"`)
	fields := testkit.FormValues(t, edit.body, "editor")
	add := regexp.MustCompile(`<button[^>]*aria-label="Add kerberos-client"[^>]*>`).FindString(edit.body)
	attribute := func(name string) string {
		return html.UnescapeString(regexp.MustCompile(` ` + name + `="([^"]*)"`).FindStringSubmatch(add)[1])
	}
	fields.Set(attribute("name"), attribute("value"))
	step, _, _ := strings.Cut(attribute("formaction"), "#")
	v.send(step, fields).shows(t, 200, "services can use “kerberos-master”").hides(t, "can use “kerberos-client”")
}

// TestEditorBarTellsState: the bar of a form says whether it can be saved, and leads to what is
// wrong or missing, after each check too.
func TestEditorBarTellsState(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	bar := func(body string) string {
		_, rest, _ := strings.Cut(body, `id="save-state"`)
		text, _, _ := strings.Cut(rest, "</p>")
		return text
	}
	if got := bar(v.get("/admin/templates/web-cluster/edit").body); !strings.Contains(got, "Ready to save") {
		t.Errorf("the bar says %q", got)
	}
	for kind, at := range map[loom.EntityKind]string{loom.KindTemplate: "/admin/templates/web-cluster/edit/constraints", loom.KindPartialTemplate: route.AdminNew(loom.KindPartialTemplate)} {
		fields := testkit.FormValues(t, v.get(at).body, "editor")
		fields.Set("constraints.size.min", "no number")
		fields.Set("name", "no name")
		if got := bar(v.send(route.AdminValidate(kind), fields).body); !strings.Contains(got, "1 field missing</a>") {
			t.Errorf("the bar of %s says %q", kind, got)
		}
		left := map[loom.EntityKind]string{loom.KindTemplate: "constraints.size.min", loom.KindPartialTemplate: "name"}[kind]
		fields.Set(adminview.FieldLeft, ui.FieldID("", left))
		if got, want := bar(v.send(route.AdminValidate(kind), fields).body), `href="#`+ui.FieldID("", left)+`" data-tone="bad">1 error</a>`; !strings.Contains(got, want) {
			t.Errorf("the bar of %s says %q, want %s", kind, got, want)
		}
	}
}
