package web

import (
	"context"
	"strconv"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// retriesRead bounds the tasks of an operation that are looked at as tried again.
const retriesRead = 1000

// nextTries reads which tasks of an operation are tried again, what is due first first.
// They are looked for only where its counts say that there are any.
func nextTries(ctx context.Context, clusters *lifecycle.Clusters, actor loom.Actor, op loom.Operation) ([]lifecycle.NextTry, error) {
	if op.Again == 0 || op.Status.Final() {
		return nil, nil
	}
	return clusters.NextTries(ctx, actor, op.Ref, retriesRead)
}

// retries names the tasks that failed and are tried again, the first few, with the logs
// of what failed.
func (s *Server) retries(ctx context.Context, actor loom.Actor, op loom.Operation) (clusterview.RetryList, error) {
	tries, err := nextTries(ctx, s.Clusters, actor, op)
	if len(tries) == 0 {
		return clusterview.RetryList{}, err
	}
	m := clusterview.RetryList{Count: max(op.Again, len(tries))}
	for _, try := range tries[:min(len(tries), runningShown)] {
		ref := loom.TaskRef{Operation: op.Ref, Number: try.Number}
		where := shortHost(try.Hostname)
		if where == "" {
			where = "node " + strconv.Itoa(try.NodeNumber)
		}
		when := tryTime(ctx, try)
		if try.Message != "" {
			when += ", after: " + try.Message
		}
		m.Tasks = append(m.Tasks, clusterview.RetryLink{
			Text: strings.TrimSpace(try.Action+" "+try.Service) + " on " + where, Href: route.Task(ref), When: when,
			Log: route.TaskAttempt(ref, try.Attempt) + "#log", LogText: "Log of attempt " + strconv.Itoa(try.Attempt),
			Error: lastLines(try.Error, errorLines),
			Actions: []ui.ButtonModel{
				{Label: "Retry now", Icon: "rotate", Small: true, FormAction: route.TaskVerb(ref, "retry-now"), Attrs: titled("Begins the next try of task " + strconv.Itoa(try.Number))},
				{Label: "Stop retrying", Icon: "ban", Small: true, FormAction: route.TaskVerb(ref, "stop-retrying"), Attrs: titled("Gives up task " + strconv.Itoa(try.Number) + ", and with it the operation")},
			},
		})
	}
	if m.Count > len(m.Tasks) {
		m.All = route.Query(route.OperationTasks(op.Ref), "status", "waiting")
	}
	return m, nil
}

// errorLines is how much of what a task that is tried again said is shown.
const errorLines = 3

// lastLines are the last lines of a text that are not empty.
func lastLines(text string, n int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// tryTime says which attempt comes when: "at 18:30:08 UTC as attempt 2".
func tryTime(ctx context.Context, try lifecycle.NextTry) string {
	return "at " + try.At.In(loom.ZoneOf(ctx)).Format("15:04:05 MST") + " as attempt " + strconv.Itoa(try.Attempt+1)
}
