package system

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

var jobStates = map[string]ui.State{
	"available": {Word: "Waiting", Icon: "circle", Tone: ui.ToneIdle},
	"pending":   {Word: "Pending", Icon: "circle", Tone: ui.ToneIdle},
	"running":   {Word: "Running", Icon: "ring", Tone: ui.ToneRun},
	"retryable": {Word: "Retrying", Icon: "back", Tone: ui.ToneWarn},
	"scheduled": {Word: "Scheduled", Icon: "clock", Tone: ui.ToneIdle},
	"discarded": {Word: "Discarded", Icon: "error", Tone: ui.ToneBad},
	"cancelled": {Word: "Canceled", Icon: "ban", Tone: ui.ToneIdle},
	"completed": {Word: "Complete", Icon: "check-circle", Tone: ui.ToneOK},
}

// jobQuery is what the filters of the list say.
type jobQuery struct{ state, queue, kind, id, tenant string }

func (q jobQuery) pairs() []string {
	return []string{"state", q.state, "queue", q.queue, "kind", q.kind, "id", q.id, "tenant", q.tenant}
}

func (q jobQuery) input(asked loom.Page) (processes.RiverJobInput, error) {
	in := processes.RiverJobInput{Page: asked, State: q.state, Queue: q.queue, Kind: q.kind, Tenant: q.tenant}
	in.Page.Sort = ""
	if q.id == "" {
		return in, nil
	}
	n, err := strconv.ParseInt(q.id, 10, 64)
	if err != nil || n <= 0 {
		return in, loom.InvalidFields([]loom.FieldError{{Field: "id", Message: "“" + page.CutShort(q.id) + "” is no number of a River job."}})
	}
	in.ID = n
	return in, nil
}

func (s *Server) systemJobs(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	get := func(name string) string { return strings.TrimSpace(r.URL.Query().Get(name)) }
	q := jobQuery{get("state"), get("queue"), get("kind"), get("id"), get("tenant")}
	var list processes.RiverJobList
	in, err := q.input(s.PageOf(r))
	if err == nil {
		list, err = s.Processes.RiverJobs(r.Context(), actor, in)
	}
	errs, status := ui.FormErrors{}, http.StatusOK
	if e := loom.AsError(err); err != nil {
		if e.Kind != loom.Invalid || len(e.Fields) == 0 {
			return err
		}
		errs, status = ui.NewFormErrors("", e.Fields), http.StatusUnprocessableEntity
	}
	m := adminview.PageModel{Title: "River jobs", Intro: "Work of the schedulers, hooks and provider requests; those of a tenant's tasks when a tenant is given. The tasks of operations follow their operation and cannot be changed here.",
		Parts: []templ.Component{jobFilters(q, errs), s.jobGrid(r, q, list)}}
	return s.Sheet(w, r, actor, status, page.SystemFrame("River jobs", route.SystemJobs()), m)
}

func jobFilters(q jobQuery, errs ui.FormErrors) templ.Component {
	states, queues := []string{"", "All but complete"}, []string{"", "All of the installation"}
	for _, word := range processes.RiverStates {
		states = append(states, word, jobStates[word].Word)
	}
	for _, name := range processes.RiverQueues {
		queues = append(queues, name, page.Capital(name))
	}
	text := func(name, label, value string) ui.FieldModel {
		return ui.FieldModel{Name: name, Label: label, Value: value, Optional: true, Width: "s", MaxLength: 255, Error: errs.For(name)}
	}
	m := adminview.FiltersModel{Action: route.SystemJobs(), Target: "jobs-list", Fields: []ui.FieldModel{
		{Name: "state", Label: "State", Kind: ui.FieldSelect, Width: "s", Optional: true, Options: page.Options(q.state, states...), Error: errs.For("state")},
		{Name: "queue", Label: "Queue", Kind: ui.FieldSelect, Width: "s", Optional: true, Options: page.Options(q.queue, queues...), Error: errs.For("queue")},
		text("kind", "Kind", q.kind), text("id", "Number", q.id), text("tenant", "Tasks of tenant", q.tenant)}}
	if q != (jobQuery{}) {
		m.Clear = route.SystemJobs()
	}
	return adminview.Filters(m)
}

