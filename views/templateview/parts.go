package templateview

import (
	"strings"

	"loom/views/formview"
	"loom/views/ui"
)

// AdviceModel is something to know about a choice, and a button that does something
// about it; without one its label is empty.
type AdviceModel struct {
	Text   string
	Button ui.ButtonModel
}

// CoexistModel is which services share nodes: as a matrix and as two lists of groups
// that say the same.
type CoexistModel struct {
	Matrix     MatrixModel
	Clashes    []ClashModel
	Notes      []string
	Empty      string
	Must, Cant formview.GroupModel
	StepURL    string
	// ReadingIDs are those of the sentences of the groups.
	ReadingIDs []string
}

// readings are what a change within a group brings anew besides the picture.
func (m CoexistModel) readings() string {
	parts := []string{"#" + formview.BaseID}
	for _, id := range m.ReadingIDs {
		parts = append(parts, "#"+id)
	}
	return strings.Join(parts, ",")
}
