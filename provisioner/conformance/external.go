package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loom/app/loom"
	"loom/provisioner/external"
	"loom/provisioner/remote"
)

// ExternalTarget is a type of an external plugin, for the checks that concern the
// protocol itself.
type ExternalTarget struct {
	Host   *external.Host
	Plugin *external.Plugin
	// Type is the name of the type.
	Type string
	// Spec returns the task of the nth machine or run. Action is set by the checks.
	Spec func(n int) *loom.TaskSpec
	// Files is the directory with the resources, or empty.
	Files string
	// Target is the machine that automators may sign in to, or nil.
	Target *remote.Target
	// Secrets of the tasks that must not be said, not even where the host would
	// hide them.
	Secrets []string
	// Slow makes the action last, for the check that it can be stopped; nil: it is
	// stopped whenever it shows a sign of work.
	Slow func(*loom.TaskSpec)
	// Limit of one action, 1 minute when 0.
	Limit time.Duration
}

type externalRun struct {
	ExternalTarget
	kind    external.Type
	ctx     context.Context
	r       Reporter
	check   string
	failed  bool
	n       int
	actions []string
}

// External checks that a plugin keeps to the protocol: its exits, its results,
// its ends. What it does is the subject of Provider and Automator.
func External(ctx context.Context, r Reporter, t ExternalTarget) {
	run := &externalRun{ExternalTarget: t, ctx: ctx, r: r, kind: t.Plugin.Manifest.Types[t.Type]}
	run.Limit = cmp.Or(run.Limit, time.Minute)
	run.actions = run.kind.Actions
	if run.kind.Kind == external.KindProvider {
		run.actions = []string{"create", "confirm", "delete"}
	}
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"protocol: every action answers a usual request", run.answers},
		{"protocol: an unknown action exits with 64", run.unknown},
		{"protocol: garbage instead of a request exits with 65", run.garbage},
		{"protocol: an empty standard input is no success and no hang", run.empty},
		{"protocol: it works with next to no environment", run.bare},
		{"protocol: it leaves its own files and the resources alone", run.untouched},
		{"protocol: SIGTERM ends it", run.terminated},
	} {
		if ctx.Err() != nil {
			r.Skip(c.name, "the checks were stopped")
			continue
		}
		run.check, run.failed = c.name, false
		c.do()
		if !run.failed {
			r.Pass(c.name)
		}
	}
}

func (run *externalRun) fail(format string, args ...any) {
	run.failed = true
	run.r.Fail(run.check, fmt.Sprintf(format, args...))
}

// task returns a task with what CREATE would have reported.
func (run *externalRun) task() *loom.TaskSpec {
	run.n++
	spec := *run.Spec(run.n)
	if spec.Results == nil {
		spec.Results = map[string]any{}
	}
	return &spec
}

// try carries out a trial and makes the checks that hold for all of them.
func (run *externalRun) try(ctx context.Context, t external.Trial, s *sink) (external.Seen, bool) {
	t.Kind, t.Type, t.Files, t.Target = run.kind.Kind, run.Type, run.Files, run.Target
	ctx, cancel := context.WithTimeoutCause(ctx, run.Limit, errors.New("time limit of the check"))
	defer cancel()
	seen, err := run.Host.Try(ctx, run.Plugin, t, s)
	switch {
	case err != nil:
		run.fail("%s: it could not be tried: %v", t.Action, err)
		return seen, false
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		run.fail("%s: it had not ended after %s", t.Action, run.Limit)
		return seen, false
	}
	if seen.Left > 0 {
		run.fail("%s: %d of its processes were still there when it had ended; it has to wait for them", t.Action, seen.Left)
	}
	for _, line := range seen.Output {
		if secretIn(line, run.Secrets) && !isSecretMessage(line) {
			run.fail("%s: a secret is in its output; Loom would hide it, but it must not be said", t.Action)
			break
		}
	}
	return seen, true
}

// isSecretMessage reports whether a line tells the host what to hide.
func isSecretMessage(line string) bool {
	flat := strings.ReplaceAll(line, " ", "")
	return strings.HasPrefix(flat, "{") && strings.Contains(flat, `"t":"secret"`)
}

func (run *externalRun) answers() {
	spec := run.task()
	for _, action := range run.actions {
		seen, ok := run.try(run.ctx, external.Trial{Action: action, Spec: spec}, &sink{})
		if !ok {
			continue
		}
		run.judge(action, seen)
		for name, value := range seen.Result.Result {
			spec.Results[name] = value
			if value == nil {
				delete(spec.Results, name)
			}
		}
		if len(seen.Result.Addresses) > 0 {
			spec.Addresses = seen.Result.Addresses
		}
	}
}

