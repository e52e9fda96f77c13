package provisioner

import (
	"os"
	"slices"
	"syscall"
	"testing"

	"loom/app/loom"
)

// free reports whether nobody holds a set.
func free(t *testing.T, c *Cache, set int) bool {
	t.Helper()
	file, err := os.Open(c.path("t1", set) + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

func TestTasksShareASet(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.add(t, 1, file("automatortypes", "shell", "secrets", "password", 1), []byte("s3cret"))
	c := &Cache{Dir: t.TempDir(), Source: s}
	spec := &loom.TaskSpec{Tenant: "t1", Automators: []string{"shell"}}
	use := func(atLeast, want int) (dir string, release func()) {
		t.Helper()
		dir, set, release, err := c.Set(t.Context(), "t1", atLeast)
		if err != nil || set != want {
			t.Fatalf("set %d, %v, want %d", set, err, want)
		}
		return dir, release
	}
	dir, first := use(1, 1)
	_, second := use(1, 1)
	for range 2 {
		if got := c.secretFiles(dir, spec); !slices.Equal(got, []string{"s3cret"}) {
			t.Fatalf("secrets %v", got)
		}
	}
	if got := c.secretFiles(dir, &loom.TaskSpec{Tenant: "t1", Automators: []string{"other"}}); len(got) != 0 {
		t.Errorf("secrets of another plugin: %v", got)
	}
	first()
	first() // twice does no harm
	if free(t, c, 1) {
		t.Error("the set is not held although a task uses it")
	}
	// A newer set is wanted while the old one is in use.
	s.add(t, 2, file("automatortypes", "shell", "secrets", "more", 1), []byte("m0re"))
	newer, third := use(2, 2)
	if got := c.secretFiles(newer, spec); !slices.Contains(got, "m0re") || len(got) != 2 {
		t.Errorf("secrets of the newer set: %v", got)
	}
	if got := c.secretFiles(dir, spec); !slices.Equal(got, []string{"s3cret"}) {
		t.Errorf("secrets of the older set: %v", got)
	}
	second()
	if !free(t, c, 1) || free(t, c, 2) {
		t.Error("the older set is held, or the newer one is not")
	}
	third()
	if !free(t, c, 2) || len(c.held) != 0 {
		t.Error("a set is held that nobody uses")
	}
}
