// Package failpoint makes a process die, freeze or lose its database at a chosen
// place, so that tests can look what becomes of the work that it held.
//
// Every transaction of package store and every call of a plugin is a point. A
// point costs one atomic load unless LOOM_FAULT arms some; nothing else may
// depend on it. It must never do anything of its own accord, and knows nothing
// of Loom. What a newcomer gets wrong: a killed process runs no deferred
// function and says no goodbye, which is the purpose.
package failpoint

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Variable is the environment variable that arms points.
const Variable = "LOOM_FAULT"

// Action is what happens at a point.
type Action string

// The actions.
const (
	// Kill ends the process as kill -9 does.
	Kill Action = "kill"
	// Freeze stops the process as it stands, until somebody sends it SIGCONT.
	Freeze Action = "freeze"
	// Cut breaks every connection to the database; the process goes on.
	Cut Action = "cut"
)

// Actions lists them all.
var Actions = []Action{Kill, Freeze, Cut}

// Points with names of their own; transactions are named after their owners.
const (
	// Renewed is after each renewal of a process lease.
	Renewed = "processes.HoldLease.renewed"
	// BeforeCall and AfterCall are around the call of a plugin: after it, what it
	// did is done and its answer is not stored.
	BeforeCall = "work.call.before"
	AfterCall  = "work.call.after"
	// ResultKept is when the answer is on disk and the database does not have it.
	ResultKept = "work.result.kept"
)

// Any is the name that stands for every point.
const Any = "*"

// order is one fault: the n-th hit of a point.
type order struct {
	point  string
	hit    int
	action Action
}

// plan is what is armed. Orders of one plan count from the start of the process,
// each on its own.
type plan struct {
	mu     sync.Mutex
	counts map[string]int
	orders []order
	say    io.Writer
	// act carries out an action; tests replace it.
	act func(Action)
}

var armed atomic.Pointer[plan]

// Arm arms the faults of a text such as "execution.CompleteTasks.after:3:kill":
// point, hit counted from 1, and action, several separated by commas. An empty
// text arms nothing. What was armed before is forgotten.
func Arm(text string) error {
	p, err := parse(text)
	if err != nil || p == nil {
		armed.Store(nil)
		return err
	}
	armed.Store(p)
	return nil
}

// Check says what is wrong with a text that Arm would be given.
func Check(text string) error {
	_, err := parse(text)
	return err
}

func parse(text string) (*plan, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	p := &plan{counts: map[string]int{}, say: os.Stderr, act: act}
	for _, one := range strings.Split(text, ",") {
		parts := strings.Split(strings.TrimSpace(one), ":")
		if len(parts) != 3 || parts[0] == "" {
			return nil, fmt.Errorf("%s holds %q; it takes point:hit:action such as execution.CompleteTasks.after:3:kill", Variable, one)
		}
		hit, err := strconv.Atoi(parts[1])
		if err != nil || hit < 1 {
			return nil, fmt.Errorf("%s holds %q; the hit is a number from 1, not %q", Variable, one, parts[1])
		}
		if !slices.Contains(Actions, Action(parts[2])) {
			return nil, fmt.Errorf("%s holds %q; the action is kill, freeze or cut, not %q", Variable, one, parts[2])
		}
		p.orders = append(p.orders, order{parts[0], hit, Action(parts[2])})
	}
	return p, nil
}

// At is a point with a name of its own.
func At(point string) {
	if p := armed.Load(); p != nil {
		p.hit(point)
	}
}

// Before is the point right before a transaction commits: its locks are held,
// its changes are made and nobody has seen them. The point is named after the
// function that owns the transaction, such as "execution.CompleteTasks.before".
func Before() {
	if p := armed.Load(); p != nil {
		p.hit(owner() + ".before")
	}
}

// After is the point right after a transaction committed: what it did holds,
// and its owner does not know yet.
func After() {
	if p := armed.Load(); p != nil {
		p.hit(owner() + ".after")
	}
}

// hit counts, and does what is due. Counting goes on while an action is carried
// out: a frozen process stands still anyway.
func (p *plan) hit(point string) {
	p.mu.Lock()
	p.counts[point]++
	p.counts[Any]++
	var due []order
	for _, o := range p.orders {
		if (o.point == point || o.point == Any) && p.counts[o.point] == o.hit {
			due = append(due, o)
		}
	}
	p.mu.Unlock()
	for _, o := range due {
		// One write, so that it is whole also when the process ends with it.
		fmt.Fprintf(p.say, "fault: %s hit %d: %s\n", point, o.hit, o.action)
		p.act(o.action)
	}
}

// storePackages own no transaction: the function that called them does.
var storePackages = []string{"loom/app/failpoint.", "loom/app/store."}

// owner names the function that asked package store for a transaction, without
// its receiver: "execution.CompleteTasks".
func owner() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		frame, more := frames.Next()
		if !slices.ContainsFunc(storePackages, func(p string) bool { return strings.HasPrefix(frame.Function, p) }) {
			return short(frame.Function)
		}
		if !more {
			return "unknown"
		}
	}
}

// short makes "execution.Reconcile" of "loom/app/execution.(*Operations).Reconcile.func1".
func short(function string) string {
	function, _, _ = strings.Cut(function[strings.LastIndexByte(function, '/')+1:], "[") // type arguments
	var kept []string
	for i, part := range strings.Split(function, ".") {
		switch {
		case strings.HasPrefix(part, "("), strings.HasPrefix(part, "func") && i > 1, part != "" && part[0] >= '0' && part[0] <= '9':
			continue
		}
		kept = append(kept, part)
	}
	if len(kept) > 2 {
		kept = kept[:2]
	}
	return strings.Join(kept, ".")
}

func act(a Action) {
	switch a {
	case Kill:
		syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // there is no other way on
		select {}
	case Freeze:
		syscall.Kill(os.Getpid(), syscall.SIGSTOP) //nolint:errcheck // it goes on with SIGCONT
	case Cut:
		cut()
	}
}
