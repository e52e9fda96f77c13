package rackspace_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/rackspace"
	"loom/provisioner/standin"
	"loom/provisioner/standin/cloudtest"
	"loom/provisioner/standin/stack"
)

func lab(t *testing.T, ssh bool) (*cloudtest.Lab, *stack.Stack) {
	t.Helper()
	dialect := stack.NewRackspace()
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return rackspace.New(o) })
	dialect.PublicKey = l.PublicKey
	l.Flavor, l.Image, l.MakeOp = stack.Flavor, stack.Image, stack.Create
	l.Secrets = []string{stack.APIKey, stack.GeneratedPassword, "wrong-key", "gAAAAAB-token"}
	l.Throttle = standin.Fault{Status: 413, RetryAfter: "7"}
	l.Fields = map[string]any{"api_user": stack.User, "api_password": stack.APIKey, "rackspace_region": "dfw", "ssh_keypair": stack.KeyPair,
		"ssh_key_resource": cloudtest.KeyResource, "endpoint_url": l.Cloud.URL()}
	l.Refuse = func(fields map[string]any) { fields["api_password"] = "wrong-key" }
	return l, dialect
}

func TestWalls(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	l.Walls()
}

func TestConformance(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	l.Conform()
}

func asked(t *testing.T, l *cloudtest.Lab) stack.Wanted {
	t.Helper()
	calls := l.Cloud.Calls(stack.Create)
	in, err := stack.WantedBy(calls[len(calls)-1].Body)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestLife(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	spec := l.Spec(1)
	made, sink := l.Must(spec, loom.ActionCreate, 0)
	if facts := sink.Facts(); len(facts) != 1 || facts[0]["providerid"] != made.Result["providerid"] {
		t.Errorf("reported %v, gave %v", facts, made.Result)
	}
	off := false
	want := stack.Wanted{Name: spec.Hostname, ImageRef: stack.Image, FlavorRef: stack.Flavor, KeyName: stack.KeyPair, ConfigDrive: &off,
		Metadata: map[string]string{"loom-node": string(spec.Node), "loom-key": spec.IdempotencyKey, "loom-cluster": "00000007", "loom-tenant": "Acme"}}
	if got := asked(t, l); !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %+v, not %+v", got, want)
	}
	if auth := spec.Results["ssh-auth"].(map[string]any); auth["password"] != stack.GeneratedPassword {
		t.Errorf("ssh-auth %v", auth)
	}
	confirmed, _ := l.Must(spec, loom.ActionConfirm, 0)
	if confirmed.Addresses[loom.AccessV4] != l.SSH.Address || confirmed.Addresses[loom.BindV4] != l.SSH.Address {
		t.Errorf("confirm gave %+v", confirmed)
	}
	spec.Provider.Fields["rackspace_bind_private"] = "on"
	confirmed, _ = l.Must(spec, loom.ActionConfirm, 0)
	if confirmed.Addresses[loom.AccessV4] != l.SSH.Address || confirmed.Addresses[loom.BindV4] != "192.0.2.7" {
		t.Errorf("over ServiceNet confirm gave %+v", confirmed)
	}
	list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call())
	if err != nil || len(list) != 1 || list[0].Key != spec.IdempotencyKey || list[0].Node != spec.Node {
		t.Errorf("list gave %+v, %v", list, err)
	}
	gone, _ := l.Must(spec, loom.ActionDelete, 0)
	if value, there := gone.Result["providerid"]; !there || value != nil {
		t.Errorf("delete does not clear the facts: %v", gone.Result)
	}
}

// Without a key Loom signs in with a password, which it also knows of a machine
// whose answer was lost.
func TestPasswords(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Fields["ssh_key_resource"], l.Fields["ssh_keypair"], l.Fields["rackspace_config_drive"] = "", "", "true"
	passwords := map[string]bool{}
	for n, lost := range []bool{false, true} {
		spec := l.Spec(n)
		l.Cloud.Inject(standin.Fault{Op: stack.Create, Lost: lost})
		_, sink := l.Must(spec, loom.ActionCreate, 0)
		in, auth := asked(t, l), spec.Results["ssh-auth"].(map[string]any)
		if len(in.AdminPass) < 20 || auth["password"] != in.AdminPass || auth["identityfile"] != nil || in.KeyName != "" || in.ConfigDrive == nil || !*in.ConfigDrive {
			t.Errorf("lost %t: asked for %+v, stored %v", lost, in, auth)
		}
		if strings.Contains(sink.Text(), in.AdminPass) {
			t.Errorf("the password is said: %s", sink.Text())
		}
		passwords[in.AdminPass] = true
	}
	if n := l.Cloud.Counts(); len(passwords) != 2 || n.Created != 2 || n.Doubles != 0 {
		t.Errorf("%d passwords, %+v", len(passwords), n)
	}
}

