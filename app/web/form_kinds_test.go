package web_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/views/route"
)

// send posts values, as a browser does with a form.
func (v *visitor) send(path string, values url.Values, headers ...string) answer {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.ctx, http.MethodPost, v.server.URL+path, strings.NewReader(values.Encode()))
	check(v.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return v.do(req)
}

// press gives the values of the editor in a page with a button pressed.
func press(t *testing.T, page answer, do string) url.Values {
	t.Helper()
	values := testkit.FormValues(t, page.body, "editor")
	values.Set("do", do)
	return values
}

// document reads the document of the editor that shows JSON.
func document(t *testing.T, page answer) any {
	t.Helper()
	var doc any
	d := json.NewDecoder(strings.NewReader(testkit.FormValues(t, page.body, "editor").Get("body")))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		t.Fatalf("the editor shows no JSON: %v", err)
	}
	return doc
}

// formKinds are the kinds that have a form of which this file knows.
var formKinds = []loom.EntityKind{loom.KindHardwareType, loom.KindImageType, loom.KindProvider}

// Every seeded entry goes through its form and comes back the same.
func TestFormsKeepEverySeededEntry(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("superadmin", "admin")
	for _, kind := range formKinds {
		entries, err := r.catalog.Newest(r.ctx, loom.Actor{Tenant: loom.SuperTenant, Role: loom.RoleSuperadmin}, kind)
		check(t, err)
		for _, entry := range entries[kind] {
			edit := route.AdminEntryEdit(kind, entry.Meta().Name)
			want := document(t, v.get(edit+"?view=json").shows(t, 200))
			form := v.get(edit).shows(t, 200, `name="base"`)
			got := document(t, v.send(edit, press(t, form, "json")).shows(t, 200))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s became %v, was %v", kind, entry.Meta().Name, got, want)
			}
		}
		if len(entries[kind]) == 0 {
			t.Errorf("there is no %s to try", kind.Word())
		}
	}
}

// Whatever somebody wrote as JSON goes through the form and comes back the same.
func TestFormsKeepWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	for _, kind := range formKinds {
		step := route.AdminNew(kind)
		for seed := range uint64(25) {
			text := compactJSON(t, randomDocument(rand.New(rand.NewPCG(seed, uint64(len(kind)))), kind))
			form := v.post(step, "body", text, "do", "form").shows(t, 200, `name="base"`)
			got := document(t, v.send(step, press(t, form, "json")))
			if same := compactJSON(t, got); same != text {
				t.Errorf("seed %d of %s: %s\nbecame %s", seed, kind, text, same)
			}
		}
	}
}

func compactJSON(t *testing.T, v any) string {
	t.Helper()
	body, err := json.Marshal(v) // sorts the members
	check(t, err)
	return string(body)
}

// randomDocument makes a document that resembles an entry of a kind, with values of
// wrong types and members that nobody knows in between.
func randomDocument(rng *rand.Rand, kind loom.EntityKind) map[string]any {
	keys := map[loom.EntityKind][]string{
		loom.KindProvider:     {"name", "label", "description", "icon", "deprecated", "providertype", "provisioner", "colour"},
		loom.KindHardwareType: {"name", "label", "description", "icon", "deprecated", "providermap", "colour"},
		loom.KindImageType:    {"name", "label", "description", "icon", "deprecated", "providermap", "colour"},
	}[kind]
	doc := map[string]any{}
	for _, key := range keys {
		if rng.IntN(5) == 0 {
			continue
		}
		doc[key] = randomValue(rng, 0)
		switch {
		case rng.IntN(6) == 0:
		case key == "providermap":
			rows := map[string]any{}
			for _, name := range []string{"local", "gone", "a.b", "über"}[:rng.IntN(5)] {
				rows[name] = randomMembers(rng, "flavor", "image", "sshuser", "vcpu", "disks", "x y", "a.b")
			}
			doc[key] = rows
		case key == "provisioner":
			doc[key] = randomMembers(rng, "internet", "region", "access", "other", "a.b", "list")
			delete(doc[key].(map[string]any), "access") // a secret is emptied, which is tested elsewhere
		case key == "providertype":
			doc[key] = []string{"local", "cloudy", "ghost", ""}[rng.IntN(4)]
		}
	}
	return doc
}

