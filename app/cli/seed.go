package cli

import (
	"context"
	"fmt"
	"os"

	"loom/app/loom"
	"loom/app/wiring"
)

type seedCmd struct {
	Dir    string `arg:"" optional:"" help:"Folder with a catalog [the starter catalog]."`
	Tenant string `placeholder:"NAME" default:"superadmin" help:"Load into this tenant [superadmin]."`
}

// Run loads the starter catalog or a folder into a tenant.
func (c *seedCmd) Run(ctx context.Context, e *wiring.Environment) error {
	e.MakesInstance = true
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	if err := e.FirstStart(ctx, s); err != nil {
		return err
	}
	t, err := s.Accounts.Tenant(ctx, wiring.CliActor(), c.Tenant)
	if err != nil {
		return err
	}
	actor := loom.SystemActor(t.ID, t.Name)
	actor.Via = "cli"
	folder, scripts := wiring.StarterCatalog(), wiring.StarterScripts()
	if c.Dir != "" {
		folder, scripts = os.DirFS(c.Dir), nil
	}
	report, err := s.Load(ctx, actor, folder, scripts)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "%d new, %d changed, %d the same in tenant %s\n", len(report.New), len(report.Changed), len(report.Same), t.Name)
	return nil
}
