package web_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/templateview"
)

// stackServices are services with dependencies: two databases of which one will do.
func stackServices(v *visitor) {
	for _, body := range []string{
		`{"name":"base"}`, `{"name":"java","dependencies":{"install":{"requires":["base"]}}}`,
		`{"name":"app","description":"The application","dependencies":{"install":{"requires":["java"]},"runtime":{"requires":["database"]}}}`,
		`{"name":"mysql","dependencies":{"provides":["database"],"conflicts":["pg"],"install":{"requires":["base"]}}}`,
		`{"name":"pg","dependencies":{"provides":["database"],"install":{"requires":["base"]}}}`, `{"name":"front"}`,
	} {
		v.post("/admin/services", "body", body)
	}
}

// gapsTemplate allows 1 to 9 machines, of which 3 to 5 have a layout.
const gapsTemplate = `{"name":"gaps","defaults":{"services":["front","pg","base"],"provider":"local"},"compatibility":{"services":["front","pg","base"]},
"constraints":{"size":{"min":1,"max":9},"layout":{"mustcoexist":[["base","front"]],"cantcoexist":[["front","pg"]]},
"services":{"pg":{"quantities":{"min":1,"max":2}},"front":{"quantities":{"min":2,"max":3}},"base":{"quantities":{"min":0}}}}}`

func TestTryPage(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	stackServices(v)
	v.post("/admin/templates", "body", gapsTemplate).goes(t, "/admin/templates/gaps")
	v.get("/admin/templates/gaps").shows(t, 200, `href="/admin/templates/gaps/try"`)
	v.get("/admin/templates/gaps/try").shows(t, 200, "<html", "The template allows 1–9 nodes, but only 3–5 work", `value="3"`,
		"Nodes: 1–2 cannot fit, 3–5 fits, 6–9 cannot fit.", "2 × base, front", "1 × pg", "At least 3 are needed.", "1–2", "6–9", "At most 5 nodes can be given a service.")
	v.get("/admin/templates/gaps/try?try.machines=8").shows(t, 200, "No layout for 8 nodes", `value="try.machines=5"`)
	v.get("/admin/templates/gaps/try?try.machines=8&suggest=try.machines%3D5").shows(t, 200, `value="5"`, "5 nodes, 3 services")
	v.get("/admin/templates/gaps/try?try.machines=x&try.from=7&try.to=2").shows(t, 200, "Enter a whole number from 1 to 10000.", "The last size is below the first.")
	v.get("/admin/templates/gaps/try?try.chosen=1&try.services=app").shows(t, 200, "app requires java", "does not allow service app")
	v.get("/admin/templates/gaps/try", "HX-Request", "true", "HX-Target", "trial").shows(t, 200, `id="trial"`).hides(t, "<html", "<main", "l-page-head")
	v.get("/admin/templates/none/try").shows(t, 404)
	r.signedIn("demo", "user").get("/admin/templates/gaps/try").shows(t, 403)
	r.signedIn("superadmin", "admin").get("/admin/templates/gaps/try").shows(t, 404)
}

// body is the document that a page of the editor would save.
func body(t *testing.T, page answer) map[string]any {
	t.Helper()
	values := press(t, page, "")
	var doc map[string]any
	if err := json.Unmarshal([]byte(values.Get(form.FieldBase)), &doc); err != nil {
		t.Fatalf("the document of the page: %v\n%s", err, values.Get(form.FieldBase))
	}
	return doc
}

