package api

import (
	"encoding/json"
	"strings"
	"testing"
)

const webParameters = `"parameters":[{"key":"web.title","type":"text","required":true,"max":20},
	{"key":"web.workers","type":"number","default":"2","min":1,"max":9},{"key":"web.pin","type":"text","secret":true}]`

// withParameters gives the service web parameters.
func (w *world) withParameters() {
	w.t.Helper()
	body := w.call(w.admin, get, "/v2/services/web", "").want(200).body
	w.call(w.admin, put, "/v2/services/web", strings.TrimSuffix(strings.TrimSpace(body), "}")+","+webParameters+"}").want(200)
}

// TestParametersOfAService are stored with their types, exported, and refused where wrong.
func TestParametersOfAService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withParameters()
	stored := func() string {
		text, err := json.Marshal(w.call(w.admin, get, "/v2/services/web", "").want(200).object()["parameters"])
		w.must(err)
		return string(text)
	}
	before := stored()
	if before != `[{"key":"web.title","max":20,"required":true,"type":"text"},{"default":2,"key":"web.workers","max":9,"min":1,"type":"number"},{"key":"web.pin","secret":true,"type":"text"}]` {
		t.Errorf("the parameters are %s", before)
	}
	export := w.call(w.admin, get, "/v2/export", "").want(200).body
	if !strings.Contains(export, "web.workers") {
		t.Error("the export lacks the parameters")
	}
	w.call(w.admin, post, "/v2/import", export).want(200)
	if after := stored(); after != before {
		t.Errorf("after an import of the export they are %s", after)
	}
	service := func(parameters string) string {
		return `{"name":"other","provisioner":{"actions":{}},"parameters":` + parameters + `}`
	}
	for _, c := range []struct{ parameters, field, text string }{
		{`[{"key":"a b"}]`, "parameters[0].key", "dots"},
		{`[{"key":"a","type":"list"}]`, "parameters[0].type", "Choose one of"},
		{`[{"key":"a","type":"choice"}]`, "parameters[0].options", "choose from"},
		{`[{"key":"a"},{"key":"a"}]`, "parameters[1].key", "two parameters"},
		{`[{"key":"a","pattern":"("}]`, "parameters[0].pattern", "RE2"},
		{`[{"key":"a","type":"number","default":"x"}]`, "parameters[0].default", "a number"},
		{`[{"key":"a","help":"` + strings.Repeat("h", 301) + `"}]`, "parameters[0].help", "300"},
		{`[` + strings.Repeat(`{"key":"a"},`, 50) + `{"key":"a"}]`, "parameters", "at most 50"},
	} {
		w.call(w.admin, post, "/v2/services", service(c.parameters)).fails(400, c.field, c.text)
	}
}

// TestWrongSettingsAreRefused wherever a config is set.
func TestWrongSettingsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withParameters()
	create := func(config string) string {
		return `{"name":"x","clusterTemplate":"site","numMachines":3` + config + `}`
	}
	const missing, many = "web needs web.title.", "web: web.workers must be a number, 1–9."
	w.call(w.user, post, "/v2/clusters", create("")).fails(400, "config.web.title", missing)
	w.call(w.user, post, "/v2/clusters", create(`,"config":{"web":{"title":"x","workers":10}}`)).fails(400, "config.web.workers", many)
	w.call(w.user, post, "/v2/clusters", create(`,"configPatch":{"web":{"title":"x","workers":"%num.service.web%0"}}`)).fails(400, "config.web.workers", many)
	w.call(w.user, post, "/v2/previews", `{"kind":"create","request":`+create("")+`}`).fails(400, "request.config.web.title", missing)
	id, _ := w.call(w.user, post, "/v2/clusters", create(`,"configPatch":{"web":{"title":"x","workers":"%num.service.web%","pin":"hush-hush-9"}}`)).want(200).object()["id"].(string)
	w.finish(id)
	at := "/v2/clusters/" + id
	w.call(w.user, put, at+"/config", `{"config":{}}`).fails(400, "config.web.title", missing)
	w.call(w.user, put, at+"/config", `{"configPatch":{"web":{"workers":0}}}`).fails(400, "config.web.workers", many)
	p := w.call(w.user, post, "/v2/previews", `{"kind":"configure","clusterId":"`+id+`","request":{"configPatch":{"web":{"pin":"hush-hush-8"}}}}`).want(200)
	if strings.Contains(p.body, "hush-hush") {
		t.Errorf("the preview shows the PIN: %s", p.body)
	}
	failed, _ := w.call(w.user, post, "/v2/clusters", create(`,"configPatch":{"web":{"title":"x"}}`)).want(200).object()["id"].(string)
	w.fail(failed)
	w.call(w.user, post, "/v2/clusters/"+failed+"/operations/1/retry", `{"configPatch":{"web":{"title":""}}}`).fails(400, "config.web.title", missing)
}

// TestTemplatesWithWrongSettingsAreFound: a wrong default is, one that the user is to give is
// not.
func TestTemplatesWithWrongSettingsAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withParameters()
	findings := func() string { return w.call(w.admin, get, "/v2/check", "").want(200).body }
	if got := findings(); strings.Contains(got, `"parameter"`) {
		t.Errorf("a setting that is missing is a finding: %s", got)
	}
	body := w.call(w.admin, get, "/v2/clustertemplates/site", "").want(200).body
	w.call(w.admin, put, "/v2/clustertemplates/site", strings.Replace(body, `"port":80`, `"port":80,"workers":"many"`, 1)).want(200)
	if got := findings(); !strings.Contains(got, `"parameter"`) || !strings.Contains(got, "/defaults/config/web/workers") || !strings.Contains(got, "web: web.workers must be a number, 1–9.") {
		t.Errorf("a wrong default is no finding: %s", got)
	}
}
