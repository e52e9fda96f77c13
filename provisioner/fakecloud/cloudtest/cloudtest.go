// Package cloudtest puts a provider of a cloud in front of its fake cloud: tasks,
// keys, a machine that answers SSH, waits that take no time, and the checks that
// every provider has to pass. Only _test files import it.
package cloudtest

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/conformance"
	"loom/provisioner/fakecloud"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/remote/sshtest"
)

// KeyResource is the name of the private key that opens the machines.
const KeyResource = "lab-key"

// private is the address of machines for other nodes.
const private = "192.0.2.7"

// Clock passes without taking time, and remembers the waits.
type Clock struct {
	mu    sync.Mutex
	waits []time.Duration
}

// Sleep is for cloud.Pace.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.waits = append(c.waits, d)
	c.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Waits returns the waits so far.
func (c *Clock) Waits() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration(nil), c.waits...)
}

// Silent is the log of a server whose clients end connections on purpose.
func Silent() *log.Logger { return log.New(io.Discard, "", 0) }

// Lab is a provider with its fake cloud.
type Lab struct {
	t        testing.TB
	Provider provider.Provider
	Cloud    *fakecloud.Cloud
	Clock    *Clock
	// SSH is the machine behind all servers, nil without one.
	SSH *sshtest.Server
	// Fields of the provider; Secrets among them and elsewhere.
	Fields  map[string]any
	Secrets []string
	// Flavor and Image of the tasks.
	Flavor, Image string
	// Throttle is how the cloud refuses a call as too many; MakeOp the operation that
	// makes a machine; Refuse makes credentials wrong.
	Throttle fakecloud.Fault
	MakeOp   string
	Refuse   func(fields map[string]any)
	// PublicKey of the key that opens the machines, as in authorized_keys.
	PublicKey string
	// Report is the address that servers have from now on, instead of that of SSH.
	Report string
	// Bind is the address of the machine for other nodes, where that is not the private one.
	Bind string
	// Strict is the provider of an installation that calls nothing without encryption.
	Strict provider.Provider
	// UserData returns what the latest machine was passed for its first boot, decoded.
	UserData func() string
	// SetPublicKey, SetPageSize, Expire (tokens) and Elsewhere (settings that lead to another
	// place) change what the fake cloud says; nil where it has no such thing.
	SetPublicKey func(public string)
	SetPageSize  func(n int)
	Expire       func()
	Elsewhere    func(fields map[string]any)
	// Moved, if set, learns of another address that the API is to have.
	Moved func(address string)
	files string
}

// New makes a lab. With ssh the servers are one real machine that answers SSH.
// make makes the provider.
func New(t testing.TB, d fakecloud.Dialect, ssh bool, make func(cloud.Options) provider.Provider) *Lab {
	t.Helper()
	l := &Lab{t: t, Clock: &Clock{}, files: t.TempDir()}
	var maker fakecloud.Maker
	pair := sshtest.NewKey(t, "ed25519", "")
	if ssh {
		l.SSH = sshtest.Start(t, sshtest.Options{Isolated: true})
		pair = l.SSH.Key
		maker = func(context.Context, fakecloud.Machine) (fakecloud.Backing, error) {
			if l.Report != "" {
				return fakecloud.Backing{Public: l.Report, Private: l.Report}, nil
			}
			return fakecloud.Backing{Public: l.SSH.Address, Private: private, Port: l.SSH.Port, HostKeys: l.SSH.HostKeys}, nil
		}
	}
	if err := os.MkdirAll(filepath.Join(l.files, "ssh_keys"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.files, "ssh_keys", KeyResource), []byte(pair.PEM), 0o600); err != nil {
		t.Fatal(err)
	}
	l.PublicKey = pair.Authorized
	l.Cloud = fakecloud.New(d, maker)
	t.Cleanup(l.Cloud.Close)
	// The disks of the machine are those of this host: nothing may look at them.
	l.Provider = make(cloud.Options{Insecure: true, LeaveDisks: true, Pace: cloud.Pace{Sleep: l.Clock.Sleep}})
	l.Strict = make(cloud.Options{Pace: cloud.Pace{Sleep: l.Clock.Sleep}})
	return l
}

// Context has what providers find there.
func (l *Lab) Context() context.Context {
	return provider.WithEnv(l.t.Context(), provider.Env{Files: l.files})
}

// Spec returns the task of a node.
func (l *Lab) Spec(n int) *loom.TaskSpec {
	return &loom.TaskSpec{
		Tenant: "Acme", Node: loom.NodeID(fmt.Sprintf("7d1f2a34-6c1e-4b8b-9a57-%012d", n)), Attempt: 1,
		Hostname: fmt.Sprintf("lab7-%d.local", 1000+n), IdempotencyKey: fmt.Sprintf("5f0e8c1a-2b7d-5a3c-9e4f-%012d", n),
		Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: 7, Number: 1}, Number: n + 1}, SSHUser: sshtest.SudoUser,
		Flavor: l.Flavor, Image: l.Image, HardwareType: "small", ImageType: "debian", Results: map[string]any{}, Reach: loom.Anywhere(),
		Provider: loom.Provider{Base: loom.Base{Name: "lab"}, Type: l.Provider.Type().Name, Fields: maps.Clone(l.Fields)},
	}
}

// Call is a question outside of tasks.
func (l *Lab) Call() *loom.ProviderCall {
	return &loom.ProviderCall{Tenant: "Acme", Provider: l.Spec(0).Provider, Reach: loom.Anywhere()}
}

