package digitalocean_test

import (
	"context"
	"encoding/json"
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
	"loom/provisioner/provider/digitalocean"
	"loom/provisioner/standin"
	"loom/provisioner/standin/cloudtest"
	"loom/provisioner/standin/ocean"
)

func lab(t *testing.T, ssh bool) (*cloudtest.Lab, *ocean.Ocean) {
	t.Helper()
	dialect := ocean.New()
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return digitalocean.New(o) })
	dialect.PublicKey = l.PublicKey
	l.Flavor, l.Image, l.MakeOp = ocean.Size, ocean.Image, ocean.Create
	l.Secrets = []string{ocean.Token, "wrong-token"}
	l.Throttle = standin.Fault{Status: 429, RetryAfter: "7"}
	l.Fields = map[string]any{"api_password": ocean.Token, "ssh_keypair": ocean.KeyName, "ssh_key_resource": cloudtest.KeyResource,
		"digitalocean_region": ocean.Region, "endpoint_url": l.Cloud.URL()}
	l.Refuse = func(fields map[string]any) { fields["api_password"] = "wrong-token" }
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

func TestLife(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	l.Fields["vpc_uuid"], l.Fields["monitoring"] = ocean.VPC, "on"
	spec := l.Spec(1)
	made, sink := l.Must(spec, loom.ActionCreate, 0)
	if facts := sink.Facts(); len(facts) != 1 || facts[0]["providerid"] != made.Result["providerid"] {
		t.Errorf("reported %v, gave %v", facts, made.Result)
	}
	var in ocean.Wanted
	if err := json.Unmarshal([]byte(l.Cloud.Calls(ocean.Create)[0].Body), &in); err != nil {
		t.Fatal(err)
	}
	want := ocean.Wanted{Name: spec.Hostname, Region: ocean.Region, Size: ocean.Size, Image: ocean.Image, SSHKeys: []any{512190.0}, VPC: ocean.VPC, Monitoring: true,
		Tags: []string{"loom", "loom-cluster-00000007", "loom-key-" + spec.IdempotencyKey, "loom-node-" + string(spec.Node), "loom-tenant-_41cme"}}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("asked for %+v, not %+v", in, want)
	}
	confirmed, _ := l.Must(spec, loom.ActionConfirm, 0)
	if confirmed.Addresses[loom.AccessV4] != l.SSH.Address || confirmed.Addresses[loom.BindV4] != "192.0.2.7" || confirmed.Hostname != "" {
		t.Errorf("confirm gave %+v", confirmed)
	}
	list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call())
	if err != nil || len(list) != 1 || list[0].Key != spec.IdempotencyKey || list[0].Node != spec.Node || list[0].Tenant != "Acme" || list[0].Cluster != "00000007" || list[0].Name != spec.Hostname {
		t.Errorf("list gave %+v, %v", list, err)
	}
	gone, _ := l.Must(spec, loom.ActionDelete, 0)
	if value, there := gone.Result["ssh_host_keys"]; !there || value != nil {
		t.Errorf("delete does not clear the facts: %v", gone.Result)
	}
}

func TestImagesAndSizes(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Image = fmt.Sprint(ocean.ImageID)
	l.Must(l.Spec(1), loom.ActionCreate, 0)
	if body := l.Cloud.Calls(ocean.Create)[0].Body; !strings.Contains(body, fmt.Sprintf(`"image":%d`, ocean.ImageID)) {
		t.Errorf("asked with %s", body)
	}
	for _, change := range []func(*loom.TaskSpec){
		func(s *loom.TaskSpec) { s.Flavor = "62" }, func(s *loom.TaskSpec) { s.Flavor = "" }, func(s *loom.TaskSpec) { s.Image = "" },
		func(s *loom.TaskSpec) { s.Image = "other" }, func(s *loom.TaskSpec) { s.Provider.Fields["ssh_keypair"] = "absent" },
		func(s *loom.TaskSpec) { s.Provider.Fields["digitalocean_region"] = "nyc2" },
		func(s *loom.TaskSpec) { s.Provider.Fields["endpoint_url"] = "nowhere" },
	} {
		spec := l.Spec(2)
		change(spec)
		if r, _ := l.Must(spec, loom.ActionCreate, 202); r.Retryable == nil || *r.Retryable {
			t.Errorf("it would be tried again: %+v", r)
		}
	}
	for _, token := range []string{"", "two\nlines", "wrong-token"} {
		spec := l.Spec(2)
		spec.Provider.Fields["api_password"] = token
		l.Must(spec, loom.ActionCreate, 201)
	}
	if n := l.Cloud.Counts(); n.Created != 1 {
		t.Errorf("%+v", n)
	}
}

