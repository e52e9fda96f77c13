package catalogview

import "loom/views/ui"

// ServiceModel is the page of a service.
type ServiceModel struct {
	Name, Label, Description string
	Version                  int
	Deprecated               bool
	Facts                    []ui.Def
	Ties                     ui.TiesModel
	// Actions are what it does on machines, in the order of a new cluster.
	Actions []ActionRow
	Links   []ui.Def
	// Templates have it, or may have it.
	Templates []TemplateOf
	// EditHref is set for administrators.
	EditHref string
	JSON     ui.JSONModel
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

// ActionRow is an action of a service with the automator that carries it out.
type ActionRow struct{ Action, Means, Automator string }

// TemplateOf is a template that names a service.
type TemplateOf struct {
	Name, Href string
	// Default says that new clusters have the service.
	Default bool
}