// Do carries out an action, keeps its facts in the task and looks for secrets in
// all that it said.
func (l *Lab) Do(ctx context.Context, spec *loom.TaskSpec, action loom.TaskAction) (loom.TaskResult, *Sink, error) {
	l.t.Helper()
	sink := &Sink{}
	do := l.Provider.Create
	switch action { //nolint:exhaustive // providers know four
	case loom.ActionReboot:
		do = l.Provider.(provider.Rebooter).Reboot
	case loom.ActionConfirm:
		do = l.Provider.Confirm
	case loom.ActionDelete:
		do = l.Provider.Delete
	}
	given := *spec
	given.Action, given.Results = action, maps.Clone(spec.Results)
	result, err := do(ctx, &given, sink)
	for _, facts := range append(sink.Facts(), result.Result) {
		for name, value := range facts {
			if value == nil {
				delete(spec.Results, name)
			} else {
				spec.Results[name] = value
			}
		}
	}
	said := fmt.Sprint(sink.Text(), result.Message, err)
	for _, secret := range l.Secrets {
		if strings.Contains(said, secret) {
			l.t.Errorf("%s says a secret:\n%s", action, said)
		}
	}
	return result, sink, err
}

// Must carries out an action that has to end with a status.
func (l *Lab) Must(spec *loom.TaskSpec, action loom.TaskAction, status int) (loom.TaskResult, *Sink) {
	l.t.Helper()
	result, sink, err := l.Do(l.Context(), spec, action)
	if err != nil || result.Status != status {
		l.t.Fatalf("%s gave %+v, %v; wanted status %d\n%s", action, result, err, status, sink.Text())
	}
	return result, sink
}

// Conform runs the checks of package conformance.
func (l *Lab) Conform() {
	conformance.Provider(l.t.Context(), conformance.Testing(l.t), conformance.ProviderTarget{
		Provider: l.Provider, Spec: l.Spec, Context: l.Context(), Secrets: l.Secrets,
		Machines: func(context.Context) (map[string][]string, error) { return l.Cloud.ByKey(), nil },
		Refused:  func(spec *loom.TaskSpec) { l.Refuse(spec.Provider.Fields) },
		Arrange: func(_ context.Context, fault conformance.Fault, n int) error {
			if n == 0 {
				l.Cloud.Heal()
				return nil
			}
			switch fault {
			case conformance.LostAnswer:
				l.Cloud.Inject(fakecloud.Fault{Op: l.MakeOp, Times: n, Lost: true})
			case conformance.Throttled:
				f := l.Throttle
				f.Times = n
				l.Cloud.Inject(f)
			case conformance.Pending:
				l.Cloud.Behave(fakecloud.Behaviour{Pending: n})
			case conformance.Lagging:
				l.Cloud.Behave(fakecloud.Behaviour{Unseen: n})
			}
			return nil
		},
	})
	l.deletesAlone()
	if n := l.Cloud.Counts(); n.Live != 0 || n.Doubles != 0 {
		l.t.Errorf("in the end: %+v, leaked %v", n, l.Cloud.Leaked())
	}
}

// deletesAlone checks that a DELETE of one machine alone leaves the one that has its key
// and its node: a second machine of a living node is removed so.
func (l *Lab) deletesAlone() {
	own, second := l.Spec(61), l.Spec(62)
	l.Must(own, loom.ActionCreate, 0)
	l.Must(second, loom.ActionCreate, 0)
	double := *own
	double.Alone, double.Results = true, map[string]any{"providerid": second.Results["providerid"]}
	l.Must(&double, loom.ActionDelete, 0)
	if ids := l.Cloud.ByKey(); len(ids[second.IdempotencyKey]) != 0 || !slices.Equal(ids[own.IdempotencyKey], []string{fmt.Sprint(own.Results["providerid"])}) {
		l.t.Errorf("after one machine was deleted alone: %v", ids)
	}
	l.Must(own, loom.ActionDelete, 0)
}

// Refusal is how the cloud refuses to make a machine, and what becomes of it.
type Refusal struct {
	Fault fakecloud.Fault
	// Status of CREATE; 1 for those that pass.
	Status int
	// Never says that trying again is useless.
	Never bool
	// Message is part of the result's.
	Message string
}

// refusals checks what becomes of a CREATE whose call to make the machine is
// refused forever.
func (l *Lab) refusals(cases []Refusal) {
	for n, c := range cases {
		spec := l.Spec(100 + n)
		c.Fault.Op, c.Fault.Times = l.MakeOp, -1
		l.Cloud.Inject(c.Fault)
		result, sink, err := l.Do(l.Context(), spec, loom.ActionCreate)
		l.Cloud.Heal()
		never := result.Retryable != nil && !*result.Retryable
		if err != nil || result.Status != c.Status || never != c.Never || !strings.Contains(result.Message, c.Message) {
			l.t.Errorf("%d %s gave %+v, %v (never %t)\n%s", c.Fault.Status, c.Fault.Code, result, err, never, sink.Text())
		}
		if ids := l.Cloud.ByKey()[spec.IdempotencyKey]; len(ids) != 0 || spec.Results["providerid"] != nil {
			l.t.Errorf("%d %s made %v", c.Fault.Status, c.Fault.Code, ids)
		}
	}
}

// Sink remembers what it is told.
type Sink struct {
	mu    sync.Mutex
	lines []string
	facts []map[string]any
	// On is called with each line.
	On func(text string)
}

// Log remembers a line.
func (s *Sink) Log(stream, text string) {
	s.mu.Lock()
	s.lines = append(s.lines, stream+": "+text)
	on := s.On
	s.mu.Unlock()
	if on != nil {
		on(text)
	}
}

// Fact remembers results.
func (s *Sink) Fact(results map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts = append(s.facts, maps.Clone(results))
	return nil
}

// Facts returns what was reported.
func (s *Sink) Facts() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]map[string]any(nil), s.facts...)
}

// Text returns the lines.
func (s *Sink) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}
