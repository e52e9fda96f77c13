package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/clusterview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// pluginOf names what carries a task out.
func pluginOf(v clusters.ClusterView, t loom.Task) string {
	switch {
	case t.Service != "":
		return v.Services[t.Service].Provisioner.Actions[t.Action].Type
	case t.Action == loom.ActionBootstrap:
		return "automators of the node"
	case t.Action == loom.ActionKeys:
		return "Loom"
	}
	return v.Provider.Type
}

// taskInput is what the plugin is given, as far as it may be shown: of a service the
// fields of its action, of a machine those of the provider. Secrets are masked.
func taskInput(v clusters.ClusterView, t loom.Task) clusterview.TaskInput {
	m := clusterview.TaskInput{Config: route.Query(route.ClusterTab(v.ID, "config"), "macros", "expanded", "node", string(t.Node))}
	fields := map[string]any{}
	if t.Service != "" {
		for key, value := range v.Services[t.Service].Provisioner.Actions[t.Action].Fields {
			fields[key] = value
		}
	} else if t.Action != loom.ActionBootstrap && t.Action != loom.ActionKeys {
		maps.Copy(fields, v.Provider.Fields)
	}
	m.Fields = shownFields(fields)
	return m
}

// shownFields lists what a plugin is given or gives back, by name; secrets are masked.
func shownFields(fields map[string]any) []ui.Def {
	var list []ui.Def
	shown, _ := loom.MaskSecrets(fields).(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(shown)) {
		list = append(list, ui.Def{Term: key, Text: factText(shown[key]), Mono: true})
	}
	return list
}

// scriptButton leads an administrator from a task to the script that it runs, where that
// is a file: its editor, which leads back. Nil for others.
func (s *Server) scriptButton(ctx context.Context, actor loom.Actor, v clusters.ClusterView, t loom.Task) (*ui.ButtonModel, error) {
	action := v.Services[t.Service].Provisioner.Actions[t.Action]
	script := action.Fields["script"]
	if actor.May(loom.Publish.Reading(), actor.InTenant()) != nil || script == "" {
		return nil, nil
	}
	ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: action.Type, Type: "scripts", Name: script}
	versions, err := s.Catalog.Resources(ctx, actor, catalog.ResourceFilter{ResourceRef: ref})
	if errors.Is(err, loom.NotFound) || errors.Is(err, loom.Invalid) || err == nil && len(versions) == 0 {
		return nil, nil // it comes with the plugin, or is a path on the machine
	}
	if err != nil {
		return nil, err
	}
	return &ui.ButtonModel{Label: "Edit " + script, Icon: "edit", Href: adminview.FileAct(adminview.FileShow, ref, 0, adminview.FieldTask, t.Ref.String())}, nil
}

// logTail is how many lines of a log a page opens with.
const logTail = 500

