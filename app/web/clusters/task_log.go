package clusters

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// logPage bounds the rows of one answer to a follower; an answer of 200 or more
// makes the script ask again at once.
const logPage = 1000

// aroundLine is how many lines are shown before those that a link names.
const aroundLine = 100

// taskLogModel is the log of one attempt: its tail, what lies before a line, what is
// around the lines that a link names, or what is found.
func (s *Server) taskLogModel(r *http.Request, actor loom.Actor, t clusters.TaskView, attempt int) (ui.LogModel, error) {
	q, page := r.URL.Query(), route.TaskAttempt(t.Ref, attempt)
	m := ui.LogModel{
		ID: "log", Label: fmt.Sprintf("Log of %s, attempt %d", clusterview.TaskText(t.Task), attempt), Raw: route.TaskLogRaw(t.Ref, attempt), At: page,
		Find: &ui.LogFind{Action: route.Task(t.Ref), Hidden: []string{"attempt", strconv.Itoa(attempt)}, Errors: route.Query(page, "errors", "1")},
	}
	var err error
	if m.Find.ErrorCount, err = s.errorCount(r, actor, t, attempt); err != nil {
		return m, err
	}
	if find := (clusters.FindInput{Contains: q.Get("find"), Errors: q.Get("errors") != "", Limit: logPage}); find.Contains != "" || find.Errors {
		err = s.findInTask(r, actor, t, attempt, find, &m)
		return m, err
	}
	in := clusters.LogInput{Attempt: attempt, Tail: logTail}
	first, last := lineRange(q.Get("lines"))
	before, err := loom.ParseNumber(q.Get("before"))
	earlier := err == nil && before > 0
	switch {
	case first > 0:
		in = clusters.LogInput{Attempt: attempt, After: max(0, first-aroundLine-1), Limit: min(max(logPage, last-first+2*aroundLine), 5*logPage)}
	case earlier:
		in = clusters.LogInput{Attempt: attempt, Before: before, Limit: logPage}
	}
	lines, more, err := s.Clusters.Log(r.Context(), actor, t.Ref, in)
	if err != nil {
		return m, err
	}
	m.Lines = logLines(lines)
	for i := range m.Lines {
		m.Lines[i].Marked = m.Lines[i].Seq >= first && m.Lines[i].Seq <= last
	}
	if len(lines) > 0 && (first == 0 && more || first > 0 && lines[0].Seq > 1) {
		at := strconv.Itoa(lines[0].Seq)
		m.Earlier = route.Query(page, "before", at)
		m.EarlierRows = route.Query(route.TaskLog(t.Ref, attempt), "before", at)
	}
	a := attemptOf(t, attempt)
	switch {
	case first > 0 && more, earlier:
		m.Later = page
		m.Note = "The end of the log is on another page."
	case a.Status == loom.AttemptRunning:
		m.More, m.Topic = route.TaskLog(t.Ref, attempt), route.TopicLog(t.Ref, attempt)
	case a.Number > 0 && !a.Ended.IsZero():
		m.Note = "The log ended " + ui.Relative(a.Ended, s.Now()) + "."
	}
	return m, nil
}

// errorCount is how many lines of errors the log of an attempt has, as far as a page
// lists them.
func (s *Server) errorCount(r *http.Request, actor loom.Actor, t clusters.TaskView, attempt int) (string, error) {
	n, err := s.Clusters.CountLogErrors(r.Context(), actor, t.Task, attempt, logPage+1)
	if n > logPage {
		return strconv.Itoa(logPage) + "+", err
	}
	return strconv.Itoa(n), err
}

// lineRange reads "120" or "120-131", 0 for anything else.
func lineRange(text string) (first, last int) {
	from, to, ranged := strings.Cut(text, "-")
	first, err := loom.ParseNumber(from)
	if err != nil || first < 1 || first > 1<<30 {
		return 0, 0
	}
	if last, err = loom.ParseNumber(to); !ranged || err != nil || last < first || last > 1<<30 {
		last = first
	}
	return first, last
}

// findInTask fills the log with the lines that a search finds; each leads to where it
// stands.
func (s *Server) findInTask(r *http.Request, actor loom.Actor, t clusters.TaskView, attempt int, find clusters.FindInput, m *ui.LogModel) error {
	page := route.TaskAttempt(t.Ref, attempt)
	m.Find.On, m.Find.Value, m.Find.Clear, m.At = true, find.Contains, page, ""
	lines, more, err := s.Clusters.FindLog(r.Context(), actor, t.Ref, attempt, find)
	if fields := loom.AsError(err).Fields; err != nil && len(fields) > 0 && fields[0].Field == "find" {
		m.Find.Error = fields[0].Message
		return nil
	}
	if err != nil {
		return err
	}
	m.Lines = logLines(lines)
	for i := range m.Lines {
		n := strconv.Itoa(m.Lines[i].Seq)
		m.Lines[i].SourceHref = route.Query(page, "lines", n) + "#L" + n
	}
	m.Find.Note = ui.Count(len(lines), "line", "lines")
	if more {
		m.Find.Note = "the first " + m.Find.Note
	}
	m.Note = "Each number leads to the line among its neighbours."
	return nil
}

