package clusters_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/loom"
)

// endOperations works the River jobs that end operations, as a scheduler does.
func (b *bundle) endOperations() {
	b.t.Helper()
	ops := execution.New(b.db.DB, b.ring, execution.Options{})
	var ids []int64
	if err := b.db.Select(&ids, `UPDATE river_job SET state = 'completed', finalized_at = now()
		WHERE kind = 'end_operation' AND state = 'available' RETURNING (args->>'operation_id')::bigint`); err != nil {
		b.t.Fatal(err)
	}
	for _, id := range ids {
		if err := ops.EndOperation(b.ctx, loom.OperationID(id)); err != nil {
			b.t.Fatal(err)
		}
	}
}

// A running operation is aborted; the delete waits for its end in the database,
// so that it survives whoever asked for it.
func TestDeleteAbortsFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	ref, err := b.configure(b.ana(), id, clusters.ConfigureInput{Config: map[string]any{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.db.MustExec(`UPDATE tasks SET status = 'running' WHERE cluster_id = $1 AND number = 1 AND operation_id = (SELECT max(id) FROM operations)`, int64(id))
	_, err = b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{})
	wantKind(t, err, loom.Conflict)
	_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: id, Abort: true})
	wantKind(t, err, loom.Conflict)
	got, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{Abort: true, ProviderFields: map[string]any{"zone": "a"}})
	if err != nil || got != ref {
		t.Fatalf("%s, %v", got, err)
	}
	c := b.cluster(id)
	if c.Latest.Status != loom.OperationFailing || !c.Latest.Aborted || !strings.Contains(c.Latest.Message, "ana") || c.DeleteWanted != "ana" || c.Provider.Fields["zone"] != "a" {
		t.Fatalf("%+v", c.Latest)
	}
	// As long as a task runs, nothing is deleted, whoever looks.
	b.endOperations()
	if err := b.clusters.Expire(b.ctx); err != nil {
		t.Fatal(err)
	}
	if c := b.cluster(id); c.Latest.Ref != ref || c.Status != loom.ClusterPending {
		t.Fatalf("%s began while %s ran", c.Latest.Ref, ref)
	}
	b.db.MustExec(`UPDATE tasks SET status = 'dropped' WHERE cluster_id = $1 AND status = 'running'`, int64(id))
	b.db.MustExec(`INSERT INTO river_job (state, queue, kind, args, max_attempts) SELECT 'available', 'control', 'end_operation', jsonb_build_object('operation_id', max(id)), 25 FROM operations`)
	b.endOperations()
	if c := b.cluster(id); c.Status != loom.ClusterInconsistent || c.Allowed[loom.ChangeConfigure] == "" || c.Allowed[loom.ChangeDelete] != "" {
		t.Fatalf("%s, %v", c.Status, c.Allowed)
	}
	// The end of the operation wakes the duty that deletes.
	if n := b.count(`SELECT count(*) FROM river_job WHERE kind = 'expire_clusters' AND state = 'available'`); n != 1 {
		t.Errorf("%d wake-ups", n)
	}
	for range 2 {
		if err := b.clusters.Expire(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	c = b.cluster(id)
	if c.Latest.Action != loom.ClusterDelete || c.Latest.RequestedBy != "ana" || c.Latest.Ref.Number != ref.Number+1 || c.DeleteWanted != "" {
		t.Errorf("%+v, wanted by %q", c.Latest, c.DeleteWanted)
	}
}

func TestDeleteWithAbortRefusedOrNotNeeded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// Protected: nothing is aborted.
	id := b.create(b.ana(), 2).Cluster
	b.db.MustExec(`UPDATE clusters SET protected = true WHERE id = $1`, int64(id))
	_, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{Abort: true})
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "protected") {
		t.Errorf("message %q", e.Message)
	}
	if c := b.cluster(id); c.Latest.Status != loom.OperationRunning {
		t.Errorf("operation %s", c.Latest.Status)
	}
	// Protection that comes later takes the wish back.
	b.db.MustExec(`UPDATE clusters SET protected = false WHERE id = $1`, int64(id))
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{Abort: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.clusters.Edit(b.ctx, b.ana(), id, clusters.EditInput{Protected: new(true)}); err != nil {
		t.Fatal(err)
	}
	if c := b.cluster(id); c.DeleteWanted != "" || !c.Protected {
		t.Errorf("still wanted by %q", c.DeleteWanted)
	}
	// Nothing was made: aborting ends it, and there is nothing left to delete.
	id = b.create(b.ana(), 2).Cluster
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{Abort: true}); err != nil {
		t.Fatal(err)
	}
	b.endOperations()
	if err := b.clusters.Expire(b.ctx); err != nil {
		t.Fatal(err)
	}
	if c := b.cluster(id); c.Status != loom.ClusterTerminated || c.Latest.Ref.Number != 1 || c.DeleteWanted != "" {
		t.Errorf("%s after operation %s", c.Status, c.Latest.Ref)
	}
	// Nothing runs: an ordinary delete. A stranger sees nothing of it.
	id = b.active(2)
	_, err = b.clusters.Delete(b.ctx, b.actor("ben", loom.RoleUser), id, clusters.DeleteInput{Abort: true})
	wantKind(t, err, loom.NotFound)
	ref, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{Abort: true})
	if err != nil || ref.Number != 2 {
		t.Errorf("%s, %v", ref, err)
	}
}

