package clusterview

import (
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/ui"
)

// HomeModel is the start page.
type HomeModel struct {
	Clusters HomeClusters
	// Feed is recent activity, nil for none; FeedHref leads to all of it.
	Feed     templ.Component
	FeedHref string
	// Quota is how many nodes of the tenant's are used; without a limit it is not shown.
	Quota ui.QuotaModel
	// MayCreate says that there is a template that clusters may be created from.
	MayCreate bool
	// First shows the first steps instead: there has been no cluster yet.
	First bool
	// Templates says that there is one to begin with; MayMake that the viewer
	// could make one.
	Templates, MayMake bool
}

// HomeClusters is what needs attention, and the clusters that changed last.
type HomeClusters struct {
	Attention []AttentionItem
	// More is how many items are left out.
	More int
	Rows []loom.ClusterSummary
}

// AttentionItem is what is wrong with a cluster, in one line, with what to do about it.
type AttentionItem struct {
	Tone          ui.Tone
	Cluster, Href string
	Text          string
	// At is shown behind the text: the end of a lease, or the start of an incident.
	At      time.Time
	Actions []ui.ButtonModel
	// Ask is the question whether Loom repairs an incident.
	Ask RepairAsk
}
