//go:build e2e

package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loom/app/loom"
	"loom/app/secret"
	"loom/app/testkit"
	"loom/app/testkit/s3test"
	"loom/app/wiring"
)

// TestFilesInS3 is an installation of two provisioners, each with a data directory of its
// own, whose files are in S3. The store goes away and comes back, and a file is deleted there.
func TestFilesInS3(t *testing.T) {
	t.Parallel()
	server, db := s3test.New(t), testkit.NewDatabase(t)
	w := makeWorld(t, append([]string{"LOOM_MOCK=true", "LOOM_DATABASE_URL=" + db.DSN, "LOOM_SECRET_KEY=" + secret.GenerateKey(),
		"LOOM_RESOURCES_URL=" + server.URL()}, s3test.Environ...))
	// Their machines are those of one cloud, which is no part of Loom.
	one, two := t.TempDir(), t.TempDir()
	cloud := filepath.Join(t.TempDir(), wiring.InventedFile)
	for _, dir := range []string{one, two} {
		if err := os.Symlink(cloud, filepath.Join(dir, wiring.InventedFile)); err != nil {
			t.Fatal(err)
		}
	}
	m := newMockWorld(t, w, db.DSN, 0, []string{"LOOM_DATA_DIR=" + one})
	admin := w.client("demo", "admin", "admin")
	// upload puts a new version of a script in use and returns its object.
	upload := func(content string) (object string) {
		t.Helper()
		var made struct{ Version int }
		admin.call("POST", "/v2/plugins/automatortypes/shell/scripts/extra.sh", content, &made)
		admin.call("POST", fmt.Sprintf("/v2/plugins/automatortypes/shell/scripts/extra.sh/versions/%d/stage", made.Version), nil, nil)
		admin.call("POST", "/v2/plugins/sync", nil, nil)
		if err := m.db.Get(&object, `SELECT object FROM resources WHERE name = 'extra.sh' AND version = $1`, made.Version); err != nil {
			t.Fatal(err)
		}
		return object
	}
	// waits polls until a task of the cluster waits for files and says so in its log.
	waits := func(id string) {
		t.Helper()
		w.eventually("a task that waits for files", func() error {
			if n := m.count(`SELECT count(*) FROM tasks t JOIN operations o ON o.id = t.operation_id JOIN attempts a ON a.task_id = t.id
				JOIN task_logs l ON l.task_id = t.id AND l.attempt = a.number
				WHERE o.cluster_id = $1 AND t.status = 'ready' AND a.status = 'interrupted' AND t.message LIKE 'waits for files: The file store does not work: connection refused.%'
				AND l.text LIKE 'waits for files: %'`, id); n == 0 {
				return fmt.Errorf("none: %+v", m.user.tasks(id, 1))
			}
			return nil
		})
	}
	has := func(dir, version, content string) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, "provisioner/data/*/automatortypes/shell/scripts/extra.sh", version, "extra.sh"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", dir, found, err)
		}
		if text, err := os.ReadFile(found[0]); err != nil || string(text) != content {
			t.Errorf("%s: %q, %v", dir, text, err)
		}
	}

	upload("echo 1")
	server.Stop()
	first := m.user.create("slow", 3, nil)
	waits(first)
	status, answer, err := admin.try("POST", "/v2/plugins/automatortypes/shell/scripts/extra.sh", "echo 2")
	if err != nil || status < 500 || !strings.Contains(string(answer), "The file store does not work: connection refused. Check it and LOOM_RESOURCES_URL, then try again.") {
		t.Errorf("an upload without the store: %d %s, %v", status, answer, err)
	}
	if status, _, err := fetch(w.url + "/readyz"); err != nil || status != http.StatusOK {
		t.Errorf("/readyz without the store: %d, %v", status, err)
	}
	// One that starts now says what it lacks, and runs.
	other := w.start([]string{"LOOM_DATA_DIR=" + two, "LOOM_HEALTH_ADDR="}, "provisioner")
	w.eventually("a line in the log", func() error {
		if text := other.output(); !strings.Contains(text, "files can be neither stored nor fetched") || !strings.Contains(text, "LOOM_RESOURCES_URL") {
			return fmt.Errorf("%s", other.tail(20))
		}
		return nil
	})
	server.Start()
	m.user.waitActive(first)
	has(one, "1", "echo 1")

	// The other one alone, with files that it has never seen.
	m.provisioner.kill(t, syscall.SIGTERM)
	m.provisioner.waitEnd(t)
	upload("echo 2")
	second := m.user.create("slow", 3, nil)
	m.user.waitActive(second)
	has(two, "3", "echo 2") // the upload that failed was the second
	m.once()

	server.Delete(upload("echo 3"))
	third := m.user.create("slow", 1, nil)
	m.user.waitStatus(third, loom.ClusterTerminated) // nothing of it was made
	_, answer, err = m.user.try("GET", "/v2/clusters/"+third+"/operations", nil)
	if err != nil || !strings.Contains(string(answer), "the file scripts/extra.sh of shell, version ") || !strings.Contains(string(answer), "upload the file again and release it") {
		t.Errorf("a file that is lost: %s, %v", answer, err)
	}
	for _, p := range w.processes {
		if strings.Contains(p.output(), s3test.Secret) {
			t.Errorf("loom %s tells its credentials", strings.Join(p.args, " "))
		}
	}
}

// TestStoreWithoutCredentials: what is missing is said at start.
func TestStoreWithoutCredentials(t *testing.T) {
	t.Parallel()
	server, db := s3test.New(t), testkit.NewDatabase(t)
	w := makeWorld(t, []string{"LOOM_DATABASE_URL=" + db.DSN, "LOOM_RESOURCES_URL=" + server.URL(),
		"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_EC2_METADATA_DISABLED=true", "HOME=" + t.TempDir()})
	w.loom("migrate", "up")
	p := w.background("scheduler")
	if text := p.output(); !strings.Contains(text, "Loom has no credentials for the file store. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") {
		t.Error(text)
	}
	if _, text, code := w.try("seed"); code == 0 || !strings.Contains(text, "Loom has no credentials for the file store.") {
		t.Errorf("seed: status %d, %s", code, text)
	}
}