// judge compares exit and messages with the contract; whether the action
// succeeded is another matter.
func (run *externalRun) judge(action string, seen external.Seen) {
	exitOnly := run.Plugin.Manifest.ExitCode
	switch {
	case seen.Signal != "":
		run.fail("%s: it was killed by %s", action, seen.Signal)
	case seen.Results > 1:
		run.fail("%s: it gave %d results; it has to give one", action, seen.Results)
	case seen.Results == 0 && seen.Exit == 0 && !exitOnly:
		run.fail("%s: it exited with 0 and gave no result", action)
	case seen.Results == 1 && seen.Exit != 0 && seen.Result.Status == 1 && strings.HasSuffix(seen.Result.Message, "after reporting success"):
		run.fail("%s: it exited with %d after reporting success", action, seen.Exit)
	case strings.HasPrefix(seen.Result.Message, "the plugin returned no usable result"), strings.HasPrefix(seen.Result.Message, "the plugin reported a machine"),
		strings.HasPrefix(seen.Result.Message, "the plugin confirmed"):
		run.fail("%s: %s", action, seen.Result.Message)
	case seen.Exit == 64 || seen.Exit == 65 && seen.Results == 0:
		run.fail("%s: it exits with %d on a usual request: %s", action, seen.Exit, seen.Result.Message)
	}
}

func (run *externalRun) unknown() {
	seen, ok := run.try(run.ctx, external.Trial{Action: "frobnicate", Spec: run.task()}, &sink{})
	if ok && (seen.Exit != 64 || seen.Results > 0) {
		run.fail("it exits with %d (%d results)", seen.Exit, seen.Results)
	}
}

// garbage holds for the actions that read their request at all.
func (run *externalRun) garbage() {
	for _, body := range []string{"this is no request\n", `{"protocol":`, "[]"} {
		seen, ok := run.try(run.ctx, external.Trial{Action: run.telling(), Spec: run.task(), Body: []byte(body)}, &sink{})
		if ok && (seen.Exit != 65 || seen.Results > 0 && seen.Result.Status == 0) {
			run.fail("given %q it exits with %d", body, seen.Exit)
		}
	}
}

// telling is an action that needs its request: bootstrap often has nothing to do.
func (run *externalRun) telling() string {
	for _, action := range []string{"create", "install", "start", "configure", "stop", "initialize", "remove"} {
		if slices.Contains(run.actions, action) {
			return action
		}
	}
	return run.actions[0]
}

func (run *externalRun) empty() {
	seen, ok := run.try(run.ctx, external.Trial{Action: run.telling(), Spec: run.task(), Body: []byte{}}, &sink{})
	if ok && seen.Result.Status == 0 {
		run.fail("it reports success")
	}
}

func (run *externalRun) bare() {
	usual, ok := run.try(run.ctx, external.Trial{Action: run.telling(), Spec: run.task()}, &sink{})
	if !ok {
		return
	}
	spec := run.task()
	seen, ok := run.try(run.ctx, external.Trial{Action: run.telling(), Spec: spec, Bare: true}, &sink{})
	if ok && seen.Exit != usual.Exit {
		run.fail("it exits with %d instead of %d: %s", seen.Exit, usual.Exit, seen.Result.Message)
	}
	run.cleanUp()
}

// cleanUp deletes what the trials may have made.
func (run *externalRun) cleanUp() {
	if run.kind.Kind != external.KindProvider {
		return
	}
	for n := 1; n <= run.n; n++ {
		spec := *run.Spec(n)
		spec.Results = map[string]any{}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(run.ctx), run.Limit)
		_, _ = run.Host.Try(ctx, run.Plugin, external.Trial{Kind: run.kind.Kind, Type: run.Type, Action: "delete", Spec: &spec, Files: run.Files}, &sink{})
		cancel()
	}
}

func (run *externalRun) untouched() {
	before := map[string]string{}
	dirs := []string{run.Plugin.Dir}
	if run.Files != "" {
		dirs = append(dirs, run.Files)
	}
	for _, dir := range dirs {
		before[dir] = listing(dir)
	}
	run.try(run.ctx, external.Trial{Action: run.telling(), Spec: run.task()}, &sink{})
	for _, dir := range dirs {
		if listing(dir) != before[dir] {
			run.fail("it changed something in %s", dir)
		}
	}
	run.cleanUp()
}

// listing names all files with their sizes.
func listing(dir string) string {
	var b strings.Builder
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%s %d %s\n", path, info.Size(), info.ModTime())
		}
		return nil
	})
	return b.String()
}

// terminated ends each action when it shows a sign of work, or soon after.
func (run *externalRun) terminated() {
	spec := run.task()
	for _, action := range run.actions {
		ctx, cancel := context.WithCancelCause(run.ctx)
		patience := time.AfterFunc(time.Second, func() { cancel(errCancelled) })
		slow := *spec
		if run.Slow != nil {
			run.Slow(&slow)
		}
		seen, ok := run.try(ctx, external.Trial{Action: action, Spec: &slow}, &sink{onSign: func(int) { cancel(errCancelled) }})
		patience.Stop()
		cancel(nil)
		if !ok {
			continue
		}
		if seen.Killed {
			run.fail("%s: it did not end on SIGTERM and was killed after %s", action, external.Grace)
		}
		for name, value := range seen.Result.Result {
			spec.Results[name] = value
		}
	}
	run.cleanUp()
}
