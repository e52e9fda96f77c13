package clusters

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// failedServices are the services that had a failed task in an operation, as the tasks
// come.
func failedServices(tasks []loom.Task) []string {
	var names []string
	for _, t := range tasks {
		if t.Status == loom.TaskFailed && t.Service != "" && !slices.Contains(names, t.Service) {
			names = append(names, t.Service)
		}
	}
	return names
}

// ways are the ways out of a failed operation: the one that most likely helps comes
// first, and is the primary one.
func (s *Server) ways(ctx context.Context, actor loom.Actor, v clusters.ClusterView, op loom.Operation, tasks []loom.Task, rest []ui.ButtonModel) ([]ui.ButtonModel, error) {
	failed := op.Status == loom.OperationFailed || op.Status == loom.OperationAborted
	if !failed || op.NeverBegan() || op.Undone || v.Latest == nil || v.Latest.Ref != op.Ref || v.Status == loom.ClusterTerminated || op.Action == loom.ClusterDelete || op.Action == loom.ClusterAuthorize {
		return rest, nil
	}
	services, why := failedServices(tasks), v.Allowed[loom.ChangeRetry]
	var newer, text []string
	for _, name := range services {
		newest, err := s.newestService(ctx, actor, name)
		if err != nil {
			return nil, err
		}
		if present, there := v.Services[name]; there && newest != nil && newest.Version > present.Version && !newest.SameWork(&present) {
			newer, text = append(newer, name), append(text, name+" "+ui.Version(newest.Version))
		}
	}
	released, err := s.Clusters.ReleasedFiles(ctx, actor, op.Ref)
	if err != nil {
		return nil, err
	}
	for _, f := range released {
		if name := f.Name + " " + ui.Version(f.Version); !slices.Contains(text, name) {
			text = append(text, name)
		}
	}
	var out []ui.ButtonModel
	if len(text) > 0 {
		out = append(out, ui.ButtonModel{Label: "Retry with " + loom.And(text[:min(len(text), 3)]), Icon: "rotate", Href: route.OperationRetry(op.Ref, newer, nil, false), WhyNot: why})
	}
	change := ui.ButtonModel{Label: "Change config and retry", Icon: "edit", Href: route.OperationRetry(op.Ref, newer, nil, true), WhyNot: why}
	if len(services) > 0 {
		out = append(out, change)
	}
	primary := len(out)
	for _, b := range rest {
		if b.Label == retryLabel {
			if len(text) > 0 && len(newer) == 0 {
				continue // it is the same
			}
			if len(newer) > 0 {
				b.Label = "Retry unchanged"
			}
			if len(services) == 0 {
				out = append(out, b, change)
				continue
			}
		}
		out = append(out, b)
	}
	second, err := s.secondWays(ctx, actor, v, op, tasks, services, why)
	if err != nil {
		return nil, err
	}
	out = slices.Insert(out, min(primary, 1), second...)
	if out[0].WhyNot == "" {
		out[0].Kind = ui.Primary
	}
	return out, nil
}

// secondWays follow the first way out: the script that failed, for those who may edit it, and
// to go on without what failed.
func (s *Server) secondWays(ctx context.Context, actor loom.Actor, v clusters.ClusterView, op loom.Operation, tasks []loom.Task, services []string, why string) ([]ui.ButtonModel, error) {
	var out []ui.ButtonModel
	if i := slices.IndexFunc(tasks, func(t loom.Task) bool { return t.Status == loom.TaskFailed && t.Service != "" }); i >= 0 {
		script, err := s.scriptButton(ctx, actor, v, tasks[i])
		if err != nil {
			return nil, err
		}
		if script != nil {
			out = append(out, *script)
		}
	}
	for _, name := range services[:min(len(services), 3)] {
		if _, there := v.Services[name]; there && len(v.Services) > 1 {
			out = append(out, ui.ButtonModel{Label: "Retry without " + name, Icon: "minus", Href: route.OperationRetry(op.Ref, nil, []string{name}, false), WhyNot: why})
		}
	}
	return out, nil
}

// retryParts change what failed: versions, services, config; administrators may leave out
// tasks.
func (s *Server) retryParts(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	var parts []clusterview.FormPart
	if op := v.Latest; op != nil && op.Action != loom.ClusterDelete {
		changes, err := s.amendParts(ctx, actor, v, f, errs)
		if err != nil {
			return nil, "", err
		}
		parts = changes
	}
	skip, err := s.skipParts(ctx, actor, v, f, errs)
	return append(parts, skip...), "", err
}

