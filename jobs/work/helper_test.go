package work_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"loom/app/execution"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/secret"
	"loom/app/store"
	"loom/jobs/work"
)

// The test program started with these becomes a process of Loom that can be
// killed for real.
const (
	helperDSN  = "LOOM_TEST_HELPER_DSN"
	helperKind = "LOOM_TEST_HELPER_KIND"
	helperData = "LOOM_TEST_HELPER_DATA"
)

// helper is the main function of such a process. Its tasks never end by
// themselves, but for those of the kind "quick".
func helper(dsn string) {
	ctx := context.Background()
	db, err := store.Open(ctx, dsn, 6)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	ring, _ := secret.ParseKeys(secret.GenerateKey())
	common := work.Common{DSN: dsn, Operations: execution.New(db, ring, execution.Options{Logger: quiet()}),
		Processes: processes.New(db, times), Logger: quiet(), Test: true}
	kind := os.Getenv(helperKind)
	if kind == "scheduler" {
		s := &work.Scheduler{Common: common, ReapEvery: 50 * time.Millisecond, ReconcileEvery: 200 * time.Millisecond}
		fmt.Println("up")
		err = s.Run(ctx)
	} else {
		runner := newRunner(func(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult {
			if kind == "quick" {
				return loom.TaskResult{}
			}
			fmt.Println("task", spec.Ref.Number)
			<-ctx.Done()
			return loom.TaskResult{Status: -1, Interrupted: true}
		})
		if kind == "chaos" {
			runner = chaosRunner(uint64(os.Getpid()))
		}
		p := &work.Provisioner{Common: common, Runner: runner, Capacity: 50, DataDir: os.Getenv(helperData)}
		fmt.Println("up")
		err = p.Run(ctx)
	}
	fmt.Println("end", err)
}

// child is a helper process.
type child struct {
	cmd   *exec.Cmd
	lines chan string
}

func (w *world) child(kind string) *child {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperDSN+"="+w.db.DSN, helperKind+"="+kind, helperData+"="+w.t.(*testing.T).TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	c := &child{cmd, make(chan string, 1000)}
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	w.t.Cleanup(c.kill)
	return c
}

// kill is kill -9.
func (c *child) kill() {
	c.cmd.Process.Kill() //nolint:errcheck // it may be gone already
	c.cmd.Wait()         //nolint:errcheck // killed
}

// says waits for a line that begins with prefix.
func (c *child) says(t testing.TB, prefix string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				t.Fatalf("the helper ended before it said %q", prefix)
			}
			if len(line) >= len(prefix) && line[:len(prefix)] == prefix {
				return
			}
		case <-deadline:
			t.Fatalf("the helper did not say %q", prefix)
		}
	}
}
