package clusters

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/planner/draw"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// stageList lists the tasks of an operation that pass the filters, by stage; groups of them
// where there are many.
func (s *Server) stageList(ctx context.Context, actor loom.Actor, op loom.Operation, tasks planTasks, q taskQuery) ([]clusterview.Stage, error) {
	if len(tasks.tasks) > draw.GroupAbove && q.node == "" {
		groups, err := s.Clusters.TaskGroups(ctx, actor, op.Ref)
		groups = slices.DeleteFunc(slices.Clone(groups), func(g clusters.TaskGroup) bool {
			return !q.matchesGroup(g.Level, g.Action, g.Service, g.Status, g.Again > 0)
		})
		return withPath(op, stageGroups(op.Ref, groups)), err
	}
	return withPath(op, stages(slices.DeleteFunc(tasks.all(), func(t loom.Task) bool { return !q.matches(&t) }))), nil
}

// withPath leaves what is on the longest path marked only while the operation runs, and
// where its plan branches: else the mark says nothing.
func withPath(op loom.Operation, stages []clusterview.Stage) []clusterview.Stage {
	branches := false
	for _, st := range stages {
		for _, t := range st.Tasks {
			branches = branches || !t.Critical
		}
		for _, g := range st.Groups {
			branches = branches || !g.Critical
		}
	}
	if branches && !op.Status.Final() {
		return stages
	}
	for _, st := range stages {
		for i := range st.Tasks {
			st.Tasks[i].Critical = false
		}
		for i := range st.Groups {
			st.Groups[i].Critical = false
		}
	}
	return stages
}

func stages(tasks []loom.Task) []clusterview.Stage {
	var out []clusterview.Stage
	for _, t := range tasks {
		for len(out) < t.Level {
			out = append(out, clusterview.Stage{Number: len(out) + 1})
		}
		st := &out[t.Level-1]
		st.Count++
		st.Tasks = append(st.Tasks, t)
	}
	return out
}

// sumOfTasks gathers tasks that do the same over their states.
type sumOfTasks struct {
	count    map[loom.TaskStatus]int
	total    int
	again    int
	critical bool
}

func (t *sumOfTasks) add(g *clusters.TaskGroup) {
	if t.count == nil {
		t.count = map[loom.TaskStatus]int{}
	}
	t.count[g.Status] += g.Count
	t.total += g.Count
	t.again += g.Again
	t.critical = t.critical || g.Critical
}

// state is the one that matters most, detail how many are in which.
func (t *sumOfTasks) state() (ui.State, string) {
	var parts []string
	worst := ui.TaskState(loom.TaskComplete)
	add := func(state ui.State, n int) {
		if n <= 0 {
			return
		}
		if len(parts) == 0 {
			worst = state
		}
		parts = append(parts, strconv.Itoa(n)+" "+strings.ToLower(state.Word))
	}
	for _, status := range []loom.TaskStatus{loom.TaskFailed, loom.TaskRunning} {
		add(ui.TaskState(status), t.count[status])
	}
	add(ui.RetryState(), t.again)
	begun := len(parts) > 0 || t.count[loom.TaskReady] > 0
	add(ui.TaskState(loom.TaskReady), t.count[loom.TaskReady]+t.count[loom.TaskBlocked]-t.again)
	for _, status := range []loom.TaskStatus{loom.TaskDropped, loom.TaskSkipped, loom.TaskComplete} {
		add(ui.TaskState(status), t.count[status])
	}
	if !begun && t.count[loom.TaskBlocked] > 0 && t.count[loom.TaskComplete] > 0 {
		worst = ui.TaskState(loom.TaskRunning)
	}
	return worst, strings.Join(parts, ", ")
}

// stageGroups lists what the stages of a large plan do.
func stageGroups(ref loom.OperationRef, groups []clusters.TaskGroup) []clusterview.Stage {
	type step struct {
		level   int
		action  loom.TaskAction
		service string
		undo    bool
	}
	sums := map[step]*sumOfTasks{}
	var order []step
	for i := range groups {
		g := &groups[i]
		key := step{g.Level, g.Action, g.Service, g.Undo}
		if sums[key] == nil {
			sums[key] = &sumOfTasks{}
			order = append(order, key)
		}
		sums[key].add(g)
	}
	var out []clusterview.Stage
	for _, key := range order {
		for len(out) < key.level {
			out = append(out, clusterview.Stage{Number: len(out) + 1})
		}
		sum := sums[key]
		g := clusterview.StageGroup{Text: stepText(key.action, key.service, key.undo) + fmt.Sprintf(" × %d", sum.total), Critical: sum.critical, Href: route.Query(
			route.OperationTasks(ref), "stage", strconv.Itoa(key.level), "action", string(key.action), "service", key.service)}
		g.State, g.Summary = sum.state()
		st := &out[key.level-1]
		st.Count += sum.total
		st.Groups = append(st.Groups, g)
	}
	return out
}

func stepText(action loom.TaskAction, service string, undo bool) string {
	text := strings.TrimSpace(string(action) + " " + service)
	if undo {
		text += " to undo"
	}
	return text
}
