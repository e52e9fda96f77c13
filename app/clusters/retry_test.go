package clusters_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// What finished stays finished: a retry runs what is left, and its end is that of the
// operation retried.
func TestRetryOfACreate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := b.create(b.ana(), 2).Cluster
	m.run(fault(loom.ActionStart, "db"))
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	first := m.ran
	if msg := b.latest(id).Message; !strings.Contains(msg, "Start db on node 100") {
		t.Errorf("the message names no node: %s", msg)
	}
	ref, err := b.retryOf(b.ana(), loom.OperationRef{Cluster: id, Number: 1}, clusters.ChangeInput{})
	if err != nil {
		t.Fatal(err)
	}
	if op := b.latest(id); ref.Number != 2 || op.Action != loom.ClusterCreate || op.Concerns != 1 || !op.Retries {
		t.Errorf("%+v", op)
	}
	// It fails once more, further on, and is retried once more.
	m.run(fault(loom.ActionStart, "web"))
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	second := m.ran
	wantKind(t, b.retry(id, 1), loom.Conflict)
	if err := b.retry(id, 2); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	all := slices.Concat(first, second, m.ran)
	slices.Sort(all)
	if len(all) != len(slices.Compact(slices.Clone(all))) {
		t.Errorf("a task ran twice: %v", all)
	}
	for _, n := range b.cluster(id).Nodes {
		for _, name := range n.Services {
			if n.ServiceStates[name] != loom.ServiceStarted || n.State != loom.NodeReady {
				t.Errorf("%s on node %d is %s", name, n.Number, n.ServiceStates[name])
			}
		}
	}
	e := wantKind(t, b.retry(id, 3), loom.Conflict)
	if e.Message != "The last operation did not fail." {
		t.Error(e.Message)
	}
	wantKind(t, b.retry(id, 9), loom.NotFound)
}

func (b *bundle) retry(id loom.ClusterID, number int) error {
	_, err := b.retryOf(b.ana(), loom.OperationRef{Cluster: id, Number: number}, clusters.ChangeInput{})
	return err
}

// A retry carries out what the cluster has; a newer version is spoken of.
func TestRetryWarnsOfNewerVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := b.create(b.ana(), 2).Cluster
	m.run(fault(loom.ActionInstall, "base"))
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	preview := func() string {
		v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeRetry, Cluster: id})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(v.Warnings, "\n")
	}
	if w := preview(); strings.Contains(w, "version") {
		t.Errorf("without a newer version: %s", w)
	}
	base := b.cluster(id).Services["base"]
	base.Description = "Says more of itself."
	m.save(m.tenant, loom.KindService, &base)
	if w := preview(); strings.Contains(w, "version") {
		t.Errorf("with one that only says more: %s", w)
	}
	install := base.Provisioner.Actions[loom.ActionInstall]
	install.Fields = maps.Clone(install.Fields)
	install.Fields["args"] = "--again"
	base.Provisioner.Actions = maps.Clone(base.Provisioner.Actions)
	base.Provisioner.Actions[loom.ActionInstall] = install
	m.save(m.tenant, loom.KindService, &base)
	if w := preview(); !strings.Contains(w, "The retry carries out version 1 of “base”; name it among the services of the retry to take version 3") {
		t.Errorf("with a newer version: %s", w)
	}
}

