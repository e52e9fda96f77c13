package clusters_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/loom"
	"loom/app/store"
)

// keys adds public keys to a user of the tenant and returns them with their fingerprints.
func (b *bundle) keys(user loom.UserID, n int) (lines, fingerprints []string) {
	b.t.Helper()
	for range n {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			b.t.Fatal(err)
		}
		key, err := ssh.NewPublicKey(public)
		if err != nil {
			b.t.Fatal(err)
		}
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
		lines, fingerprints = append(lines, line+" "+string(user)), append(fingerprints, ssh.FingerprintSHA256(key))
	}
	data, err := json.Marshal(lines)
	if err != nil {
		b.t.Fatal(err)
	}
	b.db.MustExec(`UPDATE users SET ssh_keys = (SELECT coalesce(array_agg(k), '{}') FROM jsonb_array_elements_text($3) k) WHERE tenant_id = $1 AND id = $2`, b.tenant, user, string(data))
	return lines, fingerprints
}

// given are the keys that the tasks of the newest operation are given.
func (b *bundle) given(id loom.ClusterID) (all []string) {
	b.t.Helper()
	var tasks []loom.TaskID
	if err := b.db.Select(&tasks, `SELECT t.id FROM tasks t JOIN operations o ON o.id = t.operation_id JOIN clusters c ON c.id = o.cluster_id
		WHERE c.id = $1 AND o.number = c.latest_operation AND NOT t.gate ORDER BY t.number LIMIT 1`, int64(id)); err != nil {
		b.t.Fatal(err)
	}
	facts, err := store.SpecFactsAllTenants(b.ctx, store.Prepare(b.db.DB), tasks...)
	if err != nil || len(facts) != 1 {
		b.t.Fatalf("%d facts, %v", len(facts), err)
	}
	for _, line := range facts[0].OwnerKeys {
		all = append(all, line[strings.LastIndexByte(line, ' ')+1:])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// recorded has all nodes of a cluster keep that keys are on them.
func (b *bundle) recorded(id loom.ClusterID, fingerprints ...string) {
	b.t.Helper()
	data, err := json.Marshal(append([]string{}, fingerprints...))
	if err != nil {
		b.t.Fatal(err)
	}
	b.db.MustExec(`UPDATE nodes SET results = results || jsonb_build_object('ssh_keys', $2::jsonb) WHERE cluster_id = $1`, int64(id), string(data))
}

// Who asks for keys gets them on machines that are there and on those that come, as long
// as he may see the cluster; the owner always does.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(b.ana(), 2).Cluster
	b.runTasks("")
	_, err := b.authorize(b.ana(), id, nil)
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "no SSH keys") {
		t.Error(e.Message)
	}
	b.keys("ana", 1)
	_, err = b.authorize(b.actor("bob", loom.RoleUser), id, nil)
	wantKind(t, err, loom.NotFound)
	reader := b.ana()
	reader.Scopes = []loom.Scope{loom.ScopeRead}
	_, err = b.authorize(reader, id, nil)
	wantKind(t, err, loom.Forbidden)

	b.keys("admin", 2)
	preview, err := b.clusters.Preview(b.ctx, b.admin(), clusters.PreviewInput{Kind: loom.ChangeAuthorize, Cluster: id})
	if err != nil || preview.Summary() != "Puts your SSH keys on 2 nodes, runs 2 tasks in 1 stage. Changes nothing else." || len(preview.Changes) != 2 || len(preview.Warnings) != 0 {
		t.Fatalf("%q %+v %v %v", preview.Summary(), preview.Changes, preview.Warnings, err)
	}
	ref, err := b.clusters.Apply(b.ctx, b.admin(), clusters.ApplyInput{ID: preview.ID, Hash: preview.Hash})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.authorize(b.ana(), id, nil); loom.AsError(err).Kind != loom.Conflict {
		t.Errorf("while another operation runs: %v", err)
	}
	b.db.MustExec(`UPDATE operations SET started_at = coalesce(started_at, now()) WHERE cluster_id = $1 AND number = $2`, int64(id), ref.Number)
	if got := b.given(id); !slices.Equal(got, []string{"admin", "ana"}) {
		t.Errorf("KEYS is given those of %v", got)
	}
	b.runTasks("")
	if v := b.cluster(id); v.Status != loom.ClusterActive || v.Latest.Action != loom.ClusterAuthorize || v.Latest.Status != loom.OperationComplete {
		t.Errorf("%s, %s is %s", v.Status, v.Latest.Action, v.Latest.Status)
	}
	if n := b.count(`SELECT count(*) FROM tasks WHERE action = 'keys' AND status = 'complete' AND service = ''`); n != 2 {
		t.Errorf("%d KEYS tasks", n)
	}
	// Machines that come later get them as well, for as long as he may see the cluster.
	b.starts(clusters.PreviewInput{Kind: loom.ChangeExpand, Cluster: id, Change: clusters.ChangeInput{Machines: 3}})
	for _, c := range []struct {
		change, back string
		want         []string
	}{
		{``, ``, []string{"admin", "ana"}},
		{`UPDATE users SET disabled = true WHERE tenant_id = 't1' AND id = 'admin'`, `UPDATE users SET disabled = false WHERE id = 'admin'`, []string{"ana"}},
		{`UPDATE users SET role = 'user' WHERE tenant_id = 't1' AND id = 'admin'`, `UPDATE users SET role = 'admin' WHERE id = 'admin'`, []string{"ana"}},
		{`UPDATE users SET ssh_keys = '{}' WHERE tenant_id = 't1' AND id = 'ana'`, ``, []string{"admin"}},
		// Somebody else got the id of a user who was deleted.
		{`UPDATE users SET created_at = now() + interval '1 hour' WHERE tenant_id = 't1' AND id = 'admin'`, ``, nil},
	} {
		if c.change != "" {
			b.db.MustExec(c.change)
		}
		if got := b.given(id); !slices.Equal(got, c.want) {
			t.Errorf("after %q CONFIRM is given the keys of %v, want %v", c.change, got, c.want)
		}
		if c.back != "" {
			b.db.MustExec(c.back)
		}
	}
}

