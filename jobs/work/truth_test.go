package work_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/execution"
	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
)

// TestRiverTellsTheTruth: while random plans fail, are retried, paused, resumed, aborted,
// undone and have tasks left out, and provisioners are killed, River's row of each task says
// what the task says, in one snapshot after the other (docs/engine.md).
func TestRiverTellsTheTruth(t *testing.T) {
	t.Parallel()
	c := newChaos(t, 1)
	const plans = 200
	for _, wrong := range c.run(plans, 4*time.Minute) {
		t.Error(wrong)
	}
	wrong, err := testkit.WrongRiverJobs(context.Background(), c.db, time.Hour)
	if err != nil || len(wrong) > 0 {
		t.Errorf("after the end: %v, %v", wrong, err)
	}
	snapshots, changes := c.snapshots, 2*c.count(`SELECT count(*) FROM attempts`)
	t.Logf("%d snapshots while attempts began or ended %d times; %v", snapshots, changes, &c.seen)
	// How dense snapshots are depends on the machine. That they are dense enough to find an untruth
	// is what TestUntruthsAreFound shows.
	if snapshots < plans {
		t.Errorf("%d snapshots of %d plans", snapshots, plans)
	}
	for _, what := range []string{"complete", "failed", "aborted", "rolled_back", "pause", "resume", "abort", "skip", "retry", "kill", "late delivery"} {
		if n, ok := c.seen.Load(what); !ok || n.(*atomic.Int64).Load() == 0 {
			t.Errorf("nothing was seen of %q", what)
		}
	}
}

// mutants of the engine: a function, a text in it, and what replaces that.
var mutants = map[string]struct{ function, text, instead string }{
	"a row is pending while its task runs": {"loom_start", `PERFORM loom_signal(v_started, v_machines);`,
		`UPDATE river_job SET state = 'pending' WHERE id IN (SELECT t.river_job_id FROM tasks t WHERE t.id = ANY(v_started)); PERFORM loom_signal(v_started, v_machines);`},
	"a row is left behind at an abort": {"loom_drop", `PERFORM loom_deliver(v_tasks, false);`, ``},
	"a retry is not scheduled":         {"loom_deliver", `THEN 'scheduled' ELSE`, `THEN 'pending' ELSE`},
	"a retry is available at once":     {"loom_deliver", `THEN 'scheduled' ELSE`, `THEN 'available' ELSE`},
	"a pause is not heeded":            {"loom_river_state", `AND p_operation IN ('running', 'rolling_back') THEN`, `THEN`},
	"a failed task is completed":       {"loom_river_state", `'discarded'`, `'completed'`},
	"a second delivery begins": {"loom_start", `r.state::text = 'running' AND r.attempt = x.attempt AND r.attempted_by[array_upper(r.attempted_by, 1)] = p_process
          AND t.status || '' = 'ready' AND x.attempt > t.attempt`, `t.status || '' IN ('ready', 'running') AND x.attempt > t.attempt`},
	"a row stays running behind its task": {"loom_complete", `UPDATE river_job r SET state = 'completed', finalized_at = now() WHERE r.id = ANY(v_jobs);`, ``},
}

// TestUntruthsAreFound: what TestRiverTellsTheTruth looks for is found where it is.
func TestUntruthsAreFound(t *testing.T) {
	t.Parallel()
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChaos(t, 2)
			text := c.text(`SELECT pg_get_functiondef($1::regproc)`, m.function)
			if strings.Count(text, m.text) != 1 {
				t.Fatalf("%s does not say %q once", m.function, m.text)
			}
			c.exec(strings.Replace(text, m.text, m.instead, 1))
			c.found = true
			wrong := c.run(30, 3*time.Minute)
			if len(wrong) == 0 {
				t.Fatal("nobody noticed")
			}
			t.Log(wrong[0])
		})
	}
}

// chaos is a world in which all that can happen to operations does.
type chaos struct {
	*world
	ops    *execution.Operations
	random *rand.Rand
	actor  loom.Actor
	// found ends it with the first difference.
	found bool

	seen  counts
	mu    sync.Mutex
	wrong []string
	// snapshots is how many were taken.
	snapshots int
}

// counts counts events by name.
type counts struct{ sync.Map }

