package clusters_test

import (
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func (b *bundle) rollback(id loom.ClusterID, number int) error {
	_, err := b.clusters.Rollback(b.ctx, b.ana(), loom.OperationRef{Cluster: id, Number: number}, nil)
	return err
}

// What failed is taken back from where it stopped.
func TestRollbackOfWhatFailed(t *testing.T) {
	t.Parallel()
	for name := range (&bundle{}).undoable(0) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			m := b.mock()
			id := m.grown()
			before, machines := b.records(id), len(m.machines)
			in := b.undoable(id)[name]
			in.Change.OnFailure = loom.OnFailureKeep
			b.starts(in)
			wait := 3
			m.run(func(step) bool { wait--; return wait == 0 })
			b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
			// The first rollback fails as well, and is gone on with.
			if err := b.rollback(id, 2); err != nil {
				t.Fatal(err)
			}
			wait = 2
			m.run(func(step) bool { wait--; return wait == 0 })
			if op := b.latest(id); op.Status == loom.OperationFailed {
				b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
				if op.Action != loom.Rollback || op.Concerns != 2 || op.Retries {
					t.Errorf("%+v", op)
				}
				if err := b.retry(id, op.Ref.Number); err != nil {
					t.Fatal(err)
				}
				m.run(nil)
			}
			b.ended(id, loom.OperationComplete, loom.ClusterActive)
			if after := b.records(id); after != before || len(m.machines) != machines {
				t.Errorf("%d machines, were %d; records\n%s\nwere\n%s", len(m.machines), machines, after, before)
			}
		})
	}
}

// A rollback leads past operations that went well, and may be rolled back itself.
func TestRollbackPastOtherOperations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	var states []string
	for _, name := range []string{"add services", "expand", "upgrade", "shrink", "resize"} {
		states = append(states, b.records(id))
		b.starts(b.undoable(id)[name])
		m.run(nil)
		b.ended(id, loom.OperationComplete, loom.ClusterActive)
	}
	states = append(states, b.records(id))
	if _, err := b.clusters.Configure(b.ctx, b.ana(), id, clusters.ConfigureInput{Config: map[string]any{"x": 1}, Restart: true}, nil); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	for _, c := range []struct {
		number int
		want   string
	}{{7, states[5]}, {4, states[2]}, {2, states[0]}, {9, states[5]}, {3, states[1]}} {
		v := b.previewOf(loom.ChangeRollback, id, clusters.ChangeInput{Operation: c.number})
		if !strings.HasPrefix(v.Summary(), "Goes back to before operation ") || v.ChangeCount == 0 {
			t.Errorf("%d: %q, %d changes", c.number, v.Summary(), v.ChangeCount)
		}
		if _, err := b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID, Hash: v.Hash}); err != nil {
			t.Fatalf("before operation %d: %v", c.number, err)
		}
		m.run(nil)
		b.ended(id, loom.OperationComplete, loom.ClusterActive)
		if got := b.records(id); got != c.want {
			t.Fatalf("before operation %d:\n%s\nwant\n%s", c.number, got, c.want)
		}
		seen := b.cluster(id)
		if len(m.machines) != len(seen.Nodes) {
			t.Errorf("before operation %d: %d machines, %d nodes", c.number, len(m.machines), len(seen.Nodes))
		}
		revisions, err := b.clusters.ConfigVersions(b.ctx, b.ana(), id)
		if err != nil {
			t.Fatal(err)
		}
		newest, err := b.clusters.ConfigVersion(b.ctx, b.ana(), id, revisions[0].Revision)
		if err != nil || len(newest) != len(seen.Config) {
			t.Errorf("before operation %d: the newest revision is %v, the config %v", c.number, newest, seen.Config)
		}
	}
	e := wantKind(t, b.rollback(id, b.latest(id).Ref.Number+1), loom.NotFound)
	if !strings.Contains(e.Message, "no operation") {
		t.Error(e.Message)
	}
}

// Before the create there is nothing.
func TestRollbackOfACreate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := b.create(b.ana(), 3).Cluster
	m.run(fault(loom.ActionInstall, "web"))
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	if err := b.rollback(id, 1); err != nil {
		t.Fatal(err)
	}
	m.run(func(s step) bool { return s.Node == 1001 })
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	if err := b.rollback(id, 1); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterTerminated)
	if len(m.machines) > 0 || b.count(`SELECT count(*) FROM nodes WHERE state <> 'deleted'`) > 0 {
		t.Errorf("left %v", m.machines)
	}
	if n := b.count(`SELECT count(*) FROM secrets WHERE entity LIKE 'cluster:%'`); n > 0 {
		t.Errorf("%d secrets left", n)
	}
	wantKind(t, b.rollback(id, 1), loom.Conflict)
}

// A rollback that cannot be says why, and changes nothing.
func TestRollbackRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	b.withRoles()
	id := b.create(b.ana(), 3).Cluster
	wantKind(t, b.rollback(id, 1), loom.Conflict) // it runs
	m.run(nil)
	if _, err := b.clusters.RunServices(b.ctx, b.ana(), id, clusters.ServicesInput{Kind: loom.ChangeStop}); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	if e := wantKind(t, b.rollback(id, 2), loom.Conflict); !strings.Contains(e.Message, "nothing to roll back") {
		t.Error(e.Message)
	}
	b.starts(clusters.PreviewInput{Kind: loom.ChangeShrink, Cluster: id, Change: clusters.ChangeInput{Machines: 2}})
	m.run(nil)
	b.db.MustExec(`UPDATE tenants SET max_nodes = 2 WHERE id = 't1'`)
	wantKind(t, b.rollback(id, 3), loom.Exhausted)
	b.db.MustExec(`UPDATE tenants SET max_nodes = 10 WHERE id = 't1'`)
	_, err := b.clusters.Rollback(b.ctx, b.actor("ben", loom.RoleUser), loom.OperationRef{Cluster: id, Number: 3}, nil)
	wantKind(t, err, loom.NotFound)
	reader := b.ana()
	reader.Scopes = []loom.Scope{loom.ScopeRead}
	_, err = b.clusters.Rollback(b.ctx, reader, loom.OperationRef{Cluster: id, Number: 3}, nil)
	wantKind(t, err, loom.Forbidden)
	b.db.MustExec(`UPDATE operations SET before = NULL WHERE number = 3`)
	if e := wantKind(t, b.rollback(id, 3), loom.Conflict); !strings.Contains(e.Message, "earlier release") {
		t.Error(e.Message)
	}
	yes := true
	if _, err := b.clusters.Edit(b.ctx, b.ana(), id, clusters.EditInput{Protected: &yes}); err != nil {
		t.Fatal(err)
	}
	if e := wantKind(t, b.rollback(id, 1), loom.Conflict); !strings.Contains(e.Message, "protected") {
		t.Error(e.Message)
	}
	if op := b.latest(id); op.Ref.Number != 3 || !slices.Contains([]loom.OperationStatus{loom.OperationComplete}, op.Status) {
		t.Errorf("%+v", op)
	}
	_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeRollback, Cluster: id})
	if e := wantKind(t, err, loom.Invalid); e.Fields[0].Field != "operation" {
		t.Errorf("%+v", e)
	}
}
