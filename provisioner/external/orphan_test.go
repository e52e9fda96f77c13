package external

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loom/app/loom"
)

// actAsHost makes the test program run the plugin in the directory that it names.
const actAsHost = "LOOM_TEST_ACT_AS_HOST"

// TestHostDies: a plugin whose provisioner is killed is told to end by the kernel.
func TestHostDies(t *testing.T) {
	if dir := os.Getenv(actAsHost); dir != "" {
		h := &Host{Environ: os.Environ(), Scratch: dir}
		p := load(t, h, filepath.Join(dir, "plugin"))
		_, err := h.Provider(p, "lab-provider").Create(context.Background(), task(loom.ActionCreate), &record{})
		t.Fatalf("the plugin ended: %v", err)
	}
	t.Parallel()
	dir := t.TempDir()
	plantAt(t, filepath.Join(dir, "plugin"), KindProvider, "#!/bin/sh\necho $$ >\"$LOOM_PLUGIN_DIR/../pid.new\"\nmv \"$LOOM_PLUGIN_DIR/../pid.new\" \"$LOOM_PLUGIN_DIR/../pid\"\nexec sleep 300\n", nil)
	dying := exec.Command(os.Args[0], "-test.run=^TestHostDies$")
	dying.Env = append(os.Environ(), actAsHost+"="+dir)
	if err := dying.Start(); err != nil {
		t.Fatal(err)
	}
	defer dying.Wait() //nolint:errcheck // it was killed
	var pid int
	eventually(t, "the plugin to run", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil && pid > 0
	})
	if err := dying.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the plugin", func() bool {
		state, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(state), ") Z ")
	})
}

// eventually polls, for at most half a minute.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
