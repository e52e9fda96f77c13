package clusterview

import (
	"strconv"

	"loom/views/ui"
)

// state is an incident in words, bad while it lasts.
func (i IncidentRow) state() ui.State {
	if !i.Ended.IsZero() {
		return ui.State{Word: i.Text, Icon: "check-circle", Tone: ui.ToneIdle}
	}
	return ui.State{Word: i.Text, Icon: "error", Tone: ui.ToneBad}
}

func (a RepairAsk) id() string { return strconv.FormatInt(a.Incident, 10) }
