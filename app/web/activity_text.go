package web

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
	"loom/views/route"
	"loom/views/ui"
)

var pastVerbs = map[string]string{
	"create": "created", "update": "changed", "apply": "applied a preview for", "delete": "deleted", "abort": "aborted", "pause": "paused", "resume": "resumed",
	"skip": "left out", "reveal": "looked at credentials of", "import": "imported into", "stage": "staged", "recall": "recalled", "sync": "synced", "retry": "retried", "finish": "ended",
	"probe": "tested", "sweep": "searched", "upload": "uploaded",
}

func verbPast(verb string) string { return cmp.Or(pastVerbs[verb], verb) }

// activityIcon is of the kind of what happened.
func activityIcon(a loom.Activity) string {
	switch {
	case a.LeaseMoved():
		return "clock"
	case a.Verb == "reveal":
		return "key"
	case a.Cluster != 0:
		return "cluster"
	case a.Kind == "resource":
		return "file"
	}
	return "template"
}

// activityText is what was done, up to the name of what it was done to.
func activityText(a loom.Activity) string {
	switch {
	case a.Verb == "finish":
		return capital(a.Action.Verb()) + " of"
	case a.LeaseMoved() && a.Action == "":
		return "moved the lease of"
	case a.Kind == "cluster" && a.Action != "":
		return "asked for “" + a.Action.Verb() + "” of"
	case a.Kind == "cluster" && a.Verb == "reveal":
		return "downloaded the key of"
	case a.Kind == "cluster" && a.Verb == "apply":
		return "applied a preview for"
	case a.Kind == "operation", a.Kind == "task":
		return verbPast(a.Verb) + " " + numbered(a.Object) + " of"
	case a.Kind == "catalog":
		return verbPast(a.Verb) + " the"
	case a.Kind == "node" || a.Kind == "cluster":
		return verbPast(a.Verb) + " cluster"
	}
	return verbPast(a.Verb) + " " + a.Kind
}

func activityObject(a loom.Activity) string {
	switch {
	case a.Cluster != 0:
		return cmp.Or(a.ClusterName, a.Cluster.String())
	case a.Kind == "catalog":
		return "catalog"
	}
	return a.Object
}

// activityNote is the rest of the sentence.
func activityNote(see ui.Viewer, a loom.Activity) string {
	switch {
	case a.FailedTasks > 0:
		note := ui.Count(a.FailedTasks, "task", "tasks") + " failed"
		if a.FailedNodes > 0 {
			note += " on " + ui.Count(a.FailedNodes, "node", "nodes")
		}
		return note
	case a.Status == loom.OperationFailed && a.Message != "":
		return cutShort(a.Message)
	case a.LeaseMoved():
		return "from " + leaseWord(see, a.LeaseBefore) + " to " + leaseWord(see, a.LeaseAfter)
	}
	return ""
}

// numbered writes the id of an operation, "00000042-003", or of a task, "00000042-003-007",
// as it is called where the cluster is named beside it: "task 7 of operation 3".
func numbered(id string) string {
	parts := strings.Split(id, "-")
	number := func(text string) string { return cmp.Or(strings.TrimLeft(text, "0"), "0") }
	switch len(parts) {
	case 2:
		return "operation " + number(parts[1])
	case 3:
		return "task " + number(parts[2]) + " of operation " + number(parts[1])
	}
	return id
}

// leaseWord writes the end of a lease, milliseconds since 1970.
func leaseWord(see ui.Viewer, millis string) string {
	n, err := strconv.ParseInt(millis, 10, 64)
	if err != nil || n == 0 {
		return "no end"
	}
	return see.Moment(time.UnixMilli(n))
}

// activityHref leads to what it is about; pages of other tenants cannot be opened.
func activityHref(a loom.Activity, all bool) string {
	if all {
		return ""
	}
	if a.Operation != (loom.OperationRef{}) {
		return route.Operation(a.Operation)
	}
	if a.Cluster != 0 {
		return route.Cluster(a.Cluster)
	}
	switch a.Kind {
	case loom.KindTemplate.Word():
		return route.CatalogTemplate(strings.TrimSuffix(a.Object, versionOf(a.Object)))
	case "resource", "catalog":
		return ""
	}
	return ""
}

// versionOf is the end of a name that names a version of it: "web 3".
func versionOf(object string) string {
	if at := strings.LastIndex(object, " "); at >= 0 {
		return object[at:]
	}
	return ""
}
