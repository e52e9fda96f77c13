package web_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/provisioner/automator/shell"
	"loom/views/route"
)

// Every seeded service goes through its form and comes back the same, member by
// member.
func TestServiceFormKeepsSeeds(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("superadmin", "admin")
	entries, err := r.catalog.Newest(r.ctx, loom.Actor{Tenant: loom.SuperTenant, Role: loom.RoleSuperadmin}, loom.KindService)
	check(t, err)
	if len(entries[loom.KindService]) < 5 {
		t.Fatalf("only %d services are seeded", len(entries[loom.KindService]))
	}
	for _, entry := range entries[loom.KindService] {
		edit := route.AdminEntryEdit(loom.KindService, entry.Meta().Name)
		want := document(t, v.get(edit+"?view=json").shows(t, 200))
		form := v.get(edit).shows(t, 200, `name="base"`, "What carries it out").hides(t, "style=", "<script>")
		if got := document(t, v.send(edit, press(t, form, "json")).shows(t, 200)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %v, was %v", entry.Meta().Name, got, want)
		}
		again := v.send(edit, press(t, form, "refresh:")).shows(t, 200)
		if got := document(t, v.send(edit, press(t, again, "json")).shows(t, 200)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %v on the second way", entry.Meta().Name, got)
		}
	}
}

// randomService makes a document that resembles a service, with values of wrong
// types, unknown actions, automators and members in between.
func randomService(rng *rand.Rand) map[string]any {
	names := func() any {
		list := []any{}
		for range rng.IntN(4) {
			list = append(list, []any{"nginx", "redis", "ghost", "a.b", "haproxy", json.Number("7"), "x y", ""}[rng.IntN(8)])
		}
		return list
	}
	maybe := func(doc map[string]any, key string, v any) {
		switch rng.IntN(8) {
		case 0:
		case 1:
			doc[key] = randomValue(rng, 1)
		default:
			doc[key] = v
		}
	}
	phase := func() any {
		p := map[string]any{}
		maybe(p, "requires", names())
		maybe(p, "uses", names())
		maybe(p, "scope", []any{"node", "cluster", "moon"}[rng.IntN(3)])
		return p
	}
	actions := map[string]any{}
	for _, key := range []string{"install", "start", "stop", "drain", "dance"} {
		fields := map[string]any{}
		maybe(fields, "script", "x.sh")
		maybe(fields, "args", "a\nb")
		maybe(fields, "colour", "red")
		action := map[string]any{}
		maybe(action, "type", []any{"shell", "gone", ""}[rng.IntN(3)])
		maybe(action, "fields", fields)
		maybe(action, "extra", true)
		maybe(actions, key, action)
	}
	dependencies, provisioner, doc := map[string]any{}, map[string]any{}, map[string]any{}
	for _, key := range []string{"provides", "conflicts"} {
		maybe(dependencies, key, names())
	}
	maybe(dependencies, "install", phase())
	maybe(dependencies, "runtime", phase())
	maybe(provisioner, "actions", actions)
	maybe(doc, "name", "some")
	maybe(doc, "icon", []any{"disk", "data:image/png;base64,AA=="}[rng.IntN(2)])
	maybe(doc, "dependencies", dependencies)
	maybe(doc, "provisioner", provisioner)
	maybe(doc, "follows", names())
	maybe(doc, "shrink", []any{"allow", "refuse", "maybe"}[rng.IntN(3)])
	maybe(doc, "links", []any{map[string]any{"url": "http://%host.self%/", "label": "L", "odd": 1}, map[string]any{}})
	maybe(doc, "defaultConfig", map[string]any{"a": json.Number("1.50"), "b": map[string]any{"c": nil}})
	maybe(doc, "colour", "blue")
	return doc
}

// Whatever somebody wrote as JSON goes through the form and comes back the same.
func TestServiceFormKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	step := route.AdminNew(loom.KindService)
	for seed := range uint64(60) {
		text := compactJSON(t, randomService(rand.New(rand.NewPCG(seed, 41))))
		form := v.post(step, "body", text, "do", "form").shows(t, 200, `name="base"`)
		got := document(t, v.send(step, press(t, form, "json")))
		if same := compactJSON(t, got); same != text {
			t.Errorf("seed %d: %s\nbecame %s", seed, text, same)
		}
	}
}

