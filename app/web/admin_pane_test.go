package web_test

import (
	"html"
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/views/route"
)

// editorOf gives what a browser would post of an editor, with its pane.
func editorOf(t *testing.T, page answer, pairs ...string) url.Values {
	t.Helper()
	values := testkit.FormValues(t, page.body, "editor")
	if values.Get("json") == "" || values.Get("json.of") == "" {
		t.Fatal("the editor has no JSON pane")
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

// in replaces a text in the pane.
func in(t *testing.T, values url.Values, old, new string) url.Values {
	t.Helper()
	text := values.Get("json")
	if !strings.Contains(text, old) {
		t.Fatalf("the pane does not say %s: %s", old, text)
	}
	values.Set("json", strings.Replace(text, old, new, 1))
	return values
}

// The pane says what the form says, and what is typed there goes into the form.
func TestJSONPane(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.post("/admin/hardware-types", "body", `{"name":"big","label":"First","colour":"red","providermap":{"local":{"flavor":"mem=1g"}}}`).goes(t, "/admin/hardware-types/big")
	const edit = "/admin/hardware-types/big/edit"

	page := v.get(edit).shows(t, 200, `id="json-pane"`, "&#34;label&#34;: &#34;First&#34;")
	answer := v.send(route.AdminValidate(loom.KindHardwareType), editorOf(t, page, "label", "Second"), "HX-Request", "true").shows(t, 200, "data-draft=", "&#34;label&#34;: &#34;Second&#34;")
	if of := draftMark(answer.body); of == "" || of == editorOf(t, page).Get("json.of") {
		t.Errorf("the draft is called %q", of)
	}

	// The button takes the text over into the form; nothing is stored.
	took := v.send(edit, in(t, editorOf(t, page, "do", "take"), `"First"`, `"From JSON"`)).shows(t, 200, `value="From JSON"`, "The form says this now.")
	if got := editorOf(t, took); got.Get("label") != "From JSON" || !strings.Contains(got.Get("base"), "From JSON") {
		t.Errorf("the form came back with %v", got)
	}
	v.get("/admin/hardware-types/big?as=json").hides(t, "From JSON")
	// With scripts the same answer tells the pane of what came over.
	v.send(edit, in(t, editorOf(t, page, "do", "take"), `"First"`, `"From JSON"`), "HX-Request", "true", "HX-Target", "form-parts").shows(t, 200, "data-took", `value="From JSON"`)

	// What cannot be read stays in the pane, and the form stays as it is.
	broken := in(t, editorOf(t, page, "do", "take", "label", "Typed"), `"First"`, `"First`)
	bad := v.send(edit, broken, "HX-Request", "true", "HX-Target", "form-parts").shows(t, 422, "line 3", `data-goto="f-json"`, `data-typed="1"`, `value="Typed"`)
	if bad.header.Get("HX-Reswap") != "none" {
		t.Error("the form would be exchanged although the text was refused")
	}
	if got := editorOf(t, bad); got.Get("json") != broken.Get("json") || got.Get("json.of") != broken.Get("json.of") {
		t.Errorf("the pane came back with %q", got.Get("json"))
	}
	v.send(edit, editorOf(t, page, "do", "take", "json", "[1]")).shows(t, 422, "JSON object")
	v.send(edit, editorOf(t, page, "do", "take", "json", strings.Repeat(" ", 257<<10))).shows(t, 422, "larger than 256 KiB")

	// The other way round the form wins.
	shown := v.send(edit, in(t, editorOf(t, page, "do", "show", "label", "Typed"), `"First"`, `"Lost"`)).shows(t, 200).hides(t, "Lost")
	if got := editorOf(t, shown).Get("json"); !strings.Contains(got, `"Typed"`) {
		t.Errorf("the pane says %s", got)
	}
}

// Saving stores what was changed last, and asks where both were changed.
func TestJSONPaneSaves(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	const at = "/admin/image-types/debian12"
	stored := func(text string) {
		t.Helper()
		if a := v.get(at + "?as=json"); !strings.Contains(a.body, text) {
			t.Errorf("stored is %s, want %s", a.body, text)
		}
	}
	v.send(at, in(t, editorOf(t, v.get(at+"/edit")), `"Debian 12 with services"`, `"by the pane"`)).goes(t, at)
	stored("by the pane")
	v.send(at, editorOf(t, v.get(at+"/edit"), "description", "By the form")).goes(t, at)
	stored("By the form")

	both := in(t, editorOf(t, v.get(at+"/edit"), "description", "Form too"), "by the pane", "pane too")
	page := v.send(at, both).shows(t, 422, "were both changed", "Form too</textarea>", "pane too")
	stored("By the form")
	// A step of the form keeps what was typed into the pane.
	if got := editorOf(t, v.send(at+"/edit", editorOf(t, page, "do", "refresh:"))); !strings.Contains(got.Get("json"), "pane too") || got.Get("description") != "Form too" {
		t.Errorf("after a step: %v", got)
	}
	v.send(at+"/edit", editorOf(t, page, "do", "json")).shows(t, 422, "were both changed")
	decided := v.send(at+"/edit", editorOf(t, page, "do", "take")).shows(t, 200)
	v.send(at, editorOf(t, decided)).goes(t, at)
	stored("pane too")

	v.send(at, in(t, editorOf(t, v.get(at+"/edit")), `{`, `{{`)).shows(t, 422, "was not saved", "line 1")
	v.send(at, in(t, editorOf(t, v.get(at+"/edit")), `debian12`, `other`)).shows(t, 422, "The name cannot be changed")
}

// draftMark is the mark that comes with the document of a checked form.
func draftMark(page string) string {
	_, rest, _ := strings.Cut(page, `data-draft="`)
	mark, _, _ := strings.Cut(rest, `"`)
	return mark
}

// A secret is never in the pane, and one that was typed is not lost by it.
func TestJSONPaneKeepsSecrets(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	const planted = "s3cr3t-marker"
	page := v.send("/admin/providers/new", editorOf(t, v.get("/admin/providers/new"), "do", "refresh:", "name", "far", "providertype", "cloudy")).shows(t, 200)
	values := editorOf(t, page, "provisioner.region", "r", "provisioner.access", planted)
	checked := v.send(route.AdminValidate(loom.KindProvider), values, "HX-Request", "true").shows(t, 200, "data-draft").hides(t, planted)
	if t.Failed() {
		t.Fatal(checked.body)
	}
	values.Set("json.of", draftMark(checked.body))
	text, _, _ := strings.Cut(checked.body[strings.Index(checked.body, `data-draft="`):], "</textarea>")
	_, text, _ = strings.Cut(text, ">")
	values.Set("json", strings.Replace(html.UnescapeString(text), `"cloudy"`, `"cloudy", "icon": "far away"`, 1))
	v.send("/admin/providers/new", with(values, "do", "take"), "HX-Request", "true", "HX-Target", "form-parts").shows(t, 200, "Secrets are not sent back").hides(t, planted)
	values.Del("do")
	v.send("/admin/providers", values).goes(t, "/admin/providers/far")
	v.get("/admin/providers/far?as=json").shows(t, 200, "far away", `"sealed":["access"]`).hides(t, planted)
}

// with is a copy of values with one more.
func with(values url.Values, key, value string) url.Values {
	out := url.Values{key: {value}}
	for k, v := range values {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// Every kind has the pane, on each tab of its form.
func TestJSONPaneOfAllKinds(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	for kind, edit := range map[loom.EntityKind]string{
		loom.KindProvider: "/admin/providers/local/edit", loom.KindService: "/admin/services/nginx/edit", loom.KindTemplate: "/admin/templates/web-cluster/edit/constraints",
		loom.KindPartialTemplate: "/admin/partials/new", loom.KindHardwareType: "/admin/hardware-types/new",
	} {
		page := v.get(edit).shows(t, 200)
		values := editorOf(t, page, "do", "take")
		took := v.send(edit, in(t, values, `{`, `{"colour":"taken over",`)).shows(t, 200, `id="json-pane"`)
		if got := editorOf(t, took).Get("base"); !strings.Contains(got, "taken over") {
			t.Errorf("%s: the form was made from %s", kind, got)
		}
	}
}
