package clusters_test

import (
	"strings"
	"testing"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
)

// lease moves the end of a cluster's lease to some time from now, as the database
// means it.
func (b *bundle) lease(id loom.ClusterID, from string) {
	b.t.Helper()
	b.db.MustExec(`UPDATE clusters SET expires_at = date_trunc('second', now()) + $2::interval WHERE id = $1`, int64(id), from)
}

func (b *bundle) expire() {
	b.t.Helper()
	if err := b.clusters.Expire(b.ctx); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) grace(hours string) {
	b.t.Helper()
	b.db.MustExec(`UPDATE tenants SET settings = '{"leaseGraceHours": ` + hours + `}' WHERE id = 't1'`)
}

func (b *bundle) events(id loom.ClusterID) int {
	return b.count(`SELECT count(*) FROM events WHERE topic = $1`, "cluster:"+id.String())
}

func TestLeaseReminders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	b.lease(id, "30 hours")
	before := b.events(id)
	b.expire()
	if b.events(id) != before || b.cluster(id).LeaseNote != "" {
		t.Errorf("told of %q too early", b.cluster(id).LeaseNote)
	}
	for i, from := range []string{"23 hours", "22 hours", "50 minutes"} {
		b.lease(id, from)
		b.expire()
		b.expire() // told once
		// Moving the lease begins anew.
		if got := b.events(id) - before; got != i+1 {
			t.Errorf("%s before the end: %d events", from, got)
		}
	}
	b.lease(id, "10 minutes")
	v := b.cluster(id)
	if !strings.Contains(v.LeaseNote, "the cluster is then deleted") || v.Status != loom.ClusterActive {
		t.Errorf("%s: %q", v.Status, v.LeaseNote)
	}
	list, err := b.clusters.Clusters(b.ctx, b.ana(), clusters.ListInput{})
	if err != nil || len(list.Items) != 1 || !loom.LeaseSoon(list.Items[0].Created, list.Items[0].Expires, time.Now()) {
		t.Errorf("the list says %+v, %v", list.Items, err)
	}
	// Other reminders, of another tenant's settings.
	b.db.MustExec(`UPDATE tenants SET settings = '{"leaseReminderHours": [72]}' WHERE id = 't1'`)
	b.lease(id, "60 hours")
	b.expire()
	if got := b.events(id) - before; got != 4 {
		t.Errorf("%d events with other settings", got)
	}
}

func TestLeaseEndsInTwoSteps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withStops()
	b.grace("6")
	id := b.create(b.ana(), 2).Cluster
	b.runTasks("")
	b.lease(id, "-1 minute")
	b.expire()
	v := b.cluster(id)
	if v.Latest.Action != loom.StopServices || v.Latest.RequestedBy != "system" {
		t.Fatalf("%s by %s", v.Latest.Action, v.Latest.RequestedBy)
	}
	b.runTasks("")
	for range 2 {
		b.expire()
	}
	v = b.cluster(id)
	if v.Status != loom.ClusterActive || v.Latest.Ref.Number != 2 || !strings.Contains(v.LeaseNote, "services were stopped. The machines are deleted") {
		t.Errorf("%s after operation %d: %q", v.Status, v.Latest.Ref.Number, v.LeaseNote)
	}
	list, err := b.clusters.Clusters(b.ctx, b.ana(), clusters.ListInput{})
	if err != nil || list.Items[0].DeletedAt.IsZero() {
		t.Errorf("the list says %+v, %v", list.Items, err)
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE actor = 'system' AND verb = 'update' AND kind = 'cluster' AND after->>'action' = 'stop_services'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	// An extension keeps the cluster; its services stay stopped until you start them.
	if _, err := b.clusters.ChangeExpiry(b.ctx, b.ana(), id, time.Now().Add(90*24*time.Hour).Truncate(time.Second)); err != nil {
		t.Fatal(err)
	}
	b.expire()
	v = b.cluster(id)
	if v.Latest.Ref.Number != 2 || !strings.Contains(v.LeaseNote, "until you start them") || !anyState(v, loom.ServiceStopped) {
		t.Errorf("after the extension: operation %d, %q", v.Latest.Ref.Number, v.LeaseNote)
	}
	if _, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: loom.ChangeStart}); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if v = b.cluster(id); v.LeaseNote != "" || anyState(v, loom.ServiceStopped) {
		t.Errorf("after the start: %q", v.LeaseNote)
	}
	// The next end stops them again, and the end of the grace deletes.
	b.lease(id, "-2 minutes")
	b.expire()
	b.runTasks("")
	b.lease(id, "-7 hours")
	b.expire()
	if v = b.cluster(id); v.Latest.Action != loom.ClusterDelete || v.Latest.Ref.Number != 5 {
		t.Errorf("operation %d is %s", v.Latest.Ref.Number, v.Latest.Action)
	}
}

