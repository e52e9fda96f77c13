package work

import (
	"context"
	"maps"
	"slices"
	"time"
)

// carryEvery is how often a provisioner looks whether its plugins are still those
// that the list of processes shows.
const carryEvery = time.Second

// tellCarried keeps the list of processes right while plugins are read again, until
// ctx ends; told and shown are what it shows.
func (l *life) tellCarried(ctx context.Context, told []string, shown map[string]string) {
	ticker := time.NewTicker(carryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		names, versions := l.p.Plugins(), l.p.Versions()
		if slices.Equal(names, told) && maps.Equal(versions, shown) {
			continue
		}
		if err := l.p.Processes.Carries(ctx, l.id, names, versions); err != nil {
			if ctx.Err() == nil {
				l.p.logger().Warn("the list of processes does not show the plugins of now", "process_id", l.id, "error", err)
			}
			continue
		}
		told, shown = names, versions
	}
}
