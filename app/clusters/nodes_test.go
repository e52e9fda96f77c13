package clusters_test

import (
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// TestWritingANodeMakesPlansStale: a plan that was made before is not applied.
func TestWritingANodeMakesPlansStale(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	b.db.MustExec(`UPDATE nodes SET task_id = NULL, state = 'ready'`)
	preview, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: ref.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	name := "db.lab.example"
	in := clusters.NodeInput{ID: v.Nodes[0].ID, Cluster: ref.Cluster, Hostname: &name}
	_, err = b.clusters.WriteNode(b.ctx, b.ana(), in)
	wantKind(t, err, loom.Forbidden)
	if created, err := b.clusters.WriteNode(b.ctx, b.admin(), in); err != nil || created {
		t.Fatal(created, err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(preview))
	wantKind(t, err, loom.Conflict)
	after, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || after.Revision != v.Revision+1 || after.Nodes[0].Hostname != name || after.Status != loom.ClusterActive {
		t.Errorf("%+v, %v", after.Cluster, err)
	}
}

// TestSealedPasswordsStayWhereTheyAre: an administrator who does not know a provider's password does not
// choose where it is sent.
func TestSealedPasswordsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	b.db.MustExec(`UPDATE nodes SET task_id = NULL, state = 'ready', ipaddresses = '{"access_v4": "203.0.113.1"}'`)
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	write := func(addresses map[string]string) error {
		_, err := b.clusters.WriteNode(b.ctx, b.admin(), clusters.NodeInput{ID: v.Nodes[0].ID, Cluster: ref.Cluster, Addresses: addresses})
		return err
	}
	b.db.MustExec(`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ($1, 'provider:lab', 'ssh_password', 'x')`, b.tenant)
	for _, addresses := range []map[string]string{{"access_v4": "203.0.113.2"}, {}, {"bind_v4": "203.0.113.1"}} {
		wantKind(t, write(addresses), loom.Conflict)
	}
	if err := write(map[string]string{"access_v4": "203.0.113.1", "bind_v4": "10.0.0.1"}); err != nil { // the same place
		t.Error(err)
	}
	b.db.MustExec(`DELETE FROM secrets WHERE entity = 'provider:lab'`)
	if err := write(map[string]string{"access_v4": "203.0.113.2"}); err != nil {
		t.Error(err)
	}
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
