package provisioner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
)

// journalConnect is how long a machine has to let a reader of a journal sign in, and
// journalMachine how long the command may run there although its session ended unseen.
const (
	journalConnect = 20 * time.Second
	journalMachine = loom.JournalTime + time.Minute
)

// Follow sends the lines of a journal to the sink, without secrets, until ctx ends or the
// journal does; it returns why in words for its reader, "" at the end of what was asked for.
// It learns no host key, and leaves no process on the machine.
func (r *Runner) Follow(ctx context.Context, t *loom.JournalTarget, sink loom.Sink) string {
	spec := r.lookSpec(t.Spec)
	spec.Service = &loom.TaskService{Name: t.Service, Action: t.Start}
	p, ok := r.Providers.Get(spec.Provider.Type)
	if !ok {
		return r.Providers.Missing(spec.Provider.Type)
	}
	if _, ok := p.(provider.Watched); ok {
		return "Nobody can sign in to machines of this provider, so there is no journal."
	}
	text := r.journalText(t, spec)
	if text == "" {
		return "The service does not say where its logs are."
	}
	redactor := NewRedactor(sensitive(spec)...)
	message, err := r.followOn(ctx, spec, t.Follow, text, redactor, sink)
	var trouble *remote.Error
	switch {
	case err == nil:
	case errors.Is(err, remote.ErrLost) && ctx.Err() == nil:
		message = "The connection to the machine was lost; open the journal again."
	case errors.Is(err, remote.ErrUnreachable), errors.Is(err, errTimedOut):
		message = "The machine does not answer."
	case errors.As(err, &trouble):
		message = firstLine(trouble.Text)
	default:
		message = said(err)
	}
	return redactor.Text(message)
}

// followOn signs in to the machine and runs the text there.
func (r *Runner) followOn(ctx context.Context, spec *loom.TaskSpec, follow bool, text string, redactor *Redactor, sink loom.Sink) (string, error) {
	set, release, err := r.lookFiles(ctx, spec)
	if err != nil {
		return "", err
	}
	defer release()
	if r.Cache != nil && spec.ResourceSet > 0 {
		redactor.Add(r.Cache.secretFiles(set, spec)...)
	}
	target, err := remote.TargetOf(spec, below(set, "providertypes", spec.Provider.Type))
	switch {
	case err != nil:
		return "", err
	case target.Address == "":
		return "The machine has no address.", nil
	case len(target.HostKeys) == 0 && len(target.HostCAs) == 0:
		return "No host key of the machine is recorded yet.", nil
	}
	connecting, cancel := context.WithTimeoutCause(ctx, journalConnect, errTimedOut)
	defer cancel()
	conn, done, err := r.Pool.Conn(connecting, target)
	if err != nil {
		return "", err
	}
	defer done()
	quiet := redactor.Sink(sink)
	defer quiet.Flush()
	// Its end is how the machine knows that the session has ended.
	open, end := io.Pipe()
	defer end.Close()
	outcome, err := conn.Exec(ctx, remote.Command{Text: text, Root: true, Stdin: open, Line: quiet.Log, Tail: 1})
	switch {
	case err != nil, outcome.OK() && !follow:
		return "", err
	case outcome.OK():
		return "The command that reads the journal has ended.", nil
	}
	return fmt.Sprintf("The command that reads the journal ended with exit status %d.", outcome.Code), nil
}

// journalText returns the shell text that prints a journal, "" where it has none: units where
// the machine has systemd, files, else what the automator of the service knows. It ends with
// its session, which closes standard input.
func (r *Runner) journalText(t *loom.JournalTarget, spec *loom.TaskSpec) string {
	var b strings.Builder
	b.WriteString("exec 3<&0 </dev/null\n")
	fmt.Fprintf(&b, "(timeout %d cat <&3; kill -s TERM 0) >/dev/null 2>&1 &\n", int(journalMachine.Seconds()))
	wait := "s=0\n"
	part := func(name, text string) {
		fmt.Fprintf(&b, "(\n%s\n) 3<&- &\n%s=$!\n", text, name)
		wait += "[ -z \"$" + name + "\" ] || wait \"$" + name + "\" || s=$?\n"
	}
	a, _ := r.Automators.Get(t.Start.Type)
	logger, ok := a.(automator.Logger)
	follow := ""
	switch units, files := quoted(" -u ", t.Logs.Units), quoted(" ", t.Logs.Files); {
	case units+files != "":
		b.WriteString("a= b=\n")
		if files != "" {
			if follow = ""; t.Follow {
				follow = "-F "
			}
			part("a", fmt.Sprintf("tail -n %d %s--%s 2>&1", t.Lines, follow, files))
		}
		if units != "" {
			if follow = ""; t.Follow {
				follow = "-f "
			}
			b.WriteString("if [ -d /run/systemd/system ] && command -v journalctl >/dev/null; then\n")
			// On the other stream: lines of both do not mix there.
			part("b", fmt.Sprintf("journalctl --no-pager -q -o short-iso -n %d %s%s >&2", t.Lines, follow, units))
			if files == "" {
				b.WriteString("else\necho 'This machine has no systemd, and the service names no files of its logs.'\n")
			}
			b.WriteString("fi\n")
		}
	case ok:
		b.WriteString("a=\n")
		part("a", logger.LogText(spec, t.Lines, t.Follow))
	default:
		return ""
	}
	// The rest goes too, and nothing is left on the machine.
	return b.String() + wait + "trap '' TERM\nkill -s TERM 0\nexit $s\n"
}

// quoted returns words for the shell, each after the same text.
func quoted(before string, words []string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(before + remote.Quote(w))
	}
	return b.String()
}