// An administrator gets past a task that keeps failing.
func TestRetryLeavesOutTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := b.create(b.ana(), 2).Cluster
	m.run(fault(loom.ActionInstall, "base"))
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	var bad []int
	if err := b.db.Select(&bad, `SELECT number FROM tasks WHERE action = 'install' AND service = 'base' AND NOT gate ORDER BY number`); err != nil {
		t.Fatal(err)
	}
	of := loom.OperationRef{Cluster: id, Number: 1}
	_, err := b.retryOf(b.ana(), of, clusters.ChangeInput{Skip: bad, Reason: "by hand"})
	wantKind(t, err, loom.Forbidden)
	_, err = b.retryOf(b.admin(), of, clusters.ChangeInput{Skip: bad})
	if e := wantKind(t, err, loom.Invalid); e.Fields[0].Field != "reason" {
		t.Errorf("%+v", e)
	}
	_, err = b.retryOf(b.admin(), of, clusters.ChangeInput{Skip: []int{bad[0], 999, 1}, Reason: "x"})
	if e := wantKind(t, err, loom.Invalid); len(e.Fields) != 2 || e.Fields[0].Field != "skip[1]" || e.Fields[1].Field != "skip[2]" {
		t.Errorf("%+v", e)
	}
	in := clusters.PreviewInput{Kind: loom.ChangeRetry, Cluster: id, Change: clusters.ChangeInput{Skip: bad, Reason: "by hand"}}
	v, err := b.clusters.Preview(b.ctx, b.admin(), in)
	if err != nil {
		t.Fatal(err)
	}
	if v.Of != 1 || v.Skipped != 2 || !strings.HasPrefix(v.Summary(), "Continues operation 1, skips 2 tasks, runs ") {
		t.Errorf("%s", v.Summary())
	}
	// Whoever is no administrator now applies none that he made as one.
	earlier, err := b.clusters.Preview(b.ctx, b.actor("ana", loom.RoleAdmin), in)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: earlier.ID, Hash: earlier.Hash})
	wantKind(t, err, loom.Forbidden)
	again, err := b.clusters.PreviewByID(b.ctx, b.admin(), v.ID)
	if err != nil || again.Hash != v.Hash || len(again.Plan.Tasks) != len(v.Plan.Tasks) {
		t.Fatalf("read again: %v", err)
	}
	if _, err := b.clusters.Apply(b.ctx, b.admin(), clusters.ApplyInput{ID: v.ID, Hash: v.Hash, ProviderFields: nil}); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	if slices.ContainsFunc(m.ran, func(s string) bool { return strings.HasPrefix(s, "install") && strings.HasSuffix(s, "base") }) {
		t.Errorf("it ran: %v", m.ran)
	}
	if n := b.count(`SELECT count(*) FROM tasks t JOIN operations o ON o.id = t.operation_id WHERE o.number = 2 AND t.status = 'skipped' AND t.skipped_by = 'admin' AND t.skip_reason = 'by hand'`); n != 2 {
		t.Errorf("%d tasks are marked", n)
	}
}

// A delete that failed is gone on with, unless the cluster was protected meanwhile.
func TestRetryOfADelete(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := b.create(b.ana(), 2).Cluster
	m.run(nil)
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		t.Fatal(err)
	}
	m.run(func(s step) bool { return s.Action == "delete" && s.Node == 1001 })
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	yes := true
	if _, err := b.clusters.Edit(b.ctx, b.ana(), id, clusters.EditInput{Protected: &yes}); err != nil {
		t.Fatal(err)
	}
	wantKind(t, b.retry(id, 2), loom.Conflict)
	yes = false
	if _, err := b.clusters.Edit(b.ctx, b.ana(), id, clusters.EditInput{Protected: &yes}); err != nil {
		t.Fatal(err)
	}
	_, err := b.rollbackOf(b.ana(), loom.OperationRef{Cluster: id, Number: 2})
	wantKind(t, err, loom.Conflict)
	if err := b.retry(id, 2); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterTerminated)
	if len(m.machines) > 0 || len(m.ran) != 1 {
		t.Errorf("left %v, ran %v", m.machines, m.ran)
	}
}

