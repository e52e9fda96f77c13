package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

func TestNewClusterForm(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.get("ana", "/clusters/new?template=web-cluster").is(200, "Web cluster", "Single server", `value="web-cluster-ana-1"`, "1–50",
		`name="providerFields.zone"`, "template default", `name="services"`, "%host.service.nginx%", "at most 7 days")
	w.get("ana", "/clusters/new").is(200, "New cluster", `name="name"`)
	w.get("ana", "/clusters/new?template=nothing").is(200, "There is no template “nothing”.")
	w.get("eve", "/clusters/new").is(200, "No templates yet", "Ask an administrator")
}

func TestCheckAnswers(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	check := func(v url.Values) clusterAnswer {
		t.Helper()
		return w.post("ana", route.ClusterCheck(), v).is(200).lacks("<html")
	}
	check(createValues("shop-front", "3")).has("Fits", "3 nodes, 2 services", "haproxy", "3 of 60", "tasks in", "The tenant has no workers")
	check(createValues("shop-front", "1")).has("Cannot fit", "No layout for 1 node", "can&#39;t share a node", `name="suggest"`, `value="numMachines=2"`)
	check(createValues("shop front", "3")).has("Incomplete", "Use letters without accents", `href="#f-name"`, "haproxy")
	check(createValues("shop-front", "61")).has("Enter 1–50 nodes.", "Use 50 nodes").lacks(">Fits<")
	v := createValues("shop-front", "3")
	v.Set("config", "{\n  \"web\": }")
	v.Set("initialLeaseDuration", "soon")
	check(v).has("Line 2, column 10", "Write a duration such as 7d")
	check(url.Values{}).has("Choose a template.")
	unknown := createValues("shop-front", "3")
	unknown.Set("clusterTemplate", "nothing")
	check(unknown).has("There is no template “nothing”.")
}

// A changed template starts the dependent fields anew, and keeps what was typed.
func TestTemplateChange(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	v := createValues("my-own", "3")
	v.Set("clusterTemplate", "single")
	v.Set("description", "for the fair")
	a := w.post("ana", clusterview.FormURL(), v).is(200, `value="my-own"`, "for the fair", `value="1"`, `name="for" value="single"`).lacks("haproxy")
	if a.Header.Get("HX-Trigger-After-Settle") != "loom:recheck" {
		t.Error("the check is not asked again")
	}
	v.Set("suggested", "my-own")
	w.post("ana", clusterview.FormURL(), v).is(200, `value="single-ana-1"`)
	// Without scripts the button of the form does the same.
	v.Set("do", "check")
	w.post("ana", route.Previews(), v).is(200, "single-ana-1", "Fits", "<html")
}

// Suggestions are submit buttons: they work without scripts.
func TestSuggestionsWithoutScripts(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	v := createValues("shop-front", "1")
	refused := w.post("ana", route.Previews(), v).is(422, "Cannot fit", "No layout for 1 node", `value="shop-front"`, `name="suggest"`)
	for _, piece := range strings.Split(refused.Body, `name="suggest" value="`)[1:] {
		value, _, _ := strings.Cut(piece, `"`)
		pressed := createValues("shop-front", "1")
		pressed.Set("suggest", strings.ReplaceAll(value, "&amp;", "&"))
		w.post("ana", route.Previews(), pressed).is(200, ">Fits<", `value="shop-front"`)
	}
	// Nginx missing: the balancer requires it.
	lacking := createValues("shop-front", "1")
	lacking["services"] = []string{"haproxy"}
	a := w.post("ana", route.Previews(), lacking).is(422, "Cannot fit", "nginx")
	_, value, found := strings.Cut(a.Body, `name="suggest" value="form=`)
	if !found {
		t.Fatalf("no suggestion that changes services: %s", a.main())
	}
	value, _, _ = strings.Cut(value, `"`)
	lacking.Set("suggest", "form="+strings.ReplaceAll(value, "&amp;", "&"))
	w.post("ana", route.Previews(), lacking).is(200, ">Fits<")
	// With scripts only the part that depends on it is made anew, open or closed as it was.
	w.post("ana", clusterview.FormURL(), lacking).is(200, `value="nginx" checked`, "<details data-module", `id="form-rest"`).lacks("<main")
	lacking.Set("advanced", "1")
	w.post("ana", clusterview.FormURL(), lacking).is(200, `value="nginx" checked`, "<details open")
	if !strings.Contains(a.Body, `hx-target="#form-rest"`) {
		t.Error("the suggestion replaces the whole page")
	}
}

