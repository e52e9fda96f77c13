//go:build e2e

package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestBench takes the figures of a small cluster and few tasks.
func TestBench(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	temp := t.TempDir()
	if err := os.Chmod(temp, 0o711); err != nil { // the private database passes through
		t.Fatal(err)
	}
	w.env = append(w.env, "TMPDIR="+temp)
	out := w.loom("bench", "--tasks", "100", "2")
	for _, row := range []string{
		`(?m)^ +2 +14 +[0-9.]+ s +[0-9.]+ s`, `(?m)^ *provisioner +[0-9]+ +[0-9]+ +[0-9]+ *$`, `tasks per second +[1-9][0-9]*`, `p99 +[0-9.]+ ms`,
	} {
		if !regexp.MustCompile(row).MatchString(out) {
			t.Errorf("no row %s in:\n%s", row, out)
		}
	}
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("loom bench left %v, %v", left, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), temp) {
		t.Errorf("loom bench left a mount: %v", err)
	}
}
