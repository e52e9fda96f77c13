package cli

import (
	"context"

	"loom/app/loom"
	"loom/app/wiring"
)

type provisionerCmd struct {
	Tenant string `placeholder:"NAME" help:"Run the tasks of this tenant only [all tenants]."`
}

// Run runs tasks until ctx ends and the running ones are done.
func (c *provisionerCmd) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	e.CheckStore(ctx, s)
	p, err := e.Plugins()
	if err != nil {
		return err
	}
	s.Health.Expect(loom.ProcessProvisioner)
	port, err := e.ServeHealth(ctx, s)
	if err != nil {
		return err
	}
	worker, done, err := e.Provisioner(ctx, s, p, port)
	if err != nil {
		return err
	}
	defer done()
	worker.OnlyTenant = c.Tenant
	worker.DrainTimeout = e.Values.Duration("LOOM_DRAIN_TIMEOUT")
	return worker.Run(ctx)
}
