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

// pluginArgs is the first line of the help of loom plugin.
const pluginArgs = "list|check DIR|test DIR|TYPE [--live] [--type TYPE] [--with FILE]|run DIR KIND ACTION|run-task FILE|register|schema " +
	"[--ssh USER@HOST[:PORT]] [--ssh-key FILE] [--resources DIR]"

// exitFound is the exit status of checks that found something, and of actions
// that failed.
const exitFound = 1

// runPlugin is what administrators and authors of plugins use. Only register
// touches the database.
func runPlugin(ctx context.Context, e *environment, args []string) error {
	if len(args) == 0 {
		return wiring.UsageError("loom plugin list, check, test, run, run-task, register or schema; see `loom plugin --help`")
	}
	word, args := args[0], args[1:]
	switch word {
	case "list":
		return e.pluginList(args)
	case "check":
		return e.pluginCheck(args)
	case "test":
		return e.pluginTest(ctx, args)
	case "run":
		return e.pluginRun(ctx, args)
	case "run-task":
		return e.pluginRunTask(ctx, args)
	case "register":
		return e.pluginRegister(ctx, args)
	case "schema":
		if len(args) > 0 {
			return wiring.UsageError("loom plugin schema takes no arguments")
		}
		_, err := e.Out.Write(external.Schema())
		return err
	}
	return wiring.UsageError("there is no loom plugin %s; there are list, check, test, run, run-task, register and schema", word)
}

// pluginList prints the types that a provisioner with these options would carry, and
// what it would not use; the exit status is 1 if a plugin failed to load.
func (e *environment) pluginList(args []string) error {
	if len(args) > 0 {
		return wiring.UsageError("loom plugin list takes no arguments")
	}
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
	return e.tellTrouble(found)
}

// tellTrouble prints warnings and refusals; the error ends the command with 1 if a
// plugin failed to load.
func (e *environment) tellTrouble(found *external.Found) error {
	for _, warning := range found.Warnings {
		fmt.Fprintf(e.ErrOut, "warning: %s\n", warning)
	}
	for _, t := range found.Refused {
		fmt.Fprintf(e.ErrOut, "not used: %s (%s): %s\n", t.Name, t.Dir, forPeople(t.Err))
	}
	if len(found.Failed()) > 0 {
		return &exitStatus{code: exitFound}
	}
	return nil
}

// pluginCheck says whether the plugin in a directory can be used.
func (e *environment) pluginCheck(args []string) error {
	if len(args) != 1 {
		return wiring.UsageError("loom plugin check DIR, the directory with plugin.json")
	}
	p, err := e.loadPlugin(args[0])
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
		carried := built.Providers
		if t.Kind == external.KindAutomator {
			carried = built.Automators
		}
		note := ""
		if slices.Contains(carried, name) {
			note = "; it is built in, and stays so without “replaces”"
			if slices.Contains(p.Manifest.Replaces, name) {
				note = "; it replaces the built-in one"
			}
		}
		fmt.Fprintf(e.Out, "  %s type %s: %s%s\n", t.Kind, name, strings.Join(t.Actions, ", "), note)
	}
	return nil
}

// loadPlugin reads the plugin in a directory; the errors of its manifest come one
// per line.
func (e *environment) loadPlugin(dir string) (*external.Plugin, error) {
	h, err := e.PluginHost()
	if err != nil {
		return nil, err
	}
	return h.Load(dir)
}

// pluginRegister writes the types of all plugins to the database; the exit status
// is 1 if a plugin failed to load.
func (e *environment) pluginRegister(ctx context.Context, args []string) error {
	if len(args) > 0 {
		return wiring.UsageError("loom plugin register takes no arguments")
	}
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
	return e.tellTrouble(p.External)
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
		return &exitStatus{exitUnreadable, err}
	}
	return err
}
