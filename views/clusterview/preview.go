package clusterview

import (
	"time"

	"loom/app/loom"
	"loom/views/ui"
)

// PreviewModel is a stored plan that was not applied yet.
type PreviewModel struct {
	ID   loom.PreviewID
	Name string
	// Title is the heading: "Preview of web-1".
	Title, Summary string
	// Banner says why this page came instead of the start of the operation.
	Banner ui.BannerModel
	Errors ui.FormErrors
	// Applied links to what came of it, empty until then.
	Applied     string
	AppliedHref string

	Facts []ui.Def
	// Layout is shown where a cluster is made.
	Layout ui.LayoutPictureModel
	Nodes  []PreviewNode
	// Services are those of the cluster, and those that go.
	Services []PreviewService
	Changes  []ChangeGroup
	// More is how many changes are not listed, Kept what stays as it is.
	More int
	Kept KeptChanges
	// Stale says that this preview takes the place of one that could not be applied
	// any more; Moved is in what they differ.
	Stale bool
	Moved []ui.ChangeModel
	// Only are links that leave other signs out; none where all lines have the same.
	Only     Choices
	Warnings []string
	Graph    ui.DAGModel
	GraphURL string
	Stages   []Stage
	// Config as JSON, empty for a delete.
	Config string

	Hash    string
	Expires time.Time
	Now     time.Time
	// Fields must be given now: they were not stored.
	Fields []ui.FieldModel
	// Apply is the button: "Create cluster web-1".
	Apply, Busy string
	// Heavy asks for the name to be typed.
	Heavy        bool
	ConfirmError string
	// EditHref leads back to the form, BackHref away from it.
	EditHref string
	// Link is the address of the preview in full.
	Link string
}

// ChangeGroup is what changes of one sort of thing.
type ChangeGroup struct {
	Title string
	Lines []ui.ChangeModel
}

// KeptChanges is what stays as it is, in one line that opens.
type KeptChanges struct {
	// Text counts it: "3 nodes and 5 services on them".
	Text  string
	Lines []ui.ChangeModel
	// Count is how many lines there are, More how many of them are not listed.
	Count, More int
	Open        bool
}

// PreviewNode is a planned machine. Sign is what becomes of it, empty where the same
// becomes of all.
type PreviewNode struct {
	Hostname, Services, Hardware, Image, Provider string
	Sign                                          ui.ChangeSign
}

// PreviewService is a service: on how many nodes it is then, and what is done, empty
// for nothing.
type PreviewService struct {
	Name  string
	Nodes int
	Steps string
}