// fresh is the form of a new service with its four actions filled in.
func fresh(t *testing.T, v *visitor) url.Values {
	t.Helper()
	values := press(t, v.get("/admin/services/new").shows(t, 200, "Services: none", "Order preview"), "")
	values.Set("name", "web8081")
	for _, a := range []string{"install", "configure", "start", "stop"} {
		values.Set("provisioner.actions."+a+".fields.script", "sh")
	}
	return values
}

func TestServiceFormMakesAService(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	values := fresh(t, v)
	values.Set("label", "Small web server")
	values["relation.dependencies.install.requires"] = []string{"haproxy"}
	values.Set("relation.add", "later, base")
	values["dependencies.provides"] = nil
	values.Set("dependencies.provides+", "web")
	values["relation.follows"] = []string{"nginx"}
	values.Set("shrink", "refuse")
	values.Set("icon", "cloud")
	values.Set("dependencies.install.scope", "node")
	values.Set("do", "add:links")
	page := v.send("/admin/services/new", values).shows(t, 200, "Services: install requires haproxy; start requires later, base; reconfigure after nginx", "not in the catalog")
	values = press(t, page, "")
	values.Set("links[0].url", "http://%ip.access_v4.self%:8081/")
	v.send("/admin/services", values).goes(t, "/admin/services/web8081")
	entry, _, err := r.catalog.Entry(r.ctx, v.actor("demo"), loom.KindService, "web8081", 0)
	check(t, err)
	s := entry.(*loom.Service)
	if !reflect.DeepEqual(s.Dependencies.Install, loom.PhaseDependency{Requires: []string{"haproxy"}, Uses: []string{}, Scope: "node"}) || !reflect.DeepEqual(s.Dependencies.Runtime.Requires, []string{"later", "base"}) ||
		!reflect.DeepEqual(s.Dependencies.Provides, []string{"web"}) || !reflect.DeepEqual(s.Follows, []string{"nginx"}) || s.Shrink != "refuse" || s.Icon != "cloud" ||
		len(s.Links) != 1 || s.Links[0].URL != "http://%ip.access_v4.self%:8081/" || len(s.Provisioner.Actions) != 4 {
		t.Errorf("stored: %+v", s)
	}
	if got := s.Provisioner.Actions[loom.ActionStart]; got.Type != "shell" || got.Fields["script"] != "sh" || got.Fields["args"] != "start" {
		t.Errorf("start: %+v", got)
	}
}

// actor is an administrator of a tenant, for reading what was stored.
func (v *visitor) actor(tenant string) loom.Actor {
	v.t.Helper()
	var id loom.TenantID
	check(v.t, v.db.GetContext(v.ctx, &id, `SELECT id FROM tenants WHERE name = $1`, tenant))
	return loom.SystemActor(id, tenant)
}

