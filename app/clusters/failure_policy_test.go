package clusters_test

import (
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// TestPolicyOfEveryKind: what can be taken back takes “undo”, the others say why not;
// “keep” is fine with all. The preview shows what counts.
func TestPolicyOfEveryKind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	kinds := b.undoable(id)
	if len(kinds) != 6 {
		t.Fatalf("%d kinds", len(kinds))
	}
	for name, in := range kinds {
		v, err := b.clusters.Preview(b.ctx, b.ana(), in)
		if err != nil || v.OnFailure != loom.OnFailureUndo || v.Request.Change.OnFailure != loom.OnFailureUndo {
			t.Errorf("%s: %q, %v", name, v.OnFailure, err)
		}
	}
	node := b.node(id, 1001)
	for _, c := range []struct {
		in   clusters.PreviewInput
		text string
	}{
		{clusters.PreviewInput{Kind: loom.ChangeStart}, "changes no layout"},
		{clusters.PreviewInput{Kind: loom.ChangeStop, Service: "web"}, "changes no layout"},
		{clusters.PreviewInput{Kind: loom.ChangeRestart}, "changes no layout"},
		{clusters.PreviewInput{Kind: loom.ChangeConfigure, Configure: &clusters.ConfigureInput{Config: map[string]any{}}}, "roll back to the config before"},
		{clusters.PreviewInput{Kind: loom.ChangeConfigure, Configure: &clusters.ConfigureInput{Config: map[string]any{}, Restart: true}}, "roll back to the config before"},
		{clusters.PreviewInput{Kind: loom.ChangeRepair, Change: clusters.ChangeInput{Nodes: []loom.NodeID{node}}}, "Retry it"},
		{clusters.PreviewInput{Kind: loom.ChangeRollback, Change: clusters.ChangeInput{Operation: 1}}, "goes back already"},
		{clusters.PreviewInput{Kind: loom.ChangeDelete}, "What a delete took is gone"},
		{clusters.PreviewInput{Kind: loom.ChangeSync}, "nothing to take back"},
	} {
		c.in.Cluster = id
		c.in.Change.OnFailure = loom.OnFailureUndo
		_, err := b.clusters.Preview(b.ctx, b.ana(), c.in)
		wantKind(t, err, loom.Invalid)
		if err := says(err, "onFailure", c.text, "say “keep”"); err != nil {
			t.Errorf("%s: %v", c.in.Kind, err)
		}
		c.in.Change.OnFailure = "pray"
		_, err = b.clusters.Preview(b.ctx, b.ana(), c.in)
		if err := says(err, "onFailure", "“keep” or “undo”"); err != nil {
			t.Errorf("%s: %v", c.in.Kind, err)
		}
		c.in.Change.OnFailure = loom.OnFailureKeep
		v, err := b.clusters.Preview(b.ctx, b.ana(), c.in)
		want := loom.OnFailureKeep
		if c.in.Kind == loom.ChangeSync {
			want = ""
		}
		if err != nil || v.OnFailure != want {
			t.Errorf("%s: %q, %v", c.in.Kind, v.OnFailure, err)
		}
	}
	create, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeCreate, Create: request(2)})
	if err != nil || create.OnFailure != loom.OnFailureKeep {
		t.Errorf("create: %q, %v", create.OnFailure, err)
	}
}
