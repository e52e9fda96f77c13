package clusters

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// lookEvery is after how many seconds a log of several tasks is looked at again: no
// topic tells of its lines.
const lookEvery = 3

// wholeLog is the log of an operation or a node, interleaved by time.
type wholeLog struct {
	source clusters.LogSource
	label  string
	// url is its page.
	url string
	// operation says that the lines are of several operations, which they name then.
	operations bool
	// names are the tasks in words, where they are known.
	names map[int]string
}

// lines are rows that say where they come from.
func (l *wholeLog) lines(log clusters.InterleavedLog) []ui.LogLine {
	out := make([]ui.LogLine, len(log.Lines))
	for i, line := range log.Lines {
		source := strconv.Itoa(line.Task.Number)
		if name := l.names[line.Task.Number]; name != "" && !l.operations {
			source += " " + name
		}
		if l.operations {
			source = fmt.Sprintf("operation %d, task %d", line.Task.Operation.Number, line.Task.Number)
		} else if line.Attempt > 1 {
			number, rest, _ := strings.Cut(source, " ")
			source = fmt.Sprintf("%s attempt %d, %s", number, line.Attempt, rest)
		}
		out[i] = ui.LogLine{
			Seq: line.Seq, Time: line.Time, Stream: line.Stream, Level: line.Level, Text: line.Text, Cursor: line.Cursor,
			Source: source, SourceHref: route.Query(route.TaskAttempt(line.Task, line.Attempt), "lines", strconv.Itoa(line.Seq)) + "#L" + strconv.Itoa(line.Seq),
		}
	}
	return out
}

// model reads what the query asks for: the end, what is before a cursor, or what is
// found.
func (s *Server) wholeLogModel(r *http.Request, actor loom.Actor, l *wholeLog) (ui.LogModel, error) {
	q := r.URL.Query()
	m := ui.LogModel{ID: "log", Label: l.label}
	find := clusters.FindInput{Contains: q.Get("find"), Errors: q.Get("errors") != "", Limit: logTail}
	before := q.Get("before")
	if before != "" {
		find.Limit = logPage
	}
	log, err := s.Clusters.InterleavedBack(r.Context(), actor, l.source, before, find)
	m.Find = &ui.LogFind{Action: l.url, Value: find.Contains, Errors: route.Query(l.url, "errors", "1"), On: find.Contains != "" || find.Errors}
	if fields := loom.AsError(err).Fields; err != nil && len(fields) > 0 && fields[0].Field == "find" {
		m.Find.Error = fields[0].Message
		err = nil
	}
	if err != nil {
		return m, err
	}
	m.Lines = l.lines(log)
	if m.Find.On {
		m.Find.Clear, m.Find.Note = l.url, ui.Count(len(m.Lines), "line", "lines")
		if log.More {
			m.Find.Note = "the last " + m.Find.Note
		}
	}
	if log.More && len(m.Lines) > 0 {
		at := []string{"before", m.Lines[0].Cursor, "find", find.Contains}
		if find.Errors {
			at = append(at, "errors", "1")
		}
		m.Earlier = route.Query(l.url, at...)
		m.EarlierRows = route.Query(m.Earlier, "rows", "1")
	}
	switch {
	case before != "":
		m.Note = "These are earlier lines; open the log again for the end."
		m.Later = l.url
	case m.Find.On:
	case log.Over:
		m.Note = "End of log."
	default:
		m.More, m.Every = route.Query(l.url, "rows", "1"), lookEvery
	}
	return m, nil
}

// logRows answers a script that asks for rows alone: those after a cursor, or those
// before one with where the next are found.
func (s *Server) logRows(w http.ResponseWriter, r *http.Request, actor loom.Actor, l *wholeLog) error {
	q := r.URL.Query()
	if q.Get("before") != "" {
		m, err := s.wholeLogModel(r, actor, l)
		if err != nil {
			return err
		}
		return s.earlierRows(w, r, m)
	}
	after := q.Get("after")
	if after == "0" { // of a page without a line
		after = ""
	}
	log, err := s.Clusters.Interleaved(r.Context(), actor, l.source, clusters.InterleavedInput{After: after, Limit: logPage})
	if err == nil && log.Over && log.Waiting {
		log, err = s.Clusters.Interleaved(r.Context(), actor, l.source, clusters.InterleavedInput{After: after, Limit: logPage, Whole: true})
	}
	if err != nil {
		return err
	}
	if len(log.Lines) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.Fragment(w, r, http.StatusOK, ui.LogLines(l.lines(log)))
}

