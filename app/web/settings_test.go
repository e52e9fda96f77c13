package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/route"
)

// withSettings gives nginx parameters.
func (w *clusterWorld) withSettings() {
	w.t.Helper()
	nginx := webService("nginx", "Serves the pages.")
	nginx.Parameters = []loom.Parameter{
		{Key: "web.title", Label: "Page title", Type: loom.ParameterText, Required: true, Max: json.Number("20")},
		{Key: "web.pin", Label: "PIN", Type: loom.ParameterText, Secret: true},
		{Key: "web.workers", Label: "Workers", Type: loom.ParameterNumber, Min: json.Number("1"), Max: json.Number("9"), Default: json.Number("2"), Restart: true},
		{Key: "web.gzip", Label: "Compress", Type: loom.ParameterBoolean},
		{Key: "web.mode", Label: "Mode", Type: loom.ParameterChoice, Options: []string{"plain", "fancy"}},
	}
	w.save(loom.KindService, nginx)
}

// made creates a cluster whose nginx has settings.
func (w *clusterWorld) made(name string) loom.ClusterID {
	w.t.Helper()
	ref, err := w.clusters.Create(w.ctx, w.actor("ana"), loom.CreateInput{Name: name, Template: "web-cluster", Machines: 3, LeaseMillis: loom.TemplateLease,
		ConfigPatch: map[string]any{"web": map[string]any{"title": "Shop", "pin": "planted-marker-21"}}})
	w.must(err)
	w.finish(ref, loom.ClusterActive)
	return ref.Cluster
}

func valueAt(t *testing.T, config map[string]any, key string) string {
	t.Helper()
	v, _ := loom.ConfigValue(config, key)
	return loom.FieldText(v)
}

