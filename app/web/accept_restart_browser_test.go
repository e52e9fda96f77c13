//go:build browser

package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/jmoiron/sqlx"

	"loom/app/execution"
	"loom/app/live"
	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// mortal serves the pages at one address for several lives.
type mortal struct {
	w       *clusterWorld
	address string
	end     func()
}

// begin starts another life: nothing is kept of the one before but the database.
func (m *mortal) begin() {
	m.w.t.Helper()
	ctx, cancel := context.WithCancel(m.w.ctx)
	hub := live.New(m.w.db.DB, m.w.db.DSN, slog.New(slog.NewTextHandler(io.Discard, nil)))
	heard := make(chan error, 1)
	go func() { heard <- hub.Run(ctx) }()
	if m.address == "" {
		m.address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", m.address)
	m.w.must(err)
	m.address = listener.Addr().String()
	server := &http.Server{Handler: m.w.serve(hub)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	m.end = func() {
		server.Close() //nolint:errcheck // as a kill would
		cancel()
		<-heard
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			m.w.t.Errorf("the server ended with %v", err)
		}
	}
}

// TestOpenLogGoesOnAfterARestart leaves the page of a running task open while the server
// is killed and started again. What was written before, while nobody served and
// afterwards is there by itself, each line once and in order, with the right states.
func TestOpenLogGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("busy", 2)
	w.runSome(op, 1, 1)
	task := loom.TaskRef{Operation: op, Number: 2}
	var row int64
	w.must(w.db.Get(&row, `SELECT id FROM tasks WHERE cluster_id = $1 AND number = 2 AND NOT gate`, int64(op.Cluster)))
	log := w.ops.Log(execution.AttemptKey{Task: loom.TaskID(row), Attempt: 1})
	t.Cleanup(log.Close)
	last := 0
	write := func(n int) {
		var text strings.Builder
		for range n {
			last++
			fmt.Fprintf(&text, "this is line %d.\n", last)
		}
		log.Add("stdout", text.String())
	}
	m := &mortal{w: w}
	m.begin()
	defer func() { m.end() }()

	b := browser.New(t, browser.Options{})
	hands, base := b.Mouse(), "http://"+m.address
	b.Open(base + "/login?tenant=acme")
	hands.Fill("the user name", "input[name=user]", "ana")
	hands.Fill("the password", "input[name=password]", "correct horse battery ana")
	hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	b.Wait("the home page", func() bool { return b.URL() == base+"/" })
	shows := func(line int) { b.WaitText(fmt.Sprintf("this is line %d.", line)) }
	write(300)
	b.Open(base + route.Task(task))
	shows(300)
	b.WaitText("Running")
	write(100)
	shows(400)

	m.end()
	write(150)
	b.WaitText("Reconnecting")
	m.begin()
	shows(550)
	write(50)
	shows(600)
	w.db.MustExec(`UPDATE tasks SET status = 'complete', ended_at = now() WHERE id = $1`, row)
	w.db.MustExec(`UPDATE attempts SET status = 'complete', ended_at = now() WHERE task_id = $1`, row)
	w.db.MustExec(`UPDATE operations SET status = 'failed', message = 'Enough.', ended_at = now() WHERE cluster_id = $1`, int64(op.Cluster))
	w.must(store.Exec(w.ctx, w.db.DB, func(tx *sqlx.Tx) error {
		return store.InsertEvents(w.ctx, tx, loom.Event{Tenant: w.tenant.ID, Topic: route.TopicOperation(op)})
	}))
	b.WaitText("Complete")

	found := browser.Get(b, "the lines", chromedp.Evaluate[[]string](`[...document.querySelectorAll(".c-log [id^=L]")].map((row) => row.textContent.match(/this is line (\d+)\./)?.[1] ?? row.textContent)`))
	var want []string
	for n := 1; n <= last; n++ {
		want = append(want, fmt.Sprint(n))
	}
	if !slices.Equal(found, want) {
		t.Errorf("the page has %d lines, written were %d: %.300q … %.300q", len(found), last, found[:min(len(found), 20)], found[max(0, len(found)-20):])
	}
}
