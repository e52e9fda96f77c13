package web_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/views/route"
)

// acceptImpossible is a request that cannot be met, by one class of rule.
type acceptImpossible struct {
	name     string
	template loom.Template
	// machines, services and the rest of the form.
	machines string
	services []string
	more     url.Values
	// says are sentences of the rules that clash.
	says []string
	// prepare changes the world before the form is sent.
	prepare func(w *clusterWorld)
	code    int
}

func acceptCompat(min, max int, services ...string) loom.Template {
	return loom.Template{
		Defaults:      loom.Defaults{Services: services[:1], Provider: "lab"},
		Compatibility: loom.Compatibility{Services: services},
		Constraints:   loom.Constraints{Size: loom.SizeConstraint{Min: min, Max: max}},
	}
}

func acceptLimits(t loom.Template, limits map[string]loom.ServiceConstraint) loom.Template {
	t.Constraints.Services = limits
	return t
}

func acceptLayout(t loom.Template, must, cant [][]string) loom.Template {
	t.Constraints.Layout = loom.LayoutConstraints{MustCoexist: must, CantCoexist: cant}
	return t
}

func acceptCount(min, max int) loom.ServiceConstraint {
	q := &loom.Quantities{Min: &min}
	if max > 0 {
		q.Max = &max
	}
	return loom.ServiceConstraint{Quantities: q}
}

