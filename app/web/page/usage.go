package page

import (
	"time"

	"loom/views/ui"
)

// UsageGroups are the values and labels of the spans that usage is summed by.
var UsageGroups = []string{"hour", "Hour", "day", "Day", "week", "Week", "month", "Month"}

// GroupWord is the label of a span that usage is summed by.
func GroupWord(group string) string {
	for i := 0; i+1 < len(UsageGroups); i += 2 {
		if UsageGroups[i] == group {
			return UsageGroups[i+1]
		}
	}
	return group
}

// PlaceOf names an interval, in the zone of its beginning.
func PlaceOf(at time.Time, group string) ui.ChartPlace {
	switch group {
	case "hour":
		return ui.ChartPlace{Short: at.Format("15:04"), Long: at.Format("Mon 2 Jan 2006, 15:04 MST")}
	case "week":
		return ui.ChartPlace{Short: at.Format("2 Jan"), Long: "Week from " + at.Format("Mon 2 Jan 2006")}
	case "month":
		return ui.ChartPlace{Short: at.Format("Jan 06"), Long: at.Format("January 2006")}
	}
	return ui.ChartPlace{Short: at.Format("2 Jan"), Long: at.Format("Mon 2 Jan 2006")}
}