func (s *Server) taskShow(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := pathTask(r)
	if err != nil {
		return err
	}
	t, err := s.Clusters.Task(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	shown := t.Attempt
	if n, err := loom.ParseNumber(r.URL.Query().Get("attempt")); err == nil && n > 0 {
		shown = n
	}
	m := clusterview.TaskModel{Waiting: len(t.Attempts) == 0}
	v, err := s.briefCluster(r.Context(), actor, ref.Operation.Cluster)
	if err != nil {
		return err
	}
	op, err := s.Clusters.Operation(r.Context(), actor, ref.Operation)
	if err != nil {
		return err
	}
	if m.Panel, err = s.taskPanelModel(r.Context(), actor, v, op, t, shown); err != nil {
		return err
	}
	m.Input = taskInput(v, t.Task)
	m.Tabs = attemptTabs(t, shown)
	if m.Log, err = s.taskLogModel(r, actor, t, shown); err != nil {
		return err
	}
	if page.Wants(r, clusterview.TaskSideID) {
		return s.Fragment(w, r, http.StatusOK, clusterview.TaskSidePart(besidePlan(m)))
	}
	page := s.taskFrame(r, v, op, t)
	page.Topics = append(page.Topics, m.Panel.Topics()[1:]...)
	if m.Log.Topic != "" && !m.Panel.Speaks {
		page.Topics = append(page.Topics, m.Log.Topic)
	}
	// A log of the past is not read by reloading.
	if page.Refresh > 0 && t.Status.Final() {
		page.Refresh = 0
	}
	return s.Render(w, r, actor, http.StatusOK, page, clusterview.TaskPage(m))
}

// besidePlan makes a task's page a part of the page of its plan, whose topics do not
// tell of its log, and which may have a log of its own.
func besidePlan(m clusterview.TaskModel) clusterview.TaskModel {
	m.Panel.Side, m.Log.ID = true, "task-log"
	if m.Log.More != "" {
		m.Log.Topic, m.Log.Every = "", lookEvery
	}
	return m
}

// taskFrame is the frame of a task's page; its title begins as that of its operation.
func (s *Server) taskFrame(r *http.Request, v clusters.ClusterView, op loom.Operation, t clusters.TaskView) layout.Model {
	page := s.operationFrame(r, v, op, ui.Crumb{Label: "Task " + strconv.Itoa(t.Ref.Number)})
	page.Title = clusterview.TaskText(t.Task)
	return page
}

// attemptTabs are the tries, newest first.
func attemptTabs(t clusters.TaskView, shown int) []ui.Tab {
	var tabs []ui.Tab
	for _, a := range slices.Backward(t.Attempts) {
		label := fmt.Sprintf("Attempt %d, %s", a.Number, ui.AttemptState(a.Status).Word)
		tabs = append(tabs, ui.Tab{Label: label, Href: route.TaskAttempt(t.Ref, a.Number), Current: a.Number == shown})
	}
	return tabs
}

// taskPanel is the facts of a task, fetched again while the operation runs.
func (s *Server) taskPanel(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := pathTask(r)
	if err != nil {
		return err
	}
	t, err := s.Clusters.Task(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	shown, err := loom.ParseNumber(r.URL.Query().Get("attempt"))
	if err != nil {
		shown = t.Attempt
	}
	v, err := s.briefCluster(r.Context(), actor, ref.Operation.Cluster)
	if err != nil {
		return err
	}
	op, err := s.Clusters.Operation(r.Context(), actor, ref.Operation)
	if err != nil {
		return err
	}
	m, err := s.taskPanelModel(r.Context(), actor, v, op, t, shown)
	if err != nil {
		return err
	}
	if r.URL.Query().Get("side") != "" { // the page is that of the plan
		m.Side = true
		return s.Fragment(w, r, http.StatusOK, clusterview.TaskPanelPart(m))
	}
	return s.Fragment(w, r, http.StatusOK, layout.Titled(s.taskFrame(r, v, op, t), clusterview.TaskPanelPart(m)))
}

func (s *Server) taskPanelModel(ctx context.Context, actor loom.Actor, v clusters.ClusterView, op loom.Operation, t clusters.TaskView, shown int) (clusterview.TaskPanel, error) {
	m := clusterview.TaskPanel{
		TaskView: t, Shown: shown, Bad: t.Status == loom.TaskFailed, Actions: taskActions(actor, v, op, t.Task),
	}
	attempt := attemptOf(t, shown)
	if attempt.Message != "" && attempt.Status == loom.AttemptFailed {
		m.Message, m.Bad = attempt.Message, true
	}
	m.Facts, m.Result = s.taskFacts(t, attempt), shownFields(attempt.Facts)
	m.Technical = s.technicalFacts(v, t, attempt)
	if attempt.Status == loom.AttemptFailed {
		lines, _, err := s.Clusters.Log(ctx, actor, t.Ref, clusters.LogInput{Attempt: shown, Tail: tailLines})
		if err != nil {
			return m, err
		}
		m.Cause = markCause(logLines(lines))
		if m.Message = strings.TrimSuffix(m.Message, ": "+m.Cause); m.Message == m.Cause {
			m.Message = "" // what is above needs not be said twice
		}
		script, err := s.scriptButton(ctx, actor, v, t.Task)
		if err != nil {
			return m, err
		}
		if script != nil {
			m.Actions = slices.Insert(m.Actions, min(1, len(m.Actions)), *script)
		}
	}
	if err := s.taskDoing(ctx, actor, t, attempt, &m); err != nil {
		return m, err
	}
	tasks, err := s.Clusters.TasksNumbered(ctx, actor, t.Ref.Operation, slices.Concat(t.DependsOn, t.Next))
	if err != nil {
		return m, err
	}
	byNumber := map[int]loom.Task{}
	for _, other := range tasks {
		byNumber[other.Ref.Number] = other
	}
	deps := func(numbers []int) []loom.Task {
		var out []loom.Task
		for _, n := range numbers {
			out = append(out, byNumber[n])
		}
		return out
	}
	m.Before, m.After = deps(t.DependsOn), deps(t.Next)
	return m, nil
}

// tailLines are the last lines of a failed attempt's log in which its cause is looked for.
const tailLines = 20

// taskDoing says what the task does or waits for just now, as when an image is prepared first.
func (s *Server) taskDoing(ctx context.Context, actor loom.Actor, t clusters.TaskView, a loom.Attempt, m *clusterview.TaskPanel) error {
	switch {
	case t.Status == loom.TaskReady && len(t.Attempts) > 0:
		m.Doing = "It waits to be tried again."
		tries, err := s.Clusters.NextTries(ctx, actor, t.Ref.Operation, retriesRead)
		for _, try := range tries {
			if try.Number == t.Ref.Number {
				m.Doing = "The next attempt starts " + clusterview.TryTime(try, s.Now()) + "."
			}
		}
		return err
	case t.Status == loom.TaskReady:
		m.Doing = "It waits until its node, which does one task at a time, and a worker are free."
	case a.Status == loom.AttemptRunning && speaks(t.Task):
		m.Speaks = true
		var err error
		m.Doing, err = s.lastWord(ctx, actor, t.Ref, a.Number)
		return err
	}
	return nil
}

func attemptOf(t clusters.TaskView, number int) loom.Attempt {
	for _, a := range t.Attempts {
		if a.Number == number {
			return a
		}
	}
	return loom.Attempt{}
}

func (s *Server) taskFacts(t clusters.TaskView, a loom.Attempt) []ui.Def {
	facts := []ui.Def{{Term: "Node", Value: clusterview.TextLink("node "+strconv.Itoa(t.NodeNumber), route.Node(t.Ref.Operation.Cluster, t.Node))}}
	if a.Number > 0 {
		run := ui.Def{Term: "Run time", Text: s.elapsed(a.Started, a.Ended)}
		if a.Ended.IsZero() {
			run = ui.Def{Term: "Run time", Value: ui.Elapsed(s.Now().Sub(a.Started))}
		}
		facts = append(facts, ui.Def{Term: "Started", Value: ui.Time(a.Started, s.Now())}, run)
	}
	if len(t.Attempts) == 0 {
		facts = append(facts, s.waitFacts(t)...)
	}
	if t.Undo {
		facts = append(facts, ui.Def{Term: "Purpose", Text: "Undoes other tasks of the operation"})
	}
	if t.SkippedBy != "" {
		facts = append(facts, ui.Def{Term: "Skipped by", Text: string(t.SkippedBy) + ": " + t.SkipReason})
	}
	return facts
}

// technicalFacts are how and where the task runs.
func (s *Server) technicalFacts(v clusters.ClusterView, t clusters.TaskView, a loom.Attempt) []ui.Def {
	facts := []ui.Def{{Term: "Plugin", Text: pluginOf(v, t.Task)}, {Term: "Stage", Text: strconv.Itoa(t.Level)}, {Term: "Host name", Text: t.NodeHostname}}
	if len(t.Attempts) > 0 {
		facts = append(facts, s.waitFacts(t)...)
	}
	if a.Number > 0 {
		facts = append(facts, ui.Def{Term: "By", Text: string(a.Process), Mono: true})
	}
	return facts
}

// waitFacts is how long the task waited for its node and a worker, once nothing else
// kept it from starting.
func (s *Server) waitFacts(t clusters.TaskView) []ui.Def {
	switch {
	case t.Ready.IsZero() || t.Status == loom.TaskSkipped || t.Status == loom.TaskDropped:
		return nil
	case len(t.Attempts) > 0:
		return []ui.Def{{Term: "Waited", Text: ui.Duration(t.Attempts[0].Started.Sub(t.Ready))}}
	}
	return []ui.Def{{Term: "Waiting for", Value: ui.Elapsed(s.Now().Sub(t.Ready))}}
}
