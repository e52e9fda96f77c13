package adminview

import (
	"strconv"
	"time"

	"loom/views/ui"
)

// ConnectionID is the id of the panel with the test of a provider's connection.
const ConnectionID = "connection"

// FieldBefore is the test that the panel shows, when another one begins.
const FieldBefore = "before"

// ConnectionModel is the test of a provider's connection.
type ConnectionModel struct {
	State ui.State
	// Time is when it ended, zero while it has not.
	Time, Now time.Time
	// ID of the test, "" for none.
	ID    string
	Steps []ConnectionStep
	// Left names the steps that a test which failed did not reach.
	Left string
	// Before are the steps of the test before, as long as there are none.
	Before []ConnectionStep
	// Note says why nothing is tested, or what is waited for; Tone its weight.
	Note string
	Tone ui.Tone
	// Poll is fetched again in a moment; "" where nothing will change, or where the page
	// around does so.
	Poll string
	// Choices are what fields can be set to now, put into the lists of their controls.
	Choices []ConnectionChoices
	// Level of the heading is 2, but in a page that is about the test alone there is none.
	Bare bool
}

// ConnectionStep is one thing that was looked at.
type ConnectionStep struct {
	Name, Message string
	OK            bool
	Millis        int64
}

// Took says how long a step took.
func (s ConnectionStep) Took() string {
	if s.Millis < 1000 {
		return strconv.FormatInt(s.Millis, 10) + " ms"
	}
	return strconv.FormatFloat(float64(s.Millis)/1000, 'f', 1, 64) + " s"
}

// ConnectionChoices are the values for one field.
type ConnectionChoices struct {
	// ListID is the list of the field's control.
	ListID  string
	Options []ui.Option
}