func TestRackConnect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says    []string
		status  int
		message string
	}{
		{[]string{"", "DEPLOYING", "DEPLOYED"}, 0, ""}, {[]string{"DEPLOYING", "FAILED"}, 1, "RackConnect says FAILED"},
		{[]string{"UNPROCESSABLE"}, 1, "UNPROCESSABLE"}, {[]string{"DEPLOYING"}, 1, "RackConnect has not deployed it"},
	} {
		l, dialect := lab(t, c.status == 0)
		l.Fields["rackconnect_wait"] = "on"
		dialect.Connect = c.says
		spec := l.Spec(1)
		l.Must(spec, loom.ActionCreate, 0)
		if r, sink := l.Must(spec, loom.ActionConfirm, c.status); !strings.Contains(r.Message, c.message) {
			t.Errorf("%v gave %+v\n%s", c.says, r, sink.Text())
		}
		if n := len(l.Cloud.Calls(stack.Get)); n < len(c.says) {
			t.Errorf("%v: %d looks", c.says, n)
		}
	}
}

func TestLostAnswersMakeOneMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault    standin.Fault
		unlisted int
		waits    bool
	}{
		{standin.Fault{Lost: true}, 0, false}, {standin.Fault{Lost: true}, 1, true},
		{standin.Fault{Garbled: true}, 0, false}, {standin.Fault{Status: 500}, 0, true},
	} {
		l, _ := lab(t, false)
		c.fault.Op = stack.Create
		l.Cloud.Inject(c.fault)
		l.Cloud.Behave(standin.Behaviour{Unlisted: c.unlisted})
		_, sink := l.Must(l.Spec(1), loom.ActionCreate, 0)
		if n := l.Cloud.Counts(); n.Live != 1 || n.Created != 1 {
			t.Errorf("%+v: %+v\n%s", c.fault, n, sink.Text())
		}
		if waited := slices.Contains(l.Clock.Waits(), 10*time.Second); waited != c.waits {
			t.Errorf("%+v, unlisted %d: waits %v", c.fault, c.unlisted, l.Clock.Waits())
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Refusals([]cloudtest.Refusal{
		{Fault: standin.Fault{Status: 401}, Status: 201, Never: true, Message: "credentials"},
		{Fault: standin.Fault{Status: 403, Message: "Forbidden"}, Status: 202, Never: true, Message: "Forbidden"},
		{Fault: standin.Fault{Status: 413, Message: "Quota exceeded for ram: Requested 1024"}, Status: 202, Message: "Quota"},
		{Fault: standin.Fault{Status: 404}, Status: 202}, {Fault: standin.Fault{Status: 409, Message: "taken"}, Status: 202, Message: "taken"},
		{Fault: standin.Fault{Status: 400, Message: "no " + stack.APIKey}, Status: 202, Never: true, Message: "[redacted]"},
		{Fault: standin.Fault{Status: 413, RetryAfter: "30"}, Status: 1}, {Fault: standin.Fault{Status: 429, RetryAfter: "900"}, Status: 1},
		{Fault: standin.Fault{Status: 500}, Status: 1}, {Fault: standin.Fault{Status: 503}, Status: 1},
	})
	for _, c := range []struct {
		field, value string
		status       int
	}{
		{"api_password", "wrong-key", 201}, {"api_password", "", 201}, {"api_user", "other", 201}, {"rackspace_region", "syd", 202}, {"endpoint_url", "nowhere", 202},
		{"ssh_keypair", "absent", 202}, {"rackspace_auth_url", "http://user@x/", 202},
	} {
		spec := l.Spec(1)
		spec.Provider.Fields[c.field] = c.value
		if r, _ := l.Must(spec, loom.ActionCreate, c.status); r.Retryable == nil || *r.Retryable {
			t.Errorf("%s %q gave %+v", c.field, c.value, r)
		}
	}
	if n := l.Cloud.Counts(); n.Created != 0 {
		t.Errorf("%+v", n)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	l.Cloud.Behave(standin.Behaviour{Leaving: 3})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	id := spec.Results["providerid"]
	l.Cloud.Inject(standin.Fault{Op: stack.Delete, Status: 409, Message: "in task_state networking", Times: 2})
	// The token runs out on the way.
	sink := &cloudtest.Sink{On: func(string) { dialect.Expire() }}
	if r, err := l.Provider.Delete(l.Context(), spec, sink); err != nil || r.Status != 0 || !strings.Contains(sink.Text(), "task_state") {
		t.Errorf("%+v, %v\n%s", r, err, sink.Text())
	}
	if m := l.Cloud.Machines()[0]; m.State != standin.Gone {
		t.Errorf("delete did not wait: the machine is %s", m.State)
	}
	spec.Results["providerid"] = id
	l.Must(spec, loom.ActionDelete, 0) // twice
	for _, other := range []any{"", "absent", "../flavors", 7.0} {
		never := l.Spec(9)
		never.Results["providerid"] = other
		l.Must(never, loom.ActionDelete, 0)
	}
	forgotten := l.Spec(2)
	l.Must(forgotten, loom.ActionCreate, 0)
	forgotten.Results = map[string]any{}
	l.Must(forgotten, loom.ActionDelete, 0)
	if n := l.Cloud.Counts(); n.Live != 0 {
		t.Errorf("delete by key left %+v", n)
	}
	third := l.Spec(3)
	l.Must(third, loom.ActionCreate, 0)
	l.Refuse(third.Provider.Fields)
	if r, _ := l.Must(third, loom.ActionDelete, 1); !strings.Contains(r.Message, "credentials") || third.Results["providerid"] == nil {
		t.Errorf("wrong credentials gave %+v", r)
	}
	never := l.Spec(4)
	l.Refuse(never.Provider.Fields)
	l.Must(never, loom.ActionDelete, 0)
}

func TestTwoNodesAtOnce(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	dialect.PageSize = 1
	specs := []*loom.TaskSpec{l.Spec(1), l.Spec(2)}
	var wg sync.WaitGroup
	for _, spec := range specs {
		wg.Go(func() {
			if r, _, err := l.Do(l.Context(), spec, loom.ActionCreate); err != nil || r.Status != 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call())
	if n := l.Cloud.Counts(); n.Live != 2 || specs[0].Results["providerid"] == specs[1].Results["providerid"] || len(list) != 2 || err != nil {
		t.Errorf("%+v, listed %v, %v", n, list, err)
	}
}

func TestFailuresAndCancelling(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	for _, c := range []struct {
		b       standin.Behaviour
		message string
	}{
		{standin.Behaviour{Break: "No valid host was found."}, "No valid host"}, {standin.Behaviour{Pending: 1 << 30}, "did not run within 600 s"},
		{standin.Behaviour{NoAddress: true}, "no address"}, {standin.Behaviour{Unseen: 1 << 30}, "quota"},
	} {
		l.Cloud.Behave(c.b)
		spec := l.Spec(1)
		l.Must(spec, loom.ActionCreate, 0)
		if r, sink := l.Must(spec, loom.ActionConfirm, 1); !strings.Contains(r.Message, c.message) || r.Retryable != nil {
			t.Errorf("%+v gave %+v\n%s", c.b, r, sink.Text())
		}
		l.Cloud.Heal()
		l.Must(spec, loom.ActionDelete, 0)
	}
	l.Cloud.Behave(standin.Behaviour{Pending: 1 << 30})
	spec := l.Spec(2)
	l.Must(spec, loom.ActionCreate, 0)
	abort := errors.New("somebody aborted")
	ctx, cancel := context.WithCancelCause(l.Context())
	defer cancel(nil)
	if _, err := l.Provider.Confirm(ctx, spec, &cloudtest.Sink{On: func(string) { cancel(abort) }}); !errors.Is(err, abort) {
		t.Errorf("a cancelled confirm gave %v", err)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields map[string]any
		want   string
	}{
		{nil, "https://identity.api.rackspacecloud.com/"}, {map[string]any{"rackspace_region": "LON"}, "https://lon.identity.api.rackspacecloud.com/"},
		{map[string]any{"rackspace_auth_url": "lon.auth.example/v2.0"}, "https://lon.auth.example/"},
		{map[string]any{"rackspace_auth_url": "https://a.example", "endpoint_url": "https://b.example/x/v2.0/tokens/"}, "https://b.example/x/"},
		{map[string]any{"endpoint_url": "http://b.example"}, ""},
	} {
		if got, err := rackspace.IdentityOf(c.fields); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v gave %q, %v", c.fields, got, err)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
	if err != nil || !probe.OK || len(probe.Flavors) != 2 || probe.Flavors[0] != (loom.ProbeFlavor{ID: stack.Flavor, Name: "small", VCPU: 1, RAM: 2048}) ||
		!slices.Equal(probe.Images, []loom.ProbeImage{{ID: stack.Image, Name: "debian-12"}}) {
		t.Errorf("probe gave %+v, %v", probe, err)
	}
	for field, c := range map[string]struct{ value, check string }{
		"api_password": {"wrong-key", "sign in"}, "ssh_keypair": {"absent", "key pair"}, "ssh_key_resource": {"absent", "key pair"},
		"rackspace_region": {"syd", "region"}, "endpoint_url": {"nonsense", "settings"},
	} {
		call := l.Call()
		call.Provider.Fields[field] = c.value
		probe, err := l.Provider.(provider.Prober).Probe(l.Context(), call)
		failed := ""
		for _, check := range probe.Checks {
			if !check.OK {
				failed += check.Name
			}
		}
		if err != nil || probe.OK || failed != c.check || strings.Contains(fmt.Sprint(probe), "wrong-key") {
			t.Errorf("%s %q: %+v, %v", field, c.value, probe.Checks, err)
		}
	}
}

func TestInjectedHostKey(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.InjectsHostKey(func() string {
		in := asked(t, l)
		data, err := base64.StdEncoding.DecodeString(in.UserData)
		if err != nil || *in.ConfigDrive != (len(data) > 0) {
			t.Errorf("user data %q with drive %t, %v", in.UserData, *in.ConfigDrive, err)
		}
		return string(data)
	}, false)
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Unreachable()
	l.Passes("sign in", "region", "key pair", "sizes", "images")
}

func TestManyNodes(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	l.Many(stack.SignInV2, dialect.Expire)
}

func TestProbeComparesKeys(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	l.ComparesKeys(func(public string) { dialect.PublicKey = public })
}
