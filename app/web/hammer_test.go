package web_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

// troubles keeps what handlers log as errors.
type troubles struct {
	mu    sync.Mutex
	lines []string
}

func (t *troubles) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, string(p))
	return len(p), nil
}

func (t *troubles) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines
}

// hammer carries out tasks on a provider that only pretends, several at a time.
type hammer struct {
	*clusterWorld
	// fails names the action that fails.
	fails atomic.Value
}

// work runs what is due until stop is closed.
func (h *hammer) work(stop <-chan struct{}) {
	var due []struct {
		Task    loom.TaskID `db:"task_id"`
		Attempt int         `db:"attempt"`
		Action  string      `db:"action"`
		Number  int         `db:"number"`
	}
	for {
		select {
		case <-stop:
			return
		default:
		}
		due = due[:0]
		err := h.db.Select(&due, `UPDATE river_job r SET state = 'running', attempt = r.attempt + 1, attempted_at = now(), attempted_by = array_append(r.attempted_by, 'p1')
			FROM (SELECT r.id FROM river_job r WHERE r.state IN ('available', 'scheduled') AND r.kind = 'run_task' ORDER BY r.id LIMIT 3 FOR UPDATE SKIP LOCKED) AS first,
				tasks t JOIN nodes n ON n.id = t.node_id
			WHERE r.id = first.id AND r.id = t.river_job_id RETURNING t.id AS task_id, r.attempt, t.action, n.number`)
		if err != nil {
			h.t.Error(err)
			return
		}
		var finished []execution.Finished
		for _, d := range due {
			key := execution.AttemptKey{Task: d.Task, Attempt: d.Attempt}
			begun, _, err := h.ops.StartTasks(h.ctx, "p1", []execution.AttemptKey{key})
			if err != nil {
				h.t.Error(err)
				return
			}
			if len(begun) == 0 {
				continue
			}
			log := h.ops.Log(key)
			log.Add("stdout", d.Action+" begins\nand goes on")
			log.Close()
			r := loom.TaskResult{}
			switch d.Action {
			case "create":
				r.Result = map[string]any{"providerid": fmt.Sprint("m-", d.Task)}
			case "confirm":
				r.Addresses = map[string]string{loom.AccessV4: fmt.Sprint("10.77.1.", d.Number-990)}
			case "delete":
				r.Result = map[string]any{"providerid": nil}
			}
			if d.Action == h.fails.Load() {
				if _, err := h.ops.FailTask(h.ctx, key, loom.TaskResult{Status: 1, Message: "no", Retryable: new(false)}); err != nil {
					h.t.Error(err)
				}
				continue
			}
			finished = append(finished, execution.Finished{Key: key, Result: r})
		}
		if len(finished) > 0 {
			if _, err := h.ops.CompleteTasks(h.ctx, finished); err != nil {
				h.t.Error(err)
			}
		}
		h.end()
	}
}

// end ends the operations that asked for it.
func (h *hammer) end() {
	var ids []loom.OperationID
	if err := h.db.Select(&ids, `UPDATE river_job SET state = 'completed', finalized_at = now() WHERE kind = 'end_operation' AND state = 'available'
		RETURNING (args->>'operation_id')::bigint`); err != nil {
		h.t.Error(err)
	}
	for _, id := range ids {
		if err := h.ops.EndOperation(h.ctx, id); err != nil {
			h.t.Error(err)
		}
	}
}

// settles waits until no operation of a cluster is under way.
func (h *hammer) settles(id loom.ClusterID) loom.ClusterStatus {
	for {
		c, _, err := h.clusters.Latest(h.ctx, h.actor("ana"), id)
		if err != nil {
			h.t.Error(err)
			return ""
		}
		if c.Status != loom.ClusterPending {
			return c.Status
		}
	}
}

func (w *clusterWorld) latest(id loom.ClusterID) loom.OperationRef {
	return loom.OperationRef{Cluster: id, Number: w.cluster(id).LatestOperation}
}

// addresses are pages and documents of a cluster as it is now.
func (h *hammer) addresses(id loom.ClusterID) []string {
	at, rest := route.Cluster(id), "/v2/clusters/"+id.String()
	list := []string{
		route.Home(), "/clusters", at, route.ClusterNodes(id), route.ClusterTab(id, "services"), route.ClusterOperations(id), route.ClusterTab(id, "config"),
		route.ClusterTab(id, "activity"), route.ClusterTab(id, "ssh-config"), route.ClusterDelete(id), route.ClusterScale(id), route.ClusterRepair(id),
		route.ClusterVerb(id, "resize"), route.ClusterVerb(id, "update"), route.ClusterServices(id, "add"), route.ClusterServices(id, "remove"),
		rest, rest + "/status", rest + "/operations", rest + "/plans", rest + "/actions", rest + "/config", rest + "/services", "/v2/nodes", "/v2/clusters",
	}
	for _, part := range []clusterview.Part{clusterview.PartHead, clusterview.PartOperation, clusterview.PartConnect, clusterview.PartNodes, clusterview.PartSets,
		clusterview.PartServices, clusterview.PartOperations, clusterview.PartLeftovers, clusterview.PartSkipped} {
		list = append(list, clusterview.PartURL(id, part))
	}
	var place struct {
		Operation int    `db:"operation"`
		Task      int    `db:"task"`
		Node      string `db:"node"`
	}
	if err := h.db.Get(&place, `SELECT o.number AS operation, t.number AS task, t.node_id AS node FROM operations o JOIN tasks t ON t.operation_id = o.id AND NOT t.gate
		WHERE o.cluster_id = $1 ORDER BY o.number DESC, random() LIMIT 1`, int64(id)); err != nil {
		return list
	}
	op := loom.OperationRef{Cluster: id, Number: place.Operation}
	task := loom.TaskRef{Operation: op, Number: place.Task}
	one := route.Operation(op)
	list = append(list, route.Node(id, loom.NodeID(place.Node)), route.Node(id, loom.NodeID(place.Node))+"/log", route.Task(task), route.Task(task)+"/log",
		rest+fmt.Sprintf("/operations/%d", op.Number), rest+fmt.Sprintf("/operations/%d/tasks", op.Number), rest+fmt.Sprintf("/operations/%d/log", op.Number))
	for _, view := range []string{"", "/graph", "/graph.svg", "/timeline", "/table", "/log", "/panel", "/retry", "/rollback"} {
		list = append(list, one+view)
	}
	return list
}

