package clusterview

import (
	"time"

	"loom/views/ui"
)

// FormModel is the form for a new cluster.
type FormModel struct {
	Errors ui.FormErrors
	// None says that there is no template to choose.
	None, MayMake bool
	Template      ui.ChoiceModel
	Rest          FormRest
	Check         CheckPanel
	// Restored is when the form was kept that was not sent off, zero for a new one.
	Restored time.Time
}

// FormRest is what depends on the chosen template and provider.
type FormRest struct {
	// For names the template, and ForProvider the provider, that the fields below
	// were made for; Suggested is the name that was offered.
	For, ForProvider, Suggested string
	Name                        ui.FieldModel
	Machines                    ui.FieldModel
	Description                 ui.FieldModel
	// Open shows the advanced part; Differs says what differs from the template.
	Open    bool
	Differs string

	Provider       ui.FieldModel
	ProviderFields []ui.FieldModel
	Hardware       ui.FieldModel
	Image          ui.FieldModel
	Services       ui.ChoiceModel
	Lease          ui.FieldModel
	DNSSuffix      ui.FieldModel
	OnFailure      ui.FieldModel
	Labels         ui.FieldModel
	Settings       SettingsPart
	Config         ConfigPart
}

// CheckPanel says whether what the form asks for would work.
type CheckPanel struct {
	Head ui.CheckModel
	// Errors lead to the fields that are wrong.
	Errors      []ui.FormError
	Reasons     []ui.Reason
	Suggestions []ui.Suggestion
	// Elsewhere are changes of the catalog that would help where no change of the
	// request does, in words.
	Elsewhere []string
	Layout    ui.LayoutPictureModel
	Facts     []ui.Def
	Warnings  []string
	// ConfigDiffers is what the config changes in the template's, Link leads to the form
	// as it stands, without what is secret.
	ConfigDiffers ConfigDiff
	Link          string
	// Public is the address of Loom, before the link where that is copied.
	Public string
}