// earlierRows answers with rows, and tells the script where those before them are.
func (s *Server) earlierRows(w http.ResponseWriter, r *http.Request, m ui.LogModel) error {
	if m.Earlier != "" {
		w.Header().Set("Loom-Earlier", m.Earlier)
		w.Header().Set("Loom-Earlier-Rows", m.EarlierRows)
	}
	return s.Fragment(w, r, http.StatusOK, ui.LogLines(m.Lines))
}

// operationLog is the log of all tasks of an operation.
func (s *Server) operationLog(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, err := s.pathOperation(r, actor)
	if err != nil {
		return err
	}
	q := readTaskQuery(r.URL.Query())
	l := &wholeLog{
		source: clusters.LogSource{Operation: op.Ref}, url: q.url(route.OperationLog(op.Ref)),
		label: fmt.Sprintf("Log of operation %d", op.Ref.Number),
	}
	if q.filtered() {
		if l.source.Tasks, err = s.filterNumbers(r.Context(), actor, op.Ref, q); err != nil {
			return err
		}
	}
	if l.names, err = s.taskNames(r.Context(), actor, op); err != nil {
		return err
	}
	if r.URL.Query().Get("rows") != "" {
		return s.logRows(w, r, actor, l)
	}
	m, err := s.wholeLogModel(r, actor, l)
	if err != nil {
		return err
	}
	return s.showOperation(w, r, actor, op, "log", clusterview.OperationView{Log: &m})
}

// filterNumbers are the numbers of the tasks that pass; where none does, one that no task has.
func (s *Server) filterNumbers(ctx context.Context, actor loom.Actor, ref loom.OperationRef, q taskQuery) ([]int, error) {
	tasks, err := s.filterTasks(ctx, actor, ref, q)
	numbers := []int{0}
	for _, t := range tasks {
		numbers = append(numbers, t.Ref.Number)
	}
	return numbers, err
}

// namedTasks is up to how many tasks of an operation are named in its log; lines of
// larger ones have numbers alone.
const namedTasks = 2000

func (s *Server) taskNames(ctx context.Context, actor loom.Actor, op loom.Operation) (map[int]string, error) {
	if op.Progress().Total > namedTasks {
		return nil, nil
	}
	tasks, err := s.Clusters.Tasks(ctx, actor, op.Ref, clusters.TaskFilter{})
	names := make(map[int]string, len(tasks))
	for _, t := range tasks {
		names[t.Ref.Number] = briefTask(t)
	}
	return names, err
}

// briefTask is a task in words that fit the narrow column of a log, its node by number:
// "install nginx on 1001".
func briefTask(t loom.Task) string {
	where := strconv.Itoa(t.NodeNumber)
	if t.NodeNumber == 0 {
		where = ui.NodeNumber(t.NodeHostname)
	}
	return strings.TrimSpace(string(t.Action)+" "+ui.MiddleEllipsis(t.Service, 14)) + " on " + where
}

// nodeLog is the log of all that was done to a node.
func (s *Server) nodeLog(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, n, err := s.pathNode(r, actor)
	if err != nil {
		return err
	}
	short := ui.NodeNumber(n.Hostname)
	l := &wholeLog{
		source: clusters.LogSource{Operation: loom.OperationRef{Cluster: v.ID}, Node: n.ID}, url: route.NodeLog(v.ID, n.ID),
		label: "Log of " + short, operations: true,
	}
	if r.URL.Query().Get("rows") != "" {
		return s.logRows(w, r, actor, l)
	}
	m, err := s.wholeLogModel(r, actor, l)
	if err != nil {
		return err
	}
	frame := clusterPage("Log of "+short, "Nodes", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: "Nodes", Href: route.ClusterNodes(v.ID)},
		ui.Crumb{Label: short, Href: route.Node(v.ID, n.ID)}, ui.Crumb{Label: "Log"})
	page.Reloading(r, &frame, m.More != "")
	return s.Render(w, r, actor, http.StatusOK, frame, clusterview.NodeLogPage(clusterview.NodeLogModel{Hostname: short, Node: route.Node(v.ID, n.ID), Log: m}))
}
