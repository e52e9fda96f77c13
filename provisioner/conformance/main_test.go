package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"loom/provisioner"
	"loom/provisioner/confine"
	"loom/provisioner/conformance"
	"loom/provisioner/external"
	"loom/provisioner/provider/local"
)

// The test program is the stage of plugins, the plugin whose faults the checks
// have to find, and the first process of local machines.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == mutantCommand {
		mutant(os.Args[1:])
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case confine.Command:
			os.Exit(provisioner.Confined(os.Args[2:]))
		case local.StageCommand:
			os.Exit(local.Main(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// findings is a reporter that gathers.
type findings struct {
	mu                     sync.Mutex
	passed, skipped, found []string
	// until ends the checks once something was found that says so.
	until string
	stop  func()
}

// Pass notes a check.
func (f *findings) Pass(check string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passed = append(f.passed, check)
}

// Fail notes a finding.
func (f *findings) Fail(check, finding string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found = append(f.found, check+": "+finding)
	if f.until != "" && strings.Contains(finding, f.until) {
		f.stop()
	}
}

// Skip notes a check that was not made.
func (f *findings) Skip(check, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skipped = append(f.skipped, check+": "+why)
}

func (f *findings) has(text string) bool {
	return slices.ContainsFunc(f.found, func(s string) bool { return strings.Contains(s, text) })
}

var _ conformance.Reporter = (*findings)(nil)

// plant writes a plugin whose program is this test program.
func plant(t testing.TB, kind, fault, cloud string) *external.Plugin {
	t.Helper()
	return plantOf(t, "1.1", kind, fault, cloud)
}

// plantOf is plant for a plugin of a revision of the protocol.
func plantOf(t testing.TB, protocol, kind, fault, cloud string) *external.Plugin {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal(map[string]any{
		"protocol": []json.Number{json.Number(protocol)}, "name": "mutant", "version": "1", "description": "A plugin with a fault.", "command": []string{"./" + mutantCommand, fault, cloud},
		"types": map[string]any{"mutant": map[string]any{"kind": kind, "parameters": map[string]any{"admin": map[string]any{
			"fields": map[string]any{"token": map[string]any{"label": "Token", "type": "password"}}, "required": [][]string{{"token"}}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, external.ManifestName), manifest, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, mutantCommand)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := host(t).Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