// leave makes a cluster whose delete left machines behind.
func (b *bundle) leave() loom.ClusterID {
	b.t.Helper()
	id := b.create(b.ana(), 2).Cluster
	b.runTasks("")
	b.db.MustExec(`UPDATE nodes SET state = 'ready', results = jsonb_build_object('providerid', 'm' || number) WHERE cluster_id = $1`, int64(id))
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		b.t.Fatal(err)
	}
	b.runTasks(loom.ActionDelete)
	return id
}

func TestAbandon(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.leave()
	v := b.cluster(id)
	if v.Status != loom.ClusterIncomplete || len(v.Leftovers) != 2 || v.Leftovers[0].Machine != "m1000" || v.Leftovers[0].Provider != "lab" || v.Leftovers[0].Error != "no" || v.Allowed[loom.ChangeDelete] != "" {
		t.Fatalf("%s with %+v", v.Status, v.Leftovers)
	}
	// Administrators alone see them and may give them up.
	own, err := b.clusters.Cluster(b.ctx, b.ana(), id)
	if err != nil || len(own.Leftovers) != 0 {
		t.Errorf("the owner sees %+v, %v", own.Leftovers, err)
	}
	give := clusters.DeleteInput{Abandon: true}
	_, err = b.clusters.Delete(b.ctx, b.ana(), id, give)
	wantKind(t, err, loom.Forbidden)
	_, err = b.clusters.Delete(b.ctx, b.actor("ben", loom.RoleUser), id, give)
	wantKind(t, err, loom.NotFound)
	b.db.MustExec(`UPDATE clusters SET protected = true WHERE id = $1`, int64(id))
	_, err = b.clusters.Delete(b.ctx, b.admin(), id, give)
	wantKind(t, err, loom.Conflict)
	b.db.MustExec(`UPDATE clusters SET protected = false WHERE id = $1`, int64(id))
	if ref, err := b.clusters.Delete(b.ctx, b.admin(), id, give); err != nil || ref.Number != 0 {
		t.Fatalf("%s, %v", ref, err)
	}
	if v := b.cluster(id); v.Status != loom.ClusterTerminated || len(v.Leftovers) != 0 {
		t.Errorf("%s with %+v", v.Status, v.Leftovers)
	}
	if n := b.count(`SELECT count(*) FROM leftovers WHERE ending = 'abandoned'`); n != 2 {
		t.Errorf("%d leftovers were given up", n)
	}
	if n := b.count(`SELECT count(*) FROM secrets WHERE entity LIKE 'cluster:%'`); n != 0 {
		t.Errorf("%d secrets are kept", n)
	}
	var after []byte
	if err := b.db.Get(&after, `SELECT after FROM audit WHERE actor = 'admin' AND verb = 'delete' AND kind = 'cluster' AND object = $1`, id.String()); err != nil {
		t.Fatal(err)
	}
	var entry struct {
		Status    string
		Abandoned []struct{ Provider, MachineID, LastError string }
	}
	if err := json.Unmarshal(after, &entry); err != nil || entry.Status != "terminated" || len(entry.Abandoned) != 2 || entry.Abandoned[1].MachineID != "m1001" || entry.Abandoned[1].LastError != "no" {
		t.Errorf("audit: %s", after)
	}
	// Once more is no error; what has nothing left behind cannot be given up.
	if _, err := b.clusters.Delete(b.ctx, b.admin(), id, give); err != nil {
		t.Error(err)
	}
	_, err = b.clusters.Delete(b.ctx, b.admin(), b.active(2), give)
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "without “abandon” first") {
		t.Errorf("message %q", e.Message)
	}
	_, err = b.clusters.Delete(b.ctx, b.admin(), b.create(b.ana(), 2).Cluster, give)
	wantKind(t, err, loom.Conflict)
}