func (s *Server) jobGrid(r *http.Request, q jobQuery, list processes.RiverJobList) templ.Component {
	grid := adminview.TableModel{ID: "jobs", Caption: "River jobs, the newest first", Now: s.Now(), Pages: page.Turned("Pages of River jobs", route.SystemJobs(), list.Next, list.Prev, q.pairs()...),
		Columns: []ui.Column{{Label: "River job"}, {Label: "Kind"}, {Label: "State"}, {Label: "Attempts", Numeric: true}, {Label: "Due"}, {Label: "Error"}},
		Empty:   ui.EmptyModel{Icon: "check-circle", Text: "There is no River job."}}
	if q != (jobQuery{}) {
		grid.Empty = ui.EmptyModel{Icon: "search", Text: "No River job matches these filters.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.SystemJobs()}}
	}
	grid.CSV, grid.JSON = s.ExportsOf(r)
	for _, j := range list.Items {
		state := jobStates[j.State]
		grid.Rows = append(grid.Rows, []adminview.Cell{
			{Text: strconv.FormatInt(j.ID, 10), Href: route.SystemJob(j.ID), Mono: true, Sub: j.Queue}, {Text: j.Kind, Mono: true}, {State: &state},
			{Text: strconv.Itoa(j.Attempt) + " of " + strconv.Itoa(j.MaxAttempts)}, {Time: j.Due}, {Text: page.CutShort(j.Error)},
		})
	}
	return adminview.Table(grid)
}

func jobFrameCrumbs(id int64) []ui.Crumb {
	return []ui.Crumb{{Label: "River jobs", Href: route.SystemJobs()}, {Label: strconv.FormatInt(id, 10)}}
}

// systemJob shows a River job: what it is for, and what went wrong in each attempt.
func (s *Server) systemJob(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := page.PathNumber(r, "id", "River job")
	if err != nil {
		return err
	}
	j, err := s.Processes.RiverJob(r.Context(), actor, id)
	if err != nil {
		return err
	}
	state := jobStates[j.State]
	m := adminview.PageModel{Title: "River job " + strconv.FormatInt(j.ID, 10), State: &state}
	if processes.MayRetry(j) {
		m.Actions = []ui.ButtonModel{page.Opening("Retry", "Retry "+m.Title, route.SystemJobVerb(j.ID, "retry"), ui.Secondary)}
	}
	if processes.MayCancel(j) {
		m.Menu = append(m.Menu, page.Asking("Cancel", "ban", route.SystemJobVerb(j.ID, "cancel")))
	}
	if processes.MayDelete(j) {
		m.Menu = append(m.Menu, page.Deleting(route.SystemJobVerb(j.ID, "delete")))
	}
	when := func(term string, d ui.Def) ui.Def { d.Term = term; return d }
	facts := []ui.Def{{Term: "Kind", Text: j.Kind, Mono: true}, {Term: "Queue", Text: j.Queue, Mono: true}, {Term: "Attempts", Text: strconv.Itoa(j.Attempt) + " of " + strconv.Itoa(j.MaxAttempts)},
		when("Made", ui.Def{Value: ui.Time(j.Created, s.Now())}), when("Due", ui.Def{Value: ui.Time(j.Due, s.Now())}), when("Last tried", ui.Def{Value: ui.Time(j.Attempted, s.Now())}), when("Ended", ui.Def{Value: ui.Time(j.Ended, s.Now())})}
	if j.Tenant != "" {
		facts = append(facts, ui.Def{Term: "Tenant", Value: adminview.Link(j.Tenant, route.SystemTenant(j.Tenant))})
	}
	if j.Task.Number > 0 {
		task := ui.Def{Term: "Task", Text: j.Task.Operation.String() + ", task " + strconv.Itoa(j.Task.Number), Mono: true}
		if j.Tenant == actor.TenantName {
			task = ui.Def{Term: "Task", Value: adminview.Link(task.Text, route.Task(j.Task))}
		}
		facts = append(facts, task)
	}
	if len(j.AttemptedBy) > 0 {
		facts = append(facts, ui.Def{Term: "Tried by", Text: strings.Join(j.AttemptedBy, ", "), Mono: true})
	}
	m.Parts = []templ.Component{ui.Definitions(facts), ui.Code(ui.CodeModel{ID: "args", Label: "Arguments", Text: j.Args, Wrap: true}), jobErrors(ui.ViewerOf(r.Context()), j)}
	page := page.SystemFrame(m.Title, route.SystemJobs(), jobFrameCrumbs(id)...)
	return s.Sheet(w, r, actor, http.StatusOK, page, m)
}

func jobErrors(see ui.Viewer, j processes.RiverJob) templ.Component {
	var parts []templ.Component
	for i, e := range j.Errors {
		code := "error-" + strconv.Itoa(i)
		text := e.Error
		if e.Trace != "" {
			text += "\n\n" + e.Trace
		}
		parts = append(parts, ui.Code(ui.CodeModel{ID: code, Label: "Attempt " + strconv.Itoa(e.Attempt) + ", " + see.Full(e.At), Text: text}))
	}
	if len(parts) == 0 {
		parts = append(parts, adminview.Text("No attempt failed."))
	}
	return adminview.Card("errors-title", "Errors", parts...)
}

var jobQuestions = map[string][]string{
	"retry":  {"It is tried at once, once more."},
	"cancel": {"Loom drops the job without running it. An operation may not end, or a hook may not be called.", "It may be retried later."},
	"delete": {"It is gone for good. What it was to do stays undone: an operation may not end, a hook may not be called."},
}

func (s *Server) systemJobAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := page.PathNumber(r, "id", "River job")
	if err != nil {
		return err
	}
	verb := r.PathValue("verb")
	lines, ok := jobQuestions[verb]
	if !ok {
		return loom.NewError(loom.NotFound, "There is no page %.100s.", r.URL.Path)
	}
	j, err := s.Processes.RiverJob(r.Context(), actor, id)
	if err != nil {
		return err
	}
	button := page.Capital(verb) + " River job " + strconv.FormatInt(id, 10)
	m := adminview.ConfirmModel{Action: r.URL.Path, Lines: append([]string{"It is of the kind " + j.Kind + ", on the queue " + j.Queue + "."}, lines...), Button: button, Busy: "Working…", Cancel: route.SystemJob(id), Harmless: verb == "retry"}
	page := page.SystemFrame(button, route.SystemJobs(), append(jobFrameCrumbs(id), ui.Crumb{Label: page.Capital(verb)})...)
	return s.Confirm(w, r, actor, page, adminview.Confirm(m))
}

func (s *Server) systemJobAct(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := page.PathNumber(r, "id", "River job")
	if err != nil {
		return err
	}
	said, to := "", route.SystemJob(id)
	switch r.PathValue("verb") {
	case "retry":
		err, said = s.Processes.RetryRiverJob(r.Context(), actor, id), "is due now."
	case "cancel":
		err, said = s.Processes.CancelRiverJob(r.Context(), actor, id), "was canceled."
	case "delete":
		err, said, to = s.Processes.DeleteRiverJob(r.Context(), actor, id), "was deleted.", route.SystemJobs()
	default:
		err = loom.NewError(loom.NotFound, "There is no page %.100s.", r.URL.Path)
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, to, httpx.Flash{Tone: "ok", Text: "River job " + strconv.FormatInt(id, 10) + " " + said})
}
