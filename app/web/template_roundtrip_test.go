package web_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

// Every seeded template goes through all tabs of its form and comes back the same.
func TestTemplateFormKeepsSeeds(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("superadmin", "admin")
	entries, err := r.catalog.Newest(r.ctx, loom.Actor{Tenant: loom.SuperTenant, Role: loom.RoleSuperadmin}, loom.KindTemplate)
	check(t, err)
	for _, entry := range entries[loom.KindTemplate] {
		edit := route.AdminEntryEdit(loom.KindTemplate, entry.Meta().Name)
		want := document(t, v.get(edit+"?view=json").shows(t, 200))
		page := v.get(edit).shows(t, 200, `name="base"`)
		for _, tab := range []string{"compatibility", "defaults", "constraints", "includes", "try", "general"} {
			page = v.send(edit+"/"+tab, press(t, page, "tab:")).shows(t, 200)
		}
		if got := document(t, v.send(edit, press(t, page, "json")).shows(t, 200)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %v, was %v", entry.Meta().Name, got, want)
		}
	}
	if len(entries[loom.KindTemplate]) == 0 {
		t.Error("there is no template to try")
	}
}

// Whatever somebody wrote as JSON goes through every tab and comes back the same.
func TestTemplateFormKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	for seed := range uint64(24) {
		kind := []loom.EntityKind{loom.KindTemplate, loom.KindPartialTemplate}[seed%2]
		text := compactJSON(t, randomTemplate(rand.New(rand.NewPCG(seed, 7))))
		step := route.AdminNew(kind)
		page := v.post(step, "body", text, "do", "form").shows(t, 200, `name="base"`)
		if kind == loom.KindTemplate {
			for _, tab := range []string{"compatibility", "defaults", "constraints", "includes", "general"} {
				page = v.send(step+"?tab="+tab, press(t, page, "tab:")).shows(t, 200)
			}
		}
		if got := compactJSON(t, document(t, v.send(step, press(t, page, "json")))); got != text {
			t.Errorf("seed %d: %s\nbecame %s", seed, text, got)
		}
	}
}

// randomTemplate resembles a template: what is known is there or not, or of a type
// that it cannot be, and members that nobody knows stand in between.
func randomTemplate(rng *rand.Rand) map[string]any {
	names := []string{"a", "b.c", "d-e", "%", "f g"}
	name := func() any { return names[rng.IntN(len(names))] }
	list := func(of func() any) func() any {
		return func() any {
			out := []any{}
			seen := map[any]bool{}
			for range rng.IntN(4) {
				v := of()
				if text, isText := v.(string); isText && seen[text] {
					continue // a list of names has each once
				} else if isText {
					seen[text] = true
				}
				out = append(out, v)
			}
			return out
		}
	}
	odd := []func() any{func() any { return nil }, func() any { return true }, func() any { return "text" }, func() any { return 3 }, func() any { return []any{} }, func() any { return map[string]any{"x": 1} }}
	object := func(members map[string]func() any) func() any {
		return func() any {
			out := map[string]any{}
			for _, key := range sortedNames(members) {
				switch rng.IntN(8) {
				case 0:
				case 1:
					out[key] = odd[rng.IntN(len(odd))]()
				default:
					out[key] = members[key]()
				}
			}
			if rng.IntN(3) == 0 {
				out["colour"] = "green"
			}
			return out
		}
	}
	number := func() any { return []any{1, 2147483647, 7, "4", 0}[rng.IntN(5)] }
	limits := object(map[string]func() any{"quantities": object(map[string]func() any{"min": number, "max": number}), "hardwaretypes": list(name), "imagetypes": list(name)})
	keyed := func() any {
		out := map[string]any{}
		for range rng.IntN(3) {
			out[names[rng.IntN(3)]] = limits()
		}
		return out
	}
	types := map[string]func() any{"services": list(name), "hardwaretypes": list(name), "imagetypes": list(name)}
	return object(map[string]func() any{
		"name": func() any { return "t" }, "label": name, "description": name, "deprecated": func() any { return true }, "immutable": func() any { return false },
		"defaults": object(map[string]func() any{"services": list(name), "provider": name, "hardwaretype": name, "imagetype": name, "dnsSuffix": name,
			"config": object(map[string]func() any{"a": number, "b": list(number)})}),
		"compatibility": object(types), "preferences": object(types),
		"constraints": object(map[string]func() any{"size": object(map[string]func() any{"min": number, "max": number}), "services": keyed,
			"layout": object(map[string]func() any{"mustcoexist": list(list(name)), "cantcoexist": list(list(name))})}),
		"administration": object(map[string]func() any{"leaseduration": object(map[string]func() any{"initial": number, "max": number, "step": number}), "onFailure": name}),
		"links":          list(object(map[string]func() any{"label": name, "url": name})),
		"includes":       list(object(map[string]func() any{"name": name})),
		"extends":        func() any { return map[string]any{"name": "parent"} },
	})().(map[string]any)
}

