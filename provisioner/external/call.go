package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"loom/app/loom"
	"loom/provisioner/confine"
	"loom/provisioner/remote"
)

// call is one action of one plugin.
type call struct {
	plugin                 *Plugin
	kind, typeName, action string
	// ids are the variables that name the task.
	ids map[string]string
	// files is the directory with the tenant's resources of the type; "" for none.
	files string
	// target is the machine to lend a sign-in to, or nil.
	target *remote.Target
	// request returns the request; dir is where the plugin will find its resources.
	request func(dir string) (map[string]any, error)
	// secrets are hidden in all that the plugin says.
	secrets []string
	// body replaces the request, for trials; nil: what request gives.
	body []byte
	// bare leaves out of the environment what plugins should not need.
	bare bool
	// ended is how it went, once it did.
	ended *ended
	// machines are those that it listed.
	machines []loom.TaggedMachine
}

// errPluginLimit is the cause with which the time limit of a manifest ends a call.
var errPluginLimit = errors.New("time limit of the plugin")

// run carries out a call. What went wrong with the plugin is in the result; an
// error is trouble of the host, which does not count as a try.
func (h *Host) run(ctx context.Context, c *call, sink loom.Sink) (loom.TaskResult, error) {
	began := time.Now()
	deadline, limited := ctx.Deadline()
	if seconds, ok := c.plugin.Manifest.Timeouts[c.action]; ok || !limited {
		limit := time.Duration(seconds) * time.Second
		if !ok {
			limit = loom.DefaultTaskLimit(loom.TaskAction(c.action))
		}
		if own := began.Add(limit); !limited || own.Before(deadline) {
			deadline = own
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadlineCause(ctx, own, errPluginLimit)
			defer cancel()
		}
	}
	space, err := h.workspace()
	if err != nil {
		return loom.TaskResult{}, err
	}
	defer func() {
		if err := space.remove(); err != nil {
			h.logger().Error("cannot remove scratch directory of plugin", "error", err.Error())
		}
	}()
	dir, err := space.resources(c.files)
	if err != nil {
		return loom.TaskResult{}, err
	}
	request, err := c.request(dir)
	if err != nil {
		return loom.TaskResult{}, err
	}
	var sign *loan
	if c.target != nil {
		if sign, err = space.lendSSH(ctx, *c.target); err != nil {
			return remote.Failure(err)
		}
		defer sign.end()
		request["ssh"] = sign.request
	}
	request["deadline"] = deadline.UTC().Format(time.RFC3339)
	body, err := json.Marshal(request)
	if err != nil {
		return loom.TaskResult{}, fmt.Errorf("write the request of a plugin: %w", err)
	}
	if c.body != nil {
		body = c.body
	}
	if len(body) > MaxRequest {
		return c.refuse(fmt.Sprintf("the task has %d bytes; a plugin takes at most %d", len(body), MaxRequest)), nil
	}
	var lent []string
	if sign != nil {
		lent = sign.environ
	}
	m := c.plugin.Manifest
	s := confine.Stage{Program: c.plugin.Program, Args: slices.Concat(c.plugin.Args, []string{c.kind, c.action}), MemoryMB: m.MemoryMB, OpenFiles: m.OpenFiles}
	if m.MemoryMB == 0 {
		s.DataMB = confine.DataMB
	}
	if h.switches() {
		s.User, s.Processes = h.User, confine.Processes
	}
	said := converse(h, sink, append(slices.Clone(c.secrets), stringsIn(request["secrets"])...))
	said.lists = c.action == actionList
	if err := context.Cause(ctx); err != nil { // nothing was begun
		return loom.TaskResult{Status: -1, Message: err.Error()}, nil
	}
	p, err := start(s, dir, h.environment(c, space, dir, deadline, lent))
	if errors.Is(err, errNotStarted) {
		return c.refuse(err.Error()), nil
	}
	if err != nil {
		return loom.TaskResult{}, err
	}
	e := h.attend(ctx, p, space.scratch(), body, said)
	c.ended, c.machines = &e, said.machines
	result := c.outcome(e, said)
	said.sink.Flush()
	if said.stored != nil {
		return result, said.stored
	}
	if errors.Is(context.Cause(ctx), errPluginLimit) && result.Status == -1 {
		result.Message = fmt.Sprintf("timed out after %d s, the limit that the plugin sets itself", int(time.Since(began).Round(time.Second).Seconds()))
	}
	return result, nil
}

