package google_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/cloudtest"
	"loom/provisioner/fakecloud/gce"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/google"
)

func lab(t *testing.T, ssh bool) (*cloudtest.Lab, *gce.GCE) {
	t.Helper()
	dialect := gce.New()
	l := cloudtest.New(t, dialect, ssh, func(o cloud.Options) provider.Provider { return google.New(o) })
	keys := filepath.Join(provider.EnvOf(l.Context()).Files, "api_keys")
	if err := os.MkdirAll(keys, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"lab": dialect.Key(), "wrong": dialect.WrongKey(), "nonsense": []byte(`{"type":"service_account","private_key":"s3cret-half"}`),
		"person": []byte(`{"type":"authorized_user"}`)} {
		if err := os.WriteFile(filepath.Join(keys, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		var key struct {
			PrivateKey string `json:"private_key"`
		}
		if err := json.Unmarshal(content, &key); err != nil {
			t.Fatal(err)
		}
		if key.PrivateKey != "" {
			l.Secrets = append(l.Secrets, strings.Split(key.PrivateKey, "\n")[len(strings.Split(key.PrivateKey, "\n"))/2])
		}
	}
	l.Secrets = append(l.Secrets, "ya29.")
	l.Flavor, l.Image, l.MakeOp = gce.Size, gce.Image, gce.Insert
	l.Throttle = fakecloud.Fault{Status: 403, Code: "rateLimitExceeded"}
	l.Fields = map[string]any{"google_project": gce.Project, "google_client_email": "", "api_key_resource": "lab", "ssh_key_resource": cloudtest.KeyResource,
		"zone_name": gce.Zone, "external_ip": "true", "network": "default", "google_data_disk_size_gb": "20", "endpoint_url": l.Cloud.URL()}
	l.Refuse = func(fields map[string]any) { fields["api_key_resource"] = "wrong" }
	l.Moved = func(address string) { // the key says so
		var key map[string]string
		if err := json.Unmarshal(dialect.Key(), &key); err != nil {
			t.Fatal(err)
		}
		key["endpoint_url"] = address
		content, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(keys, "lab"), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.SetPageSize = func(n int) { dialect.PageSize = n }
	l.Expire = dialect.Expire
	l.Elsewhere = func(fields map[string]any) { fields["zone_name"] = "mars-central1-a" }
	l.UserData = func() (data string) {
		machines := l.Cloud.Machines()
		for _, item := range machines[len(machines)-1].Request.(gce.Wanted).Metadata.Items {
			if item.Key == "user-data" {
				data = item.Value
			}
		}
		return data
	}
	return l, dialect
}

func TestCourse(t *testing.T) {
	t.Parallel()
	cloudtest.Course{
		New: func(t *testing.T, ssh bool) *cloudtest.Lab { l, _ := lab(t, ssh); return l }, Idempotent: true,
		ListOp: gce.ListAll, NoImage: true, SignInOp: gce.Token, Unknown: []any{"lab7-1099", "No Instance/.."}, Broken: "the host broke", BrokenSays: "the host broke",
		Refusals: []cloudtest.Refusal{
			{Fault: fakecloud.Fault{Status: 401}, Status: 201, Never: true, Message: "credentials"},
			{Fault: fakecloud.Fault{Status: 403}, Status: 202, Never: true, Message: "forbidden"},
			{Fault: fakecloud.Fault{Status: 403, Code: "accessNotConfigured"}, Status: 202, Never: true},
			{Fault: fakecloud.Fault{Status: 403, Code: "quotaExceeded"}, Status: 202, Message: "quotaExceeded"},
			{Fault: fakecloud.Fault{Status: 409}, Status: 202, Message: "alreadyExists"},
			{Fault: fakecloud.Fault{Status: 404}, Status: 202}, {Fault: fakecloud.Fault{Status: 400}, Status: 202, Never: true},
			{Fault: fakecloud.Fault{Status: 403, Code: "rateLimitExceeded"}, Status: 1}, {Fault: fakecloud.Fault{Status: 429, RetryAfter: "20"}, Status: 1},
			{Fault: fakecloud.Fault{Status: 500}, Status: 1, Message: "backendError"}, {Fault: fakecloud.Fault{Status: 503}, Status: 1},
		},
		Settings: []cloudtest.Setting{
			{Field: "api_key_resource", Value: "wrong", Status: 201, Message: "invalid_grant"}, {Field: "api_key_resource", Value: "missing", Status: 201, Message: "api_key_resource"},
			{Field: "api_key_resource", Status: 201, Message: "api_key_resource"}, {Field: "api_key_resource", Value: "..", Status: 201, Message: "api_key_resource"},
			{Field: "api_key_resource", Value: "nonsense", Status: 201, Message: "no key of a service account"},
			{Field: "api_key_resource", Value: "person", Status: 201, Message: "no key of a service account"},
			{Field: "ssh_key_resource", Value: "missing", Status: 202, Message: "missing"}, {Field: "google_project", Status: 202, Message: "google_project"},
			{Field: "google_project", Value: "a/b", Status: 202, Message: "google_project"}, {Field: "google_project", Value: "other-project", Status: 202, Message: "forbidden"},
			{Field: "zone_name", Value: "us central", Status: 202, Message: "zone_name"}, {Field: "endpoint_url", Value: "ftp://cloud.example", Status: 202, Message: "endpoint_url"},
			{Field: "google_data_disk_size_gb", Value: "10,many", Status: 202, Message: "google_data_disk_size_gb"},
			{Field: "google_root_disk_size_gb", Value: "ten", Status: 202, Message: "google_root_disk_size_gb"},
			{Field: "google_root_disk_type", Value: "golden", Status: 202, Message: "google_root_disk_type"},
			{Field: "google_data_disk_type", Value: "golden", Status: 202, Message: "google_data_disk_type"}, {Field: "network", Value: "other", Status: 202, Message: "networkInterfaces"},
			{Change: func(s *loom.TaskSpec) { s.Image = "unknown" }, Status: 202}, {Change: func(s *loom.TaskSpec) { s.Flavor = "unknown" }, Status: 202},
			{Change: func(s *loom.TaskSpec) { s.Hostname = "7lab.local" }, Status: 202}, {Change: func(s *loom.TaskSpec) { s.Hostname = strings.Repeat("a", 60) + ".local" }, Status: 202},
		},
		Flavors: []loom.ProbeFlavor{{ID: gce.Size, Name: gce.Size, VCPU: 2, RAM: 2048}}, Images: []loom.ProbeImage{{ID: gce.Image, Name: gce.Image}},
		Checks: []string{"sign in", "region", "key pair", "network", "sizes", "images"},
		Wrong: []cloudtest.Wrong{{Field: "api_key_resource", Value: "wrong", Check: "sign in"}, {Field: "ssh_key_resource", Value: "other", Check: "key pair"}, {Field: "network", Value: "other", Check: "network"},
			{Field: "subnetwork", Value: "other", Check: "subnetwork"}, {Field: "zone_name", Value: "mars-central1-a", Check: "region"}},
		Offers: []cloudtest.Offer{
			{Kind: loom.OfferFlavor, ID: gce.Size, OK: true, Message: "2 vCPU, 2 GB RAM"}, {Kind: loom.OfferFlavor, ID: "e2-huge", OK: false, Message: "no such size"},
			{Kind: loom.OfferImage, ID: gce.Image, OK: true, Message: "has it."}, {Kind: loom.OfferImage, ID: gce.PublicImage, OK: true, Message: "has it."},
			{Kind: loom.OfferImage, ID: "family/debian-cloud/debian-12", OK: true, Message: gce.PublicImage}, {Kind: loom.OfferImage, ID: "family/debian-cloud/debian-99", OK: false, Message: "no such image"},
			{Kind: loom.OfferImage, ID: "projects/debian-cloud/global/images/nothing", OK: false, Message: "no such image"}, {Kind: loom.OfferImage, ID: "nothing", OK: false, Message: "have an image"},
			{Kind: loom.OfferImage, ID: "a/b", OK: false, Message: "is no image"},
		},
	}.Run(t)
}

func TestNameAndKeys(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, true)
	spec := l.Spec(1)
	if made, _ := l.Must(spec, loom.ActionCreate, 0); made.Result["providerid"] != "lab7-1001" {
		t.Errorf("gave %v", made.Result)
	}
	lines := ""
	for _, item := range l.Cloud.Machines()[0].Request.(gce.Wanted).Metadata.Items {
		lines += item.Key + "=" + item.Value
	}
	if !strings.Contains(lines, "enable-oslogin=FALSE") || !strings.Contains(lines, "ssh-keys=tester:"+l.SSH.Key.Authorized) {
		t.Errorf("metadata %q", lines)
	}
	l.Must(spec, loom.ActionDelete, 0)
	if left := dialect.Disks(); len(left) != 0 {
		t.Errorf("disks are left: %v", left)
	}
	// The name is free again.
	spec.IdempotencyKey = "5f0e8c1a-2b7d-5a3c-9e4f-000000000999"
	l.Must(spec, loom.ActionCreate, 0)
	l.Must(spec, loom.ActionConfirm, 0)
	l.Must(spec, loom.ActionDelete, 0)
}

// What cannot be waited for is no failure: CONFIRM sees the rest.
func TestLostWait(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Cloud.Inject(fakecloud.Fault{Op: gce.Wait, Lost: true, Times: -1})
	l.Must(l.Spec(1), loom.ActionCreate, 0)
}

// Disks that did not go with their instance are removed, but not those that somebody attached.
func TestDisksAreDeleted(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	dialect.KeepDisks(true)
	dialect.AddDisk("lab7-1001-data9", nil) // recorded by an earlier system
	dialect.AddDisk("lab7-1001-mine", nil)  // attached by somebody
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	l.Cloud.Inject(fakecloud.Fault{Op: gce.DeleteDisk, Status: 400, Code: "resourceInUseByAnotherResource", Times: 2})
	spec.Results["disks"] = []any{"lab7-1001-data9", "lab7-1001-mine"}
	l.Must(spec, loom.ActionDelete, 0)
	// A CREATE that failed half-way left a disk.
	half := l.Spec(5)
	dialect.AddDisk("lab7-1005-data", map[string]string{"loom-key": half.IdempotencyKey})
	l.Must(half, loom.ActionDelete, 0)
	if left := dialect.Disks(); !slices.Equal(left, []string{"lab7-1001-mine"}) {
		t.Errorf("disks are left: %v", left)
	}
}

// The script that mounts data disks finds none of these on the machine, and says
// nothing of any.
func TestConfirmLooksForDataDisks(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	l.Fields["google_data_disk_size_gb"] = "10,20"
	p := google.New(cloud.Options{Insecure: true, Pace: cloud.Pace{Sleep: l.Clock.Sleep}})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	sink := &cloudtest.Sink{}
	if r, err := p.Confirm(l.Context(), spec, sink); err != nil || r.Status != 0 || strings.Contains(sink.Text(), "formatted") {
		t.Errorf("confirm gave %+v, %v\n%s", r, err, sink.Text())
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	private := l.Spec(1)
	private.Provider.Fields["external_ip"] = "false"
	l.Must(private, loom.ActionCreate, 0)
	if n := l.Cloud.Machines()[0].Request.(gce.Wanted).NetworkInterfaces[0]; len(n.AccessConfigs) != 0 {
		t.Errorf("external_ip false gave %+v", n)
	}
	for n, c := range []struct{ field, value string }{{"external_ip", "false"}, {"bootstrap_interface", "bind_v4"}} {
		spec := l.Spec(2 + n)
		spec.Provider.Fields[c.field] = c.value
		l.Must(spec, loom.ActionCreate, 0)
		if got := google.AddressesOf(l.Context(), cloud.Options{Insecure: true, Pace: cloud.Pace{Sleep: l.Clock.Sleep}}, spec); got != [2]string{"192.0.2.7", "192.0.2.7"} {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// The name tells what the listing does not show yet.
func TestAdoption(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Cloud.Behave(fakecloud.Behaviour{Unlisted: 100})
	first := l.Spec(1)
	l.Must(first, loom.ActionCreate, 0)
	for attempt := 1; attempt < 4; attempt++ {
		again := l.Spec(1)
		again.Attempt = attempt
		l.Must(again, loom.ActionCreate, 0)
		if again.Results["providerid"] != "lab7-1001" || l.Cloud.Counts().Created != 1 {
			t.Errorf("attempt %d: %v, %+v", attempt, again.Results, l.Cloud.Counts())
		}
	}
	stranger := l.Spec(1)
	stranger.IdempotencyKey = "5f0e8c1a-2b7d-5a3c-9e4f-000000000777"
	if r, _ := l.Must(stranger, loom.ActionCreate, 202); !strings.Contains(r.Message, "not this node's") || stranger.Results["providerid"] != nil {
		t.Errorf("a name of somebody else's gave %+v", r)
	}
	if r, _ := l.Must(stranger, loom.ActionDelete, 0); r.Message != "" || l.Cloud.Counts().Live != 1 {
		t.Errorf("deleting a node without a machine gave %+v, %+v", r, l.Cloud.Counts())
	}
}
