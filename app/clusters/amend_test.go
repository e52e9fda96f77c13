package clusters_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// amend retries the latest operation with a change.
func (b *bundle) amend(id loom.ClusterID, in clusters.ChangeInput) loom.OperationRef {
	b.t.Helper()
	ref, err := b.retryOf(b.ana(), b.latest(id).Ref, in)
	if err != nil {
		b.t.Fatal(err)
	}
	return ref
}

// A script with a typo: the newer version comes with the retry, and what is complete
// gets no task.
func TestAmendAService(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	b.withRoles()
	id := b.create(b.ana(), 2).Cluster
	m.run(fault(loom.ActionConfigure, "web"))
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	first := m.ran
	b.renew("web")
	in := clusters.PreviewInput{Kind: loom.ChangeRetry, Cluster: id, Change: clusters.ChangeInput{Services: []string{"web"}}}
	v, err := b.clusters.Preview(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	if s := v.Summary(); !strings.Contains(s, "Continues operation 1, takes the newest version of web, runs") {
		t.Error(s)
	}
	if !slices.ContainsFunc(v.Changes, func(c clusters.ChangeLine) bool {
		return c.Object == "service" && c.Name == "web" && fmt.Sprint(c.Old, c.New) == "2 3"
	}) {
		t.Errorf("the difference is not shown: %+v", v.Changes)
	}
	ref, err := b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID, Hash: v.Hash})
	if err != nil {
		t.Fatal(err)
	}
	if op := b.latest(id); ref.Number != 2 || op.Action != loom.ClusterCreate || op.Concerns != 1 || !op.Mends || op.Retries {
		t.Errorf("%+v", op)
	}
	m.run(nil)
	m.serving(id, map[string]int{"web": 3, "db": 2, "base": 1})
	for _, s := range m.ran {
		if slices.Contains(first, s) && !strings.Contains(s, "web") && s != "configure 1000 db" { // which follows web
			t.Errorf("%s ran twice", s)
		}
	}
	if b.count(`SELECT count(*) FROM operations WHERE number = 2 AND start IS NOT NULL`) != 1 {
		t.Error("the layout at the start is not kept")
	}
}

// A wrong config value: the same change by three words, all leading to an active cluster.
func TestAmendTheConfig(t *testing.T) {
	t.Parallel()
	patch := map[string]any{"web": map[string]any{"port": 81}}
	for name, begin := range map[string]func(b *bundle, id loom.ClusterID) (loom.OperationRef, error){
		"retry": func(b *bundle, id loom.ClusterID) (loom.OperationRef, error) {
			return b.retryOf(b.ana(), b.latest(id).Ref, clusters.ChangeInput{ConfigPatch: patch})
		},
		"configure": func(b *bundle, id loom.ClusterID) (loom.OperationRef, error) {
			return b.configure(b.ana(), id, clusters.ConfigureInput{ConfigPatch: patch}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			m := b.mock()
			b.withRoles()
			id := b.create(b.ana(), 2).Cluster
			m.run(fault(loom.ActionStart, "web"))
			b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
			v, err := b.clusters.PreviewUnsaved(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeConfigure, Cluster: id, Configure: &clusters.ConfigureInput{ConfigPatch: patch}})
			if err != nil || !strings.HasPrefix(v.Summary(), "Continues operation 1, changes the config, runs") {
				t.Errorf("%q, %v", v.Summary(), err)
			}
			if _, err := begin(b, id); err != nil {
				t.Fatal(err)
			}
			if op := b.latest(id); op.Action != loom.ClusterCreate || !op.Mends {
				t.Errorf("%+v", op)
			}
			m.run(nil)
			m.serving(id, nil)
			if web, _ := b.cluster(id).Config["web"].(map[string]any); fmt.Sprint(web["port"]) != "81" {
				t.Errorf("%v", b.cluster(id).Config)
			}
			configured := 0
			for _, s := range m.ran {
				if strings.HasPrefix(s, "configure") {
					configured++
				}
			}
			if configured < 2 {
				t.Errorf("the config did not reach all: %v", m.ran)
			}
		})
	}
}