func randomMembers(rng *rand.Rand, names ...string) map[string]any {
	members := map[string]any{}
	for _, name := range names {
		if rng.IntN(2) == 0 {
			members[name] = randomValue(rng, 1)
		}
	}
	return members
}

func randomValue(rng *rand.Rand, depth int) any {
	texts := []string{"", "plain", " spaces ", "two\nlines", "\r\nodd\r\n", "<b>&amp;\"'", "ünïcode 木", "true", "0", strings.Repeat("long ", 50)}
	switch n := rng.IntN(12); {
	case n < 6:
		return texts[rng.IntN(len(texts))]
	case n == 6:
		return json.Number([]string{"0", "1.50", "-3", "1e3", "12345678901234567890"}[rng.IntN(5)])
	case n == 7:
		return rng.IntN(2) == 0
	case n == 8:
		return nil
	case n < 11 && depth < 3:
		return map[string]any{"k": randomValue(rng, depth+1)}
	}
	return []any{"x", nil}
}

// Rows come and go without scripts, and what was typed elsewhere stays.
func TestRowsWithoutScripts(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.post("/admin/providers", "body", `{"name":"far.away","label":"Far","providertype":"ghost"}`).goes(t, "/admin/providers/far.away")
	step := "/admin/hardware-types/new"
	page := v.get(step).shows(t, 200, "Without a row, these providers", "far.away", "type local")
	values := press(t, page, "add:providermap")
	values.Set("name", "big")
	values.Set("new:providermap", "far.away")
	values.Set("providermap.local.vcpu", "2")
	page = v.send(step, values).shows(t, 200, "<html", "Far, type ghost", `value="big"`, `name="providermap.far.away.flavor"`, "autofocus").hides(t, "Without a row")

	values = press(t, page, "add:providermap.far.away.#")
	values.Set("providermap.far.away.flavor", "huge")
	page = v.send(step, values).shows(t, 200, `name="providermap.far.away.#[0].key"`)
	values = press(t, page, "remove:providermap.local")
	values.Set("providermap.far.away.#[0].key", "zone")
	values.Set("providermap.far.away.#[0].value", "7")
	page = v.send(step, values).shows(t, 200, "Without a row, these providers").hides(t, "providermap.local")

	values = press(t, page, "")
	v.send("/admin/hardware-types", values).goes(t, "/admin/hardware-types/big")
	got := v.get("/admin/hardware-types/big?as=json").shows(t, 200)
	if want := `"providermap":{"far.away":{"flavor":"huge","zone":"7"}}`; !strings.Contains(strings.Join(strings.Fields(got.body), ""), want) {
		t.Errorf("stored is %s", got.body)
	}
}

// With scripts a step answers the same page, out of which htmx takes the group.
func TestRowsWithScripts(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	page := v.get("/admin/image-types/new").shows(t, 200, `hx-select="#f-group-providermap"`, `hx-select-oob="#form-base"`, `hx-target="#f-group-providermap"`)
	v.send("/admin/image-types/new", press(t, page, "remove:providermap.local"), "HX-Request", "true", "HX-Target", "f-group-providermap").
		shows(t, 200, `id="f-group-providermap"`, `id="form-base"`, "No provider can make a machine with this image yet").hides(t, "<html")
}

