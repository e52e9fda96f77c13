package clusters_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

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
					if _, err := b.clusters.Rollback(b.ctx, b.ana(), ref, nil); err != nil {
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
	_, err = b.clusters.Rollback(b.ctx, b.ana(), loom.OperationRef{Cluster: id, Number: 2}, nil)
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
			if msg := b.latest(id).Message; !strings.Contains(msg, "It could not be undone: Task") {
				t.Error(msg)
			}
			if e := wantKind(t, b.retry(id, ref.Number), loom.Conflict); !strings.Contains(e.Message, "roll that operation back") {
				t.Error(e.Message)
			}
			if _, err := b.clusters.Rollback(b.ctx, b.ana(), ref, nil); err != nil {
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
