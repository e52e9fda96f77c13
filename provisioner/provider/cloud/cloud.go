// Package cloud is the provider of any cloud with an HTTP API. It opens sessions, retries
// and waits, and carries out CREATE, CONFIRM, DELETE, probes and lists, so that the package of
// a cloud says only how its cloud is asked.
//
// The package of a cloud describes it with a Cloud, of which New makes the provider:
//
//   - Type has the fields of the provider.
//   - Classify turns the errors of the cloud's client into *Error. Most of it is
//     FromHTTP (an answer with a status) and FromNetwork (no answer); what only
//     this cloud knows is its error codes. What it does not know counts as a lost
//     answer: a machine may have been made.
//   - Open reads the fields and returns a Driver, which makes single calls. It retries
//     nothing, waits for nothing, and returns the client's errors as they are.
//     The client's own retries have to be off. A call of Create that only looks
//     something up wraps its errors with Before: then nothing can have been made.
//     What a cloud does besides, such as a floating address, is in the optional methods
//     of Finisher and Cleaner; single calls there go through Session.Call.
//
// Waits are of Pace and pass through its Sleep, which tests replace. Facts that
// only one cloud has (Machine.Facts) are stored with the provider id; Cloud.Facts
// names those that DELETE clears.
//
// The fake clouds for tests are in provisioner/fakecloud; aws shows a cloud
// with client tokens, digitalocean one without.
//
// The package knows no single cloud. It must not decide what follows a failure
// (planner.Decide does), and must not touch a disk that holds anything.
package cloud

import (
	"context"
	"time"

	"loom/app/loom"
)

// State says what has become of a machine.
type State string

// The states of machines, as far as Loom cares.
const (
	Pending State = "pending"
	Running State = "running"
	// Stopped machines are switched off and can be started.
	Stopped State = "stopped"
	// Failed machines exist and will never run.
	Failed State = "failed"
	// Leaving machines are on their way out for good, Gone ones have arrived.
	Leaving State = "leaving"
	Gone    State = "gone"
)

// Machine is a machine as its cloud describes it.
type Machine struct {
	// ID is what the cloud calls it: the provider id.
	ID   string
	Name string
	// State, and Detail: why it failed, or the cloud's own word for the state.
	State  State
	Detail string
	// Made is when it was made, if the cloud says so; of two with one key the older
	// one is kept.
	Made time.Time
	// Labels as LabelsOf gave them to the cloud.
	Labels map[string]string
	// Access is the address at which Loom reaches it, Bind the one for the other nodes;
	// see Addresses. Both are empty until the cloud knows them.
	Access, Bind string
	// Flavor, Image and Addresses are what a list says of it; empty where the cloud does
	// not say.
	Flavor, Image string
	Addresses     []string
	// Hostname that the cloud gave and that replaces the node's; usually empty.
	Hostname string
	// HostKeys, where the cloud tells them; see provider.Machine.
	HostKeys map[string]string
	// Password that the cloud made up for the user; usually empty.
	Password string
	// Facts are further results to be stored with the provider id.
	Facts map[string]any
}

// Addresses returns the addresses of a machine with a public and a private one,
// either of which may be missing.
func Addresses(public, private string) (access, bind string) {
	access, bind = public, private
	if access == "" {
		access = private
	}
	if bind == "" {
		bind = access
	}
	return access, bind
}

// Driver makes the calls to one cloud, one at a time. Its errors are those of the
// cloud's client, which Cloud.Classify knows.
type Driver interface {
	// Find returns the machines that carry an idempotency key, failed ones too, but none
	// that is leaving or gone.
	Find(ctx context.Context, key string) ([]Machine, error)
	// Create asks for a machine with the labels of LabelsOf and does not wait for it.
	Create(ctx context.Context, spec *loom.TaskSpec) (Machine, error)
	// Get looks at a machine. One that is not there is an error of kind NotFound; an id
	// that the cloud cannot have given too.
	Get(ctx context.Context, id string) (Machine, error)
	// Delete asks for the end of a machine and does not wait for it. Errors are as those
	// of Get.
	Delete(ctx context.Context, id string) error
	// Idempotent reports whether the cloud itself makes one machine of several requests
	// with the same key, so that Create may be repeated without looking.
	Idempotent() bool
	// List returns all machines with Loom's labels that the provider finds, but none that
	// is leaving or gone.
	List(ctx context.Context) ([]Machine, error)
	// Check adds to a probe what it finds of credentials, region and what else the fields
	// name. It reports whether sizes and images can be asked for.
	Check(ctx context.Context, call *loom.ProviderCall, probe *loom.Probe) bool
	// Flavors and Images list what machines can be made of.
	Flavors(ctx context.Context) ([]loom.ProbeFlavor, error)
	Images(ctx context.Context) ([]loom.ProbeImage, error)
}

