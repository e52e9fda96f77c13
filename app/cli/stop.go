package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"loom/app/loom"
	"loom/app/wiring"
)

// endWait bounds how long a running Loom may take to end.
const endWait = time.Minute

// instanceFiles are those of which an instance has at least one.
var instanceFiles = []string{wiring.InstanceLock, "pg", "local", "provisioner", "bucket"}

type stopCmd struct{}

// Run ends a running `loom up` of this data directory, its machines and the
// private PostgreSQL, and keeps their files. Where there is no instance it says so
// and creates nothing: another one may run elsewhere.
func (stopCmd) Run(ctx context.Context, e *wiring.Environment) error {
	if err := checkStoppable(e); err != nil {
		return err
	}
	dir, ran, err := stopLoom(ctx, e)
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
func checkStoppable(e *wiring.Environment) error {
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

// stopLoom ends the process that runs on the data directory; ran reports whether
// there was one.
func stopLoom(ctx context.Context, e *wiring.Environment) (dir string, ran bool, err error) {
	if dir, err = e.DataDir(); err != nil {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	ran, err = wiring.EndInstance(ctx, dir)
	return dir, ran, err
}
