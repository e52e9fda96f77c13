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
	"loom/provisioner/fakecloud/gce"
	"loom/provisioner/provider"
	"loom/provisioner/provider/google"
)

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

// A list that lacks a zone is none.
func TestUnreachableZone(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	dialect.Unreachable = true
	if _, err := l.Provider.(provider.Lister).List(l.Context(), l.Call()); err == nil || !strings.Contains(err.Error(), "europe-west1-b") {
		t.Errorf("a list that is not whole gave %v", err)
	}
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