func TestFormErrorsStandAtTheirFields(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	v := createValues("shop front", "three")
	v.Set("config", "[1]")
	v.Set("initialLeaseDuration", "90d")
	v.Set("dnsSuffix", "-x-")
	v.Set("description", "keep <me>")
	v.Set("providerFields.zone", "z")
	v.Set("providerFields.token", "planted-marker-8")
	a := w.post("ana", route.Previews(), v).is(422, "There is no preview yet.", `href="#f-name"`, `id="f-name-error"`, "Enter 1–50 nodes.", `id="f-config-error"`,
		"This is a JSON object", `id="f-initialLeaseDuration-error"`, `id="f-dnsSuffix-error"`, `value="shop front"`, `value="three"`, "keep &lt;me&gt;", "[1]",
		`value="90d"`, `id="f-providerFields-zone-error"`, "Choose one of a, b")
	a.lacks("planted-marker-8")
	none := createValues("shop-front", "3")
	delete(none, "services")
	w.post("ana", route.Previews(), none).is(422, "Choose at least one service.")
	unknown := createValues("shop-front", "3")
	unknown.Set("clusterTemplate", "nothing")
	w.post("ana", route.Previews(), unknown).is(422, "There is no template “nothing”.")
	big := createValues("shop-front", "50")
	w.db.MustExec(`UPDATE tenants SET max_nodes = 4 WHERE id = $1`, w.tenant.ID)
	w.post("ana", route.Previews(), big).is(409, "The tenant may have 4 nodes")
}

func TestPreviewIsAppliedOnce(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	v := createValues("shop-front", "3")
	v.Set("description", "the shop")
	at := w.post("ana", route.Previews(), v).goesTo(`/previews/[0-9a-f-]{36}`)
	page := w.get("ana", at).is(200, "Create shop-front?", "Creates 3 nodes, installs 2 services", ">Create shop-front<", "0 → 3 of 60 nodes", "Stage 1", "<svg", "1 × haproxy", "2 × nginx").lacks("debian-12")
	w.get("eve", at).is(404)
	w.get("ana", at+"/graph.svg").is(200, "<svg")
	w.get("ana", link(t, page, "/clusters/new?preview=")).is(200, `value="shop-front"`, `value="3"`, "the shop", `value="3"`)
	w.post("ana", at+"/apply", url.Values{"hash": {"0123"}}).is(409, "does not match")
	w.post("ana", at+"/apply", url.Values{}).is(422, "Send the hash")
	to := w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}}).goesTo(`/clusters/\d{8}`)
	w.get("ana", to).is(200, "Creating shop-front.", "shop-front", "<h2>Create</h2>")
	w.get("ana", to).lacks("Creating shop-front.")
	w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}}).is(409, "This preview was applied.", to+"/operations/1").lacks(`name="hash"`)
	w.get("ana", at).is(200, "This preview was applied.")
	w.post("ana", at+"/discard", nil).is(409, "This preview was applied.")
}

func TestPreviewIsDiscarded(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	at := w.post("ana", route.Previews(), createValues("shop-front", "2")).goesTo(`/previews/.*`)
	w.post("eve", at+"/discard", nil).is(404)
	w.post("ana", at+"/discard", nil).goesTo("/clusters")
	w.get("ana", "/clusters").is(200, "Discarded the preview of shop-front")
	w.get("ana", at).is(404, "Preview expired", "Recalculate")
	w.post("ana", at+"/apply", url.Values{"hash": {"x"}}).is(404, "Preview expired")
}

func TestStalePreviewShowsTheNewOne(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	at := w.post("ana", route.Previews(), createValues("shop-front", "3")).goesTo(`/previews/.*`)
	page := w.get("ana", at).is(200)
	w.save(loom.KindService, webService("nginx", "Serves the pages, now faster."))
	a := w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}}).is(409, "Things changed after this preview was made.", "nginx", "This is the new preview.")
	if a.hash() == page.hash() {
		t.Error("the old preview is shown again")
	}
	fresh := link(t, a, "/clusters/new?preview=")
	id := strings.TrimPrefix(fresh, "/clusters/new?preview=")
	w.post("ana", route.PreviewApply(loom.PreviewID(id)), url.Values{"hash": {a.hash()}}).goesTo(`/clusters/\d{8}`)
}

// A sensitive field is asked again when the preview is applied, and never shown.
func TestSensitiveFieldsComeWithApply(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	v := createValues("shop-front", "2")
	v.Set("providerFields.token", "planted-marker-9")
	at := w.post("ana", route.Previews(), v).goesTo(`/previews/.*`)
	page := w.get("ana", at).is(200, "Access token", `name="providerFields.token"`).lacks("planted-marker-9")
	w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}}).is(422, "Nothing was started.", `id="f-providerFields-token-error"`)
	w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}, "providerFields.token": {"planted-marker-9"}}).goesTo(`/clusters/\d{8}`)
}

