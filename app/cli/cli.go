// Package cli holds the subcommands of loom, one file each. Each is a struct whose tags
// describe its flags and arguments and whose method Run runs it. Package wiring builds what
// they start; the tools of developers are in package lab.
//
// It decides nothing about clusters. What a test starts is the same program
// that people start: see up.go.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"loom/app/config"
	"loom/app/lab"
	"loom/app/telemetry"
	"loom/app/wiring"
	"loom/provisioner"
	"loom/provisioner/confine"
	"loom/provisioner/provider/local"
)

// commands is the command line: a field for each subcommand.
type commands struct {
	Up            upCmd             `cmd:"" help:"Run everything in one process, on a private PostgreSQL."`
	Web           webCmd            `cmd:"" help:"Serve the pages and the REST API."`
	Scheduler     schedulerCmd      `cmd:"" help:"Run control work and periodic jobs."`
	Provisioner   provisionerCmd    `cmd:"" help:"Run tasks."`
	Migrate       migrateCmd        `cmd:"" help:"Update the database to this release, or print its status."`
	Seed          seedCmd           `cmd:"" help:"Load the starter catalog, or a folder with a catalog."`
	User          userCmd           `cmd:"" help:"List unused generated sign-ins, create a user, set a password, unlock a user."`
	Tenant        tenantCmd         `cmd:"" help:"List tenants, create a tenant with its administrator."`
	Token         tokenCmd          `cmd:"" help:"Create an API token."`
	Keys          keysCmd           `cmd:"" help:"List the sealing keys and what uses them, rotate them."`
	Audit         auditCmd          `cmd:"" help:"Verify the audit log."`
	Config        configCmd         `cmd:"" help:"Print the options in force and where they come from."`
	Catalog       catalogCmd        `cmd:"" help:"Preview the import of a folder with a catalog."`
	Solve         solveCmd          `cmd:"" help:"Print the layout for a template and a request, or why there is none, as JSON."`
	Plan          planCmd           `cmd:"" help:"Print the tasks of an action or of a change, and their order."`
	Expand        expandCmd         `cmd:"" help:"Expand the macros of a config for a node, as JSON."`
	Macros        macrosCmd         `cmd:"" help:"Find values that mean something else than they did for the predecessor."`
	Bench         lab.Bench         `cmd:"" help:"Measure this host: create to serving, memory, tasks per second."`
	BenchMachines lab.BenchMachines `cmd:"" hidden:"" help:"Pretend to be the machines of loom bench."`
	Soak          lab.Soak          `cmd:"" help:"Kill, freeze and cut off processes at chosen points and check that nothing is lost."`
	SoakRequest   lab.SoakRequest   `cmd:"" hidden:"" help:"Send one request of loom soak."`
	Plugin        pluginCmd         `cmd:"" help:"List, check, test, run and register plugins in other languages."`
	Stop          stopCmd           `cmd:"" help:"Stop the machines and the private PostgreSQL, keep their files."`
	Clean         cleanCmd          `cmd:"" help:"Remove everything this instance created."`
	DB            dbCmd             `cmd:"" name:"db" hidden:"" help:"Manage the private PostgreSQL alone."`
	Version       versionCmd        `cmd:"" help:"Print the version of this binary."`
}

// Exit statuses beside 0 for success.
const (
	// exitFailed also means that checks found something, or that an action failed.
	exitFailed = 1
	// exitUsage also means input that cannot be read.
	exitUsage = 2
	// exitNo means that the answer to a question is no.
	exitNo = 3
)

// exitStatus ends a subcommand with a status of its own. Without a cause nothing is
// printed, since the output says it all.
type exitStatus struct {
	code  int
	cause error
}

func (e *exitStatus) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return forPeople(e.cause)
}

func (e *exitStatus) Unwrap() error { return e.cause }

// usageError reports wrong use that the tags of a subcommand do not describe.
func usageError(format string, args ...any) error {
	return &exitStatus{exitUsage, fmt.Errorf(format, args...)}
}

// Main runs the subcommand that args name and returns the exit status.
func Main(args []string) int {
	if len(args) > 0 && args[0] == local.StageCommand {
		return local.Main(args[1:])
	}
	if len(args) > 0 && args[0] == confine.Command {
		return provisioner.Confined(args[1:])
	}
	return run(args, os.Environ(), os.Stdin, os.Stdout, os.Stderr)
}

func run(args, environ []string, in io.Reader, out, errOut io.Writer) int {
	helped := false
	parser := kong.Must(&commands{}, kong.Name("loom"), kong.Description("Loom: clusters of machines on demand."), kong.Writers(out, errOut),
		kong.Exit(func(int) { helped = true }), kong.PostBuild(addOptions), kong.WithHyphenPrefixedParameters(true),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, FlagsLast: true}))
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	}
	command, err := parser.Parse(args)
	if helped {
		return 0
	}
	if err != nil {
		fmt.Fprintf(errOut, "loom: %v\n`%s --help` shows how to use it.\n", err, usedCommand(err))
		return exitUsage
	}
	if err := start(command, environ, in, out, errOut); err != nil {
		var status *exitStatus
		if !errors.As(err, &status) {
			status = &exitStatus{exitFailed, err}
		}
		if status.cause != nil {
			fmt.Fprintln(errOut, "loom:", forPeople(status.cause))
		}
		return status.code
	}
	return 0
}

// start runs a subcommand with its options.
func start(command *kong.Context, environ []string, in io.Reader, out, errOut io.Writer) error {
	values, err := config.Load(optionsOf(command), environ)
	if err != nil {
		return &exitStatus{exitUsage, err}
	}
	log, err := telemetry.NewLogger(errOut, values.Text("LOOM_LOG_LEVEL"), values.Text("LOOM_LOG_FORMAT"))
	if err != nil {
		return &exitStatus{exitUsage, err}
	}
	wiring.LimitMemory(log, environ)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	e := &wiring.Environment{Values: values, Log: log, Out: out, ErrOut: errOut}
	defer e.Close()
	if err := e.ReadTestVariables(environ); err != nil {
		return &exitStatus{exitUsage, err}
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.BindTo(in, (*io.Reader)(nil))
	command.Bind(variables(environ))
	err = command.Run(e)
	logCause(log, err)
	return err
}

// variables are the environment as it is given, for what is no option.
type variables []string

// get returns a variable, "" for none.
func (v variables) get(name string) string {
	for _, pair := range v {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(e *wiring.Environment) error {
	_, err := fmt.Fprintln(e.Out, telemetry.BuildVersion())
	return err
}
