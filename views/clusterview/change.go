package clusterview

import (
	"time"

	"loom/app/loom"
	"loom/views/ui"
)

// ChangeModel is the form for an operation on a cluster that is there.
type ChangeModel struct {
	Cluster loom.ClusterID
	// Name of the cluster, Title the heading, Lead what the operation does.
	Name, Title, Lead string
	// WhyNot stands in place of the form when the operation cannot begin now.
	WhyNot string
	// Lost says what cannot be had back.
	Lost string
	// Hidden fields tell what the form is about.
	Hidden []HiddenField
	Errors ui.FormErrors
	Parts  []FormPart
	// Live has the panel asked again as the form changes.
	Live  bool
	Panel ChangePanel
	// Back is where Cancel leads.
	Back string
}

// HiddenField is sent with a form and not seen.
type HiddenField struct{ Name, Value string }

// FormPart is one of: a field, a pair of short ones, a choice of several, what is
// newer in a service or file, fields that are shown on demand.
type FormPart struct {
	// Facts are what the form does not change.
	Facts  []ui.Def
	Field  *ui.FieldModel
	Pair   []ui.FieldModel
	Picker *ui.ChoiceModel
	Cards  *ui.ChoiceModel
	Newer  []NewerEntry
	// Settings is the config.
	Settings *ChangeSettings
	// Code has the lines of a file that differ.
	Code *ui.CodeModel
	// Fold hides More behind its words.
	Fold string
	Open bool
	More []FormPart
}

// NewerEntry is an entry that the catalog has a newer version of.
type NewerEntry struct {
	Name     string
	From, To int
	Changes  []ui.ChangeModel
	// More is how many changes are not listed.
	More int
}

// ChangePanel says what the form as it stands would come to.
type ChangePanel struct {
	Check CheckPanel
	// Leaving are nodes of which those ticked go; For is the number of nodes that they
	// were ticked for, in an empty text while there are none to tick.
	Leaving *ui.ChoiceModel
	// Dead are those of them whose machines do not answer.
	Dead *ui.ChoiceModel
	For  string
	// Coming are machines that are made.
	Coming []ComingNode
	// Changes are the first lines of the preview, More how many follow.
	Changes []ui.ChangeModel
	More    int
}

// LeaseModel is the form for the end of a lease.
type LeaseModel struct {
	Cluster loom.ClusterID
	Name    string
	WhyNot  string
	Facts   []ui.Def
	// Chips are the ends that are chosen with one press, Day and Clock any other; Zone says in
	// which time zone.
	Chips      []ui.ButtonModel
	Day, Clock ui.FieldModel
	Zone       string
	// Deleted says what becomes of the cluster at the end.
	Deleted string
	// Submit is the button.
	Submit string
}

// ExtendModel prolongs a lease with one press of a button; without an end there is
// none.
type ExtendModel struct {
	Post string
	End  time.Time
}

// ConfirmModel asks before something is done at once.
type ConfirmModel struct {
	Title, Text string
	// WhyNot stands in place of the form.
	WhyNot string
	Errors ui.FormErrors
	Fields []ui.FieldModel
	Hidden []HiddenField
	// Post is where the form is sent, Back where Cancel leads.
	Post, Back   string
	Button, Busy string
	Danger       bool
}

// ComingNode is a machine that a change adds.
type ComingNode struct {
	Hostname, Services, Hardware, Image string
}
