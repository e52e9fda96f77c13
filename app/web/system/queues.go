package system

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

var pausedState = ui.State{Word: "Paused", Icon: "pause", Tone: ui.ToneHold}

// queueWord names a queue for people.
func queueWord(q processes.Queue) string {
	if q.Tenant != "" {
		return "tasks of " + q.Tenant
	}
	word := map[string]string{processes.ControlQueue: "scheduler jobs", processes.HookQueue: "hook deliveries", processes.ProbeQueue: "provider probes", processes.SweepQueue: "machine searches", processes.JournalQueue: "journal reads"}[q.Name]
	if word == "" {
		return "tasks of a tenant that is gone"
	}
	return word
}

// queueButton pauses a queue, or resumes it.
func queueButton(q processes.Queue) ui.ButtonModel {
	verb := "pause"
	if q.IsPaused() {
		verb = "resume"
	}
	return page.Opening(page.Capital(verb), page.Capital(verb)+" the queue: "+queueWord(q), route.SystemQueueVerb(q.Name, verb), ui.Secondary)
}

// pausedText says since when a queue is paused, and by whom.
func (s *Server) pausedText(r *http.Request, p processes.Pause) string {
	text := "since " + ui.ViewerOf(r.Context()).Full(p.At)
	if p.By != "" {
		text += ", by " + string(p.By)
	}
	return text
}

// queueStates lists the queues with what is on them.
func (s *Server) queueStates(queues []processes.Queue) templ.Component {
	m := adminview.TableModel{ID: "states", Caption: "River jobs by queue", ShowCaption: true, Now: s.Now(), Columns: []ui.Column{{Label: "Queue"}, {Label: "State"}},
		Empty: ui.EmptyModel{Icon: "check-circle", Text: "Every queue is empty."}}
	for _, state := range countedStates {
		m.Columns = append(m.Columns, ui.Column{Label: jobStates[state].Word, Numeric: true, Low: state == "pending" || state == "scheduled"})
	}
	m.Columns = append(m.Columns, ui.Column{Label: "Oldest"}, ui.Column{Label: "Actions", LabelHidden: true})
	m.CSV, m.JSON = s.ExportsAt(route.SystemQueues(), nil)
	for _, q := range queues {
		works, name := ui.State{Word: "Works", Icon: "check-circle", Tone: ui.ToneOK}, adminview.Cell{Text: page.Capital(queueWord(q)), Sub: q.Name}
		if q.Tenant != "" {
			name.Href = route.SystemTenant(q.Tenant)
		}
		state := adminview.Cell{State: &works}
		if q.IsPaused() {
			state = adminview.Cell{State: &pausedState, Time: q.Paused.At}
			if q.Paused.By != "" {
				state.Sub = "by " + string(q.Paused.By)
			}
		}
		row := []adminview.Cell{name, state}
		for _, counted := range countedStates {
			row = append(row, adminview.Cell{Text: cappedText(q.Counts[counted])})
		}
		actions := adminview.Cell{}
		if q.MayPause() {
			actions.Buttons = []ui.ButtonModel{queueButton(q)}
		}
		m.Rows = append(m.Rows, append(row, adminview.Cell{Time: q.Oldest}, actions))
	}
	return adminview.Table(m)
}

// whatStops says what pausing a queue means.
func whatStops(q processes.Queue) []string {
	lines := map[string][]string{
		processes.ControlQueue: {"Scheduler jobs stop: operations do not end, expired leases delete nothing, sessions and old logs stay.",
			"Loom still finds lost processes and requeues their tasks."},
		processes.HookQueue:    {"Loom calls no hooks. Operations that wait for a blocking hook keep waiting."},
		processes.ProbeQueue:   {"Loom tests no providers."},
		processes.JournalQueue: {"No journals open. Open ones continue."},
		processes.SweepQueue:   {"The search for orphans and the removal of leftover machines wait."},
	}[q.Name]
	if q.Tenant != "" {
		lines = []string{"No new task of the tenant " + q.Tenant + " starts, not even of running operations. Running tasks finish.",
			"You can still create, pause and abort operations. Machines are created and deleted only after the queue is resumed, even those with expired leases."}
	}
	return append(lines, "Nothing is lost: all work continues once the queue is resumed. It stays paused over restarts.")
}

func (s *Server) systemQueueAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q, err := s.Processes.FindQueue(r.Context(), actor, r.PathValue("queue"))
	if err != nil {
		return err
	}
	verb := r.PathValue("verb")
	m := adminview.ConfirmModel{Action: r.URL.Path, Cancel: route.SystemQueues(), Button: page.Capital(verb) + " " + queueWord(q)}
	switch verb {
	case "pause":
		m.Busy, m.Lines = "Pausing…", whatStops(q)
		if n := q.Counts["running"]; n > 0 {
			m.Lines = append(m.Lines, ui.Count(n, "River job runs", "River jobs run")+" now.")
		}
		if q.IsPaused() {
			m.WhyNot = "The queue is paused already, " + s.pausedText(r, q.Paused) + "."
		}
	case "resume":
		m.Busy, m.Harmless, m.Lines = "Resuming…", true, []string{"Waiting jobs start again at once: " + strconv.Itoa(q.Counts["available"]) + " now."}
		if !q.IsPaused() {
			m.WhyNot = "The queue is not paused."
		}
	default:
		return loom.NewError(loom.NotFound, "There is no page %.100s.", r.URL.Path)
	}
	page := page.SystemFrame(m.Button, route.SystemQueues(), ui.Crumb{Label: "Queues", Href: route.SystemQueues()}, ui.Crumb{Label: page.Capital(verb)})
	return s.Confirm(w, r, actor, page, adminview.Confirm(m))
}

func (s *Server) systemQueueAct(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	name, said, err := r.PathValue("queue"), "", error(nil)
	switch r.PathValue("verb") {
	case "pause":
		err, said = s.Processes.PauseQueue(r.Context(), actor, name), " is paused."
	case "resume":
		err, said = s.Processes.ResumeQueue(r.Context(), actor, name), " continues."
	default:
		err = loom.NewError(loom.NotFound, "There is no page %.100s.", r.URL.Path)
	}
	if err != nil {
		return err
	}
	q, err := s.Processes.FindQueue(r.Context(), actor, name)
	if err != nil {
		return err
	}
	return s.Say(w, r, route.SystemQueues(), httpx.Flash{Tone: "ok", Text: "The queue of " + queueWord(q) + said})
}