func TestDeleteWantsTheName(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop-front", 2)
	at := route.ClusterDelete(op.Cluster)
	w.get("ana", at).is(200, "The operation that runs is aborted", "Abort and delete shop-front")
	w.finish(op, loom.ClusterActive)
	w.post("ana", route.ClusterProtect(op.Cluster, true), url.Values{})
	w.get("ana", at).is(200, "is protected").lacks(`name="confirm"`)
	w.post("ana", at, url.Values{"confirm": {"shop-front"}}).is(409)
	w.post("ana", route.ClusterProtect(op.Cluster, false), url.Values{})
	w.get("ana", at).is(200, "Type shop-front to confirm", "2 machines", "haproxy and nginx", `data-confirm-name="shop-front"`)
	w.part("ana", at, "dialog").is(200, `id="dialog-title"`, "Type shop-front to confirm").lacks("<main")
	w.post("ana", at, url.Values{"confirm": {"shop-frunt"}}).is(422, "Type the name of the cluster exactly", `id="f-confirm-error"`, `value="shop-frunt"`)
	w.send("ana", http.MethodPost, at, url.Values{"confirm": {""}}, "HX-Request", "true", "HX-Target", "dialog").is(422, "Nothing was deleted.").lacks("<main")
	w.post("eve", at, url.Values{"confirm": {"shop-front"}}).is(404)
	w.post("ana", at, url.Values{"confirm": {"shop-front"}}).goesTo(route.Cluster(op.Cluster))
	w.get("ana", route.Cluster(op.Cluster)).is(200, "<h2>Delete</h2>", "Deleting shop-front.")
}

func TestDeleteByPreview(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop-front", 2)
	w.finish(op, loom.ClusterActive)
	at := w.post("ana", route.Previews(), url.Values{"kind": {"delete"}, "cluster": {op.Cluster.String()}}).goesTo(`/previews/.*`)
	page := w.get("ana", at).is(200, "Deletes 2 nodes", "remove", "Type shop-front to confirm")
	w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}, "confirm": {"x"}}).is(422, "Type the name of the cluster exactly")
	w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}, "confirm": {"shop-front"}}).goesTo(route.Cluster(op.Cluster))
}

// TestRevealIsShownOnceAndAudited: a machine's own password is for a look, the key of the
// cluster is a file.
func TestRevealIsShownOnceAndAudited(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop-front", 2)
	w.finish(op, loom.ClusterActive)
	view, err := w.clusters.Cluster(w.ctx, w.actor("ana"), op.Cluster)
	w.must(err)
	node, audited := view.Nodes[0].ID, 0
	at := route.NodeReveal(op.Cluster, node)
	w.get("ana", route.Cluster(op.Cluster)).is(200, "Reveal password")
	w.send("ana", http.MethodPost, at, url.Values{}, "HX-Request", "true", "HX-Target", clusterview.RevealID).
		is(200, "planted-marker-7", `hx-trigger="load delay:30s, visibilitychange from:document"`).lacks("<main", "BEGIN")
	w.post("ana", at, url.Values{}).is(200, "planted-marker-7", "<main").lacks("BEGIN")
	w.part("ana", at, clusterview.RevealID).is(200, "hidden again").lacks("planted-marker-7")
	w.get("ana", at).goesTo(route.Node(op.Cluster, node))
	w.post("eve", at, url.Values{}).is(404).lacks("planted-marker-7")
	w.must(w.db.Get(&audited, `SELECT count(*) FROM audit WHERE verb = 'reveal' AND kind = 'node' AND after->>'privateKey' = 'false'`))
	if audited != 2 {
		t.Errorf("%d reveals in the audit, want 2", audited)
	}
}

// TestKeyIsDownloadedAndAudited: one file for the cluster, one entry for each download,
// and nothing for who may not have it.
func TestKeyIsDownloadedAndAudited(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop-front", 2)
	w.finish(op, loom.ClusterActive)
	file := "loom-" + op.Cluster.String() + ".pem"
	at := route.ClusterVerb(op.Cluster, "key")
	w.get("ana", route.Cluster(op.Cluster)).is(200, "Download key", `action="`+at+`"`, "ssh -i "+file).lacks("Reveal key", "BEGIN")
	for range 3 {
		got := w.post("ana", at, url.Values{}).is(200, "BEGIN OPENSSH PRIVATE KEY").lacks("<main")
		h := got.Header
		if h.Get("Cache-Control") != "no-store" || h.Get("Content-Disposition") != `attachment; filename="`+file+`"` || h.Get("Content-Type") != "application/x-pem-file" {
			t.Errorf("%v", h)
		}
	}
	w.get("ana", at).goesTo(route.Cluster(op.Cluster))
	w.post("eve", at, url.Values{}).is(404).lacks("BEGIN")
	audited := 0
	w.must(w.db.Get(&audited, `SELECT count(*) FROM audit WHERE verb = 'reveal' AND kind = 'cluster' AND object = $1 AND actor = 'ana' AND result = 'ok'`, op.Cluster.String()))
	if audited != 3 {
		t.Errorf("%d downloads in the audit, want 3", audited)
	}
	w.get("ana", route.ClusterOperations(op.Cluster)).is(200, "Other events", "downloaded the key of")
}