func logLines(lines []loom.LogLine) []ui.LogLine {
	out := make([]ui.LogLine, len(lines))
	for i, l := range lines {
		out[i] = ui.LogLine{Seq: l.Seq, Time: l.Time, Stream: l.Stream, Level: l.Level, Text: l.Text}
	}
	return out
}

// logInput reads attempt, after and before of a request for rows.
func logInput(r *http.Request) clusters.LogInput {
	in := clusters.LogInput{Limit: logPage}
	q := r.URL.Query()
	if n, err := loom.ParseNumber(q.Get("attempt")); err == nil {
		in.Attempt = n
	}
	if n, err := loom.ParseNumber(q.Get("after")); err == nil {
		in.After = n
	}
	if n, err := loom.ParseNumber(q.Get("before")); err == nil && n > 0 {
		in.After, in.Before = 0, n
	}
	return in
}

// taskLog gives the rows after a line, for a page that follows, or those before one.
func (s *Server) taskLog(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := pathTask(r)
	if err != nil {
		return err
	}
	in := logInput(r)
	lines, more, err := s.Clusters.Log(r.Context(), actor, ref, in)
	if err != nil {
		return err
	}
	if in.Before > 0 {
		m := ui.LogModel{Lines: logLines(lines)}
		if more && len(lines) > 0 {
			at := strconv.Itoa(lines[0].Seq)
			m.Earlier = route.Query(route.TaskAttempt(ref, in.Attempt), "before", at)
			m.EarlierRows = route.Query(route.TaskLog(ref, in.Attempt), "before", at)
		}
		return s.earlierRows(w, r, m)
	}
	if len(lines) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	rows := ui.LogLines(logLines(lines))
	if more && in.After > 0 {
		gap, fresh, err := s.skipBehind(r, actor, ref, in)
		if err != nil {
			return err
		}
		if gap != nil {
			rows = templ.Join(gap, ui.LogLines(logLines(fresh)))
		}
	}
	return s.Fragment(w, r, http.StatusOK, rows)
}

// skipBehind passes over what a reader who lags far behind a log would not be able to
// read in time, and gives a row that says so with the newest lines; nil where there is
// nothing to pass over.
func (s *Server) skipBehind(r *http.Request, actor loom.Actor, ref loom.TaskRef, in clusters.LogInput) (templ.Component, []loom.LogLine, error) {
	gap, err := s.Clusters.SkipLog(r.Context(), actor, ref, clusters.LogInput{Attempt: in.Attempt, After: in.After, Tail: logTail}, nil)
	if err != nil || gap.Lines == 0 {
		return nil, nil, err
	}
	lines, _, err := s.Clusters.Log(r.Context(), actor, ref, clusters.LogInput{Attempt: in.Attempt, After: gap.Seq, Limit: logPage})
	first := strconv.Itoa(in.After + 1)
	return ui.LogGap(ui.Count(gap.Lines, "line", "lines")+" skipped", route.Query(route.TaskAttempt(ref, in.Attempt), "lines", first)+"#L"+first), lines, err
}

// taskLogRaw is the whole log of an attempt as plain text, read in pages so that
// it never stands in memory at once; it works while the log grows. With
// ?times=1 each line begins with its time, with ?download=1 it becomes a file, with
// ?ansi=1 it keeps control characters.
func (s *Server) taskLogRaw(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := pathTask(r)
	if err != nil {
		return err
	}
	in := logInput(r)
	in.Before = 0
	lines, more, err := s.Clusters.Log(r.Context(), actor, ref, in)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	times, ansi := r.URL.Query().Get("times") != "", r.URL.Query().Get("ansi") == "1"
	disposition := "inline"
	if r.URL.Query().Get("download") != "" {
		disposition = "attachment"
	}
	w.Header().Set("Content-Disposition", fmt.Sprintf("%s; filename=%q", disposition, "loom-"+ref.String()+".log"))
	for {
		for _, l := range lines {
			if !ansi {
				l.Text = loom.PlainText(l.Text)
			}
			if err := writeLogLine(w, l, times); err != nil {
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
