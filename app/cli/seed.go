package cli

import (
	"context"
	"fmt"
	"os"

	"loom/app/loom"
)

// runSeed loads the starter catalog or a folder into a tenant.
func runSeed(ctx context.Context, e *environment, args []string) error {
	tenant, args, _ := takeFlag(args, "tenant")
	if tenant == "" {
		tenant = string(loom.SuperTenant)
	}
	if len(args) > 1 {
		return usageError("loom seed takes one folder at most")
	}
	e.makesInstance = true
	s, err := e.system(ctx)
	if err != nil {
		return err
	}
	if err := e.firstStart(ctx, s); err != nil {
		return err
	}
	t, err := s.accounts.Tenant(ctx, cliActor(), tenant)
	if err != nil {
		return err
	}
	actor := loom.SystemActor(t.ID, t.Name)
	actor.Via = "cli"
	folder, scripts := starterCatalog(), starterScripts()
	if len(args) == 1 {
		folder, scripts = os.DirFS(args[0]), nil
	}
	report, err := s.load(ctx, actor, folder, scripts)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "%d new, %d changed, %d the same in tenant %s\n", len(report.New), len(report.Changed), len(report.Same), t.Name)
	return nil
}
