package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/clusterview"
	"loom/views/route"
)

func TestNodesTab(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 6)
	w.finish(op, loom.ClusterActive)
	base := route.ClusterNodes(op.Cluster)
	w.get("ana", base).is(200, "nginx (5)", "haproxy (1)", "<details", "<span>Checking…</span>", "10.77.1.10").lacks("Search nodes")
	w.get("ana", base+"?view=flat").is(200, "Search nodes", "10.77.1.15").lacks("<details class=\"c-set\"")
	w.get("ana", base+"?view=flat&service=haproxy").is(200, "10.77.1.10", "Clear filters").lacks("10.77.1.11")
	w.get("ana", base+"?view=flat&q=1.77.1.14+nothing").is(200, "No node matches these filters.")
	w.get("ana", base+"?view=flat&q=10.77.1.14").is(200, "10.77.1.14").lacks("10.77.1.13")
	w.get("ana", base+"?view=flat&state=failed").is(200, "No node matches these filters.")
	w.get("ana", clusterview.PartURL(op.Cluster, clusterview.PartNodes)+"&view=flat&service=haproxy").is(200, `id="cluster-nodes"`, "10.77.1.10", "service=haproxy").lacks("10.77.1.11", "<main")
	for as, text := range map[string]string{"ssh": "HostName 10.77.1.12", "hosts": "10.77.1.12\tshop", "csv": ",10.77.1.12,"} {
		at := route.ClusterCopy(op.Cluster, as)
		w.get("ana", at).is(200, text, "Download")
		w.part("ana", at, "dialog").is(200, text).lacks("<main")
		file := w.get("ana", at+"&download=1").is(200, text).lacks("<html")
		if got := file.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment") {
			t.Errorf("%s is sent as %q", as, got)
		}
		w.get("eve", at).is(404)
	}
	w.get("ana", route.ClusterCopy(op.Cluster, "xml")).is(404)
}

func TestServicesTabSumsUp(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 6)
	w.finish(op, loom.ClusterActive)
	w.db.MustExec(`UPDATE nodes SET service_states = '{"nginx": "failed"}' WHERE cluster_id = $1 AND number = 1002`, int64(op.Cluster))
	page := w.get("ana", route.ClusterTab(op.Cluster, "services")).is(200, "<span>Failed</span>", "<span>Started</span>", "5 nodes", ">start</a>", "Statistics", route.ClusterService(op.Cluster, "nginx", "restart"))
	if n := strings.Count(page.Body, `id="service-nginx"`); n != 1 {
		t.Errorf("nginx has %d rows", n)
	}
}

func TestConfigTab(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 3)
	w.finish(op, loom.ClusterActive)
	base := route.ClusterTab(op.Cluster, "config")
	w.get("ana", base).is(200, "Config in use", "%host.service.nginx%", "Config 1", "in use", "Change config")
	w.get("ana", base+"?macros=expanded").is(200, "Config with macros filled in", ".lab.example").lacks("%host.service.nginx%")
	ref, err := w.clusters.Begin(w.ctx, w.actor("ana"), clusters.PreviewInput{Kind: loom.ChangeConfigure, Cluster: op.Cluster, Configure: &clusters.ConfigureInput{ConfigPatch: map[string]any{"web": map[string]any{"port": 8080}, "password": "planted-marker-9"}}})
	w.must(err)
	w.finish(ref, loom.ClusterActive)
	w.get("ana", base).is(200, "8080", "Config 2").lacks("planted-marker-9")
	w.get("ana", base+"?revision=2").is(200, "What it changed in config 1", "web.port").lacks("planted-marker-9", "What has changed since")
	w.get("ana", base+"?revision=1").is(200, "What has changed since", "web.port").lacks("planted-marker-9")
	w.get("ana", base+"?macros=expanded&node=nope").is(200).lacks("planted-marker-9")
	w.get("ana", base+"?revision=9").is(404)
	w.get("eve", base+"?revision=1").is(404)
	// A cluster like it needs the hidden value anew.
	like := w.get("ana", route.ClusterNewLike(op.Cluster)).is(200, "8080").lacks("planted-marker-9")
	like.has(`value="3"`)
	form := createValues("shop-two", "3")
	form.Set("config", `{"password": "******", "web": {"port": 8080}}`)
	if masked := loom.MaskSecrets(map[string]any{"password": "x"}).(map[string]any)["password"]; masked != "******" {
		form.Set("config", `{"password": "`+masked.(string)+`"}`)
	}
	w.post("ana", route.Previews(), form).is(422, "is not known here")
}

