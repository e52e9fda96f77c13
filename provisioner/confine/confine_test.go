package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// The test program is what is confined.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Main(os.Args[2:], map[string]func() error{"allocate": allocate, "fail": func() error { return errors.New("it fails") }}))
	}
	os.Exit(m.Run())
}

// allocate writes to more memory than it may have.
func allocate() error {
	var kept [][]byte
	for range 64 {
		block := make([]byte, 16<<20)
		for i := range block {
			block[i] = 1
		}
		kept = append(kept, block)
	}
	return fmt.Errorf("it got %d blocks", len(kept))
}

// TestPrepareRefuses: a program that forgets to call Main does not start itself without
// end.
func TestPrepareRefuses(t *testing.T) {
	before := os.Args
	defer func() { os.Args = before }()
	os.Args = []string{"x", Command, "{}"}
	if _, err := Prepare(Stage{}, nil); err == nil {
		t.Error("it starts itself again")
	}
}

// run runs a stage and returns what it said and how it ended.
func run(t *testing.T, s Stage) (said string, err error) {
	t.Helper()
	trouble, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer trouble.Close()
	cmd, err := Prepare(s, tell)
	if err != nil {
		t.Fatal(err)
	}
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	tell.Close()
	text, err := io.ReadAll(trouble)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), cmd.Wait()
}

// TestFunctions: a function of the program ends with its error, or at its limit.
func TestFunctions(t *testing.T) {
	t.Parallel()
	if said, err := run(t, Stage{Do: "fail"}); said != "it fails" || err == nil || err.Error() != "exit status 1" {
		t.Errorf("got %q, %v", said, err)
	}
	if said, err := run(t, Stage{Do: "unknown"}); !strings.Contains(said, "unknown") || err == nil {
		t.Errorf("got %q, %v", said, err)
	}
	if said, err := run(t, Stage{Do: "allocate", DataMB: 512}); said != "" || err == nil {
		t.Errorf("with 512 MB it said %q, %v", said, err)
	}
	if said, err := run(t, Stage{Do: "allocate", DataMB: 4096}); said != "it got 64 blocks" || err == nil {
		t.Errorf("with 4096 MB it said %q, %v", said, err)
	}
}

// TestLimits: a program has the limits of its stage.
func TestLimits(t *testing.T) {
	t.Parallel()
	script := "[ $(ulimit -d) = 102400 ] && [ $(ulimit -n) = 99 ] && [ $(ulimit -t) = 7 ] && [ $(ulimit -c) = 0 ] && grep -q 'Max processes *55 ' /proc/self/limits && grep -q 'Max file size *2048 ' /proc/self/limits && exit 5; exit 6"
	s := Stage{Program: "/bin/sh", Args: []string{"/bin/sh", "-c", script}, DataMB: 100, OpenFiles: 99, Seconds: 7, Processes: 55, FileBytes: 2048}
	if said, err := run(t, s); said != "" || err == nil || err.Error() != "exit status 5" {
		t.Errorf("got %q, %v", said, err)
	}
}

// TestConfined: a program gets its limit of address space every time, though the
// stage itself has far more.
func TestConfined(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Stage{Parent: os.Getpid(), Program: "/bin/sh", Args: []string{"/bin/sh", "-c", "ulimit -v; ulimit -n"}, MemoryMB: 64, OpenFiles: 100})
	if err != nil {
		t.Fatal(err)
	}
	var lanes sync.WaitGroup
	for range 8 {
		lanes.Go(func() {
			for range 25 {
				begun := exec.Command(os.Args[0], Command, string(text))
				out, err := begun.CombinedOutput()
				if want := "65536\n100\n"; err != nil || string(out) != want {
					t.Errorf("got %v, %q and not %q", err, out, want)
					return
				}
			}
		})
	}
	lanes.Wait()
}

// TestConfinedNothing: what cannot be run is told.
func TestConfinedNothing(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Stage{Parent: os.Getpid(), Program: t.TempDir() + "/nothing", Args: []string{"nothing"}, MemoryMB: 64, OpenFiles: 100})
	if err != nil {
		t.Fatal(err)
	}
	begun := exec.Command(os.Args[0], Command, string(text))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	begun.ExtraFiles = []*os.File{write}
	if err := begun.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	said := make([]byte, 4096)
	n, err := read.Read(said)
	if err != nil {
		t.Error(err)
	}
	if err := begun.Wait(); err == nil || begun.ProcessState.ExitCode() != Exit || !strings.Contains(string(said[:n]), "no such file") {
		t.Errorf("got %v and %q", err, said[:n])
	}
}