func sortedNames(members map[string]func() any) []string {
	var out []string
	for key := range members {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func TestPartialForm(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	page := v.get("/admin/partials/new").shows(t, 200, "New partial template", "Immutable", "no template can include it before it is stored").hides(t, "c-matrix")
	values := press(t, page, "")
	values.Set("name", "audit")
	values.Set("defaults.config", `{"audit":{"level":1}}`)
	values.Set("immutable", "true")
	v.send("/admin/partials", values).goes(t, "/admin/partials/audit")
	v.post("/admin/templates", "body", `{"name":"one","defaults":{"services":["nginx"],"provider":"local"},"includes":[{"name":"audit"}]}`).goes(t, "/admin/templates/one")
	v.post("/admin/templates", "body", `{"name":"two","extends":{"name":"one"},"defaults":{"config":{"mine":1}}}`).goes(t, "/admin/templates/two")

	page = v.get("/admin/partials/audit/edit").shows(t, 200, `href="/admin/templates/one"`, `href="/admin/templates/two"`, "Unchanged.")
	values = press(t, page, "refresh:")
	values.Set("defaults.config", `{"audit":{"level":2},"mine":0}`)
	v.send("/admin/partials/audit/edit", values).shows(t, 200, "defaults.config.audit.level", "<del>1</del>", "<ins>2</ins>", "It would no longer work",
		"The immutable partial template “audit” sets “mine”; template “two” may not set it again.")

	v.get("/admin/templates/two/edit/defaults").shows(t, 200, "Locked by immutable partial templates", "audit: ", "by audit")
	v.get("/admin/templates/two/edit/includes").shows(t, 200, "template one", "partial template audit", "this template", "locked", `href="/admin/partials/audit"`)
	page = v.get("/admin/templates/one/edit/includes").shows(t, 200, "Templates that extend this one", "Unchanged.")
	values = press(t, page, "")
	values.Set("extends.name", "two")
	v.send("/admin/templates/one/edit/includes", values).shows(t, 200, "Templates extend each other in a circle")
	values.Set("extends.name", "")
	page = v.send("/admin/templates/one/edit/includes", values)
	if doc := body(t, page); at(doc, "extends") != "null" {
		t.Errorf("extends is %s", at(doc, "extends"))
	}
	// What has no effect in a partial template is said and kept.
	v.post("/admin/partials", "body", `{"name":"vain","constraints":{"size":{"min":3}},"administration":{"onFailure":"undo"}}`).goes(t, "/admin/partials/vain")
	page = v.get("/admin/partials/vain/edit").shows(t, 200, "Without effect", "size and lease or failures")
	v.send("/admin/partials/vain", press(t, page, "")).goes(t, "/admin/partials/vain")
	if doc := body(t, v.get("/admin/partials/vain/edit")); at(doc, "constraints", "size", "min") != "3" {
		t.Errorf("constraints are %s", at(doc, "constraints"))
	}
}
