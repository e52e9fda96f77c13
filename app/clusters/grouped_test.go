package clusters_test

import (
	"maps"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// The counts of an operation are the same whether they come from its groups or not, and
// lists of operations that know them from elsewhere have them too.
func TestCountsFromGroups(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 3)
	b.db.MustExec(`UPDATE tasks SET status = 'running' WHERE cluster_id = $1 AND number = 1`, int64(ref.Cluster))
	b.db.MustExec(`UPDATE tasks SET code = 1, attempt = 1 WHERE cluster_id = $1 AND number = 2 AND status = 'ready'`, int64(ref.Cluster))
	check := func(again int) {
		t.Helper()
		plain, err := b.clusters.Operation(b.ctx, b.ana(), ref)
		if err != nil {
			t.Fatal(err)
		}
		ctx := clusters.Grouped(clusters.Once(b.ctx))
		grouped, err := b.clusters.Operation(ctx, b.ana(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if len(plain.Tasks) == 0 || !maps.Equal(plain.Tasks, grouped.Tasks) || plain.Again != again || grouped.Again != again || plain.Waiting != grouped.Waiting {
			t.Errorf("counted: %v, %d again, %q; from groups: %v, %d again, %q; want %d again", plain.Tasks, plain.Again, plain.Waiting, grouped.Tasks, grouped.Again, grouped.Waiting, again)
		}
		page, err := b.clusters.OperationPage(ctx, b.ana(), ref.Cluster, clusters.OperationListInput{Page: loom.Page{Sort: "-number", Limit: 5}})
		if err != nil || len(page.Items) != 1 || !maps.Equal(page.Items[0].Tasks, plain.Tasks) {
			t.Errorf("the list has %v: %v", page.Items, err)
		}
	}
	check(1)
	groups, err := b.clusters.TaskGroups(b.ctx, b.ana(), ref)
	if err != nil {
		t.Fatal(err)
	}
	var running []int64
	for _, g := range groups {
		running = append(running, g.Running...)
	}
	if len(running) != 1 || running[0] != 1 {
		t.Errorf("tasks %v run, want 1", running)
	}
	b.finish(ref.Cluster, loom.ClusterActive)
	check(0)
}

// The overview of a cluster leaves out what was learned of its nodes; who reads the cluster
// or one of its nodes gets it, secrets masked.
func TestFactsOfNodes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.db.MustExec(`UPDATE nodes SET results = '{"zone": "a", "password": "sesame"}' WHERE cluster_id = $1`, int64(ref.Cluster))
	brief, err := b.clusters.Overview(b.ctx, b.ana(), ref.Cluster)
	if err != nil || len(brief.Nodes) != 2 || len(brief.Nodes[0].Results) != 0 {
		t.Fatalf("the overview has %v: %v", brief.Nodes, err)
	}
	whole, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	one, err := b.clusters.NodeRecord(b.ctx, b.ana(), ref.Cluster, brief.Nodes[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []loom.Node{whole.Nodes[0], one} {
		if n.Results["zone"] != "a" || n.Results["password"] == "sesame" || n.Hostname != brief.Nodes[0].Hostname {
			t.Errorf("the node has %v", n.Results)
		}
	}
	if _, err := b.clusters.NodeRecord(b.ctx, b.ana(), ref.Cluster, "no-such-node"); loom.AsError(err).Kind != loom.NotFound {
		t.Errorf("a node that there is not gives %v", err)
	}
}

func TestCountedClusters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.create(b.ana(), 2)
	b.create(b.ana(), 2)
	b.finish(first.Cluster, loom.ClusterActive)
	counts, err := b.clusters.Counted(b.ctx, b.ana(), []loom.ClusterStatus{loom.ClusterActive, loom.ClusterPending, loom.ClusterIncomplete})
	if err != nil || counts[loom.ClusterActive] != 1 || counts[loom.ClusterPending] != 1 || counts[loom.ClusterIncomplete] != 0 {
		t.Errorf("counted %v: %v", counts, err)
	}
	other := b.ana()
	other.User = "somebody-else"
	if counts, err := b.clusters.Counted(b.ctx, other, []loom.ClusterStatus{loom.ClusterActive, loom.ClusterPending}); err != nil || counts[loom.ClusterActive]+counts[loom.ClusterPending] != 0 {
		t.Errorf("another user counts %v: %v", counts, err)
	}
}