// refuse is the result of an action that the plugin cannot even begin.
func (c *call) refuse(message string) loom.TaskResult {
	result := failure(1, message)
	if c.action == "create" {
		result.Status = 200 // failed before anything was made
	}
	result.Retryable = new(false)
	return result
}

// attend talks with a plugin until it has ended and nothing of it is left.
func (h *Host) attend(ctx context.Context, p *process, scratch string, body []byte, said *conversation) ended {
	var e ended
	hurry := make(chan struct{})
	faster := sync.OnceFunc(func() { close(hurry) })
	defer faster()
	var talking sync.WaitGroup
	rate := or(h.rate, Rate)
	talking.Go(func() { said.listen("stdout", p.stdout, newThrottle(rate, hurry)) })
	talking.Go(func() { said.listen("stderr", p.stderr, newThrottle(rate, hurry)) })
	var writing sync.WaitGroup
	writing.Go(func() {
		_, _ = p.stdin.Write(body) // a plugin need not read it
		_ = p.stdin.Close()
	})
	e.stopped = h.await(ctx, p, said)
	if e.stopped != "" {
		faster()
		p.signal(syscall.SIGTERM)
		if !within(p.exited, or(h.Grace, Grace)) {
			e.killed = true
			p.signal(syscall.SIGKILL)
			<-p.exited
		}
	}
	faster()
	quiet := make(chan struct{})
	go func() { talking.Wait(); close(quiet) }()
	within(quiet, or(h.linger, Linger))
	if h.Tap != nil {
		e.left = stayed(scratch, or(h.linger, Linger))
	}
	p.signal(syscall.SIGKILL)
	strays(scratch)
	// Who still holds the pipes cannot be found; nothing of it is waited for.
	if !within(quiet, or(h.linger, Linger)) {
		for _, f := range []*os.File{p.stdout, p.stderr} {
			_ = f.SetReadDeadline(time.Unix(1, 0))
		}
		<-quiet
	}
	_ = p.stdin.SetWriteDeadline(time.Unix(1, 0))
	writing.Wait()
	e.status = p.finish()
	return e
}

// await waits until the plugin has ended, or there is a reason to end it, which it
// gives.
func (h *Host) await(ctx context.Context, p *process, said *conversation) string {
	silence := or(h.silence, Silence)
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for {
		select {
		case <-p.exited:
			return ""
		case <-ctx.Done():
			return "cancelled: " + context.Cause(ctx).Error()
		case err := <-said.broken:
			return "what the plugin reported could not be stored: " + err.Error()
		case <-said.alive:
			timer.Reset(silence)
		case <-timer.C:
			return fmt.Sprintf("the plugin gave no sign of life for %s and was ended", silence)
		}
	}
}

// within waits for done, at most for the duration, and reports whether it came.
func within(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func stringsIn(value any) []string {
	switch list := value.(type) {
	case []string:
		return list
	case []any:
		var texts []string
		for _, item := range list {
			if text, ok := item.(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	return nil
}

// specCall makes the call of a task.
func specCall(p *Plugin, kind, typeName string, spec *loom.TaskSpec, files string) *call {
	c := &call{plugin: p, kind: kind, typeName: typeName, action: string(spec.Action), ids: idsOf(spec), files: files}
	c.request = func(dir string) (map[string]any, error) { return request(c, spec, c.files) }
	c.secrets = append(slices.Clone(spec.Sensitive), spec.PrivateKey.Reveal())
	_, hidden := loom.SplitFacts(maps.Clone(spec.Results))
	c.secrets = append(c.secrets, textsIn(hidden)...)
	return c
}
