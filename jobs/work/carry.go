package work

import (
	"context"
	"slices"
	"time"
)

// carryEvery is how often a provisioner looks whether its plugins are still those
// that the list of processes shows.
const carryEvery = time.Second

// tellCarried keeps the list of processes right while plugins are read again, until
// ctx ends; told is what it shows.
func (l *life) tellCarried(ctx context.Context, told []string) {
	ticker := time.NewTicker(carryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		names := l.p.Plugins()
		if slices.Equal(names, told) {
			continue
		}
		if err := l.p.Fleet.Carries(ctx, l.id, names); err != nil {
			if ctx.Err() == nil {
				l.p.logger().Warn("the list of processes does not show the plugins of now", "process_id", l.id, "error", err)
			}
			continue
		}
		told = names
	}
}
