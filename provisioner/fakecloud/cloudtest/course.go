package cloudtest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/provider"
)

// Course is what the providers of all clouds are tested for, with that in which a cloud
// differs from others.
type Course struct {
	// New makes a lab, as the function of this package of that name.
	New func(t *testing.T, ssh bool) *Lab
	// Idempotent says that the cloud itself makes one machine of several requests with
	// one key; NamesOnce that it makes one of a name.
	Idempotent, NamesOnce bool
	// NoImage says that lists do not name the image of a machine.
	NoImage bool
	// Settings that CREATE refuses, Refusals of the cloud, and ids that it never gave.
	Settings []Setting
	Refusals []Refusal
	Unknown  []any
	// Busy, if its status is set, is how it refuses to delete a machine for a while.
	Busy fakecloud.Fault
	// Broken is what it says of a machine that fails, and BrokenSays part of what Loom says.
	Broken, BrokenSays string
	// ListOp is the operation of a sweep. SignInOp is that of signing in, "" where each call
	// is signed.
	// ResetOp that of resetting a machine, where the provider can.
	ListOp, SignInOp, ResetOp string
	// Flavors and Images of a probe; Checks in order; Wrong values of fields, with the
	// check that fails; and Offers to look up, none where the lists have them all.
	Flavors []loom.ProbeFlavor
	Images  []loom.ProbeImage
	Checks  []string
	Wrong   []Wrong
	Offers  []Offer
}

// Setting is one that CREATE refuses before the cloud makes anything.
type Setting struct {
	// Field of the provider and its Value; or Change.
	Field, Value string
	Change       func(*loom.TaskSpec)
	Status       int
	// Message is part of the result's.
	Message string
}

// Wrong is a value of a field with which a probe fails in one check.
type Wrong struct{ Field, Value, Check string }

// Offer is a size or image to look up. Message is part of the check's.
type Offer struct {
	Kind    loom.OfferKind
	ID      string
	OK      bool
	Message string
}

// Run tests a provider.
func (c Course) Run(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"connects only where it may", func(t *testing.T) { c.New(t, true).walls() }},
		{"conformance", func(t *testing.T) { c.New(t, true).Conform() }},
		{"life", c.life},
		{"lost answers make one machine", c.lostAnswers},
		{"doubles are removed", c.doubles},
		{"refusals", c.refusals},
		{"settings", c.settings},
		{"delete", c.delete},
		{"delete without credentials", c.deleteRefused},
		{"several creates at once", c.severalAtOnce},
		{"machines that fail", c.failing},
		{"canceled while waiting", c.canceled},
		{"sweep", c.sweep},
		{"reboot", c.reboot},
		{"probe", c.probe},
		{"look-up", c.lookUp},
		{"host key", c.hostKey},
		{"unreachable", func(t *testing.T) {
			l := c.New(t, false)
			l.unreachable()
			l.passes(c.Checks)
		}},
		{"many nodes", func(t *testing.T) { c.New(t, false).many(c.SignInOp) }},
		{"key pairs are compared", func(t *testing.T) {
			if l := c.New(t, false); l.SetPublicKey != nil {
				l.comparesKeys()
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t)
		})
	}
}