func TestErrorsAtTheirFields(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	page := v.get("/admin/hardware-types/new")
	values := press(t, page, "")
	values.Set("name", "a b")
	values.Set("icon", "javascript:alert(1)")
	refused := v.send("/admin/hardware-types", values).shows(t, 422, "The hardware type was not saved.", `href="#f-name"`, `href="#f-icon"`, `value="a b"`, "<details open")
	for _, id := range []string{"f-name", "f-icon"} {
		if !regexp.MustCompile(`<input[^>]*aria-describedby="[^"]*` + id + `-error`).MatchString(refused.body) {
			t.Errorf("the field %s does not name its error", id)
		}
	}
	// A name that is taken is told at the name, while it is typed and when it is saved.
	values.Set("icon", "")
	values.Set("name", "local-large")
	v.send("/admin/hardware-types", values).shows(t, 409, `href="#f-name"`, "There is a hardware type “local-large” already")
	values.Set("left", "f-name")
	v.send("/validate/hardware-types", values).shows(t, 200, "There is a hardware type “local-large” already", "1 error:")
	v.post("/validate/hardware-types/name", "name", "local-large").shows(t, 200, `id="f-name"`, `aria-invalid="true"`, "already").hides(t, "<html", "autofocus")
	v.post("/validate/hardware-types/name", "name", "free").shows(t, 200, `value="free"`).hides(t, "aria-invalid")
	v.post("/validate/hardware-types/name", "name", "a b").shows(t, 200, "Use letters without accents")
	r.signedIn("demo", "user").post("/validate/hardware-types/name", "name", "x").shows(t, 403)
	// A form without its document changes nothing.
	v.post("/admin/hardware-types/local-large", "expected", "1", "base", "no JSON").shows(t, 422, "open the editor again")
}

func TestJSONAndBack(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	edit := "/admin/hardware-types/local-large/edit"
	page := v.get(edit).shows(t, 200, "Edit as JSON").hides(t, `name="body"`)
	values := press(t, page, "json")
	values.Set("label", "Changed label")
	page = v.send(edit, values).shows(t, 200, "Edit as form", "&#34;label&#34;: &#34;Changed label&#34;", `name="expected" value="1"`)
	values = press(t, page, "form")
	values.Set("body", strings.Replace(values.Get("body"), "Changed label", "Again", 1)[1:])
	v.send(edit, values).shows(t, 422, "cannot be shown as a form yet", "data-line=", "Edit as form")
	values.Set("body", "{"+values.Get("body"))
	page = v.send(edit, values).shows(t, 200, `value="Again"`, `name="expected" value="1"`)
	v.send("/admin/hardware-types/local-large", press(t, page, "")).goes(t, "/admin/hardware-types/local-large")
	v.get("/admin/hardware-types/local-large").shows(t, 200, "Again")
	// Somebody was faster: the comparison, with nothing lost.
	values = press(t, page, "")
	values.Set("label", "Mine")
	v.send("/admin/hardware-types/local-large", values).shows(t, 409, "Keep mine", "Take theirs", "Edit merged", "Mine")
}

func TestProviderForm(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	const marker = "planted-secret-marker"
	step := "/admin/providers/new"
	page := v.get(step).shows(t, 200, "Change type", "Internet").hides(t, "A cloud for tests.")
	v.send("/admin/providers/new", press(t, page, "change:providertype")).shows(t, 200, "A cloud for tests.", `value="choose:providertype.cloudy"`).hides(t, "Internet")
	values := press(t, page, "refresh:")
	values.Set("name", "north")
	values.Set("providertype", "cloudy")
	page = v.send(step, values).shows(t, 200, "Access key", "Region").hides(t, "Other settings", `name="provisioner.internet"`)
	values = press(t, page, "")
	values.Set("provisioner.region", "r1")
	v.send("/admin/providers", values).shows(t, 422, "Required.", `href="#f-provisioner-access"`)
	values.Set("provisioner.access", marker)
	v.send("/validate/providers", values).shows(t, 200, "Ready to save").hides(t, marker)
	for _, do := range []string{"json", "add:provisioner.#", "refresh:"} {
		values.Set("do", do)
		v.send(step, values).shows(t, 200, "Secrets are not sent back").hides(t, marker)
	}
	values.Set("do", "")
	v.get(step).shows(t, 200, "Restored your unsaved form").hides(t, marker)
	v.send("/admin/providers", values).goes(t, "/admin/providers/north").hides(t, marker)
	edit := "/admin/providers/north/edit"
	page = v.get(edit).shows(t, 200, "Replace Access key", "by admin; never shown", "Test connection").hides(t, marker, `name="providertype"`)
	values = press(t, page, "")
	values.Set("provisioner.region", "r2")
	v.send("/admin/providers/north", values).goes(t, "/admin/providers/north")
	stored, _, err := r.catalog.Entry(r.ctx, loom.Actor{Tenant: r.tenant("demo").ID, Role: loom.RoleAdmin}, loom.KindProvider, "north", 0)
	check(t, err)
	if p := stored.(*loom.Provider); p.Fields["region"] != "r2" || fmt.Sprint(p.Sealed) != "[access]" {
		t.Errorf("stored is %+v", p)
	}
}

