package page

import "loom/app/loom"

// RepairText says what Loom does about trouble of a kind, which is the name of a field of
// loom.RepairPolicy.
func RepairText(trouble string, c loom.RepairChoice) string {
	does := map[string]string{"service": "restart it", "stopped": "start it", "gone": "replace it"}[trouble]
	switch c {
	case loom.RepairTell:
		return "show it only"
	case loom.RepairDo:
		return does + " automatically"
	case loom.RepairAsk:
	}
	return "ask whether to " + does
}
