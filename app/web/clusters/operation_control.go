package clusters

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// operationControl pauses or resumes an operation at once.
func (s *Server) operationControl(verb string) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		ref, err := pathOperation(r)
		if err != nil {
			return err
		}
		act, want, text := s.Operations.Pause, loom.OperationPaused, " is paused. Tasks under way finish, nothing more starts."
		if verb == "resume" {
			act, want, text = s.Operations.Resume, loom.OperationRunning, " continues."
		}
		op, err := act(r.Context(), actor, ref)
		if err != nil {
			return err
		}
		flash := httpx.Flash{Tone: "ok", Text: "Operation " + strconv.Itoa(ref.Number) + text}
		if op.Status != want {
			flash = httpx.Flash{Tone: "warn", Text: "Operation " + strconv.Itoa(ref.Number) + " is " + string(op.Status) + "; it stays so."}
		}
		return s.Return(w, r, route.Operation(ref), flash)
	}
}

// operationAgain leads from the address of a button, which a reload asks for, back to
// the page.
func (s *Server) operationAgain(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	ref, err := pathOperation(r)
	if err != nil {
		return err
	}
	return httpx.SeeOther(w, r, route.Operation(ref))
}

// confirm shows a question as a page or in the dialog.
func (s *Server) confirm(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, name string, id loom.ClusterID, m clusterview.ConfirmModel) error {
	if page.Wants(r, page.DialogID) {
		return s.Fragment(w, r, status, clusterview.ConfirmDialog(m))
	}
	page := clusterPage(m.Title, "Clusters", ui.Crumb{Label: name, Href: route.Cluster(id)}, ui.Crumb{Label: m.Title})
	return s.Render(w, r, actor, status, page, clusterview.ConfirmPage(m))
}

// operationAbortForm says what an abort leaves behind.
func (s *Server) operationAbortForm(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, err := s.pathOperation(r, actor)
	if err != nil {
		return err
	}
	ref := op.Ref
	v, err := s.briefCluster(r.Context(), actor, ref.Cluster)
	if err != nil {
		return err
	}
	verb := op.Action.Verb()
	running := op.Tasks[loom.TaskRunning]
	rest := op.Tasks[loom.TaskReady] + op.Tasks[loom.TaskBlocked]
	m := clusterview.ConfirmModel{
		Title: "Abort " + verb + " of " + v.Name + "?", Post: route.OperationVerb(ref, "abort"), Back: route.Operation(ref),
		Button: "Abort " + verb, Busy: "Aborting…", Danger: true, WhyNot: v.Allowed[loom.ChangeAbort],
		Text: "Stops " + ui.Count(running, "running task", "running tasks") + " and drops " + strconv.Itoa(rest) + " others.",
	}
	if op.OnFailure == loom.OnFailureUndo && op.Status != loom.OperationRollingBack {
		m.Text += " Then Loom undoes the operation, as its failure policy says."
	} else {
		m.Text += " You can retry or roll back afterwards."
	}
	if v.Latest == nil || v.Latest.Ref != ref {
		m.WhyNot = "This operation has ended."
	}
	return s.confirm(w, r, actor, http.StatusOK, v.Name, v.ID, m)
}

