package web

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/route"
)

// heavyKinds want the name of the cluster typed whatever their plan is.
var heavyKinds = []loom.PreviewKind{
	loom.PreviewDelete, loom.PreviewShrink, loom.PreviewResize, loom.PreviewRepair, loom.PreviewRollback, loom.PreviewSync,
}

// heavy says whether applying a preview takes the name of the cluster: it deletes
// machines, or cannot be taken back (portals.md 2.3).
func heavy(p lifecycle.PreviewView) bool {
	return slices.Contains(heavyKinds, p.Kind) || p.ByAction[loom.ActionDelete] > 0
}

// kindWords are the words of the forms and of the buttons that apply.
var kindWords = map[loom.PreviewKind]struct{ title, apply string }{
	loom.PreviewConfigure:      {"Reconfigure", "Reconfigure cluster"},
	loom.PreviewAddServices:    {"Add services to", "Add services to cluster"},
	loom.PreviewRemoveServices: {"Remove services from", "Remove services from cluster"},
	loom.PreviewStart:          {"Start services of", "Start services of cluster"},
	loom.PreviewStop:           {"Stop services of", "Stop services of cluster"},
	loom.PreviewRestart:        {"Restart services of", "Restart services of cluster"},
	loom.PreviewExpand:         {"Scale", "Expand cluster"},
	loom.PreviewShrink:         {"Scale", "Shrink cluster"},
	loom.PreviewUpgrade:        {"Upgrade", "Upgrade cluster"},
	loom.PreviewResize:         {"Change the hardware of", "Change the hardware of cluster"},
	loom.PreviewRepair:         {"Repair", "Repair cluster"},
	loom.PreviewRollback:       {"Roll back", "Roll back cluster"},
	loom.PreviewRetry:          {"Retry", "Retry on cluster"},
	loom.PreviewAuthorize:      {"Add my keys to", "Add my keys to cluster"},
	loom.PreviewSync:           {"Sync the template of", "Sync the template of cluster"},
}

// applyWords begin the button that applies a preview of a kind.
func applyWords(kind loom.PreviewKind) string {
	if words, known := kindWords[kind]; known {
		return words.apply
	}
	return "Apply to cluster"
}

// previewParam names the preview whose request fills in a form.
const previewParam = "preview"

// changeURL is the form that the request of a preview came from, filled in as it was.
func changeURL(preview loom.PreviewID, in lifecycle.PreviewInput) string {
	at, q := "", url.Values{}
	id, c := in.Cluster, in.Change
	switch in.Kind {
	case loom.PreviewExpand, loom.PreviewShrink:
		at = route.ClusterScale(id)
		if c.Machines > 0 {
			q.Set("numMachines", strconv.Itoa(c.Machines))
		}
		for _, n := range c.Nodes {
			q.Add("leave", string(n))
		}
	case loom.PreviewAddServices:
		at, q["services"] = route.ClusterServices(id, "add"), in.Services
	case loom.PreviewRemoveServices:
		at, q["services"] = route.ClusterServices(id, "remove"), c.Services
	case loom.PreviewStart, loom.PreviewStop, loom.PreviewRestart:
		at = route.ClusterServices(id, string(in.Kind))
		if in.Service != "" {
			at = route.ClusterService(id, in.Service, string(in.Kind))
		}
	case loom.PreviewUpgrade, loom.PreviewResize:
		at, q["services"] = route.ClusterVerb(id, string(in.Kind)), c.Services
		q.Set("hardwaretype", c.HardwareType)
		if c.Batch > 0 {
			q.Set("batch", strconv.Itoa(c.Batch))
		}
		if c.MinHealthy != nil {
			q.Set("minHealthy", strconv.Itoa(*c.MinHealthy))
		}
	case loom.PreviewRepair:
		at = route.ClusterRepair(id, c.Nodes...)
	case loom.PreviewRollback, loom.PreviewRetry:
		at = route.OperationVerb(loom.OperationRef{Cluster: id, Number: c.Operation}, string(in.Kind))
		for _, n := range c.Skip {
			q.Add("skip", strconv.Itoa(n))
		}
		q.Set("reason", c.Reason)
	case loom.PreviewSync:
		at = route.ClusterVerb(id, string(in.Kind))
	case loom.PreviewConfigure:
		switch {
		case in.Configure == nil:
			return ""
		case in.Configure.Revision != nil:
			at = route.ConfigRestore(id, *in.Configure.Revision, in.Configure.Restart)
		default: // a config does not go into an address
			at = route.ClusterVerb(id, "reconfigure")
			q.Set(previewParam, string(preview))
		}
	default:
		return ""
	}
	q.Set("onFailure", c.OnFailure)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, value := range q[name] {
			pairs = append(pairs, name, value)
		}
	}
	return route.Query(at, pairs...)
}
