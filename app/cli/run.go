package cli

import (
	"context"
	"fmt"

	"loom/app/loom"
	"loom/app/wiring"
)

// runWeb serves pages and REST API until ctx ends.
func runWeb(ctx context.Context, e *environment, args []string) error {
	if len(args) > 0 {
		return wiring.UsageError("loom web takes no arguments")
	}
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	e.CheckStore(ctx, s)
	s.Health.Expect(loom.ProcessWeb)
	if err := e.SweepSignIns(ctx, s); err != nil {
		e.Log.Warn("used passwords may still be in "+wiring.SignInFile, "error", err.Error())
	}
	site, err := e.Listen(ctx, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Loom answers on %s\n", site.URL)
	return site.Serve(ctx)
}

// runScheduler runs control work and duties until ctx ends.
func runScheduler(ctx context.Context, e *environment, args []string) error {
	if len(args) > 0 {
		return wiring.UsageError("loom scheduler takes no arguments")
	}
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

// runProvisioner runs tasks until ctx ends and the running ones are over.
func runProvisioner(ctx context.Context, e *environment, args []string) error {
	tenant, args, _ := wiring.TakeFlag(args, "tenant")
	if len(args) > 0 {
		return wiring.UsageError("loom provisioner takes --tenant NAME only")
	}
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
	worker.OnlyTenant = tenant
	worker.DrainTimeout = e.Values.Duration("LOOM_DRAIN_TIMEOUT")
	return worker.Run(ctx)
}