// life: a machine is made, found again, confirmed, listed and deleted.
func (c Course) life(t *testing.T) {
	l := c.New(t, true)
	spec := l.Spec(1)
	made, sink := l.Must(spec, loom.ActionCreate, 0)
	if facts := sink.Facts(); len(facts) != 1 || facts[0]["providerid"] != made.Result["providerid"] {
		t.Errorf("reported %v, gave %v", facts, made.Result)
	}
	auth, _ := made.Result["ssh-auth"].(map[string]any)
	if auth["identityfile"] != "ssh_keys/"+KeyResource || auth["user"] != spec.SSHUser {
		t.Errorf("ssh-auth is %v", auth)
	}
	again, _ := l.Must(spec, loom.ActionCreate, 0)
	if n := l.Cloud.Counts(); again.Result["providerid"] != made.Result["providerid"] || n.Created != 1 {
		t.Errorf("a second CREATE gave %v, %+v", again.Result, n)
	}
	bind := l.Bind
	if bind == "" {
		bind = private
	}
	for range 2 {
		confirmed, _ := l.Must(spec, loom.ActionConfirm, 0)
		if confirmed.Addresses[loom.AccessV4] != l.SSH.Address || confirmed.Addresses[loom.BindV4] != bind || confirmed.Hostname != "" {
			t.Errorf("confirm gave %+v", confirmed)
		}
	}
	want := loom.TaggedMachine{ID: made.Result["providerid"].(string), Node: spec.Node, Key: spec.IdempotencyKey, Cluster: "00000007", Tenant: "Acme",
		State: loom.StateRunning, Flavor: spec.Flavor, Image: spec.Image}
	if c.NoImage {
		want.Image = ""
	}
	for _, state := range []loom.MachineState{loom.StateRunning, loom.StateStopped} {
		if want.State = state; state == loom.StateStopped {
			l.Cloud.Stop(want.ID)
		}
		list := l.list()
		if len(list) == 1 && (list[0].Name == spec.Hostname || list[0].Name == want.ID) {
			want.Name = list[0].Name
		}
		want.Addresses = nil
		if len(list) == 1 && slices.Contains(list[0].Addresses, l.SSH.Address) && slices.Contains(list[0].Addresses, private) {
			want.Addresses = list[0].Addresses
		}
		if !reflect.DeepEqual(list, []loom.TaggedMachine{want}) || want.Addresses == nil {
			t.Errorf("listed %+v, not %+v", list, want)
		}
	}
	gone, _ := l.Must(spec, loom.ActionDelete, 0)
	for _, name := range []string{"providerid", "ssh-auth", "ssh_host_keys", "disks"} {
		if value, there := gone.Result[name]; !there || value != nil {
			t.Errorf("delete does not clear %s: %v", name, gone.Result)
		}
	}
	if list := l.list(); len(list) != 0 {
		t.Errorf("in the end %+v", list)
	}
}

func (l *Lab) list() []loom.TaggedMachine {
	l.t.Helper()
	list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call())
	if err != nil {
		l.t.Error(err)
	}
	return list
}

// lostAnswers: a cloud that remembers requests is asked again. At others the machine is
// looked for, once more after 10 s, since it may appear late.
func (c Course) lostAnswers(t *testing.T) {
	cases := []struct {
		fault    fakecloud.Fault
		unlisted int
		waits    bool
	}{
		{fakecloud.Fault{Lost: true}, 0, false}, {fakecloud.Fault{Lost: true}, 1, true}, {fakecloud.Fault{Garbled: true}, 0, false},
		{fakecloud.Fault{Status: 500}, 0, true}, {fakecloud.Fault{Status: 500, Times: 2}, 0, true}, {fakecloud.Fault{Status: 503}, 0, true},
	}
	if c.Idempotent {
		for i := range cases {
			cases[i].waits = false
		}
		cases = append(cases, cases[0])
		cases[len(cases)-1].fault.Times = 3
	}
	for _, test := range cases {
		l := c.New(t, false)
		test.fault.Op = l.MakeOp
		if test.fault.Status == 503 && l.Throttle.Status == 503 {
			test.fault.Code = "Unavailable"
		}
		l.Cloud.Inject(test.fault)
		l.Cloud.Behave(fakecloud.Behaviour{Unlisted: test.unlisted})
		result, sink := l.Must(l.Spec(1), loom.ActionCreate, 0)
		if n := l.Cloud.Counts(); n.Live != 1 || n.Created != 1 || n.Doubles != 0 || len(l.Cloud.Leaked(result.Result["providerid"].(string))) != 0 {
			t.Errorf("%+v: %+v\n%s", test.fault, n, sink.Text())
		}
		if waited := slices.Contains(l.Clock.Waits(), 10*time.Second); waited != test.waits {
			t.Errorf("%+v, unlisted %d: waits %v", test.fault, test.unlisted, l.Clock.Waits())
		}
	}
}

// doubles: a machine that appears later than it is looked for is one too many. The next
// CREATE keeps the older one, and DELETE removes both.
func (c Course) doubles(t *testing.T) {
	if c.Idempotent || c.NamesOnce {
		return // the cloud makes none
	}
	for _, action := range []loom.TaskAction{loom.ActionCreate, loom.ActionDelete} {
		l := c.New(t, false)
		l.Cloud.Inject(fakecloud.Fault{Op: l.MakeOp, Lost: true})
		l.Cloud.Behave(fakecloud.Behaviour{Unlisted: 2})
		spec := l.Spec(1)
		l.Must(spec, loom.ActionCreate, 0)
		if n := l.Cloud.Counts(); n.Live != 2 || n.Doubles != 1 {
			t.Fatalf("the fake cloud was meant to trick CREATE: %+v", n)
		}
		l.Cloud.Heal()
		l.Must(spec, action, 0)
		n := l.Cloud.Counts()
		if action == loom.ActionDelete && n.Live != 0 {
			t.Errorf("delete left a double: %+v, %v", n, l.Cloud.ByKey())
		}
		if action == loom.ActionCreate && (n.Live != 1 || spec.Results["providerid"] != l.Cloud.Machines()[0].ID) {
			t.Errorf("%+v, kept %v", n, spec.Results["providerid"])
		}
	}
}

