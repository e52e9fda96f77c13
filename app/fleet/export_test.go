package fleet

import "time"

// Shift lets time pass for what is remembered between two decisions.
func (f *Fleet) Shift(by time.Duration) {
	f.decidedAt, f.gap = f.decidedAt.Add(-by), f.gap.Add(-by)
}
