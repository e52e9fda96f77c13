package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/wiring"
)

// endWait bounds how long a running Loom may take to end.
const endWait = time.Minute

// instanceFiles are those of which an instance has at least one.
var instanceFiles = []string{wiring.InstanceLock, "pg", "local", "provisioner", "bucket"}

// runStop ends a running `loom up` of this data directory, its machines and the
// private PostgreSQL, and keeps their files. Where there is no instance it says so
// and makes nothing: another one may run elsewhere.
func runStop(ctx context.Context, e *environment, args []string) error {
	if len(args) > 0 {
		return wiring.UsageError("loom stop takes no arguments")
	}
	if err := e.checkStoppable(); err != nil {
		return err
	}
	dir, ran, err := e.stopLoom(ctx)
	if err != nil {
		return err
	}
	machines, err := e.LocalProvider()
	if err != nil {
		return err
	}
	known, err := machines.Machines()
	if err != nil {
		return err
	}
	for _, m := range known {
		ran = ran || m.Running
	}
	if err := machines.StopAll(ctx); err != nil {
		return fmt.Errorf("stop the machines: %w", err)
	}
	server, err := e.PrivateDB(false)
	if err != nil {
		return err
	}
	if server != nil {
		ran = ran || server.Running(ctx)
		if err := server.Stop(ctx); err != nil {
			return err
		}
	}
	if !ran {
		fmt.Fprintf(e.Out, "Nothing was running in %s. An instance elsewhere is stopped with the LOOM_DATA_DIR that it was started with.\n", dir)
		return nil
	}
	fmt.Fprintf(e.Out, "Stopped. Files stay in %s.\n", dir)
	return nil
}

// checkStoppable refuses a data directory that no instance has been in.
func (e *environment) checkStoppable() error {
	dir, err := filepath.Abs(e.Values.Text("LOOM_DATA_DIR"))
	if err != nil {
		return err
	}
	for _, name := range instanceFiles {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("look for an instance: %w", err)
		}
	}
	return loom.NewError(loom.NotFound, "There is no instance of Loom in %s, so nothing was stopped: set LOOM_DATA_DIR to the directory that yours was started with.", dir)
}

// runClean removes everything this instance made.
func runClean(ctx context.Context, e *environment, args []string) error {
	args, keepBases := wiring.TakeSwitch(args, "keep-bases")
	if len(args) > 0 {
		return wiring.UsageError("loom clean takes --keep-bases only, not “%s”", strings.Join(args, " "))
	}
	dir, _, err := e.stopLoom(ctx)
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
	if !keepBases {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, "local")))
		os.Remove(dir) // only when nothing else is in it
	}
	return errors.Join(errs...)
}

// stopLoom ends the process that runs on the data directory; ran is whether there
// was one.
func (e *environment) stopLoom(ctx context.Context) (dir string, ran bool, err error) {
	if dir, err = e.DataDir(); err != nil {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	ran, err = wiring.EndInstance(ctx, dir)
	return dir, ran, err
}
