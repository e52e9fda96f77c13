package web

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/fleet"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

var jobStates = map[string]ui.State{
	"available": {Word: "Waiting", Icon: "circle", Tone: ui.ToneIdle},
	"running":   {Word: "Running", Icon: "ring", Tone: ui.ToneRun},
	"retryable": {Word: "Tried again later", Icon: "back", Tone: ui.ToneWarn},
	"scheduled": {Word: "Scheduled", Icon: "clock", Tone: ui.ToneIdle},
	"discarded": {Word: "Given up", Icon: "error", Tone: ui.ToneBad},
	"cancelled": {Word: "Cancelled", Icon: "ban", Tone: ui.ToneIdle},
	"completed": {Word: "Complete", Icon: "check-circle", Tone: ui.ToneOK},
}

func (s *Server) systemJobs(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	state := r.URL.Query().Get("state")
	found, err := s.Fleet.RiverJobs(r.Context(), actor, state)
	if err != nil {
		return err
	}
	grid := officeview.GridModel{ID: "jobs", Caption: "River jobs, the newest first", Now: s.now(),
		Columns: []ui.Column{{Label: "Job"}, {Label: "Kind"}, {Label: "State"}, {Label: "Tries", Numeric: true, Low: true}, {Label: "Due"}, {Label: "Arguments and error"}, {Label: "Actions", LabelHidden: true}},
		Empty:   ui.EmptyModel{Icon: "check-circle", Text: "No River job is in this state."}}
	for _, j := range found {
		shown := jobStates[j.State]
		details := officeview.DetailsModel{Summary: "arguments", Code: &ui.CodeModel{ID: "job-" + strconv.FormatInt(j.ID, 10), Label: "arguments", Text: j.Args, Wrap: true}}
		if j.Error != "" {
			details.Summary = "error"
			details.Facts = []ui.Def{{Term: "Error", Text: j.Error}, {Term: "Arguments", Text: j.Args, Mono: true}}
			details.Code = &ui.CodeModel{ID: details.Code.ID, Label: "stack", Text: j.Trace}
			if j.Trace == "" {
				details.Code = nil
			}
		}
		actions := officeview.Cell{}
		if fleet.MayRetry(j) {
			actions.Part = officeview.Act(route.SystemJobRetry(j.ID), ui.ButtonModel{Label: "Retry", Small: true, Submit: true, Busy: "Retrying…", Attrs: templ.Attributes{"aria-label": "Retry River job " + strconv.FormatInt(j.ID, 10)}})
		}
		grid.Rows = append(grid.Rows, []officeview.Cell{
			{Text: strconv.FormatInt(j.ID, 10), Mono: true, Sub: j.Queue}, {Text: j.Kind, Mono: true}, {State: &shown},
			{Text: strconv.Itoa(j.Attempt) + " of " + strconv.Itoa(j.MaxAttempts)}, {Time: j.Due}, {Part: officeview.Details(details)}, actions,
		})
	}
	pairs := []string{"", "All but complete"}
	for _, word := range fleet.RiverStates {
		pairs = append(pairs, word, jobStates[word].Word)
	}
	filters := officeview.FiltersModel{Action: route.SystemJobs(), Target: "jobs-list", Fields: []ui.FieldModel{
		{Name: "state", Label: "State", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: options(state, pairs...)}}}
	m := officeview.SheetModel{Title: "River jobs", Intro: "Work of the schedulers, hooks and provider requests; the newest 100 of each queue and state. The tasks of operations are not here: they follow their operation.",
		Parts: []templ.Component{officeview.Filters(filters), officeview.Grid(grid)}}
	return s.sheet(w, r, actor, http.StatusOK, systemFrame("River jobs", route.SystemJobs()), m)
}

func (s *Server) systemJobRetry(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := pathNumber(r, "id", "River job")
	if err != nil {
		return err
	}
	if err := s.Fleet.RetryRiverJob(r.Context(), actor, id); err != nil {
		return err
	}
	return s.say(w, r, route.SystemJobs(), httpx.Flash{Tone: "ok", Text: "River job " + strconv.FormatInt(id, 10) + " is due now."})
}
