package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"loom/app/fleet"
	"loom/app/loom"
)

const loggingServices = `{"nginx": {"name": "nginx", "logs": {"files": ["/var/log/nginx/error.log"]}}, "quiet": {"name": "quiet"}}`

// journalWorld is a world whose services nginx to nginx5 have journals.
func journalWorld(t *testing.T, nodes int) *world {
	t.Helper()
	w := newWorld(t, nodes)
	w.exec(`UPDATE nodes SET services = '{nginx,nginx2,nginx3,nginx4,nginx5,quiet}'`)
	w.exec(`UPDATE clusters SET services = $1::jsonb || (SELECT jsonb_object_agg('nginx' || i, $1::jsonb->'nginx') FROM generate_series(2, 5) AS i)`, loggingServices)
	return w
}

func (w *world) open(actor loom.Actor, node int, service string) (loom.JournalID, error) {
	w.t.Helper()
	return w.fleet.OpenJournal(context.Background(), actor, loom.Journal{Cluster: w.cluster, Node: w.nodes[node], Service: service, Lines: 10, Follow: true})
}

func (w *world) mustOpen(actor loom.Actor, node int, service string) loom.JournalID {
	w.t.Helper()
	id, err := w.open(actor, node, service)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) count(query string, args ...any) (n int) {
	w.t.Helper()
	if err := w.db.Get(&n, query, args...); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// follower is what a test does in place of a machine.
type follower func(ctx context.Context, sink loom.Sink) string

// Follow calls the function.
func (f follower) Follow(ctx context.Context, _ *loom.JournalTarget, sink loom.Sink) string {
	return f(ctx, sink)
}

// follow works a journal as a process.
func (w *world) follow(process loom.ProcessID, id loom.JournalID, f follower) error {
	target := func(_ context.Context, j loom.Journal, n loom.HealthNode) (*loom.JournalTarget, error) {
		if n.Node != j.Node || n.Incarnation != 1 || n.Operation != 3 {
			return nil, fmt.Errorf("the node is %+v", n)
		}
		return &loom.JournalTarget{Journal: j}, nil
	}
	return w.fleet.FollowJournal(context.Background(), process, id, target, f)
}

// read reads a whole journal as its reader does, each line as it is shown.
func (w *world) read(actor loom.Actor, id loom.JournalID) (loom.Journal, string) {
	w.t.Helper()
	j, lines, err := w.fleet.Journal(context.Background(), actor, id, 0, 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	var texts []string
	for i, l := range lines {
		if l.Seq != i+1 {
			w.t.Fatalf("line %d has number %d", i+1, l.Seq)
		}
		if l.Skipped > 0 {
			l.Text = fmt.Sprintf("(%d)", l.Skipped)
		}
		texts = append(texts, l.Text)
	}
	return j, strings.Join(texts, "|")
}

// TestOpenJournal: who may, what there is, and how many.
func TestOpenJournal(t *testing.T) {
	t.Parallel()
	w := journalWorld(t, 2)
	kind := func(err error) any {
		if err == nil {
			return nil
		}
		return loom.AsError(err).Kind
	}
	ben, reader := ana, ana
	ben.User = "ben"
	reader.Scopes = []loom.Scope{loom.ScopeRead}
	foreign := loom.Actor{Tenant: "t2", User: "ana", Role: loom.RoleAdmin}
	admin := loom.Actor{Tenant: "t1", User: "root", Role: loom.RoleAdmin}
	for name, c := range map[string]struct {
		actor   loom.Actor
		service string
		want    any
	}{
		"another tenant": {foreign, "nginx", loom.NotFound}, "another user": {ben, "nginx", loom.NotFound}, "a token that reads": {reader, "nginx", loom.Forbidden},
		"no such service": {ana, "nix", loom.NotFound}, "no logs": {ana, "quiet", loom.Conflict},
	} {
		if _, err := w.open(c.actor, 0, c.service); kind(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.fleet.OpenJournal(t.Context(), ana, loom.Journal{Cluster: w.cluster, Node: w.nodes[0], Service: "nginx", Lines: 1001}); kind(err) != loom.Invalid {
		t.Errorf("too many lines: %v", err)
	}
	for _, node := range []loom.NodeID{"x", "00000000-0000-4000-8000-000000000001"} {
		if _, err := w.fleet.OpenJournal(t.Context(), ana, loom.Journal{Cluster: w.cluster, Node: node, Service: "nginx"}); kind(err) != loom.NotFound {
			t.Errorf("node %s: %v", node, err)
		}
	}
	w.exec(`UPDATE nodes SET state = 'failed' WHERE id = $1`, w.nodes[1])
	if _, err := w.open(ana, 1, "nginx"); kind(err) != loom.Conflict {
		t.Errorf("a node without a machine: %v", err)
	}
	w.exec(`UPDATE nodes SET state = 'ready'`)
	if n := w.count(`SELECT count(*) FROM journals`); n != 0 {
		t.Fatalf("%d journals are open", n)
	}

	id := w.mustOpen(ana, 0, "nginx")
	if again := w.mustOpen(ana, 0, "nginx"); again != id {
		t.Error("the same journal is opened twice")
	}
	if n := w.count(`SELECT count(*) FROM river_job WHERE kind = 'follow_journal' AND queue = 'journal' AND args = jsonb_build_object('journal_id', $1::text)`, id); n != 1 {
		t.Errorf("%d River jobs", n)
	}
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'journal' AND actor = 'ana'`); n != 1 {
		t.Errorf("%d entries in the audit", n)
	}
	w.mustOpen(ana, 0, "nginx2")
	w.mustOpen(ana, 0, "nginx3")
	if _, err := w.open(ana, 1, "nginx"); kind(err) != loom.Throttled || loom.AsError(err).RetryAfter == 0 {
		t.Errorf("a fourth one of a user: %v", err)
	}
	w.mustOpen(admin, 0, "nginx")
	if _, err := w.open(admin, 0, "nginx2"); kind(err) != loom.Throttled {
		t.Errorf("a fifth one on a node: %v", err)
	}
	w.mustOpen(admin, 1, "nginx")
	w.exec(`UPDATE journals SET wanted_until = now() WHERE id = $1`, id)
	if w.mustOpen(ana, 1, "nginx") == id {
		t.Error("one that nobody read is opened again")
	}
	w.exec(`UPDATE journals SET ended_at = now()`)
	w.exec(`DELETE FROM processes`)
	if _, err := w.open(ana, 0, "nginx"); kind(err) != loom.Unavailable {
		t.Errorf("without a provisioner: %v", err)
	}
}

// TestFollowJournal: lines come to the reader, and to nobody else; what comes too fast is a gap.
func TestFollowJournal(t *testing.T) {
	t.Parallel()
	w := journalWorld(t, 1)
	id := w.mustOpen(ana, 0, "nginx")
	if j, _ := w.read(ana, id); j.Began || j.Ended || j.Node != w.nodes[0] || j.Service != "nginx" {
		t.Errorf("before anybody took it: %+v", j)
	}
	w.exec(`INSERT INTO tenants (id, name) VALUES ('t2', 'other')`)
	w.exec(`INSERT INTO processes (id, kind, host, only_tenant, expires_at) VALUES ('theirs', 'provisioner', 'h', 't2', now() + interval '1 hour')`)
	w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('elsewhere', 'provisioner', 'other', now() + interval '1 hour')`)
	w.exec(`UPDATE nodes SET results = '{"local_host": "h"}'`)
	for _, process := range []loom.ProcessID{"theirs", "elsewhere", "late", "nobody"} {
		if err := w.follow(process, id, nil); !errors.Is(err, fleet.ErrNotForUs) {
			t.Errorf("process %s: %v", process, err)
		}
	}
	ready := make(chan struct{})
	err := w.follow("p1", id, func(ctx context.Context, sink loom.Sink) string {
		sink.Log("stdout", "one\x00\xff")
		sink.Log("stderr", "two")
		for { // they are there while it goes on
			if j, text := w.read(ana, id); text == "one\uFFFD|two" && j.Began && !j.Ended {
				break
			}
		}
		close(ready)
		for range 3 * loom.JournalRate {
			sink.Log("stdout", "x")
		}
		return "It is over."
	})
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	j, text := w.read(ana, id)
	if !j.Ended || j.Message != "It is over." || !strings.HasPrefix(text, "one\uFFFD|two|x|x") || !strings.HasSuffix(text, ")") {
		t.Errorf("at the end: %+v, %s", j, text)
	}
	shown, gaps := strings.Count(text, "x"), 0
	for _, part := range strings.Split(text, "|") {
		var n int
		if _, err := fmt.Sscanf(part, "(%d)", &n); err == nil {
			gaps += n
		}
	}
	if shown+gaps != 3*loom.JournalRate || gaps == 0 {
		t.Errorf("%d lines and gaps of %d", shown, gaps)
	}
	if err := w.follow("p1", id, nil); err != nil {
		t.Errorf("once more: %v", err)
	}
	ben := loom.Actor{Tenant: "t1", User: "ben", Role: loom.RoleAdmin}
	for _, actor := range []loom.Actor{ben, {Tenant: "t2", User: "ana", Role: loom.RoleAdmin}} {
		if _, _, err := w.fleet.Journal(t.Context(), actor, id, 0, 10); !errors.Is(err, loom.NotFound) {
			t.Errorf("%s of %s reads it: %v", actor.User, actor.Tenant, err)
		}
	}
	w.exec(`UPDATE clusters SET owner_id = 'ben'`)
	if _, _, err := w.fleet.Journal(t.Context(), ana, id, 0, 10); !errors.Is(err, loom.NotFound) {
		t.Errorf("who owns the cluster no longer reads it: %v", err)
	}
	w.exec(`UPDATE journals SET ended_at = now() - interval '9 minutes'`)
	if err := w.fleet.TrimJournals(t.Context()); err != nil || w.count(`SELECT count(*) FROM journals`) != 1 {
		t.Errorf("trimmed before its time: %v", err)
	}
	w.exec(`UPDATE journals SET ended_at = now() - interval '11 minutes'`)
	if err := w.fleet.TrimJournals(t.Context()); err != nil || w.count(`SELECT count(*) FROM journals`)+w.count(`SELECT count(*) FROM journal_lines`) != 0 {
		t.Errorf("not trimmed: %v", err)
	}
}

// TestJournalEnds: one that nobody reads, that is full, or whose provisioner is lost.
func TestJournalEnds(t *testing.T) {
	t.Parallel()
	w := journalWorld(t, 1)
	ends := func(name, want string, id loom.JournalID) {
		t.Helper()
		if j, _ := w.read(ana, id); !j.Ended || j.Message != want {
			t.Errorf("%s: %+v, want %q", name, j, want)
		}
		w.exec(`UPDATE journals SET ended_at = now() WHERE ended_at IS NULL`)
	}
	waits := func(ctx context.Context, sink loom.Sink) string {
		sink.Log("stdout", "one")
		<-ctx.Done()
		return "not why"
	}
	id := w.mustOpen(ana, 0, "nginx")
	w.exec(`UPDATE journals SET wanted_until = now() + interval '15 s'`)
	w.read(ana, id)
	if n := w.count(`SELECT count(*) FROM journals WHERE wanted_until > now() + interval '20 s'`); n != 1 {
		t.Error("reading does not renew")
	}
	if err := w.follow("p1", id, func(ctx context.Context, sink loom.Sink) string {
		w.exec(`UPDATE journals SET wanted_until = now()`)
		return waits(ctx, sink)
	}); err != nil {
		t.Fatal(err)
	}
	ends("nobody reads", loom.JournalUnread, id)

	id = w.mustOpen(ana, 0, "nginx2")
	long := strings.Repeat("x", 16<<10)
	if err := w.follow("p1", id, func(ctx context.Context, sink loom.Sink) string {
		for ctx.Err() == nil {
			sink.Log("stdout", long)
		}
		return "not why"
	}); err != nil {
		t.Fatal(err)
	}
	if n := w.count(`SELECT sum(length(text)) FROM journal_lines WHERE journal_id = $1`, id); n > loom.JournalBytes || n < loom.JournalBytes-2*len(long) {
		t.Errorf("it holds %d bytes", n)
	}
	ends("full", "A journal shows 1 MB; open it again.", id)

	id = w.mustOpen(ana, 0, "nginx3")
	taken, die := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- w.follow("p1", id, func(context.Context, loom.Sink) string {
			close(taken)
			<-die
			return "too late"
		})
	}()
	<-taken
	w.exec(`UPDATE processes SET expires_at = now() WHERE id = 'p1'`)
	if j, _ := w.read(ana, id); !j.Ended || j.Message != loom.JournalLost {
		t.Errorf("its provisioner is lost: %+v", j)
	}
	close(die)
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.exec(`UPDATE processes SET expires_at = now() + interval '1 hour'`)

	id = w.mustOpen(ana, 0, "nginx4")
	w.exec(`UPDATE journals SET created_at = now() - interval '31 s' WHERE id = $1`, id)
	ends("nobody takes it", loom.JournalUntaken, id)

	id = w.mustOpen(ana, 0, "nginx5")
	ctx, cancel := context.WithCancel(t.Context())
	err := w.fleet.FollowJournal(ctx, "p1", id, func(_ context.Context, j loom.Journal, _ loom.HealthNode) (*loom.JournalTarget, error) {
		return &loom.JournalTarget{Journal: j}, nil
	}, follower(func(ctx context.Context, sink loom.Sink) string {
		cancel()
		return waits(ctx, sink)
	}))
	if err != nil {
		t.Error(err)
	}
	ends("the process ends", loom.JournalLost, id)

	id = w.mustOpen(ana, 0, "nginx")
	trouble := errors.New("no database")
	if err := w.fleet.FollowJournal(t.Context(), "p1", id, func(context.Context, loom.Journal, loom.HealthNode) (*loom.JournalTarget, error) { return nil, trouble }, nil); !errors.Is(err, trouble) {
		t.Errorf("trouble of Loom: %v", err)
	}
	ends("trouble of Loom", loom.JournalLost, id)
	if _, _, err := w.fleet.Journal(t.Context(), ana, "x", 0, 1); !errors.Is(err, loom.NotFound) {
		t.Errorf("no such journal: %v", err)
	}
}
