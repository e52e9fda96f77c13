package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"loom/app/loom"
	"loom/app/wiring"
	"loom/provisioner/external"
)

// pluginCmd is what administrators and authors of plugins use. Only register
// touches the database.
type pluginCmd struct {
	List     pluginList     `cmd:"" help:"List the types that a provisioner would offer. Exit status 1 if a plugin fails to load."`
	Check    pluginCheck    `cmd:"" help:"Check whether a plugin can be used."`
	Test     pluginTest     `cmd:"" help:"Test a plugin against the protocol. Exit status 1 if a test fails."`
	Run      pluginRun      `cmd:"" help:"Run one action of a plugin and print the result, without its secrets."`
	RunTask  pluginRunTask  `cmd:"" help:"Run the task in a file as a provisioner would. Stores nothing."`
	Register pluginRegister `cmd:"" help:"Write the types of all plugins to the database."`
	Schema   pluginSchema   `cmd:"" help:"Print the JSON Schema of plugin.json."`
}

type pluginSchema struct{}

// Run prints the schema.
func (pluginSchema) Run(e *wiring.Environment) error {
	_, err := e.Out.Write(external.Schema())
	return err
}

type pluginList struct{}

// Run prints the types that a provisioner with these options would offer, and what it
// would not use.
func (pluginList) Run(e *wiring.Environment) error {
	h, err := e.PluginHost()
	if err != nil {
		return err
	}
	built := e.BuiltIn()
	found := e.FindPlugins(h, built)
	table := tabwriter.NewWriter(e.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tTYPE\tPLUGIN\tVERSION\tWHERE")
	for _, group := range []struct {
		kind  string
		built []string
	}{{external.KindProvider, built.Providers}, {external.KindAutomator, built.Automators}} {
		types := map[string]bool{}
		for _, name := range append(slices.Clone(group.built), found.Types(group.kind)...) {
			types[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(types)) {
			if p := found.Plugin(group.kind, name); p != nil {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", group.kind, name, p.Manifest.Name, p.Manifest.Version, p.Dir)
				continue
			}
			fmt.Fprintf(table, "%s\t%s\t–\t–\tbuilt in\n", group.kind, name)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range found.Plugins {
		fmt.Fprintf(e.Out, "\n%s %s\n  manifest %s\n  program  %s\n", p.Manifest.Name, p.Manifest.Version, p.ManifestSHA256, p.ProgramSHA256)
		for _, name := range slices.Sorted(maps.Keys(p.Manifest.Types)) {
			if p.Manifest.Types[name].NeedsProviderCredentials {
				fmt.Fprintf(e.Out, "  the type %s gets the credentials of providers\n", name)
			}
		}
	}
	return printTrouble(e, found)
}

// printTrouble prints warnings and refusals; the error ends the command with 1 if a
// plugin failed to load.
func printTrouble(e *wiring.Environment, found *external.Found) error {
	for _, warning := range found.Warnings {
		fmt.Fprintf(e.ErrOut, "warning: %s\n", warning)
	}
	for _, t := range found.Refused {
		fmt.Fprintf(e.ErrOut, "not used: %s (%s): %s\n", t.Name, t.Dir, forPeople(t.Err))
	}
	if len(found.Failed()) > 0 {
		return &exitStatus{code: exitFailed}
	}
	return nil
}

type pluginCheck struct {
	Dir string `arg:"" help:"Directory with plugin.json."`
}

// Run checks whether the plugin in a directory can be used.
func (c *pluginCheck) Run(e *wiring.Environment) error {
	h, err := e.PluginHost()
	if err != nil {
		return err
	}
	p, err := h.Load(c.Dir)
	if err != nil {
		return err
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(e.ErrOut, "warning: %s\n", warning)
	}
	fmt.Fprintf(e.Out, "%s %s can be used\n", p.Manifest.Name, p.Manifest.Version)
	built := e.BuiltIn()
	for _, name := range slices.Sorted(maps.Keys(p.Manifest.Types)) {
		t := p.Manifest.Types[name]
		names := built.Providers
		if t.Kind == external.KindAutomator {
			names = built.Automators
		}
		note := ""
		if slices.Contains(names, name) {
			note = "; it is built in, and stays so without “replaces”"
			if slices.Contains(p.Manifest.Replaces, name) {
				note = "; it replaces the built-in one"
			}
		}
		fmt.Fprintf(e.Out, "  %s type %s: %s%s\n", t.Kind, name, strings.Join(t.Actions, ", "), note)
	}
	return nil
}

type pluginRegister struct{}

// Run writes the types of all plugins to the database; the exit status is 1 if a
// plugin failed to load.
func (pluginRegister) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	p, err := e.Plugins()
	if err != nil {
		return err
	}
	if err := e.Register(ctx, s, p); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "%d provider types and %d automator types are in the database\n", len(p.Providers.Types()), len(p.Automators.Types()))
	for _, one := range p.External.Plugins {
		fmt.Fprintf(e.Out, "  %s %s: %s\n", one.Manifest.Name, one.Manifest.Version, strings.Join(slices.Sorted(maps.Keys(one.Manifest.Types)), ", "))
	}
	return printTrouble(e, p.External)
}

// printer is a sink that prints.
type printer struct{ out io.Writer }

// Log prints a line.
func (p printer) Log(stream, text string) {
	fmt.Fprintf(p.out, "%s: %s\n", stream, text)
}

// Fact prints what would be stored, without what is secret.
func (p printer) Fact(facts map[string]any) error {
	open, hidden := loom.SplitFacts(facts)
	for _, name := range slices.Sorted(maps.Keys(open)) {
		fmt.Fprintf(p.out, "stored: %s = %s\n", name, loom.FieldText(open[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(hidden)) {
		fmt.Fprintf(p.out, "stored: %s has secrets\n", name)
	}
	return nil
}

// unreadable ends a command whose input cannot be read.
func unreadable(err error) error {
	if errors.Is(err, loom.Invalid) || errors.Is(err, os.ErrNotExist) {
		return &exitStatus{exitUsage, err}
	}
	return err
}