// TestPagesWhileOperationsRun asks for everything there is of a cluster while
// operations of all kinds make, change and delete it, succeed and fail: a page may say
// that something is not there yet, or not any more, but it never breaks.
func TestPagesWhileOperationsRun(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	h := &hammer{clusterWorld: w}
	h.fails.Store("")
	w.db.MustExec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p1', 'provisioner', 'h', now() + interval '1 hour')`)
	w.db.MustExec(`UPDATE tenants SET workers = 10`)
	id := w.create("shop-front", 4).Cluster
	stop := make(chan struct{})
	var working sync.WaitGroup
	for range 2 {
		working.Go(func() { h.work(stop) })
	}
	var asked atomic.Int64
	for seed := range uint64(3) {
		working.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for {
				list := h.addresses(id)
				for _, i := range random.Perm(len(list)) {
					select {
					case <-stop:
						return
					default:
					}
					headers := []string{}
					if strings.Contains(list[i], "panel") {
						headers = []string{"HX-Request", "true"}
					}
					a := w.send("ana", http.MethodGet, list[i], nil, headers...)
					asked.Add(1)
					if a.Code >= 500 || strings.Contains(a.Body, "Something went wrong") {
						t.Errorf("%s: %d %.300s", list[i], a.Code, a.Body)
					}
				}
			}
		})
	}
	ana := w.actor("ana")
	begin := func(in clusters.PreviewInput) {
		t.Helper()
		in.Cluster = id
		v, err := w.clusters.Preview(w.ctx, ana, in)
		if err == nil {
			_, err = w.clusters.Apply(w.ctx, ana, clusters.ApplyInput{ID: v.ID, Hash: v.Hash})
		}
		if err != nil {
			t.Errorf("%s: %v", in.Kind, err)
		}
	}
	settles := func(want loom.ClusterStatus) {
		t.Helper()
		if got := h.settles(id); got != want {
			t.Errorf("the cluster is %s, want %s", got, want)
		}
	}
	settles(loom.ClusterActive)
	for _, in := range []clusters.PreviewInput{
		{Kind: loom.ChangeExpand, Change: clusters.ChangeInput{Machines: 6}},
		{Kind: loom.ChangeAddServices, Services: []string{"cache"}},
		{Kind: loom.ChangeConfigure, Configure: &clusters.ConfigureInput{ConfigPatch: map[string]any{"a": 1}, Restart: true}},
		{Kind: loom.ChangeRemoveServices, Change: clusters.ChangeInput{Services: []string{"cache"}}},
		{Kind: loom.ChangeResize, Change: clusters.ChangeInput{HardwareType: "small", Batch: 2}},
		{Kind: loom.ChangeShrink, Change: clusters.ChangeInput{Machines: 4}},
	} {
		begin(in)
		settles(loom.ClusterActive)
	}
	h.fails.Store("install")
	begin(clusters.PreviewInput{Kind: loom.ChangeExpand, Change: clusters.ChangeInput{Machines: 5, OnFailure: loom.OnFailureUndo}})
	settles(loom.ClusterActive)
	begin(clusters.PreviewInput{Kind: loom.ChangeExpand, Change: clusters.ChangeInput{Machines: 5}})
	settles(loom.ClusterInconsistent)
	h.fails.Store("")
	begin(clusters.PreviewInput{Kind: loom.ChangeRollback, Change: clusters.ChangeInput{Operation: w.cluster(id).LatestOperation}})
	settles(loom.ClusterActive)
	// Held up, left out of sight, and stopped.
	begin(clusters.PreviewInput{Kind: loom.ChangeExpand, Change: clusters.ChangeInput{Machines: 5, OnFailure: loom.OnFailureUndo}})
	for _, control := range []func() (loom.Operation, error){
		func() (loom.Operation, error) { return w.ops.Pause(w.ctx, ana, w.latest(id)) },
		func() (loom.Operation, error) { return w.ops.Resume(w.ctx, ana, w.latest(id)) },
		func() (loom.Operation, error) { return w.ops.Abort(w.ctx, ana, w.latest(id)) },
	} {
		if _, err := control(); err != nil {
			t.Error(err)
		}
	}
	settles(loom.ClusterActive)
	begin(clusters.PreviewInput{Kind: loom.ChangeDelete})
	settles(loom.ClusterTerminated)
	// A while after the end.
	for now := asked.Load(); asked.Load() < now+100 && !t.Failed(); {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	working.Wait()
	for _, line := range w.troubles.all() {
		t.Error(line)
	}
	t.Logf("%d answers", asked.Load())
}
