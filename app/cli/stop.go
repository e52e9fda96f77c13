package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// endWait bounds how long a running Loom may take to end.
const endWait = time.Minute

// runStop ends a running `loom up` of this data directory, its machines and the
// private PostgreSQL, and keeps their files.
func runStop(ctx context.Context, e *environment, args []string) error {
	if len(args) > 0 {
		return usageError("loom stop takes no arguments")
	}
	dir, err := e.stopLoom(ctx)
	if err != nil {
		return err
	}
	machines, err := e.localProvider()
	if err != nil {
		return err
	}
	if err := machines.StopAll(ctx); err != nil {
		return fmt.Errorf("stop the machines: %w", err)
	}
	server, err := e.privateDB(false)
	if server == nil || err != nil {
		return err
	}
	if err := server.Stop(ctx); err != nil {
		return err
	}
	fmt.Fprintf(e.out, "Stopped. Files stay in %s.\n", dir)
	return nil
}

// runClean removes everything this instance made.
func runClean(ctx context.Context, e *environment, args []string) error {
	args, keepBases := takeSwitch(args, "keep-bases")
	if len(args) > 0 {
		return usageError("loom clean takes --keep-bases only, not “%s”", strings.Join(args, " "))
	}
	dir, err := e.stopLoom(ctx)
	if err != nil {
		return err
	}
	machines, err := e.localProvider()
	if err != nil {
		return err
	}
	if err := machines.Purge(ctx); err != nil {
		return fmt.Errorf("remove the machines: %w", err)
	}
	server, err := e.privateDB(false)
	if server != nil {
		err = server.Remove(ctx)
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{"provisioner", "bucket", "pg.lock", instanceLock, "secret.key", signInFile, inventedFile} {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	if !keepBases {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, "local")))
		os.Remove(dir) // only when nothing else is in it
	}
	return errors.Join(errs...)
}

// stopLoom ends the process that runs on the data directory, if any.
func (e *environment) stopLoom(ctx context.Context) (dir string, err error) {
	if dir, err = e.dataDir(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	return dir, endInstance(ctx, dir)
}
