package google_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/google"
	"loom/provisioner/standin"
	"loom/provisioner/standin/cloudtest"
	"loom/provisioner/standin/gce"
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
	l.Throttle = standin.Fault{Status: 403, Code: "rateLimitExceeded"}
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
	l, dialect := lab(t, true)
	spec := l.Spec(1)
	made, sink := l.Must(spec, loom.ActionCreate, 0)
	if facts := sink.Facts(); len(facts) != 1 || facts[0]["providerid"] != "lab7-1001" || made.Result["providerid"] != "lab7-1001" {
		t.Errorf("reported %v, gave %v", facts, made.Result)
	}
	if auth := made.Result["ssh-auth"].(map[string]any); auth["identityfile"] != "ssh_keys/lab-key" || auth["user"] != "tester" {
		t.Errorf("ssh-auth is %v", auth)
	}
	wanted := l.Cloud.Machines()[0].Request.(gce.Wanted)
	lines := ""
	for _, item := range wanted.Metadata.Items {
		lines += item.Key + "=" + item.Value
	}
	if !strings.Contains(lines, "enable-oslogin=FALSE") || !strings.Contains(lines, "ssh-keys=tester:"+l.SSH.Key.Authorized) {
		t.Errorf("metadata %q", lines)
	}
	confirmed, _ := l.Must(spec, loom.ActionConfirm, 0)
	if confirmed.Addresses[loom.AccessV4] != l.SSH.Address || confirmed.Addresses[loom.BindV4] != "192.0.2.7" || confirmed.Hostname != "" {
		t.Errorf("confirm gave %+v", confirmed)
	}
	l.Must(spec, loom.ActionConfirm, 0) // again
	list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call())
	if err != nil || len(list) != 1 || list[0].Key != spec.IdempotencyKey || list[0].Node != spec.Node || list[0].Tenant != "Acme" ||
		list[0].Cluster != "00000007" || list[0].ID != "lab7-1001" {
		t.Errorf("list gave %+v, %v", list, err)
	}
	gone, _ := l.Must(spec, loom.ActionDelete, 0)
	for _, name := range []string{"providerid", "ssh-auth", "ssh_host_keys", "disks"} {
		if value, there := gone.Result[name]; !there || value != nil {
			t.Errorf("delete does not clear %s: %v", name, gone.Result)
		}
	}
	if left := dialect.Disks(); len(left) != 0 {
		t.Errorf("disks are left: %v", left)
	}
	// The name is free again.
	spec.IdempotencyKey = "5f0e8c1a-2b7d-5a3c-9e4f-000000000999"
	l.Must(spec, loom.ActionCreate, 0)
	l.Must(spec, loom.ActionConfirm, 0)
	l.Must(spec, loom.ActionDelete, 0)
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

func TestLostAnswersMakeOneMachine(t *testing.T) {
	t.Parallel()
	for _, f := range []standin.Fault{{Lost: true, Times: 1}, {Lost: true, Times: 3}, {Garbled: true}, {Status: 500, Times: 2}, {Status: 503}} {
		l, _ := lab(t, false)
		f.Op = gce.Insert
		l.Cloud.Inject(f)
		spec := l.Spec(1)
		result, _ := l.Must(spec, loom.ActionCreate, 0)
		if n := l.Cloud.Counts(); n.Live != 1 || n.Created != 1 || len(l.Cloud.Leaked(result.Result["providerid"].(string))) != 0 {
			t.Errorf("%+v: %+v", f, n)
		}
	}
	// What cannot be waited for is no failure: CONFIRM sees the rest.
	l, _ := lab(t, false)
	l.Cloud.Inject(standin.Fault{Op: gce.Wait, Lost: true, Times: -1})
	l.Must(l.Spec(1), loom.ActionCreate, 0)
}

