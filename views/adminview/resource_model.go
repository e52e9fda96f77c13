package adminview

import (
	"time"

	"loom/views/ui"
)

// ResourcesModel is the page of plugin resources.
type ResourcesModel struct {
	Now    time.Time
	Groups []ResourceGroup
	// Waiting says what a sync would change, or is empty.
	Waiting string
	// NoPlugins says that no provisioner has told of its plugins yet.
	NoPlugins bool

	Kinds []ui.Option
	Name  string
	// Text is written in the form, in place of a file.
	Text   string
	Stage  bool
	Errors ui.FormErrors
}

// ResourceGroup is the resources of one type of a plugin.
type ResourceGroup struct {
	ID, Title, Note string
	Rows            []ResourceRow
}

// ResourceRow is one version of a resource. The hrefs are empty where the action
// makes no sense for the status.
type ResourceRow struct {
	Ref                    ResourceRef
	First                  bool
	State                  ui.State
	Size, Sum              string
	Author                 string
	Created                time.Time
	CanStage               bool
	RecallHref, DeleteHref string
	DeleteWhyNot           string
}

// ResourceRef names a version of a resource in a form.
type ResourceRef struct {
	Kind, Plugin, Type, Name, Version string
}

// ResourceConfirmModel asks whether to recall or delete a version.
type ResourceConfirmModel struct {
	Ref    ResourceRef
	Action string
	Text   string
	Button string
	Busy   string
}
