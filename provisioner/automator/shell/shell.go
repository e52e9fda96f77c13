// Package shell is the automator that runs scripts and commands on machines:
// scripts that administrators upload, those that come with it, or anything that
// is on the machine.
//
// It must not quote the arguments of an action: they are a piece of shell text
// by contract, so that quotes, variables and patterns work in them. Whoever may
// write a service may run anything on its machines anyway.
package shell

import (
	"archive/tar"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/remote"
)

// Directories on the machine.
const (
	cacheDir = automator.CacheDir
	shellDir = cacheDir + "/shell"
)

// maxResult bounds what a script may report, in bytes.
const maxResult = 64 << 10

//go:embed lib/*.sh
var library embed.FS

// Shell is the automator; the zero value is ready to use.
type Shell struct{}

// New returns the automator.
func New() Shell { return Shell{} }

// prepare makes the directories and the names that older scripts use. It runs
// each time, but on a prepared machine it changes nothing.
const prepare = automator.Directories + `mkdir -p ` + shellDir + `/scripts ` + shellDir + `/archives || exit 1
[ -e ` + cacheDir + `/shell_automator ] || ln -s shell ` + cacheDir + `/shell_automator`

// Bootstrap uploads the tenant's scripts and archives and the library, in one
// stream, if the machine has not got exactly these.
func (Shell) Bootstrap(ctx context.Context, _ *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
	tree := remote.NewTree()
	defer tree.Close()
	names, err := fs.Glob(library, "lib/*.sh")
	if err != nil {
		return loom.TaskResult{}, err
	}
	for _, name := range names {
		content, err := library.ReadFile(name)
		if err != nil {
			return loom.TaskResult{}, err
		}
		tree.AddFile(name, 0o755, content)
	}
	if files != "" {
		for _, kind := range []string{"scripts", "archives"} {
			if err := tree.AddResources(kind, files, kind); err != nil {
				return loom.TaskResult{}, err
			}
		}
	}
	sent, err := conn.UploadTree(ctx, tree, shellDir, remote.TreeOptions{Root: true, Owner: conn.User(), Prepare: prepare})
	if err != nil {
		return remote.Failure(err)
	}
	if sent {
		sink.Log("loom", "scripts and archives uploaded to "+shellDir)
	} else {
		sink.Log("loom", "scripts and archives are there already")
	}
	return loom.TaskResult{}, nil
}

// Run uploads the task and runs the action's script as root. Output goes to the
// sink line by line; what the script writes to $LOOM_RESULT_FILE as key=value
// lines comes back as result.<service>.<key>, also on failure.
func (Shell) Run(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, _ string, sink loom.Sink) (loom.TaskResult, error) {
	fields := spec.Service.Action.Fields
	script := strings.TrimSpace(fields["script"])
	if script == "" {
		return refuse("service %s: field “script” is empty; name a script resource, an absolute path or a command", spec.Service.Name), nil
	}
	limit, err := timeLimit(fields["timeout_s"])
	if err != nil {
		return refuse("service %s: %v", spec.Service.Name, err), nil
	}
	expose := loom.SwitchedOn(fields["expose_credentials"])
	if expose && !loom.SwitchedOn(spec.Provider.Fields[loom.FieldExposeCredentials]) {
		sink.Log("loom", "warning: the script gets no credentials: provider "+spec.Provider.Name+" does not allow it (expose_credentials)")
		expose = false
	}
	stream, err := taskFiles(spec, expose)
	if err != nil {
		return loom.TaskResult{}, err
	}
	running, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		running, cancel = context.WithTimeoutCause(ctx, limit, errLimit)
	}
	defer cancel()
	sink.Log("loom", strings.TrimSpace("running "+script+" "+fields["args"]))
	outcome, err := conn.Exec(running, remote.Command{
		Text: commandText(spec, expose, script, fields["args"]), Root: true, Env: environment(spec),
		Stdin: bytes.NewReader(stream), Line: sink.Log,
	})
	reported := collect(ctx, conn, spec, sink)
	var result loom.TaskResult
	switch {
	case errors.Is(err, errLimit):
		result = loom.TaskResult{Status: -1, Message: fmt.Sprintf("%s timed out after %d s (timeout_s)", script, int(limit.Seconds()))}
	case err != nil:
		if result, err = remote.Failure(err); err != nil {
			return loom.TaskResult{Result: reported}, err
		}
	case !outcome.OK():
		result = loom.TaskResult{Status: 1, Message: fmt.Sprintf("%s exited with %d", script, outcome.Code), Retryable: automator.Final(outcome.Code)}
		if cause := []rune(remote.LastLine(outcome.Stderr)); len(cause) > 0 {
			result.Message += ": " + string(cause[:min(len(cause), causeLength)])
		}
	}
	result.Stdout, result.Stderr, result.Result = outcome.Stdout, outcome.Stderr, reported
	return result, nil
}

