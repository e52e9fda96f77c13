package local

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"loom/app/loom"
)

// loads remembers what the load of machines is compared with.
type loads struct {
	mu sync.Mutex
	// cpu is what machines had used of processors when they were last asked about, by id;
	// disk what they had on disk when somebody last looked.
	cpu  map[string]cpuUse
	disk map[string]int64
	// tidied is when machines that nobody asks about any longer were last forgotten.
	tidied time.Time
}

// cpuUse is the time on processors that a machine had used at a time.
type cpuUse struct {
	at   time.Time
	used time.Duration
}

// Load returns how much of what the machine of a task may have is in use, by its control
// groups and its quota: what /proc and df say there is that of the host. CPU is that since the
// last call. Without quotas the disk is known to the process that counts files, once it has.
func (l *Local) Load(spec *loom.TaskSpec) loom.Load {
	s, err := l.find(text(spec.Results["providerid"]), spec.IdempotencyKey)
	if err != nil || s == nil {
		return loom.NoLoad
	}
	used, memory := l.cgroups.used(s.group())
	most := l.ceilings.fill(s.Limits)
	load := l.loads.of(s.ID, used, memory, most, time.Now())
	if u, ok := l.quotaOf(s); ok {
		load.Disk = percent(u.bytes, most.Disk)
	}
	return load
}

// of returns the load of a machine with these limits that has used so much, negative where
// that is not known.
func (m *loads) of(id string, used time.Duration, memory int64, l limits, now time.Time) loom.Load {
	m.mu.Lock()
	defer m.mu.Unlock()
	load := loom.NoLoad
	before, known := m.cpu[id]
	if took := now.Sub(before.at); known && took > 0 && used >= before.used {
		load.CPU = percent(int64(used-before.used), int64(took)/1000*l.Cores)
	}
	if now.Sub(m.tidied) > time.Hour {
		maps.DeleteFunc(m.cpu, func(_ string, u cpuUse) bool { return now.Sub(u.at) > time.Hour })
		m.tidied = now
	}
	if m.cpu == nil {
		m.cpu = map[string]cpuUse{}
	}
	if used >= 0 {
		m.cpu[id] = cpuUse{now, used}
	}
	if memory >= 0 {
		load.Memory = percent(memory, l.Memory)
	}
	if disk, known := m.disk[id]; known {
		load.Disk = percent(disk, l.Disk)
	}
	return load
}

// onDisk notes what machines have on disk.
func (m *loads) onDisk(bytes map[string]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk = bytes
}

// percent returns a share, at most 100; -1 of nothing.
func percent(part, whole int64) int {
	if whole <= 0 {
		return -1
	}
	return int(min(100, max(0, 100*float64(part)/float64(whole))) + 0.5)
}

// used returns the time on processors that a group has used ever, and the memory that it
// holds, without what the kernel would drop at once; -1 where no tree says.
func (c *cgroups) used(group string) (cpu time.Duration, memory int64) {
	cpu, memory = -1, -1
	for _, t := range c.trees {
		if t.shared() {
			continue
		}
		dir := c.dir(t, group)
		inUse, idle := "memory.usage_in_bytes", "total_inactive_file"
		switch {
		case t.v2:
			inUse, idle = "memory.current", "inactive_file"
			if n := entry(dir, "cpu.stat", "usage_usec"); n >= 0 {
				cpu = time.Duration(n) * time.Microsecond
			}
		case t.has("cpuacct"):
			if n := number(dir, "cpuacct.usage"); n >= 0 && cpu < 0 {
				cpu = time.Duration(n)
			}
		}
		if n := number(dir, inUse); n >= 0 {
			memory = max(0, n-max(0, entry(dir, "memory.stat", idle)))
		}
	}
	return cpu, memory
}

// number reads a file that holds one number, -1 where it does not.
func number(dir, file string) int64 {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return -1
	}
	return parseNumber(strings.TrimSpace(string(data)))
}

// entry reads a number by its name from a file of such lines, -1 where there is none.
func entry(dir, file, name string) int64 {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return parseNumber(strings.TrimSpace(value))
		}
	}
	return -1
}

func parseNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
