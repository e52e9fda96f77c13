package adminview

import "loom/app/loom"

// DeleteModel asks whether to delete an entry.
type DeleteModel struct {
	Kind     loom.EntityKind
	Name     string
	Versions string
	// Uses are entries, Clusters says how many clusters were made from it. Blocked says
	// that some of the entries would not work without it, so that it stays.
	Uses     []Use
	Blocked  bool
	Clusters string
	Back     string
}
