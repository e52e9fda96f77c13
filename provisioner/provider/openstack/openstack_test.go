package openstack_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/standin"
	"loom/provisioner/standin/cloudtest"
	"loom/provisioner/standin/stack"
)

func lab(t *testing.T, ssh bool) (*cloudtest.Lab, *stack.Stack) {
	t.Helper()
	dialect := stack.New()
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return openstack.New(o) })
	dialect.PublicKey = l.PublicKey
	l.Flavor, l.Image, l.MakeOp = stack.Flavor, stack.Image, stack.Create
	l.Secrets = []string{stack.Password, stack.AppSecret, stack.GeneratedPassword, "wrong-password", "gAAAAAB-token"}
	l.Throttle = standin.Fault{Status: 429, RetryAfter: "7"}
	l.Fields = map[string]any{"api_user": stack.User, "api_password": stack.Password, "openstack_tenant": stack.Project,
		"openstack_auth_url": l.Cloud.URL() + "/v2.0/tokens", "ssh_keypair": stack.KeyPair, "ssh_key_resource": cloudtest.KeyResource, "security_groups": stack.Group}
	l.Refuse = func(fields map[string]any) { fields["api_password"] = "wrong-password" }
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
	spec := l.Spec(1)
	made, sink := l.Must(spec, loom.ActionCreate, 0)
	if facts := sink.Facts(); len(facts) != 1 || facts[0]["providerid"] != made.Result["providerid"] {
		t.Errorf("reported %v, gave %v", facts, made.Result)
	}
	want := map[string]any{"user": spec.SSHUser, "identityfile": "ssh_keys/" + cloudtest.KeyResource, "password": stack.GeneratedPassword}
	if got := spec.Results["ssh-auth"]; !reflect.DeepEqual(got, want) {
		t.Errorf("ssh-auth %v, not %v", got, want)
	}
	// A repeated CREATE adopts the server and keeps the password, which Nova tells once.
	l.Must(spec, loom.ActionCreate, 0)
	if got := spec.Results["ssh-auth"]; !reflect.DeepEqual(got, want) {
		t.Errorf("after adoption: ssh-auth %v, not %v", got, want)
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
	if n := len(l.Cloud.Calls(stack.Floats)); n != 0 {
		t.Errorf("floating addresses were looked at %d times without being wanted", n)
	}
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

func TestRequests(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	spec := l.Spec(1)
	labels := map[string]string{"loom-node": string(spec.Node), "loom-key": spec.IdempotencyKey, "loom-cluster": "00000007", "loom-tenant": "Acme"}
	plain := stack.Wanted{Name: spec.Hostname, ImageRef: stack.Image, FlavorRef: stack.Flavor, KeyName: stack.KeyPair,
		SecurityGroups: []map[string]string{{"name": stack.Group}}, Metadata: labels}
	l.Must(spec, loom.ActionCreate, 0)
	if got := asked(t, l); !reflect.DeepEqual(got, plain) {
		t.Errorf("asked for %+v, not %+v", got, plain)
	}
	l.Must(spec, loom.ActionDelete, 0)

	// What is base64 by chance arrives as it is.
	script := "abcd"
	if err := os.MkdirAll(filepath.Join(provider.EnvOf(l.Context()).Files, "user_data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(provider.EnvOf(l.Context()).Files, "user_data", "boot.sh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	full := plain
	full.Networks = []map[string]string{{"uuid": stack.StorageNet}, {"uuid": stack.LabNet}}
	full.Zone, full.UserData = stack.Zone, base64.StdEncoding.EncodeToString([]byte(script))
	full.SecurityGroups, full.KeyName = nil, ""
	for name, value := range map[string]any{"network_ids": stack.StorageNet + ", " + stack.LabNet, "availability_zone": stack.Zone, "user_data_resource": "/old/path/boot.sh",
		"security_groups": "", "ssh_keypair": "", "openstack_region": stack.Region} {
		spec.Provider.Fields[name] = value
	}
	l.Must(spec, loom.ActionCreate, 0)
	if got := asked(t, l); !reflect.DeepEqual(got, full) {
		t.Errorf("asked for %+v, not %+v", got, full)
	}
}

// The host key that a machine is passed is recorded with its id, but not for a
// server that was found.
func TestInjectedHostKey(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Fields["inject_host_key"] = "on"
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	data, err := base64.StdEncoding.DecodeString(asked(t, l).UserData)
	keys, _ := spec.Results["ssh_host_keys"].(map[string]string)
	if err != nil || !strings.HasPrefix(string(data), "#cloud-config") || keys["ed25519"] == "" || !strings.Contains(string(data), keys["ed25519"]) {
		t.Errorf("user data %s, recorded %v, %v", data, keys, err)
	}
	l.Cloud.Inject(standin.Fault{Op: stack.Create, Lost: true})
	spec = l.Spec(2)
	l.Must(spec, loom.ActionCreate, 0)
	if got := spec.Results["ssh_host_keys"]; got != nil {
		t.Errorf("recorded %v of a server that was found", got)
	}
	spec = l.Spec(3)
	spec.Provider.Fields["ssh_key_resource"] = ""
	if r, _ := l.Must(spec, loom.ActionCreate, 202); !strings.Contains(r.Message, "inject_host_key") {
		t.Errorf("without a key: %+v", r)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	app := map[string]any{"application_credential_id": stack.AppID, "application_credential_secret": stack.AppSecret, "api_user": "", "api_password": "", "openstack_tenant": ""}
	for n, c := range []struct {
		change map[string]any
		status int
	}{
		{map[string]any{"openstack_tenant": stack.ProjectID}, 0}, {app, 0}, {map[string]any{"openstack_domain": "Default"}, 0},
		{map[string]any{"openstack_auth_url": l.Cloud.URL() + "/v3/"}, 0}, {map[string]any{"openstack_auth_url": l.Cloud.URL()}, 0},
		{map[string]any{"openstack_auth_url": "https://nowhere.invalid:5000/v3", "endpoint_url": l.Cloud.URL() + "/v3/auth/tokens"}, 0},
		{map[string]any{"openstack_user_domain": "Default", "openstack_domain": "other"}, 201}, {map[string]any{"openstack_project_domain": "other"}, 201},
		{map[string]any{"openstack_user_domain": "Default", "openstack_project_domain": "Default", "openstack_domain": "other"}, 0},
		{map[string]any{"openstack_domain": "other"}, 201}, {map[string]any{"api_password": "wrong-password"}, 201}, {map[string]any{"api_user": ""}, 201},
		{map[string]any{"openstack_tenant": "other"}, 201}, {map[string]any{"openstack_tenant": ""}, 201},
		{map[string]any{"openstack_auth_url": ""}, 202}, {map[string]any{"openstack_auth_url": "nowhere"}, 202}, {map[string]any{"openstack_region": "RegionNine"}, 202},
		{map[string]any{"openstack_auth_url": l.Cloud.URL() + "/elsewhere"}, 202},
	} {
		spec := l.Spec(n)
		for name, value := range c.change {
			spec.Provider.Fields[name] = value
		}
		r, _ := l.Must(spec, loom.ActionCreate, c.status)
		if never := r.Retryable != nil && !*r.Retryable; never != (c.status != 0) {
			t.Errorf("%v gave %+v", c.change, r)
		}
		if c.status == 0 {
			l.Must(spec, loom.ActionDelete, 0)
		}
	}
}

// A token that runs out in the middle is replaced.
func TestTokensRunOut(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	l.Cloud.Behave(standin.Behaviour{Leaving: 3})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	before := len(l.Cloud.Calls(stack.SignIn))
	sink := &cloudtest.Sink{On: func(string) { dialect.Expire() }}
	if r, err := l.Provider.Delete(l.Context(), spec, sink); err != nil || r.Status != 0 {
		t.Errorf("delete gave %+v, %v\n%s", r, err, sink.Text())
	}
	if n := len(l.Cloud.Calls(stack.SignIn)) - before; n != 1 {
		t.Errorf("signed in %d times", n)
	}
	// Where the credentials have been withdrawn too, that is what is said.
	spec = l.Spec(2)
	l.Must(spec, loom.ActionCreate, 0)
	sink = &cloudtest.Sink{On: func(string) {
		dialect.Expire()
		l.Cloud.Inject(standin.Fault{Op: stack.SignIn, Status: 401, Times: -1})
	}}
	if r, err := l.Provider.Delete(l.Context(), spec, sink); err != nil || r.Status != 1 || !strings.Contains(r.Message, "credentials") {
		t.Errorf("delete gave %+v, %v\n%s", r, err, sink.Text())
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	big := filepath.Join(provider.EnvOf(l.Context()).Files, "user_data")
	if err := os.MkdirAll(big, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(big, "big"), make([]byte, 50000), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ field, value, message string }{
		{"network_ids", "../../servers", "network_ids"}, {"network_ids", stack.External + "0", "could not be found"}, {"security_groups", "absent", "absent"},
		{"availability_zone", "mars", "zone"}, {"ssh_keypair", "absent", "key_name"}, {"user_data_resource", "absent", "user_data_resource"},
		{"user_data_resource", "..", "user_data"}, {"user_data_resource", "big", "50000 bytes"},
	} {
		spec := l.Spec(2)
		spec.Provider.Fields[c.field] = c.value
		if r, _ := l.Must(spec, loom.ActionCreate, 202); !strings.Contains(r.Message, c.message) || r.Retryable == nil || *r.Retryable {
			t.Errorf("%s %s gave %+v", c.field, c.value, r)
		}
	}
	for _, change := range []func(*loom.TaskSpec){
		func(s *loom.TaskSpec) { s.Flavor = "" }, func(s *loom.TaskSpec) { s.Image = "" }, func(s *loom.TaskSpec) { s.Flavor = "giant" }, func(s *loom.TaskSpec) { s.Image = "other" },
	} {
		spec := l.Spec(2)
		change(spec)
		if r, _ := l.Must(spec, loom.ActionCreate, 202); r.Retryable == nil || *r.Retryable {
			t.Errorf("it would be tried again: %+v", r)
		}
	}
	if n := l.Cloud.Counts(); n.Created != 0 {
		t.Errorf("%+v", n)
	}
}

// Nova remembers no requests: after an answer was lost the server is looked for,
// once more after 10 s, since it may appear late.
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
		result, sink := l.Must(l.Spec(1), loom.ActionCreate, 0)
		if n := l.Cloud.Counts(); n.Live != 1 || n.Created != 1 || len(l.Cloud.Leaked(result.Result["providerid"].(string))) != 0 {
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
		{Fault: standin.Fault{Status: 403, Message: "Policy doesn't allow os_compute_api:servers:create"}, Status: 202, Never: true, Message: "Policy doesn't allow os_compute_api:servers:create"},
		{Fault: standin.Fault{Status: 403, Message: "Quota exceeded for cores: Requested 4, but already used 20 of 20 cores"}, Status: 202, Message: "Quota exceeded for cores"},
		{Fault: standin.Fault{Status: 413, Message: "Quota exceeded for instances: Requested 1"}, Status: 202, Message: "Quota"},
		{Fault: standin.Fault{Status: 404, Message: "gone"}, Status: 202, Message: "gone"},
		{Fault: standin.Fault{Status: 409, Message: "taken"}, Status: 202, Message: "taken"},
		{Fault: standin.Fault{Status: 409, Message: "Multiple possible networks found, use a Network ID to be more specific."}, Status: 202, Never: true, Message: "network_ids"},
		{Fault: standin.Fault{Status: 400, Message: "Flavor's disk is too small for requested image."}, Status: 202, Never: true, Message: "disk is too small"},
		{Fault: standin.Fault{Status: 400, Message: "the password is " + stack.Password}, Status: 202, Never: true, Message: "[redacted]"},
		{Fault: standin.Fault{Status: 413, RetryAfter: "30"}, Status: 1}, {Fault: standin.Fault{Status: 413, RetryAfter: "900"}, Status: 1},
		{Fault: standin.Fault{Status: 429, RetryAfter: "30"}, Status: 1}, {Fault: standin.Fault{Status: 503}, Status: 1}, {Fault: standin.Fault{Status: 500}, Status: 1},
	})
	l.Cloud.Inject(standin.Fault{Op: stack.Create, Status: 413, RetryAfter: "900", Times: -1})
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
	l.Cloud.Inject(standin.Fault{Op: stack.Delete, Status: 409, Message: "Cannot 'delete' instance while it is in task_state spawning", Times: 2})
	if _, sink := l.Must(spec, loom.ActionDelete, 0); !strings.Contains(sink.Text(), "task_state") {
		t.Errorf("log: %s", sink.Text())
	}
	if m := l.Cloud.Machines()[0]; m.State != standin.Gone {
		t.Errorf("delete did not wait: the machine is %s", m.State)
	}
	spec.Results["providerid"] = id
	l.Must(spec, loom.ActionDelete, 0) // twice
	for _, other := range []any{"", "3c9e5b60-2f7f-4c38-8b1c-7d7b6b0a4f55", "../os-keypairs/lab", "no server"} {
		never := l.Spec(9)
		never.Results["providerid"] = other
		l.Must(never, loom.ActionDelete, 0)
	}
	forgotten := l.Spec(2)
	l.Must(forgotten, loom.ActionCreate, 0)
	forgotten.Results, forgotten.Hostname = map[string]any{}, ""
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
	// A Keystone that is elsewhere knows no server, which must not count as gone.
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

// Host names are no keys: a server of the same name is not the node's.
func TestSameNames(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	one, other := l.Spec(1), l.Spec(2)
	other.Hostname = one.Hostname
	l.Must(one, loom.ActionCreate, 0)
	l.Must(other, loom.ActionCreate, 0)
	if n := l.Cloud.Counts(); n.Live != 2 || n.Doubles != 0 {
		t.Fatalf("%+v", n)
	}
	one.Results = map[string]any{}
	l.Must(one, loom.ActionDelete, 0)
	if live := l.Cloud.ByKey(); len(live) != 1 || len(live[other.IdempotencyKey]) != 1 {
		t.Errorf("left: %v", live)
	}
}

func TestMachinesThatFail(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	for _, c := range []struct {
		b       standin.Behaviour
		message string
	}{
		{standin.Behaviour{Break: "No valid host was found. There are not enough hosts available."}, "a quota, is used up"},
		{standin.Behaviour{Break: "Build of instance aborted: Volume did not finish being created"}, "Volume did not finish"},
		{standin.Behaviour{Pending: 1 << 30}, "did not run within 600 s"}, {standin.Behaviour{NoAddress: true}, "no address"}, {standin.Behaviour{Unseen: 1 << 30}, "quota"},
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

func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Unreachable()
	l.Passes("sign in", "region", "key pair", "quota", "security groups", "sizes", "images")
}

func TestManyNodes(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	l.Many(stack.SignIn, dialect.Expire)
}
