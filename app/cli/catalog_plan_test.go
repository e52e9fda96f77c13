//go:build e2e

package cli

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/testkit"
)

// TestCatalogPlan asks a server what the import of its own export would do, as it is and with
// changes: the Markdown and the exit status say so, and nothing is stored.
func TestCatalogPlan(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	w := newMockWorld(t, makeWorld(t, []string{"LOOM_MOCK=true", "LOOM_DATABASE_URL=" + db.DSN}), db.DSN, 0, nil)
	admin := w.client("demo", "admin", "admin")
	const service = `{"name": "steps", "description": "Runs on the mock.", "provisioner": {"actions": {"install": %, "configure": %, "start": %, "stop": %}}}`
	action := func(delay string) string { return `{"type": "mock", "fields": {"delay_ms": "` + delay + `"}}` }
	admin.call("POST", "/v2/services", strings.ReplaceAll(service, "%", action("1")), nil)
	admin.call("POST", "/v2/clustertemplates", `{"name": "steps", "compatibility": {"hardwaretypes": ["mock"], "imagetypes": ["mock"], "services": ["steps"]}, "defaults": {"provider": "mock", "services": ["steps"], "hardwaretype": "mock", "imagetype": "mock"}}`, nil)
	w.user.waitActive(w.user.create("steps", 2, nil))

	export, err := http.NewRequest(http.MethodGet, w.url+"/v2/export", nil)
	if err != nil {
		t.Fatal(err)
	}
	export.Header = http.Header{"Authorization": {"Bearer " + admin.token}, "Accept": {"application/gzip"}}
	answer, err := rest.Do(export)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	dir := t.TempDir()
	unpack := exec.Command("tar", "-xz", "-C", dir)
	unpack.Stdin = answer.Body
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	env := []string{"LOOM_URL=" + w.url, "LOOM_TOKEN=" + w.token("demo", "admin", "read")}
	plan := func(code int, says string, args ...string) string {
		t.Helper()
		out, errOut, got := w.tryWith(env, append([]string{"catalog", "plan", dir}, args...)...)
		if got != code || !strings.Contains(errOut, says) {
			t.Errorf("%v: exit status %d, want %d, %s\n%s", args, got, code, errOut, out)
		}
		return out
	}
	has := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("the Markdown lacks %q:\n%s", part, text)
			}
		}
	}
	has(plan(0, "", "--fail-on", "restart"), "0 new, 0 changed", "No clusters are affected.")

	file := filepath.Join(dir, "services", "steps.json")
	writeTo(t, file, strings.ReplaceAll(service, "%", action("2")))
	has(plan(0, ""), "0 new, 1 changed", "### Effect on 1 cluster", "service steps v2", "| restart | steps | 1: shop |")
	plan(3, "the strongest effect is “restart”", "--fail-on", "restart")
	plan(0, "", "--fail-on", "replace")

	writeTo(t, filepath.Join(dir, "hardwaretypes", "mock.json"), `{"name": "mock", "providermap": {"mock": {"flavor": "other"}}}`)
	has(plan(3, "the strongest effect is “replace”", "--fail-on", "restart"), "| replace machines | 2 nodes | 1: shop |")
	plan(0, "", "--fail-on", "impossible")

	writeTo(t, filepath.Join(dir, "services", "bad.json"), `{"name": "worse"}`)
	has(plan(2, "1 entry is invalid", "--fail-on", "restart"), "1 invalid", "they must be the same")

	var services []struct{ Version int }
	admin.call("GET", "/v2/services/steps/versions", nil, &services)
	if len(services) != 1 {
		t.Errorf("versions %v: a plan stored something", services)
	}
	reader := &client{t, w.url, w.token("demo", "admin", "read"), nil}
	if status, _, err := reader.try("POST", "/v2/import?mode=merge", `{"services": []}`); status != 403 {
		t.Errorf("an import with a token that may only read: %d, %v", status, err)
	}
	env[1] = "LOOM_TOKEN=" + w.token("demo", "user", "clusters:write")
	plan(1, "Loom refused with status 403")
	env[1] = "LOOM_TOKEN=nothing"
	plan(1, "Loom refused with status 401")
}
