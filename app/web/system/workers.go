package system

import (
	"maps"
	"net/http"
	"slices"
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

func (s *Server) systemWorkers(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	processes, err := s.Processes.List(r.Context(), actor, "")
	if err != nil {
		return err
	}
	shortage, err := s.Processes.Shortage(r.Context(), actor)
	if err != nil {
		return err
	}
	provisioners := adminview.TableModel{ID: "provisioners", Caption: "Provisioners", ShowCaption: true, Now: s.Now(),
		Columns: []ui.Column{{Label: "Process"}, {Label: "State"}, {Label: "Capacity", Numeric: true}, {Label: "Assigned to"}, {Label: "Running for"}, {Label: "Renewed"}, {Label: "Last error"}, {Label: "Actions", LabelHidden: true}},
		Empty:   ui.EmptyModel{Icon: "server", Text: "No provisioner runs, so no task starts. Start one with “loom provisioner”."}}
	others := adminview.TableModel{ID: "others", Caption: "Other processes", ShowCaption: true, Now: s.Now(),
		Columns: []ui.Column{{Label: "Process"}, {Label: "Kind"}, {Label: "Version"}, {Label: "Started"}, {Label: "Renewed"}, {Label: "Last error"}},
		Empty:   ui.EmptyModel{Icon: "server", Text: "No other process runs."}}
	for _, p := range processes {
		if p.Kind == loom.ProcessProvisioner {
			provisioners.Rows = append(provisioners.Rows, workerRow(p))
			continue
		}
		others.Rows = append(others.Rows, []adminview.Cell{{Text: string(p.ID), Mono: true, Sub: p.Host}, {Text: p.Kind}, {Text: p.Version}, {Time: p.Started}, {Time: p.LastSeen, ShowTime: true}, lastError(p)})
	}
	m := adminview.PageModel{Title: "Workers", Intro: "Live processes. Provisioners run the tasks. Loom assigns their workers to tenants by requested number.",
		Calls: []ui.JSONCall{page.Call("list", http.MethodGet, "/v2/provisioners", "")}}
	if len(processes) > 0 {
		others.CSV, others.JSON = s.ExportsAt(route.SystemWorkers(), nil)
	}
	if shortage.Short() {
		m.Parts = append(m.Parts, ui.Banner(ui.BannerModel{Tone: ui.ToneWarn,
			Text: "Tenants are to have " + strconv.Itoa(shortage.Requested) + " workers, the running provisioners could give them " + strconv.Itoa(shortage.Assigned) + ". Start another provisioner, or raise LOOM_PROVISIONER_CAPACITY."}))
	}
	m.Parts = append(m.Parts, adminview.Table(provisioners), adminview.Table(others))
	return s.LiveSheet(w, r, actor, route.TopicSystem(), page.SystemFrame("Workers", route.SystemWorkers()), m)
}

func workerRow(p processes.Process) []adminview.Cell {
	state := ui.State{Word: "Works", Icon: "check-circle", Tone: ui.ToneOK}
	button := page.Opening("Drain", "Drain "+string(p.ID), route.SystemWorkerVerb(p.ID, "drain"), ui.Danger)
	switch {
	case p.Ending:
		state, button = ui.State{Word: "Ending", Icon: "square", Tone: ui.ToneHold}, ui.ButtonModel{}
	case p.Draining:
		state = ui.State{Word: "Draining", Icon: "pause", Tone: ui.ToneHold}
		button = page.Opening("Resume", "Resume "+string(p.ID), route.SystemWorkerVerb(p.ID, "resume"), ui.Secondary)
	}
	busy := 0
	for _, n := range p.Working {
		busy += n
	}
	actions := adminview.Cell{}
	if button.Label != "" {
		actions.Buttons = []ui.ButtonModel{button}
	}
	id := adminview.Cell{Text: string(p.ID), Mono: true, Sub: strings.TrimSpace(p.Host + " · " + p.Version)}
	if len(p.Plugins) > 0 {
		plugins := make([]ui.Def, len(p.Plugins))
		for i, name := range p.Plugins {
			plugins[i] = ui.Def{Term: name, Text: "part of Loom, " + p.Version}
			if release := p.Versions[name]; release != "" {
				plugins[i].Text = "release " + release
			}
		}
		id.Part = adminview.Details(adminview.DetailsModel{Summary: ui.Count(len(plugins), "plugin", "plugins"), Facts: plugins})
	}
	return []adminview.Cell{id, {State: &state}, {Text: strconv.Itoa(busy) + " of " + strconv.Itoa(p.Capacity), Sub: strconv.Itoa(p.Free()) + " free"},
		{Text: byTenant(p.Assigned)}, {Text: byTenant(p.Working)}, {Time: p.LastSeen, ShowTime: true}, lastError(p), actions}
}

// lastError is what last went wrong in a process itself; what goes wrong with tasks is
// told by their operations.
func lastError(p processes.Process) adminview.Cell {
	if p.Trouble == "" {
		return adminview.Cell{Text: "none"}
	}
	return adminview.Cell{Time: p.TroubleAt, Sub: p.Trouble}
}

// byTenant lists numbers by the names of tenants.
func byTenant(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			parts = append(parts, name+" "+strconv.Itoa(counts[name]))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func (s *Server) systemWorkerAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := s.Processes.One(r.Context(), actor, loom.ProcessProvisioner, loom.ProcessID(r.PathValue("id")))
	if err != nil {
		return err
	}
	m := adminview.ConfirmModel{Action: r.URL.Path, Cancel: route.SystemWorkers()}
	switch r.PathValue("verb") {
	case "drain":
		m.Button, m.Busy = "Drain "+string(p.ID), "Draining…"
		m.Lines = []string{"It takes no new tasks; its workers are assigned to other provisioners. Running tasks continue: " + byTenant(p.Working) + ".", "It may be resumed at any time."}
	case "resume":
		m.Button, m.Busy, m.Harmless = "Resume "+string(p.ID), "Resuming…", true
		m.Lines = []string{"It takes tasks again, and workers are assigned to it."}
	default:
		return loom.NewError(loom.NotFound, "There is no page %.100s.", r.URL.Path)
	}
	page := page.SystemFrame(m.Button, route.SystemWorkers(), ui.Crumb{Label: "Workers", Href: route.SystemWorkers()}, ui.Crumb{Label: m.Button})
	return s.Confirm(w, r, actor, page, adminview.Confirm(m))
}

func (s *Server) systemWorkerAct(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, said, err := loom.ProcessID(r.PathValue("id")), "", error(nil)
	switch r.PathValue("verb") {
	case "drain":
		_, err = s.Processes.Drain(r.Context(), actor, id)
		said = string(id) + " drains."
	case "resume":
		_, err = s.Processes.Resume(r.Context(), actor, id)
		said = string(id) + " takes tasks again."
	default:
		err = loom.NewError(loom.NotFound, "There is no page %.100s.", r.URL.Path)
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.SystemWorkers(), httpx.Flash{Tone: "ok", Text: said})
}

func (s *Server) systemQueues(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if page.Wants(r, statesID) {
		part, err := s.queueStatesPart(r, actor)
		if err != nil {
			return err
		}
		return s.Fragment(w, r, http.StatusOK, part)
	}
	counts, err := s.Processes.Queues(r.Context(), actor)
	if err != nil {
		return err
	}
	shortage, err := s.Processes.Shortage(r.Context(), actor)
	if err != nil {
		return err
	}
	tenants, err := s.Accounts.Tenants(r.Context(), actor)
	if err != nil {
		return err
	}
	figures, failed := s.Processes.Figures(r.Context())
	oldest := map[string]loom.QueueLength{}
	for _, q := range figures.Queues {
		oldest[q.Tenant] = q
	}
	workers, queued := shares(shortage), queuesByName(counts)
	grid := adminview.TableModel{ID: "queues", Caption: "Tasks by tenant", Now: s.Now(),
		Columns: []ui.Column{{Label: "Tenant"}, {Label: "Waiting", Numeric: true}, {Label: "Oldest"}, {Label: "Running", Numeric: true}, {Label: "Workers", Numeric: true}, {Label: "Why it waits"}},
		Empty:   ui.EmptyModel{Icon: "check-circle", Text: "No tasks are waiting or running."}}
	for _, t := range tenants {
		q, work := queued[t.Name], workers[t.ID]
		if q.Waiting+q.Running == 0 {
			continue
		}
		age := adminview.Cell{}
		if o, ok := oldest[t.Name]; ok {
			age.Text = ui.Duration(o.Oldest)
		}
		why := adminview.Cell{}
		if q.Waiting > 0 {
			why.Text = page.WhyWaiting(q, work)
		}
		grid.Rows = append(grid.Rows, []adminview.Cell{
			{Text: t.Name, Href: route.SystemTenant(t.Name), Mono: true}, {Text: strconv.Itoa(q.Waiting)}, age, {Text: strconv.Itoa(q.Running)},
			{Text: strconv.Itoa(work.Assigned) + " of " + strconv.Itoa(t.Workers)}, why,
		})
	}
	m := adminview.PageModel{Title: "Queues", Intro: "Waiting and running tasks by tenant.", Parts: []templ.Component{adminview.Table(grid)},
		Actions: []ui.ButtonModel{{Label: "River jobs", Icon: "file", Href: route.SystemJobs()}}, Calls: []ui.JSONCall{page.Call("count", http.MethodGet, "/v2/metrics/queues", "")}}
	if failed != nil {
		m.Parts = append([]templ.Component{ui.Banner(ui.BannerModel{Tone: ui.ToneWarn, Text: "How long the oldest tasks wait could not be read in time."})}, m.Parts...)
	}
	if page.Wants(r, page.RegionID) {
		return s.LiveSheet(w, r, actor, route.TopicSystem(), page.SystemFrame("Queues", route.SystemQueues()), m)
	}
	// What was is not asked for again every few seconds.
	more, err := s.paceParts(r, actor)
	if err != nil {
		return err
	}
	return s.LiveSheet(w, r, actor, route.TopicSystem(), page.SystemFrame("Queues", route.SystemQueues()), m, more...)
}