func anyState(v clusters.ClusterView, state loom.ServiceState) bool {
	for _, n := range v.Nodes {
		for _, s := range n.ServiceStates {
			if s == state {
				return true
			}
		}
	}
	return false
}

// A hook that says no is asked again after an hour, not every minute.
func TestLeaseEndThatAHookRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	b.db.MustExec(`INSERT INTO hooks (tenant_id, name, url, events, blocking, actions) VALUES ('t1', 'no', 'https://hooks.example/', '{start}', true, '{cluster_delete}')`)
	b.lease(id, "-1 minute")
	refuse := func() {
		t.Helper()
		b.db.MustExec(`UPDATE hook_deliveries SET status = 'refused', ended_at = now() WHERE status = 'waiting'`)
		b.db.MustExec(`UPDATE operations SET status = 'failing', message = 'The hook “no” refused: not on Sundays' WHERE status = 'not_submitted'`)
		b.db.MustExec(`INSERT INTO river_job (state, queue, kind, args, max_attempts) SELECT 'available', 'control', 'end_operation', jsonb_build_object('operation_id', max(id)), 25 FROM operations`)
		b.endOperations()
	}
	b.expire()
	if v := b.cluster(id); v.Latest.Status != loom.OperationNotSubmitted || v.Latest.Waiting != "A hook has not agreed yet." {
		t.Fatalf("the operation is %s: %q", v.Latest.Status, v.Latest.Waiting)
	}
	refuse()
	for range 3 {
		b.expire()
	}
	v := b.cluster(id)
	if v.Status != loom.ClusterActive || v.Latest.Ref.Number != 2 || !strings.Contains(v.LeaseNote, "That is tried again on") {
		t.Errorf("%s after operation %d: %q", v.Status, v.Latest.Ref.Number, v.LeaseNote)
	}
	b.db.MustExec(`UPDATE lease_ends SET next_at = now() - interval '1 second'`)
	b.expire()
	if v := b.cluster(id); v.Latest.Ref.Number != 3 || v.Latest.Action != loom.ClusterDelete {
		t.Errorf("an hour later: operation %d", v.Latest.Ref.Number)
	}
	// Another end of the lease is looked at at once.
	refuse()
	b.lease(id, "-2 minutes")
	b.expire()
	if v := b.cluster(id); v.Latest.Ref.Number != 4 {
		t.Errorf("another end: operation %d", v.Latest.Ref.Number)
	}
}

func TestLeaseEndThatCannotBegin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, kept := b.active(2), b.active(2)
	b.db.MustExec(`WITH x AS (INSERT INTO catalog_versions (tenant_id, kind, name, version, body)
		SELECT tenant_id, 'providers', 'x', 1, '{"name": "x", "providertype": "gone"}' FROM clusters WHERE id = $1)
		UPDATE clusters SET provider_name = 'x' WHERE id = $1`, int64(id))
	b.lease(id, "-1 minute")
	b.db.MustExec(`UPDATE clusters SET protected = true WHERE id = $1`, int64(kept))
	b.lease(kept, "-1 minute")
	before := b.events(kept)
	b.expire()
	b.expire()
	if v := b.cluster(id); v.Latest.Ref.Number != 1 || !strings.Contains(v.LeaseNote, "could not begin (") || !strings.Contains(v.LeaseNote, "gone") {
		t.Errorf("operation %d: %q", v.Latest.Ref.Number, v.LeaseNote)
	}
	// Protection only warns.
	if v := b.cluster(kept); v.Latest.Ref.Number != 1 || !strings.Contains(v.LeaseNote, "because it is protected") || b.events(kept) != before+1 {
		t.Errorf("operation %d: %q, %d events", v.Latest.Ref.Number, v.LeaseNote, b.events(kept)-before)
	}
	// What a delete left behind is not deleted again every hour: the sweep tries it.
	b.db.MustExec(`INSERT INTO leftovers (tenant_id, cluster_id, node_id, incarnation, provider_name) SELECT tenant_id, cluster_id, id, 1, 'lab' FROM nodes WHERE cluster_id = $1 LIMIT 1`, int64(kept))
	b.db.MustExec(`UPDATE clusters SET protected = false, status = 'incomplete', revision = revision + 1 WHERE id = $1`, int64(kept))
	b.expire()
	if v := b.cluster(kept); v.Latest.Ref.Number != 1 || !strings.Contains(v.LeaseNote, "every hour") {
		t.Errorf("operation %d: %q", v.Latest.Ref.Number, v.LeaseNote)
	}
}

func TestExpireDeletesAfterTheLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	type kind struct {
		name    string
		status  loom.ClusterStatus
		change  string
		deleted bool
	}
	kinds := []kind{
		{"active", loom.ClusterActive, `expires_at = now() - interval '1 s'`, true},
		{"incomplete", loom.ClusterIncomplete, `expires_at = now() - interval '1 s'`, true},
		{"inconsistent", loom.ClusterInconsistent, `expires_at = now() - interval '1 s'`, true},
		{"terminated", loom.ClusterTerminated, `expires_at = now() - interval '1 s'`, false},
		{"pending", loom.ClusterPending, `expires_at = now() - interval '1 s'`, false},
		{"protected", loom.ClusterActive, `expires_at = now() - interval '1 s', protected = true`, false},
		{"not yet", loom.ClusterActive, `expires_at = now() + interval '1 h'`, false},
		{"never", loom.ClusterActive, `expires_at = NULL`, false},
		{"provider gone", loom.ClusterActive, `expires_at = now() - interval '1 s', provider_name = 'x'`, false},
	}
	made := make([]loom.ClusterID, len(kinds))
	for i, k := range kinds {
		made[i] = b.create(b.ana(), 2).Cluster
		if k.status != loom.ClusterPending {
			b.finish(made[i], k.status)
		}
		b.db.MustExec(`UPDATE clusters SET `+k.change+` WHERE id = $1`, int64(made[i]))
	}
	for range 2 { // the second call finds nothing more to do
		if err := b.clusters.Expire(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i, k := range kinds {
		n := b.count(`SELECT count(*) FROM operations WHERE cluster_id = $1 AND action = 'cluster_delete' AND requested_by = 'system'`, int64(made[i]))
		if (n == 1) != k.deleted || n > 1 {
			t.Errorf("%s: %d deletes", k.name, n)
		}
	}
}

// TestNoOperationOutlivesALease: at the end of a lease an operation that is paused, or that
// began after the end, is aborted and the cluster is to be deleted; one that began before the
// end and runs is waited for, and so is the delete itself.
func TestNoOperationOutlivesALease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		what, operation string
		aborted         bool
	}{
		{"paused", `status = 'paused', created_at = now() - interval '1 h'`, true},
		{"begun after the end", `created_at = now()`, true},
		{"begun before the end", `created_at = now() - interval '1 h'`, false},
		{"the delete, begun after the end", `created_at = now(), action = 'cluster_delete'`, false},
	} {
		id := b.create(b.ana(), 2).Cluster
		b.db.MustExec(`UPDATE clusters SET created_at = now() - interval '2 h', expires_at = now() - interval '10 min' WHERE id = $1`, int64(id))
		b.db.MustExec(`UPDATE operations SET `+c.operation+` WHERE cluster_id = $1`, int64(id))
		b.expire()
		v := b.cluster(id)
		if got := v.Latest.Status == loom.OperationFailing || v.Latest.Status == loom.OperationAborted; got != c.aborted {
			t.Errorf("%s: the operation is %s", c.what, v.Latest.Status)
		}
		if got := v.DeleteWanted != ""; got != c.aborted {
			t.Errorf("%s: deleted afterwards: %v", c.what, got)
		}
	}
}

func TestLeaseOfACreate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := request(2)
	in.LeaseMillis = 90_000
	ref, err := b.clusters.Create(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || v.Expires.Sub(v.Created) != 90*time.Second {
		t.Errorf("created %v, expires %v, %v", v.Created, v.Expires, err)
	}
}
