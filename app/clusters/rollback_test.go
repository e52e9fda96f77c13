package clusters_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func (b *bundle) rollback(id loom.ClusterID, number int) error {
	_, err := b.rollbackOf(b.ana(), loom.OperationRef{Cluster: id, Number: number})
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
	if _, err := b.configure(b.ana(), id, clusters.ConfigureInput{Config: map[string]any{"x": 1}, Restart: true}, nil); err != nil {
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
	if _, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: loom.ChangeStop}); err != nil {
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
	_, err := b.rollbackOf(b.actor("ben", loom.RoleUser), loom.OperationRef{Cluster: id, Number: 3})
	wantKind(t, err, loom.NotFound)
	reader := b.ana()
	reader.Scopes = []loom.Scope{loom.ScopeRead}
	_, err = b.rollbackOf(reader, loom.OperationRef{Cluster: id, Number: 3})
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

// undoable are changes of a cluster with db, web and base on 3 nodes, each of which
// may be undone.
func (b *bundle) undoable(id loom.ClusterID) map[string]clusters.PreviewInput {
	web := clusters.PreviewInput{Cluster: id}
	with := func(kind loom.ChangeKind, c clusters.ChangeInput) clusters.PreviewInput {
		in := web
		in.Kind, in.Change = kind, c
		in.Change.OnFailure = loom.OnFailureUndo
		return in
	}
	add := with(loom.ChangeAddServices, clusters.ChangeInput{})
	add.Services = []string{"cache"}
	return map[string]clusters.PreviewInput{
		"add services":    add,
		"expand":          with(loom.ChangeExpand, clusters.ChangeInput{Machines: 5}),
		"shrink":          with(loom.ChangeShrink, clusters.ChangeInput{Machines: 2}),
		"remove services": with(loom.ChangeRemoveServices, clusters.ChangeInput{Services: []string{"web"}}),
		"upgrade":         with(loom.ChangeUpgrade, clusters.ChangeInput{}),
		"resize":          with(loom.ChangeResize, clusters.ChangeInput{HardwareType: "xlarge"}),
	}
}

// grown is an active cluster of 3 nodes whose services have a newer version in the
// catalog, which also knows one more service.
func (m *mock) grown() loom.ClusterID {
	m.t.Helper()
	m.withRoles()
	id := m.create(m.ana(), 3).Cluster
	m.run(nil)
	m.ended(id, loom.OperationComplete, loom.ClusterActive)
	cache := role("cache")
	cache.DefaultConfig = map[string]any{"cache": map[string]any{"size": 1}}
	m.save(m.tenant, loom.KindService, cache)
	m.renew("web")
	m.renew("db")
	return id
}

// Whatever fails, an undo leaves the layout, the records and the machines as they
// were, and all services serving.
func TestUndoLeavesEverythingAsItWas(t *testing.T) {
	t.Parallel()
	for name := range (&bundle{}).undoable(0) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			m := b.mock()
			id := m.grown()
			before, machines := b.records(id), len(m.machines)
			for seed := range uint64(4) {
				random := rand.New(rand.NewPCG(seed, 7))
				wait := random.IntN(12)
				in := b.undoable(id)[name]
				ref := b.starts(in)
				failed := false
				m.run(func(s step) bool {
					if s.Undo || failed {
						return false
					}
					wait--
					failed = wait < 0
					return failed
				})
				if !failed {
					b.ended(id, loom.OperationComplete, loom.ClusterActive)
					if _, err := b.rollbackOf(b.ana(), ref); err != nil {
						t.Fatalf("seed %d: rollback of what went well: %v", seed, err)
					}
					m.run(nil)
					b.ended(id, loom.OperationComplete, loom.ClusterActive)
				} else {
					b.ended(id, loom.OperationRolledBack, loom.ClusterActive)
				}
				if after := b.records(id); after != before {
					t.Fatalf("seed %d, failed %v: the records are\n%s\nwere\n%s\nafter %s", seed, failed, after, before, strings.Join(m.ran, ", "))
				}
				if len(m.machines) != machines || b.count(`SELECT count(*) FROM nodes WHERE state <> 'deleted' OR NOT leaving`) != machines {
					t.Errorf("seed %d: %d machines, were %d; %s", seed, len(m.machines), machines, strings.Join(m.ran, ", "))
				}
				for _, n := range b.cluster(id).Nodes {
					if n.State != loom.NodeReady || len(n.ServiceStates) != len(n.Services) {
						t.Errorf("seed %d: node %d is %s with %v", seed, n.Number, n.State, n.ServiceStates)
					}
					for _, service := range n.Services {
						if n.ServiceStates[service] != loom.ServiceStarted {
							t.Errorf("seed %d: %s on node %d is %s; %s", seed, service, n.Number, n.ServiceStates[service], strings.Join(m.ran, ", "))
						}
					}
				}
			}
		})
	}
}

// The config that came with services goes back with them, as a revision of its own.
func TestUndoTakesTheConfigBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	b.starts(b.undoable(id)["add services"])
	m.run(fault(loom.ActionStart, "cache"))
	b.ended(id, loom.OperationRolledBack, loom.ClusterActive)
	revisions, err := b.clusters.ConfigVersions(b.ctx, b.ana(), id)
	if err != nil || len(revisions) != 3 || revisions[0].Operation != 2 || revisions[1].Operation != 2 {
		t.Errorf("%+v, %v", revisions, err)
	}
	if e := wantKind(t, b.retry(id, 2), loom.Conflict); e.Message != "The last operation did not fail." {
		t.Error(e.Message)
	}
	// Nothing is left to go back from.
	_, err = b.rollbackOf(b.ana(), loom.OperationRef{Cluster: id, Number: 2})
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "nothing to roll back") {
		t.Error(e.Message)
	}
}

// An undo that fails loses nothing: the operation is failed, what is left to do can be
// rolled back, and a retry says so.
func TestUndoThatFails(t *testing.T) {
	t.Parallel()
	for name := range (&bundle{}).undoable(0) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			m := b.mock()
			id := m.grown()
			before, machines := b.records(id), len(m.machines)
			ref := b.starts(b.undoable(id)[name])
			wait, undone := 3, 1
			m.run(func(s step) bool {
				if s.Undo {
					undone--
					return undone == 0
				}
				wait--
				return wait == 0
			})
			b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
			if msg := b.latest(id).Message; !strings.Contains(msg, "It could not be undone: ") {
				t.Error(msg)
			}
			if e := wantKind(t, b.retry(id, ref.Number), loom.Conflict); !strings.Contains(e.Message, "roll that operation back") {
				t.Error(e.Message)
			}
			if _, err := b.rollbackOf(b.ana(), ref); err != nil {
				t.Fatal(err)
			}
			m.run(nil)
			b.ended(id, loom.OperationComplete, loom.ClusterActive)
			if after := b.records(id); after != before || len(m.machines) != machines {
				t.Errorf("%d machines, records\n%s\nwere\n%s", len(m.machines), after, before)
			}
		})
	}
}
