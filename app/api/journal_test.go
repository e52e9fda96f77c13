package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/store"
)

// writing is a machine whose journal a test writes.
type writing func(ctx context.Context, t *loom.JournalTarget, sink loom.Sink) string

// Follow calls the function.
func (w writing) Follow(ctx context.Context, t *loom.JournalTarget, sink loom.Sink) string {
	return w(ctx, t, sink)
}

// follower starts a provisioner that follows journals, until the test ends.
func (w *world) follower(machine fleet.Follower) {
	w.t.Helper()
	process, err := w.deps.Processes.Register(w.t.Context(), processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 1})
	w.must(err)
	w.exec(`UPDATE processes SET expires_at = now() + interval '1 hour'`)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-over })
	notices, err := store.Listen(ctx, w.db.DSN, "public.river_insert")
	w.must(err)
	target := func(_ context.Context, j loom.Journal, _ loom.HealthNode) (*loom.JournalTarget, error) {
		return &loom.JournalTarget{Journal: j}, nil
	}
	go func() {
		defer close(over)
		for range notices {
			var id loom.JournalID
			if err := w.db.GetContext(ctx, &id, `DELETE FROM river_job WHERE id = (SELECT min(id) FROM river_job WHERE kind = 'follow_journal') RETURNING args->>'journal_id'`); err != nil {
				continue
			}
			if err := w.deps.Fleet.FollowJournal(ctx, process, id, target, machine); err != nil && ctx.Err() == nil {
				w.t.Errorf("journal %s: %v", id, err)
			}
		}
	}()
}

// TestJournal: as text, as JSON and as a stream that goes on where it was.
func TestJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runHub()
	id := w.cluster(w.user, "logged")
	w.finish(id)
	var node string
	w.must(w.db.Get(&node, `SELECT id FROM nodes WHERE 'web' = ANY (services) ORDER BY number LIMIT 1`))
	at := "/v2/clusters/" + id + "/nodes/" + node + "/services/web/journal"
	w.call(w.user, get, at, "").fails(409, "", "where its logs are")
	w.exec(`UPDATE clusters SET services = jsonb_set(services, '{web,logs}', '{"files": ["/var/log/web.log"]}')`)
	w.call(w.user, get, at, "").fails(503, "", "No provisioner is running")

	more := make(chan string)
	w.follower(writing(func(ctx context.Context, target *loom.JournalTarget, sink loom.Sink) string {
		if target.Lines == 7 {
			return "The machine does not answer."
		}
		sink.Log("stdout", "one \x1b[31m<b>")
		if !target.Follow {
			for range 2 * loom.JournalRate {
				sink.Log("stdout", "x")
			}
			return ""
		}
		for {
			select {
			case <-ctx.Done():
				return ""
			case text, open := <-more:
				if !open {
					return "It is over."
				}
				sink.Log("stdout", text)
			}
		}
	}))
	text := w.call(w.user, get, at+"?lines=5", "", "Accept", "text/plain").want(200)
	if !strings.HasPrefix(text.body, "one <b>\nx\nx\n") || !strings.Contains(text.body, " lines skipped]\n") {
		t.Errorf("text: %.100q", text.body)
	}
	var all struct {
		Lines []struct {
			Seq, Skipped int
			Text         string
		}
	}
	w.must(json.Unmarshal([]byte(w.call(w.user, get, at+"?lines=0", "").want(200).body), &all))
	if len(all.Lines) < loom.JournalRate || all.Lines[0].Text != "one \x1b[31m<b>" || all.Lines[0].Seq != 1 || all.Lines[len(all.Lines)-1].Skipped == 0 {
		t.Errorf("JSON: %d lines, the first %+v", len(all.Lines), all.Lines[0])
	}
	w.call(w.user, get, at+"?lines=7", "").fails(503, "", "The machine does not answer.")

	s := w.follow(w.user, at)
	first := s.next("line")
	var line struct {
		Seq  int
		Text string
	}
	w.must(json.Unmarshal([]byte(first.data), &line))
	if line.Seq != 1 || !strings.HasPrefix(line.Text, "one") {
		t.Errorf("the first line: %s", first.data)
	}
	more <- "two"
	if e := s.next("line"); !strings.Contains(e.data, `"text":"two"`) {
		t.Errorf("the second line: %s", e.data)
	}
	s.cancel()
	rest := w.follow(w.user, at, "Last-Event-ID", first.id)
	if e := rest.next("line"); !strings.Contains(e.data, `"text":"two"`) {
		t.Errorf("behind the first line: %s", e.data)
	}
	close(more)
	if e := rest.next("end"); e.data != `{"message":"It is over.","reason":"done"}` {
		t.Errorf("the end: %s", e.data)
	}
	begun := w.follow(w.user, at, "Last-Event-ID", first.id) // of a journal that is over
	if e := begun.next("line"); e.id == first.id || !strings.Contains(e.data, `"text":"one`) {
		t.Errorf("a new journal begins with %+v", e)
	}

	w.call(w.user, get, at+"?lines=1001", "").fails(400, "lines", "1000")
	w.call(w.user, get, at+"?lines=x", "").fails(400, "lines", "")
	w.call(w.user, get, strings.Replace(at, "/web/", "/nix/", 1), "").fails(404, "", "no service")
	w.call(w.user, get, strings.Replace(at, node, "nobody", 1), "").fails(404, "", "no node")
	w.call(w.token("acme", "ana", loom.ScopeRead), get, at, "").fails(403, "", "clusters:write")
	for _, token := range []string{w.second, w.foreign, w.super} {
		for _, accept := range []string{mediaJSON, mediaText, mediaStream} {
			w.call(token, get, at, "", "Accept", accept).want(404)
			w.call(token, get, at, "", "Accept", mediaStream, "Last-Event-ID", first.id).want(404)
		}
	}
	if n := len(w.auditOf(w.admin, "?kind=journal")); n != 5 {
		t.Errorf("%d entries in the audit", n)
	}
	for range 3 {
		w.call(w.user, "HEAD", at, "").want(200)
	}
	if n := len(w.auditOf(w.admin, "?kind=journal")); n != 5 {
		t.Error("HEAD opens journals")
	}
}
