package wiring

import (
	"os"
	"testing"
	"testing/fstest"
)

// TestMemory is that of the host or of the tightest group.
func TestMemory(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	host := file("MemFree: 1 kB\nMemTotal:       8388608 kB\n")
	for name, c := range map[string]struct {
		root fstest.MapFS
		want int64
	}{
		"nothing is known": {fstest.MapFS{}, 0},
		"a host":           {fstest.MapFS{"proc/meminfo": host}, 8 << 30},
		"a group": {fstest.MapFS{"proc/meminfo": host, "proc/self/cgroup": file("0::/system.slice/loom.service\n"),
			"sys/fs/cgroup/system.slice/loom.service/memory.max": file("2147483648\n"), "sys/fs/cgroup/system.slice/memory.max": file("max\n")}, 2 << 30},
		"a group within one": {fstest.MapFS{"proc/meminfo": host, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("1073741824\n")}, 1 << 30},
		"a container that sees the path of the host": {fstest.MapFS{"proc/meminfo": host, "proc/self/cgroup": file("0::/docker/x\n"),
			"sys/fs/cgroup/memory.max": file("536870912\n")}, 512 << 20},
		"the first version": {fstest.MapFS{"proc/meminfo": host, "proc/self/cgroup": file("9:cpu:/\n8:memory:/x\n0::/\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("1073741824\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 1 << 30},
	} {
		if got := memory(c.root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := memory(os.DirFS("/")); got < 64<<20 {
		t.Errorf("this host has %d bytes", got)
	}
}
