package page

import (
	"strconv"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/processes"
	"loom/views/adminview"
	"loom/views/ui"
)

// WhyWaiting names the share of workers that makes tasks wait.
func WhyWaiting(c processes.QueueCount, t processes.TenantWorkers) string {
	n := c.Waiting
	switch {
	case !t.Paused.At.IsZero():
		return "A superadmin paused the queue of the tenant. Running tasks continue; new ones wait. " + ui.Count(n, "task waits", "tasks wait") + "."
	case n == 0:
		return "No task waits for a worker."
	case t.Requested == 0:
		return "The tenant has no workers, so nothing starts; a superadmin gives it some."
	case t.Assigned == 0:
		return "No provisioner that runs has workers to spare for the tenant; " + ui.Count(n, "task waits", "tasks wait") + "."
	case t.Assigned < t.Requested:
		return "The tenant is to have " + ui.Count(t.Requested, "worker", "workers") + ", the provisioners that run gave it " + strconv.Itoa(t.Assigned) + "; " + ui.Count(n, "task waits", "tasks wait") + "."
	case t.Busy >= t.Assigned:
		return AllBusy(t) + "; " + ui.Count(n, "task waits", "tasks wait") + " for one."
	}
	return ui.Count(n, "task is", "tasks are") + " about to start."
}

// AllBusy says that no worker of a tenant is free.
func AllBusy(t processes.TenantWorkers) string {
	if t.Assigned == 1 {
		return "The one worker of the tenant is busy"
	}
	return "All " + strconv.Itoa(t.Assigned) + " workers of the tenant are busy"
}

// LookNow asks for a search.
var LookNow = ui.ButtonModel{Label: "Look now", Busy: "Asking…", Icon: "search", Submit: true}

// LookCells say when a provider was last searched for orphans, and what is under way.
func (s *Shared) LookCells(l loom.Sweep) (last, progress adminview.Cell) {
	if l.Last != nil {
		last = adminview.Cell{Time: *l.Last, Sub: l.Failure}
	} else {
		last = adminview.Cell{Text: "never"}
	}
	switch {
	case l.Asked == nil && l.Failure != "":
		progress = adminview.Cell{State: &ui.State{Word: "Failed", Icon: "error", Tone: ui.ToneBad}}
	case l.Asked == nil:
		progress = adminview.Cell{Text: ui.Count(l.Found, "orphan", "orphans")}
	case l.Started:
		progress = adminview.Cell{State: &ui.State{Word: "Looking", Icon: "search", Tone: ui.ToneRun}, Sub: "since " + s.waited(*l.Asked)}
	default:
		progress = adminview.Cell{State: &ui.State{Word: "Waiting for a provisioner", Icon: "clock", Tone: ui.ToneRun}, Sub: "since " + s.waited(*l.Asked)}
	}
	return last, progress
}

func (s *Shared) waited(since time.Time) string {
	return ui.Duration(max(0, s.Now().Sub(since)).Truncate(time.Second))
}

// OrphanName is what an orphan is called, and what the node of that name has.
func OrphanName(o loom.Orphan) string {
	if o.Own == "" {
		return o.Name
	}
	return "The node " + o.Name + " has " + o.Own + "."
}

// PastRows is how much of what happened stands on the page of a tenant.
const PastRows = 10

// QuotaBars show how much of the quotas of a tenant is used.
func QuotaBars(use loom.QuotaUse) templ.Component {
	limit := func(n int) int {
		if n >= loom.Unlimited {
			return -1
		}
		return n
	}
	return adminview.Card("quota-title", "Quotas", ui.Quota(ui.QuotaModel{Label: "Clusters", Used: use.Clusters, Max: limit(use.MaxClusters)}),
		ui.Quota(ui.QuotaModel{Label: "Nodes", Used: use.Nodes, Max: limit(use.MaxNodes)}))
}
