package external

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/confine"
)

// The test program is also the stage of the plugins it runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == confine.Command {
		os.Exit(confine.Main(os.Args[2:], nil))
	}
	os.Exit(m.Run())
}

// record is a sink that remembers.
type record struct {
	mu    sync.Mutex
	lines []string
	bytes int
	facts map[string]any
	// on is called with each line, to act while the plugin runs.
	on func(line string)
	// refuse is the error of Fact.
	refuse error
}

// Log remembers a line.
func (r *record) Log(stream, text string) {
	r.mu.Lock()
	r.bytes += len(text)
	if len(r.lines) < 10_000 {
		r.lines = append(r.lines, stream+": "+text)
	}
	on := r.on
	r.mu.Unlock()
	if on != nil {
		on(text)
	}
}

// Fact remembers facts.
func (r *record) Fact(facts map[string]any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return r.refuse
	}
	if r.facts == nil {
		r.facts = map[string]any{}
	}
	maps.Copy(r.facts, facts)
	return nil
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// plant writes a plugin: a shell script with a manifest that change may alter.
func plant(t testing.TB, kind, script string, change func(manifest map[string]any)) string {
	t.Helper()
	return plantAt(t, t.TempDir(), kind, "#!/bin/sh\n"+script, change)
}

func plantAt(t testing.TB, dir, kind, program string, change func(manifest map[string]any)) string {
	t.Helper()
	manifest := map[string]any{
		"protocol": []int{1}, "name": "lab", "version": "1", "command": []string{"./run"},
		"types": map[string]any{"lab-" + kind: map[string]any{"kind": kind}},
	}
	if change != nil {
		change(manifest)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{ManifestName: string(data), "run": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// host is quick to lose patience.
func host(t testing.TB) *Host {
	t.Helper()
	return &Host{Environ: os.Environ(), Scratch: t.TempDir(), Grace: 300 * time.Millisecond, linger: 200 * time.Millisecond}
}

func load(t testing.TB, h *Host, dir string) *Plugin {
	t.Helper()
	p, err := h.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func task(action loom.TaskAction) *loom.TaskSpec {
	spec := &loom.TaskSpec{
		Reach: loom.Anywhere(),
		Ref:   loom.TaskRef{Operation: loom.OperationRef{Cluster: 12, Number: 1}, Number: 3}, Tenant: "acme", Action: action, Attempt: 1,
		IdempotencyKey: "5f0e8c1a-2b7d-5a3c-9e4f-1d6b8a7c9e02", Node: "node-1", NodeNumber: 1000, Hostname: "shop12-1000.example.net",
		Flavor: "m2", Image: "debian-13", Results: map[string]any{}, Config: map[string]any{},
		Provider:  loom.Provider{Base: loom.Base{Name: "lab"}, Type: "lab-provider", Fields: map[string]any{"api_token": "s3cr3t-t0ken", "site": "fra", "empty": ""}, Sealed: []string{"api_token"}},
		Sensitive: []string{"s3cr3t-t0ken"},
	}
	if !action.OfNode() {
		spec.Service = &loom.TaskService{Name: "web", Action: loom.ServiceAction{Type: "lab-automator", Fields: map[string]string{"unit": "nginx"}}}
	}
	return spec
}

// create runs the script as the CREATE of a provider.
func create(t testing.TB, ctx context.Context, h *Host, script string, r *record) loom.TaskResult {
	t.Helper()
	result, err := h.Provider(load(t, h, plant(t, KindProvider, script, nil)), "lab-provider").Create(ctx, task(loom.ActionCreate), r)
	if err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, h)
	return result
}

// nothingLeft checks that no call left files or processes.
func nothingLeft(t testing.TB, h *Host) {
	t.Helper()
	entries, err := os.ReadDir(h.Scratch)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Errorf("%s is left in the scratch directory", entry.Name())
	}
	for _, pid := range running(h.Scratch) {
		t.Errorf("process %s is left", pid)
	}
}

// running lists the processes with a text in their environment.
func running(text string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if pid := filepath.Base(filepath.Dir(file)); pid != fmt.Sprint(os.Getpid()) {
			environ, err := os.ReadFile(file)
			if err == nil && strings.Contains(string(environ), "LOOM_SCRATCH="+text) {
				found = append(found, pid)
			}
		}
	}
	return found
}
