package cli

import (
	"context"
	"errors"
	"os"

	"loom/app/wiring"
	"loom/provisioner/conformance"
	"loom/provisioner/conformance/builtin"
	"loom/provisioner/provider/local"
	"loom/provisioner/remote"
)

func isBuiltIn(name string) bool { return name == "mock" || name == "local" || name == "shell" }

// tryBuiltIn checks a built-in type that needs no account anywhere. What it needs
// on this host is in a directory that is gone afterwards.
func (e *environment) tryBuiltIn(ctx context.Context, r conformance.Reporter, name string, conn *remote.Conn) (err error) {
	dir, err := os.MkdirTemp("", "loom-plugin-test-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	switch name {
	case "mock":
		conformance.Provider(ctx, r, builtin.Mock())
		conformance.Automator(ctx, r, builtin.MockAutomator())
		return nil
	case "shell":
		if conn == nil {
			return wiring.UsageError("the shell automator is tried on a machine: give --ssh USER@HOST[:PORT] --ssh-key FILE")
		}
		target, err := builtin.Shell(conn, dir)
		if err != nil {
			return err
		}
		conformance.Automator(ctx, r, target)
		return nil
	}
	machines, err := local.New(local.Options{DataDir: dir, BaseDir: e.BaseDir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, machines.Purge(context.WithoutCancel(ctx))) }()
	defer machines.Close()
	if err := machines.Ready(); err != nil {
		return err
	}
	if err := machines.Prepare(ctx, []string{local.DefaultImage}, func(line string) { e.Log.Info("base root", "line", line) }); err != nil {
		return err
	}
	target, err := builtin.Local(machines)
	if err != nil {
		return err
	}
	conformance.Provider(ctx, r, target)
	return nil
}
