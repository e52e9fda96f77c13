// Package fakecloud stands in for clouds in tests: an HTTP server that keeps
// machines, misbehaves as it is told and counts what must not happen. What its
// calls look like is a Dialect; ec2 and ocean are two. A server "made" there may be
// backed by a machine that answers SSH, see Maker.
//
// A fake cloud agrees with our reading of a cloud's API, no more. Only _test files and
// measurements import this package and those below it.
package fakecloud

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// State of a machine at a fake cloud; each Dialect has its own words for them.
type State string

// The states.
const (
	Pending State = "pending"
	Running State = "running"
	Stopped State = "stopped"
	Broken  State = "broken"
	Leaving State = "leaving"
	Gone    State = "gone"
)

// Machine is one that a fake cloud was asked for.
type Machine struct {
	// ID is made by the Dialect, or "m-<number>".
	ID string
	// Number counts the machines from 1.
	Number int
	// Key is Loom's idempotency key, as the labels say.
	Key, Name, Flavor, Image string
	Tags                     map[string]string
	// Words are tags of clouds that have no pairs.
	Words []string
	State State
	// Reason why it is broken.
	Reason string
	Made   time.Time
	// Backing is what answers; its addresses are empty while the machine is pending.
	Backing Backing
	// Request is what it was asked for with, as the Dialect keeps it.
	Request any
	// Resets counts how often it was reset while it ran, Starts how often it was started.
	Resets, Starts int

	// The numbers of looks until it runs, is seen, is listed and is gone.
	pending, unseen, unlisted, leaving int
	close                              func()
}

// Backing is what answers at a machine's addresses.
type Backing struct {
	// Public and Private addresses; either may be missing.
	Public, Private string
	// Port of SSH; 0 for 22. The fake cloud tells it in the tag loom-ssh-port.
	Port int
	// HostKeys by short type in base64; clouds that tell them do.
	HostKeys map[string]string
	// Close ends it, when the machine is removed; may be nil.
	Close func()
}

// Maker makes what answers for a machine. Nil makers give addresses that nothing
// answers at.
type Maker func(ctx context.Context, m Machine) (Backing, error)

// Behaviour is how machines fare that are asked for from now on.
type Behaviour struct {
	// Pending is the number of looks that a machine takes to run; Unseen of those that do
	// not find it; Unlisted the number of listings that lack it; Leaving the number of looks
	// it takes to be gone.
	Pending, Unseen, Unlisted, Leaving int
	// Break makes it fail, with this reason.
	Break string
	// NoAddress leaves it without any.
	NoAddress bool
}

// Fault makes calls go wrong.
type Fault struct {
	// Op is the operation that it strikes, "" for all.
	Op string
	// Times is how often; 0 means once, -1 always.
	Times int
	// Delay comes before anything else.
	Delay time.Duration
	// Status refuses the call, 0 carries it out; Code and Message are the cloud's own, ""
	// for what fits the status.
	Status        int
	Code, Message string
	// RetryAfter is that header, "" for none; Header are further ones.
	RetryAfter string
	Header     map[string]string
	// Lost carries the call out and cuts the connection instead of answering.
	Lost bool
	// Garbled carries it out and answers with nonsense.
	Garbled bool
}

// Call is one that the server got. Abandoned: the client did not wait for the answer.
type Call struct {
	Op        string
	Status    int
	Body      string
	Abandoned bool
}

// slowness is how a slow cloud works on calls.
type slowness struct {
	workers chan struct{}
	take    time.Duration
}

// Slow returns an operation a number of workers, each of whom takes some time for a call; calls
// that find none wait, and are carried out even if nobody waits for them any longer.
func (c *Cloud) Slow(op string, workers int, take time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow[op] = slowness{make(chan struct{}, workers), take}
}

// work takes the time that an operation takes.
func (c *Cloud) work(op string) {
	c.mu.Lock()
	s, slow := c.slow[op]
	c.mu.Unlock()
	if !slow {
		return
	}
	s.workers <- struct{}{}
	time.Sleep(s.take)
	<-s.workers
}

