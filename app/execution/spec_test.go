package execution_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"loom/app/execution"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
)

func (w *world) seal(entity, field, text string) {
	w.t.Helper()
	sealed, err := w.ring.Seal("t1", entity, field, loom.NewSecret(text))
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ('t1', $1, $2, $3)`, entity, field, sealed)
}

func TestSpec(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	cluster := "cluster:" + w.cluster.String()
	w.seal("provider:lab", "api_password", "adm1n-secret")
	w.seal("provider:lab", "token", "t0ken-of-admin")
	w.seal("provider:other", "api_password", "not this one")
	w.seal(cluster, "token", "t0ken-of-user")
	w.seal(cluster, "ssh_keyfile", "-----BEGIN KEY-----\nbase64line\n-----END KEY-----\n")
	w.seal(cluster, "ssh_public_key", "ssh-ed25519 AAAB loom")
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionInstall)
	key := w.deliver(1)
	s, err := w.ops.Spec(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	wantFields := map[string]any{"zone": "z1", "user": "loom", "api_password": "adm1n-secret", "token": "t0ken-of-user"}
	if !reflect.DeepEqual(s.Provider.Fields, wantFields) {
		t.Errorf("provider fields %v, want %v", s.Provider.Fields, wantFields)
	}
	if s.Config["hosts"] != "%host.service.web%" || s.Service != nil {
		t.Errorf("a node action sees raw config and no service: %v, %v", s.Config, s.Service)
	}
	if s.PublicKey != "ssh-ed25519 AAAB loom" || !strings.HasPrefix(s.PrivateKey.Reveal(), "-----BEGIN") {
		t.Errorf("the cluster's key pair: %q", s.PublicKey)
	}
	for _, text := range []string{"adm1n-secret", "t0ken-of-user", "base64line", "pa55word"} {
		if !slices.Contains(s.Sensitive, text) {
			t.Errorf("%q is not known to be sensitive: %q", text, s.Sensitive)
		}
	}
	if slices.Contains(s.Sensitive, "ssh-ed25519 AAAB loom") {
		t.Error("a public key is not sensitive")
	}
	if s.HardwareSettings["flavor"] != "s" || s.ImageSettings["suite"] != "bookworm" || s.ResourceSet != 7 || !slices.Equal(s.OwnerKeys, []string{"ssh-ed25519 AAAA ana"}) {
		t.Errorf("settings %v %v, set %d, keys %v", s.HardwareSettings, s.ImageSettings, s.ResourceSet, s.OwnerKeys)
	}
	if left := time.Until(s.Deadline); left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("CREATE has %s left, want almost 10 minutes", left)
	}
	if want := fmt.Sprintf("%s-001-001", w.cluster); s.Ref.String() != want || s.Attempt != 1 || s.LastTry {
		t.Errorf("task %s attempt %d", s.Ref, s.Attempt)
	}
	w.complete(key, loom.TaskResult{Hostname: "renamed.lab"})
	s, err = w.ops.Spec(ctx, w.deliver(2))
	if err != nil {
		t.Fatal(err)
	}
	// The second node of the cluster still has its planned name.
	if s.Config["hosts"] != "renamed.lab,shop-2" || s.Service == nil || s.Service.Action.Fields["script"] != "web.sh" {
		t.Errorf("config %v, service %+v", s.Config, s.Service)
	}
	if _, err := w.ops.Spec(ctx, key); !errors.Is(err, loom.Conflict) {
		t.Errorf("the spec of an attempt that is over: %v", err)
	}
}

// TestTheProviderAsItIsExposes: a task has the provider's field as it is then.
func TestTheProviderAsItIsExposes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionInstall)
	key := w.deliver(1)
	for i, want := range []bool{false, true, false} {
		w.exec(`INSERT INTO catalog_versions (tenant_id, kind, name, version, body) VALUES ('t1', 'providers', 'lab', $1,
			jsonb_build_object('name', 'lab', 'providertype', 'mock', 'provisioner', jsonb_build_object('expose_credentials', $2::boolean)))`, i+2, want)
		s, err := w.ops.Spec(ctx, key)
		if err != nil || loom.SwitchedOn(s.Provider.Fields["expose_credentials"]) != want {
			t.Errorf("version %d: %v, %v, want %t", i+2, s, err, want)
		}
	}
}

func TestUnbuildableSpecs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionInstall)
	key := w.deliver(1)
	refused := func(ops *execution.Operations, want string) {
		t.Helper()
		_, err := ops.Spec(ctx, key)
		var u *execution.SpecError
		if !errors.As(err, &u) || u.Result.Status != -1 || *u.Result.Retryable || !strings.Contains(u.Result.Message, want) {
			t.Errorf("got %v, want a refusal with %q", err, want)
		}
	}
	w.exec(`UPDATE clusters SET config = '{"a": {"b": "%host.service.web[5]%"}}'`)
	refused(w.ops, "Exception while expanding macros: ")
	w.exec(`UPDATE clusters SET config = '{}', services = '{}'`)
	refused(w.ops, "no longer has the service “web”")
	w.exec(`UPDATE clusters SET services = '{"web": {"name": "web"}}'`)
	refused(w.ops, "no action “install”")
	w.seal("provider:lab", "password", "x")
	other, err := secret.ParseKeys(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	refused(execution.New(w.db.DB, other, execution.Options{}), "cannot be opened")
}

func TestLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	key := w.deliver(1)
	listening, endListening := context.WithCancel(ctx)
	defer endListening()
	notices, err := store.Listen(listening, w.db.DSN, store.LogChannel)
	if err != nil {
		t.Fatal(err)
	}
	log := w.ops.Log(key)
	log.Add("stdout", "one\ntwo\r\n\nbad \xff byte\n")
	log.Add("stderr", strings.Repeat("é", 10_000))
	log.Close()
	log.Add("stdout", "too late")
	var lines []struct {
		Seq    int
		Stream string
		Level  string
		Text   string
	}
	if err := w.db.Select(&lines, `SELECT seq, stream, level, text FROM task_logs ORDER BY seq`); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 6 || lines[0].Text != "one" || lines[1].Text != "two" || lines[2].Text != "" || lines[3].Text != "bad \uFFFD byte" {
		t.Fatalf("%d lines: %.40v", len(lines), lines)
	}
	if lines[4].Text+lines[5].Text != strings.Repeat("é", 10_000) || lines[4].Level != "warn" || lines[5].Seq != 6 {
		t.Error("a long line is split between characters")
	}
	select {
	case n := <-notices:
		if n.Payload != fmt.Sprint(int64(key.Task)) {
			t.Errorf("followers were woken for %q, not for task %d", n.Payload, key.Task)
		}
	case <-time.After(20 * time.Second):
		t.Error("nobody was woken")
	}
}

func TestLogKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	log := w.ops.Log(w.deliver(1))
	const lines, size = 6000, 1000
	for i := range lines {
		log.Add("stdout", fmt.Sprintf("%05d %s", i, strings.Repeat("x", size-6)))
	}
	log.Close()
	w.expect("00000 05999", `SELECT (SELECT left(text, 5) FROM task_logs ORDER BY seq LIMIT 1) || ' ' || (SELECT left(text, 5) FROM task_logs ORDER BY seq DESC LIMIT 1)`)
	w.expect("true", `SELECT (sum(length(text)) BETWEEN 3800000 AND 4 * 1024 * 1024)::text FROM task_logs`)
	var marks []string
	if err := w.db.Select(&marks, `SELECT text FROM task_logs WHERE stream = 'loom'`); err != nil || len(marks) != 1 {
		t.Fatalf("%d lines say what was left out, %v", len(marks), err)
	}
	var left int
	if _, err := fmt.Sscanf(marks[0], "[%d lines left out here", &left); err != nil {
		t.Fatalf("%q: %v", marks[0], err)
	}
	w.expect(fmt.Sprint(lines-left+1), `SELECT count(*)::text FROM task_logs`)
	// The only numbers that are missing are those of which it tells.
	w.expect(fmt.Sprintf("%d %d 1", lines, left), `SELECT max(seq) || ' ' || max(next - seq) || ' ' || count(*) FILTER (WHERE next - seq > 1)
		FROM (SELECT seq, lead(seq, 1, seq + 1) OVER (ORDER BY seq) AS next FROM task_logs) AS l`)
	w.expect(fmt.Sprint(left), `SELECT (SELECT min(seq) FROM task_logs WHERE seq > m.seq) - m.seq || '' FROM task_logs m WHERE stream = 'loom'`)
}

// TestLogNumbersItsLinesWithoutGaps: no number is missing in a log of which nothing is
// left out, though it is longer than what is kept of its beginning in any case.
func TestLogNumbersItsLinesWithoutGaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	log := w.ops.Log(w.deliver(1))
	const lines = 2000
	for i := range lines {
		log.Add("stdout", fmt.Sprintf("%05d %s", i+1, strings.Repeat("x", 994)))
	}
	log.Close()
	w.expect(fmt.Sprintf("%d 1 %d", lines, lines), `SELECT count(*) || ' ' || min(seq) || ' ' || max(seq) FROM task_logs`)
	w.expect("true", `SELECT bool_and(stream = 'stdout' AND left(text, 5)::int = seq)::text FROM task_logs`)
}
