package digitalocean_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/cloudtest"
	"loom/provisioner/fakecloud/ocean"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/digitalocean"
)

func lab(t *testing.T, ssh bool) *cloudtest.Lab {
	t.Helper()
	dialect := ocean.New()
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return digitalocean.New(o) })
	dialect.PublicKey = l.PublicKey
	l.Flavor, l.Image, l.MakeOp = ocean.Size, ocean.Image, ocean.Create
	l.Secrets = []string{ocean.Token, "wrong-token"}
	l.Throttle = fakecloud.Fault{Status: 429, RetryAfter: "7"}
	l.Fields = map[string]any{"api_password": ocean.Token, "ssh_keypair": ocean.KeyName, "ssh_key_resource": cloudtest.KeyResource,
		"digitalocean_region": ocean.Region, "vpc_uuid": ocean.VPC, "endpoint_url": l.Cloud.URL()}
	l.Refuse = func(fields map[string]any) { fields["api_password"] = "wrong-token" }
	l.SetPublicKey = func(public string) { dialect.PublicKey = public }
	l.SetPageSize = func(n int) { dialect.PageSize = n }
	l.Elsewhere = func(fields map[string]any) { fields["endpoint_url"] = l.Cloud.URL() + "/elsewhere" }
	l.UserData = func() string { return asked(t, l).UserData }
	return l
}

func TestCourse(t *testing.T) {
	t.Parallel()
	cloudtest.Course{
		New: lab, ListOp: ocean.List, Unknown: []any{"31649999", 31649999.0, "no droplet", "-1"},
		Broken: "broken", BrokenSays: "switched off",
		Busy: fakecloud.Fault{Op: ocean.Delete, Status: 422, Message: "Droplet already has a pending event."},
		Refusals: []cloudtest.Refusal{
			{Fault: fakecloud.Fault{Status: 401}, Status: 201, Never: true, Message: "credentials"},
			{Fault: fakecloud.Fault{Status: 403}, Status: 202, Never: true, Message: "You are not authorized"},
			{Fault: fakecloud.Fault{Status: 409, Message: "taken"}, Status: 202, Message: "taken"},
			{Fault: fakecloud.Fault{Status: 422, Message: "creating this/these droplet(s) will exceed your droplet limit"}, Status: 202, Message: "limit"},
			{Fault: fakecloud.Fault{Status: 422, Message: "Size is not available in this region."}, Status: 202, Never: true},
			{Fault: fakecloud.Fault{Status: 422, Message: "the token is " + ocean.Token}, Status: 202, Never: true, Message: "[redacted]"},
			{Fault: fakecloud.Fault{Status: 429, RetryAfter: "30"}, Status: 1},
			{Fault: fakecloud.Fault{Status: 429, RetryAfter: "900"}, Status: 1},
			{Fault: fakecloud.Fault{Status: 429, Header: map[string]string{"RateLimit-Reset": fmt.Sprint(time.Now().Add(time.Hour).Unix())}}, Status: 1},
			{Fault: fakecloud.Fault{Status: 500}, Status: 1}, {Fault: fakecloud.Fault{Status: 502, Message: "<html>"}, Status: 1},
		},
		Settings: []cloudtest.Setting{
			{Change: func(s *loom.TaskSpec) { s.Flavor = "62" }, Status: 202, Message: "first version"}, {Change: func(s *loom.TaskSpec) { s.Image = "other" }, Status: 202},
			{Field: "ssh_keypair", Value: "absent", Status: 202}, {Field: "digitalocean_region", Value: "nyc2", Status: 202}, {Field: "endpoint_url", Value: "nowhere", Status: 202},
			{Field: "api_password", Status: 201}, {Field: "api_password", Value: "two\nlines", Status: 201}, {Field: "api_password", Value: "wrong-token", Status: 201},
		},
		Flavors: []loom.ProbeFlavor{{ID: ocean.Size, Name: "Basic", VCPU: 1, RAM: 1024}},
		Images:  []loom.ProbeImage{{ID: fmt.Sprint(ocean.ImageID), Name: "Debian golden"}, {ID: ocean.Image, Name: "Debian 12 x64"}},
		Checks:  []string{"sign in", "region", "key pair", "VPC", "sizes", "images"},
		Wrong: []cloudtest.Wrong{{Field: "api_password", Value: "wrong-token", Check: "sign in"}, {Field: "ssh_keypair", Value: "absent", Check: "key pair"}, {Field: "ssh_key_resource", Value: "absent", Check: "key pair"},
			{Field: "vpc_uuid", Value: "other", Check: "VPC"}, {Field: "digitalocean_region", Value: "nyc2", Check: "region"}},
		Offers: []cloudtest.Offer{
			{Kind: loom.OfferFlavor, ID: ocean.Size, OK: true, Message: "Basic"}, {Kind: loom.OfferFlavor, ID: "s-8vcpu-16gb", OK: false, Message: "offers no size"},
			{Kind: loom.OfferImage, ID: ocean.Image, OK: true, Message: "Debian 12 x64"}, {Kind: loom.OfferImage, ID: fmt.Sprint(ocean.ImageID), OK: true, Message: "Debian 12 x64"},
			{Kind: loom.OfferImage, ID: "market-elsewhere", OK: false, Message: "is not in region"}, {Kind: loom.OfferImage, ID: "nothing", OK: false, Message: "no such image"},
		},
	}.Run(t)
}

