// Package catalogview holds the template gallery for users.
//
// It must not know use cases: rules arrive as sentences, sizes and leases as
// texts. Changing templates is not here but in adminview.
package catalogview

import (
	"loom/app/loom"
	"loom/views/ui"
)

// FieldQ and FieldNodes are the names of the search field and of that for the size of the
// example.
const (
	FieldQ     = "q"
	FieldNodes = "nodes"
)

// GalleryModel is the page of templates.
type GalleryModel struct {
	Q     string
	Cards []TemplateCard
	// Text counts: "3 templates".
	Text       string
	Next, Prev string
	// Admin offers to make a template where there is none.
	Admin bool
}

// TemplateCard is a template in the gallery.
type TemplateCard struct {
	loom.Base
	Size, Services, Lease string
	// Problem says why no cluster can be made from it now, or is empty.
	Problem string
}

// TemplateModel is the page of a template.
type TemplateModel struct {
	loom.Base
	Facts []ui.Def
	// Rules are the constraints in sentences.
	Rules    []string
	Services []ServiceRow
	// Settings are what a new cluster is asked for.
	Settings []SettingRow
	// Example is how services share nodes, nil while no cluster can be made.
	Example *ExampleModel
	// Ties is the picture of its services, nil without services.
	Ties *ui.TiesModel
	// Problem says why no cluster can be made now, or is empty.
	Problem string
	// EditHref is set for administrators.
	EditHref string
}

// ExampleModel is the layout of a cluster of as many nodes as the field says.
type ExampleModel struct {
	// Self is the page, Nodes what the field says, Error what is wrong with it.
	Self, Nodes, Error string
	Layout             ui.LayoutPictureModel
	// None says why there is no layout.
	None string
}

// ServiceRow is a service that clusters of a template may have.
type ServiceRow struct {
	Name, Description string
	// Href is empty for a service that is not in the catalog.
	Href string
	// Default services are there unless the request says otherwise.
	Default bool
	// Needs says what the service requires and uses.
	Needs string
}

// SettingRow is a setting of a new cluster: what its value must be, and what it is by default.
type SettingRow struct {
	Name, Help, Wants, Default string
}

func title(label, name string) string {
	if label != "" {
		return label
	}
	return name
}
