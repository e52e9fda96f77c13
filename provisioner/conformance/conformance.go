// Package conformance holds providers and automators to what Loom relies on:
// that every action may be repeated, also after an answer was lost; that a
// machine is never made twice and never forgotten; that what is cancelled ends;
// that no secret is said. It works on any implementation, built in or external.
//
// It must know nothing of a single cloud: what only its tests know, such as how
// to make it refuse calls, is in the target. A check that a target gives no means
// for is skipped, and said to be.
//
// It is no test package: `loom plugin test` runs it in production builds.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"loom/app/loom"
)

// Reporter takes what the checks find. It is used by one goroutine at a time.
type Reporter interface {
	// Pass says that a check found nothing.
	Pass(check string)
	// Fail says what a check found; there may be several findings of one check.
	Fail(check, finding string)
	// Skip says why a check was not made.
	Skip(check, why string)
}

// TB is what a Reporter of a test needs; *testing.T has it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

// Testing reports to a test: findings fail it.
func Testing(t TB) Reporter { return testing{t} }

type testing struct{ t TB }

// Pass logs.
func (r testing) Pass(check string) { r.t.Helper(); r.t.Logf("ok    %s", check) }

// Fail fails the test.
func (r testing) Fail(check, finding string) { r.t.Helper(); r.t.Errorf("%s: %s", check, finding) }

// Skip logs.
func (r testing) Skip(check, why string) { r.t.Helper(); r.t.Logf("skip  %s: %s", check, why) }

// Fault is a way in which a cloud misbehaves though nothing is wrong with the
// request.
type Fault string

// The faults that a target may be able to arrange.
const (
	// LostAnswer: the next machine is made, but the answer of the cloud is lost.
	LostAnswer Fault = "lost-answer"
	// Throttled: the next n calls are refused as too many.
	Throttled Fault = "throttled"
	// Pending: a new machine takes n looks until it runs.
	Pending Fault = "pending"
	// Lagging: a new machine cannot be seen by the first n looks.
	Lagging Fault = "lagging"
)

// Faults lists all of them.
var Faults = []Fault{LostAnswer, Throttled, Pending, Lagging}

// errUnknown is what a target returns for a fault that it cannot arrange.
var errUnknown = errors.New("the target cannot arrange this")

// Unknown is the error of a target for faults that it cannot arrange.
func Unknown() error { return errUnknown }

// call is how one action went.
type call struct {
	result loom.TaskResult
	err    error
	// hung says that it did not return; panicked what it panicked with.
	hung     bool
	panicked any
	sink     *sink
}

func (c *call) ok() bool { return c.err == nil && !c.hung && c.panicked == nil && c.result.Status == 0 }

func (c *call) String() string {
	switch {
	case c.hung:
		return "it did not return"
	case c.panicked != nil:
		return fmt.Sprintf("it panicked: %v", c.panicked)
	case c.err != nil:
		return fmt.Sprintf("it returned the error %q, which is for trouble of the provisioner only", c.err)
	}
	return fmt.Sprintf("status %d, message %q", c.result.Status, c.result.Message)
}

// perform calls an action and waits for it; one that goes on for long after the
// limit, or after ctx has ended, hangs.
func perform(ctx context.Context, limit time.Duration, s *sink, action func(context.Context, loom.Sink) (loom.TaskResult, error)) *call {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("time limit of the check"))
	defer cancel()
	done := make(chan *call, 1)
	go func() {
		c := &call{sink: s}
		defer func() {
			c.panicked = recover()
			done <- c
		}()
		c.result, c.err = action(ctx, s)
	}()
	select {
	case c := <-done:
		return c
	case <-ctx.Done():
	}
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case c := <-done:
		return c
	case <-timer.C:
		return &call{hung: true, sink: s}
	}
}

// stopLimit is how long a cancelled action may take to end: what a plugin has
// between SIGTERM and SIGKILL, and some more.
const stopLimit = 30 * time.Second

// sink remembers what an action says and reports.
type sink struct {
	mu    sync.Mutex
	lines []string
	facts map[string]any
	signs int
	// onSign is called with the number of each log line or fact, from 1.
	onSign func(n int)
	// refuse is the error of Fact.
	refuse error
}

// Log remembers a line.
func (s *sink) Log(stream, text string) {
	s.mu.Lock()
	if len(s.lines) < 100_000 {
		s.lines = append(s.lines, stream+": "+text)
	}
	s.sign()
}

// Fact remembers results.
func (s *sink) Fact(facts map[string]any) error {
	s.mu.Lock()
	if s.refuse != nil {
		defer s.mu.Unlock()
		return s.refuse
	}
	if s.facts == nil {
		s.facts = map[string]any{}
	}
	maps.Copy(s.facts, facts)
	s.sign()
	return nil
}

// sign unlocks.
func (s *sink) sign() {
	s.signs++
	n, on := s.signs, s.onSign
	s.mu.Unlock()
	if on != nil {
		on(n)
	}
}

func (s *sink) fact(name string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts[name]
}

// leaks finds the first secret in all that a call gave out for people to see.
func (c *call) leaks(secrets []string) string {
	c.sink.mu.Lock()
	defer c.sink.mu.Unlock()
	places := map[string]string{
		"the log": strings.Join(c.sink.lines, "\n"), "the message": c.result.Message,
		"stdout of the result": c.result.Stdout, "stderr of the result": c.result.Stderr, "the host name": c.result.Hostname,
		"the addresses": fmt.Sprint(c.result.Addresses),
	}
	for name, facts := range map[string]map[string]any{"what is stored openly": c.sink.facts, "the result": c.result.Result} {
		open, _ := loom.SplitFacts(facts)
		places[name] = fmt.Sprint(open)
	}
	if c.err != nil {
		places["the error"] = c.err.Error()
	}
	for place, text := range places {
		if secretIn(text, secrets) {
			return place
		}
	}
	return ""
}

// secretIn looks for secrets as they are, without hiding which form was found.
func secretIn(text string, secrets []string) bool {
	for _, secret := range secrets {
		if len(secret) >= 4 && strings.Contains(text, secret) {
			return true
		}
	}
	return false
}