// Where a hook refuses a retry or a rollback, the cluster stays as the failed
// operation left it.
func TestRefusedByAHook(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	in := b.undoable(id)["shrink"]
	in.Change.OnFailure = loom.OnFailureKeep
	b.starts(in)
	m.run(fault(loom.ActionDelete, ""))
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	before, leaving := b.records(id), b.count(`SELECT count(*) FROM nodes WHERE leaving`)
	of := loom.OperationRef{Cluster: id, Number: 2}
	for name, begin := range map[string]func() (loom.OperationRef, error){
		"retry": func() (loom.OperationRef, error) {
			return b.retryOf(b.ana(), b.latest(id).Ref, clusters.ChangeInput{})
		},
		"rollback": func() (loom.OperationRef, error) { return b.rollbackOf(b.ana(), of) },
	} {
		// A retry needs a latest operation that began.
		b.db.MustExec(`DELETE FROM task_edges WHERE from_task IN (SELECT t.id FROM tasks t JOIN operations o ON o.id = t.operation_id WHERE o.number > 2)`)
		b.db.MustExec(`DELETE FROM tasks WHERE operation_id IN (SELECT id FROM operations WHERE number > 2)`)
		b.db.MustExec(`DELETE FROM operations WHERE number > 2`)
		b.db.MustExec(`UPDATE clusters SET latest_operation = 2`)
		if _, err := begin(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b.db.MustExec(`UPDATE operations SET status = 'failing', started_at = NULL WHERE number = 3`)
		b.db.MustExec(`SELECT loom_drop(id) FROM operations WHERE number = 3`)
		if err := m.ops.EndOperation(b.ctx, b.latest(id).Row); err != nil {
			t.Fatal(err)
		}
		b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
		if got := b.records(id); got != before || b.count(`SELECT count(*) FROM nodes WHERE leaving`) != leaving || leaving == 0 {
			t.Errorf("%s: %d nodes leave, %d did; records\n%s\nwere\n%s", name, b.count(`SELECT count(*) FROM nodes WHERE leaving`), leaving, got, before)
		}
	}
}

// A retry that was refused is no dead end: the operation before it can still be retried.
func TestRetryAfterARefusedRetry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := b.create(b.ana(), 2).Cluster
	m.run(fault(loom.ActionStart, "web"))
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	b.db.MustExec(`INSERT INTO hooks (tenant_id, name, url, events, blocking) VALUES ($1, 'freeze', 'https://ci.example/', '{start}', true)`, b.tenant)
	if err := b.retry(id, 1); err != nil {
		t.Fatal(err)
	}
	m.refuse("not on Fridays")
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	b.db.MustExec(`DELETE FROM hook_deliveries`)
	b.db.MustExec(`DELETE FROM hooks`)
	if why := b.cluster(id).Allowed[loom.ChangeRetry]; why != "" {
		t.Error(why)
	}
	if _, err := b.clusters.Resubmit(b.ctx, b.ana(), b.latest(id).Ref, nil); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	m.serving(id, nil)
}

// TestRetryTakesAPolicy: that of the operation retried, unless it names another; what
// the retry and the operation before it did is then taken back.
func TestRetryTakesAPolicy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	before := b.records(id)
	ref, err := b.begin(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 5})
	if err != nil {
		t.Fatal(err)
	}
	m.run(fault(loom.ActionStart, "web"))
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	_, err = b.retryOf(b.ana(), ref, clusters.ChangeInput{OnFailure: "pray"})
	wantKind(t, err, loom.Invalid)
	if ref, err = b.retryOf(b.ana(), ref, clusters.ChangeInput{OnFailure: loom.OnFailureUndo}); err != nil {
		t.Fatal(err)
	}
	if op := b.latest(id); op.Ref != ref || op.OnFailure != loom.OnFailureUndo {
		t.Errorf("%+v", op)
	}
	m.run(fault(loom.ActionStart, "web"))
	b.ended(id, loom.OperationRolledBack, loom.ClusterActive)
	if after := b.records(id); after != before {
		t.Errorf("the records are\n%s\nwere\n%s", after, before)
	}
	// A delete is not undone, so its retry is not either.
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		t.Fatal(err)
	}
	m.run(fault(loom.ActionDelete, ""))
	_, err = b.retryOf(b.ana(), b.latest(id).Ref, clusters.ChangeInput{OnFailure: loom.OnFailureUndo})
	wantKind(t, err, loom.Invalid)
	if err := says(err, "onFailure", "What a delete took is gone"); err != nil {
		t.Error(err)
	}
}
