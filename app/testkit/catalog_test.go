package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// watched is a test that is skipped or fails without the real one doing so.
type watched struct {
	testing.TB
	skipped, failed string
}

func (w *watched) Helper() {}

func (w *watched) Skipf(format string, args ...any) {
	w.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (w *watched) Fatalf(format string, args ...any) {
	w.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestCatalog: without an outside catalog a test is skipped with the reason, and fails where
// everything must run, unless the host is said to have none.
func TestCatalog(t *testing.T) { //nolint:paralleltest // it sets the environment
	whole := t.TempDir()
	for _, kind := range []string{"services", "clustertemplates"} {
		if err := os.Mkdir(filepath.Join(whole, kind), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const remedy = "name one in LOOM_TEST_CATALOG"
	for _, c := range []struct{ named, require, folder, skipped, failed string }{
		{named: whole, folder: whole},
		{named: whole, require: "1", folder: whole},
		{named: "/nowhere", skipped: remedy},
		{named: "/nowhere", require: "1", failed: remedy},
		{named: "none", skipped: "is “none”"},
		{named: "none", require: "1", skipped: "is “none”"},
	} {
		t.Setenv(catalogFolder, c.named)
		t.Setenv(Require, c.require)
		w, folder, done := &watched{TB: t}, "", make(chan bool)
		go func() {
			defer close(done)
			folder = Catalog(w)
		}()
		<-done
		if folder != c.folder || !strings.Contains(w.skipped, c.skipped) || (w.skipped == "") != (c.skipped == "") ||
			!strings.Contains(w.failed, c.failed) || (w.failed == "") != (c.failed == "") {
			t.Errorf("%+v: folder %q, skipped %q, failed %q", c, folder, w.skipped, w.failed)
		}
	}
	if folder, _ := catalogAt(""); !strings.HasSuffix(folder, "/shared/data/catalog") {
		t.Errorf("beside the repository: %s", folder)
	}
}
