package clusters_test

import (
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// What a hook refused is asked for again as it was, and once it began it cannot be.
func TestResubmit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	hook := func() {
		b.db.MustExec(`INSERT INTO hooks (tenant_id, name, url, events, blocking) VALUES ($1, 'freeze', 'https://ci.example/', '{start}', true)`, b.tenant)
	}
	hook()
	if _, err := b.begin(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 4}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.clusters.Resubmit(b.ctx, b.ana(), b.latest(id).Ref, nil); loom.AsError(err).Kind != loom.Conflict {
		t.Errorf("while it waits: %v", err)
	}
	m.refuse("The hook “freeze” refused: not on Fridays")
	op := b.latest(id)
	if !op.Refused() || b.cluster(id).Status != loom.ClusterActive || len(b.cluster(id).Nodes) != 3 {
		t.Fatalf("%+v", op)
	}
	other := b.actor("bob", loom.RoleUser)
	if _, err := b.clusters.Resubmit(b.ctx, other, op.Ref, nil); loom.AsError(err).Kind != loom.NotFound {
		t.Errorf("somebody else: %v", err)
	}
	b.db.MustExec(`DELETE FROM hook_deliveries`)
	b.db.MustExec(`DELETE FROM hooks`)
	ref, err := b.clusters.Resubmit(b.ctx, b.ana(), op.Ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	if len(b.cluster(id).Nodes) != 4 || b.count(`SELECT count(*) FROM operations WHERE number = $1 AND request IS NULL`, ref.Number) != 1 {
		t.Errorf("%d nodes", len(b.cluster(id).Nodes))
	}
	_, err = b.clusters.Resubmit(b.ctx, b.ana(), ref, nil)
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "began") {
		t.Error(e.Message)
	}
	// A refused create leaves no cluster; asked for again it is another one.
	hook()
	created := b.create(b.ana(), 2)
	m.refuse("The hook “freeze” refused: not on Fridays")
	b.ended(created.Cluster, loom.OperationFailed, loom.ClusterTerminated)
	b.db.MustExec(`DELETE FROM hook_deliveries`)
	b.db.MustExec(`DELETE FROM hooks`)
	again, err := b.clusters.Resubmit(b.ctx, b.ana(), created, nil)
	if err != nil || again.Cluster == created.Cluster {
		t.Fatalf("%v, %v", again, err)
	}
	m.run(nil)
	b.ended(again.Cluster, loom.OperationComplete, loom.ClusterActive)
}
