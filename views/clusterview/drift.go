package clusterview

import (
	"time"

	"loom/views/ui"
)

// DriftRow is something that is not as Loom left it.
type DriftRow struct {
	// Hostname and Href are those of its node, empty on the page of that.
	Hostname, Href string
	// Service is empty for the machine itself.
	Service, Text string
	Since         time.Time
	// Sums are those of a file, before and now.
	Sums []ui.Def
	// Repair leads to the form that mends it, nil where there is none.
	Repair *ui.ButtonModel
}
