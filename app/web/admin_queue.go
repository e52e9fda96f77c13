package web

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/fleet"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// adminQueue says what of the tenant waits for a worker, and for want of what.
func (s *Server) adminQueue(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	counts, err := s.Fleet.Queues(r.Context(), actor)
	if err != nil {
		return err
	}
	shortage, err := s.Fleet.Shortage(r.Context(), actor)
	if err != nil {
		return err
	}
	busy, err := s.Clusters.Clusters(r.Context(), actor, lifecycle.ListInput{Page: loom.Page{Limit: officeRows}, Statuses: []loom.ClusterStatus{loom.ClusterPending}, Uncounted: true})
	if err != nil {
		return err
	}
	var waits fleet.QueueCount
	for _, c := range counts {
		if c.Tenant == actor.TenantName {
			waits = c
		}
	}
	share := fleet.TenantWorkers{Tenant: actor.Tenant}
	for _, t := range shortage.Tenants {
		if t.Tenant == actor.Tenant {
			share = t
		}
	}
	m := officeview.SheetModel{
		Title: "Queue", Intro: "Tasks of this tenant that wait for a worker. A worker does one task at a time; how many there are for the tenant is set by a superadmin.",
		Calls: []ui.JSONCall{call("count", http.MethodGet, "/v2/metrics/queues", "")},
	}
	banner := ui.BannerModel{Tone: ui.ToneWarn, Text: whyWaiting(waits, share)}
	if waits.Waiting == 0 {
		banner.Tone = ui.ToneOK
	}
	m.Parts = []templ.Component{ui.Banner(banner), ui.Definitions([]ui.Def{
		{Term: "Tasks that wait", Text: strconv.Itoa(waits.Waiting)}, {Term: "Tasks at work", Text: strconv.Itoa(waits.Running)},
		{Term: "Workers wanted", Text: strconv.Itoa(share.Wanted)}, {Term: "Workers dealt", Text: strconv.Itoa(share.Dealt)}, {Term: "Workers busy", Text: strconv.Itoa(share.Busy)},
	}), s.busyGrid(busy)}
	return s.liveSheet(w, r, actor, route.TopicTenant(), adminFrame("Queue", route.AdminQueue()), m)
}

// whyWaiting names the share of workers that makes tasks wait.
func whyWaiting(c fleet.QueueCount, t fleet.TenantWorkers) string {
	switch {
	case c.Waiting == 0:
		return "No task waits for a worker."
	case t.Wanted == 0:
		return "The tenant has no workers, so nothing starts; a superadmin gives it some."
	case t.Dealt == 0:
		return "No provisioner that runs has workers to spare for the tenant; " + ui.Count(c.Waiting, "task waits", "tasks wait") + "."
	case t.Dealt < t.Wanted:
		return "The tenant is to have " + ui.Count(t.Wanted, "worker", "workers") + ", the provisioners that run gave it " + strconv.Itoa(t.Dealt) + "; " + ui.Count(c.Waiting, "task waits", "tasks wait") + "."
	case t.Busy >= t.Dealt:
		return "All " + ui.Count(t.Dealt, "worker", "workers") + " of the tenant are busy; " + ui.Count(c.Waiting, "task waits", "tasks wait") + " for one."
	}
	return ui.Count(c.Waiting, "task is", "tasks are") + " about to start."
}

func (s *Server) busyGrid(list lifecycle.List) templ.Component {
	m := officeview.GridModel{ID: "busy", Caption: "Clusters with an operation at work", ShowCaption: true, Now: s.now(),
		Columns: []ui.Column{{Label: "Cluster"}, {Label: "Owner"}, {Label: "Operation"}, {Label: "Done", Numeric: true}},
		Empty:   ui.EmptyModel{Icon: "check-circle", Text: "No operation is at work."}}
	for _, c := range list.Items {
		m.Rows = append(m.Rows, []officeview.Cell{
			{Text: c.Name, Href: route.Cluster(c.ID)}, {Text: string(c.Owner.User), Mono: true}, {Text: c.Progress.Action.Verb()},
			{Text: strconv.Itoa(c.Progress.Done) + " of " + strconv.Itoa(c.Progress.Total)},
		})
	}
	if list.Next != "" {
		m.Pages = ui.PaginationModel{Label: "More clusters", Next: route.Query(route.Clusters(), "status", string(loom.ClusterPending))}
	}
	return officeview.Grid(m)
}