// The name tells what the listing does not show yet.
func TestAdoption(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Cloud.Behave(standin.Behaviour{Unlisted: 100})
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

func TestDelete(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	l.Cloud.Behave(standin.Behaviour{Leaving: 3})
	dialect.KeepDisks(true)
	dialect.AddDisk("lab7-1001-data9", nil) // recorded by an earlier system
	dialect.AddDisk("lab7-1001-mine", nil)  // attached by somebody
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	l.Cloud.Inject(standin.Fault{Op: gce.DeleteDisk, Status: 400, Code: "resourceInUseByAnotherResource", Times: 2})
	spec.Results["disks"] = []any{"lab7-1001-data9", "lab7-1001-mine"}
	l.Must(spec, loom.ActionDelete, 0)
	if m := l.Cloud.Machines()[0]; m.State != standin.Gone {
		t.Errorf("delete did not wait: the machine is %s", m.State)
	}
	if left := dialect.Disks(); !slices.Equal(left, []string{"lab7-1001-mine"}) {
		t.Errorf("disks are left: %v", left)
	}
	spec.Results["providerid"] = "lab7-1001"
	l.Must(spec, loom.ActionDelete, 0) // twice
	for _, other := range []string{"", "lab7-1099", "No Instance/.."} {
		never := l.Spec(9)
		never.Results["providerid"] = other
		l.Must(never, loom.ActionDelete, 0)
	}
	forgotten := l.Spec(2)
	l.Must(forgotten, loom.ActionCreate, 0)
	forgotten.Results = map[string]any{}
	l.Must(forgotten, loom.ActionDelete, 0)
	// A CREATE that failed half-way left a disk.
	half := l.Spec(5)
	dialect.AddDisk("lab7-1005-data", map[string]string{"loom-key": half.IdempotencyKey})
	l.Must(half, loom.ActionDelete, 0)
	if n := l.Cloud.Counts(); n.Live != 0 || len(dialect.Disks()) != 1 {
		t.Errorf("delete by key left %+v, %v", n, dialect.Disks())
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
	// A zone that is not there must not pass for a machine that is gone.
	elsewhere := l.Spec(3)
	elsewhere.Results["providerid"], elsewhere.Provider.Fields["zone_name"] = "lab7-1003", "mars-central1-a"
	l.Must(elsewhere, loom.ActionDelete, 1)
}

func TestTwoNodesAtOnce(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	specs := []*loom.TaskSpec{l.Spec(1), l.Spec(2), l.Spec(1)}
	var wg sync.WaitGroup
	for _, spec := range specs {
		wg.Go(func() {
			if r, _, err := l.Do(l.Context(), spec, loom.ActionCreate); err != nil || r.Status != 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if n := l.Cloud.Counts(); n.Live != 2 || n.Doubles != 0 || specs[0].Results["providerid"] != specs[2].Results["providerid"] {
		t.Errorf("%+v", n)
	}
}

func TestMachinesThatFail(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	for i, c := range []struct {
		b       standin.Behaviour
		message string
	}{
		{standin.Behaviour{Break: "the host broke"}, "the host broke"},
		{standin.Behaviour{Pending: 1 << 30}, "did not run within 600 s"},
		{standin.Behaviour{NoAddress: true}, "no address"},
		{standin.Behaviour{Unseen: 1 << 30}, "quota"},
	} {
		l.Cloud.Behave(c.b)
		spec := l.Spec(10 + i)
		l.Must(spec, loom.ActionCreate, 0)
		if r, sink := l.Must(spec, loom.ActionConfirm, 1); !strings.Contains(r.Message, c.message) || r.Retryable != nil {
			t.Errorf("%+v gave %+v\n%s", c.b, r, sink.Text())
		}
		l.Cloud.Heal()
		l.Must(spec, loom.ActionDelete, 0)
	}
	if r, _ := l.Must(l.Spec(5), loom.ActionConfirm, 1); !strings.Contains(r.Message, "no machine") {
		t.Errorf("a node without a machine gave %+v", r)
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

func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Unreachable()
	l.Passes("sign in", "region", "key pair", "network", "sizes", "images")
}

func TestManyNodes(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	l.Many(gce.Token, dialect.Expire)
}
