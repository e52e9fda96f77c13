package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loom/app/loom"
)

// endlessBuilder stands in for mmdebstrap and never ends. As apt does with dpkg, it
// writes from a process in a session of its own, out of reach of a signal to its group.
const endlessBuilder = `#!/bin/sh
for word; do case $word in */root) root=$word ;; esac; done
setsid sh -c 'n=0; while :; do n=$((n+1)); mkdir -p "$1/$((n%100))/x"; : > "$1/$((n%100))/x/$n"; sleep 0.01; done' sh "$root" &
sleep 1000 &
echo 'I: installing packages...'
wait
`

// endless returns a Local whose base roots are never ready, as another process with the
// same data directory would.
func endless(t *testing.T, dir string) *Local {
	t.Helper()
	l, err := New(Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(); err != nil {
		if os.Getenv("LOOM_TEST_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	l.builder = filepath.Join(dir, "builder")
	if err := os.WriteFile(l.builder, []byte(endlessBuilder), 0o700); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCloseEndsBuilds: when Close is back, no process writes into a base root any longer,
// nothing of the root is left, and no other build begins.
func TestCloseEndsBuilds(t *testing.T) {
	t.Parallel()
	l := endless(t, t.TempDir())
	var lines []string
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- l.Prepare(t.Context(), []string{"bookworm"}, func(line string) {
			if lines = append(lines, line); strings.Contains(line, "installing packages...") {
				close(began)
			}
		})
	}()
	select {
	case <-began:
	case err := <-ended:
		t.Fatal(err)
	}
	root := filepath.Join(l.baseDir, "."+image{Suite: "bookworm"}.hash()+".tmp", "root")
	poll(t, time.Minute, "the build writes", func() error {
		_, err := os.Stat(filepath.Join(root, "1"))
		return err
	})
	l.Close()
	assertNoBuild(t, l)
	if err := <-ended; !errors.Is(err, loom.Unavailable) || !strings.Contains(err.Error(), "Loom ends") {
		t.Errorf("who waited for the build: %v", err)
	}
	want := []string{
		"Preparing image bookworm for its first use on this host, which takes a minute or two.",
		"Preparing the image: installing packages...",
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("log\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if err := l.Prepare(t.Context(), []string{"bookworm"}, nil); !errors.Is(err, loom.Unavailable) {
		t.Errorf("a build after Close: %v", err)
	}
	assertNoBuild(t, l)
	l.Close() // once more does nothing
}

// TestBuildEndsWithLoom kills the process that builds.
func TestBuildEndsWithLoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := endless(t, dir)
	cmd := exec.Command(os.Args[0], "-test.run=^TestBuilder$", "-test.count=1")
	cmd.Env = append(os.Environ(), "LOOM_TEST_BUILDER="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(l.baseDir, "."+image{Suite: "bookworm"}.hash()+".tmp")
	poll(t, time.Minute, "the build writes", func() error {
		_, err := os.Stat(filepath.Join(temp, "root", "1"))
		return err
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// The lock is free once the last process of the build is gone.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	held, err := lockFile(ctx, filepath.Join(l.baseDir, image{Suite: "bookworm"}.hash()+".lock"))
	if err != nil {
		t.Fatalf("the build goes on: %v", err)
	}
	held.Close()
	if left := buildersOf(t, l); len(left) > 0 {
		t.Errorf("processes %v of the build are left", left)
	}
}

// TestBuilder is the process that TestBuildEndsWithLoom kills.
func TestBuilder(t *testing.T) {
	dir := os.Getenv("LOOM_TEST_BUILDER")
	if dir == "" {
		t.Skip("only run by TestBuildEndsWithLoom")
	}
	t.Error(endless(t, dir).Prepare(t.Context(), []string{"bookworm"}, nil))
}

// assertNoBuild checks that neither processes nor files of a build are left.
func assertNoBuild(t *testing.T, l *Local) {
	t.Helper()
	if left := buildersOf(t, l); len(left) > 0 {
		t.Errorf("processes %v of the build are left", left)
	}
	entries, err := os.ReadDir(l.baseDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			t.Errorf("%s is left of the build", e.Name())
		}
	}
}

// buildersOf lists the processes with a base root of l among their arguments.
func buildersOf(t *testing.T, l *Local) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatal(fmt.Errorf("no processes are seen: %w", err))
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(l.baseDir)) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}