// causeLength bounds the last line on standard error, which most likely says why a script
// failed, as a part of the message.
const causeLength = 200

var errLimit = errors.New("time limit of the action")

func refuse(format string, args ...any) loom.TaskResult {
	no := false
	return loom.TaskResult{Status: 1, Message: fmt.Sprintf(format, args...), Retryable: &no}
}

func timeLimit(text string) (time.Duration, error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds <= 0 || seconds > 1e6 {
		return 0, fmt.Errorf("field “timeout_s” is %q; give a number of seconds above 0", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// settingsOf is the beginning of the names of the files with the settings of the last
// CONFIGURE or START of a service, which its checks read. They hold no credentials.
func settingsOf(service string) string { return cacheDir + "/settings/" + service }

// keepsSettings reports whether the settings of an action stay on the machine.
func keepsSettings(action loom.TaskAction) bool {
	return action == loom.ActionConfigure || action == loom.ActionStart
}

// withoutCredentials marks the settings of a task that gets credentials as those without.
const withoutCredentials = ".settings"

// CheckText returns the text that runs a check as the script of an action: in the directory
// of scripts, with the library and the settings of the last CONFIGURE or START.
func (Shell) CheckText(spec *loom.TaskSpec, command string) string {
	if command == "" {
		return ""
	}
	settings := settingsOf(spec.Service.Name)
	return "cd " + shellDir + "/scripts || exit 125\n" +
		"PATH=$PATH:" + shellDir + "/scripts LOOM_SERVICE=" + remote.Quote(spec.Service.Name) + " LOOM_HOSTNAME=" + remote.Quote(spec.Hostname) +
		" LOOM_IP_ACCESS_V4=" + remote.Quote(spec.Addresses[loom.AccessV4]) + " LOOM_IP_BIND_V4=" + remote.Quote(spec.Addresses[loom.BindV4]) + "\n" +
		"export PATH LOOM_SERVICE LOOM_HOSTNAME LOOM_IP_ACCESS_V4 LOOM_IP_BIND_V4\n" +
		shellDir + "/lib/wrapper.sh " + remote.Quote(settings+".json") + " " + command + "\n"
}

func pathOf(task, suffix string) string { return cacheDir + "/" + task + suffix }

// commandText unpacks the task's files from standard input and runs the wrapper.
// script and args stay unquoted. They stand at the end, so that a stray quote in
// them spoils nothing before.
// The settings of a CONFIGURE or START stay for checks.
func commandText(spec *loom.TaskSpec, credentials bool, script, args string) string {
	task, keep := spec.Ref.String(), ""
	if keepsSettings(spec.Action) {
		keep = "mkdir -p " + cacheDir + "/settings || exit 125\n"
		for _, suffix := range []string{".json", ".paths"} {
			from := "cp " + pathOf(task, suffix)
			if credentials {
				from = "mv -f " + pathOf(task, withoutCredentials+suffix)
			}
			keep += from + " " + remote.Quote(settingsOf(spec.Service.Name)+suffix) + " || exit 125\n"
		}
	}
	return "umask 077\n" +
		"tar -xof - -C " + cacheDir + " || { echo 'the task could not be written to " + cacheDir + "; was the node bootstrapped?' >&2; exit 125; }\n" +
		keep + "umask 022\n" +
		"exec </dev/null\n" +
		"cd " + shellDir + "/scripts || exit 125\n" +
		"PATH=$PATH:" + shellDir + "/scripts\nexport PATH\n" +
		shellDir + "/lib/wrapper.sh " + pathOf(task, ".json") + " " + script + " " + args + "\n"
}

func environment(spec *loom.TaskSpec) map[string]string {
	task := spec.Ref.String()
	return map[string]string{
		"LOOM_TASK_JSON": pathOf(task, ".json"), "LOOM_TASK_PATHS": pathOf(task, ".paths"), "LOOM_RESULT_FILE": pathOf(task, ".result"),
		"LOOM_TASK_ID": task, "LOOM_TASK_NAME": strings.ToUpper(string(spec.Action)),
		"LOOM_CLUSTER_ID": spec.Ref.Operation.Cluster.String(), "LOOM_HOSTNAME": spec.Hostname, "LOOM_SERVICE": spec.Service.Name,
		"LOOM_IP_ACCESS_V4": spec.Addresses[loom.AccessV4], "LOOM_IP_BIND_V4": spec.Addresses[loom.BindV4],
	}
}

// taskFiles makes the archive of the files of a task: its document, that as lines, and an
// empty one for its results. Where checks will read the settings of a task with credentials,
// the first two come once more without them.
func taskFiles(spec *loom.TaskSpec, credentials bool) ([]byte, error) {
	task := spec.Ref.String()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	add := func(name string, content []byte) error {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	document := func(name string, credentials bool) error {
		text, err := json.Marshal(spec.Payload(credentials))
		if err != nil {
			return fmt.Errorf("write the task as JSON: %w", err)
		}
		paths, err := flatten(text)
		if err != nil {
			return err
		}
		return errors.Join(add(name+".json", text), add(name+".paths", paths))
	}
	err := errors.Join(document(task, credentials), add(task+".result", nil))
	if credentials && keepsSettings(spec.Action) {
		err = errors.Join(err, document(task+withoutCredentials, false))
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// collect reads what the script reported and removes the task's files, also
// when ctx has ended. What cannot be had is only logged: the script has run.
func collect(ctx context.Context, conn *remote.Conn, spec *loom.TaskSpec, sink loom.Sink) map[string]any {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remote.ConnectTimeout)
	defer cancel()
	task := spec.Ref.String()
	text := fmt.Sprintf("head -c %d %[2]s 2>/dev/null; rm -f %[2]s %[3]s %[4]s", maxResult, pathOf(task, ".result"), pathOf(task, ".json"), pathOf(task, ".paths"))
	if spec.Action == loom.ActionRemove {
		settings := settingsOf(spec.Service.Name)
		text += " " + remote.Quote(settings+".json") + " " + remote.Quote(settings+".paths")
	}
	out, err := conn.Run(ctx, "removal of the task's files", remote.Command{Root: true, Tail: maxResult, Text: text})
	if err != nil {
		sink.Log("loom", "warning: "+err.Error())
		return nil
	}
	reported := map[string]any{}
	for _, line := range strings.Split(out.Stdout, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			sink.Log("loom", "warning: a line in $LOOM_RESULT_FILE is not key=value and was left out")
			continue
		}
		reported[key] = value
	}
	if len(reported) == 0 {
		return nil
	}
	// Results replace each other by top-level key, so what the service reported
	// before is kept by hand.
	merged := map[string]any{}
	if before, ok := spec.Results[spec.Service.Name].(map[string]any); ok {
		for key, value := range before {
			merged[key] = value
		}
	}
	for key, value := range reported {
		merged[key] = value
	}
	return map[string]any{spec.Service.Name: merged}
}