func (c Course) refusals(t *testing.T) {
	l := c.New(t, false)
	l.refusals(c.Refusals)
	f := l.Throttle
	f.Op, f.RetryAfter, f.Times = l.MakeOp, "900", -1
	l.Cloud.Inject(f)
	if r, _ := l.Must(l.Spec(1), loom.ActionCreate, 1); r.RetryAfter != 900 {
		t.Errorf("the wait that the cloud asks for is lost: %+v", r)
	}
}

func (c Course) settings(t *testing.T) {
	l := c.New(t, false)
	for _, s := range append(c.Settings, Setting{Change: func(s *loom.TaskSpec) { s.Flavor = "" }, Status: 202, Message: "names no flavor"},
		Setting{Change: func(s *loom.TaskSpec) { s.Image = "" }, Status: 202, Message: "names no image"}) {
		spec := l.Spec(1)
		if s.Field != "" {
			spec.Provider.Fields[s.Field] = s.Value
		} else {
			s.Change(spec)
		}
		r, _ := l.Must(spec, loom.ActionCreate, s.Status)
		if never := r.Retryable != nil && !*r.Retryable; !never || !strings.Contains(r.Message, s.Message) {
			t.Errorf("%s %q gave %+v", s.Field, s.Value, r)
		}
	}
	if r, err := l.Strict.Create(l.Context(), l.Spec(1), &Sink{}); err != nil || r.Status != 202 || !strings.Contains(r.Message, "LOOM_ALLOW_INSECURE_ENDPOINTS") {
		t.Errorf("an address without HTTPS gave %+v, %v", r, err)
	}
	if n := l.Cloud.Counts(); n.Created != 0 {
		t.Errorf("something was made: %+v", n)
	}
}

// delete waits until the machine is gone, may be repeated, and finds a machine by its key.
func (c Course) delete(t *testing.T) {
	l := c.New(t, false)
	l.Cloud.Behave(fakecloud.Behaviour{Leaving: 3})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	id := spec.Results["providerid"]
	if c.Busy.Status != 0 {
		c.Busy.Times = 2
		l.Cloud.Inject(c.Busy)
	}
	if _, sink := l.Must(spec, loom.ActionDelete, 0); !strings.Contains(sink.Text(), c.Busy.Message) {
		t.Errorf("nothing is said of the wait:\n%s", sink.Text())
	}
	if m := l.Cloud.Machines()[0]; m.State != fakecloud.Gone {
		t.Errorf("delete did not wait: the machine is %s", m.State)
	}
	for _, other := range append(c.Unknown, id, "") {
		spec.Results["providerid"] = other
		l.Must(spec, loom.ActionDelete, 0)
	}
	forgotten := l.Spec(2)
	l.Must(forgotten, loom.ActionCreate, 0)
	forgotten.Results = map[string]any{}
	l.Must(forgotten, loom.ActionDelete, 0)
	if n := l.Cloud.Counts(); n.Live != 0 {
		t.Errorf("delete by key left %+v", n)
	}
}

// deleteRefused: wrong credentials are a failure where there was a machine, else there is
// nothing to do. A place that is another one knows no machine, which is not gone for that.
func (c Course) deleteRefused(t *testing.T) {
	l := c.New(t, false)
	spec := l.Spec(3)
	l.Must(spec, loom.ActionCreate, 0)
	if l.Elsewhere != nil {
		elsewhere := l.Spec(3)
		elsewhere.Results["providerid"] = spec.Results["providerid"]
		l.Elsewhere(elsewhere.Provider.Fields)
		l.Must(elsewhere, loom.ActionDelete, 1)
	}
	l.Refuse(spec.Provider.Fields)
	if r, _ := l.Must(spec, loom.ActionDelete, 1); !strings.Contains(r.Message, "credentials") || spec.Results["providerid"] == nil {
		t.Errorf("wrong credentials gave %+v", r)
	}
	never := l.Spec(4)
	l.Refuse(never.Provider.Fields)
	l.Must(never, loom.ActionDelete, 0)
}

