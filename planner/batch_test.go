package planner

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"loom/app/loom"
)

// TestWhatFailedHoldsBackTheBatchesBehind: all that a later batch does waits for each
// task of this one, and what the other nodes of this one do does not, unless their
// services depend on each other. So dropping what waits for a failed task ends the
// roll behind its batch.
func TestWhatFailedHoldsBackTheBatchesBehind(t *testing.T) {
	t.Parallel()
	rolls, together := 0, 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 4))
		change := onlyRolls(randomChange(r))
		apart := r.IntN(2) == 0
		change.Before.Services, change.After.Services = alone(change.Before.Services, apart), alone(change.After.Services, apart)
		plan, err := MakeChange(change)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		batchOf := batchesOf(change)
		of := func(task loom.PlanTask) int {
			if b, rolls := batchOf[task.Node]; rolls {
				return b
			}
			return -1
		}
		behind := closure(len(plan.Tasks), taskEdges(plan))
		for i, failed := range plan.Tasks {
			if of(failed) < 0 {
				continue
			}
			rolls++
			for j, task := range plan.Tasks {
				waits := behind[i+1].has(j + 1)
				switch number := of(task); {
				case number < 0:
				case number > of(failed) && !waits:
					t.Fatalf("seed %d: task %d of batch %d does not wait for task %d of batch %d\n%s", seed, j+1, number, i+1, of(failed), Text(plan))
				case number < of(failed) && waits:
					t.Fatalf("seed %d: task %d of batch %d waits for a later one\n%s", seed, j+1, number, Text(plan))
				case number == of(failed) && apart && task.Node != failed.Node:
					if together++; waits {
						t.Fatalf("seed %d: task %d waits for task %d of another node in its batch\n%s", seed, j+1, i+1, Text(plan))
					}
				}
			}
		}
	}
	if rolls < 1000 || together < 1000 {
		t.Errorf("%d tasks of rolls and %d pairs in a batch: too few to tell", rolls, together)
	}
}

// onlyRolls leaves of a change what comes in batches.
func onlyRolls(change Change) Change {
	hardware := map[loom.NodeID]string{}
	for _, n := range change.After.Nodes {
		hardware[n.ID] = n.HardwareType
	}
	change.After.Nodes = slices.Clone(change.Before.Nodes)
	for i := range change.After.Nodes {
		if h := hardware[change.After.Nodes[i].ID]; h != "" {
			change.After.Nodes[i].HardwareType = h
		}
	}
	return change
}

// alone are services that follow nothing, and with apart depend on nothing.
func alone(services map[string]loom.Service, apart bool) map[string]loom.Service {
	out := maps.Clone(services)
	for name, s := range out {
		if s.Follows = nil; apart {
			s.Dependencies.Install, s.Dependencies.Runtime = loom.PhaseDependency{}, loom.PhaseDependency{}
		}
		out[name] = s
	}
	return out
}

// batchesOf numbers the batches of the nodes that roll.
func batchesOf(change Change) map[loom.NodeID]int {
	all := map[loom.NodeID]int{}
	for _, n := range change.Before.Nodes {
		if node(change.After, n.ID).HardwareType != n.HardwareType || slices.ContainsFunc(n.Services, func(s string) bool {
			return change.Before.Services[s].Version != change.After.Services[s].Version
		}) {
			all[n.ID] = len(all) / max(change.Batch, 1)
		}
	}
	return all
}

func TestFinishesBatch(t *testing.T) {
	t.Parallel()
	for _, a := range loom.ClusterActions {
		roll := a == loom.ClusterUpgrade || a == loom.ClusterResize || a == loom.ClusterUpdate || a == loom.ClusterAuthorize || slices.Contains(repairActions, a)
		if FinishesBatch(a, false) != roll {
			t.Errorf("%s: %t", a, !roll)
		}
		if fixed := a == loom.ClusterCreate || a == loom.ClusterDelete || a == loom.ClusterConfigure || a == loom.RestartServices; fixed && FinishesBatch(a, true) {
			t.Errorf("%s has batches", a)
		}
	}
}