// TestMovedCredentialsInTheForm: who moves the address of a provider is asked for its
// secret at the field of the secret, which is open, and keeps what was typed.
func TestMovedCredentialsInTheForm(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{{Base: loom.Base{Name: "bound"}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
		"url": {Label: "Address", Type: "text"}, "token": {Label: "Token", Type: "password", BoundTo: []string{"url"}}, "zone": {Label: "Zone", Type: "text"}}}}}}, nil))
	v := r.signedIn("demo", "admin")
	const marker = "planted-secret-marker"
	v.post("/admin/providers", "body", `{"name":"north","providertype":"bound","provisioner":{"url":"https://a.example","token":"`+marker+`"}}`).goes(t, "/admin/providers/north")
	values := press(t, v.get("/admin/providers/north/edit"), "")
	values.Set("provisioner.url", "https://b.example")
	values.Set("provisioner.zone", "typed-before")
	refused := v.send("/admin/providers/north", values).shows(t, 422, "Give “Token” again", "since “Address” changed", `href="#f-provisioner-token"`,
		`value="https://b.example"`, `value="typed-before"`, `<details class="c-replace" open`).hides(t, marker)
	values = press(t, refused, "")
	values.Set("provisioner.token", "another-marker")
	v.send("/admin/providers/north", values).goes(t, "/admin/providers/north")
	v.get("/admin/providers/north").shows(t, 200, "https://b.example", "typed-before").hides(t, marker, "another-marker")
}

func TestDraftsOfForms(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	edit := "/admin/hardware-types/local-large/edit"
	page := v.get(edit).hides(t, "Restored your unsaved form")
	v.send("/validate/hardware-types", press(t, page, "")).shows(t, 200)
	v.get(edit).hides(t, "Restored your unsaved form") // nothing was changed
	values := press(t, page, "")
	values.Set("label", "Half done")
	v.send("/validate/hardware-types", values).shows(t, 200, "Ready to save")
	v.get(edit).shows(t, 200, "Restored your unsaved form", `value="Half done"`, "Discard")
	v.get("/admin/hardware-types/new").hides(t, "Half done")
	v.get("/admin/hardware-types/local-medium/edit").hides(t, "Half done")
	for _, other := range []*visitor{r.signedIn("superadmin", "admin")} {
		other.get(edit).shows(t, 200).hides(t, "Half done")
	}
	// It is nobody's business, and nowhere in plain text.
	var plain int
	check(t, r.db.GetContext(r.ctx, &plain, `SELECT count(*) FROM secrets WHERE entity LIKE 'draft:%' AND encode(sealed, 'escape') LIKE '%Half done%'`))
	var kept int
	check(t, r.db.GetContext(r.ctx, &kept, `SELECT count(*) FROM secrets WHERE entity LIKE 'draft:%' AND tenant_id = $1`, r.tenant("demo").ID))
	if plain != 0 || kept != 1 {
		t.Errorf("%d drafts in plain text, %d kept; want 0 and 1", plain, kept)
	}
	v.post(edit, "do", "discard").goes(t, edit)
	v.get(edit).hides(t, "Half done")

	// Text that is no JSON yet is kept as well, as the JSON that it will be.
	v.post("/validate/hardware-types", "entry", "local-large", "expected", "1", "body", `{"name": "sm`).shows(t, 200)
	v.get(edit).shows(t, 200, "Restored your unsaved form", "Edit as form", "sm")
	v.post(edit, "do", "cancel").goes(t, "/admin/hardware-types/local-large")
	v.get(edit).hides(t, "Restored your unsaved form")

	// Saving ends it; after a week it is gone.
	v.send("/validate/hardware-types", values)
	v.send("/admin/hardware-types/local-large", values).goes(t, "/admin/hardware-types/local-large")
	v.get(edit).shows(t, 200, `value="Half done"`).hides(t, "Restored your unsaved form")
	// What is kept after the entry that it made is no draft any more.
	made := `{"name":"made","description":"planted"}`
	v.post("/admin/hardware-types", "body", made).goes(t, "/admin/hardware-types/made")
	v.post("/validate/hardware-types", "body", made)
	v.get("/admin/hardware-types/new").shows(t, 200).hides(t, "Restored your unsaved form")
	v.post("/validate/hardware-types", "body", `{"name":"later"}`)
	v.get("/admin/hardware-types/new").shows(t, 200, "Restored your unsaved form")
	_, err := r.db.ExecContext(r.ctx, `UPDATE secrets SET updated_at = now() - interval '8 days' WHERE entity LIKE 'draft:%'`)
	check(t, err)
	v.get("/admin/hardware-types/new").shows(t, 200).hides(t, "Restored your unsaved form")
}

