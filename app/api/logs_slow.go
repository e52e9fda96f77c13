package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/loom"
)

// gapTail is how many of the newest lines a reader still gets who was too slow.
const gapTail = 100

// pacer tells when the reader of a log is too slow. What was stored before it came
// may take as long as it takes; what comes after has to be taken in time. Lines wait
// in the database alone, so a slow reader costs no memory.
type pacer struct {
	came, began time.Time
	// live says that the reader has got to lines that came after it.
	live bool
	// some says that lines were sent since began.
	some bool
}

func newPacer() pacer { return pacer{came: time.Now()} }

// begin notes that the reader is about to get what is new.
func (p *pacer) begin() { p.began, p.some = time.Now(), false }

// sent notes a line that was written at a time, by the clock of its host.
func (p *pacer) sent(at time.Time) {
	p.some = true
	p.live = p.live || at.After(p.came)
}

// atEnd notes that the reader has got all there is.
func (p *pacer) atEnd() { p.live = true }

// tooSlow is asked when there are more lines than were read at once.
func (p *pacer) tooSlow(patience time.Duration) bool {
	return p.live && p.some && time.Since(p.began) > patience
}

// lineID is the id of the event of a line in the log of a task.
func lineID(attempt, seq int) string { return fmt.Sprintf("%d.%d", attempt, seq) }

// readAfter reads the parameter after: the number of a line, or the id of an event,
// which also names the try.
func (q *logRequest) readAfter(r *http.Request) (err error) {
	text := r.URL.Query().Get("after")
	attempt, seq, both := strings.Cut(text, ".")
	if !both {
		q.after, err = queryInt(r, "after")
		return err
	}
	n, err := strconv.ParseInt(attempt, 10, 32)
	s, seqErr := strconv.ParseInt(seq, 10, 32)
	if err != nil || seqErr != nil || n < 1 || s < 0 || q.attempt > 0 && int(n) != q.attempt {
		return notOfThisLog()
	}
	q.attempt, q.after, q.byEvent = int(n), int(s), true
	return nil
}

func notOfThisLog() error {
	return loom.InvalidFields([]loom.FieldError{{Field: "after", Message: "This is not the id of an event of this log, nor the number of a line."}})
}

// next is the value of after for the page behind what was read.
func (q *logRequest) next() string {
	if q.byEvent {
		return lineID(q.attempt, q.after)
	}
	return strconv.Itoa(q.after)
}

// checkKept says reset and begins anew where the line of the cursor is not kept any
// more: logs are trimmed, and of a long one the middle is cut out.
func (f *follower) checkKept(task loom.Task) error {
	if f.after == 0 {
		return nil
	}
	lines, _, err := f.Clusters.Log(f.r.Context(), f.actor, f.ref, clusters.LogInput{Attempt: f.attempt, After: f.after - 1, Limit: 1})
	if err != nil {
		_, err = f.fail(err)
		return err
	}
	switch {
	case len(lines) == 1 && lines[0].Seq == f.after:
		return nil
	case len(lines) == 0 && task.Attempt <= f.attempt && !f.over(task):
		return nil // the line is still to come
	}
	f.after = 0
	return f.stream.Send(lineID(f.attempt, 0), "reset", struct{}{})
}

// skip passes over all but the newest lines and says where they are to be had.
func (f *follower) skip() error {
	gap, err := f.Clusters.SkipLog(f.r.Context(), f.actor, f.ref, clusters.LogInput{Attempt: f.attempt, After: f.after, Tail: gapTail}, f.levels)
	if err != nil || gap.Lines == 0 {
		return err
	}
	before := lineID(f.attempt, f.after)
	f.after = gap.Seq
	return f.sendGap(lineID(f.attempt, f.after), gap.Lines, before)
}

// skip passes over all but the newest lines and says where they are to be had.
func (f *severalFollower) skip() error {
	in := f.in
	in.Limit = gapTail
	gap, err := f.Clusters.SkipInterleaved(f.r.Context(), f.actor, f.of, in)
	if err != nil || gap.Lines == 0 {
		return err
	}
	f.in.After = gap.Cursor
	return f.sendGap(gap.Cursor, gap.Lines, in.After)
}

func (f *follower) sendGap(id string, skipped int, after string) error {
	f.begin() // the next is judged on its own
	if err := f.stream.Send(id, "gap", wire.Gap{Skipped: skipped, After: after}); err != nil {
		return errors.Join(err, errStreamEnded)
	}
	return nil
}
