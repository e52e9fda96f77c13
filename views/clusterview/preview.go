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
	Layout  ui.LayoutPictureModel
	Nodes   []PreviewNode
	Changes []ChangeGroup
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

// PreviewNode is a planned machine.
type PreviewNode struct {
	Hostname, Services, Hardware, Image string
}
