package work

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loom/app/execution"
	"loom/app/loom"
)

func attempt(task int) execution.AttemptKey {
	return execution.AttemptKey{Task: loom.TaskID(task), Attempt: 1}
}

func openedPending(t *testing.T, dir string) *pending {
	t.Helper()
	p, err := openPending(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// leftTasks are the tasks of which results are left.
func leftTasks(t *testing.T, p *pending) []int {
	t.Helper()
	left, err := p.unrecorded()
	must(t, err)
	var tasks []int
	for _, k := range left {
		tasks = append(tasks, int(k.Key.Task))
	}
	return tasks
}

// pendingFiles are the files in which results are kept.
func pendingFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, ".pending", "*"))
	must(t, err)
	return files
}

// abandon is the end of a process that is killed: its locks go and nothing else.
func abandon(t *testing.T, p *pending) {
	t.Helper()
	must(t, p.file.Close())
}

func TestResultsOfAKilledProcessAreInherited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dead := openedPending(t, dir)
	for n := range 5 {
		must(t, dead.save(attempt(n+1), loom.TaskResult{Message: fmt.Sprint("m", n+1), Interrupted: n == 3}))
	}
	must(t, dead.forget(attempt(2)))
	// Killed in the middle of a line.
	if _, err := dead.file.WriteString(`{"key":{"Task":9,"Attempt":1},"resu`); err != nil {
		t.Fatal(err)
	}
	alive := openedPending(t, dir)
	must(t, alive.save(attempt(7), loom.TaskResult{}))
	if got := leftTasks(t, alive); !slices.Equal(got, []int{7}) {
		t.Errorf("the results of a living process were taken: %v", got)
	}
	abandon(t, dead)
	left, err := alive.unrecorded()
	must(t, err)
	if got := leftTasks(t, alive); !slices.Equal(got, []int{1, 3, 4, 5, 7}) {
		t.Fatalf("left %v", got)
	}
	if k := left[2]; k.Result.Message != "m4" || !k.Result.Interrupted {
		t.Errorf("result 4 is %+v", k.Result)
	}
	if files := pendingFiles(t, dir); len(files) != 1 {
		t.Errorf("files %v, want that of the living process", files)
	}
	// What was inherited is inherited again.
	must(t, alive.forget(attempt(1)))
	abandon(t, alive)
	next := openedPending(t, dir)
	if got := leftTasks(t, next); !slices.Equal(got, []int{3, 4, 5, 7}) {
		t.Errorf("left %v", got)
	}
	for _, n := range []int{3, 4, 5, 7} {
		must(t, next.forget(attempt(n)))
	}
	must(t, next.close())
	if files := pendingFiles(t, dir); len(files) != 0 {
		t.Errorf("a clean end left %v", files)
	}
}

func TestResultsOfAnEarlierReleaseAreInherited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, ".pending"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, ".pending", "4-2.json"), []byte(`{"key": {"Task": 4, "Attempt": 2}, "result": {"status": 3}}`), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, ".pending", "5-1.json"), []byte(`{"key": {"Task": 5, "Att`), 0o600))
	p := openedPending(t, dir)
	left, err := p.unrecorded()
	must(t, err)
	if len(left) != 1 || left[0].Key != (execution.AttemptKey{Task: 4, Attempt: 2}) || left[0].Result.Status != 3 {
		t.Errorf("left %+v", left)
	}
	if files := pendingFiles(t, dir); len(files) != 1 || !strings.HasSuffix(files[0], pendingSuffix) {
		t.Errorf("files %v", files)
	}
}

func TestFileOfResultsStaysSmall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openedPending(t, dir)
	must(t, p.save(attempt(1), loom.TaskResult{Message: "waits all the time"}))
	long := strings.Repeat("x", 1000)
	for n := 2; n < 4000; n++ {
		must(t, p.save(attempt(n), loom.TaskResult{Message: long}))
		must(t, p.forget(attempt(n)))
	}
	files := pendingFiles(t, dir)
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	info, err := os.Stat(files[0])
	must(t, err)
	if info.Size() > pendingSize+4096 || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, mode %v", info.Size(), info.Mode())
	}
	abandon(t, p)
	if got := leftTasks(t, openedPending(t, dir)); !slices.Equal(got, []int{1}) {
		t.Errorf("left %v", got)
	}
}

func TestSecretsOfResultsAreNotKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := openedPending(t, dir)
	must(t, p.save(attempt(1), loom.TaskResult{Stdout: "s3cret", Stderr: "s3cret", Result: map[string]any{
		"providerid": "m-1", "ssh-auth": map[string]any{"user": "root", "password": "s3cret"}}}))
	body, err := os.ReadFile(pendingFiles(t, dir)[0])
	must(t, err)
	if strings.Contains(string(body), "s3cret") || !strings.Contains(string(body), "m-1") {
		t.Errorf("kept %s", body)
	}
}
