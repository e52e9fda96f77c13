package cli

import (
	"context"

	"loom/app/loom"
	"loom/app/wiring"
)

type schedulerCmd struct{}

// Run runs control work and periodic jobs until ctx ends.
func (schedulerCmd) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	e.CheckStore(ctx, s)
	s.Health.Expect(loom.ProcessScheduler)
	port, err := e.ServeHealth(ctx, s)
	if err != nil {
		return err
	}
	return e.Scheduler(s, port).Run(ctx)
}