// TestSettingsOfANewCluster fills in the fields without scripts: wrong, then right.
func TestSettingsOfANewCluster(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withSettings()
	at := "/clusters/new?template=web-cluster"
	page := w.get("ana", at).is(200, "<legend class=\"c-label\">Settings</legend>", "Page title", "Edit as JSON", `name="setting.web.workers" type="text" value="2"`)
	page.lacks("c-editor-input", "c-error")

	wrong := w.pressOn("ana", page, at, "Preview", "setting.web.workers", "12", "setting.web.pin", "planted-marker-22")
	wrong.is(422, "nginx needs web.title.", "nginx: web.workers must be a number, 1–9.", `id="f-setting-web-workers-error"`, `value="12"`, "Enter it again").lacks("planted-marker-22")

	right := w.pressOn("ana", wrong, route.Previews(), "Preview", "setting.web.title", "Blog", "setting.web.workers", "3", "setting.web.pin", "planted-marker-22", "setting.web.gzip", "true", "setting.web.mode", "fancy")
	preview := right.goesTo(`/previews/.*`)
	shown := w.get("ana", preview).is(200, "Blog").lacks("planted-marker-22")
	w.pressOn("ana", shown, preview, "Create web-cluster-ana-1").goesTo(`/clusters/.*`)
	list, err := w.clusters.Clusters(w.ctx, w.actor("ana"), clusters.ListInput{Page: loom.Page{Limit: 1}})
	w.must(err)
	config := w.cluster(list.Items[0].ID).Config
	for key, want := range map[string]string{"web.title": "Blog", "web.workers": "3", "web.pin": "planted-marker-22", "web.gzip": "true", "web.mode": "fancy", "web.port": "80"} {
		if got := valueAt(t, config, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// TestSettingsAndJSONAgree goes from fields to JSON and back.
func TestSettingsAndJSONAgree(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withSettings()
	at := "/clusters/new?template=web-cluster"
	page := w.press("ana", at, "Edit as JSON", "setting.web.title", "Blog").is(200, "c-editor-input", "&#34;title&#34;: &#34;Blog&#34;", "edited as JSON").lacks(`name="setting.web.title"`)
	back := w.pressOn("ana", page, route.Previews(), "Edit as fields", "config", `{"web": {"title": "News", "other": true}}`)
	back.is(200, `name="setting.web.title" required type="text" value="News"`, "&#34;other&#34;: true").lacks("c-editor-input")
	broken := w.pressOn("ana", page, route.Previews(), "Edit as fields", "config", `{"web": `)
	broken.is(200, "c-editor-input", "Line 1, column")
}

// TestSettingsFollowServices: a check brings the fields of a service that is ticked, and tells
// what is wrong with fields that somebody has come to.
func TestSettingsFollowServices(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withSettings()
	form := createValues("shop", "3")
	form.Set("settings", "1")
	form["services"] = []string{"haproxy", "nginx"}
	w.post("ana", route.ClusterCheck(), form).is(200, `id="settings" hx-swap-oob="true"`, `name="setting.web.workers" type="text" value="2"`, `id="config-part"`)
	form["settingShown"] = []string{"web.title", "web.pin", "web.workers", "web.gzip", "web.mode"}
	form.Set("setting.web.workers", "many")
	answer := w.post("ana", route.ClusterCheck(), form).is(200, "nginx needs web.title.", `id="f-row-web-workers" hx-swap-oob="morph"`, `id="f-setting-web-workers-error"`)
	answer.lacks(`id="f-setting-web-title-error"`, `id="settings"`, `id="f-row-web-pin"`)
}

// TestChangeSettings changes them on a cluster that is there, without scripts.
func TestChangeSettings(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withSettings()
	id := w.made("shop")
	at := route.ClusterVerb(id, "reconfigure")
	page := w.get("ana", at).is(200, "Page title", `value="Shop"`, `placeholder="set"`, "Change a setting.", "Changing it restarts the services.").lacks("planted-marker-21")
	w.pressOn("ana", page, at, "Preview", "setting.web.title", strings.Repeat("x", 21)).is(422, "nginx: web.title must be one line of text, at most 20 characters.", `id="f-setting-web-title-error"`)

	preview := w.pressOn("ana", page, at, "Preview", "setting.web.title", "Blog").goesTo(`/previews/.*`)
	w.get("ana", preview).is(200, "/web/title").lacks("/web/pin", "/web/workers")
	stops := func(preview string) bool {
		v, err := w.clusters.PreviewByID(w.ctx, w.actor("ana"), loom.PreviewID(strings.TrimPrefix(preview, "/previews/")))
		w.must(err)
		return v.ByAction[loom.ActionStop] > 0
	}
	if stops(preview) {
		t.Error("another title restarts the services")
	}
	preview = w.pressOn("ana", page, at, "Preview", "setting.web.workers", "3", "setting.web.pin", "planted-marker-23").goesTo(`/previews/.*`)
	shown := w.get("ana", preview).is(200, "/web/pin", "/web/workers").lacks("planted-marker")
	if !stops(preview) {
		t.Error("another number of workers restarts nothing")
	}
	w.pressOn("ana", shown, preview, "Change config of shop").goesTo(route.Cluster(id))
	config := w.cluster(id).Config
	if valueAt(t, config, "web.pin") != "planted-marker-23" || valueAt(t, config, "web.workers") != "3" || valueAt(t, config, "web.title") != "Shop" {
		t.Errorf("the config is %v", config)
	}
}

// TestConfigTabHasSettings with their values and sources, and no secret.
func TestConfigTabHasSettings(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withSettings()
	id := w.made("shop")
	page := w.get("ana", route.ClusterTab(id, "config")).is(200, "Page title", "service nginx", "you", "set", "[redacted]").lacks("planted-marker")
	if !strings.Contains(page.Body, ">2<") {
		t.Error("the number of workers is not there")
	}
	for _, path := range []string{route.Cluster(id), route.ClusterTab(id, "config") + "?macros=expanded", route.ClusterTab(id, "config") + "?revision=1", "/clusters/new?like=" + id.String(), route.ClusterTab(id, "config") + "?json"} {
		w.get("ana", path).is(http.StatusOK).lacks("planted-marker")
	}
	var after string
	w.must(w.db.Get(&after, `SELECT coalesce(string_agg(after::text, ' '), '') FROM audit WHERE after IS NOT NULL`))
	if strings.Contains(after, "planted-marker") {
		t.Error("the audit log has the PIN")
	}
}
