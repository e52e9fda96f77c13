package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/store"
)

// narrow takes connections whose buffers are small: a client that does not read is
// felt soon.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
	}
	return conn, err
}

// slowly opens a stream that nobody reads before read is called.
func (w *world) slowly(path string) (read func() *stream) {
	w.t.Helper()
	server := httptest.NewUnstartedServer(httpx.Chain(w.deps.Log, false, http.NewCrossOriginProtection(), Problem, w.api.handler()))
	server.Listener = narrow{server.Listener}
	server.Start()
	w.t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		}
		return conn, err
	}
	r, err := http.NewRequestWithContext(ctx, get, server.URL+path, nil)
	w.must(err)
	r.Header.Set("Authorization", "Bearer "+w.user)
	r.Header.Set("Accept", mediaStream)
	answer, err := (&http.Transport{DialContext: dial}).RoundTrip(r)
	w.must(err)
	// Its first bytes say that the server follows.
	body := bufio.NewReader(answer.Body)
	if line, err := body.ReadString('\n'); err != nil || line != "retry: 3000\n" {
		w.t.Fatalf("%q, %v", line, err)
	}
	return func() *stream {
		s := &stream{w.t, make(chan event, 50_000), cancel}
		go func() {
			defer answer.Body.Close()
			s.read(body)
		}()
		return s
	}
}

// manyLines appends lines of some length in transactions of a thousand.
func (w *world) manyLines(id string, task, from, to int) {
	w.t.Helper()
	n, _ := loom.ParseClusterID(id)
	var row int64
	w.must(w.db.Get(&row, `SELECT t.id FROM tasks t WHERE t.cluster_id = $1 AND t.number = $2 AND NOT t.gate`, int64(n), task))
	for ; from <= to; from += 1000 {
		var lines []loom.LogLine
		for seq := from; seq < from+1000 && seq <= to; seq++ {
			lines = append(lines, loom.LogLine{Seq: seq, Time: time.Now(), Stream: "stdout", Level: "info", Text: fmt.Sprintf("%d %s", seq, strings.Repeat("x", 300))})
		}
		w.tx(func(tx *sqlx.Tx) error {
			return store.AppendLogsAllTenants(w.t.Context(), tx, []store.LogPart{{Key: store.AttemptKey{Task: loom.TaskID(row), Attempt: 1}, Lines: lines}})
		})
	}
}

// TestSlowReadersGetAGap lets lines come while nobody reads: those that were passed
// over are exactly those that the cursor of the gap fetches.
func TestSlowReadersGetAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.api.patience = time.Millisecond
	w.runHub()
	const last = 4000
	for _, path := range []string{"/tasks/1/log", "/log"} {
		id := w.cluster(w.user, "slow")
		path = "/v2/clusters/" + id + "/operations/1" + path
		w.log(id, 1, 1, 1, 1)
		read := w.slowly(path)
		w.manyLines(id, 1, 2, last)
		s := read()
		next, gaps := 1, 0
		position := ""
		for next <= last {
			e, open := <-s.events
			if !open {
				t.Fatalf("%s: the stream ended before line %d", path, next)
			}
			switch e.name {
			case "line":
				var line struct{ Seq int }
				w.must(json.Unmarshal([]byte(e.data), &line))
				if line.Seq != next {
					t.Fatalf("%s: line %d, want %d", path, line.Seq, next)
				}
				next++
			case "gap":
				var gap struct {
					Skipped int
					After   string
				}
				w.must(json.Unmarshal([]byte(e.data), &gap))
				if gap.After != position || gap.Skipped < 1 || e.id == position {
					t.Fatalf("%s: behind %q: %+v", path, position, e)
				}
				fetched := 0
				for page := path + "?limit=500&after=" + gap.After; fetched < gap.Skipped; {
					a := w.call(w.user, get, page, "").want(200)
					for _, line := range a.array()[:min(500, gap.Skipped-fetched)] {
						if line["seq"] != float64(next) {
							t.Fatalf("%s: fetched line %v, want %d", path, line["seq"], next)
						}
						next++
						fetched++
					}
					page = a.link("next")
				}
				gaps++
			}
			position = e.id
		}
		t.Logf("%s: %d gaps", path, gaps)
		if gaps == 0 {
			t.Errorf("%s: no gap", path)
		}
		s.cancel()
	}
}

// TestHistoryHasNoGap reads slowly what was there before: all of it comes.
func TestHistoryHasNoGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.api.patience = time.Nanosecond
	w.runHub()
	id := w.cluster(w.user, "old")
	w.log(id, 1, 1, 1, 1)
	w.manyLines(id, 1, 2, 4000)
	for _, path := range []string{"/tasks/1/log", "/log"} {
		s := w.slowly("/v2/clusters/" + id + "/operations/1" + path)()
		for n := range 4000 {
			if e := <-s.events; e.name != "line" || !strings.Contains(e.data, fmt.Sprintf(`"seq":%d,`, n+1)) {
				t.Fatalf("%s: line %d is %+v", path, n+1, e)
			}
		}
		s.cancel()
	}
}

// TestCursorsOfLinesThatAreGone goes on from lines that were trimmed or cut out.
func TestCursorsOfLinesThatAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runHub()
	id := w.cluster(w.user, "trimmed")
	at := "/v2/clusters/" + id + "/operations/1"
	w.log(id, 1, 1, 1, 10)
	one, all := w.follow(w.user, at+"/tasks/1/log"), w.follow(w.user, at+"/log")
	var cursorOfOne, cursorOfAll string
	for range 5 {
		cursorOfOne, cursorOfAll = one.next("line").id, all.next("line").id
	}
	follow := func(path, cursor string, first string) {
		t.Helper()
		s := w.follow(w.user, at+path, "Last-Event-ID", cursor)
		e := <-s.events
		if first == "reset" && (e.name != "reset" || e.data != "{}") {
			t.Errorf("%s: first %+v, want a reset", path, e)
		}
		if first == "reset" {
			e = <-s.events
			first = "line 1 of"
		}
		if !strings.Contains(e.data, first) {
			t.Errorf("%s: then %+v, want %s", path, e, first)
		}
		s.cancel()
	}
	follow("/tasks/1/log", cursorOfOne, "line 6 of")
	follow("/log", cursorOfAll, "line 6 of")
	w.exec(`DELETE FROM task_logs WHERE seq BETWEEN 4 AND 6`)
	follow("/tasks/1/log", cursorOfOne, "reset")
	follow("/log", cursorOfAll, "reset")
	// Nothing is left of what has ended: that is said, too.
	w.finish(id)
	w.exec(`DELETE FROM task_logs`)
	for path, cursor := range map[string]string{"/tasks/1/log": cursorOfOne, "/log": cursorOfAll} {
		s := w.follow(w.user, at+path, "Last-Event-ID", cursor)
		if e := <-s.events; e.name != "reset" {
			t.Errorf("%s: first %+v, want a reset", path, e)
		}
		s.end("done")
	}
}
