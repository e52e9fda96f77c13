package adminview

import (
	"github.com/a-h/templ"

	"loom/views/ui"
)

// ResourcesModel is the page of plugin resources.
type ResourcesModel struct {
	// List is the filters and the table.
	List []templ.Component
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
	// FileHelp says how large a file may be, and what an archive must hold.
	FileHelp string
}

// ResourceRow is what can be done with a version of a resource. Recall names the version
// that can be recalled, without a version where there is none; DeleteHref is empty where
// it cannot be deleted.
type ResourceRow struct {
	Ref, Recall ResourceRef
	CanStage    bool
	DeleteHref  string
}

// ResourceRef names a version of a resource in a form.
type ResourceRef struct {
	Kind, Plugin, Type, Name, Version string
	// Back is BackShow where an action leads to the page of the version, "" to the list.
	Back string
}

// FieldBack says where an action on a resource leads; BackShow is the page of the version.
const (
	FieldBack = "back"
	BackShow  = "show"
)

// Page is where an action leads back to.
func (r ResourceRef) Page(list string) string {
	if r.Back != BackShow {
		return list
	}
	r.Back = ""
	return r.Query(ResourceShow())
}

// ResourceConfirmModel asks whether to recall or delete a version.
type ResourceConfirmModel struct {
	Ref    ResourceRef
	Action string
	Text   string
	// Users are what names the resource.
	Users  []Use
	Button string
	Busy   string
}