func at(doc any, path ...string) string {
	for _, key := range path {
		m, ok := doc.(map[string]any)
		if !ok {
			return "<none>"
		}
		doc = m[key]
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// A template is written on all tabs with forms alone, saved from the last one and
// then tried.
func TestTemplateByForm(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	stackServices(v)
	page := v.get("/admin/templates/new").shows(t, 200, "New template", "General", "Compatibility", "Try it", `name="administration.leaseduration.initial"`)
	// to posts the form with some changes to another tab.
	to := func(tab, do string, change func(values url.Values)) answer {
		t.Helper()
		values := press(t, page, do)
		if change != nil {
			change(values)
		}
		page = v.send("/admin/templates/new?tab="+tab, values)
		return page
	}
	to("compatibility", "tab:", func(values url.Values) {
		values.Set("name", "shop")
		values.Set("label", "Shop")
		values.Set("administration.leaseduration.initial", "7d")
		values.Set("administration.leaseduration.max", "30d")
	}).shows(t, 200, `name="compatibility.services"`).hides(t, `name="label"`)
	to("compatibility", "require:compatibility.services", func(values url.Values) {
		values["compatibility.services"] = []string{"app", "front"}
	}).shows(t, 200, "“database” is required; tick mysql or pg.")
	if got := at(body(t, page), "compatibility", "services"); got != `["app","front","base","java"]` {
		t.Fatalf("compatible are %s", got)
	}
	to("defaults", "tab:", func(values url.Values) {
		values["compatibility.services"] = []string{"app", "front", "base", "java", "pg"}
	}).shows(t, 200, `name="defaults.provider"`).hides(t, `value="mysql"`)
	to("constraints", "tab:", func(values url.Values) {
		values["defaults.services"] = []string{"app", "front", "base", "java", "pg"}
		values.Set("defaults.provider", "local")
		values.Set("defaults.config", `{"app":{"port":80}}`)
	}).shows(t, 200, `data-cell`, "front and pg: free")
	to("constraints", templateview.RelateValue(loom.NewPair("front", "pg"), loom.RelationCant), func(values url.Values) {
		values.Set("constraints.size.min", "2")
		values.Set("constraints.size.max", "5")
	}).shows(t, 200, "front and pg: never share a node", "No node has both front and pg.")
	values := press(t, page, "")
	v.send("/admin/templates", values).goes(t, "/admin/templates/shop")
	entry, _, err := r.catalog.Entry(r.ctx, v.actor("demo"), loom.KindTemplate, "shop", 0)
	check(t, err)
	stored := entry.(*loom.Template)
	if fmt.Sprint(stored.Constraints.Layout.CantCoexist) != "[[front pg]]" || stored.Constraints.Size != (loom.SizeConstraint{Min: 2, Max: 5}) ||
		stored.Administration.Lease.Initial != 7*86_400_000 || stored.Label != "Shop" || stored.Defaults.Provider != "local" || fmt.Sprint(stored.Defaults.Config) != "map[app:map[port:80]]" {
		t.Errorf("stored is %+v", stored)
	}
	v.get("/admin/templates/shop/try").shows(t, 200, "Every size that the template allows works: 2–5 nodes.")
}

func TestTemplateTabs(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	stackServices(v)
	v.post("/admin/templates", "body", gapsTemplate).goes(t, "/admin/templates/gaps")
	edit := "/admin/templates/gaps/edit"
	v.get(edit+"/none").shows(t, 404, "The form has no part")
	for _, tab := range []string{"general", "compatibility", "defaults", "constraints", "includes", "try"} {
		page := v.get(edit+"/"+tab).shows(t, 200, `aria-current="page"`, `value="`+tab+`"`).hides(t, "style=", `data-dirty="1"`)
		before := body(t, page)
		for _, next := range []string{"general", "constraints", "try"} {
			moved := v.send(edit+"/"+next, press(t, page, "tab:")).shows(t, 200).hides(t, `data-dirty="1"`)
			if fmt.Sprint(body(t, moved)) != fmt.Sprint(before) {
				t.Errorf("%s to %s: the draft changed from %v to %v", tab, next, before, body(t, moved))
			}
		}
	}
	// What cannot be taken along is corrected first; what is wrong elsewhere counts there.
	page := v.get(edit + "/defaults")
	values := press(t, page, "tab:")
	values.Set("defaults.config", "{oops")
	v.send(edit+"/general", values).shows(t, 422, "Correct this before you go", "{oops", `name="defaults.config"`)
	page = v.get(edit + "/constraints")
	values = press(t, page, "tab:")
	values.Set("constraints.size.min", "12")
	page = v.send(edit+"/general", values).shows(t, 200, `name="label"`, `data-dirty="1"`)
	page = v.send("/admin/templates/gaps", press(t, page, "")).shows(t, 422, "The template was not saved.", "1 error", "Size, maximum:", "The maximum (9) is below the minimum (12).", `name="label"`)
	page = v.send(edit+"/constraints", press(t, page, "tab:"))
	values = press(t, page, "")
	values.Set("constraints.size.max", "")
	v.send("/admin/templates/gaps", values).goes(t, "/admin/templates/gaps")
}

func TestTemplateAdvice(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	stackServices(v)
	v.post("/admin/templates", "body", gapsTemplate).goes(t, "/admin/templates/gaps")
	edit := "/admin/templates/gaps/edit/"
	page := v.get(edit+"compatibility").hides(t, "out of the defaults")
	values := press(t, page, "refresh:")
	values["compatibility.services"] = []string{"front", "mysql", "pg"}
	page = v.send(edit+"compatibility", values).shows(t, 200, "base: default service of new clusters, but no longer compatible.", "Take it out of the defaults",
		"These services require base, which is not ticked.", "mysql and pg conflict", "users choose one of them")
	page = v.send(edit+"compatibility", press(t, page, "drop:defaults.services")).shows(t, 200).hides(t, "out of the defaults")
	if got := at(body(t, page), "defaults", "services"); got != `["front","pg"]` {
		t.Errorf("defaults are %s", got)
	}
	page = v.get(edit+"constraints").shows(t, 200, "If both are on a cluster, every node with base or front has both.").hides(t, "Split into pairs")
	values = press(t, page, "add:constraints.layout.cantcoexist")
	page = v.send(edit+"constraints", values).shows(t, 200, "Choose the services that may not share a node")
	values = press(t, page, "refresh:")
	values["constraints.layout.cantcoexist[1]"] = []string{"base", "front", "pg"}
	page = v.send(edit+"constraints", values).shows(t, 200, "Split into pairs", "No node has all of base, front and pg", "This group adds nothing: front and pg may not share a node anyway.")
	page = v.send(edit+"constraints", press(t, page, "split:constraints.layout.cantcoexist[1]")).shows(t, 200, "base and front are in both lists: they must share their nodes, and may not.")
	if got := at(body(t, page), "constraints", "layout", "cantcoexist"); got != `[["front","pg"],["base","front"],["base","pg"]]` {
		t.Errorf("split into %s", got)
	}
	page = v.send(edit+"constraints", press(t, page, "remove:constraints.layout.mustcoexist[0]")).hides(t, "in both lists")
	if got := at(body(t, page), "constraints", "layout", "mustcoexist"); got != `[]` {
		t.Errorf("must is %s", got)
	}
}

// The draft is tried as it stands, and takes over what would help.
func TestTryDraft(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	stackServices(v)
	v.post("/admin/templates", "body", gapsTemplate).goes(t, "/admin/templates/gaps")
	page := v.get("/admin/templates/gaps/edit/constraints")
	values := press(t, page, "tab:")
	values.Set("constraints.size.max", "4")
	page = v.send("/admin/templates/gaps/edit/try", values).shows(t, 200, "The template allows 1–4 nodes, but only 3–4 work")
	values = press(t, page, "try:")
	values.Set("try.machines", "4")
	values.Set("try.chosen", "1")
	values["try.services"] = []string{"pg", "base"}
	page = v.send("/admin/templates/gaps/edit/try", values).shows(t, 200, "4 nodes, 2 services")
	values = press(t, page, "")
	values.Set("try.apply", `{"constraints":{"size":{"max":7},"services":{"pg":null}}}`)
	page = v.send("/admin/templates/gaps/edit/try", values).shows(t, 200)
	if doc := body(t, page); at(doc, "constraints", "size", "max") != "7" || at(doc, "constraints", "services", "pg") != "null" {
		t.Errorf("constraints are %s", at(doc, "constraints"))
	}
	// Nothing of a trial is kept in the template, and no button of it saves.
	if strings.Contains(fmt.Sprint(body(t, page)), "try") {
		t.Errorf("the trial got into the draft: %v", body(t, page))
	}
	stored := v.get("/admin/templates/gaps?as=json").body
	if !strings.Contains(stored, `"max":9`) && !strings.Contains(stored, `"max": 9`) {
		t.Errorf("trying has saved: %s", stored)
	}
}
