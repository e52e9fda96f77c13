package external

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// echoing prints its request, environment and circumstances as log lines.
const echoing = `cat | sed 's/^/REQUEST /'; echo; env | sed 's/^/ENV /'; echo "ARGS $*"; echo "UMASK $(umask)"; echo "CORE $(ulimit -c)"; echo "FILES $(ulimit -n)"; echo "MEMORY $(ulimit -v)"
echo "FDS $(ls /proc/self/fd | tr '\n' ' ')"; echo "PWD $(pwd)"; echo "LIST $(ls -R | tr '\n' ' ')"; echo "SID $(ps -o sid= -p $$) $$"; `

func lines(r *record, prefix string) []string {
	var found []string
	for line := range strings.Lines(r.text()) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "stdout: "+prefix+" "); ok {
			found = append(found, text)
		}
	}
	return found
}

// TestCallOfAProvider: request, environment and circumstances are those of
// the protocol, and nothing else.
func TestCallOfAProvider(t *testing.T) {
	t.Parallel()
	h := host(t)
	h.Environ = []string{"PATH=" + os.Getenv("PATH"), "LOOM_SECRET_KEY=sealing", "LOOM_DATABASE_URL=postgres://x", "HOME=/root", "HTTPS_PROXY=http://proxy:3128", "ACME=passed", "OTHER=not"}
	files := t.TempDir()
	version := filepath.Join(t.TempDir(), "prod", "3")
	key := filepath.Join(version, "prod")
	for _, err := range []error{os.MkdirAll(version, 0o755), os.WriteFile(key, []byte("key"), 0o400), os.Mkdir(filepath.Join(files, "ssh_keys"), 0o755), os.Symlink(key, filepath.Join(files, "ssh_keys", "prod"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := load(t, h, plant(t, KindProvider, echoing+good, func(m map[string]any) {
		m["env"], m["limits"] = []string{"ACME", "ABSENT"}, map[string]int{"memory_mb": 700, "open_files": 99}
	}))
	r := &record{}
	spec := task(loom.ActionCreate)
	spec.Sensitive = append(spec.Sensitive, "not in the request")
	spec.PublicKey = "ssh-ed25519 AAAA"
	result, err := h.Provider(p, "lab-provider").Create(provider.WithEnv(t.Context(), provider.Env{Files: files}), spec, r)
	if err != nil || result.Status != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	var names []string
	for _, pair := range lines(r, "ENV") {
		name, value, _ := strings.Cut(pair, "=")
		names = append(names, name)
		if name == "HOME" && value == "/root" || name == "ACME" && value != "passed" || name == "LOOM_ACTION" && value != "create" {
			t.Errorf("variable %s", pair)
		}
	}
	slices.Sort(names)
	// sh itself adds PWD.
	want := "ACME HOME HTTPS_PROXY LANG LOOM_ACTION LOOM_ATTEMPT LOOM_CLUSTER_ID LOOM_DEADLINE LOOM_KIND LOOM_LOG_LEVEL LOOM_NODE_ID LOOM_PLUGIN_DIR LOOM_PROTOCOL LOOM_RESOURCES LOOM_SCRATCH LOOM_TASK_ID LOOM_TENANT_ID LOOM_TYPE PATH PWD TMPDIR"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("environment: %s", got)
	}
	for prefix, says := range map[string]string{"ARGS": `^provider create$`, "UMASK": `^0*77$`, "CORE": `^0$`, "FILES": `^99$`, "MEMORY": `^716800$`, "PWD": `/loom-plugin-[0-9]+/files$`, "LIST": `ssh_keys: prod`, "FDS": `^0 1 (10 )?2 (255 )?3$`} {
		if got := lines(r, prefix); len(got) != 1 || !regexp.MustCompile(says).MatchString(got[0]) {
			t.Errorf("%s: %q, not %s", prefix, got, says)
		}
	}
	if sid := strings.Fields(lines(r, "SID")[0]); len(sid) != 2 || sid[0] != sid[1] {
		t.Errorf("no session of its own: %v", sid)
	}
	// The log is redacted, so the fields show marks in place of secrets.
	var request struct {
		Protocol  int
		Kind      string
		Task      map[string]any
		Input     map[string]any
		SSH       any
		Resources map[string][]map[string]any
		Settings  map[string]any
		Labels    map[string]string
		Secrets   []string
	}
	if err := json.Unmarshal([]byte(lines(r, "REQUEST")[0]), &request); err != nil {
		t.Fatal(err)
	}
	fields, _ := request.Input["fields"].(map[string]any)
	if request.Protocol != 1 || request.Kind != "provider" || request.Task["taskId"] != "00000012-001-003" || request.SSH != nil || request.Input["sshuser"] != "root" ||
		request.Input["hostname"] != "shop12-1000.example.net" || request.Input["idempotencyKey"] != spec.IdempotencyKey || request.Input["publickey"] != spec.PublicKey ||
		fields["api_token"] != "[redacted]" || fields["site"] != "fra" || request.Labels["loom-key"] != spec.IdempotencyKey || request.Settings["connectivity_check"] != "none" {
		t.Errorf("request: %+v", request)
	}
	if _, there := fields["empty"]; there {
		t.Error("an empty field is given")
	}
	if keys := request.Resources["ssh_keys"]; len(keys) != 1 || keys[0]["path"] != "ssh_keys/prod" || keys[0]["version"] != 3.0 {
		t.Errorf("resources: %v", request.Resources)
	}
	if len(request.Secrets) != 1 {
		t.Errorf("secrets: %v", request.Secrets)
	}
	nothingLeft(t, h)
}

// TestAutomatorsGetNoCredentials of the provider unless the manifest asks.
func TestAutomatorsGetNoCredentials(t *testing.T) {
	t.Parallel()
	for _, needs := range []bool{false, true} {
		h := host(t)
		seen := filepath.Join(t.TempDir(), "request")
		p := load(t, h, plant(t, KindAutomator, "cat >"+seen, func(m map[string]any) {
			m["result"] = "exit-code"
			m["types"] = map[string]any{"lab-automator": map[string]any{"kind": KindAutomator, "needs_provider_credentials": needs}}
		}))
		spec := task(loom.ActionStart)
		spec.Provider.Fields["region"], spec.Provider.Fields["note"] = "eu", "has s3cr3t-t0ken in it"
		spec.Results = map[string]any{"ssh-auth": map[string]any{"user": "debian", "password": "machine-pass"}, "zone": "a"}
		spec.Config = map[string]any{"db": map[string]any{"password": "for-the-service"}}
		spec.Sensitive = append(spec.Sensitive, "machine-pass", "for-the-service")
		result, err := h.Automator(p, "lab-automator").Run(t.Context(), spec, nil, "", &record{})
		if err != nil || result.Status != 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		data, err := os.ReadFile(seen)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if strings.Contains(text, "s3cr3t-t0ken") != needs || strings.Contains(text, "machine-pass") || !strings.Contains(text, "for-the-service") ||
			!strings.Contains(text, `"ssh-auth":{"user":"debian"}`) || !strings.Contains(text, `"region":"eu"`) || !strings.Contains(text, `"unit":"nginx"`) {
			t.Errorf("needs %v: %s", needs, text)
		}
		nothingLeft(t, h)
	}
}

// TestActions: what a manifest leaves out is never called.
func TestActions(t *testing.T) {
	t.Parallel()
	h := host(t)
	p := load(t, h, plant(t, KindAutomator, `cat >/dev/null; [ "$2" = start ]`, func(m map[string]any) {
		m["result"] = "exit-code"
		m["types"] = map[string]any{"lab-automator": map[string]any{"kind": KindAutomator, "actions": []string{"start", "stop"}}}
	}))
	a := h.Automator(p, "lab-automator")
	if result, err := a.Bootstrap(t.Context(), task(loom.ActionBootstrap), nil, "", &record{}); err != nil || result.Status != 0 {
		t.Errorf("bootstrap: %+v, %v", result, err)
	}
	for action, status := range map[loom.TaskAction]int{loom.ActionStart: 0, loom.ActionStop: 1, loom.ActionInstall: 1} {
		result, err := a.Run(t.Context(), task(action), nil, "", &record{})
		if err != nil || result.Status != status {
			t.Errorf("%s: %+v, %v", action, result, err)
		}
		if action == loom.ActionInstall && (result.Retryable == nil || !strings.Contains(result.Message, "has no action install")) {
			t.Errorf("install: %+v", result)
		}
	}
}

// TestDeleteClears what CREATE stored, and credentials that are refused stay a
// failure.
func TestDeleteClears(t *testing.T) {
	t.Parallel()
	h := host(t)
	p := load(t, h, plant(t, KindProvider, `cat >/dev/null; echo '{"t":"result","status":0,"result":{"note":"x","providerid":"kept?"}}'`, nil))
	result, err := h.Provider(p, "lab-provider").Delete(t.Context(), task(loom.ActionDelete), &record{})
	if id, there := result.Result["providerid"]; err != nil || result.Status != 0 || !there || id != nil || result.Result["note"] != "x" {
		t.Errorf("%+v, %v", result, err)
	}
	p = load(t, h, plant(t, KindProvider, `exit 77`, nil))
	if result, err = h.Provider(p, "lab-provider").Delete(t.Context(), task(loom.ActionDelete), &record{}); err != nil || result.Status != 1 || result.Result != nil {
		t.Errorf("%+v, %v", result, err)
	}
	p = load(t, h, plant(t, KindProvider, `echo '{"t":"result","status":0}'`, nil))
	if result, err = h.Provider(p, "lab-provider").Confirm(t.Context(), task(loom.ActionConfirm), &record{}); err != nil || result.Status != 1 || !strings.Contains(result.Message, "access_v4") {
		t.Errorf("confirm without an address: %+v, %v", result, err)
	}
	missing := load(t, h, plant(t, KindProvider, "", nil))
	if err := os.WriteFile(filepath.Join(missing.Dir, "run"), []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if result, err = h.Provider(missing, "lab-provider").Create(t.Context(), task(loom.ActionCreate), &record{}); err != nil || result.Status != 200 || result.Retryable == nil || !strings.Contains(result.Message, "cannot be started") {
		t.Errorf("no interpreter: %+v, %v", result, err)
	}
	big := task(loom.ActionCreate)
	big.Config["x"] = strings.Repeat("x", MaxRequest)
	if result, err = h.Provider(p, "lab-provider").Create(t.Context(), big, &record{}); err != nil || result.Status != 200 || !strings.Contains(result.Message, "at most") {
		t.Errorf("a request that is too large: %+v, %v", result, err)
	}
	nothingLeft(t, h)
}
