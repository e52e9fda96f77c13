package web_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/views/route"
)

// pageStream is the stream of a page, block by block.
type pageStream struct {
	t     *testing.T
	lines *bufio.Scanner
}

// next gives the next block as its fields; comments are left out.
func (s *pageStream) next() map[string]string {
	s.t.Helper()
	block := map[string]string{}
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch {
		case s.lines.Text() == "" && len(block) > 0:
			return block
		case name != "":
			block[name] = value
		}
	}
	s.t.Fatalf("the stream ended behind %v: %v", block, s.lines.Err())
	return nil
}

// TestEvents follows a page's stream from its first cursor over a break to the end of
// the process, and tells cursors that are none.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ctx, stop := context.WithCancel(w.ctx)
	hub := make(chan error, 1)
	go func() { hub <- w.hub.Run(w.ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-hub:
			t.Errorf("the hub ended before the test: %v", err)
		default:
		}
	})
	server := httptest.NewUnstartedServer(w.handler)
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	t.Cleanup(server.Close)
	follow := func(query string) (*pageStream, func()) {
		t.Helper()
		r, err := http.NewRequestWithContext(w.ctx, http.MethodGet, server.URL+"/events?topics=clusters"+query, nil)
		w.must(err)
		r.Header.Set("Cookie", "loom-dev="+w.cookies["admin"]) // others hear of no ids
		answer, err := http.DefaultTransport.RoundTrip(r)
		w.must(err)
		t.Cleanup(func() { answer.Body.Close() })
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%d %v", answer.StatusCode, answer.Header)
		}
		return &pageStream{t, bufio.NewScanner(answer.Body)}, func() { answer.Body.Close() }
	}
	emit := func(id string) {
		t.Helper()
		w.must(store.Exec(w.ctx, w.db.DB, func(tx *sqlx.Tx) error {
			return store.InsertEvents(w.ctx, tx, loom.Event{Tenant: w.tenant.ID, Topic: "clusters", IDs: []string{id}})
		}))
	}
	first, leave := follow("")
	if b := first.next(); b["retry"] != "3000" {
		t.Fatalf("began with %v", b)
	}
	start := first.next()
	if start["id"] == "" || start["event"] != "" {
		t.Fatalf("no cursor before the first signal: %v", start)
	}
	leave()
	emit("one")
	again, _ := follow("&after=" + start["id"])
	heard := func(s *pageStream, id string) {
		t.Helper()
		for {
			if b := s.next(); b["event"] == "clusters" && b["id"] != "" && strings.Contains(b["data"], `"`+id+`"`) {
				return
			}
		}
	}
	heard(again, "one")
	emit("two")
	heard(again, "two")
	old, _ := follow("&after=17")
	for {
		b := old.next()
		if b["event"] == "reset" && b["data"] == "{}" && b["id"] != "" {
			break
		}
		if b["event"] != "" {
			t.Fatalf("a cursor of an earlier release gives %v first", b)
		}
	}
	stop() // the process ends
	for b := again.next(); b["event"] != "end" || b["data"] != `{"reason":"shutdown"}`; b = again.next() {
		if b["event"] == "end" {
			t.Fatalf("ended with %v", b)
		}
	}
}

// TestStreamsOfASession: the stream after the twentieth is refused with a problem, for
// this session alone.
func TestStreamsOfASession(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	open := func(user loom.UserID) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(w.ctx, http.MethodGet, server.URL+"/events?topics=clusters", nil)
		w.must(err)
		r.Header.Set("Cookie", "loom-dev="+w.cookies[user])
		answer, err := http.DefaultTransport.RoundTrip(r)
		w.must(err)
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	for i := range 20 {
		if answer := open("ana"); answer.StatusCode != http.StatusOK {
			t.Fatalf("stream %d: %s", i+1, answer.Status)
		}
	}
	if answer := open("ana"); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Content-Type") != "application/problem+json" || answer.Header.Get("Retry-After") != "30" {
		t.Errorf("one too many: %s %v", answer.Status, answer.Header)
	}
	if answer := open("admin"); answer.StatusCode != http.StatusOK {
		t.Errorf("for another user: %s", answer.Status)
	}
	if page := w.get("ana", "/"); page.Code != http.StatusOK {
		t.Errorf("a page: %d", page.Code)
	}
}

// TestRawLogOfATaskObeysNobody: the text and the file have no characters that a terminal
// obeys, unless one asks for them.
func TestRawLogOfATaskObeysNobody(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 2)
	w.runSome(op, 1, 1)
	task := loom.TaskRef{Operation: op, Number: 1}
	w.log(task, "stdout", "\x1b[31mred\x1b[0m\t50%\r100%\x07")
	raw := route.TaskLogRaw(task, 1)
	for _, more := range []string{"", "&download=1"} {
		if got := w.get("ana", raw+more).is(200).Body; got != "red\t50%100%\n" {
			t.Errorf("%q: %q", more, got)
		}
		if got := w.get("ana", raw+more+"&ansi=1").is(200).Body; got != "\x1b[31mred\x1b[0m\t50%\r100%\x07\n" {
			t.Errorf("%q as it came: %q", more, got)
		}
	}
}
