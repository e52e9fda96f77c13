package google_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/google"
	"loom/provisioner/standin"
	"loom/provisioner/standin/cloudtest"
	"loom/provisioner/standin/gce"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Refusals([]cloudtest.Refusal{
		{Fault: standin.Fault{Status: 401}, Status: 201, Never: true, Message: "credentials"},
		{Fault: standin.Fault{Status: 403}, Status: 202, Never: true, Message: "forbidden"},
		{Fault: standin.Fault{Status: 403, Code: "accessNotConfigured"}, Status: 202, Never: true},
		{Fault: standin.Fault{Status: 403, Code: "quotaExceeded"}, Status: 202, Message: "quotaExceeded"},
		{Fault: standin.Fault{Status: 409}, Status: 202, Message: "alreadyExists"},
		{Fault: standin.Fault{Status: 404}, Status: 202},
		{Fault: standin.Fault{Status: 400}, Status: 202, Never: true},
		{Fault: standin.Fault{Status: 403, Code: "rateLimitExceeded"}, Status: 1},
		{Fault: standin.Fault{Status: 429, RetryAfter: "20"}, Status: 1},
		{Fault: standin.Fault{Status: 500}, Status: 1, Message: "backendError"},
		{Fault: standin.Fault{Status: 503}, Status: 1},
	})
}