func TestServiceFormActions(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "boxes"}, Parameters: map[string]loom.FieldGroup{"admin": {
		Fields: map[string]loom.FieldSchema{"image": {Label: "Image", Type: "text"}, "policy": {Label: "Policy", Type: "select", Options: []string{"no", "always"}, Default: "always"},
			"limit": {Label: "Limit", Type: "number"}}, Required: [][]string{{"image"}}}}}, shell.New().Type()}))
	v := r.signedIn("demo", "admin")
	step := "/admin/services/new"

	// Each action at most once: those that are there are not offered again.
	page := v.get(step).shows(t, 200)
	_, offer, _ := strings.Cut(page.body, `name="new:provisioner.actions"`)
	offer, _, _ = strings.Cut(offer, "</select>")
	if strings.Contains(offer, `"install"`) || !strings.Contains(offer, `"remove"`) || !strings.Contains(offer, `"drain"`) {
		t.Errorf("offered: %s", offer)
	}
	values := fresh(t, v)
	values.Set("new:provisioner.actions", "remove")
	values.Set("do", "add:provisioner.actions")
	page = v.send(step, values).shows(t, 200, `name="provisioner.actions.remove.type"`)
	// A switch that is off is nothing that the title of the fold has to say.
	v.send(step, press(t, page, "refresh:")).shows(t, 200).hides(t, ">More: ")

	// Another automator brings its own fields and their defaults.
	values = press(t, page, "refresh:")
	values.Set("provisioner.actions.remove.type", "boxes")
	page = v.send(step, values).shows(t, 200, `name="provisioner.actions.remove.fields.image"`, ">More: boxes").hides(t, `name="provisioner.actions.remove.fields.script"`)
	values = press(t, page, "")
	if got := values.Get("provisioner.actions.remove.fields.policy"); got != "always" {
		t.Errorf("the default of the policy is %q", got)
	}

	// What it needs is asked for at its field; nothing is stored.
	v.send("/admin/services", values).shows(t, 422, "The service was not saved.", `href="#f-provisioner-actions-remove-fields-image"`, "Required.", `value="web8081"`)
	values.Set("provisioner.actions.remove.fields.image", "nginx:1")
	values.Set("provisioner.actions.remove.fields.limit", "much")

	// Copying, of this service and of another.
	values.Set("do", "copy:copy")
	v.send(step, values).shows(t, 200, "Choose the action to copy.")
	values.Set("copy.from", "haproxy/configure")
	values.Set("copy.to", "initialize")
	page = v.send(step, values).shows(t, 200, `name="provisioner.actions.initialize.fields.script"`, "haproxy.sh")
	values = press(t, page, "copy:copy")
	values.Set("copy.from", "/remove")
	values.Set("copy.to", "drain")
	page = v.send(step, values).shows(t, 200, `name="provisioner.actions.drain.fields.image"`)
	values = press(t, page, "remove:provisioner.actions.stop")
	page = v.send(step, values).shows(t, 200).hides(t, `name="provisioner.actions.stop.type"`)
	v.send("/admin/services", press(t, page, "")).goes(t, "/admin/services/web8081")
	v.get("/admin/services/web8081").shows(t, 200, "image = nginx:1", "haproxy.sh", "drain").hides(t, "args = stop")
	v.send(step, url.Values{"base": {`{"name":"x"}`}, "do": {"copy:copy"}, "copy.from": {"none/install"}, "copy.to": {"fly"}}).shows(t, 200, "This action no longer exists")
	v.send(step, url.Values{"base": {`{"name":"x"}`}, "do": {"copy:copy"}, "copy.from": {"nginx/install"}, "copy.to": {"fly"}}).shows(t, 200, "Choose one of the actions.")
}

func TestServiceFormRules(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	r.storeService(`{"name":"left","dependencies":{"runtime":{"requires":["right"]}}}`)
	r.storeService(`{"name":"right","dependencies":{"provides":["hand"]}}`)
	page := v.get("/admin/services/right/edit").shows(t, 200, "asked for by counter-app", "Provides: hand").hides(t, `name="dependencies.conflicts" value="right"`, `name="follows" value="right"`)
	values := press(t, page, "")
	values["relation.dependencies.runtime.uses"] = []string{"left"}
	values["relation.dependencies.conflicts"] = []string{"nginx"}
	values["relation.dependencies.install.requires"] = []string{"nginx"}
	v.send("/validate/services", values).shows(t, 200, "→ left", "depend on each other in a circle", "It both requires “nginx” and conflicts with it", "Ready to save")
	v.send("/admin/services/right/edit", values).shows(t, 200, "wait for each other in a circle", "is-circle", "is-conflicts", "Services: install requires nginx; start uses left; conflicts with nginx")
	v.send("/admin/services/right", values).goes(t, "/admin/services/right") // it stops plans, not the save
	values.Set("relation.add", "right")
	values = press(t, v.send("/admin/services/right/edit", values), "")
	values.Set("expected", "2")
	v.send("/validate/services", values).shows(t, 200, "It requires itself")
}

func TestServiceFormPreviews(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	values := fresh(t, v)
	values["relation.dependencies.runtime.requires"] = []string{"nginx"}
	values.Set("do", "order:order")
	values.Set("order.template", "web-cluster")
	v.send("/admin/services/new", values).shows(t, 200, "Stages of a new cluster of web-cluster", "does not allow all of these services yet", "install haproxy", "web8081")
	values.Del("name")
	v.send("/admin/services/new", values).shows(t, 200, "Stages of a new cluster of web-cluster", "this service")
	values.Set("order.template", "nowhere")
	v.send("/admin/services/new", values).shows(t, 200, "There is no template")
	values.Set("picture.hops", "3")
	values.Set("do", "refresh:picture")
	v.send("/admin/services/new", values).shows(t, 200, "haproxy", `<option value="3" selected`).hides(t, "Stages of a new cluster")
	if found := testkit.FormValues(t, v.get("/admin/services").body, ""); len(found) == 0 {
		t.Error("the list has no form")
	}
	if _, _, err := r.catalog.Entry(r.ctx, v.actor("demo"), loom.KindService, "web8081", 0); err == nil {
		t.Error("a preview stored the service")
	}
}