// One machine that does not answer keeps nobody off the others, and nothing is made of it.
func TestAuthorizeThatFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(b.ana(), 3).Cluster
	b.runTasks("")
	b.keys("ana", 1)
	ref, err := b.authorize(b.ana(), id, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.runTasksBut(func(action loom.TaskAction, node int) bool { return action == loom.ActionKeys && node == 1001 }, false)
	v := b.cluster(id)
	if v.Status != loom.ClusterActive || v.Latest.Status != loom.OperationFailed || v.Allowed[loom.ChangeAuthorize] != "" || !strings.Contains(v.Allowed[loom.ChangeRetry], "add them again") {
		t.Fatalf("%s, operation %s: %v", v.Status, v.Latest.Status, v.Allowed)
	}
	for _, n := range v.Nodes {
		if n.State != loom.NodeReady {
			t.Errorf("node %d is %s", n.Number, n.State)
		}
	}
	if done := b.count(`SELECT count(*) FROM tasks t JOIN operations o ON o.id = t.operation_id WHERE o.number = $1 AND t.status = 'complete' AND NOT t.gate`, ref.Number); done != 2 {
		t.Errorf("%d machines got the keys, want 2", done)
	}
	if n := b.count(`SELECT count(*) FROM tasks WHERE action = 'delete'`); n != 0 {
		t.Errorf("%d machines are deleted", n)
	}
	// What comes then is not taken for going on with it.
	if err := b.retry(id, ref.Number); loom.AsError(err).Kind != loom.Conflict {
		t.Errorf("a retry: %v", err)
	}
	b.runs(loom.ChangeRestart, id, "web")
	b.runTasks("")
	if err := b.rollback(id, ref.Number); loom.AsError(err).Kind != loom.Conflict {
		t.Errorf("there is nothing to roll back: %v", err)
	}
	if _, err := b.authorize(b.ana(), id, nil); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if v := b.cluster(id); v.Status != loom.ClusterActive || v.Latest.Status != loom.OperationComplete {
		t.Errorf("%s, operation %s", v.Status, v.Latest.Status)
	}
}

// A process that dies between the machine and the record leaves a task that is done again.
func TestKeysSurviveAKill(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(b.ana(), 2).Cluster
	b.runTasks("")
	_, mine := b.keys("ana", 1)
	if _, err := b.authorize(b.ana(), id, nil); err != nil {
		t.Fatal(err)
	}
	ops := execution.New(b.db.DB, b.ring, execution.Options{})
	for try := 1; try <= 3; try++ {
		var due []struct {
			Task    loom.TaskID `db:"task_id"`
			Attempt int         `db:"attempt"`
		}
		if err := b.db.Select(&due, `UPDATE river_job r SET state = 'running', attempt = r.attempt + 1, attempted_at = now(), attempted_by = array_append(r.attempted_by, 'p1')
			FROM tasks t WHERE r.id = t.river_job_id AND r.state = 'available' RETURNING t.id AS task_id, r.attempt`); err != nil {
			t.Fatal(err)
		}
		for _, d := range due {
			key := execution.AttemptKey{Task: d.Task, Attempt: d.Attempt}
			if begun, _, err := ops.StartTasks(b.ctx, "p1", []execution.AttemptKey{key}); err != nil || len(begun) != 1 {
				t.Fatal(begun, err)
			}
			if try < 3 {
				_, err := ops.FailTask(b.ctx, key, loom.TaskResult{Status: -1, Interrupted: true, Message: "interrupted"})
				if err != nil {
					t.Fatal(err)
				}
				continue
			}
			result := loom.TaskResult{Result: map[string]any{loom.KeysFact: mine}}
			if _, err := ops.CompleteTasks(b.ctx, []execution.Finished{{Key: key, Result: result}}); err != nil {
				t.Fatal(err)
			}
		}
		if ways := fmt.Sprint(b.accessOf(b.ana(), id)); (ways == "[own own]") != (try == 3) {
			t.Errorf("try %d: ways %s", try, ways)
		}
	}
	b.endOperations()
	if v := b.cluster(id); v.Status != loom.ClusterActive || v.Latest.Status != loom.OperationComplete {
		t.Errorf("%s, operation %s", v.Status, v.Latest.Status)
	}
}
