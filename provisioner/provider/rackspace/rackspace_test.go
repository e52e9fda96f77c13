package rackspace_test

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/cloudtest"
	"loom/provisioner/fakecloud/stack"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/rackspace"
)

func lab(t *testing.T, ssh bool) (*cloudtest.Lab, *stack.Stack) {
	t.Helper()
	dialect := stack.NewRackspace()
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return rackspace.New(o) })
	dialect.PublicKey = l.PublicKey
	l.Flavor, l.Image, l.MakeOp = stack.Flavor, stack.Image, stack.Create
	l.Secrets = []string{stack.APIKey, stack.GeneratedPassword, "wrong-key", "gAAAAAB-token"}
	l.Throttle = fakecloud.Fault{Status: 413, RetryAfter: "7"}
	l.Fields = map[string]any{"api_user": stack.User, "api_password": stack.APIKey, "rackspace_region": "dfw", "ssh_keypair": stack.KeyPair,
		"ssh_key_resource": cloudtest.KeyResource, "endpoint_url": l.Cloud.URL()}
	l.Refuse = func(fields map[string]any) { fields["api_password"] = "wrong-key" }
	if ssh {
		l.Bind = l.SSH.Address
	}
	l.SetPublicKey = func(public string) { dialect.PublicKey = public }
	l.SetPageSize = func(n int) { dialect.PageSize = n }
	l.Expire = dialect.Expire
	l.UserData = func() string {
		in := asked(t, l)
		data, err := base64.StdEncoding.DecodeString(in.UserData)
		if err != nil || *in.ConfigDrive != (len(data) > 0) {
			t.Errorf("user data %q with drive %t, %v", in.UserData, *in.ConfigDrive, err)
		}
		return string(data)
	}
	return l, dialect
}

func TestCourse(t *testing.T) {
	t.Parallel()
	cloudtest.Course{
		New: func(t *testing.T, ssh bool) *cloudtest.Lab { l, _ := lab(t, ssh); return l }, ListOp: stack.List, ResetOp: stack.Action, SignInOp: stack.SignInV2,
		Unknown: []any{"absent", "../flavors", 7.0}, Broken: "No valid host was found.", BrokenSays: "No valid host",
		Busy: fakecloud.Fault{Op: stack.Delete, Status: 409, Message: "in task_state networking"},
		Refusals: []cloudtest.Refusal{
			{Fault: fakecloud.Fault{Status: 401}, Status: 201, Never: true, Message: "credentials"},
			{Fault: fakecloud.Fault{Status: 403, Message: "Forbidden"}, Status: 202, Never: true, Message: "Forbidden"},
			{Fault: fakecloud.Fault{Status: 413, Message: "Quota exceeded for ram: Requested 1024"}, Status: 202, Message: "Quota"},
			{Fault: fakecloud.Fault{Status: 404}, Status: 202}, {Fault: fakecloud.Fault{Status: 409, Message: "taken"}, Status: 202, Message: "taken"},
			{Fault: fakecloud.Fault{Status: 400, Message: "no " + stack.APIKey}, Status: 202, Never: true, Message: "[redacted]"},
			{Fault: fakecloud.Fault{Status: 413, RetryAfter: "30"}, Status: 1}, {Fault: fakecloud.Fault{Status: 429, RetryAfter: "900"}, Status: 1},
			{Fault: fakecloud.Fault{Status: 500}, Status: 1}, {Fault: fakecloud.Fault{Status: 503}, Status: 1},
		},
		Settings: []cloudtest.Setting{
			{Field: "api_password", Value: "wrong-key", Status: 201}, {Field: "api_password", Status: 201}, {Field: "api_user", Value: "other", Status: 201},
			{Field: "rackspace_region", Value: "syd", Status: 202}, {Field: "endpoint_url", Value: "nowhere", Status: 202}, {Field: "ssh_keypair", Value: "absent", Status: 202},
			{Field: "rackspace_auth_url", Value: "http://user@x/", Status: 202},
		},
		Flavors: []loom.ProbeFlavor{{ID: stack.Flavor, Name: stack.FlavorName, VCPU: 1, RAM: 2048}, {ID: "m1.large", Name: "large", VCPU: 4, RAM: 8192}}, Images: []loom.ProbeImage{{ID: stack.Image, Name: "debian-12"}}, Checks: []string{"sign in", "region", "key pair", "sizes", "images"},
		Wrong:  []cloudtest.Wrong{{Field: "api_password", Value: "wrong-key", Check: "sign in"}, {Field: "ssh_keypair", Value: "absent", Check: "key pair"}, {Field: "ssh_key_resource", Value: "absent", Check: "key pair"}, {Field: "rackspace_region", Value: "syd", Check: "region"}},
		Offers: []cloudtest.Offer{{Kind: loom.OfferFlavor, ID: stack.Flavor, OK: true, Message: "small"}, {Kind: loom.OfferFlavor, ID: "giant", OK: false, Message: "no such size"}, {Kind: loom.OfferImage, ID: stack.Image, OK: true, Message: "debian-12"}, {Kind: loom.OfferImage, ID: "debian-99", OK: false, Message: "no active image"}},
	}.Run(t)
}

func TestRequests(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	off := false
	want := stack.Wanted{Name: spec.Hostname, ImageRef: stack.Image, FlavorRef: stack.Flavor, KeyName: stack.KeyPair, ConfigDrive: &off,
		Metadata: map[string]string{"loom-node": string(spec.Node), "loom-key": spec.IdempotencyKey, "loom-cluster": "00000007", "loom-tenant": "Acme"}}
	if got := asked(t, l); !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %+v, not %+v", got, want)
	}
	if auth := spec.Results["ssh-auth"].(map[string]any); auth["password"] != stack.GeneratedPassword {
		t.Errorf("ssh-auth %v", auth)
	}
	spec.Provider.Fields["rackspace_bind_private"] = "on"
	if confirmed, _ := l.Must(spec, loom.ActionConfirm, 0); confirmed.Addresses[loom.AccessV4] != l.SSH.Address || confirmed.Addresses[loom.BindV4] != "192.0.2.7" {
		t.Errorf("over ServiceNet confirm gave %+v", confirmed)
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

// Without a key Loom signs in with a password, which it also knows of a machine
// whose answer was lost.
func TestPasswords(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Fields["ssh_key_resource"], l.Fields["ssh_keypair"], l.Fields["rackspace_config_drive"] = "", "", "true"
	passwords := map[string]bool{}
	for n, lost := range []bool{false, true} {
		spec := l.Spec(n)
		l.Cloud.Inject(fakecloud.Fault{Op: stack.Create, Lost: lost})
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