// What cannot be had is taken off, by either word and after operations of other kinds.
func TestAmendByRemoving(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(b *bundle, id loom.ClusterID) (loom.OperationRef, error){
		"retry": func(b *bundle, id loom.ClusterID) (loom.OperationRef, error) {
			return b.retryOf(b.ana(), b.latest(id).Ref, clusters.ChangeInput{RemoveServices: []string{"cache"}})
		},
		"remove services": func(b *bundle, id loom.ClusterID) (loom.OperationRef, error) {
			return b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeRemoveServices, Cluster: id, Change: clusters.ChangeInput{Services: []string{"cache"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			m := b.mock()
			id := m.grown()
			before := m.cluster(id)
			in := b.undoable(id)["add services"]
			in.Change.OnFailure = loom.OnFailureKeep
			b.starts(in)
			m.run(fault(loom.ActionConfigure, "cache"))
			b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
			if _, err := begin(b, id); err != nil {
				t.Fatal(err)
			}
			if op := b.latest(id); op.Action != loom.AddServices {
				t.Errorf("%+v", op)
			}
			m.run(nil)
			m.serving(id, nil)
			if after := b.cluster(id); len(after.Services) != len(before.Services) || after.Services["cache"].Name != "" {
				t.Errorf("%v", sorted(after.Services))
			}
		})
	}
}

func sorted(services map[string]loom.Service) []string {
	var names []string
	for name := range services {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestAmendRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := b.create(b.ana(), 2).Cluster
	m.run(fault(loom.ActionStart, "web"))
	of := b.latest(id).Ref
	for name, test := range map[string]struct {
		in   clusters.ChangeInput
		kind loom.Kind
		says string
	}{
		"skip as well":     {clusters.ChangeInput{Skip: []int{3}, Reason: "x", Services: []string{"web"}}, loom.Invalid, "not both"},
		"unknown service":  {clusters.ChangeInput{Services: []string{"nix"}}, loom.NotFound, "has no service “nix”"},
		"unknown removed":  {clusters.ChangeInput{RemoveServices: []string{"nix"}}, loom.NotFound, "has no service “nix”"},
		"both":             {clusters.ChangeInput{Services: []string{"web"}, RemoveServices: []string{"web"}}, loom.Invalid, "is to be removed"},
		"needed":           {clusters.ChangeInput{RemoveServices: []string{"db"}}, loom.Unsolvable, ""},
		"unexpandable":     {clusters.ChangeInput{ConfigPatch: map[string]any{"a": "%host.service.%"}}, loom.Invalid, ""},
		"cannot be stored": {clusters.ChangeInput{ConfigPatch: map[string]any{"a": "\x00"}}, loom.Invalid, ""},
	} {
		_, err := b.retryOf(b.admin(), of, test.in)
		if e := loom.AsError(err); err == nil || e.Kind != test.kind || !strings.Contains(e.Message, test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		t.Fatal(err)
	}
	m.run(fault(loom.ActionDelete, ""))
	_, err := b.retryOf(b.ana(), b.latest(id).Ref, clusters.ChangeInput{Services: []string{"web"}})
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "is a delete") {
		t.Error(e.Message)
	}
	_, err = b.configure(b.ana(), id, clusters.ConfigureInput{Config: map[string]any{}}, nil)
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "go on with the delete") {
		t.Error(e.Message)
	}
}

// A retry that changes things and fails as well: its undo, and a rollback of it, go back
// to before the first operation; another retry goes on from both.
func TestAmendThatFails(t *testing.T) {
	t.Parallel()
	for name := range (&bundle{}).undoable(0) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			m := b.mock()
			id := m.grown()
			before, machines := b.records(id), len(m.machines)
			for seed := range uint64(6) {
				random := rand.New(rand.NewPCG(seed, 17))
				later := func(n int) func(step) bool {
					wait, failed := random.IntN(n), false
					return func(s step) bool {
						if s.Undo || failed {
							return false
						}
						wait--
						failed = wait < 0
						return failed
					}
				}
				in := b.undoable(id)[name]
				in.Change.OnFailure = loom.OnFailureKeep
				b.starts(in)
				m.run(later(8))
				mends := 0
				undo := seed%3 == 0
				for b.latest(id).Status == loom.OperationFailed && mends < 3 {
					retry := clusters.ChangeInput{Services: []string{"web"}, ConfigPatch: map[string]any{"n": mends}}
					if mends == 1 {
						retry = clusters.ChangeInput{} // as it is
					}
					if undo && mends == 2 {
						retry.OnFailure = loom.OnFailureUndo
					}
					if _, there := b.cluster(id).Services["web"]; !there {
						retry.Services = nil
					}
					b.amend(id, retry)
					mends++
					m.run(later(10))
				}
				switch status := b.latest(id).Status; {
				case status == loom.OperationRolledBack:
				case status == loom.OperationComplete && mends > 0:
					m.serving(id, nil)
					fallthrough
				default:
					if _, err := b.rollbackOf(b.ana(), b.latest(id).Ref); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					m.run(nil)
					b.ended(id, loom.OperationComplete, loom.ClusterActive)
				}
				if after := b.records(id); after != before {
					t.Fatalf("seed %d, %d mends: the records are\n%s\nwere\n%s\nafter %s", seed, mends, after, before, strings.Join(m.ran, ", "))
				}
				if len(m.machines) != machines {
					t.Errorf("seed %d: %d machines, were %d; %s", seed, len(m.machines), machines, strings.Join(m.ran, ", "))
				}
				for _, n := range b.cluster(id).Nodes {
					for _, service := range n.Services {
						if n.State != loom.NodeReady || n.ServiceStates[service] != loom.ServiceStarted {
							t.Errorf("seed %d: %s on node %d (%s) is %s; %s", seed, service, n.Number, n.State, n.ServiceStates[service], strings.Join(m.ran, ", "))
						}
					}
				}
			}
		})
	}
}

// A hook that refuses leaves everything as the failed operation left it.
func TestAmendRefusedByAHook(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	in := b.undoable(id)["upgrade"]
	in.Change.OnFailure = loom.OnFailureKeep
	b.starts(in)
	m.run(fault(loom.ActionInstall, "web"))
	before := b.records(id)
	b.save(b.tenant, loom.KindService, role("web"))
	b.db.MustExec(`INSERT INTO hooks (tenant_id, name, url, events, blocking) VALUES ($1, 'freeze', 'https://ci.example/', '{start}', true)`, b.tenant)
	b.amend(id, clusters.ChangeInput{Services: []string{"web"}, ConfigPatch: map[string]any{"n": 1}})
	if b.records(id) == before {
		t.Fatal("nothing changed")
	}
	m.refuse("not on Fridays")
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	if after := b.records(id); after != before {
		t.Errorf("the records are\n%s\nwere\n%s", after, before)
	}
}