func (c *counts) add(what string) {
	n, _ := c.LoadOrStore(what, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// String lists the counts.
func (c *counts) String() string {
	var all []string
	c.Range(func(what, n any) bool {
		all = append(all, fmt.Sprintf("%d %s", n.(*atomic.Int64).Load(), what))
		return true
	})
	return strings.Join(all, ", ")
}

func newChaos(t *testing.T, seed uint64) *chaos {
	w := newWorld(t, 40)
	common, db := w.common(12)
	t.Cleanup(func() { db.Close() })
	w.exec(`INSERT INTO users (tenant_id, id, role) VALUES ('t1', 'ana', 'admin')`)
	return &chaos{world: w, ops: common.Operations, random: rand.New(rand.NewPCG(seed, 7)),
		actor: loom.Actor{Tenant: "t1", TenantName: "t1", User: "ana", Role: loom.RoleAdmin}}
}

// run carries out plans, twenty at a time, and returns what differed, at most until limit.
func (c *chaos) run(plans int, limit time.Duration) []string {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	c.scheduler()
	c.provisioner(chaosRunner(1), 20)
	var around, operating sync.WaitGroup
	for range 2 { // a look takes some milliseconds
		around.Go(func() { c.watch(ctx, stop) })
	}
	around.Go(func() { c.kill(ctx) })
	around.Go(func() { c.deliverTwice(ctx) })
	next := make(chan int)
	for range 20 {
		operating.Go(func() {
			for i := range next {
				c.operate(ctx, i)
			}
		})
	}
	for i := range plans {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	operating.Wait()
	late := ctx.Err() != nil
	stop()
	around.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if late && !c.found && len(c.wrong) == 0 {
		c.dump()
		c.wrong = append(c.wrong, "the operations did not end")
	}
	return c.wrong
}

// watch takes one snapshot after the other.
func (c *chaos) watch(ctx context.Context, stop func()) {
	for wait := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-wait.C {
		wrong, err := testkit.WrongRiverJobs(ctx, c.db, 5*time.Second)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		if c.look(wrong) {
			stop()
		}
	}
}

// look notes a snapshot and what is wrong in it, and reports whether that is enough.
func (c *chaos) look(wrong []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snapshots++
	c.wrong = append(c.wrong, wrong...)
	return len(c.wrong) > 50 || c.found && len(c.wrong) > 0
}

// kill starts a provisioner of its own, lets it run for a while, and kills it, again and again.
func (c *chaos) kill(ctx context.Context) {
	for ctx.Err() == nil {
		doomed := c.child("chaos")
		select {
		case <-ctx.Done():
		case <-time.After(2500 * time.Millisecond):
		}
		doomed.kill()
		c.seen.add("kill")
	}
}

// deliverTwice begins what runs once more, as a process would that heard of its delivery late.
func (c *chaos) deliverTwice(ctx context.Context) {
	for wait := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; <-wait.C {
		var late struct {
			execution.AttemptKey
			Process loom.ProcessID `db:"process_id"`
		}
		err := c.db.GetContext(ctx, &late, `SELECT t.id AS task_id, t.attempt + 1 AS attempt, p.id AS process_id
			FROM running_tasks t, processes p WHERE p.kind = 'provisioner' ORDER BY random() LIMIT 1`)
		if err != nil {
			continue
		}
		if _, _, err := c.ops.StartTasks(ctx, late.Process, []execution.AttemptKey{late.AttemptKey}); err == nil {
			c.seen.add("late delivery")
		}
	}
}

// operate makes a cluster, stores a random plan for it, and lets things happen to the operation until it is over.
func (c *chaos) operate(ctx context.Context, i int) {
	random := rand.New(rand.NewPCG(uint64(i), 11))
	cluster, op, err := c.begin(random)
	if err != nil {
		c.note(fmt.Sprintf("plan %d: %v", i, err))
		return
	}
	for {
		var status loom.OperationStatus
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(5+random.IntN(40)) * time.Millisecond):
		}
		if err := c.db.GetContext(ctx, &status, `SELECT status FROM operations WHERE id = $1`, op.Row); err != nil {
			continue
		}
		if status.Final() {
			c.seen.add(string(status))
			return
		}
		what, err := c.act(ctx, random, status, cluster, op)
		var known *loom.Error
		switch {
		case err == nil && what != "":
			c.seen.add(what)
		case err != nil && ctx.Err() == nil && !errors.As(err, &known):
			c.note(fmt.Sprintf("plan %d: %s: %v", i, what, err))
		}
	}
}

func (c *chaos) note(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, text)
}