func acceptClasses() []acceptImpossible {
	elsewhere := acceptCompat(1, 9, "nginx")
	elsewhere.Compatibility.HardwareTypes = []string{"small"}
	return []acceptImpossible{
		{name: "size, too few", template: acceptCompat(3, 5, "nginx"), machines: "1", services: []string{"nginx"}, says: []string{"Enter 3–5 nodes."}},
		{name: "size, too many", template: acceptCompat(3, 5, "nginx"), machines: "9", services: []string{"nginx"}, says: []string{"Enter 3–5 nodes."}},
		{name: "cannot coexist", template: acceptLayout(acceptCompat(1, 9, "nginx", "cache"), nil, [][]string{{"cache", "nginx"}}), machines: "1", services: []string{"nginx", "cache"},
			says: []string{"can't share a node"}},
		{name: "must and cannot coexist", template: acceptLayout(acceptCompat(1, 9, "nginx", "cache"), [][]string{{"cache", "nginx"}}, [][]string{{"cache", "nginx"}}), machines: "2",
			services: []string{"nginx", "cache"}, says: []string{"can't share a node", "share a node"}},
		{name: "count, too few", template: acceptLimits(acceptCompat(1, 9, "nginx"), map[string]loom.ServiceConstraint{"nginx": acceptCount(3, 0)}), machines: "2",
			services: []string{"nginx"}, says: []string{"nginx", "at least 3"}},
		{name: "count, too many", template: acceptLimits(acceptCompat(1, 9, "nginx", "cache"), map[string]loom.ServiceConstraint{"nginx": acceptCount(1, 1), "cache": acceptCount(1, 1)}), machines: "5",
			services: []string{"nginx", "cache"}, says: []string{"nginx", "at most 1"}},
		{name: "hardware limit of a service", template: acceptLimits(acceptCompat(1, 9, "nginx"), map[string]loom.ServiceConstraint{"nginx": {HardwareTypes: []string{"large"}}}), machines: "2",
			services: []string{"nginx"}, more: url.Values{"hardwaretype": {"small"}}, says: []string{"nginx", "large"}},
		{name: "hardware limits that exclude each other", template: acceptLayout(acceptLimits(acceptCompat(1, 9, "nginx", "cache"),
			map[string]loom.ServiceConstraint{"nginx": {HardwareTypes: []string{"large"}}, "cache": {HardwareTypes: []string{"small"}}}), [][]string{{"cache", "nginx"}}, nil), machines: "2",
			services: []string{"nginx", "cache"}, says: []string{"large", "small"}},
		{name: "image limit of a service", template: acceptLimits(acceptCompat(1, 9, "nginx"), map[string]loom.ServiceConstraint{"nginx": {ImageTypes: []string{"debian-13"}}}), machines: "2",
			services: []string{"nginx"}, more: url.Values{"imagetype": {"debian-12"}}, says: []string{"nginx", "debian-13"}},
		{name: "hardware limit of the template", template: elsewhere, machines: "2", services: []string{"nginx"}, more: url.Values{"hardwaretype": {"large"}},
			says: []string{"does not allow hardware type large"}},
		{name: "missing dependency", template: acceptCompat(1, 9, "haproxy", "nginx"), machines: "2", services: []string{"haproxy"}, says: []string{"haproxy requires nginx"}},
		{name: "missing dependency that several provide", template: acceptCompat(1, 9, "app", "mysql", "postgres"), machines: "2", services: []string{"app"},
			says: []string{"app requires database"}},
		{name: "missing dependency that the template lacks", template: acceptCompat(1, 9, "nginx", "haproxy", "app"), machines: "2", services: []string{"nginx", "app"},
			says: []string{"app requires database"}},
		{name: "conflict", template: acceptCompat(1, 9, "mysql", "postgres"), machines: "2", services: []string{"mysql", "postgres"}, says: []string{"conflicts with"}},
		{name: "service that the template does not have", template: acceptCompat(1, 9, "nginx"), machines: "2", services: []string{"nginx", "cache"}, says: []string{"does not allow service cache"}},
		{name: "hardware type without an entry for the provider", template: acceptCompat(1, 9, "nginx"), machines: "2", services: []string{"nginx"},
			more: url.Values{"hardwaretype": {"faraway"}}, says: []string{"faraway has no entry “flavor” for provider lab"}},
		{name: "image type without an entry for the provider", template: acceptCompat(1, 9, "nginx"), machines: "2", services: []string{"nginx"},
			more: url.Values{"imagetype": {"faraway"}}, says: []string{"faraway has no entry “image” for provider lab"}},
		{name: "provider without an entry for any type", template: acceptCompat(1, 9, "nginx"), machines: "2", services: []string{"nginx"},
			more: url.Values{"provider": {"bare"}, "forProvider": {"bare"}}, says: []string{"for provider bare"}},
		{name: "quota of nodes", template: acceptCompat(1, 9, "nginx"), machines: "9", services: []string{"nginx"}, says: []string{"The tenant may have 4 nodes"}, code: http.StatusConflict,
			prepare: func(w *clusterWorld) { w.db.MustExec(`UPDATE tenants SET max_nodes = 4 WHERE id = $1`, w.tenant.ID) }},
		{name: "quota of nodes, and a layout that needs more", machines: "1", services: []string{"nginx", "cache", "app", "mysql"}, says: []string{"can't share a node"},
			template: acceptLayout(acceptCompat(1, 9, "nginx", "cache", "app", "mysql"), nil,
				[][]string{{"cache", "nginx"}, {"app", "nginx"}, {"mysql", "nginx"}, {"app", "cache"}, {"cache", "mysql"}, {"app", "mysql"}}),
			prepare: func(w *clusterWorld) { w.db.MustExec(`UPDATE tenants SET max_nodes = 3 WHERE id = $1`, w.tenant.ID) }},
	}
}

// fillForImpossible adds to the catalog what the classes need.
func (w *clusterWorld) fillForImpossible() {
	far := map[string]map[string]string{"far": {"flavor": "x", "image": "x"}}
	lab := map[string]map[string]string{"lab": {"image": "trixie"}}
	w.save(loom.KindProvider, &loom.Provider{Base: loom.Base{Name: "bare"}, Type: "lab", Fields: map[string]any{"region": "south"}})
	w.save(loom.KindProvider, &loom.Provider{Base: loom.Base{Name: "far"}, Type: "lab", Fields: map[string]any{"region": "west"}})
	w.save(loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "faraway"}, ProviderMap: far})
	w.save(loom.KindImageType, &loom.ImageType{Base: loom.Base{Name: "faraway"}, ProviderMap: far})
	w.save(loom.KindImageType, &loom.ImageType{Base: loom.Base{Name: "debian-13"}, ProviderMap: lab})
	w.save(loom.KindService, webService("app", "Asks a database.", "database"))
	for _, name := range []string{"mysql", "postgres"} {
		s := webService(name, "Keeps tables.")
		s.Dependencies.Provides, s.Dependencies.Conflicts = []string{"database"}, []string{"database"}
		w.save(loom.KindService, s)
	}
}

