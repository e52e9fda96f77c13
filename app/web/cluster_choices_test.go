package web_test

import (
	"html"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

// TestAddressesAreChosen has nodes with two addresses: commands and texts name the one
// that is chosen, wherever the page leads.
func TestAddressesAreChosen(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 3)
	w.finish(op, "active")
	// Where both are the same there is nothing to choose.
	w.db.MustExec(`UPDATE nodes SET ipaddresses = jsonb_build_object('access_v4', '10.77.1.' || number - 990, 'bind_v4', '10.77.1.' || number - 990) WHERE cluster_id = $1`, int64(op.Cluster))
	w.get("ana", route.Cluster(op.Cluster)).is(200, "hosts entries").lacks("bind (internal)")
	w.db.MustExec(`UPDATE nodes SET ipaddresses = ipaddresses || jsonb_build_object('bind_v4', '192.168.7.' || number - 990) WHERE cluster_id = $1`, int64(op.Cluster))
	node := w.cluster(op.Cluster).Nodes[1]
	show := w.get("ana", route.Cluster(op.Cluster)).is(200, "@10.77.1.11", "bind (internal)").lacks("@192.168.7.11", "are the same.")
	for name, at := range map[string]string{
		"overview": route.Cluster(op.Cluster), "nodes": route.ClusterNodes(op.Cluster), "node": route.Node(op.Cluster, node.ID),
		"part": clusterview.PartURL(op.Cluster, clusterview.PartConnect), "nodes part": clusterview.PartURL(op.Cluster, clusterview.PartNodes),
	} {
		t.Run(name, func(t *testing.T) {
			bind := w.get("ana", route.Query(at, "address", "bind")).is(200, "@192.168.7.11").lacks("@10.77.1.11")
			bind.has("address=bind")
		})
	}
	// The choice leads on, and back.
	w.get("ana", strings.TrimSuffix(link(t, show, "address=bind#"), "#cluster-connect")).is(200, "@192.168.7.11", route.Cluster(op.Cluster)+"#")
	for as, text := range map[string]string{"ssh": "HostName 192.168.7.11", "hosts": "192.168.7.11\tshop", "csv": "@192.168.7.11"} {
		at := route.Query(route.ClusterCopy(op.Cluster, as), "address", "bind")
		w.get("ana", at).is(200, html.EscapeString(text), "access")
		w.part("ana", at, "dialog").is(200, text, `hx-get="`+html.EscapeString(route.ClusterCopy(op.Cluster, as))+`"`).lacks("<main")
		w.get("ana", at+"&download=1").is(200, text)
	}
	// A node without the chosen address is reached by the other one.
	w.db.MustExec(`UPDATE nodes SET ipaddresses = ipaddresses - 'bind_v4' WHERE id = $1`, string(node.ID))
	w.get("ana", route.Query(route.Cluster(op.Cluster), "address", "bind")).is(200, "@192.168.7.10", "@10.77.1.11")
	w.post("ana", route.Query(route.NodeReveal(op.Cluster, w.cluster(op.Cluster).Nodes[0].ID), "address", "bind"), nil).lacks("@10.77.1.10")
}

// TestScaleBeyondTheQuota offers the number that fits, as a button that fills it in.
func TestScaleBeyondTheQuota(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	w.db.MustExec(`UPDATE tenants SET max_nodes = 5 WHERE id = $1`, w.tenant.ID)
	beyond := change("scale", id, "numMachines", "9")
	w.post("ana", route.ClusterTry(id), beyond).is(200, "The quota does not allow it", "The tenant may have 5 nodes", "Use 5 nodes", `value="numMachines=5"`)
	w.post("ana", route.Previews(), beyond).is(409, "Use 5 nodes")
	beyond.Set("suggest", "numMachines=5")
	w.post("ana", route.Previews(), beyond).is(200, ">Fits<", `value="5"`)
	w.db.MustExec(`UPDATE tenants SET max_nodes = 3 WHERE id = $1`, w.tenant.ID)
	w.post("ana", route.ClusterTry(id), change("scale", id, "numMachines", "9")).is(200, "The quota does not allow it", "No further node can be had now.").lacks(`name="suggest"`)
}

// TestConfigInWords reads differences by name and value, whatever the values are, and
// macros by the place where they stand.
func TestConfigInWords(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 2)
	w.finish(op, "active")
	motd := "first line\nsecond line\nthird line"
	set := func(config map[string]any) {
		t.Helper()
		ref, err := w.clusters.Begin(w.ctx, w.actor("ana"), clusters.PreviewInput{Kind: loom.ChangeConfigure, Cluster: op.Cluster, Configure: &clusters.ConfigureInput{Config: config}})
		w.must(err)
		w.finish(ref, "active")
	}
	set(map[string]any{"web": map[string]any{"port": 8080, "word": "80", "hosts": []any{"a", "b"}, "motd": motd}, "peers": []any{"%host.service.redis%"}})
	base := route.ClusterTab(op.Cluster, "config")
	w.get("ana", base).is(200, "<strong>web.port</strong>", "<ins>8080</ins>", `<ins>&#34;80&#34;</ins>`, `<ins>[&#34;a&#34;,&#34;b&#34;]</ins>`, "3 lines", "+ second line").lacks("map[", "[a b]")
	w.get("ana", base+"?macros=expanded").is(200, "peers[0]: “%host.service.redis%” stays as written").lacks("/peers")
	set(map[string]any{"web": map[string]any{"port": 8080, "word": 80, "motd": strings.Replace(motd, "second", "other", 1)}})
	w.get("ana", base+"?revision=3").is(200, `<del>&#34;80&#34;</del>`, "<ins>80</ins>", "− second line", "+ other line", "<strong>web.hosts</strong>")
	// A mistake in a macro says where it stands, and leads to the field.
	wrong := change("configure", op.Cluster, "config", `{"web": {"link": "http://%host.nonsense%/"}}`)
	w.post("ana", route.Previews(), wrong).is(422, "At web.link", `href="#f-config"`).lacks("config/web", "configPatch")
}
