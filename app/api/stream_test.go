package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

// TestStreamsOfAToken: twenty streams of all kinds for a token, the next is refused with
// a problem that says when to come back. Another token of the user has its own, and what
// is no stream goes on.
func TestStreamsOfAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runHub()
	id := w.cluster(w.user, "followed")
	kinds := []string{"/v2/events?topics=clusters", "/v2/clusters/" + id + "/operations/1/log", "/v2/clusters/" + id + "/operations/1/tasks/1/log"}
	var open []*stream
	for i := range 20 {
		open = append(open, w.follow(w.user, kinds[i%len(kinds)]))
	}
	for _, path := range kinds {
		refused := w.call(w.user, get, path, "", "Accept", mediaStream)
		refused.fails(429, "", "20 event streams")
		if refused.header.Get("Content-Type") != "application/problem+json" || refused.header.Get("Retry-After") != "30" {
			t.Errorf("%s: %v", path, refused.header)
		}
	}
	w.call(w.user, get, "/v2/clusters", "").want(200)
	w.follow(w.token("acme", "ana", loom.ScopeRead), kinds[0])
	w.follow(w.second, kinds[0])
	for _, s := range open[:3] {
		s.cancel()
		for range s.events { // to its end
		}
	}
	for !w.opens(w.user, kinds[0]) { // the server sees a client go a moment later
	}
}

// opens reports whether a stream can be had.
func (w *world) opens(token, path string) bool {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, get, w.server.URL+path, nil)
	w.must(err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultTransport.RoundTrip(r)
	w.must(err)
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// event is one of an event stream.
type event struct{ id, name, data string }

// stream is an open event stream, read in the background.
type stream struct {
	t      *testing.T
	events chan event
	cancel func()
}

func (w *world) follow(token, path string, headers ...string) *stream {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	r, err := http.NewRequestWithContext(ctx, get, w.server.URL+path, nil)
	w.must(err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", mediaStream)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	w.must(err)
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != mediaStream {
		cancel()
		w.t.Fatalf("%s: %d %v", path, answer.StatusCode, answer.Header)
	}
	s := &stream{w.t, make(chan event, 10_000), cancel}
	w.t.Cleanup(cancel)
	go func() {
		defer answer.Body.Close()
		s.read(answer.Body)
	}()
	return s
}

func (s *stream) read(body io.Reader) {
	defer close(s.events)
	var e event
	for lines := bufio.NewScanner(body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				s.events <- e
			}
			e = event{}
		}
	}
}

// next waits for an event of a name; others on the way are left out.
func (s *stream) next(name string) event {
	s.t.Helper()
	for {
		select {
		case e, ok := <-s.events:
			if !ok {
				s.t.Fatalf("the stream ended before %q", name)
			}
			if e.name == name {
				return e
			}
		case <-time.After(20 * time.Second):
			s.t.Fatalf("no %q within 20 s", name)
		}
	}
}

