package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"loom/app/config"
	"loom/app/loom"
)

// flag is one that a subcommand has beside the options of the table.
type flag struct{ name, help string }

// flagsOf lists the flags of each subcommand, as its help prints them.
var flagsOf = map[string][]flag{
	"provisioner": {{"--tenant NAME", "Run the tasks of this tenant only; without it those of all."}},
	"seed":        {{"--tenant NAME", "Load into this tenant [superadmin]."}},
	"user": {
		{"--tenant NAME", "The tenant of the user; create, password and unlock need it."},
		{"--role ROLE", "Of create: user or admin [user; admin for the user admin]."},
	},
	"tenant": {{"--workers N", "Of create: how many tasks run at once for the tenant; as many must be free [0]."}},
	"token": {
		{"--tenant NAME", "The tenant of the user; needed."},
		{"--scope SCOPE[,SCOPE]", "What the token may do; needed: read, clusters:write, catalog:write, admin (all that the user may)."},
		{"--expires TIME", "How long it lives, in days or hours: 90d, 12h [90d]."},
		{"--name TEXT", "What it is for, as lists of tokens and the audit show it [command line]."},
	},
	"audit":   {{"--expect NUMBER:MAC", "An entry that must be in the chain: the log has one an hour (“newest entry of the audit chain”)."}},
	"migrate": {{"--markdown", "Print docs/schema.md instead."}},
	"config":  {{"--markdown", "Print docs/configuration.md instead."}},
	"solve":   {{"--batch", "Answer one problem per line."}},
	"plan": {
		{"--contract", "Write every edge between tasks out, without gates."},
		{"--format FORMAT", "json, dot or text [json]."},
	},
	"bench": {
		{"--tasks N", "The tasks of the one graph to measure, and of the tenant with a long queue, 10 to 100000 [1000, 10000 and 100000; 100000]. Below 1000, pages and REST are measured for a moment only, with little stored."},
		{"--only PART", "Measure one part: local, tasks, tenants, http, pages, compare, clouds, solver, planner or makespan; or hundred, which takes minutes and is never measured by itself."},
		{"--pages NAME,...", "Of the pages those whose names have one of these in them, such as home,nodes,live."},
		{"--seconds N", "How long each page and each request is measured, 1 to 60 [3]."},
	},
	"soak": {
		{"--points N", "How many faults are struck [2000]."},
		{"--seed N", "Which ones; a seed that a run printed repeats its faults [made up]."},
		{"--lanes N", "How many installations run side by side [3]."},
		{"--nodes N", "How many nodes their clusters have [20]."},
		{"--lease TIME", "Lease of its processes, 1.5s. Longer on a host that is busy: who stands still for longer than that is taken for dead and is not."},
		{"--fault FAULTS", "What every provisioner and scheduler gets once instead, such as execution.CompleteTasks.after:3:kill; one cluster then."},
	},
	"plugin": {
		{"--live", "Of test: do real work too; machines are made and removed again."},
		{"--type TYPE", "Of test: check this type only."},
		{"--with FILE", "Of test: how to try the plugin [loom-test.json beside plugin.json]."},
		{"--ssh USER@HOST[:PORT]", "Of test and run: a machine that automators may sign in to."},
		{"--ssh-key FILE", "Its private key."},
		{"--resources DIR", "Of test, run and run-task: plugin resources, laid out as providertypes/TYPE/RESOURCETYPE/NAME and automatortypes/…; of run as RESOURCETYPE/NAME."},
	},
	"clean": {{"--keep-bases", "Keep the base roots of local machines, which take time to build."}},
	"db":    {{"--scratch", "Do not wait for the disk: for tests."}},
}

// help is what `loom SUBCOMMAND --help` prints.
func help(c command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s.\n", strings.TrimSpace("loom "+c.name+" "+c.args), c.summary)
	if flags := flagsOf[c.name]; len(flags) > 0 {
		b.WriteString("\nFlags:\n")
		for _, f := range flags {
			fmt.Fprintf(&b, "  %s\n        %s\n", f.name, f.help)
		}
	}
	if options := config.Help(c.name); options != "" {
		b.WriteString("\nOptions:\n" + options)
	}
	return b.String()
}

// noSuchCommand suggests what a slip was meant to be.
func noSuchCommand(word string, all []command) string {
	var names []string
	for _, c := range all {
		if !c.hidden {
			names = append(names, c.name)
		}
	}
	text := fmt.Sprintf("there is no “%s”; ", word)
	if near := config.Near(word, names); near != "" {
		text += fmt.Sprintf("did you mean “%s”? ", near)
	}
	return text + "`loom help` lists what there is."
}

// forPeople gives the message of an error, field errors one per line. The cause of
// a domain error is for the log.
func forPeople(err error) string {
	var e *loom.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := messageOf(e)
	if whole := e.Error(); strings.Contains(err.Error(), whole) { // said on the way, such as what was being done
		text = strings.Replace(err.Error(), whole, text, 1)
	}
	if e.Err != nil && (e.Kind == loom.Unavailable || e.Kind == loom.Internal) {
		text += " LOOM_LOG_LEVEL=debug shows the cause."
	}
	return text
}

// logCause keeps what forPeople leaves out.
func logCause(log *slog.Logger, err error) {
	var e *loom.Error
	if errors.As(err, &e) && e.Err != nil {
		log.Debug("what was behind an error", "message", e.Message, "cause", e.Err.Error())
	}
}

func messageOf(e *loom.Error) string {
	if len(e.Fields) == 1 && e.Fields[0].Message == e.Message {
		return e.Fields[0].Field + ": " + e.Message
	}
	var b strings.Builder
	b.WriteString(e.Message)
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "\n  %s: %s", f.Field, f.Message)
	}
	return b.String()
}
