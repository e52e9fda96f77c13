package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"loom/app/wiring"
	"loom/provisioner/conformance"
	"loom/provisioner/conformance/builtin"
	"loom/provisioner/external"
	"loom/provisioner/provider/local"
	"loom/provisioner/remote"
)

type pluginTest struct {
	Plugin string `arg:"" help:"Directory with plugin.json, or a built-in type: mock, local, shell."`
	Live   bool   `help:"Do real work too: create machines and remove them."`
	Type   string `placeholder:"TYPE" help:"Test this type only."`
	With   string `placeholder:"FILE" help:"Settings of the test [loom-test.json beside plugin.json]."`
	machineFlag
	Resources string `type:"existingdir" placeholder:"DIR" help:"Plugin resources, as providertypes/TYPE/RESOURCETYPE/NAME and automatortypes/…."`
}

// Run tests a plugin and prints what each check found. The exit status is 1 if a
// check found something.
func (c *pluginTest) Run(ctx context.Context, e *wiring.Environment) error {
	target, err := c.target()
	if err != nil {
		return err
	}
	var conn *remote.Conn
	if target != nil {
		if conn, err = remote.Dial(ctx, *target); err != nil {
			return fmt.Errorf("sign in to the machine of --ssh: %w", err)
		}
		defer conn.Close()
	}
	r := &report{out: e.Out}
	if _, err := os.Stat(filepath.Join(c.Plugin, external.ManifestName)); err != nil && isBuiltIn(c.Plugin) {
		if c.With != "" || c.Type != "" {
			return usageError("--with and --type are for plugins in other languages, not for the built-in “%s”", c.Plugin)
		}
		if err := tryBuiltIn(ctx, e, r, c.Plugin, conn); err != nil {
			return err
		}
		return r.end()
	}
	h, err := e.PluginHost()
	if err != nil {
		return err
	}
	p, err := h.Load(c.Plugin)
	if err != nil {
		return err
	}
	with := c.With
	if with == "" {
		with = filepath.Join(p.Dir, conformance.SettingsName)
	} else if _, err := os.Stat(with); err != nil {
		return &exitStatus{exitUsage, fmt.Errorf("read the file of --with: %w", err)}
	}
	settings, err := conformance.ReadSettings(with)
	if err != nil {
		return unreadable(err)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(e.ErrOut, "warning: %s\n", warning)
	}
	err = conformance.Plugin(ctx, r, conformance.PluginTarget{Host: h, Plugin: p, Settings: settings, Type: c.Type, Live: c.Live, Conn: conn,
		Files: func(kind, name string) string {
			if c.Resources == "" {
				return ""
			}
			return filepath.Join(c.Resources, kind+"types", name)
		}})
	if err != nil {
		return err
	}
	return r.end()
}

var errFound = errors.New("the checks found something")

// report prints what checks found, as they go.
type report struct {
	out                    io.Writer
	passed, found, skipped int
}

// Pass prints a check that found nothing.
func (r *report) Pass(check string) {
	r.passed++
	fmt.Fprintf(r.out, "ok    %s\n", check)
}

// Fail prints a finding.
func (r *report) Fail(check, finding string) {
	r.found++
	fmt.Fprintf(r.out, "FAIL  %s\n      %s\n", check, finding)
}

// Skip prints why a check was not made.
func (r *report) Skip(check, why string) {
	r.skipped++
	fmt.Fprintf(r.out, "skip  %s\n      %s\n", check, why)
}

// end prints the sum.
func (r *report) end() error {
	fmt.Fprintf(r.out, "\n%d checks passed, %d findings, %d not checked\n", r.passed, r.found, r.skipped)
	if r.found > 0 {
		return &exitStatus{exitFailed, errFound}
	}
	return nil
}

func isBuiltIn(name string) bool { return name == "mock" || name == "local" || name == "shell" }

// tryBuiltIn checks a built-in type that needs no account anywhere. What it needs
// on this host is in a directory that is gone afterwards.
func tryBuiltIn(ctx context.Context, e *wiring.Environment, r conformance.Reporter, name string, conn *remote.Conn) (err error) {
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
			return usageError("the shell automator is tried on a machine: give --ssh USER@HOST[:PORT] --ssh-key FILE")
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
