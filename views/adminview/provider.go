package adminview

import "github.com/a-h/templ"

// TypeModel is the choice of the type of a new provider.
type TypeModel struct {
	// Name is that of the control with the chosen type, ID that of the choice.
	Name, ID, Chosen string
	Help, Error      string
	// Choosing shows the types; else Change is what the button that leads to them does.
	Choosing bool
	Change   string
	Types    []TypeChoice
	StepURL  string
	// Attrs make a button exchange the settings alone where scripts run.
	Attrs templ.Attributes
}

// TypeChoice is a provider type; Do is what its button does.
type TypeChoice struct {
	Name, Label, Description, Icon, Do string
	Chosen                             bool
}