// TestEveryClassOfRefusalOffersAWayOut sends a form that cannot be met for each class
// of rule: the answer names the rules that clash, and each of its buttons, pressed,
// gives a form that fits and leads to a preview.
func TestEveryClassOfRefusalOffersAWayOut(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.fillForImpossible()
	for i, c := range acceptClasses() {
		t.Run(c.name, func(t *testing.T) {
			w := *w
			w.t = t
			if c.prepare != nil {
				c.prepare(&w)
				defer w.db.MustExec(`UPDATE tenants SET max_nodes = 60 WHERE id = $1`, w.tenant.ID)
			}
			c.template.Base = loom.Base{Name: "accept-" + string(rune('a'+i))}
			w.save(loom.KindTemplate, &c.template)
			v := url.Values{"kind": {"create"}, "clusterTemplate": {c.template.Name}, "for": {c.template.Name}, "forProvider": {"lab"}, "provider": {"lab"},
				"name": {"impossible"}, "numMachines": {c.machines}, "servicesShown": {"1"}, "services": c.services}
			for name, value := range c.more {
				v[name] = value
			}
			w.leavesWaysOut(c, v)
		})
	}
}

// A trial of a template offers another provider as the form for a cluster does.
func TestTrialOffersAnotherProvider(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.fillForImpossible()
	at := "/admin/templates/web-cluster/try?try.machines=3&try.provider=bare"
	page := w.get("admin", at).is(http.StatusOK, "Cannot fit", "for provider bare")
	for _, b := range testkit.Buttons(t, page.Body) {
		if strings.Contains(b.Label, "provider lab instead of bare") {
			b.Values.Set(b.Name, b.Value)
			w.get("admin", "/admin/templates/web-cluster/try?"+b.Values.Encode()).is(http.StatusOK, ">Fits<")
			return
		}
	}
	t.Fatalf("no button for another provider: %.3000s", page.main())
}

func (w *clusterWorld) leavesWaysOut(c acceptImpossible, v url.Values) {
	w.t.Helper()
	code := c.code
	if code == 0 {
		code = http.StatusUnprocessableEntity
	}
	panel := w.post("ana", route.ClusterCheck(), v).is(http.StatusOK, "Cannot fit")
	page := w.post("ana", route.Previews(), v).is(code, "Cannot fit", "impossible")
	for _, answer := range []clusterAnswer{panel, page} {
		text := html.UnescapeString(answer.Body)
		for _, sentence := range c.says {
			if !strings.Contains(text, sentence) {
				w.t.Errorf("the answer does not say %q: %.3000s", sentence, answer.main())
			}
		}
	}
	pressed := 0
	for _, b := range testkit.Buttons(w.t, page.Body) {
		if b.Name != "suggest" {
			continue
		}
		pressed++
		changed := w.send("ana", b.Method, b.Action, b.Values)
		if changed.Code != http.StatusOK || !strings.Contains(changed.Body, ">Fits<") {
			w.t.Errorf("%q does not lead to a form that fits: %d %.3000s", b.Label, changed.Code, changed.main())
			continue
		}
		for _, next := range testkit.Buttons(w.t, changed.Body) {
			if next.Label == "Preview" {
				w.send("ana", next.Method, next.Action, next.Values).goesTo(`/previews/[0-9a-f-]{36}`)
			}
		}
	}
	if pressed == 0 {
		w.t.Errorf("nothing is offered: %.6000s", page.main())
	}
}
