//go:build browser

package web_test

import (
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestFactsAppearOnce: what a page marks as a fact is in view once, folds that are closed aside.
func TestFactsAppearOnce(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 4)
	broken := w.create("broken", 2)
	w.fail(loom.TaskRef{Operation: broken, Number: 1}, "There is no image bookworm.")
	running := w.create("blog", 2)
	w.runSome(running, 2, 2)
	p, err := w.clusters.Preview(w.ctx, w.actor("ana"), clusters.PreviewInput{Kind: loom.ChangeExpand, Cluster: id, Change: clusters.ChangeInput{Machines: 5}})
	w.must(err)
	n := w.cluster(id).Nodes[0].ID
	done := loom.OperationRef{Cluster: id, Number: 1}
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	for at, marked := range map[string]bool{
		route.Home(): true, route.Clusters(): true, route.Cluster(id): true, route.Cluster(broken.Cluster): true, route.Cluster(running.Cluster): true, route.ClusterNodes(id): true, route.Node(id, n): true,
		route.ClusterTab(id, "services"): true, route.Operation(done): true, route.OperationGraph(done): true, route.OperationTasks(done): true, route.Operation(broken): true,
		route.Preview(p.ID): false, route.ClusterNewFrom("web-cluster"): false, route.CatalogTemplate("web-cluster"): true,
		route.Activity(): true, route.Usage(): true,
	} {
		b.Open(base + at)
		if marked && !b.Has("#main [data-fact]") {
			t.Errorf("%s marks no fact", at)
		}
		twice := runOn(b, `(() => {
			const seen = new Set(), twice = new Set();
			for (const e of document.querySelectorAll("#main [data-fact]")) {
				if (!e.checkVisibility() || e.closest("details:not([open])")) continue;
				(seen.has(e.dataset.fact) ? twice : seen).add(e.dataset.fact);
			}
			return [...twice].join("; ");
		})()`)
		if twice != "" {
			t.Errorf("%s says more than once: %s", at, twice)
		}
	}
}