// A delete that left something can be begun again, and then ends.
func TestDeleteOfADeletedCluster(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.leave()
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if v := b.cluster(id); v.Status != loom.ClusterTerminated || b.count(`SELECT count(*) FROM leftovers WHERE ended_at IS NULL`) != 0 {
		t.Errorf("%s", v.Status)
	}
}

// TestAbandonIn: superadmins alone give up leftovers of any tenant, and the tenant's
// audit says who it was.
func TestAbandonIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.leave()
	super := loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "root", Role: loom.RoleSuperadmin, Via: "session"}
	tenant := loom.Tenant{ID: b.admin().Tenant, Name: b.admin().TenantName}
	wantKind(t, b.clusters.AbandonIn(b.ctx, b.admin(), tenant, id), loom.Forbidden)
	wantKind(t, b.clusters.AbandonIn(b.ctx, super, loom.Tenant{ID: loom.SuperTenant, Name: "superadmin"}, id), loom.NotFound)
	if err := b.clusters.AbandonIn(b.ctx, super, tenant, id); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM leftovers WHERE ending = 'abandoned'`); n != 2 {
		t.Errorf("%d leftovers were given up, want 2", n)
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'delete' AND kind = 'cluster' AND actor = 'admin' AND via = 'session by superadmin/root'`); n != 1 {
		t.Errorf("%d audit entries name the superadmin, want 1", n)
	}
}

// Twenty at once: one operation begins, the others hear that it runs.
func TestDeleteBeginsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	wins := 0
	for _, err := range together(20, func(int) error {
		_, err := b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{})
		return err
	}) {
		if err == nil {
			wins++
		} else if !errors.Is(err, loom.Conflict) {
			t.Error(err)
		}
	}
	if wins != 1 || b.count(`SELECT count(*) FROM operations WHERE cluster_id = $1`, int64(ref.Cluster)) != 2 {
		t.Errorf("%d deletes began", wins)
	}
}

func TestDeleteByState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		status loom.ClusterStatus
		ok     bool
	}{
		{loom.ClusterPending, false}, {loom.ClusterActive, true}, {loom.ClusterIncomplete, true},
		{loom.ClusterInconsistent, true}, {loom.ClusterTerminated, true},
	} {
		ref := b.create(b.ana(), 2)
		if c.status != loom.ClusterPending {
			b.finish(ref.Cluster, c.status)
		}
		deleted, err := b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{ProviderFields: map[string]any{"token": "t", "zone": "b"}})
		if !c.ok {
			wantKind(t, err, loom.Conflict)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.status, err)
		}
		if c.status == loom.ClusterTerminated {
			if deleted != (loom.OperationRef{}) {
				t.Errorf("a terminated cluster was deleted by %v", deleted)
			}
			continue
		}
		if deleted.Number != 2 {
			t.Errorf("%s: operation %v", c.status, deleted)
		}
		v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
		if err != nil || v.Status != loom.ClusterPending || v.Latest.Action != loom.ClusterDelete || v.Provider.Fields["zone"] != "b" {
			t.Errorf("%s: %s %+v %v", c.status, v.Status, v.Latest, err)
		}
		// The key pair stays beside what the request brought.
		if n := b.count(`SELECT count(*) FROM secrets WHERE entity = $1`, "cluster:"+ref.Cluster.String()); n != 3 {
			t.Errorf("%d secrets", n)
		}
	}
	// Protected.
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	on := true
	if _, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Protected: &on}); err != nil {
		t.Fatal(err)
	}
	_, err := b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{})
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "protected") {
		t.Error(e.Message)
	}
	// A delete that failed leaves some nodes; those that are gone are not deleted again.
	off := false
	if _, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Protected: &off}); err != nil {
		t.Fatal(err)
	}
	b.db.MustExec(`UPDATE nodes SET state = 'deleted' WHERE cluster_id = $1 AND number = 1000`, int64(ref.Cluster))
	op, err := b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := b.clusters.Tasks(b.ctx, b.ana(), op, clusters.TaskFilter{})
	if err != nil || len(tasks) != 1 || tasks[0].NodeNumber != 1001 {
		t.Errorf("%+v, %v", tasks, err)
	}
	// With no machine left the plan is empty, and its end is due at once.
	b.finish(ref.Cluster, loom.ClusterIncomplete)
	b.db.MustExec(`UPDATE nodes SET state = 'deleted' WHERE cluster_id = $1`, int64(ref.Cluster))
	op, err = b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{})
	if err != nil || b.count(`SELECT count(*) FROM river_job WHERE kind = 'end_operation'`) != 1 {
		t.Errorf("%v, %v", op, err)
	}
}
