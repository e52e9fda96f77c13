package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/live"
	"loom/app/loom"
)

// logChunk is how many lines are read at once.
const logChunk = 1000

// logLevels are the levels of lines.
var logLevels = []string{"info", "warn", "error"}

// logRequest is what is wanted of a task's log.
type logRequest struct {
	ref            loom.TaskRef
	attempt, after int
	levels         []string
	// byEvent says that after came as the id of an event.
	byEvent bool
	// raw makes a text of a line.
	raw func(text string) string
}

// taskLog gives lines of a task: as JSON by default, raw as text/plain, and
// followed as text/event-stream.
func (a *api) taskLog(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := taskRef(r)
	if err != nil {
		return err
	}
	q := logRequest{ref: ref}
	if q.attempt, err = queryInt(r, "attempt"); err != nil {
		return err
	}
	if q.levels, err = oneOf(r, "level", logLevels); err != nil {
		return err
	}
	if q.raw, err = rawText(r); err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	switch accepted(r, mediaJSON, mediaText, mediaStream) {
	case mediaStream:
		return a.followLog(w, r, actor, q)
	case mediaText:
		return a.rawLog(w, r, actor, q)
	}
	return a.logLines(w, r, actor, q)
}

// accepted picks the first of the offered media types that the header Accept
// names, without weights; the first one when it names none.
func accepted(r *http.Request, offered ...string) string {
	for _, part := range strings.Split(r.Header.Get("Accept"), ",") {
		name, _, _ := strings.Cut(part, ";")
		if name = strings.ToLower(strings.TrimSpace(name)); slices.Contains(offered, name) {
			return name
		}
	}
	return offered[0]
}

func (a *api) logLines(w http.ResponseWriter, r *http.Request, actor loom.Actor, q logRequest) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	if err := q.readAfter(r); err != nil {
		return err
	}
	if page.Limit == 0 {
		page.Limit = loom.DefaultPageLimit
	}
	lines, more := []wire.Line{}, true
	for more && len(lines) < page.Limit {
		var read []loom.LogLine
		in := clusters.LogInput{Attempt: q.attempt, After: q.after, Limit: page.Limit}
		if read, more, err = a.Clusters.Log(r.Context(), actor, q.ref, in); err != nil {
			return err
		}
		for i, line := range read {
			q.after = line.Seq
			if !holds(q.levels, line.Level) {
				continue
			}
			if lines = append(lines, wire.NewLine(line)); len(lines) == page.Limit {
				more = more || i < len(read)-1
				break
			}
		}
		if len(read) == 0 {
			break
		}
	}
	if more && len(lines) > 0 {
		linkPages(w, r, q.next(), "")
	}
	return answer(w, r, lines)
}

// cutOff ends a log that cannot be read on, half sent.
func (a *api) cutOff(r *http.Request, err error) {
	a.Log.Warn("a log was cut off while it was sent", "request_id", httpx.RequestID(r), "error", err.Error())
	panic(http.ErrAbortHandler) // the reader must see that it is not whole
}

// beginText is what stands above a plain text.
func beginText(w http.ResponseWriter) {
	w.Header().Set("Content-Type", mediaText+"; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
}

// rawText is what happens to a line in a plain text: without ?ansi=1 it loses what a
// terminal would obey.
func rawText(r *http.Request) (func(text string) string, error) {
	switch r.URL.Query().Get("ansi") {
	case "", "0":
		return loom.PlainText, nil
	case "1":
		return func(text string) string { return text }, nil
	}
	return nil, loom.InvalidFields([]loom.FieldError{{Field: "ansi", Message: "This is 1, or left out."}})
}

// rawLog sends the text of all lines that are stored by now.
func (a *api) rawLog(w http.ResponseWriter, r *http.Request, actor loom.Actor, q logRequest) error {
	if err := q.readAfter(r); err != nil {
		return err
	}
	for first := true; ; first = false {
		lines, more, err := a.Clusters.Log(r.Context(), actor, q.ref, clusters.LogInput{Attempt: q.attempt, After: q.after, Limit: logChunk})
		if err != nil {
			if !first {
				a.cutOff(r, err)
			}
			return err
		}
		if first {
			beginText(w)
		}
		for _, line := range lines {
			q.after = line.Seq
			if q.attempt == 0 {
				q.attempt = line.Attempt // a retry must not change the log half way
			}
			if holds(q.levels, line.Level) {
				if _, err := fmt.Fprintln(w, q.raw(line.Text)); err != nil {
					return nil
				}
			}
		}
		if !more {
			return nil
		}
	}
}

// followLog streams the lines that are stored and those that come, to the end of
// the task, or of the one attempt asked for. Without an attempt it begins with the
// newest and goes on to later ones. The id of an event is "attempt.seq"; after
// may also be a plain number of a line.
func (a *api) followLog(w http.ResponseWriter, r *http.Request, actor loom.Actor, q logRequest) error {
	task, err := a.Clusters.Task(r.Context(), actor, q.ref)
	if err != nil {
		return err
	}
	f := follower{api: a, r: r, actor: actor, logRequest: q, only: q.attempt > 0, pacer: newPacer(),
		same: clusters.TaskFilter{Node: task.Node, Service: task.Service, Action: task.Action}}
	if f.attempt == 0 {
		f.attempt = max(1, task.Attempt)
	}
	if err := f.resume(httpx.Cursor(r)); err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", mediaStream)
		return nil
	}
	wake, stop := a.Hub.FollowLog(task.Row)
	defer stop()
	if err := f.listen(); err != nil {
		return err
	}
	defer func() { f.signals.Close() }()
	if f.stream, err = httpx.NewStream(w, r); err != nil {
		return err
	}
	if err := f.checkKept(task.Task); err != nil {
		return nil // the client comes back
	}
	f.run(wake)
	return nil
}

