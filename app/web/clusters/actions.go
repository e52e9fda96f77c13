package clusters

import (
	"cmp"
	"slices"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/route"
	"loom/views/ui"
)

// clusterActions is the menu of a cluster: what cannot be done now says why.
func clusterActions(actor loom.Actor, v clusters.ClusterView) []ui.MenuItem {
	if v.Status == loom.ClusterTerminated || actor.May(loom.Operate, v.Object()) != nil {
		return nil
	}
	at := func(verb loom.ChangeKind) string { return route.ClusterVerb(v.ID, string(verb)) }
	services := func(verb string) string { return route.ClusterServices(v.ID, verb) }
	add, start, stop := v.Allowed[loom.ChangeAddServices], v.Allowed[loom.ChangeStart], v.Allowed[loom.ChangeStop]
	if v.Status == loom.ClusterActive {
		if !slices.ContainsFunc(v.Template.Compatibility.Services, func(name string) bool { _, there := v.Services[name]; return !there }) {
			add = cmp.Or(add, "The cluster has all services of its template.")
		}
		if allServices(v, loom.ServiceStarted) && !v.Health.Status.Bad() {
			start = cmp.Or(start, "All services run.")
		}
		if allServices(v, loom.ServiceStopped) {
			stop = cmp.Or(stop, "All services are stopped.")
		}
	}
	items := []ui.MenuItem{
		{Label: "Scale", Icon: "layers", Href: route.ClusterScale(v.ID), WhyNot: v.Allowed[loom.ChangeExpand]},
		{Label: "Change config", Icon: "settings", Href: route.ClusterVerb(v.ID, "reconfigure"), WhyNot: v.Allowed[loom.ChangeConfigure]},
		{Label: "Add services", Icon: "plus", Href: services("add"), WhyNot: add},
		{Label: "Remove services", Icon: "minus", Href: services("remove"), WhyNot: v.Allowed[loom.ChangeRemoveServices]},
		{Label: "Start services", Icon: "play", Href: services("start"), WhyNot: start, Divider: true, Attrs: ui.OpensDialog(services("start"))},
		{Label: "Stop services", Icon: "square", Href: services("stop"), WhyNot: stop, Attrs: ui.OpensDialog(services("stop"))},
		{Label: "Restart services", Icon: "rotate", Href: services("restart"), WhyNot: v.Allowed[loom.ChangeRestart], Attrs: ui.OpensDialog(services("restart"))},
	}
	if len(v.Health.Nodes) > 0 && v.Status == loom.ClusterActive && actor.May(loom.Operate, v.Object()) == nil {
		items = append(items, ui.MenuItem{Label: "Check now", Icon: "activity", Post: route.ClusterVerb(v.ID, "check")})
	}
	items = append(items,
		ui.MenuItem{Label: "Update", Icon: "arrow-up", Href: at(loom.ChangeUpdate), WhyNot: v.Allowed[loom.ChangeUpdate], Divider: true},
		ui.MenuItem{Label: "Change hardware", Icon: "cpu", Href: at(loom.ChangeResize), WhyNot: v.Allowed[loom.ChangeResize]},
		ui.MenuItem{Label: "Repair nodes", Icon: "shield", Href: at(loom.ChangeRepair), WhyNot: v.Allowed[loom.ChangeRepair]},
	)
	if v.Latest != nil && v.Latest.Action != loom.ClusterCreate && v.Latest.Action != loom.ClusterDelete && v.Latest.Action != loom.ClusterAuthorize {
		items = append(items, ui.MenuItem{Label: "Roll back last change", Icon: "back",
			Href: route.OperationVerb(v.Latest.Ref, "rollback"), WhyNot: v.Allowed[loom.ChangeRollback]})
	}
	protect := ui.MenuItem{Label: "Protect", Icon: "lock", Post: route.ClusterProtect(v.ID, !v.Protected), WhyNot: v.Allowed[loom.ChangeEdit], Divider: true}
	if v.Protected {
		protect.Label = "Unprotect"
	}
	if err := actor.May(loom.Own, v.Object()); err != nil {
		protect.WhyNot = loom.AsError(err).Message
	}
	items = append(items, protect, ui.MenuItem{Label: "Duplicate", Icon: "copy", Href: route.ClusterNewLike(v.ID)})
	items = append(items, ownerAction(actor, v)...)
	if _, offered := v.Allowed[loom.ChangeDelete]; offered {
		why, abortFirst := deletable(v)
		remove := ui.MenuItem{Label: "Delete", Icon: "trash", Danger: true, Href: route.ClusterDelete(v.ID), WhyNot: why, Divider: true, Attrs: ui.OpensDialog(route.ClusterDelete(v.ID))}
		if abortFirst {
			remove.Label = "Abort and delete"
		}
		items = append(items, remove)
	}
	return items
}

// nodeActions is what can be done to one node.
func nodeActions(v clusters.ClusterView, n loom.Node) []ui.MenuItem {
	if v.Status == loom.ClusterTerminated {
		return nil
	}
	if n.State == loom.NodeDeleted {
		return repairActions(v, n.ID, nil, loom.RepairByReplacement)
	}
	items := repairActions(v, n.ID, nil, loom.RepairHows...)
	remove := ui.MenuItem{Label: "Remove this node", Icon: "trash", Danger: true, Href: route.ClusterScale(v.ID, n.ID), WhyNot: v.Allowed[loom.ChangeShrink]}
	if !n.Leaving && lastPlaced(v) {
		remove.WhyNot = cmp.Or(remove.WhyNot, "It is the only node; delete the cluster instead.")
	}
	return append(items, remove)
}

