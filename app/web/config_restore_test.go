package web_test

import (
	"html"
	"net/url"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/route"
)

// TestConfigIsRestored: a config that failed gives way to the one before it, values that
// are hidden as well.
func TestConfigIsRestored(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	ana := w.actor("ana")
	configure := func(config map[string]any) loom.OperationRef {
		t.Helper()
		ref, err := w.clusters.Begin(w.ctx, ana, clusters.PreviewInput{Kind: loom.ChangeConfigure, Cluster: id, Configure: &clusters.ConfigureInput{Config: config, Restart: true}})
		w.must(err)
		return ref
	}
	w.finish(configure(map[string]any{"port": 80, "password": "the old one"}), loom.ClusterActive)
	w.get("ana", route.ClusterTab(id, "config")+"?revision=1").is(200, "Restore config 1", html.EscapeString(route.ConfigRestore(id, 1, true)))
	w.get("ana", route.ClusterTab(id, "config")+"?revision=2").is(200).lacks("Restore config")
	w.get("ana", route.Cluster(id)).is(200).lacks("Restore config")

	ref := configure(map[string]any{"port": 99, "password": "a new one"})
	w.get("ana", route.ClusterTab(id, "config")+"?revision=2").is(200).lacks("Restore config") // while it runs
	w.fail(loom.TaskRef{Operation: ref, Number: 1}, "no such port")
	w.db.MustExec(`UPDATE clusters SET status = 'inconsistent', revision = revision + 1 WHERE id = $1`, int64(id))
	w.get("ana", route.Cluster(id)).is(200, "Restore config 2", html.EscapeString(route.ConfigRestore(id, 2, true)))
	w.get("ana", route.ConfigRestore(id, 2, true)).is(200, "Restore config 2 of shop-front", `name="revision" value="2"`, `value="true" checked`, "Fits").lacks("<textarea", "the old one")
	w.get("ana", route.ConfigRestore(id, 7, true)).is(200, "Something is missing or wrong")
	w.get("ana", route.ClusterVerb(id, "reconfigure")+"?revision=x").is(200, "Name the config by its number")
	w.get("eve", route.ConfigRestore(id, 2, true)).is(404)
	w.post("ana", route.Previews(), change("configure", id, "revision", "x")).is(422)
	at := w.post("ana", route.Previews(), change("configure", id, "revision", "2", "restart", "1")).goesTo(`/previews/.*`)
	page := w.get("ana", at).is(200, "/port", "99", "80", "/password").lacks("the old one", "a new one")
	w.get("ana", link(t, page, route.ClusterVerb(id, "reconfigure"))).is(200, "Restore config 2 of shop-front")
	v, err := w.clusters.Preview(w.ctx, ana, clusters.PreviewInput{Kind: loom.ChangeConfigure, Cluster: id, Configure: &clusters.ConfigureInput{Revision: new(2)}})
	w.must(err)
	w.post("ana", route.Preview(v.ID)+"/apply", url.Values{"hash": {v.Hash}}).goesTo(".*")
	if got := w.cluster(id).Config["password"]; got != "the old one" {
		t.Errorf("the config says %v", got)
	}
}