func (s *Server) operationAbort(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := pathOperation(r)
	if err != nil {
		return err
	}
	op, err := s.Operations.Abort(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	flash := httpx.Flash{Tone: "ok", Text: "Aborting " + op.Action.Verb() + "."}
	if op.Status == loom.OperationComplete {
		flash = httpx.Flash{Tone: "warn", Text: ui.Capital(op.Action.Verb()) + " was complete already."}
	}
	return s.Return(w, r, route.Operation(ref), flash)
}

// taskSkipForm asks why a task is left out.
func (s *Server) taskSkipForm(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.showSkip(w, r, actor, http.StatusOK, "", nil)
}

func (s *Server) showSkip(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, reason string, refused error) error {
	ref, err := pathTask(r)
	if err != nil {
		return err
	}
	t, err := s.Clusters.Task(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	if actor.May(loom.Override, actor.InTenant()) != nil {
		return loom.NewError(loom.Forbidden, "Skipping a task needs the role of a tenant administrator; ask one of your tenant.")
	}
	op, err := s.Clusters.Operation(r.Context(), actor, ref.Operation)
	if err != nil {
		return err
	}
	v, err := s.briefCluster(r.Context(), actor, ref.Operation.Cluster)
	if err != nil {
		return err
	}
	field := ui.FieldModel{Name: "reason", Label: "Reason", Kind: ui.FieldTextarea, Rows: 2, Value: reason, MaxLength: 1000, Help: "It stays with the task."}
	m := clusterview.ConfirmModel{
		Title: "Skip task " + strconv.Itoa(ref.Number), Post: route.TaskSkip(ref), Back: route.Task(ref), Button: "Skip task " + strconv.Itoa(ref.Number), Busy: "Skipping…", Danger: true,
		Text: ui.Capital(clusterview.TaskText(t.Task)) + " will not run. Tasks that depend on it run as if it were complete. The cluster shows it until a later operation runs it.", WhyNot: op.WhyNotSkipped(&t.Task),
	}
	if refused != nil {
		e := loom.AsError(refused)
		if len(e.Fields) == 0 {
			m.WhyNot = e.Message
		}
		m.Errors = formErrors(e.Fields)
		m.Errors.Title = "No task was skipped."
		field.Error = m.Errors.For("reason")
	}
	m.Fields = []ui.FieldModel{field}
	return s.confirm(w, r, actor, status, v.Name, v.ID, m)
}

func (s *Server) taskSkip(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	form, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	ref, err := pathTask(r)
	if err != nil {
		return err
	}
	reason := strings.TrimSpace(form.Get("reason"))
	err = s.Operations.Skip(r.Context(), actor, ref, reason)
	if errors.Is(err, loom.Invalid) || errors.Is(err, loom.Conflict) {
		return s.showSkip(w, r, actor, httpx.PageStatus(loom.AsError(err).Kind), reason, err)
	}
	if err != nil {
		return err
	}
	return s.Return(w, r, route.Task(ref), httpx.Flash{Tone: "ok", Text: "Task " + strconv.Itoa(ref.Number) + " is skipped. Resume the operation to continue."})
}

// taskActions is what can be done about a task: an administrator leaves out one of a
// paused operation, and after a failure the operation can be retried.
func taskActions(actor loom.Actor, v clusters.ClusterView, op loom.Operation, t loom.Task) []ui.ButtonModel {
	var out []ui.ButtonModel
	if actor.May(loom.Override, actor.InTenant()) == nil && op.Status == loom.OperationPaused && (t.Status == loom.TaskReady || t.Status == loom.TaskBlocked) {
		at := route.TaskSkip(t.Ref)
		out = append(out, ui.ButtonModel{Label: "Skip", Icon: "ban", Href: at, WhyNot: op.WhyNotSkipped(&t), Attrs: ui.OpensDialog(at)})
	}
	if t.Status == loom.TaskFailed && op.Status.Final() && v.Latest != nil && v.Latest.Ref == op.Ref && v.Status != loom.ClusterTerminated {
		out = append(out,
			ui.ButtonModel{Label: retryLabel, Icon: "rotate", Href: route.OperationVerb(op.Ref, "retry"), WhyNot: v.Allowed[loom.ChangeRetry], Attrs: ui.OpensDialog(route.OperationVerb(op.Ref, "retry"))},
			ui.ButtonModel{Label: "Repair node " + ui.NodeNumber(t.NodeHostname), Icon: "shield", Href: route.ClusterRepair(v.ID, t.Node), WhyNot: v.Allowed[loom.ChangeRepair]})
	}
	return out
}

// retriesRead bounds the tasks of an operation that are looked at as tried again.
const retriesRead = 1000

// nextTries reads which tasks of an operation are tried again, what is due first first.
// They are looked for only where its counts say that there are any.
func nextTries(ctx context.Context, clusters *clusters.Clusters, actor loom.Actor, op loom.Operation) ([]clusters.NextTry, error) {
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
	return clusterview.RetryList{Operation: op.Ref, Count: max(op.Again, len(tries)), Tries: tries[:min(len(tries), runningShown)]}, err
}
