package adminview

import (
	"strconv"

	"github.com/a-h/templ"

	"loom/views/formview"
	"loom/views/ui"
)

// DraftPicture is the picture of a service while it is edited.
type DraftPicture struct {
	ID, StepURL string
	// Watch is the id of the section whose changes draw it anew.
	Watch   string
	Hops    ui.FieldModel
	Button  ui.ButtonModel
	Problem string
	Ties    ui.TiesModel
}

// DraftOrder is the order preview of a service while it is edited.
type DraftOrder struct {
	ID, Service string
	Template    ui.FieldModel
	Button      ui.ButtonModel
	Result      OrderResult
	// Breaks are templates and services that the change breaks, whatever template was chosen.
	Breaks []Broken
}

// follows makes the picture follow what is changed in the watched section.
func (m DraftPicture) follows() templ.Attributes {
	attrs := formview.Step(m.StepURL, m.ID)
	attrs["hx-trigger"] = "change from:#" + m.Watch + " delay:300ms"
	return attrs
}

// RelationsModel is the table of services and relations of one that is edited.
type RelationsModel struct {
	ID      string
	Columns []Relation
	Rows    []RelatedService
	Errors  []string
	Add     ui.FieldModel
	Button  ui.ButtonModel
}

// Relation is a column: Name is that of its boxes, Shown that of the field which says that they
// were there.
type Relation struct{ Label, Help, Name, Shown string }

// RelatedService is a row: a box for each relation.
type RelatedService struct {
	Name, Label string
	// Missing says that no service has or provides the name.
	Missing bool
	Ticked  []bool
}

// BoxID is the id of a box.
func (m RelationsModel) BoxID(row, column int) string {
	return m.ID + "-" + strconv.Itoa(row) + "-" + strconv.Itoa(column)
}
