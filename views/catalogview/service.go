package catalogview

import (
	"loom/app/loom"
	"loom/views/ui"
)

// ServiceModel is the page of a service.
type ServiceModel struct {
	loom.Base
	Ties ui.TiesModel
	// Settings are what a cluster with it is asked for.
	Settings []SettingRow
	// Templates have it, or may have it.
	Templates []TemplateOf
	// EditHref is set for administrators.
	EditHref string
}

// ServicesModel is the list of services.
type ServicesModel struct {
	Q     string
	Rows  []loom.Base
	Pages ui.PaginationModel
}

// TemplateOf is a template that names a service.
type TemplateOf struct {
	Name string
	// Default says that new clusters have the service.
	Default bool
}