// lastPlaced says that fewer than two nodes are members that stay. It is asked for each
// node of a list, and a cluster may have thousands.
func lastPlaced(v clusters.ClusterView) bool {
	placed := 0
	for i := range v.Nodes {
		if v.Nodes[i].Leaving || v.Nodes[i].State == loom.NodeDeleted {
			continue
		}
		if placed++; placed == 2 {
			return false
		}
	}
	return true
}

// serviceActions is what can be done to one service.
func serviceActions(v clusters.ClusterView, service string) []ui.MenuItem {
	if v.Status == loom.ClusterTerminated {
		return nil
	}
	var items []ui.MenuItem
	for _, a := range []struct {
		verb        loom.ChangeKind
		label, icon string
	}{{loom.ChangeStart, "Start", "play"}, {loom.ChangeStop, "Stop", "square"}, {loom.ChangeRestart, "Restart", "rotate"}} {
		at := route.ClusterService(v.ID, service, string(a.verb))
		why := v.Allowed[a.verb]
		if on, started := serviceCounts(v, service, loom.ServiceStarted); a.verb == loom.ChangeStart && on == started && !v.Health.Status.Bad() {
			why = cmp.Or(why, "It runs on all its nodes.")
		}
		if on, stopped := serviceCounts(v, service, loom.ServiceStopped); a.verb == loom.ChangeStop && on == stopped {
			why = cmp.Or(why, "It is stopped on all its nodes.")
		}
		items = append(items, ui.MenuItem{Label: a.label, Icon: a.icon, Href: at, WhyNot: why, Attrs: ui.OpensDialog(at)})
	}
	return items
}

// buttons are menu items as buttons of a page.
func buttons(items []ui.MenuItem) []ui.ButtonModel {
	var out []ui.ButtonModel
	for _, i := range items {
		b := ui.ButtonModel{Label: i.Label, Icon: i.Icon, Href: i.Href, WhyNot: i.WhyNot, Small: true, Attrs: i.Attrs}
		if i.Danger {
			b.Kind = ui.Danger
		}
		out = append(out, b)
	}
	return out
}

// retryLabel is the button that runs what is left of an operation.
const retryLabel = "Retry"

// operationActions is what can be done about an operation: while it runs, and after it
// failed when it is the latest.
func operationActions(v clusters.ClusterView, op loom.Operation) []ui.ButtonModel {
	verb := func(word string) string { return route.OperationVerb(op.Ref, word) }
	latest := v.Latest != nil && v.Latest.Ref == op.Ref
	var out []ui.ButtonModel
	switch {
	case op.NeverBegan():
		if latest {
			out = append(out, ui.ButtonModel{Label: "Request again", Icon: "rotate", Kind: ui.Primary, FormAction: verb("resubmit"), Attrs: titled("Makes the same request again")})
		}
	case !latest && op.Status.Final():
		if op.Status == loom.OperationComplete && v.Status != loom.ClusterTerminated && op.Action != loom.ClusterCreate && op.Action != loom.ClusterDelete && op.Action != loom.ClusterAuthorize {
			out = append(out, ui.ButtonModel{Label: "Roll back to before this", Icon: "back", Href: verb("rollback"), WhyNot: v.Allowed[loom.ChangeRollback]})
		}
	case !op.Status.Final():
		if op.Status == loom.OperationPaused {
			out = append(out, ui.ButtonModel{Label: "Resume", Icon: "play", FormAction: verb("resume")})
		} else {
			out = append(out, ui.ButtonModel{Label: "Pause", Icon: "pause", FormAction: verb("pause"), WhyNot: v.Allowed[loom.ChangePause]})
		}
		out = append(out, ui.ButtonModel{Label: "Abort", Icon: "ban", Kind: ui.Danger, Href: verb("abort"), WhyNot: v.Allowed[loom.ChangeAbort], Attrs: ui.OpensDialog(verb("abort"))})
	case v.Status == loom.ClusterTerminated:
	case op.Action == loom.ClusterAuthorize:
		if op.Status != loom.OperationComplete {
			out = append(out, ui.ButtonModel{Label: "Add my keys", Icon: "key", FormAction: route.ClusterVerb(v.ID, "authorize"), WhyNot: v.Allowed[loom.ChangeAuthorize], Attrs: titled("Puts your SSH keys on all machines again")})
		}
	case op.Status == loom.OperationComplete:
		if op.Action != loom.ClusterCreate && op.Action != loom.ClusterDelete {
			out = append(out, ui.ButtonModel{Label: "Roll back", Icon: "back", Href: verb("rollback"), WhyNot: v.Allowed[loom.ChangeRollback], Attrs: titled("Restores the state before the operation")})
		}
	default:
		out = append(out,
			ui.ButtonModel{Label: retryLabel, Icon: "rotate", Href: verb("retry"), WhyNot: v.Allowed[loom.ChangeRetry], Attrs: ui.OpensDialog(verb("retry"))},
			ui.ButtonModel{Label: "Roll back", Icon: "back", Href: verb("rollback"), WhyNot: v.Allowed[loom.ChangeRollback], Attrs: titled("Restores the state before the operation")})
	}
	return out
}

// titled explains a button to who points at it.
func titled(text string) templ.Attributes { return templ.Attributes{"title": text} }