// Describer is a Driver that can look up one size or image, whether its lists have it or
// not. Describe returns what the cloud calls it, "" where that is not known.
type Describer interface {
	Describe(ctx context.Context, offer loom.Offer) (string, error)
}

// Finisher is a Driver that has something to do between the moment a machine runs and the
// first connection to it. Finish may change the machine, and set facts of it, also with an
// error; it returns the disks to set up. It makes its calls through Session.Call.
type Finisher interface {
	Finish(ctx context.Context, m *Machine) (Disks, error)
}

// Rebooter is a Driver that can start machines and reset them.
type Rebooter interface {
	// Reboot asks for the start of a machine that is Stopped, else for a reset, and does not
	// wait for it. m is as Get returned it. Errors are as those of Get; Busy is asked again.
	Reboot(ctx context.Context, m Machine) error
}

// Cleaner is a Driver that removes what is left behind when the machine of Session.Task is
// gone. It makes its calls through Session.Call.
type Cleaner interface {
	Cleanup(ctx context.Context) error
}

// Options of all providers of clouds.
type Options struct {
	// Insecure allows API addresses (the field endpoint_url) without HTTPS: the option
	// LOOM_ALLOW_INSECURE_ENDPOINTS.
	Insecure bool
	// Pace of all waits; zero fields are the usual ones.
	Pace Pace
	// LeaveDisks keeps CONFIRM from looking at the machine's disks, for machines that are
	// not the cloud's own.
	LeaveDisks bool
}

// Pace is how long things may take, and how often they are looked at.
type Pace struct {
	// Poll is the time between looks at a machine, SlowPoll that after Slow.
	Poll, SlowPoll, Slow time.Duration
	// Ready is how long a machine may take to run, or to be gone.
	Ready time.Duration
	// Unseen is how long a machine that was made may not be found, or may run without
	// an address.
	Unseen time.Duration
	// Appear is the wait before the second look for a machine whose answer was lost.
	Appear time.Duration
	// Backoff is the first wait before a call is repeated, doubled up to MaxBackoff;
	// Patience bounds all of them together.
	Backoff, MaxBackoff, Patience time.Duration
	// Sleep waits; its error is the cause with which ctx ended. Nil: the clock's. One
	// that takes no time still counts as if it did.
	Sleep func(ctx context.Context, d time.Duration) error
}

// usual fills in the usual times.
func (p Pace) usual() Pace {
	for _, f := range []struct {
		field *time.Duration
		usual time.Duration
	}{
		{&p.Poll, 5 * time.Second}, {&p.SlowPoll, 15 * time.Second}, {&p.Slow, time.Minute}, {&p.Ready, 600 * time.Second},
		{&p.Unseen, time.Minute}, {&p.Appear, 10 * time.Second}, {&p.Backoff, time.Second}, {&p.MaxBackoff, 30 * time.Second},
		{&p.Patience, 5 * time.Minute},
	} {
		if *f.field <= 0 {
			*f.field = f.usual
		}
	}
	if p.Sleep == nil {
		p.Sleep = sleep
	}
	return p
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watch measures one wait made of many.
type watch struct {
	pace  Pace
	begin time.Time
	slept time.Duration
}

func (p Pace) watch() *watch { return &watch{pace: p, begin: time.Now()} }

// elapsed counts sleeps that took no time too.
func (w *watch) elapsed() time.Duration { return max(time.Since(w.begin), w.slept) }

func (w *watch) sleep(ctx context.Context, d time.Duration) error {
	w.slept += d
	return w.pace.Sleep(ctx, d)
}

// poll waits until the next look.
func (w *watch) poll(ctx context.Context) error {
	if w.elapsed() >= w.pace.Slow {
		return w.sleep(ctx, w.pace.SlowPoll)
	}
	return w.sleep(ctx, w.pace.Poll)
}
