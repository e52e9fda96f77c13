package clusterview

import (
	"time"

	"github.com/a-h/templ"

	"loom/views/ui"
)

// HomeModel is the start page.
type HomeModel struct {
	Tiles     []ui.TileModel
	Running   RunningModel
	Attention AttentionModel
	// Feed is what happened of late, nil for nothing; FeedHref leads to all of it.
	Feed     templ.Component
	FeedHref string
	// First shows the three steps instead of figures: nothing was made yet.
	First bool
	// Templates says that there is one to begin with; MayMake that the viewer
	// could make one.
	Templates, MayMake bool
}

// RunningModel is the operations under way.
type RunningModel struct{ Items []RunningItem }

// RunningItem is one operation under way.
type RunningItem struct {
	Cluster, Href string
	// Action is its verb: "create".
	Action        string
	OperationHref string
	State         ui.State
	Progress      ui.ProgressModel
	// Tasks says what is being done: "install nginx on web-2".
	Tasks string
}

// AttentionModel is what someone should look at.
type AttentionModel struct {
	Now   time.Time
	Items []AttentionItem
}

// AttentionItem is a cluster with its cause and the fitting link.
type AttentionItem struct {
	Cluster, Href string
	State         ui.State
	Cause         string
	// Ends is shown behind the cause: the end of a lease, or the beginning of an incident.
	Ends    time.Time
	Actions []ui.ButtonModel
	// Ask is the question whether Loom repairs an incident.
	Ask RepairAsk
}
