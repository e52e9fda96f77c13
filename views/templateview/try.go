package templateview

import (
	"loom/views/adminview"
	"loom/views/clusterview"
	"loom/views/ui"
)

// Names of the fields of a trial. They stand beside those of a template's form.
const (
	FieldTryMachines = "try.machines"
	FieldTryServices = "try.services"
	FieldTryChosen   = "try.chosen"
	FieldTryProvider = "try.provider"
	FieldTryHardware = "try.hardwaretype"
	FieldTryImage    = "try.imagetype"
	FieldTryFrom     = "try.from"
	FieldTryTo       = "try.to"
	// FieldApply is a change of the template to take over.
	FieldApply = "try.apply"
)

// TryID is the id of the live region with the answer of a trial.
const TryID = "trial"

// TryFields is what a trial asks for.
type TryFields struct {
	Machines, Provider, Hardware, Image ui.FieldModel
	From, To                            ui.FieldModel
	// Services are left out where there are none to choose.
	Services ui.ChoiceModel
	// Differs says what differs from the template, for the line that hides it.
	Differs string
	Open    bool
}

// TryAnswer is what came of it.
type TryAnswer struct {
	// Head is of the asked size, or says why the template could not be tried.
	Panel clusterview.CheckPanel
	// Notes are what is to be known of it.
	Notes []TryNote
	// Lost are services that are missing, for which it could not be tried.
	Lost []adminview.LostService
	// Sizes is left out where the template could not be tried.
	Sizes *SizesModel
	// Apply are what would help, as buttons of the template's form.
	Apply []ui.ButtonModel
}

// TryNote is a note; Add is the button that does something about it, without a label for none.
type TryNote struct {
	Text string
	Add  ui.ButtonModel
}

// TryModel is the page on which a stored template is tried.
type TryModel struct {
	Head   adminview.HeadModel
	Action string
	Edit   string
	Fields TryFields
	Answer TryAnswer
}