func TestEntryActions(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	entry := "/admin/hardware-types/local-small"
	v.get("/admin/hardware-types").shows(t, 200, "Used by", entry+"/uses", "3 entries")
	v.get(entry+"/edit").shows(t, 200, "Affects", "web-cluster")
	v.post(entry+"/deprecate", "deprecated", "true").goes(t, entry)
	v.get(entry).shows(t, 200, "is deprecated: it is hidden", "Undeprecate", "Deprecated")
	v.get("/admin/hardware-types?show=usable").hides(t, entry)
	v.post(entry+"/deprecate", "deprecated", "false").goes(t, entry)
	v.get(entry).shows(t, 200, "is offered for choosing again", "Deprecate")
	v.get(entry+"/versions").shows(t, 200, "Compare any two")
	v.get(entry+"/compare").shows(t, 200, "From version 2 to version 3", "deprecated")
	v.get(entry+"/compare?from=1&to=3").shows(t, 200, "Nothing differs.")
	v.get(entry+"/compare?from=9&to=3").shows(t, 404)
	v.get(entry+"/activity").shows(t, 200, "changed", "hardware type", "admin")
	bundle := v.get(entry+"/export").shows(t, 200, `"hardwaretypes"`, `"local-small"`).hides(t, "local-large", "web-cluster")
	if got := bundle.header.Get("Content-Disposition"); got != `attachment; filename="local-small.json"` {
		t.Errorf("the bundle is offered as %s", got)
	}
	for _, tab := range []string{"/compare", "/activity", "/export"} {
		v.get("/admin/hardware-types/ghost"+tab).shows(t, 404)
	}
	r.signedIn("demo", "user").post(entry+"/deprecate", "deprecated", "true").shows(t, 403)
}

func TestDraftOfANewCluster(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "user")
	values := testkit.FormValues(t, v.get("/clusters/new?template=web-cluster").shows(t, 200).hides(t, "Restored your unsaved form").body, "main")
	values.Set("description", "half a thought")
	values.Set("numMachines", "3")
	values.Set("providerFields.some_password", "planted-marker")
	v.send("/clusters/new/check", values).shows(t, 200)
	v.get("/clusters/new").shows(t, 200, "Restored your unsaved form", "half a thought", `value="3"`).hides(t, "planted-marker")
	v.get("/clusters/new?template=web-cluster").shows(t, 200).hides(t, "half a thought") // asked for something else
	r.signedIn("demo", "admin").get("/clusters/new").shows(t, 200).hides(t, "half a thought")
	v.post("/clusters/new", "do", "discard").goes(t, "/clusters/new")
	v.get("/clusters/new").shows(t, 200).hides(t, "half a thought")
}