// Counts are what a test looks at in the end.
type Counts struct {
	// Live machines, and those ever Created.
	Live, Created int
	// Doubles is how often a machine was made while another with its key lived.
	Doubles int
	// Most is how many calls were in flight at once.
	Most int
}

// Cloud is a running fake cloud.
type Cloud struct {
	dialect Dialect
	maker   Maker
	server  *http.Server
	url     string
	serving sync.WaitGroup

	mu        sync.Mutex
	slow      map[string]slowness
	machines  []*Machine
	faults    []*Fault
	behaviour Behaviour
	doubles   int
	// inFlight are the calls that are being answered, most the most there ever were.
	inFlight, most int
	calls          []Call
}

// New starts a fake cloud without TLS; close it in the end.
func New(d Dialect, maker Maker) *Cloud { return start(d, maker, nil) }

// NewSecure starts one with TLS.
func NewSecure(d Dialect, maker Maker, certificate tls.Certificate) *Cloud {
	return start(d, maker, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
}

func start(d Dialect, maker Maker, secure *tls.Config) *Cloud {
	c := &Cloud{dialect: d, maker: maker, slow: map[string]slowness{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("start a fake cloud: %v", err))
	}
	c.url = "http://" + listener.Addr().String()
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	if secure != nil {
		c.url, listener = "https"+strings.TrimPrefix(c.url, "http"), tls.NewListener(listener, secure)
	}
	d.Attach(c)
	go func() { _ = c.server.Serve(listener) }()
	return c
}

// URL is the address of its API.
func (c *Cloud) URL() string { return c.url }

// Close ends it and everything that backs its machines.
func (c *Cloud) Close() {
	_ = c.server.Close()
	c.serving.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.machines {
		m.end()
	}
}

// Behave says how machines fare from now on.
func (c *Cloud) Behave(b Behaviour) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behaviour = b
}

// Heal ends all faults and behaviour, for the machines that there are, too.
func (c *Cloud) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults, c.behaviour = nil, Behaviour{}
	for _, m := range c.machines {
		m.unseen, m.unlisted = 0, 0
		if m.State == Pending {
			m.pending, m.State = 0, Running
		}
	}
}

// Inject adds a fault; of several that fit a call the first strikes.
func (c *Cloud) Inject(f Fault) {
	if f.Times == 0 {
		f.Times = 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, &f)
}

// Counts counts.
func (c *Cloud) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := Counts{Created: len(c.machines), Doubles: c.doubles, Most: c.most}
	for _, m := range c.machines {
		if m.lives() {
			n.Live++
		}
	}
	return n
}

// Leaked returns the machines that live though none of the ids known is theirs.
func (c *Cloud) Leaked(known ...string) (leaked []Machine) {
	for _, m := range c.Machines() {
		if m.lives() && !slices.Contains(known, m.ID) {
			leaked = append(leaked, m)
		}
	}
	return leaked
}

// ByKey returns the ids of the machines that live, by idempotency key.
func (c *Cloud) ByKey() map[string][]string {
	found := map[string][]string{}
	for _, m := range c.Machines() {
		if m.lives() {
			found[m.Key] = append(found[m.Key], m.ID)
		}
	}
	return found
}

// Machines returns all machines ever made, without counting as a look.
func (c *Cloud) Machines() (all []Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.machines {
		all = append(all, m.copy())
	}
	return all
}

// Calls returns the calls of an operation, "" for all.
func (c *Cloud) Calls(op string) (calls []Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if op == "" || call.Op == op {
			calls = append(calls, call)
		}
	}
	return calls
}