func TestRequests(t *testing.T) {
	t.Parallel()
	l := lab(t, false)
	l.Fields["monitoring"] = "on"
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	want := ocean.Wanted{Name: spec.Hostname, Region: ocean.Region, Size: ocean.Size, Image: ocean.Image, SSHKeys: []any{512190.0}, VPC: ocean.VPC, Monitoring: true,
		Tags: []string{"loom", "loom-cluster-00000007", "loom-key-" + spec.IdempotencyKey, "loom-node-" + string(spec.Node), "loom-tenant-_41cme"}}
	if in := asked(t, l).Wanted; !reflect.DeepEqual(in, want) {
		t.Errorf("asked for %+v, not %+v", in, want)
	}
	l.Image = fmt.Sprint(ocean.ImageID)
	l.Must(l.Spec(2), loom.ActionCreate, 0)
	if in := asked(t, l); in.Image != float64(ocean.ImageID) {
		t.Errorf("asked for image %v", in.Image)
	}
}

// asked returns the latest request for a machine.
func asked(t *testing.T, l *cloudtest.Lab) (in struct {
	ocean.Wanted
	UserData string `json:"user_data"`
}) {
	t.Helper()
	calls := l.Cloud.Calls(ocean.Create)
	if err := json.Unmarshal([]byte(calls[len(calls)-1].Body), &in); err != nil {
		t.Fatal(err)
	}
	return in
}

// A CREATE that is cancelled while the cloud makes the machine still hears which.
func TestCancelledWhileMaking(t *testing.T) {
	t.Parallel()
	l := lab(t, false)
	ctx, cancel := context.WithCancel(l.Context())
	defer cancel()
	interrupting := fakecloud.New(ocean.New(), func(context.Context, fakecloud.Machine) (fakecloud.Backing, error) {
		cancel()
		return fakecloud.Backing{}, nil
	})
	t.Cleanup(interrupting.Close)
	spec, sink := l.Spec(1), &cloudtest.Sink{}
	spec.Provider.Fields["endpoint_url"] = interrupting.URL()
	_, err := l.Provider.Create(ctx, spec, sink)
	if facts := sink.Facts(); interrupting.Counts().Live != 1 || len(facts) != 1 || facts[0]["providerid"] != interrupting.Machines()[0].ID {
		t.Errorf("%+v, reported %v, %v", interrupting.Counts(), facts, err)
	}
}