func TestOperationsTab(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 2)
	w.finish(op, loom.ClusterActive)
	w.db.MustExec(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by, created_at, started_at, ended_at)
		SELECT tenant_id, cluster_id, n, CASE WHEN n % 2 = 0 THEN 'stop_services' ELSE 'start_services' END, CASE WHEN n = 7 THEN 'failed' ELSE 'complete' END, 'ana', now(), now(), now()
		FROM operations, generate_series(2, 40) AS n WHERE cluster_id = $1`, int64(op.Cluster))
	base := route.ClusterOperations(op.Cluster)
	first := w.get("ana", base).is(200, "/operations/40\"", "/operations/16\"", `rel="next"`, "All actions").lacks("/operations/15\"")
	w.get("ana", link(t, first, `rel="next"`)).is(200, "/operations/15\"", ">Create<").lacks("/operations/16\"")
	w.get("ana", base+"?result=failed").is(200, "/operations/7\"", "Clear filters").lacks("/operations/8\"")
	w.get("ana", base+"?result=running").is(200, "No operation matches these filters.")
	w.get("ana", base+"?action=nonsense").is(200, "No operation matches these filters.")
	w.get("ana", clusterview.PartURL(op.Cluster, clusterview.PartOperations)+"&result=failed").is(200, "/operations/7\"").lacks("/operations/8\"", "<main")
	w.get("ana", route.ClusterTab(op.Cluster, "activity")).goesTo(route.ClusterOperations(op.Cluster))
	w.get("eve", route.ClusterTab(op.Cluster, "activity")).is(404)
}

func TestClusterThatIsGone(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 3)
	w.finish(op, loom.ClusterTerminated)
	w.db.MustExec(`UPDATE nodes SET state = 'deleted' WHERE cluster_id = $1`, int64(op.Cluster))
	w.get("ana", route.Cluster(op.Cluster)).is(200, "Duplicate", "Terminated").lacks("Download key", "Reveal password", "Abort", "cluster-menu")
	w.get("ana", route.ClusterNewLike(op.Cluster)).is(200, `name="numMachines"`, `value="3"`, "web-cluster")
	w.get("eve", route.ClusterNewLike(op.Cluster)).is(404)
	w.get("ana", route.ClusterNew()+"?like=nonsense").is(404)
}

func TestAbortThenDelete(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("busy", 2)
	w.runSome(op, 1, 1)
	w.get("ana", route.Cluster(op.Cluster)).is(200, "Abort and delete")
	at := route.ClusterDelete(op.Cluster)
	w.get("ana", at).is(200, "The operation that runs is aborted", "Abort and delete busy")
	w.post("ana", at, url.Values{"confirm": {"wrong"}}).is(422, "Type the name of the cluster exactly")
	w.post("ana", at, url.Values{"confirm": {"busy"}}).goesTo(route.Cluster(op.Cluster))
	now, err := w.clusters.Operation(w.ctx, w.actor("ana"), op)
	w.must(err)
	if !now.Aborted {
		t.Errorf("the operation is %s and was not aborted", now.Status)
	}
	w.get("ana", route.Cluster(op.Cluster)).is(200).lacks("Abort and delete")
}

func TestNewerTemplateIsAnnounced(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 2)
	w.finish(op, loom.ClusterActive)
	tpl := webTemplate()
	tpl.Description = "Another."
	w.save(loom.KindTemplate, tpl)
	w.get("ana", route.ClusterNodes(op.Cluster)).is(200, "web-cluster v2 is available.", ">Update<", route.ClusterVerb(op.Cluster, "update"))
}

func TestFormHasALinkOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	form := createValues("linked", "4")
	form.Set("labels", "team=web")
	form.Set("providerFields.token", "planted-marker-3")
	form.Set("config", `{"web": {"port": 81, "secret": "planted-marker-4"}}`)
	panel := w.post("ana", route.ClusterCheck(), form).is(200, "from the default config", "web.port", "Link to this form")
	panel.lacks("planted-marker-3")
	at := link(t, panel, "for=web-cluster")
	if strings.Contains(at, "planted-marker") {
		t.Errorf("the link holds a secret: %s", at)
	}
	w.get("ana", at).is(200, `value="linked"`, `value="4"`, "team=web", "81")
	form.Set("do", "reset-config")
	w.post("ana", route.Previews(), form).is(200, `value="linked"`, "%host.service.nginx%").lacks("planted-marker-4")
}

// TestDeprecatedVersionIsAnnounced: a cluster says that a version it is made of is deprecated, and
// leads to its update.
func TestDeprecatedVersionIsAnnounced(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 2)
	w.finish(op, loom.ClusterActive)
	w.get("ana", route.Cluster(op.Cluster)).is(200).lacks("is deprecated")
	w.must(w.catalog.DeprecateVersion(w.ctx, loom.SystemActor(w.tenant.ID, w.tenant.Name), loom.KindService, "nginx", 1, "Loses data."))
	w.get("ana", route.Cluster(op.Cluster)).is(200, "nginx v1 is deprecated: Loses data.", route.ClusterVerb(op.Cluster, "update"))
	w.get("ana", route.Query(route.Clusters(), "q", "uses:nginx@1")).is(200, ">shop<")
	w.get("ana", route.Query(route.Clusters(), "q", "uses:nginx@2")).is(200).lacks(">shop<")
	w.get("ana", route.Query(route.Clusters(), "q", "uses:web-cluster@1")).is(200, ">shop<")
	w.get("ana", route.Query(route.Clusters(), "q", "uses:nginx")).is(200, ">shop<")
}

// TestEffectOfADraftOnClusters: the editor says what a draft would do to each cluster, with
// scripts in its panel and without them on a page, and saves nothing.
func TestEffectOfADraftOnClusters(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 2)
	effect := adminview.FleetEffect(loom.KindService)
	w.get("admin", route.AdminEntryEdit(loom.KindService, "nginx")).is(200, "Effect on clusters", effect)
	draft := func(body string) url.Values {
		return url.Values{"body": {body}, "expected": {"1"}, "entry": {"nginx"}}
	}
	service := func(version int) string {
		entry, _, err := w.catalog.Entry(w.ctx, w.actor("admin"), loom.KindService, "nginx", version)
		w.must(err)
		s := *entry.(*loom.Service)
		s.Description = "Edited."
		text, err := json.Marshal(s)
		w.must(err)
		return string(text)
	}
	w.send("admin", http.MethodPost, effect, draft(service(1)), "HX-Request", "true").is(200, "1 in place", ">shop<", route.Cluster(id)).lacks("<html")
	w.post("admin", effect, draft(service(1))).is(200, "<html", "Effect on clusters", "1 in place", route.AdminEntryEdit(loom.KindService, "nginx"))
	w.send("admin", http.MethodPost, effect, draft(`{"name":"nginx","provisioner":7}`), "HX-Request", "true").is(200, "Correct the errors first.")
	w.post("ana", effect, draft(service(1))).is(403)
	if _, info, err := w.catalog.Entry(w.ctx, w.actor("admin"), loom.KindService, "nginx", 0); err != nil || info.Version != 1 {
		t.Errorf("the effect saved version %d, %v", info.Version, err)
	}
}

// TestEffectOfAnImportOnClusters: the preview of an import says what the chosen entries would do to
// each cluster, with scripts in its panel and without them on the preview with all that was chosen.
func TestEffectOfAnImportOnClusters(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.active("shop", 2)
	entry, _, err := w.catalog.Entry(w.ctx, w.actor("admin"), loom.KindService, "nginx", 1)
	w.must(err)
	s := *entry.(*loom.Service)
	s.Description = "Imported."
	fresh := s
	fresh.Name = "fresh"
	bundle, err := json.Marshal(map[string]any{"services": []any{s, fresh}})
	w.must(err)
	w.must(w.catalog.KeepBundle(w.ctx, w.actor("admin"), bundle, time.Now()))
	at := route.AdminTransferPreview()
	w.get("admin", at).is(200, "Effect on clusters", route.AdminTransferFleet())
	w.press("admin", at, "Preview effect").is(200, "<html", "1 unaffected", `name="do:services/nginx"`)
	const overwrite, skip = "do:services/nginx", "do:services/fresh"
	w.press("admin", at, "Preview effect", overwrite, "write", skip, "skip").is(200, "1 in place", ">shop<", `<option value="write" selected>Overwrite`, `<option value="skip" selected>Skip`)
	w.press("admin", at, "Preview effect", overwrite, "skip", skip, "skip").is(200, "Choose at least one entry")
	w.press("admin", at, "Preview effect", overwrite, "rename", "name:services/nginx", "nginx").is(200, "There is a service “nginx” already")
	f := url.Values{"seen": {"old"}, overwrite: {"write"}}
	w.send("admin", http.MethodPost, route.AdminTransferFleet(), f, "HX-Request", "true").is(200, "changed since this preview").lacks("<html")
	w.post("ana", route.AdminTransferFleet(), f).is(403)
	if _, info, err := w.catalog.Entry(w.ctx, w.actor("admin"), loom.KindService, "nginx", 0); err != nil || info.Version != 1 {
		t.Errorf("version %d, %v: the preview stored something", info.Version, err)
	}
	w.get("admin", at).is(200, "Changed 1")
}
