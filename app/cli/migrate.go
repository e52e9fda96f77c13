package cli

import (
	"context"
	"fmt"

	"loom/app/wiring"
	"loom/migrations"
)

type migrateCmd struct {
	Action   string `arg:"" optional:"" enum:"up,status" default:"up" help:"up or status [up]."`
	Markdown bool   `help:"Print docs/schema.md instead."`
}

// Run updates the database and prints its version.
func (c *migrateCmd) Run(ctx context.Context, e *wiring.Environment) error {
	if c.Markdown {
		text, err := migrations.Markdown()
		if err == nil {
			_, err = fmt.Fprint(e.Out, text)
		}
		return err
	}
	e.MakesInstance = c.Action == "up"
	dsn, err := e.Database(ctx)
	if err != nil {
		return err
	}
	if c.Action == "up" {
		if err := migrations.Up(ctx, dsn); err != nil {
			return err
		}
	}
	s, err := migrations.Check(ctx, dsn)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "database at version %d, this release is at %d; %d migrations of River missing\n", s.Current, s.Wanted, s.RiverMissing)
	if problem := s.Problem(); problem != nil {
		fmt.Fprintln(e.Out, problem)
	}
	return nil
}
