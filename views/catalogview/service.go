package catalogview

import "loom/views/ui"

// ServiceModel is the page of a service.
type ServiceModel struct {
	Name, Label, Description string
	Version                  int
	Deprecated               bool
	Icon                     string
	Ties                     ui.TiesModel
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
	Rows  []ListedService
	Pages ui.PaginationModel
}

// ListedService is a service in the list.
type ListedService struct {
	Name, Label, Description, Icon, Href string
	Version                              int
}

// TemplateOf is a template that names a service.
type TemplateOf struct {
	Name, Href string
	// Default says that new clusters have the service.
	Default bool
}