func (c Course) severalAtOnce(t *testing.T) {
	l := c.New(t, false)
	specs := []*loom.TaskSpec{l.Spec(1), l.Spec(2)}
	if c.Idempotent {
		specs = append(specs, l.Spec(1))
	}
	var all sync.WaitGroup
	for _, spec := range specs {
		all.Go(func() {
			if r, _, err := l.Do(l.Context(), spec, loom.ActionCreate); err != nil || r.Status != 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	all.Wait()
	again := l.Spec(1)
	l.Must(again, loom.ActionCreate, 0) // adopted
	if n := l.Cloud.Counts(); n.Live != 2 || n.Doubles != 0 || specs[0].Results["providerid"] == specs[1].Results["providerid"] {
		t.Errorf("%+v", n)
	}
	for _, spec := range append(specs[2:], again) {
		if spec.Results["providerid"] != specs[0].Results["providerid"] {
			t.Errorf("%v and %v", spec.Results, specs[0].Results)
		}
	}
}

func (c Course) failing(t *testing.T) {
	l := c.New(t, false)
	for n, test := range []struct {
		b       fakecloud.Behaviour
		message string
	}{
		{fakecloud.Behaviour{Break: c.Broken}, c.BrokenSays}, {fakecloud.Behaviour{Pending: 1 << 30}, "did not run within 600 s"},
		{fakecloud.Behaviour{NoAddress: true}, "no address"}, {fakecloud.Behaviour{Unseen: 1 << 30}, "quota"},
	} {
		l.Cloud.Behave(test.b)
		spec := l.Spec(10 + n)
		l.Must(spec, loom.ActionCreate, 0)
		if r, sink := l.Must(spec, loom.ActionConfirm, 1); !strings.Contains(r.Message, test.message) || r.Retryable != nil {
			t.Errorf("%+v gave %+v\n%s", test.b, r, sink.Text())
		}
		l.Cloud.Heal()
		l.Must(spec, loom.ActionDelete, 0)
	}
	if r, _ := l.Must(l.Spec(5), loom.ActionConfirm, 1); !strings.Contains(r.Message, "no machine") {
		t.Errorf("a node without a machine gave %+v", r)
	}
}

func (c Course) canceled(t *testing.T) {
	l := c.New(t, false)
	l.Cloud.Behave(fakecloud.Behaviour{Pending: 1 << 30})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	abort := errors.New("somebody aborted")
	ctx, cancel := context.WithCancelCause(l.Context())
	defer cancel(nil)
	if _, err := l.Provider.Confirm(ctx, spec, &Sink{On: func(string) { cancel(abort) }}); !errors.Is(err, abort) {
		t.Errorf("a canceled confirm gave %v", err)
	}
}

// reboot starts a machine that is stopped, resets one that runs, may be repeated, and makes
// none where there is none.
func (c Course) reboot(t *testing.T) {
	l := c.New(t, false)
	if _, reboots := l.Provider.(provider.Rebooter); !reboots {
		return // over SSH
	}
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	id := spec.Results["providerid"].(string)
	power := func() (starts, resets int) {
		m := l.Cloud.Machines()[0]
		return m.Starts, m.Resets
	}
	l.Must(spec, loom.ActionReboot, 0)
	l.Must(spec, loom.ActionReboot, 0)
	if starts, resets := power(); starts != 0 || resets != 2 {
		t.Errorf("a machine that runs was started %d times and reset %d times", starts, resets)
	}
	l.Cloud.Stop(id)
	if r, _ := l.Must(spec, loom.ActionReboot, 0); !strings.Contains(r.Message, "started") {
		t.Errorf("a machine that is stopped: %+v", r)
	}
	if starts, resets := power(); starts != 1 || resets != 2 || l.list()[0].State != loom.StateRunning {
		t.Errorf("a machine that is stopped was started %d times; then it is listed as %+v", starts, l.list())
	}
	forgotten := l.Spec(1) // whose CREATE was lost
	l.Must(forgotten, loom.ActionReboot, 0)
	l.Cloud.Inject(fakecloud.Fault{Op: c.ResetOp, Status: 403})
	if r, _ := l.Must(spec, loom.ActionReboot, 1); !strings.Contains(r.Message, "allow the provider’s credentials") || !r.KeepMachine {
		t.Errorf("a refusal: %+v", r)
	}
	l.Cloud.Inject(fakecloud.Fault{Op: c.ResetOp, Status: 409, Times: 2})
	if _, sink := l.Must(spec, loom.ActionReboot, 0); !strings.Contains(sink.Text(), "cannot be rebooted yet") {
		t.Errorf("nothing is said of the wait:\n%s", sink.Text())
	}
	l.Cloud.Inject(fakecloud.Fault{Op: c.ResetOp, Lost: true})
	l.Must(spec, loom.ActionReboot, 0)

	l.Cloud.Behave(fakecloud.Behaviour{Pending: 1 << 30})
	slow := l.Spec(3)
	l.Must(slow, loom.ActionCreate, 0)
	if r, _ := l.Must(slow, loom.ActionReboot, 1); !strings.Contains(r.Message, "did not run within 300 s") {
		t.Errorf("a machine that never runs: %+v", r)
	}
	l.Must(slow, loom.ActionDelete, 0)
	l.Cloud.Heal()

	l.Cloud.Remove(id)
	for _, other := range append(c.Unknown, id) {
		spec.Results["providerid"] = other
		if r, _ := l.Must(spec, loom.ActionReboot, 1); !strings.Contains(r.Message, "replace the node") {
			t.Errorf("machine %v: %+v", other, r)
		}
	}
	if r, _ := l.Must(l.Spec(2), loom.ActionReboot, 1); !strings.Contains(r.Message, "has no machine") {
		t.Errorf("a node without a machine: %+v", r)
	}
	if n := l.Cloud.Counts(); n.Created != 2 || n.Live != 0 {
		t.Errorf("REBOOT made machines: %+v", n)
	}
}

// sweep: all pages are listed, or none.
func (c Course) sweep(t *testing.T) {
	l := c.New(t, false)
	if l.SetPageSize != nil {
		l.SetPageSize(2)
	}
	for n := range 5 {
		l.Must(l.Spec(n), loom.ActionCreate, 0)
	}
	if list := l.list(); len(list) != 5 {
		t.Errorf("listed %+v", list)
	}
	l.Cloud.Inject(fakecloud.Fault{Op: c.ListOp, Status: 403})
	if list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call()); err == nil {
		t.Errorf("a list that is refused gave %+v", list)
	}
}

func (c Course) probe(t *testing.T) {
	l := c.New(t, false)
	probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
	if err != nil || !probe.OK || !slices.Equal(probe.Flavors, c.Flavors) || !slices.Equal(probe.Images, c.Images) {
		t.Errorf("probe gave %+v, %v", probe, err)
	}
	for _, w := range append(c.Wrong, Wrong{provider.EndpointField, "nonsense", "settings"}) {
		call := l.Call()
		call.Provider.Fields[w.Field] = w.Value
		probe, err := l.Provider.(provider.Prober).Probe(l.Context(), call)
		var failed []string
		for _, check := range probe.Checks {
			if !check.OK {
				failed = append(failed, check.Name)
			}
			for _, secret := range l.Secrets {
				if strings.Contains(check.Message, secret) {
					t.Errorf("a check says a secret: %+v", check)
				}
			}
		}
		if err != nil || probe.OK || !slices.Equal(failed, []string{w.Check}) {
			t.Errorf("%s %q: %+v, %v", w.Field, w.Value, probe.Checks, err)
		}
	}
}

func (c Course) lookUp(t *testing.T) {
	l := c.New(t, false)
	verify := l.Provider.(provider.Verifier).Verify
	call := l.Call()
	if len(c.Offers) == 0 {
		if _, err := verify(l.Context(), call); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
		return
	}
	for _, o := range c.Offers {
		call.Ask = loom.Offer{Kind: o.Kind, ID: o.ID}
		probe, err := verify(l.Context(), call)
		if err != nil || probe.OK != o.OK || len(probe.Checks) != 1 || probe.Checks[0].Name != string(o.Kind) || !strings.Contains(probe.Checks[0].Message, o.Message) {
			t.Errorf("%s %s: %+v, %v", o.Kind, o.ID, probe, err)
		}
	}
	call.Provider.Fields[provider.EndpointField] = "nonsense"
	if probe, err := verify(l.Context(), call); err != nil || probe.OK || probe.Checks[0].Name != "settings" {
		t.Errorf("with a wrong address: %+v, %v", probe, err)
	}
}

func (c Course) hostKey(t *testing.T) {
	l := c.New(t, false)
	l.injectsHostKey(c.Idempotent)
}