func (s *Server) amendParts(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, error) {
	newest := ui.ChoiceModel{Name: "services", Legend: "Newer versions", Optional: true, Error: errs.For("services"), Help: "The ticked ones come in their newest version, the others as before."}
	remove := ui.ChoiceModel{Name: "removeServices", Legend: "Services to remove", Optional: true, Error: errs.For("removeServices")}
	var newer []clusterview.NewerEntry
	for _, c := range presentServices(v, f, errs).Choices {
		present := v.Services[c.Value]
		off := c
		off.Checked = slices.Contains(f.list("removeServices"), c.Value)
		remove.Choices = append(remove.Choices, off)
		found, err := s.newestService(ctx, actor, c.Value)
		if err != nil {
			return nil, err
		}
		if found == nil || found.Version == present.Version {
			continue
		}
		c.Facts = append(c.Facts, fmt.Sprintf("version %d → %d", present.Version, found.Version))
		newest.Choices = append(newest.Choices, c)
		differences, err := catalog.CompareEntries(&present, found)
		if err != nil {
			return nil, err
		}
		newer = append(newer, newerEntry(present.Name, present.Version, found.Version, differences))
	}
	files, err := s.releasedParts(ctx, actor, *v.Latest)
	if err != nil {
		return nil, err
	}
	var parts []clusterview.FormPart
	if len(newest.Choices) > 0 {
		parts = append(parts, clusterview.FormPart{Picker: &newest}, clusterview.FormPart{Newer: newer})
	}
	parts = append(parts, files...)
	edited := f.Config != "" && f.Config != configText(maskedConfig(v))
	wrong := slices.ContainsFunc(errs.Items, func(e ui.FormError) bool { return e.Field == "config" || strings.HasPrefix(e.Field, settingPrefix) })
	parts = append(parts, clusterview.FormPart{Fold: "Change the config", Open: edited || f.Open == "config" || f.settings.asJSON || wrong, More: []clusterview.FormPart{f.settingsPart(v, errs, 14)}})
	if len(remove.Choices) > 1 {
		parts = append(parts, clusterview.FormPart{Fold: "Remove services", Open: len(f.list("removeServices")) > 0 || remove.Error != "", More: []clusterview.FormPart{{Picker: &remove}}})
	}
	return parts, nil
}

// maxShownFiles is how many files that came into use a form of a retry lists.
const maxShownFiles = 10

// releasedParts are the files of failed services that came into use since, which a retry runs
// in any case. Administrators see how they differ.
func (s *Server) releasedParts(ctx context.Context, actor loom.Actor, op loom.Operation) ([]clusterview.FormPart, error) {
	released, err := s.Clusters.ReleasedFiles(ctx, actor, op.Ref)
	if err != nil || len(released) == 0 {
		return nil, err
	}
	budget := page.LineBudget(page.MaxDiffCells)
	var facts []ui.Def
	var parts []clusterview.FormPart
	for _, f := range released[:min(len(released), maxShownFiles)] {
		text := fmt.Sprintf("version %d", f.Version)
		if f.Used > 0 {
			text = fmt.Sprintf("version %d → %d", f.Used, f.Version)
		}
		facts = append(facts, ui.Def{Term: f.Name, Text: text})
		if f.Used == 0 || actor.May(loom.Publish.Reading(), actor.InTenant()) != nil {
			continue
		}
		lines, err := s.fileChanges(ctx, actor, f, &budget)
		if err != nil {
			return nil, err
		}
		if len(lines) > 0 {
			code := ui.CodeModel{ID: fmt.Sprintf("released-%d", len(facts)), Label: f.Name + ", changed lines: + added, − removed", Text: strings.Join(lines, "\n")}
			parts = append(parts, clusterview.FormPart{Code: &code})
		}
	}
	return append([]clusterview.FormPart{{Facts: facts}}, parts...), nil
}

