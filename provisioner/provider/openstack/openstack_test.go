package openstack_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/cloudtest"
	"loom/provisioner/fakecloud/stack"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/openstack"
)

func lab(t *testing.T, ssh bool) (*cloudtest.Lab, *stack.Stack) {
	t.Helper()
	dialect := stack.New()
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return openstack.New(o) })
	dialect.PublicKey = l.PublicKey
	l.Flavor, l.Image, l.MakeOp = stack.Flavor, stack.Image, stack.Create
	l.Secrets = []string{stack.Password, stack.AppSecret, stack.GeneratedPassword, "wrong-password", "gAAAAAB-token"}
	l.Throttle = fakecloud.Fault{Status: 429, RetryAfter: "7"}
	l.Fields = map[string]any{"api_user": stack.User, "api_password": stack.Password, "openstack_tenant": stack.Project,
		"openstack_auth_url": l.Cloud.URL() + "/v2.0/tokens", "ssh_keypair": stack.KeyPair, "ssh_key_resource": cloudtest.KeyResource, "security_groups": stack.Group}
	l.Refuse = func(fields map[string]any) { fields["api_password"] = "wrong-password" }
	l.SetPublicKey = func(public string) { dialect.PublicKey = public }
	l.SetPageSize = func(n int) { dialect.PageSize = n }
	l.Expire = dialect.Expire
	l.Elsewhere = func(fields map[string]any) { fields["endpoint_url"] = l.Cloud.URL() + "/elsewhere" }
	l.UserData = func() string {
		data, err := base64.StdEncoding.DecodeString(asked(t, l).UserData)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return l, dialect
}

func TestCourse(t *testing.T) {
	t.Parallel()
	cloudtest.Course{
		New: func(t *testing.T, ssh bool) *cloudtest.Lab { l, _ := lab(t, ssh); return l }, ListOp: stack.List, ResetOp: stack.Action, SignInOp: stack.SignIn,
		Unknown: []any{"3c9e5b60-2f7f-4c38-8b1c-7d7b6b0a4f55", "../os-keypairs/lab", "no server"},
		Broken:  "No valid host was found. There are not enough hosts available.", BrokenSays: "a quota, is used up",
		Busy: fakecloud.Fault{Op: stack.Delete, Status: 409, Message: "Cannot 'delete' instance while it is in task_state spawning"},
		Refusals: []cloudtest.Refusal{
			{Fault: fakecloud.Fault{Status: 401}, Status: 201, Never: true, Message: "credentials"},
			{Fault: fakecloud.Fault{Status: 403, Message: "Policy doesn't allow os_compute_api:servers:create"}, Status: 202, Never: true, Message: "Policy doesn't allow os_compute_api:servers:create"},
			{Fault: fakecloud.Fault{Status: 403, Message: "Quota exceeded for cores: Requested 4, but already used 20 of 20 cores"}, Status: 202, Message: "Quota exceeded for cores"},
			{Fault: fakecloud.Fault{Status: 413, Message: "Quota exceeded for instances: Requested 1"}, Status: 202, Message: "Quota"},
			{Fault: fakecloud.Fault{Status: 404, Message: "gone"}, Status: 202, Message: "gone"},
			{Fault: fakecloud.Fault{Status: 409, Message: "taken"}, Status: 202, Message: "taken"},
			{Fault: fakecloud.Fault{Status: 409, Message: "Multiple possible networks found, use a Network ID to be more specific."}, Status: 202, Never: true, Message: "network_ids"},
			{Fault: fakecloud.Fault{Status: 400, Message: "Flavor's disk is too small for requested image."}, Status: 202, Never: true, Message: "disk is too small"},
			{Fault: fakecloud.Fault{Status: 400, Message: "the password is " + stack.Password}, Status: 202, Never: true, Message: "[redacted]"},
			{Fault: fakecloud.Fault{Status: 413, RetryAfter: "30"}, Status: 1}, {Fault: fakecloud.Fault{Status: 413, RetryAfter: "900"}, Status: 1},
			{Fault: fakecloud.Fault{Status: 429, RetryAfter: "30"}, Status: 1}, {Fault: fakecloud.Fault{Status: 503}, Status: 1}, {Fault: fakecloud.Fault{Status: 500}, Status: 1},
		},
		Flavors: []loom.ProbeFlavor{{ID: stack.Flavor, Name: stack.FlavorName, VCPU: 1, RAM: 2048}, {ID: "m1.large", Name: "large", VCPU: 4, RAM: 8192}}, Images: []loom.ProbeImage{{ID: stack.Image, Name: "debian-12"}},
		Checks: []string{"sign in", "region", "key pair", "quota", "security groups", "sizes", "images"},
		Wrong: []cloudtest.Wrong{{Field: "api_password", Value: "wrong-password", Check: "sign in"}, {Field: "ssh_keypair", Value: "absent", Check: "key pair"}, {Field: "ssh_key_resource", Value: "absent", Check: "key pair"},
			{Field: "security_groups", Value: "default, absent", Check: "security groups"}, {Field: "network_ids", Value: "absent", Check: "network"}, {Field: "openstack_region", Value: "RegionNine", Check: "region"}, {Field: "availability_zone", Value: "mars", Check: "availability zone"}},
		Offers: []cloudtest.Offer{
			{Kind: loom.OfferFlavor, ID: stack.Flavor, OK: true, Message: "The provider has it: small."}, {Kind: loom.OfferFlavor, ID: stack.FlavorName, OK: true, Message: "The provider has it."}, {Kind: loom.OfferFlavor, ID: "giant", OK: false, Message: "no such size"},
			{Kind: loom.OfferImage, ID: stack.Image, OK: true, Message: "debian-12"}, {Kind: loom.OfferImage, ID: stack.ImageName, OK: true, Message: "The provider has it."}, {Kind: loom.OfferImage, ID: "debian-99", OK: false, Message: "no active image"},
		},
	}.Run(t)
}

// A repeated CREATE adopts the server and keeps the password, which Nova tells once. Floating
// addresses are not looked at where none is wanted, and without a host name the key finds the server.
func TestPasswordIsKept(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	spec := l.Spec(1)
	for range 2 {
		l.Must(spec, loom.ActionCreate, 0)
		if auth := spec.Results["ssh-auth"].(map[string]any); auth["password"] != stack.GeneratedPassword {
			t.Errorf("ssh-auth %v", auth)
		}
	}
	spec.Results, spec.Hostname = map[string]any{}, ""
	l.Must(spec, loom.ActionDelete, 0)
	if n := l.Cloud.Counts(); n.Live != 0 || len(l.Cloud.Calls(stack.Floats)) != 0 {
		t.Errorf("%+v, %d looks at floating addresses", n, len(l.Cloud.Calls(stack.Floats)))
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
	l.Cloud.Inject(fakecloud.Fault{Op: stack.Create, Lost: true})
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
	l.Cloud.Behave(fakecloud.Behaviour{Leaving: 3})
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
		l.Cloud.Inject(fakecloud.Fault{Op: stack.SignIn, Status: 401, Times: -1})
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
