// Package cli holds the subcommands of loom, one file each. Package wiring builds what they
// start; those of developers are in package lab.
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
	"slices"
	"strings"
	"syscall"

	"loom/app/config"
	"loom/app/lab"
	"loom/app/telemetry"
	"loom/app/wiring"
	"loom/provisioner"
	"loom/provisioner/confine"
	"loom/provisioner/provider/local"
)

// command is a subcommand. run gets the arguments that are no options.
type command struct {
	name, args, summary string
	hidden              bool
	run                 func(ctx context.Context, e *environment, args []string) error
}

func commands() []command {
	return []command{
		{"up", "", "everything in one process, on a private PostgreSQL", false, runUp},
		{"web", "", "pages and REST API", false, runWeb},
		{"scheduler", "", "control work and periodic duties", false, runScheduler},
		{"provisioner", "[--tenant NAME]", "runs tasks", false, runProvisioner},
		{"migrate", "[up|status|--markdown]", "bring the database to this release", false, runMigrate},
		{"seed", "[--tenant NAME] [DIR]", "load the starter catalog, or a catalog folder", false, runSeed},
		{"user", "[list|create USER --tenant NAME [--role ROLE]|password USER --tenant NAME|unlock USER --tenant NAME]", "sign-ins not used yet; a new user, a new password, wrong ones forgotten", false, runUser},
		{"tenant", "[list|create NAME [--workers N]]", "tenants; a new one with its administrator", false, runTenant},
		{"token", "create USER --tenant NAME --scope SCOPE[,SCOPE] [--expires TIME] [--name TEXT]", "make an API token and print only that", false, runToken},
		{"keys", "list|rotate", "what hangs on each sealing key; put everything under the first, or a new one", false, runKeys},
		{"audit", "verify [--expect NUMBER:MAC]", "whether the audit is as it was written", false, runAudit},
		{"config", "[--markdown]", "the options in force and where they come from", false, runConfig},
		{"solve", "[--batch] [FILE]", "the layout for a template and a request, or why there is none, as JSON", false, runSolve},
		{"plan", "[--contract] [--format json|dot|text] [FILE]", "the tasks of an action or of a change, and their order", false, runPlan},
		{"expand", "[FILE]", "a config with its macros filled for a node, as JSON", false, runExpand},
		{"macros", "lint [FILE]", "values of a config, template or service that mean something else than for the predecessor", false, runMacros},
		{"bench", "[--tasks N] [--only PART] [--pages NAME,...] [--seconds N] [SIZE...]", "figures of this host: create to serving, memory, tasks per second", false, tool(lab.Bench)},
		{"soak", "[--points N] [--seed N] [--lanes N] [--nodes N] [--lease TIME] [--fault FAULTS]", "kill, freeze and cut off processes at chosen points and look what is lost: nothing", false, tool(lab.Soak)},
		{"soak-request", "", "a request of loom soak", true, tool(lab.SoakRequest)},
		{"plugin", pluginArgs, "plugins in other languages: list and check them, try them, run them, write their types to the database", false, runPlugin},
		{"stop", "", "stop machines and the private PostgreSQL, keep their files", false, runStop},
		{"clean", "[--keep-bases]", "remove everything this instance made", false, runClean},
		{"db", "start|stop|remove [--scratch]", "the private PostgreSQL alone", true, runDB},
		{"version", "", "the version of this binary", false, func(_ context.Context, e *environment, _ []string) error {
			fmt.Fprintln(e.Out, telemetry.BuildVersion())
			return nil
		}},
	}
}

// tool is a subcommand of package lab.
func tool(run func(context.Context, *wiring.Environment, []string) error) func(context.Context, *environment, []string) error {
	return func(ctx context.Context, e *environment, args []string) error { return run(ctx, e.Environment, args) }
}

// Main runs the subcommand that args name and gives the exit status: 0 done,
// 1 failed, 2 wrong use; an exitStatus has its own.
func Main(args []string) int {
	if len(args) > 0 && args[0] == local.StageCommand {
		return local.Main(args[1:])
	}
	if len(args) > 0 && args[0] == confine.Command {
		return provisioner.Confined(args[1:])
	}
	return run(args, os.Environ(), os.Stdout, os.Stderr)
}

func run(args, environ []string, out, errOut io.Writer) int {
	if len(args) == 0 || slices.Contains([]string{"help", "--help", "-h"}, args[0]) {
		fmt.Fprint(out, usage())
		return 0
	}
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		fmt.Fprintln(errOut, "loom:", noSuchCommand(args[0], all))
		return 2
	}
	c := all[i]
	if slices.Contains(args[1:], "--help") || slices.Contains(args[1:], "-h") {
		fmt.Fprint(out, help(c))
		return 0
	}
	values, rest, err := config.Load(c.name, args[1:], environ)
	if err != nil {
		fmt.Fprintln(errOut, "loom:", err)
		return 2
	}
	log, err := telemetry.NewLogger(errOut, values.Text("LOOM_LOG_LEVEL"), values.Text("LOOM_LOG_FORMAT"))
	if err != nil {
		fmt.Fprintln(errOut, "loom:", err)
		return 2
	}
	wiring.LimitMemory(log, environ)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	e := &environment{&wiring.Environment{Values: values, Log: log, Out: out, ErrOut: errOut}}
	defer e.Close()
	if err := e.ReadTestVariables(environ); err != nil {
		fmt.Fprintln(errOut, "loom:", err)
		return 2
	}
	if err := c.run(ctx, e, rest); err != nil {
		logCause(log, err)
		var status *exitStatus
		if errors.As(err, &status) {
			if status.cause != nil {
				fmt.Fprintln(errOut, "loom:", forPeople(status.cause))
			}
			return status.code
		}
		fmt.Fprintln(errOut, "loom:", forPeople(err))
		if errors.Is(err, wiring.ErrUsage) {
			return 2
		}
		return 1
	}
	return 0
}

func usage() string {
	var b strings.Builder
	b.WriteString("Loom: clusters of machines on demand.\n\nUsage: loom SUBCOMMAND [options]\n\n")
	for _, c := range commands() {
		if !c.hidden {
			fmt.Fprintf(&b, "  %-12s %s\n", c.name, c.summary)
		}
	}
	b.WriteString("\n`loom SUBCOMMAND --help` lists the options of one.\n")
	return b.String()
}
