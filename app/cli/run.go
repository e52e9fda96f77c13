package cli

import (
	"context"
	"fmt"

	"loom/app/loom"
)

// runWeb serves pages and REST API until ctx ends.
func runWeb(ctx context.Context, e *environment, args []string) error {
	if len(args) > 0 {
		return usageError("loom web takes no arguments")
	}
	s, err := e.system(ctx)
	if err != nil {
		return err
	}
	e.checkStore(ctx, s)
	s.health.expect(loom.ProcessWeb)
	if err := e.sweepSignIns(ctx, s); err != nil {
		e.log.Warn("used passwords may still be in "+signInFile, "error", err.Error())
	}
	site, err := e.listen(ctx, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "Loom answers on %s\n", site.url)
	return site.serve(ctx)
}

// runScheduler runs control work and duties until ctx ends.
func runScheduler(ctx context.Context, e *environment, args []string) error {
	if len(args) > 0 {
		return usageError("loom scheduler takes no arguments")
	}
	s, err := e.system(ctx)
	if err != nil {
		return err
	}
	e.checkStore(ctx, s)
	s.health.expect(loom.ProcessScheduler)
	port, err := e.serveHealth(ctx, s)
	if err != nil {
		return err
	}
	return e.scheduler(s, port).Run(ctx)
}

// runProvisioner runs tasks until ctx ends and the running ones are over.
func runProvisioner(ctx context.Context, e *environment, args []string) error {
	tenant, args, _ := takeFlag(args, "tenant")
	if len(args) > 0 {
		return usageError("loom provisioner takes --tenant NAME only")
	}
	s, err := e.system(ctx)
	if err != nil {
		return err
	}
	e.checkStore(ctx, s)
	p, err := e.plugins()
	if err != nil {
		return err
	}
	s.health.expect(loom.ProcessProvisioner)
	port, err := e.serveHealth(ctx, s)
	if err != nil {
		return err
	}
	worker, done, err := e.provisioner(ctx, s, p, port)
	if err != nil {
		return err
	}
	defer done()
	worker.OnlyTenant = tenant
	worker.DrainTimeout = e.values.Duration("LOOM_DRAIN_TIMEOUT")
	return worker.Run(ctx)
}
