package external

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// TestConfined: a program gets its limit of address space every time, though the
// stage itself has far more.
func TestConfined(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(stage{Parent: os.Getpid(), Program: "/bin/sh", Args: []string{"/bin/sh", "-c", "ulimit -v; ulimit -n"}, MemoryMB: 64, OpenFiles: 100})
	if err != nil {
		t.Fatal(err)
	}
	var lanes sync.WaitGroup
	for range 8 {
		lanes.Go(func() {
			for range 25 {
				begun := exec.Command(os.Args[0], StageCommand, string(text))
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
	text, err := json.Marshal(stage{Parent: os.Getpid(), Program: t.TempDir() + "/nothing", Args: []string{"nothing"}, MemoryMB: 64, OpenFiles: 100})
	if err != nil {
		t.Fatal(err)
	}
	begun := exec.Command(os.Args[0], StageCommand, string(text))
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
	if err := begun.Wait(); err == nil || begun.ProcessState.ExitCode() != stageExit || !strings.Contains(string(said[:n]), "no such file") {
		t.Errorf("got %v and %q", err, said[:n])
	}
}
