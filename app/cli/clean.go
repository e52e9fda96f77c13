package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"loom/app/wiring"
)

type cleanCmd struct {
	KeepBases bool `help:"Keep the base roots of local machines, which take time to build."`
}

// Run removes everything this instance created.
func (c *cleanCmd) Run(ctx context.Context, e *wiring.Environment) error {
	dir, _, err := stopLoom(ctx, e)
	if err != nil {
		return err
	}
	machines, err := e.LocalProvider()
	if err != nil {
		return err
	}
	if err := machines.Purge(ctx); err != nil {
		return fmt.Errorf("remove the machines: %w", err)
	}
	server, err := e.PrivateDB(false)
	if server != nil {
		err = server.Remove(ctx)
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{"provisioner", "bucket", "pg.lock", wiring.InstanceLock, "secret.key", wiring.SignInFile, wiring.SignInLock, wiring.InventedFile} {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	if !c.KeepBases {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, "local")))
		os.Remove(dir) // only when nothing else is in it
	}
	return errors.Join(errs...)
}
