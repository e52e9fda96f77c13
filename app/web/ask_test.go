package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/testkit"
	"loom/app/web/page"
	"loom/views/route"
	"loom/views/ui"
)

// TestServicesRestartWithOnePress: without scripts the page says what a restart does, does it,
// and leads back to where it was asked for.
func TestServicesRestartWithOnePress(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	at, from := route.ClusterServices(id, "restart"), route.ClusterTab(id, "services")
	asked := func() clusterAnswer {
		return w.send("ana", http.MethodGet, at, nil, "Referer", "http://example.com"+from).is(200, "Restart services of shop-front?", "Restarts 2 services", "How it runs", `href="`+from+`"`)
	}
	shown := asked()
	text := "newer"
	if _, err := w.clusters.Edit(w.ctx, w.actor("ana"), id, clusters.EditInput{Description: &text}); err != nil {
		t.Fatal(err)
	}
	moved := w.pressOn("ana", shown, at, "Restart services").is(http.StatusConflict, "Things changed after this was shown.", "Changed since the last preview", "An entry that it depends on was saved again.")
	w.pressOn("ana", moved, at, "Restart services of shop-front").goesTo(from)
	w.finish(loom.OperationRef{Cluster: id}, loom.ClusterActive)
	back := w.pressOn("ana", asked(), at, "Restart services").goesTo(from)
	w.get("ana", back).is(200, "Restarting services of shop-front.")
	w.get("ana", at).is(200, "Operation 3").lacks(`name="apply"`)
	if v := w.cluster(id); v.LatestOperation != 3 || v.Latest.Action != loom.RestartServices {
		t.Errorf("operation %d, %s", v.LatestOperation, v.Latest.Action)
	}
}

// TestMovedAskShowsDifferences: the lines shown before are compared with those of now.
func TestMovedAskShowsDifferences(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 2)
	form := change("stop", id, "apply", "0123", "shown", "change\tnginx\tstarted → stopped · node 1000", "shown", "nonsense")
	w.post("ana", route.Previews(), form).is(http.StatusConflict, "This is what it does now.", "nonsense", "started → stopped")
	if v := w.cluster(id); v.LatestOperation != 1 {
		t.Errorf("operation %d began", v.LatestOperation)
	}
}

// TestDialogsOfChanges: what makes no machine is done in the dialog, what makes some leads from
// there to its preview.
func TestDialogsOfChanges(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 2)
	node := w.cluster(id).Nodes[0].ID
	w.part("ana", route.ClusterRepairBy(id, loom.RepairByRestart, nil, node), page.DialogID).is(200, "Restart services on node 1000 of shop-front?", `name="apply"`, "More options").lacks("<main")
	w.part("ana", route.ClusterRepairBy(id, loom.RepairByReplacement, nil, node), page.DialogID).is(200, "<span class=\"c-button-label\">Preview").lacks(`name="apply"`)
	ref := w.create("broken", 2)
	w.fail(loom.TaskRef{Operation: ref, Number: 1}, "There is no image bookworm.")
	retry := route.OperationVerb(ref, "retry")
	w.get("ana", route.Cluster(ref.Cluster)).is(200, `hx-get="`+retry+`"`)
	dialog := w.part("ana", retry, page.DialogID).is(200, "Retry create of broken?", "More options").lacks(`name="apply"`)
	w.pressOn("ana", dialog, retry, "Preview").goesTo(`/previews/.*`)
}

// TestActsLeadBack: whatever acts at once leads back to the page it was pressed on.
func TestActsLeadBack(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 2)
	busy := w.create("busy", 2)
	from := "/clusters?q=shop"
	for _, at := range []string{route.ClusterProtect(id, true), route.ClusterProtect(id, false),
		route.OperationVerb(busy, "pause"), route.OperationVerb(busy, "resume"), route.OperationVerb(busy, "abort")} {
		w.post("ana", at, url.Values{"from": {from}}).goesTo(`/clusters\?q=shop`)
	}
	w.post("ana", route.ClusterProtect(id, false), url.Values{"from": {"https://elsewhere.example/"}}).goesTo(route.Cluster(id))
	overview := route.Cluster(id)
	if got := formOf(t, w.get("ana", overview), route.ClusterProtect(id, true)).Get("from"); got != overview {
		t.Errorf("Protect leads back to %q", got)
	}
	// A part that is fetched again knows its page.
	part := w.send("ana", http.MethodGet, overview+"/panel?part=head", nil, "HX-Request", "true", "HX-Target", "cluster-head", "HX-Current-URL", "http://example.com"+overview+"/nodes?state=ready")
	if got := formOf(t, part, route.ClusterProtect(id, true)).Get("from"); got != overview+"/nodes?state=ready" {
		t.Errorf("Protect leads back to %q from a part", got)
	}
}

// formOf are the values of the form that is sent to an address.
func formOf(t *testing.T, a clusterAnswer, action string) url.Values {
	t.Helper()
	for _, b := range testkit.Buttons(t, a.Body) {
		if b.Action == action {
			return b.Values
		}
	}
	t.Fatalf("no form is sent to %s", action)
	return nil
}

// nodeNumber is what pages call the node of a host.
func nodeNumber(hostname string) string { return ui.NodeNumber(hostname) }