func (s *stream) end(reason string) {
	s.t.Helper()
	if e := s.next("end"); e.data != `{"reason":"`+reason+`"}` {
		s.t.Errorf("ended with %s, want %s", e.data, reason)
	}
	if _, more := <-s.events; more {
		s.t.Error("more after the end")
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runHub()
	w.call(w.user, get, "/v2/events", "").fails(400, "topics", "Topics are clusters, cluster:{id}")
	w.call(w.user, get, "/v2/events?topics=a,b,c,d,e,f,g,h,i,j,k", "").fails(400, "topics", "at most 10")
	w.call(w.user, get, "/v2/events?topics=clusters,nodes", "").fails(400, "topics", "There is no topic “nodes”. Topics are clusters")
	w.call(w.user, get, "/v2/events?topics=system", "").want(404) // superadmins only
	w.call(w.user, get, "/v2/events?topics=log:00000001/1/1/1", "").fails(404, "", "tasks/{t}/log")

	s := w.follow(w.user, "/v2/events?topics=clusters,tenant")
	id := w.cluster(w.user, "watched")
	e := s.next("clusters")
	if e.data != `{"ids":[]}` || e.id == "" {
		t.Errorf("event %+v", e)
	}
	one := w.follow(w.user, "/v2/events?topics=cluster:"+id)
	w.call(w.user, patch, "/v2/clusters/"+id, `{"description":"x"}`).want(200)
	one.next("cluster:" + id)
	one.cancel()
	// What happens while nobody listens is made up for.
	w.call(w.user, patch, "/v2/clusters/"+id, `{"description":"y"}`).want(200)
	again := w.follow(w.user, "/v2/events?topics=clusters&after=0", "Last-Event-ID", e.id)
	again.next("clusters")
	// Another tenant's stream hears nothing of it.
	foreign := w.follow(w.foreign, "/v2/events?topics=clusters")
	w.cluster(w.user, "unheard")
	s.next("clusters")
	// A cursor that makes no sense means: load everything again; so does one of an
	// earlier release.
	for _, cursor := range []string{"nonsense", "17"} {
		reset := w.follow(w.user, "/v2/events?topics=clusters&after="+cursor).next("reset")
		if reset.data != "{}" || reset.id == "" {
			t.Errorf("%s: %+v", cursor, reset)
		}
	}

	// Rights that are lost end the stream.
	w.exec(`UPDATE tokens SET revoked_at = now() WHERE user_id = 'ana'`)
	s.end("forbidden")
	close(w.stopping)
	if e := <-foreign.events; e.name != "end" || e.data != `{"reason":"shutdown"}` {
		t.Errorf("another tenant hears %+v", e)
	}
}

// TestClustersOfOthersAreNotNamed: the topic of all clusters names them to administrators
// only, and a stream that names them ends with the role.
func TestClustersOfOthersAreNotNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runHub()
	admin, user := w.follow(w.admin, "/v2/events?topics=clusters"), w.follow(w.user, "/v2/events?topics=clusters")
	id := w.cluster(w.second, "ofanother")
	if e := admin.next("clusters"); !strings.Contains(e.data, `"`+id+`"`) {
		t.Errorf("an administrator hears %+v", e)
	}
	e := user.next("clusters")
	if e.data != `{"ids":[]}` {
		t.Errorf("a user hears %+v", e)
	}
	// Missed events are told in the same way.
	w.cluster(w.second, "missed")
	if e := w.follow(w.user, "/v2/events?topics=clusters", "Last-Event-ID", e.id).next("clusters"); e.data != `{"ids":[]}` {
		t.Errorf("a user hears later %+v", e)
	}
	w.exec(`UPDATE users SET role = 'user' WHERE role = 'admin'`)
	admin.end("forbidden")
}

func TestTaskLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runHub()
	id := w.cluster(w.user, "logged")
	at := "/v2/clusters/" + id + "/operations/1/tasks/1/log"
	if lines := w.call(w.user, get, at, "").want(200).array(); len(lines) != 0 {
		t.Errorf("lines before the start: %v", lines)
	}
	w.log(id, 1, 1, 1, 10)
	lines := w.call(w.user, get, at+"?limit=4", "").want(200)
	if rows := lines.array(); len(rows) != 4 || rows[3]["seq"] != 4.0 || rows[3]["text"] != "line 4 of try 1" || rows[3]["stream"] != "stdout" {
		t.Errorf("lines %s", lines.body)
	}
	if rest := w.call(w.user, get, lines.link("next")+"&limit=500", "").want(200).array(); len(rest) != 4 {
		t.Errorf("a second limit does not count: %v", rest)
	}
	all := 0
	for next := at + "?limit=4"; next != ""; {
		a := w.call(w.user, get, next, "").want(200)
		all += len(a.array())
		next = a.link("next")
	}
	if all != 10 {
		t.Errorf("%d lines by pages", all)
	}
	for path, want := range map[string]int{"?level=error": 2, "?level=error&limit=1": 1, "?level=info,error": 10, "?level=warn": 0, "?after=8": 2, "?attempt=2": 0} {
		if got := w.call(w.user, get, at+path, "").want(200).array(); len(got) != want {
			t.Errorf("%s: %d lines, want %d", path, len(got), want)
		}
	}
	for path, field := range map[string]string{"?level=loud": "level", "?after=x": "after", "?attempt=-1": "attempt", "?limit=501": "limit", "?tail=3": "tail"} {
		w.call(w.user, get, at+path, "").fails(400, field, "")
	}
	raw := w.call(w.user, get, at+"?after=8", "", "Accept", "text/plain").want(200)
	if raw.body != "line 9 of try 1\nline 10 of try 1\n" {
		t.Errorf("raw %q", raw.body)
	}
	w.call(w.user, get, "/v2/clusters/"+id+"/operations/1/tasks/x/log", "").want(404)
	w.call(w.user, get, "/v2/clusters/"+id+"/operations/1/tasks/999/log", "", "Accept", mediaStream).want(404)
	w.call(w.user, get, at+"?after=x", "", "Accept", mediaStream).fails(400, "after", "number of a line")
}

// TestFollowLog reads a log while it grows, goes on after a break without losing
// or doubling a line, and crosses over to a second try.
func TestFollowLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runHub()
	id := w.cluster(w.user, "followed")
	at := "/v2/clusters/" + id + "/operations/1/tasks/1/log"
	s := w.follow(w.user, at)
	w.log(id, 1, 1, 1, 5)
	seen := 0
	expect := func(s *stream, attempt, last int) event {
		t.Helper()
		var e event
		for seen < last {
			e = s.next("line")
			seen++
			var line struct {
				Seq, Attempt int
				Text         string
			}
			if err := json.Unmarshal([]byte(e.data), &line); err != nil {
				t.Fatal(err)
			}
			if line.Seq != seen || line.Attempt != attempt || e.id != fmt.Sprintf("%d.%d", attempt, seen) {
				t.Fatalf("line %d of try %d is %+v", seen, attempt, e)
			}
		}
		return e
	}
	expect(s, 1, 5)
	w.log(id, 1, 1, 6, 1500) // more than one read
	broken := expect(s, 1, 700)
	s.cancel()
	w.log(id, 1, 1, 1501, 1510)
	s = w.follow(w.user, at, "Last-Event-ID", broken.id)
	expect(s, 1, 1510)
	if rows := w.call(w.user, get, at+"?after=1.1507&limit=2", "").want(200); len(rows.array()) != 2 || !strings.Contains(rows.link("next"), "after=1.1509") {
		t.Errorf("behind the id of an event: %s, next %s", rows.body, rows.link("next"))
	}
	w.call(w.user, get, at+"?after=1.1507&attempt=2", "").fails(400, "after", "not the id of an event of this log")
	w.call(w.user, get, at+"?after=1.x", "").fails(400, "after", "not the id of an event of this log")
	byNumber := w.follow(w.user, at+"?after=1509&attempt=1")
	if e := byNumber.next("line"); e.id != "1.1510" {
		t.Errorf("after 1509 comes %+v", e)
	}
	w.exec(`UPDATE tasks SET status = 'ready' WHERE number = 1 AND NOT gate`)
	byNumber.end("done") // that try is over, the task is not
	w.log(id, 1, 2, 1, 3)
	seen = 0
	expect(s, 2, 3)
	w.exec(`UPDATE tasks SET status = 'complete', ended_at = now() WHERE number = 1 AND NOT gate`)
	s.end("done")

	owned := w.follow(w.user, "/v2/clusters/"+id+"/operations/1/tasks/2/log")
	w.exec(`UPDATE clusters SET owner_id = 'ben'`)
	owned.end("forbidden")
}
