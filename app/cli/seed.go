package cli

import (
	"context"
	"fmt"
	"os"

	"loom/app/loom"
	"loom/app/wiring"
)

// runSeed loads the starter catalog or a folder into a tenant.
func runSeed(ctx context.Context, e *environment, args []string) error {
	tenant, args, _ := wiring.TakeFlag(args, "tenant")
	if tenant == "" {
		tenant = string(loom.SuperTenant)
	}
	if len(args) > 1 {
		return wiring.UsageError("loom seed takes one folder at most")
	}
	e.MakesInstance = true
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	if err := e.FirstStart(ctx, s); err != nil {
		return err
	}
	t, err := s.Accounts.Tenant(ctx, wiring.CliActor(), tenant)
	if err != nil {
		return err
	}
	actor := loom.SystemActor(t.ID, t.Name)
	actor.Via = "cli"
	folder, scripts := wiring.StarterCatalog(), wiring.StarterScripts()
	if len(args) == 1 {
		folder, scripts = os.DirFS(args[0]), nil
	}
	report, err := s.Load(ctx, actor, folder, scripts)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "%d new, %d changed, %d the same in tenant %s\n", len(report.New), len(report.Changed), len(report.Same), t.Name)
	return nil
}
