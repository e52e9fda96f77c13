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
	"loom/provisioner/external"
	"loom/provisioner/remote"
)

// pluginTest holds a plugin to what Loom relies on and prints what each check found.
// The exit status is 1 if anything was.
func (e *environment) pluginTest(ctx context.Context, args []string) error {
	target, args, err := machineOf(args)
	if err != nil {
		return err
	}
	files, args, err := resourcesOf(args)
	if err != nil {
		return err
	}
	typeName, args, _ := wiring.TakeFlag(args, "type")
	with, args, given := wiring.TakeFlag(args, "with")
	args, live := wiring.TakeSwitch(args, "live")
	if len(args) != 1 {
		return wiring.UsageError("loom plugin test DIR, the directory with plugin.json, or the name of a built-in type: mock, local, shell")
	}
	var conn *remote.Conn
	if target != nil {
		if conn, err = remote.Dial(ctx, *target); err != nil {
			return fmt.Errorf("sign in to the machine of --ssh: %w", err)
		}
		defer conn.Close()
	}
	r := &report{out: e.Out}
	if _, err := os.Stat(filepath.Join(args[0], external.ManifestName)); err != nil && isBuiltIn(args[0]) {
		if given || typeName != "" {
			return wiring.UsageError("--with and --type are for plugins in other languages, not for the built-in “%s”", args[0])
		}
		if err := e.tryBuiltIn(ctx, r, args[0], conn); err != nil {
			return err
		}
		return r.end()
	}
	h, err := e.PluginHost()
	if err != nil {
		return err
	}
	p, err := h.Load(args[0])
	if err != nil {
		return err
	}
	if !given {
		with = filepath.Join(p.Dir, conformance.SettingsName)
	} else if _, err := os.Stat(with); err != nil {
		return &exitStatus{exitUnreadable, fmt.Errorf("read the file of --with: %w", err)}
	}
	settings, err := conformance.ReadSettings(with)
	if err != nil {
		return unreadable(err)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(e.ErrOut, "warning: %s\n", warning)
	}
	err = conformance.Plugin(ctx, r, conformance.PluginTarget{Host: h, Plugin: p, Settings: settings, Type: typeName, Live: live, Conn: conn,
		Files: func(kind, name string) string {
			if files == "" {
				return ""
			}
			return filepath.Join(files, kind+"types", name)
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
		return &exitStatus{exitFound, errFound}
	}
	return nil
}
