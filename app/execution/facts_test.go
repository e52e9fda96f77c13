package execution_test

import (
	"slices"
	"testing"

	"loom/app/loom"
)

// TestSecretResultsAreSealed: what a provider gives in secret is in no row in
// clear, reaches later tasks of the node whole, and goes when it is replaced.
func TestSecretResultsAreSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm, loom.ActionInstall)
	key := w.deliver(1)
	if err := w.ops.StoreFact(ctx, key, map[string]any{"providerid": "m1", "ssh-auth": map[string]any{"user": "root", "password": "first-pa55"}}); err != nil {
		t.Fatal(err)
	}
	w.nowhere("first-pa55")
	w.expect("1", `SELECT count(*)::text FROM secrets WHERE entity = 'node:' || $1::text AND field = 'ssh-auth'`, w.nodes[0])
	if !w.complete(key, loom.TaskResult{Result: map[string]any{"providerid": "m1", "ssh-auth": map[string]any{"user": "root", "password": "second-pa55"}, "db": map[string]any{"port": 1, "token": "third-pa55"}}}) {
		t.Fatal("the result was refused")
	}
	for _, secret := range []string{"first-pa55", "second-pa55", "third-pa55"} {
		w.nowhere(secret)
	}
	const open = `{"db": {"port": 1}, "ssh-auth": {"user": "root"}, "providerid": "m1"}`
	w.expect(open, `SELECT results::text FROM nodes WHERE id = $1`, w.nodes[0])
	w.expect(open, `SELECT facts::text FROM attempts WHERE task_id = $1 AND number = $2`, key.Task, key.Attempt)
	key = w.deliver(2)
	s, err := w.ops.Spec(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	auth, _ := s.Results["ssh-auth"].(map[string]any)
	db, _ := s.Results["db"].(map[string]any)
	if auth["password"] != "second-pa55" || auth["user"] != "root" || db["token"] != "third-pa55" || s.Provider.Fields["ssh-auth"] != nil {
		t.Errorf("results %v, fields %v", s.Results, s.Provider.Fields)
	}
	for _, secret := range []string{"second-pa55", "third-pa55"} {
		if !slices.Contains(s.Sensitive, secret) {
			t.Errorf("%s is not known to be sensitive", secret)
		}
	}
	// The other node has none of it.
	other, err := w.ops.Spec(ctx, w.deliver(4))
	if err != nil || len(other.Results) != 0 {
		t.Errorf("results of the other node: %v, %v", other.Results, err)
	}
	// A failure tells too; a result without the secret takes it away, others stay.
	ok, err := w.ops.FailTask(ctx, key, loom.TaskResult{Status: 1, Message: "no", Result: map[string]any{"ssh-auth": map[string]any{"user": "ops\x00"}, "api_key": "fourth-pa55"}})
	if !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	w.nowhere("fourth-pa55")
	w.expect(`{"ssh-auth": {"user": "ops"}}`, `SELECT facts::text FROM attempts WHERE task_id = $1 AND number = $2`, key.Task, key.Attempt)
	w.expect("api_key,db", `SELECT string_agg(field, ',' ORDER BY field) FROM secrets WHERE entity = 'node:' || $1::text`, w.nodes[0])
}

func TestSecretsOfADeletedClusterAreWiped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	op := w.plan(loom.ClusterDelete, loom.ActionDelete)
	key := w.deliver(1)
	if err := w.ops.StoreFact(ctx, key, map[string]any{"ssh-auth": map[string]any{"password": "pa55word"}}); err != nil {
		t.Fatal(err)
	}
	w.complete(key, loom.TaskResult{})
	w.expect("1", `SELECT count(*)::text FROM secrets`)
	if err := w.ops.EndOperation(ctx, op.Row); err != nil {
		t.Fatal(err)
	}
	w.expect("0", `SELECT count(*)::text FROM secrets`)
}

// TestSecretsOfEarlierReleasesAreSealed: nodes may hold passwords in clear.
func TestSecretsOfEarlierReleasesAreSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.exec(`UPDATE nodes SET results = '{"providerid": "m1", "ssh-auth": {"user": "root", "password": "plain-pa55"}}' WHERE id <> $1`, w.nodes[0])
	for _, want := range []int{2, 0} {
		n, err := w.ops.SealNodes(ctx)
		if err != nil || n != want {
			t.Fatalf("sealed %d, %v", n, err)
		}
	}
	w.nowhere("plain-pa55")
	w.plan(loom.ClusterCreate, loom.ActionConfirm)
	s, err := w.ops.Spec(ctx, w.deliver(2))
	if err != nil {
		t.Fatal(err)
	}
	if auth, _ := s.Results["ssh-auth"].(map[string]any); auth["password"] != "plain-pa55" {
		t.Errorf("results %v", s.Results)
	}
}

// nowhere checks that a text is in no row of the tables that tasks write.
func (w *world) nowhere(text string) {
	w.t.Helper()
	for _, table := range []string{"nodes", "tasks", "attempts", "operations", "secrets", "events", "task_logs", "river_job"} {
		w.expect("0", `SELECT count(*)::text FROM `+table+` x WHERE strpos(to_jsonb(x)::text, $1) > 0 OR strpos(to_jsonb(x)::text, encode($1::bytea, 'hex')) > 0`, text)
	}
}