// Make makes a machine, for a Dialect. m.ID may hold a %d for its number.
func (c *Cloud) Make(ctx context.Context, m Machine) (Machine, error) {
	c.mu.Lock()
	b := c.behaviour
	made := &m
	made.Number, made.State, made.Made = len(c.machines)+1, Running, time.Now().UTC().Truncate(time.Second)
	if made.ID == "" {
		made.ID = "m-%d"
	}
	if strings.Contains(made.ID, "%") {
		made.ID = fmt.Sprintf(made.ID, made.Number)
	}
	made.pending, made.unseen, made.unlisted, made.leaving = b.Pending, b.Unseen, b.Unlisted, b.Leaving
	switch {
	case b.Break != "":
		made.State, made.Reason = Broken, b.Break
	case b.Pending > 0:
		made.State = Pending
	}
	for _, other := range c.machines {
		if other.Key == made.Key && made.Key != "" && other.lives() {
			c.doubles++
			break
		}
	}
	c.machines = append(c.machines, made)
	given := made.copy()
	c.mu.Unlock()

	backing := Backing{Public: fmt.Sprintf("203.0.113.%d", given.Number%250+1), Private: fmt.Sprintf("10.0.0.%d", given.Number%250+1)}
	if c.maker != nil {
		var err error
		if backing, err = c.maker(ctx, given); err != nil {
			return given, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	made.close = backing.Close
	if backing.Port != 0 && backing.Port != 22 {
		made.Tags = maps.Clone(made.Tags)
		if made.Tags == nil {
			made.Tags = map[string]string{}
		}
		made.Tags["loom-ssh-port"] = fmt.Sprint(backing.Port)
		made.Words = append(slices.Clone(made.Words), fmt.Sprint("loom-ssh-port-", backing.Port))
	}
	if b.NoAddress {
		backing.Public, backing.Private = "", ""
	}
	made.Backing = backing
	return made.shown(), nil
}

// Look returns a machine as one look sees it, which counts; false for one that is
// not there or not seen yet.
func (c *Cloud) Look(id string) (Machine, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.find(id)
	switch {
	case m == nil:
		return Machine{}, false
	case m.unseen > 0:
		m.unseen--
		return Machine{}, false
	case m.State == Pending && m.pending > 0:
		m.pending--
		return m.shown(), true
	case m.State == Pending:
		m.State = Running
	case m.State == Leaving && m.leaving > 0:
		m.leaving--
	case m.State == Leaving:
		m.State = Gone
	}
	return m.shown(), true
}

// List returns the machines that fit as a listing sees them, which counts for those
// that are not listed yet. fits must not call the Cloud.
func (c *Cloud) List(fits func(Machine) bool) (found []Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.machines {
		if !fits(m.shown()) {
			continue
		}
		if m.unlisted > 0 {
			m.unlisted--
			continue
		}
		found = append(found, m.shown())
	}
	return found
}

// Remove begins the end of a machine; false for one that is not there or not seen
// yet.
func (c *Cloud) Remove(id string) (Machine, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.find(id)
	if m == nil || m.unseen > 0 {
		return Machine{}, false
	}
	if m.State != Gone {
		m.State = Leaving
		m.end()
	}
	return m.shown(), true
}

// Stop switches a machine off, as somebody would behind Loom's back.
func (c *Cloud) Stop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.find(id).State = Stopped
}

// Start switches on a machine that is stopped; it runs after one more look. False for one
// that is not there or not stopped.
func (c *Cloud) Start(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.find(id)
	if m == nil || m.State != Stopped {
		return false
	}
	m.State, m.pending = Pending, 1
	m.Starts++
	return true
}

// Reset resets a machine; false for one that is not there or does not run.
func (c *Cloud) Reset(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.find(id)
	if m == nil || m.State != Running {
		return false
	}
	m.Resets++
	return true
}

func (c *Cloud) find(id string) *Machine {
	// Where ids are names, a later machine may have that of one that is gone.
	for _, m := range slices.Backward(c.machines) {
		if m.ID == id {
			return m
		}
	}
	return nil
}

func (m *Machine) lives() bool { return m.State != Leaving && m.State != Gone }

func (m *Machine) end() {
	if m.close != nil {
		m.close()
		m.close = nil
	}
}

func (m *Machine) copy() Machine {
	given := *m
	given.close = nil
	return given
}

// shown is what a client may see.
func (m *Machine) shown() Machine {
	given := m.copy()
	if given.State != Running && given.State != Stopped {
		given.Backing = Backing{}
	}
	return given
}
