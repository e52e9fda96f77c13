package cli

import (
	"context"
	"fmt"

	"loom/app/loom"
	"loom/app/wiring"
)

type webCmd struct{}

// Run serves the pages and the REST API until ctx ends.
func (webCmd) Run(ctx context.Context, e *wiring.Environment) error {
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
