package adminview

import (
	"time"

	"loom/views/ui"
)

// VerifyModel is a button that asks a provider for a size or an image, and what it said
// of Offer. Without a State nothing was asked.
type VerifyModel struct {
	// ID is that of the answer, which alone is exchanged.
	ID     string
	Button ui.ButtonModel
	Offer  string
	State  *ui.State
	Text   string
	Time   time.Time
	Now    time.Time
}
