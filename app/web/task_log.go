package web

import (
	"fmt"
	"net/http"
	"strconv"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/route"
	"loom/views/ui"
)

// logPage bounds the rows of one answer to a follower; an answer of 200 or more
// makes the script ask again at once.
const logPage = 1000

// taskLogModel is the log of one attempt: its tail, or what lies before a line.
func (s *Server) taskLogModel(r *http.Request, actor loom.Actor, t lifecycle.TaskView, attempt int) (ui.LogModel, error) {
	m := ui.LogModel{
		ID: "log", Label: fmt.Sprintf("Log of %s, attempt %d", taskText(t.Task), attempt), Raw: route.TaskLogRaw(t.Ref, attempt),
	}
	in := lifecycle.LogInput{Attempt: attempt, Tail: logTail}
	before, err := strconv.Atoi(r.URL.Query().Get("before"))
	earlier := err == nil && before > 0
	if earlier {
		in = lifecycle.LogInput{Attempt: attempt, Before: before, Limit: logPage}
	}
	lines, more, err := s.Clusters.Log(r.Context(), actor, t.Ref, in)
	if err != nil {
		return m, err
	}
	m.Lines = logLines(lines)
	if more && len(lines) > 0 {
		m.Earlier = route.Query(route.TaskAttempt(t.Ref, attempt), "before", strconv.Itoa(lines[0].Seq))
	}
	a := attemptOf(t, attempt)
	switch {
	case earlier:
		m.Note = "These are earlier lines; reload the page of the task for the end."
	case a.Status == loom.AttemptRunning:
		m.More, m.Topic = route.TaskLog(t.Ref, attempt), route.TopicLog(t.Ref, attempt)
	case a.Number > 0 && !a.Ended.IsZero():
		m.Note = fmt.Sprintf("The log ended %s with exit status %d.", ui.Relative(a.Ended, s.now()), a.Code)
	}
	return m, nil
}

func logLines(lines []loom.LogLine) []ui.LogLine {
	out := make([]ui.LogLine, len(lines))
	for i, l := range lines {
		out[i] = ui.LogLine{Seq: l.Seq, Clock: l.Time.Format("15:04:05.000"), Stream: l.Stream, Level: l.Level, Text: l.Text}
	}
	return out
}

// logInput reads attempt and after of a request for rows.
func logInput(r *http.Request) lifecycle.LogInput {
	in := lifecycle.LogInput{Limit: logPage}
	q := r.URL.Query()
	if n, err := strconv.Atoi(q.Get("attempt")); err == nil {
		in.Attempt = n
	}
	if n, err := strconv.Atoi(q.Get("after")); err == nil {
		in.After = n
	}
	return in
}

// taskLog gives the rows after a line, for a page that follows.
func (s *Server) taskLog(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := pathTask(r)
	if err != nil {
		return err
	}
	lines, _, err := s.Clusters.Log(r.Context(), actor, ref, logInput(r))
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.fragment(w, r, http.StatusOK, ui.LogLines(logLines(lines)))
}

// taskLogRaw is the whole log of an attempt as plain text, read in pages so that
// it never stands in memory at once; it works while the log grows. With
// ?times=1 each line begins with its time, with ?download=1 it becomes a file.
func (s *Server) taskLogRaw(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := pathTask(r)
	if err != nil {
		return err
	}
	in := logInput(r)
	lines, more, err := s.Clusters.Log(r.Context(), actor, ref, in)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	disposition := "inline"
	if r.URL.Query().Get("download") != "" {
		disposition = "attachment"
	}
	w.Header().Set("Content-Disposition", fmt.Sprintf("%s; filename=%q", disposition, "loom-"+ref.String()+".log"))
	for {
		for _, l := range lines {
			if err := writeLogLine(w, l, r.URL.Query().Get("times") != ""); err != nil {
				return nil //nolint:nilerr // the client is gone
			}
			in.After = l.Seq
		}
		if !more || len(lines) == 0 {
			return nil
		}
		if lines, more, err = s.Clusters.Log(r.Context(), actor, ref, in); err != nil {
			// The answer has begun: the text ends here, and says so.
			fmt.Fprintln(w, "The rest of the log could not be read.") //nolint:errcheck // the client may be gone
			return nil
		}
	}
}

func writeLogLine(w http.ResponseWriter, l loom.LogLine, times bool) error {
	text := l.Text + "\n"
	if times {
		text = l.Time.UTC().Format("2006-01-02T15:04:05.000Z") + " " + l.Stream + " " + text
	}
	_, err := w.Write([]byte(text))
	return err
}
