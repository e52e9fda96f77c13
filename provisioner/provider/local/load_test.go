package local

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"loom/app/loom"
)

// TestUsed reads the control groups of a machine, of both versions and of hosts that have
// both.
func TestUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(file, content string) {
		t.Helper()
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const group = "/loom-x/t1/m1/"
	write("v2"+group+"cpu.stat", "usage_usec 2500000\nuser_usec 1\n")
	write("v2"+group+"memory.current", "1000\n")
	write("v2"+group+"memory.stat", "anon 1\ninactive_file 400\n")
	write("hybrid"+group+"cpu.stat", "usage_usec 3000000\n")
	write("cpu"+group+"cpuacct.usage", "4000000000\n")
	write("memory"+group+"memory.usage_in_bytes", "5000\n")
	write("memory"+group+"memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n")
	write("odd"+group+"cpu.stat", "usage_usec many\n")
	write("odd"+group+"memory.current", "-7\n")
	write("dropped"+group+"memory.current", "10\n")
	write("dropped"+group+"memory.stat", "inactive_file 40\n")
	v1 := func(name string, controllers ...string) cgroupTree {
		return cgroupTree{path: filepath.Join(dir, name), controllers: controllers, home: "/"}
	}
	v2 := func(name string) cgroupTree {
		return cgroupTree{path: filepath.Join(dir, name), v2: true, home: "/"}
	}
	for name, c := range map[string]struct {
		trees  []cgroupTree
		cpu    time.Duration
		memory int64
	}{
		"none":               {nil, -1, -1},
		"version 2":          {[]cgroupTree{v2("v2")}, 2500 * time.Millisecond, 600},
		"version 1":          {[]cgroupTree{v1("cpu", "cpu", "cpuacct"), v1("memory", "memory")}, 4 * time.Second, 3000},
		"both":               {[]cgroupTree{v1("cpu", "cpu"), v1("cpu", "cpuacct"), v1("memory", "memory"), v2("hybrid")}, 3 * time.Second, 3000},
		"no such group":      {[]cgroupTree{v2("absent"), v1("absent", "memory")}, -1, -1},
		"no numbers":         {[]cgroupTree{v2("odd")}, -1, -1},
		"more idle than all": {[]cgroupTree{v2("dropped")}, -1, 0},
	} {
		groups := &cgroups{name: "loom-x", trees: c.trees}
		if cpu, memory := groups.used("t1/m1"); cpu != c.cpu || memory != c.memory {
			t.Errorf("%s: %s and %d bytes, want %s and %d", name, cpu, memory, c.cpu, c.memory)
		}
	}
}

// TestLoads: processors are compared with the last reading and with the cores of the
// machine, memory and disk with its limits.
func TestLoads(t *testing.T) {
	t.Parallel()
	var m loads
	now := time.Now()
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	l := limits{Cores: 2000, Memory: 1000, Disk: 400}
	for i, c := range []struct {
		at     int
		used   time.Duration
		memory int64
		want   loom.Load
	}{
		{0, 5 * time.Second, 250, loom.Load{CPU: -1, Memory: 25, Disk: -1}},
		{10, 10 * time.Second, 2000, loom.Load{CPU: 25, Memory: 100, Disk: -1}},
		{20, 40 * time.Second, 0, loom.Load{CPU: 100, Memory: 0, Disk: -1}},
		{30, time.Second, 0, loom.Load{CPU: -1, Memory: 0, Disk: -1}}, // another machine of that id
		{40, -1, -1, loom.NoLoad},
		{50, 3 * time.Second, -1, loom.Load{CPU: 5, Memory: -1, Disk: -1}},
		{50, 4 * time.Second, -1, loom.NoLoad},
		{7000, 4 * time.Second, -1, loom.Load{CPU: 0, Memory: -1, Disk: -1}},
	} {
		if got := m.of("m1", c.used, c.memory, l, at(c.at)); got != c.want {
			t.Errorf("reading %d: %+v, want %+v", i, got, c.want)
		}
	}
	m.of("m2", 0, 0, l, at(20000))
	if len(m.cpu) != 1 {
		t.Errorf("%d machines are remembered, want the one asked about", len(m.cpu))
	}
	m.onDisk(map[string]int64{"m1": 100})
	if got := m.of("m1", -1, math.MaxInt64, l, now); got != (loom.Load{CPU: -1, Memory: 100, Disk: 25}) {
		t.Errorf("with a disk: %+v", got)
	}
	if got := m.of("m1", -1, 1, limits{}, now); got != loom.NoLoad {
		t.Errorf("without limits: %+v", got)
	}
}
