package cli

import (
	"context"
	"fmt"

	"loom/app/wiring"
)

type dbCmd struct {
	Action  string `arg:"" enum:"start,stop,remove" help:"start, stop or remove."`
	Scratch bool   `help:"Do not wait for the disk: for tests."`
}

// Run manages the private PostgreSQL.
func (c *dbCmd) Run(ctx context.Context, e *wiring.Environment) error {
	server, err := e.PrivateDB(c.Scratch)
	if err != nil {
		return err
	}
	if server == nil {
		return usageError("loom db manages the private PostgreSQL only; unset LOOM_DATABASE_URL")
	}
	switch c.Action {
	case "stop":
		return server.Stop(ctx)
	case "remove":
		return server.Remove(ctx)
	}
	if err := server.Start(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.Out, server.DSN("loom"))
	return err
}
