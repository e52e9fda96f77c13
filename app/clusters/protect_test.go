package clusters_test

import (
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// TestProtection: no machine of a protected cluster is deleted or exchanged, at once, by
// preview, by a retry or on the way back; what is broken can be repaired, and it may grow.
func TestProtection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	protect := func(on bool) {
		t.Helper()
		if _, err := b.clusters.Edit(b.ctx, b.ana(), id, clusters.EditInput{Protected: &on}); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, err error) {
		t.Helper()
		if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "protected") || !strings.Contains(e.Message, "take the protection off first") {
			t.Errorf("%s: %v", what, e.Message)
		}
	}
	larger := clusters.PreviewInput{Kind: loom.ChangeResize, Cluster: id, Change: clusters.ChangeInput{HardwareType: "xlarge", Services: []string{"web"}}}
	shown := b.previewOf(loom.ChangeResize, id, larger.Change)
	protect(true)
	_, err := b.clusters.Begin(b.ctx, b.ana(), larger)
	refused("resize", err)
	_, err = b.clusters.Preview(b.ctx, b.ana(), larger)
	refused("preview of a resize", err)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(shown))
	refused("a resize that was shown before", err)
	_, err = b.begin(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 2})
	refused("shrink", err)
	_, err = b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{})
	refused("delete", err)
	if len(m.machines) != 3 {
		t.Errorf("%d machines", len(m.machines))
	}

	// Growing and mending go on.
	b.starts(clusters.PreviewInput{Kind: loom.ChangeExpand, Cluster: id, Change: clusters.ChangeInput{Machines: 4}})
	m.run(nil)
	b.starts(clusters.PreviewInput{Kind: loom.ChangeRepair, Cluster: id, Change: clusters.ChangeInput{Nodes: []loom.NodeID{b.node(id, 1001)}}})
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)

	// The way back from a change of hardware is one as well, and so is going on with it.
	protect(false)
	resize := b.starts(larger)
	m.run(fault(loom.ActionInstall, "web"))
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	protect(true)
	refused("retry of a resize", b.retry(id, resize.Number))
	refused("rollback of a resize", b.rollback(id, resize.Number))
	protect(false)
	if err := b.rollback(id, resize.Number); err != nil {
		t.Fatal(err)
	}
	m.run(fault(loom.ActionConfirm, ""))
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	protect(true)
	last := b.latest(id).Ref.Number
	if v, err := b.clusters.Preview(b.ctx, b.admin(), clusters.PreviewInput{Kind: loom.ChangeRetry, Cluster: id}); err == nil && v.ByAction[loom.ActionDelete] > 0 {
		t.Errorf("the retry of a rollback deletes %d machines", v.ByAction[loom.ActionDelete])
	}
	protect(false)
	if err := b.retry(id, last); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
}