// There are no tokens: after an answer was lost the machine is looked for, once
// more after 10 s, since it may appear late.
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
		c.fault.Op = ocean.Create
		l.Cloud.Inject(c.fault)
		l.Cloud.Behave(standin.Behaviour{Unlisted: c.unlisted})
		result, sink := l.Must(l.Spec(1), loom.ActionCreate, 0)
		if n := l.Cloud.Counts(); n.Live != 1 || n.Created != 1 || len(l.Cloud.Leaked(result.Result["providerid"].(string))) != 0 {
			t.Errorf("%+v: %+v\n%s", c.fault, n, sink.Text())
		}
		if waited := slices.Contains(l.Clock.Waits(), 10*time.Second); waited != c.waits {
			t.Errorf("%+v, unlisted %d: waits %v", c.fault, c.unlisted, l.Clock.Waits())
		}
	}
}

// A machine that appears later still is one too many: the next CREATE keeps the
// older one.
func TestDoublesAreRemoved(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Cloud.Inject(standin.Fault{Op: ocean.Create, Lost: true})
	l.Cloud.Behave(standin.Behaviour{Unlisted: 2})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	if n := l.Cloud.Counts(); n.Live != 2 || n.Doubles != 1 {
		t.Fatalf("the stand-in was meant to trick CREATE: %+v", n)
	}
	l.Cloud.Heal()
	l.Must(spec, loom.ActionCreate, 0)
	if n := l.Cloud.Counts(); n.Live != 1 || spec.Results["providerid"] != l.Cloud.Machines()[0].ID {
		t.Errorf("%+v, kept %v", n, spec.Results["providerid"])
	}
	again := l.Spec(2)
	l.Cloud.Inject(standin.Fault{Op: ocean.Create, Lost: true})
	l.Cloud.Behave(standin.Behaviour{Unlisted: 2})
	l.Must(again, loom.ActionCreate, 0)
	l.Cloud.Heal()
	l.Must(again, loom.ActionDelete, 0)
	if n := l.Cloud.Counts(); n.Live != 1 {
		t.Errorf("delete left a double: %+v, %v", n, l.Cloud.ByKey())
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Refusals([]cloudtest.Refusal{
		{Fault: standin.Fault{Status: 401}, Status: 201, Never: true, Message: "credentials"},
		{Fault: standin.Fault{Status: 403}, Status: 202, Never: true, Message: "You are not authorized"},
		{Fault: standin.Fault{Status: 409, Message: "taken"}, Status: 202, Message: "taken"},
		{Fault: standin.Fault{Status: 422, Message: "creating this/these droplet(s) will exceed your droplet limit"}, Status: 202, Message: "limit"},
		{Fault: standin.Fault{Status: 422, Message: "Size is not available in this region."}, Status: 202, Never: true},
		{Fault: standin.Fault{Status: 422, Message: "the token is " + ocean.Token}, Status: 202, Never: true, Message: "[redacted]"},
		{Fault: standin.Fault{Status: 429, RetryAfter: "30"}, Status: 1},
		{Fault: standin.Fault{Status: 429, RetryAfter: "900"}, Status: 1},
		{Fault: standin.Fault{Status: 429, Header: map[string]string{"RateLimit-Reset": fmt.Sprint(time.Now().Add(time.Hour).Unix())}}, Status: 1},
		{Fault: standin.Fault{Status: 500}, Status: 1}, {Fault: standin.Fault{Status: 502, Message: "<html>"}, Status: 1},
	})
	l.Cloud.Inject(standin.Fault{Op: ocean.Create, Status: 429, RetryAfter: "900", Times: -1})
	if r, _ := l.Must(l.Spec(1), loom.ActionCreate, 1); r.RetryAfter != 900 {
		t.Errorf("the wait that the cloud asks for is lost: %+v", r)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Cloud.Behave(standin.Behaviour{Leaving: 3})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	id := spec.Results["providerid"]
	l.Cloud.Inject(standin.Fault{Op: ocean.Delete, Status: 422, Message: "Droplet already has a pending event.", Times: 2})
	if _, sink := l.Must(spec, loom.ActionDelete, 0); !strings.Contains(sink.Text(), "pending event") {
		t.Errorf("log: %s", sink.Text())
	}
	if m := l.Cloud.Machines()[0]; m.State != standin.Gone {
		t.Errorf("delete did not wait: the machine is %s", m.State)
	}
	spec.Results["providerid"] = id
	l.Must(spec, loom.ActionDelete, 0) // twice
	for _, other := range []any{"", "31649999", 31649999.0, "no droplet", "-1"} {
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
	// An API address that leads elsewhere knows no machine, which must not count as gone.
	elsewhere := l.Spec(3)
	elsewhere.Results["providerid"] = third.Results["providerid"]
	elsewhere.Provider.Fields["endpoint_url"] = l.Cloud.URL() + "/elsewhere"
	l.Must(elsewhere, loom.ActionDelete, 1)
}

func TestTwoNodesAtOnce(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
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
	if n := l.Cloud.Counts(); n.Live != 2 || specs[0].Results["providerid"] == specs[1].Results["providerid"] {
		t.Errorf("%+v", n)
	}
}

func TestMachinesThatFail(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	for _, c := range []struct {
		b       standin.Behaviour
		message string
	}{
		{standin.Behaviour{Break: "broken"}, "switched off"}, {standin.Behaviour{Pending: 1 << 30}, "did not run within 600 s"},
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
}

func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Cloud.Behave(standin.Behaviour{Pending: 1 << 30})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	abort := errors.New("somebody aborted")
	ctx, cancel := context.WithCancelCause(l.Context())
	defer cancel(nil)
	sink := &cloudtest.Sink{On: func(string) { cancel(abort) }}
	if _, err := l.Provider.Confirm(ctx, spec, sink); !errors.Is(err, abort) {
		t.Errorf("a cancelled confirm gave %v", err)
	}
}

// A CREATE that is cancelled while the cloud makes the machine still hears which.
func TestCancelledWhileMaking(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	ctx, cancel := context.WithCancel(l.Context())
	defer cancel()
	interrupting := standin.New(ocean.New(), func(context.Context, standin.Machine) (standin.Backing, error) {
		cancel()
		return standin.Backing{}, nil
	})
	t.Cleanup(interrupting.Close)
	spec, sink := l.Spec(1), &cloudtest.Sink{}
	spec.Provider.Fields["endpoint_url"] = interrupting.URL()
	_, err := l.Provider.Create(ctx, spec, sink)
	if facts := sink.Facts(); interrupting.Counts().Live != 1 || len(facts) != 1 || facts[0]["providerid"] != interrupting.Machines()[0].ID {
		t.Errorf("%+v, reported %v, %v", interrupting.Counts(), facts, err)
	}
}

func TestManyPages(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	dialect.PageSize = 1 // the key is on the second page, too
	for n := range 3 {
		l.Must(l.Spec(n), loom.ActionCreate, 0)
	}
	list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call())
	if err != nil || len(list) != 3 {
		t.Errorf("list gave %d machines, %v", len(list), err)
	}
	l.Cloud.Inject(standin.Fault{Op: ocean.List, Status: 403})
	if _, err := l.Provider.(provider.Lister).List(l.Context(), l.Call()); err == nil {
		t.Error("a list that is not whole is no error")
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Fields["vpc_uuid"] = ocean.VPC
	probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
	if err != nil || !probe.OK || len(probe.Flavors) != 1 || probe.Flavors[0] != (loom.ProbeFlavor{ID: ocean.Size, Name: "Basic", VCPU: 1, RAM: 1024}) ||
		len(probe.Images) != 2 || probe.Images[0].ID != fmt.Sprint(ocean.ImageID) || probe.Images[1].ID != ocean.Image {
		t.Errorf("probe gave %+v, %v", probe, err)
	}
	for field, c := range map[string]struct{ value, check string }{
		"api_password": {"wrong-token", "sign in"}, "ssh_keypair": {"absent", "key pair"}, "ssh_key_resource": {"absent", "key pair"},
		"vpc_uuid": {"other", "VPC"}, "digitalocean_region": {"nyc2", "region"}, "endpoint_url": {"nonsense", "settings"},
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
		if err != nil || probe.OK || failed != c.check || strings.Contains(fmt.Sprint(probe), "wrong-token") {
			t.Errorf("%s %q: %+v, %v", field, c.value, probe.Checks, err)
		}
	}
}

func TestInjectedHostKey(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.InjectsHostKey(func() string {
		calls := l.Cloud.Calls(ocean.Create)
		var in struct {
			UserData string `json:"user_data"`
		}
		if err := json.Unmarshal([]byte(calls[len(calls)-1].Body), &in); err != nil {
			t.Fatal(err)
		}
		return in.UserData
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
	l, _ := lab(t, false)
	l.Many("", nil)
}

func TestProbeComparesKeys(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	l.ComparesKeys(func(public string) { dialect.PublicKey = public })
}