// fileChanges are the lines that differ between the version of a file that failed and that in
// use; none where one of them is no text.
func (s *Server) fileChanges(ctx context.Context, actor loom.Actor, f clusters.ReleasedFile, budget *page.LineBudget) ([]string, error) {
	versions, err := s.Catalog.Resources(ctx, actor, catalog.ResourceFilter{ResourceRef: f.ResourceRef})
	if err != nil {
		return nil, err
	}
	texts := map[int]string{}
	for _, v := range versions {
		if v.Version != f.Used && v.Version != f.Version {
			continue
		}
		content, err := s.Catalog.ResourceContent(ctx, actor, v)
		if err != nil {
			return nil, err
		}
		texts[v.Version] = content.Text
	}
	if texts[f.Used] == "" || texts[f.Version] == "" {
		return nil, nil
	}
	lines, _ := budget.DiffLines(strings.Split(texts[f.Used], "\n"), strings.Split(texts[f.Version], "\n"), maxFileLines)
	return lines, nil
}

// maxFileLines is how many changed lines of a file are shown.
const maxFileLines = 100

// operationResubmit asks again for an operation that was refused.
func (s *Server) operationResubmit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := pathOperation(r)
	if err != nil {
		return err
	}
	begun, err := s.Clusters.Resubmit(r.Context(), actor, ref, nil)
	if err != nil {
		return err
	}
	return s.Say(w, r, route.Operation(begun), httpx.Flash{Tone: "ok", Text: "Operation " + strconv.Itoa(ref.Number) + " is asked for again."})
}

// taskRetrying begins the next try of a task that waits for it, or gives it up.
func (s *Server) taskRetrying(verb string) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		ref, err := pathTask(r)
		if err != nil {
			return err
		}
		act, text := s.Operations.RetryNow, " is tried again now."
		if verb == "stop-retrying" {
			act, text = s.Operations.StopRetrying, " is not tried again; the operation ends."
		}
		flash := httpx.Flash{Tone: "ok", Text: "Task " + strconv.Itoa(ref.Number) + text}
		if err := act(r.Context(), actor, ref); err != nil {
			if e := loom.AsError(err); e.Kind != loom.Conflict {
				return err
			}
			flash = httpx.Flash{Tone: "warn", Text: loom.AsError(err).Message}
		}
		return s.Return(w, r, route.Operation(ref.Operation), flash)
	}
}

// taskAgain leads from the address of such a button, which a reload asks for, back to
// the task.
func (s *Server) taskAgain(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	ref, err := pathTask(r)
	if err != nil {
		return err
	}
	return httpx.SeeOther(w, r, route.Task(ref))
}

// skipParts let administrators leave out tasks.
func (s *Server) skipParts(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, error) {
	if actor.May(loom.Override, actor.InTenant()) != nil {
		return nil, nil
	}
	ref := loom.OperationRef{Cluster: v.ID}
	if _, err := fmt.Sscanf(f.Operation, "%d", &ref.Number); err != nil {
		return nil, loom.NewError(loom.NotFound, "Cluster %s has no operation “%.20s”.", v.ID, f.Operation)
	}
	tasks, err := s.Clusters.Tasks(ctx, actor, ref, clusters.TaskFilter{Statuses: []loom.TaskStatus{loom.TaskFailed, loom.TaskDropped}})
	if err != nil {
		return nil, err
	}
	picker := ui.ChoiceModel{Name: "skip", Legend: "Tasks to skip", Optional: true, Filter: "Filter tasks", Error: errs.For("skip"),
		Help: "Tasks that depend on them run as if they were complete. Lists failed tasks and those that never ran."}
	for _, failed := range []bool{true, false} {
		for _, t := range tasks {
			if failed != (t.Status == loom.TaskFailed) {
				continue
			}
			number := fmt.Sprint(t.Ref.Number)
			c := ui.Choice{Value: number, Label: number + " · " + clusterview.TaskText(t), Checked: slices.Contains(f.list("skip"), number)}
			if failed {
				c.Description = "failed: " + t.Message
			}
			picker.Choices = append(picker.Choices, c)
		}
	}
	if len(picker.Choices) == 0 {
		return nil, nil
	}
	reason := ui.FieldModel{Name: "reason", Label: "Reason", Kind: ui.FieldTextarea, Rows: 2, Value: f.of("reason"), Optional: true, MaxLength: 1000, Error: errs.For("reason"),
		Help: "Required to skip tasks; shown with them."}
	return []clusterview.FormPart{{Fold: "Skip tasks", Open: len(f.list("skip")) > 0 || f.of("reason") != "" || errs.For("skip")+errs.For("reason") != "",
		More: []clusterview.FormPart{{Picker: &picker}, {Field: &reason}}}}, nil
}
