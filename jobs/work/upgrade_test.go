package work_test

import (
	"compress/gzip"
	"context"
	"database/sql"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/secret"
	"loom/app/testkit"
	"loom/migrations"
)

// restore makes a database the one of a dump.
func (w *world) restore(file string) {
	w.t.Helper()
	f, err := os.Open(file)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	// loom_pairs of version 59 did not name the search path that its index needs.
	dump := strings.Replace(string(text), `set_config('search_path', '', false)`, `set_config('search_path', 'public', false)`, 1)
	db, err := sql.Open("postgres", w.db.DSN)
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close() // its sessions have the settings of the dump
	if _, err := db.Exec(dump); err != nil {
		w.t.Fatal(err)
	}
}

// TestUpgradeInTheMiddle: an installation of the engine before (version 59), whose processes were
// killed while they made clusters, is migrated, and its operations end as they would have.
//
// The dump was made by the program of commit 73528ad with the mock provider: a cluster that serves, and
// operations of others that ran, waited for a retry, were paused with and without running tasks, and
// were failing after an abort. The key was made for it.
func TestUpgradeInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.restore("testdata/version59.sql.gz")
	key, err := os.ReadFile("testdata/version59.key")
	if err != nil {
		t.Fatal(err)
	}
	if w.ring, err = secret.ParseKeys(strings.TrimSpace(string(key))); err != nil {
		t.Fatal(err)
	}
	const status = `SELECT o.status FROM operations o JOIN clusters c ON c.id = o.cluster_id WHERE c.name = $1`
	for cluster, want := range map[string]string{"serves": "complete", "runs": "running", "retries": "running", "paused": "paused", "pausing": "paused", "failing": "failing"} {
		if got := w.text(status, cluster); got != want {
			t.Fatalf("the operation of %s is %s in the dump, want %s", cluster, got, want)
		}
	}
	if w.count(`SELECT count(*) FROM tasks t JOIN operations o ON o.id = t.operation_id WHERE t.status = 'running' AND o.status IN ('running', 'paused', 'failing')`) < 3 {
		t.Fatal("too little runs in the dump")
	}
	// The engine before also began tasks without River, and had ready ones wait in lots of its own; both had
	// pending jobs. The dump happens to have neither, so one of each is made of what was delivered.
	for _, status := range []string{"running", "ready"} {
		if w.count(`WITH moved AS (UPDATE river_job r SET state = 'pending', attempt = 0, attempted_at = NULL, attempted_by = NULL
			WHERE r.id = (SELECT min(t.river_job_id) FROM operations o JOIN tasks t ON t.operation_id = o.id JOIN nodes n ON n.task_id = t.id JOIN river_job j ON j.id = t.river_job_id
				WHERE o.status = 'running' AND t.status = $1 AND j.state = 'running') RETURNING 1) SELECT count(*) FROM moved`, status) != 1 {
			t.Fatalf("nothing %s was delivered", status)
		}
	}
	if err := migrations.Up(context.Background(), w.db.DSN); err != nil {
		t.Fatal(err)
	}
	wrong, err := testkit.WrongRiverJobs(context.Background(), w.db, 10*365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range wrong { // what was delivered to processes that are gone is for the reaper, what is overdue for loom_due
		if !strings.Contains(sentence, "its River job is running") && !strings.Contains(sentence, "its River job is scheduled") {
			t.Error(sentence)
		}
	}
	w.scheduler()
	w.provisioner(newRunner(func(_ context.Context, spec *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		no := false
		switch {
		case spec.Service != nil && spec.Service.Name == "broken" && spec.Action == loom.ActionConfigure:
			return loom.TaskResult{Status: 1, Message: "broken", Retryable: &no}
		case spec.Action == loom.ActionCreate:
			return loom.TaskResult{Result: map[string]any{"providerid": "m"}}
		}
		return loom.TaskResult{}
	}), 20)
	common, db := w.common(4)
	t.Cleanup(func() { db.Close() })
	actor := loom.Actor{Tenant: loom.TenantID(w.text(`SELECT id FROM tenants WHERE name = 'demo'`)), TenantName: "demo", User: "admin", Role: loom.RoleAdmin}
	for _, name := range []string{"paused", "pausing"} {
		w.eventually(time.Minute, "nothing of "+name+" runs", func() bool {
			return w.count(`SELECT count(*) FROM running_tasks t JOIN clusters c ON c.id = t.cluster_id WHERE c.name = $1`, name) == 0
		})
		if got := w.text(status, name); got != "paused" {
			t.Errorf("the operation of %s is %s", name, got)
		}
		var ref loom.OperationRef
		if err := w.db.QueryRow(`SELECT o.cluster_id, o.number FROM operations o JOIN clusters c ON c.id = o.cluster_id WHERE c.name = $1`, name).Scan(&ref.Cluster, &ref.Number); err != nil {
			t.Fatal(err)
		}
		if _, err := common.Operations.Resume(context.Background(), actor, ref); err != nil {
			t.Fatal(err)
		}
	}
	const ends = "failing aborted, paused complete, pausing complete, retries failed, runs complete, serves complete"
	all := func() string {
		return w.text(`SELECT string_agg(c.name || ' ' || o.status, ', ' ORDER BY c.name) FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	}
	w.eventually(2*time.Minute, "all operations have ended", func() bool {
		return w.count(`SELECT count(*) FROM operations WHERE ended_at IS NULL`) == 0
	})
	if got := all(); got != ends {
		t.Errorf("the operations ended %s, want %s", got, ends)
	}
	if n := w.count(`SELECT count(*) FROM tasks t JOIN operations o ON o.id = t.operation_id WHERE NOT t.gate AND o.status = 'complete'
		AND (SELECT count(*) FROM attempts a WHERE a.task_id = t.id AND a.status = 'complete') <> 1`); n > 0 {
		t.Errorf("%d tasks did not complete exactly once", n)
	}
	wrong, err = testkit.WrongRiverJobs(context.Background(), w.db, 10*365*24*time.Hour)
	if err != nil || len(wrong) > 0 {
		t.Errorf("at the end: %v, %v", wrong, err)
	}
}
