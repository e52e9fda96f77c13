package clusterview

import (
	"loom/app/loom"
	"loom/views/route"
	"loom/views/ui"
)

// Names of what the form for description and labels sends: the texts, and what they were
// when somebody began to write.
const (
	FieldDescription     = "description"
	FieldLabels          = "labels"
	FieldSeenDescription = "seen.description"
	FieldSeenLabels      = "seen.labels"
)

// EditModel is the form for what changes without an operation.
type EditModel struct {
	Cluster     loom.ClusterID
	Name        string
	WhyNot      string
	Errors      ui.FormErrors
	Description ui.FieldModel
	Labels      ui.FieldModel
	// SeenDescription and SeenLabels are the texts as they were stored when the form was
	// made.
	SeenDescription, SeenLabels string
	// Clash says that somebody else wrote meanwhile, and what these texts would change in
	// his; empty where nobody did.
	Clash   string
	Changes []ui.ChangeModel
	// Inline is the form on the cluster's own page, in place of the texts.
	Inline bool
}

// cancel is where the texts are had back.
func (m EditModel) cancel() string { return route.Query(PartURL(m.Cluster, PartAbout), "back", "1") }
