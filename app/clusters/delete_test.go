package clusters_test

import (
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
	ref, err := b.clusters.Configure(b.ctx, b.ana(), id, clusters.ConfigureInput{Config: map[string]any{}}, nil)
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

func TestOwnerIsHandedOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	b.db.MustExec(`INSERT INTO users (tenant_id, id, disabled) VALUES ('t1', 'ben', false), ('t1', 'idle', true), ('t2', 'eve', false)`)
	preview, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: id})
	if err != nil {
		t.Fatal(err)
	}
	owner := func(id string) clusters.EditInput { return clusters.EditInput{Owner: new(loom.UserID(id))} }
	_, err = b.clusters.Edit(b.ctx, b.ana(), id, owner("ben"))
	wantKind(t, err, loom.Forbidden)
	_, err = b.clusters.Edit(b.ctx, b.actor("ben", loom.RoleUser), id, owner("ben"))
	wantKind(t, err, loom.NotFound)
	for _, name := range []string{"idle", "eve", "nobody", "", "\x00"} {
		_, err := b.clusters.Edit(b.ctx, b.admin(), id, owner(name))
		if e := wantKind(t, err, loom.Invalid); e.Fields[0].Field != "ownerId" {
			t.Errorf("%q: %v", name, e.Fields)
		}
	}
	c, err := b.clusters.Edit(b.ctx, b.admin(), id, owner("ben"))
	if err != nil || c.Owner.User != "ben" {
		t.Fatalf("%v, %v", c.Owner, err)
	}
	_, err = b.clusters.Cluster(b.ctx, b.ana(), id)
	wantKind(t, err, loom.NotFound)
	// What the one before previewed is a view of it too.
	_, err = b.clusters.PreviewByID(b.ctx, b.ana(), preview.ID)
	wantKind(t, err, loom.NotFound)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(preview))
	wantKind(t, err, loom.NotFound)
	wantKind(t, b.clusters.Discard(b.ctx, b.ana(), preview.ID), loom.NotFound)
	if _, err := b.clusters.PreviewByID(b.ctx, b.actor("ana", loom.RoleAdmin), preview.ID); err != nil {
		t.Errorf("an administrator’s own preview: %v", err)
	}
	if _, err := b.clusters.Cluster(b.ctx, b.actor("ben", loom.RoleUser), id); err != nil {
		t.Error(err)
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'update' AND before->>'ownerId' = 'ana' AND after->>'ownerId' = 'ben'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
}