// follower sends the log of a task to one client.
type follower struct {
	*api
	r      *http.Request
	actor  loom.Actor
	stream *httpx.Stream
	logRequest
	only    bool // the attempt that was asked for
	same    clusters.TaskFilter
	signals *live.Subscription
	pacer
}

// listen follows the signals of the operation, which tell when the task ends or
// begins anew; new lines come through Hub.FollowLog.
func (f *follower) listen() error {
	op := f.ref.Operation
	topics := []string{fmt.Sprintf("op:%s/%d", op.Cluster, op.Number)}
	signals, err := f.Hub.Subscribe(f.r.Context(), f.actor.Tenant, topics, "")
	if err != nil {
		return err
	}
	if f.signals != nil {
		f.signals.Close()
	}
	f.signals = signals
	return nil
}

// task reads the state of the task, without the plan around it.
func (f *follower) task(actor loom.Actor) (loom.Task, error) {
	tasks, err := f.Clusters.Tasks(f.r.Context(), actor, f.ref.Operation, f.same)
	if err != nil {
		return loom.Task{}, err
	}
	i := slices.IndexFunc(tasks, func(t loom.Task) bool { return t.Ref.Number == f.ref.Number })
	if i < 0 {
		return loom.Task{}, loom.NewError(loom.NotFound, "Task %s is gone.", f.ref)
	}
	return tasks[i], nil
}

// resume goes on behind a cursor.
func (f *follower) resume(cursor string) error {
	if cursor == "" {
		return nil
	}
	attempt, seq, both := strings.Cut(cursor, ".")
	if !both {
		attempt, seq = strconv.Itoa(f.attempt), cursor
	}
	n, err := strconv.ParseInt(attempt, 10, 32)
	s, seqErr := strconv.ParseInt(seq, 10, 32)
	if err != nil || seqErr != nil || n < 1 || s < 0 || f.only && int(n) != f.attempt {
		return notOfThisLog()
	}
	f.attempt, f.after = int(n), int(s)
	return nil
}

// run ends with the log, the client or the process.
func (f *follower) run(wake <-chan struct{}) {
	may := func(now loom.Actor) error {
		_, err := f.task(now)
		return err
	}
	f.loop(wake, 0, may, func() (time.Duration, bool) {
		ended, err := f.send()
		return 0, ended || err != nil
	})
}

// send sends all lines that are new and says whether the log is over. The state
// of the task is read before the lines: what is over then gets no more of them.
func (f *follower) send() (ended bool, err error) {
	for {
		task, err := f.task(f.actor)
		if err != nil {
			return f.fail(err)
		}
		if err := f.sendLines(); err != nil {
			return f.fail(err)
		}
		switch {
		case !f.only && task.Attempt > f.attempt: // it is being tried again
			f.attempt, f.after = f.attempt+1, 0
			if err := f.listen(); err != nil {
				return f.fail(err)
			}
			continue
		case f.over(task):
			return true, f.stream.End("done")
		}
		return false, nil
	}
}

// over says that no more lines will come: the task has ended or, where one try was
// asked for, that try has.
func (f *follower) over(task loom.Task) bool {
	if task.Status.Final() || !f.only {
		return task.Status.Final()
	}
	return task.Attempt > f.attempt || task.Attempt == f.attempt && task.Status != loom.TaskRunning
}

func (f *follower) sendLines() error {
	f.begin()
	for more := true; more; {
		if f.tooSlow(f.patience) {
			if err := f.skip(); err != nil {
				return err
			}
		}
		var lines []loom.LogLine
		var err error
		lines, more, err = f.Clusters.Log(f.r.Context(), f.actor, f.ref, clusters.LogInput{Attempt: f.attempt, After: f.after, Limit: logChunk})
		if err != nil {
			return err
		}
		for _, line := range lines {
			f.after = line.Seq
			f.sent(line.Time)
			if !holds(f.levels, line.Level) {
				continue
			}
			out := wire.NewLine(line)
			out.Attempt = line.Attempt
			if err := f.stream.Send(lineID(line.Attempt, line.Seq), "line", out); err != nil {
				return errors.Join(err, errStreamEnded)
			}
		}
	}
	f.atEnd()
	return nil
}

// fail ends the stream for a reader who lost his rights. After any other error
// the client comes back with its cursor.
func (f *follower) fail(err error) (ended bool, _ error) {
	switch loom.AsError(err).Kind {
	case loom.NotFound, loom.Forbidden:
		f.stream.End("forbidden") //nolint:errcheck // over either way
	case loom.Internal, loom.Unavailable:
		if f.r.Context().Err() == nil && !errors.Is(err, errStreamEnded) {
			f.Log.Warn("a log cannot be followed", "request_id", httpx.RequestID(f.r), "error", err.Error())
		}
	}
	return true, err
}
