package external

import (
	"fmt"
	"maps"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// Exit statuses with a meaning.
const (
	exitUnsupported = 64
	exitUnusable    = 65
	exitUnavailable = 69
	exitTryLater    = 75
	exitRefused     = 77
)

// ended is how a call went.
type ended struct {
	status syscall.WaitStatus
	// stopped says why the host ended the plugin; empty: it ended by itself.
	stopped string
	// killed says that SIGTERM was not enough; left is how many processes were
	// still there after the leader's end, counted for trials only.
	killed bool
	left   int
}

// outcome makes the result of a call from how the plugin ended and what it said.
// Facts are kept whatever happened: they are what DELETE needs.
func (c *call) outcome(e ended, said *conversation) loom.TaskResult {
	said.mu.Lock()
	defer said.mu.Unlock()
	var result loom.TaskResult
	switch {
	case said.result != nil:
		result = *said.result
		c.judge(&result, e)
	case said.unusable != "" && e.stopped == "":
		result = failure(1, "the plugin returned no usable result: "+said.unusable)
	default:
		result = c.withoutResult(e, said)
	}
	facts := maps.Clone(said.facts)
	maps.Copy(facts, result.Result)
	if len(facts) > 0 {
		result.Result = facts
	}
	result.KeepMachine = result.KeepMachine && c.confirms() && result.Status != 0
	c.complete(&result)
	if result.Status != 0 && result.Message == "" {
		result.Message = "the plugin failed without saying why"
	}
	result.Message = said.redactor.Text(result.Message)
	result.Stdout, result.Stderr = said.redactor.Text(result.Stdout), said.redactor.Text(result.Stderr)
	return result
}

// judge compares a result with the exit status.
func (c *call) judge(result *loom.TaskResult, e ended) {
	exit := describeExit(e.status)
	switch {
	case e.stopped != "" && (result.Status != 0 || exit != ""):
		result.Status = -1
		result.Message = e.stopped
	case exit != "" && result.Status == 0:
		result.Status, result.Message = 1, exit+" after reporting success"
	}
	if result.Status != 0 && result.Retryable == nil && e.status.Exited() {
		result.Retryable = retryable(e.status.ExitStatus())
	}
}

// confirms reports whether the call is the CONFIRM of a machine.
func (c *call) confirms() bool { return c.kind == KindProvider && c.action == "confirm" }

// withoutResult makes a result of the exit status alone.
func (c *call) withoutResult(e ended, said *conversation) loom.TaskResult {
	exit := describeExit(e.status)
	switch {
	case e.stopped != "":
		return failure(-1, e.stopped)
	case exit == "" && c.plugin.Manifest.ExitCode:
		return loom.TaskResult{}
	case exit == "":
		return failure(1, "the plugin exited with 0 and gave no result")
	case e.status.Signaled():
		return failure(1, exit)
	}
	code := e.status.ExitStatus()
	result := failure(1, lastLine(said.lastStderr))
	result.Retryable = retryable(code)
	switch code {
	case 1:
	case exitUnsupported:
		result.Message = fmt.Sprintf("the plugin does not support the action %s of %s", c.action, c.typeName)
	case exitUnusable:
		result.Message = or(result.Message, "the plugin cannot use the request; look at the fields")
	case exitUnavailable, exitTryLater:
		result.KeepMachine = true // the cloud says nothing of the machine
		result.Message = or(result.Message, "the cloud is unavailable; trying again later may help")
	case exitRefused:
		result.Message = or(result.Message, "the credentials were refused")
		if c.action == "create" {
			result.Status = 201
		}
	default:
		result.Message = joined(exit, result.Message)
	}
	result.Message = or(result.Message, exit)
	return result
}

func failure(status int, message string) loom.TaskResult {
	return loom.TaskResult{Status: status, Message: message}
}

// retryable says what an exit status means for further tries; nil: nothing.
func retryable(code int) *bool {
	switch code {
	case exitUnsupported, exitUnusable, exitRefused:
		return new(false)
	case exitUnavailable, exitTryLater:
		return new(true)
	}
	return nil
}

// describeExit gives "" for an exit with 0.
func describeExit(status syscall.WaitStatus) string {
	switch {
	case status.Signaled():
		return "the plugin was killed by " + signalName(status.Signal())
	case status.ExitStatus() == 0:
		return ""
	}
	return fmt.Sprintf("the plugin exited with %d", status.ExitStatus())
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// complete adds what Loom knows better than the plugin, and refuses results that
// contradict themselves.
func (c *call) complete(result *loom.TaskResult) {
	if c.kind != KindProvider {
		return
	}
	id, _ := result.Result["providerid"].(string)
	switch {
	case c.action == "create" && result.Status == 0 && id == "":
		*result = failure(1, "the plugin reported a machine without its providerid")
	case c.action == "create" && id != "" && result.Status >= 200 && result.Status < 300:
		// Something was made, so it must be deleted.
		result.Status = 1
	case c.action == "confirm" && result.Status == 0 && result.Addresses[loom.AccessV4] == "":
		result.Status, result.Message = 1, "the plugin confirmed the machine without giving ipaddresses.access_v4"
	case c.action == "delete" && result.Status == 0:
		gone := map[string]any{"providerid": nil, "ssh-auth": nil, "ssh_host_keys": nil, "ssh_port": nil, "disks": nil}
		maps.Copy(gone, result.Result)
		for _, name := range []string{"providerid", "ssh-auth", "ssh_host_keys"} {
			gone[name] = nil
		}
		result.Result = gone
	}
}

func lastLine(text string) string {
	const most = 500
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = pieces(text[:most])[0] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

func joined(first, second string) string {
	if second == "" {
		return first
	}
	return first + ": " + second
}