// Quota and capacity are reported by the operation, after the request was taken.
func TestOperationsThatFail(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	for n, c := range []struct {
		code   string
		status int
		never  bool
	}{
		{"QUOTA_EXCEEDED", 202, false}, {"ZONE_RESOURCE_POOL_EXHAUSTED", 202, false}, {"RESOURCE_NOT_FOUND", 202, true}, {"RESOURCE_ALREADY_EXISTS", 202, false},
		{"PERMISSIONS_ERROR", 202, true}, {"UNSUPPORTED_OPERATION", 202, true},
	} {
		spec := l.Spec(n)
		dialect.FailNext(gce.Failure{Code: c.code, Message: "no more of it"})
		r, _ := l.Must(spec, loom.ActionCreate, c.status)
		if never := r.Retryable != nil && !*r.Retryable; never != c.never || !strings.Contains(r.Message, c.code) || spec.Results["providerid"] != nil {
			t.Errorf("%s gave %+v", c.code, r)
		}
		// The cloud remembers the failure with the request; another try must not hear it again.
		again := l.Spec(n)
		again.Attempt = 2
		l.Must(again, loom.ActionCreate, 0)
	}
	// Trouble that passes is waited out, under another request.
	dialect.FailNext(gce.Failure{Code: "INTERNAL_ERROR"}, gce.Failure{Code: "RATE_LIMIT_EXCEEDED"})
	l.Must(l.Spec(20), loom.ActionCreate, 0)
	// Each of these has an id of its own, also over the attempts.
	dialect.FailNext(gce.Failure{Code: "INTERNAL_ERROR"}, gce.Failure{Code: "QUOTA_EXCEEDED"}, gce.Failure{Code: "INTERNAL_ERROR"}, gce.Failure{Code: "QUOTA_EXCEEDED"})
	for attempt, status := range []int{202, 202, 0} {
		spec := l.Spec(21)
		spec.Attempt = attempt + 1
		l.Must(spec, loom.ActionCreate, status)
	}
	ids := map[string]bool{}
	for _, m := range l.Cloud.Machines() {
		ids[m.ID] = true
	}
	if n := l.Cloud.Counts(); n.Doubles != 0 || n.Live != 8 || len(ids) != 8 {
		t.Errorf("%+v", n)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	for _, c := range []struct {
		field, value string
		status       int
		message      string
	}{
		{"api_key_resource", "wrong", 201, "invalid_grant"},
		{"api_key_resource", "missing", 201, "api_key_resource"},
		{"api_key_resource", "", 201, "api_key_resource"},
		{"api_key_resource", "..", 201, "api_key_resource"},
		{"api_key_resource", "nonsense", 201, "no key of a service account"},
		{"api_key_resource", "person", 201, "no key of a service account"},
		{"ssh_key_resource", "missing", 202, "missing"},
		{"google_project", "", 202, "google_project"},
		{"google_project", "a/b", 202, "google_project"},
		{"google_project", "other-project", 202, "forbidden"},
		{"zone_name", "us central", 202, "zone_name"},
		{"endpoint_url", "ftp://cloud.example", 202, "endpoint_url"},
		{"google_data_disk_size_gb", "10,many", 202, "google_data_disk_size_gb"},
		{"google_root_disk_size_gb", "ten", 202, "google_root_disk_size_gb"},
		{"google_root_disk_type", "golden", 202, "google_root_disk_type"},
		{"google_data_disk_type", "golden", 202, "google_data_disk_type"},
		{"network", "other", 202, "networkInterfaces"},
	} {
		spec := l.Spec(1)
		spec.Provider.Fields[c.field] = c.value
		if r, _ := l.Must(spec, loom.ActionCreate, c.status); !strings.Contains(r.Message, c.message) || r.Retryable == nil || *r.Retryable {
			t.Errorf("%s %q gave %+v", c.field, c.value, r)
		}
	}
	for _, change := range []func(*loom.TaskSpec){
		func(s *loom.TaskSpec) { s.Image = "unknown" }, func(s *loom.TaskSpec) { s.Image = "" }, func(s *loom.TaskSpec) { s.Flavor = "" },
		func(s *loom.TaskSpec) { s.Flavor = "unknown" }, func(s *loom.TaskSpec) { s.Hostname = "7lab.local" },
		func(s *loom.TaskSpec) { s.Hostname = strings.Repeat("a", 60) + ".local" },
	} {
		spec := l.Spec(1)
		change(spec)
		l.Must(spec, loom.ActionCreate, 202)
	}
	secure := google.New(cloud.Options{})
	if r, err := secure.Create(l.Context(), l.Spec(1), &cloudtest.Sink{}); err != nil || r.Status != 202 || !strings.Contains(r.Message, "LOOM_ALLOW_INSECURE_ENDPOINTS") {
		t.Errorf("an address without HTTPS gave %+v, %v", r, err)
	}
	if n := l.Cloud.Counts(); n.Created != 0 {
		t.Errorf("something was made: %+v", n)
	}
}

// A key says itself where tokens are to be had, so that has to be a safe place too,
// and its trouble is nothing that can have made a machine.
func TestTokenEndpoint(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	status := http.StatusServiceUnavailable
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(server.Close)
	var key map[string]string
	if err := json.Unmarshal(dialect.Key(), &key); err != nil {
		t.Fatal(err)
	}
	key["endpoint_url"] = l.Cloud.URL()
	for uri, status := range map[string]int{server.URL: 1, "http://127.0.0.1:1/token": 202, "file:///etc/passwd": 202} {
		key["token_uri"] = uri
		data, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(provider.EnvOf(l.Context()).Files, "api_keys", "lab"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		l.Must(l.Spec(1), loom.ActionCreate, status)
	}
	if calls := l.Cloud.Calls(""); len(calls) != 0 {
		t.Errorf("calls without a token: %v", calls)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	image := "projects/" + gce.Project + "/global/images/" + gce.Image
	for name, c := range map[string]struct {
		fields map[string]any
		image  string
		want   string
	}{
		"usual":        {nil, "", "lab7-1001:" + image + ":12:pd-standard:true lab7-1001-data:::20:pd-standard:true@loom-data1 net=global/networks/default sub= nat=1 restart=false"},
		"disks":        {map[string]any{"google_data_disk_size_gb": "0, 30,-1,40", "google_data_disk_type": "balanced", "google_root_disk_type": "ssd", "google_root_disk_size_gb": 50.0}, "", "lab7-1001:" + image + ":50:pd-ssd:true lab7-1001-data:::30:pd-balanced:true@loom-data1 lab7-1001-data2:::40:pd-balanced:true@loom-data2 net=global/networks/default sub= nat=1 restart=false"},
		"no data disk": {map[string]any{"google_data_disk_size_gb": "0", "auto_restart": "on", "external_ip": "false"}, "", "lab7-1001:" + image + ":12:pd-standard:true net=global/networks/default sub= nat=0 restart=true"},
		"subnetwork":   {map[string]any{"google_data_disk_size_gb": "0", "subnetwork": gce.Subnetwork}, "", "lab7-1001:" + image + ":12:pd-standard:true net= sub=regions/us-central1/subnetworks/lab-net nat=1 restart=false"},
		"public image": {map[string]any{"google_data_disk_size_gb": "0"}, gce.PublicImage, "lab7-1001:projects/debian-cloud/global/images/" + gce.PublicImage + ":10:pd-standard:true net=global/networks/default sub= nat=1 restart=false"},
		"family":       {map[string]any{"google_data_disk_size_gb": "0"}, "family/debian-cloud/debian-12", "lab7-1001:projects/debian-cloud/global/images/family/debian-12:10:pd-standard:true net=global/networks/default sub= nat=1 restart=false"},
		"address of a path": {map[string]any{"google_data_disk_size_gb": "0"}, "https://www.googleapis.com/compute/v1/projects/x/global/images/y",
			"lab7-1001:projects/x/global/images/y:10:pd-standard:true net=global/networks/default sub= nat=1 restart=false"},
	} {
		l, _ := lab(t, false)
		for field, value := range c.fields {
			l.Fields[field] = value
		}
		spec := l.Spec(1)
		if c.image != "" {
			spec.Image = c.image
		}
		l.Must(spec, loom.ActionCreate, 0)
		in := l.Cloud.Machines()[0].Request.(gce.Wanted)
		var got []string
		for _, d := range in.Disks {
			p := d.InitializeParams
			text := fmt.Sprintf("%s:%s:%d:%s:%t", p.DiskName, p.SourceImage, p.DiskSizeGb, p.DiskType[strings.LastIndexByte(p.DiskType, '/')+1:], d.AutoDelete)
			if d.DeviceName != "" {
				text = strings.Replace(text, "::", ":::", 1) + "@" + d.DeviceName
			}
			if p.Labels["loom-key"] != spec.IdempotencyKey {
				t.Errorf("%s: labels of a disk are %v", name, p.Labels)
			}
			got = append(got, text)
		}
		n := in.NetworkInterfaces[0]
		got = append(got, fmt.Sprintf("net=%s sub=%s nat=%d restart=%t", n.Network, n.Subnetwork, len(n.AccessConfigs), *in.Scheduling.AutomaticRestart))
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", name, text, c.want)
		}
		if !slices.Contains(in.Tags.Items, "loom") || in.Labels["loom-tenant"] != "_41cme" || in.Labels["loom-node"] != string(spec.Node) {
			t.Errorf("%s: tags %v, labels %v", name, in.Tags, in.Labels)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	dialect.PageSize = 2
	for n := range 5 {
		l.Must(l.Spec(n), loom.ActionCreate, 0)
	}
	lister := l.Provider.(provider.Lister)
	if list, err := lister.List(l.Context(), l.Call()); err != nil || len(list) != 5 {
		t.Errorf("list gave %d machines, %v", len(list), err)
	}
	l.Cloud.Inject(standin.Fault{Op: gce.ListAll, Status: 403})
	if _, err := lister.List(l.Context(), l.Call()); err == nil {
		t.Error("a list that is refused is no error")
	}
	dialect.Unreachable = true
	if _, err := lister.List(l.Context(), l.Call()); err == nil || !strings.Contains(err.Error(), "europe-west1-b") {
		t.Errorf("a list that is not whole gave %v", err)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
	if err != nil || !probe.OK || len(probe.Flavors) != 1 || probe.Flavors[0] != (loom.ProbeFlavor{ID: gce.Size, Name: gce.Size, VCPU: 2, RAM: 2048}) ||
		len(probe.Images) != 1 || probe.Images[0].ID != gce.Image {
		t.Errorf("probe gave %+v, %v", probe, err)
	}
	for field, c := range map[string]struct{ value, check string }{
		"api_key_resource": {"wrong", "sign in"}, "ssh_key_resource": {"other", "key pair"}, "network": {"other", "network"},
		"subnetwork": {"other", "subnetwork"}, "zone_name": {"mars-central1-a", "region"}, "endpoint_url": {"nonsense", "settings"},
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
		if err != nil || probe.OK || failed != c.check {
			t.Errorf("%s %q: %+v, %v", field, c.value, probe.Checks, err)
		}
	}
}

func TestInjectedHostKey(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.InjectsHostKey(func() (data string) {
		machines := l.Cloud.Machines()
		for _, item := range machines[len(machines)-1].Request.(gce.Wanted).Metadata.Items {
			if item.Key == "user-data" {
				data = item.Value
			}
		}
		return data
	}, true)
}

// TestTokenEndpointBehindTheWall: the address in the key is under the same rule as that of the
// API, by name too.
func TestTokenEndpointBehindTheWall(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	t.Cleanup(server.Close)
	var key map[string]string
	if err := json.Unmarshal(dialect.Key(), &key); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), "http://169.254.169.254/token", "http://10.0.0.1"} {
		key["token_uri"] = uri
		data, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(provider.EnvOf(l.Context()).Files, "api_keys", "walled"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		spec := l.Spec(1)
		spec.Reach = loom.Reach{}
		spec.Provider.Fields["api_key_resource"], spec.Provider.Fields["endpoint_url"] = "walled", "https://compute.googleapis.com"
		result, _, err := l.Do(l.Context(), spec, loom.ActionCreate)
		if err != nil || result.Status != 202 || result.Retryable == nil || *result.Retryable || !strings.Contains(result.Message, "LOOM_PROVIDER_NETWORKS") {
			t.Errorf("%s gave %+v, %v", uri, result, err)
		}
	}
	if calls != 0 {
		t.Errorf("%d calls", calls)
	}
}

// The tokens of a key go where Google's API is, or where the key's own file says: who
// names the key in a provider, and writes its address, need not know the key.
func TestTokensGoWhereTheKeySays(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	elsewhere, hits := httptest.NewServer(nil), atomic.Int64{}
	elsewhere.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	t.Cleanup(elsewhere.Close)
	spec := l.Spec(1)
	spec.Provider.Fields["endpoint_url"] = elsewhere.URL
	result, _, err := l.Do(l.Context(), spec, loom.ActionCreate)
	if err != nil || result.Status != 202 || result.Retryable == nil || *result.Retryable || !strings.Contains(result.Message, "endpoint_url") {
		t.Errorf("a task gave %+v, %v", result, err)
	}
	call := l.Call()
	call.Provider = spec.Provider
	if probe, err := l.Provider.(provider.Prober).Probe(l.Context(), call); err != nil || probe.OK {
		t.Errorf("a probe gave %+v, %v", probe, err)
	}
	if _, err := l.Provider.(provider.Lister).List(l.Context(), call); err == nil {
		t.Error("a sweep was not refused")
	}
	if calls := l.Cloud.Calls(""); hits.Load() != 0 || len(calls) != 0 {
		t.Errorf("%d calls came elsewhere, and tokens were asked for: %v", hits.Load(), calls)
	}
	for _, c := range []struct {
		member, value, endpoint string
		want                    bool
	}{
		{"", "", "https://compute.googleapis.com", true}, {"", "", "https://loom.p.GoogleAPIs.com/compute/v1", true}, {"", "", "http://compute.googleapis.com", false},
		{"", "", "https://googleapis.com.evil.example", false}, {"", "", "https://evilgoogleapis.com", false}, {"", "", l.Cloud.URL() + "/x", true},
		{"universe_domain", "cloud.example", "https://compute.cloud.example", true}, {"universe_domain", "", "https://cloud.example", false}, {"universe_domain", ".", "https://cloud.example", false},
		{"endpoint_url", "https://gate.example:8443/google", "https://gate.example:8443", true}, {"endpoint_url", "https://gate.example:8443", "https://gate.example", false},
		{"endpoint_url", "https://gate.example", "http://gate.example", false}, {"endpoint_url", "", "https://gate.example", false},
	} {
		var key map[string]string
		if err := json.Unmarshal(dialect.Key(), &key); err != nil {
			t.Fatal(err)
		}
		key[c.member] = c.value
		data, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		if got := google.Names(data, key["token_uri"], c.endpoint); got != c.want {
			t.Errorf("%s with %s %q: %t", c.endpoint, c.member, c.value, got)
		}
	}
}
