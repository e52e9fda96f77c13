package clusterview

import (
	"loom/app/clusters"
	"loom/views/route"
	"loom/views/ui"
)

// PreviewModel is a stored plan that was not applied yet.
type PreviewModel struct {
	clusters.PreviewView
	// Title is the heading: "Create web-1?".
	Title string
	// Banner says why this page came instead of the start of the operation.
	Banner ui.BannerModel
	Errors ui.FormErrors
	Facts  []ui.Def
	// Effects are what applying changes, Kept what stays. More is how many changes are not
	// listed.
	Effects []EffectGroup
	More    int
	Kept    KeptChanges
	// Stale says that this preview takes the place of one that could not be applied
	// any more; Moved is in what they differ.
	Stale bool
	Moved []ui.ChangeModel
	// Runs sums the plan up: "21 tasks in 9 stages".
	Runs string
	// Graphs are pictures of the plan, the widest first.
	Graphs []ui.DAGModel
	Stages []Stage
	// JSON is the config, empty for a delete.
	JSON string

	// Fields must be given now: they were not stored.
	Fields []ui.FieldModel
	// Apply is the button: "Create web-1".
	Apply, Busy string
	// Harmful gives the button the color of danger; Heavy asks for the name to be typed.
	Harmful, Heavy bool
	ConfirmError   string
	// EditHref leads back to the form, BackHref away from it.
	EditHref string
	// Asked says that it came at once, and leads back to where it was asked for: with Hidden it is
	// asked for again while it is not stored, Shown are lines of what it changes.
	Asked  bool
	Hidden []HiddenField
	Shown  []string
	// Link is the address of the preview in full.
	Link string
}

// unhashed reports whether it only leads to a preview that can be applied: it makes or
// deletes machines, and is not stored.
func (m *PreviewModel) unhashed() bool { return m.Hash == "" }

// post is where the form is sent.
func (m *PreviewModel) post() string {
	if m.ID == "" {
		return route.Previews()
	}
	return route.PreviewApply(m.ID)
}

// EffectGroup is what changes alike: "3 nodes" that are created.
type EffectGroup struct {
	Sign  ui.ChangeSign
	Text  string
	Lines []Effect
}

// Effect is one thing that changes, on the nodes of these numbers; MoreNodes instead of Nodes
// folds many of them.
type Effect struct{ Text, Detail, Nodes, MoreNodes string }

// KeptChanges is what stays as it is, in one line that opens.
type KeptChanges struct {
	// Text counts it: "3 nodes and 5 services on them".
	Text  string
	Lines []ui.ChangeModel
	// Count is how many lines there are, More how many of them are not listed.
	Count, More int
	Open        bool
}
