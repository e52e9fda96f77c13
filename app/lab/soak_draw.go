package lab

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"loom/app/failpoint"
	"loom/app/loom"
)

// soakPoint is a point that faults are aimed at, with the highest hit that is
// chosen: about as many as one process lives to see.
type soakPoint struct {
	name string
	most int
}

// around returns the two points of a transaction.
func around(owner string, most int) []soakPoint {
	return []soakPoint{{owner + ".before", most}, {owner + ".after", most}}
}

func join(lists ...[]soakPoint) []soakPoint {
	var all []soakPoint
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// soakTargets are the points by kind of process. What is not named here is struck
// by the faults at any point.
var soakTargets = map[string][]soakPoint{
	loom.ProcessProvisioner: join(
		around("processes.Register", 1), []soakPoint{{failpoint.Renewed, 5}},
		around("execution.StartTasks", 20), around("execution.StoreFact", 8),
		[]soakPoint{{failpoint.BeforeCall, 20}, {failpoint.AfterCall, 20}, {failpoint.ResultKept, 20}},
		around("execution.CompleteTasks", 20), around("execution.FailTask", 1),
		[]soakPoint{{failpoint.Any, 60}, {failpoint.Any, 120}},
	),
	loom.ProcessScheduler: join(
		around("processes.Register", 1), []soakPoint{{failpoint.Renewed, 5}},
		around("processes.Reap", 15), around("execution.ReleaseRetries", 15), around("execution.Reconcile", 4),
		around("execution.EndOperation", 1), around("execution.RecordDelivery", 2),
		[]soakPoint{{failpoint.Any, 60}, {failpoint.Any, 120}},
	),
	// What a web process does: one transaction that begins an operation.
	loom.ProcessWeb: join(around("clusters.Create", 1), around("clusters.execute", 1)),
}

// soakDraw draws faults by a seed: every point with every action in turn, each
// time in another order, and other hits.
type soakDraw struct {
	mu     sync.Mutex
	random *rand.Rand
	deck   map[string][]string
	// actions are chosen among as often as they stand here.
	actions []failpoint.Action
	changes []soakChange
	// targets are the points by kind of process. After least hits of any point a process dies, or
	// twice as many at most; all but one in rare get no other fault.
	targets     map[string][]soakPoint
	least, rare int
}

func newSoakDraw(seed, lane uint64, freeze bool) *soakDraw {
	d := &soakDraw{random: rand.New(rand.NewPCG(seed, lane)), deck: map[string][]string{}, targets: soakTargets, least: 150, rare: 1,
		actions: []failpoint.Action{failpoint.Kill, failpoint.Kill, failpoint.Kill, failpoint.Cut}}
	if freeze {
		d.actions = append(d.actions, failpoint.Freeze)
	}
	return d
}

// next returns the faults of a process that starts, for LOOM_FAULT. The last one is
// always a kill, at whatever point: a process must not outlive all faults.
func (d *soakDraw) next(kind string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := func() string {
		return fmt.Sprintf("%s:%d:%s", failpoint.Any, d.least+d.random.IntN(d.least), failpoint.Kill)
	}
	if d.rare > 1 && d.random.IntN(d.rare) > 0 {
		return last()
	}
	if len(d.deck[kind]) == 0 {
		for _, p := range d.targets[kind] {
			for _, action := range d.actions {
				d.deck[kind] = append(d.deck[kind], fmt.Sprintf("%s:%d:%s", p.name, 1+d.random.IntN(p.most), action))
			}
		}
		d.random.Shuffle(len(d.deck[kind]), func(i, j int) {
			d.deck[kind][i], d.deck[kind][j] = d.deck[kind][j], d.deck[kind][i]
		})
	}
	one := d.deck[kind][0]
	d.deck[kind] = d.deck[kind][1:]
	return one + "," + last()
}

// request returns the fault of a process that begins an operation, "" for none:
// those are asked directly.
func (d *soakDraw) request(owner string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.random.IntN(3) > 0 {
		return ""
	}
	return fmt.Sprintf("%s.%s:1:%s", owner, []string{"before", "after"}[d.random.IntN(2)], failpoint.Kill)
}

// number returns one from 0 to below n.
func (d *soakDraw) number(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}
