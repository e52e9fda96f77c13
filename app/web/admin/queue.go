package admin

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// queueRunning is the value of ?state with which the tasks that run are listed.
const queueRunning = "running"

// adminQueue says what of the tenant waits for a worker, and for want of what.
func (s *Server) adminQueue(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	running := r.URL.Query().Get("state") == queueRunning
	asked := s.PageOf(r)
	asked.Sort = ""
	q, err := s.Processes.Queued(r.Context(), actor, running, asked)
	if err != nil {
		return err
	}
	busy, err := s.Clusters.Clusters(r.Context(), actor, clusters.ListInput{Page: loom.Page{Limit: page.OfficeRows}, Statuses: []loom.ClusterStatus{loom.ClusterPending}, Uncounted: true})
	if err != nil {
		return err
	}
	m := adminview.PageModel{
		Title: "Queue", Intro: "Tasks of this tenant that wait for a worker, and those that have one. A worker does one task at a time; how many there are for the tenant is set by a superadmin.",
		TabsLabel: "Tasks of the queue",
		Tabs: []ui.Tab{{Label: "Waiting", Href: route.AdminQueue(), Current: !running, Count: strconv.Itoa(q.Waiting)},
			{Label: "Running", Href: route.Query(route.AdminQueue(), "state", queueRunning), Current: running, Count: strconv.Itoa(q.Running)}},
		Calls: []ui.JSONCall{page.Call("count", http.MethodGet, "/v2/metrics/queues", "")},
	}
	banner := ui.BannerModel{Tone: ui.ToneWarn, Text: page.WhyWaiting(processes.QueueCount{Waiting: q.Waiting}, q.Share)}
	if q.Oldest.IsZero() && q.Share.Paused.At.IsZero() {
		banner.Tone = ui.ToneOK
		if q.Waiting > 0 {
			banner.Text = ui.Count(q.Waiting, "task waits", "tasks wait") + ", none of them for a worker."
		}
	}
	oldest := ui.Def{Term: "Longest wait", Text: "–"}
	if !q.Oldest.IsZero() {
		oldest.Text = ui.Duration(q.Now.Sub(q.Oldest))
	}
	if q.Waiting > 0 || banner.Tone != ui.ToneOK { // else the table says it
		m.Banners = []ui.BannerModel{banner}
	}
	m.Parts = []templ.Component{ui.Definitions([]ui.Def{oldest,
		{Term: "Workers requested", Text: strconv.Itoa(q.Share.Requested)}, {Term: "Workers assigned", Text: strconv.Itoa(q.Share.Assigned)}, {Term: "Workers busy", Text: strconv.Itoa(q.Share.Busy)},
	}), s.queueGrid(q, running), s.busyGrid(busy)}
	return s.LiveSheet(w, r, actor, route.TopicTenant(), page.AdminFrame("Queue", route.AdminQueue()), m)
}

// queueGrid lists the single tasks.
func (s *Server) queueGrid(q processes.Queued, running bool) templ.Component {
	m := adminview.TableModel{ID: "tasks", Caption: "Tasks that wait, the longest wait first", ShowCaption: true,
		Columns: []ui.Column{{Label: "Task"}, {Label: "Cluster"}, {Label: "Node"}, {Label: "Waits for"}, {Label: "Because"}},
		Empty:   ui.EmptyModel{Icon: "check-circle", Text: "No task waits for a worker."}}
	filters := []string{"state", ""}
	if running {
		m.Caption, m.Empty.Text, filters[1] = "Tasks that run, the longest first", "No task runs.", queueRunning
		m.Columns[3].Label, m.Columns[4].Label = "Runs for", "On"
	}
	m.Pages = page.Turned("Pages of tasks", route.AdminQueue(), q.Next, q.Prev, filters...)
	for _, t := range q.Items {
		last := adminview.Cell{Text: whyTaskWaits(t, q.Share)}
		if running {
			last = adminview.Cell{Text: t.Host, Sub: t.Process}
		}
		m.Rows = append(m.Rows, []adminview.Cell{
			{Text: strings.TrimSpace(t.Action + " " + t.Service), Href: route.Task(t.Ref()), Sub: "task " + strconv.Itoa(t.Number) + " of operation " + strconv.Itoa(t.Operation)},
			{Text: t.ClusterName, Href: route.Operation(t.Ref().Operation), Sub: "of " + t.Owner}, {Text: ui.ShortHost(t.Hostname), Mono: true}, {Text: waitedFor(t)}, last})
	}
	return adminview.Table(m)
}

// waitedFor is how long a task has waited or run.
func waitedFor(t processes.QueuedTask) string {
	if t.Since.After(t.Now) {
		return "–"
	}
	return ui.Duration(t.Now.Sub(t.Since))
}

// whyTaskWaits says what a single task waits for: its operation, the time of its next
// try, or the share of workers of the tenant.
func whyTaskWaits(t processes.QueuedTask, share processes.TenantWorkers) string {
	switch {
	case !share.Paused.At.IsZero():
		return "The queue of the tenant is paused."
	case t.State == loom.OperationPaused:
		return "Its operation is paused."
	case t.State == loom.OperationNotSubmitted:
		return "Its operation is about to begin."
	case t.State == loom.OperationFailing:
		return "Its operation failed; it will be left out."
	case t.Since.After(t.Now) && t.Failed:
		return strings.TrimSuffix("It is tried again in "+ui.Duration(t.Since.Sub(t.Now))+", after: "+t.Message, ", after: ")
	case t.Since.After(t.Now):
		return "It is looked at again in " + ui.Duration(t.Since.Sub(t.Now)) + "."
	case t.Priority == 0:
		return "It is on its way into the queue."
	case share.Requested == 0:
		return "The tenant has no workers."
	case share.Assigned == 0:
		return "No provisioner that runs has a worker for the tenant."
	case share.Busy < share.Assigned:
		return "It is about to start."
	case t.Priority > 1:
		return page.AllBusy(share) + ", and clusters with less under way go first."
	}
	return page.AllBusy(share) + "."
}

func (s *Server) busyGrid(list clusters.List) templ.Component {
	m := adminview.TableModel{ID: "busy", Caption: "Clusters with a running operation", ShowCaption: true, Now: s.Now(),
		Columns: []ui.Column{{Label: "Cluster"}, {Label: "Owner"}, {Label: "Operation"}, {Label: "Done", Numeric: true}},
		Empty:   ui.EmptyModel{Icon: "check-circle", Text: "No operation is running."}}
	for _, c := range list.Items {
		m.Rows = append(m.Rows, []adminview.Cell{
			{Text: c.Name, Href: route.Cluster(c.ID)}, {Text: string(c.Owner.User), Mono: true}, {Text: c.Progress.Action.Verb()},
			{Text: strconv.Itoa(c.Progress.Done) + " of " + strconv.Itoa(c.Progress.Total)},
		})
	}
	if list.Next != "" {
		m.Pages = ui.PaginationModel{Label: "More clusters", Next: route.Query(route.Clusters(), "status", string(loom.ClusterPending))}
	}
	return adminview.Table(m)
}