// act does something to an operation, or nothing.
func (c *chaos) act(ctx context.Context, random *rand.Rand, status loom.OperationStatus, cluster loom.ClusterID, op loom.Operation) (what string, err error) {
	task := func(condition string) (loom.TaskRef, bool) {
		var number int
		err := c.db.GetContext(ctx, &number, `SELECT t.number FROM tasks t JOIN nodes n ON n.task_id = t.id WHERE t.operation_id = $1 AND t.status = 'ready' AND `+condition+` LIMIT 1`, op.Row)
		return loom.TaskRef{Operation: op.Ref, Number: number}, err == nil
	}
	draw := random.IntN(100)
	switch {
	case status == loom.OperationPaused && draw < 20:
		if ref, ok := task(`t.action = 'bootstrap'`); ok {
			return "skip", c.ops.Skip(ctx, c.actor, ref, "for a test")
		}
	case status == loom.OperationPaused:
		_, err = c.ops.Resume(ctx, c.actor, op.Ref)
		return "resume", err
	case draw < 5:
		_, err = c.ops.Pause(ctx, c.actor, op.Ref)
		return "pause", err
	case draw < 7:
		_, err = c.ops.Abort(ctx, c.actor, op.Ref)
		return "abort", err
	case draw < 60:
		if ref, ok := task(`t.code <> 0`); ok {
			return "retry", c.ops.RetryNow(ctx, c.actor, ref)
		}
	case draw < 62:
		if ref, ok := task(`t.code <> 0`); ok {
			return "give up", c.ops.StopRetrying(ctx, c.actor, ref)
		}
	}
	return "", nil
}

// begin stores a cluster of two to six nodes and a plan that makes them, with edges between
// nodes here and there, a gate or two, and sometimes the wish to be undone when it fails.
func (c *chaos) begin(random *rand.Rand) (loom.ClusterID, loom.Operation, error) {
	cluster, nodes := c.cluster(c.tenant, 2+random.IntN(5))
	steps := []loom.TaskAction{loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap, loom.ActionBootstrap}
	plan := loom.Plan{Action: loom.ClusterCreate, Gates: []loom.Gate{{}}}
	number := func(node, step int) int { return node*len(steps) + step + 1 }
	for n, node := range nodes {
		for s, step := range steps {
			plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: number(n, s), Node: node, NodeNumber: 1000 + n, Action: step, Level: s + 1, Rank: len(steps) - s})
		}
	}
	if random.IntN(2) == 0 {
		plan.Gates = append([]loom.Gate{{Service: "s", Action: loom.ActionStart}}, plan.Gates...)
	}
	gate, end := len(plan.Tasks)+1, len(plan.Tasks)+len(plan.Gates)
	for n := range nodes {
		for s := 1; s < len(steps); s++ {
			if s == 3 && gate < end {
				plan.Edges = append(plan.Edges, loom.Edge{From: number(n, 2), To: gate}, loom.Edge{From: gate, To: number(n, 3)})
				continue
			}
			plan.Edges = append(plan.Edges, loom.Edge{From: number(n, s-1), To: number(n, s)})
			if other := random.IntN(len(nodes)); other != n {
				plan.Edges = append(plan.Edges, loom.Edge{From: number(other, s-1), To: number(n, s)})
			}
		}
		plan.Edges = append(plan.Edges, loom.Edge{From: number(n, len(steps)-1), To: end})
	}
	in := store.NewOperation{Tenant: c.tenant, Cluster: cluster, Action: plan.Action, RequestedBy: "ana"}
	if random.IntN(2) == 0 {
		in.OnFailure = loom.OnFailureUndo
	}
	op, err := store.InTx(context.Background(), c.db.DB, func(tx *sqlx.Tx) (loom.Operation, error) {
		return store.InsertPlan(context.Background(), tx, in, plan)
	})
	return cluster, op, err
}

// chaosRunner takes some milliseconds for each task, and fails some: most may be tried again.
func chaosRunner(seed uint64) *fakeRunner {
	random, mu := rand.New(rand.NewPCG(seed, 3)), sync.Mutex{}
	return newRunner(func(ctx context.Context, spec *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		mu.Lock()
		draw, took := random.IntN(100), time.Duration(random.IntN(15))*time.Millisecond
		mu.Unlock()
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return loom.TaskResult{Status: -1, Message: "stopped", Interrupted: true}
		}
		no := false
		switch {
		case draw < 2:
			return loom.TaskResult{Status: 1, Message: "useless", Retryable: &no}
		case draw < 12:
			return loom.TaskResult{Status: 1, Message: "try again"}
		case spec.Action == loom.ActionCreate:
			return loom.TaskResult{Result: map[string]any{"providerid": "m"}}
		case spec.Action == loom.ActionDelete:
			return loom.TaskResult{Result: map[string]any{"providerid": nil}}
		}
		return loom.TaskResult{}
	})
}
