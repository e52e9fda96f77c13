package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// Names of the options, for messages.
const (
	machineMaxOption = "LOOM_LOCAL_MACHINE_MAX"
	tenantMaxOption  = "LOOM_LOCAL_TENANT_MAX"
)

// ceilings are the most that one machine and all machines of one tenant may have.
type ceilings struct {
	machine, tenant limits
	machines        int64
}

// mostPids is what is shared out of processes: their number is one for the host and all
// machines, so tenants together must stay below it (see raised).
const mostPids = 32768

// thisHost is what there is to share out: it looks at memory, processes, processors and the file system of a directory,
// which need not exist yet.
func thisHost(dir string) limits {
	h := limits{Memory: int64(hostMemory()) << 20, Cores: int64(runtime.NumCPU()) * 1000, Pids: mostPids}
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n < h.Pids {
			h.Pids = n
		}
	}
	for ; ; dir = filepath.Dir(dir) {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil {
			h.Disk = int64(st.Blocks) * st.Bsize
			return h
		}
		if dir == filepath.Dir(dir) {
			return h
		}
	}
}

// newCeilings reads the two options in the form of flavors; what they do not name is a
// half of the host for a machine and three quarters for a tenant. Processors are shared
// by weight, so all of them are for everybody.
func newCeilings(machine, tenant string, h limits) (ceilings, error) {
	var c ceilings
	var several int64
	var err error
	if c.machine, several, err = loom.ParseLocalLimits(machine); err == nil && several > 0 {
		err = errors.New("“machines” belongs to " + tenantMaxOption)
	}
	if err == nil && c.machine.CPU > 0 {
		err = errors.New("“cpu” is a weight and has no ceiling; give “cores”")
	}
	if err != nil {
		return c, loom.NewError(loom.Invalid, "%s: %v; the form is mem=4g,pids=4096,cores=2,disk=20g.", machineMaxOption, err)
	}
	if c.tenant, c.machines, err = loom.ParseLocalLimits(tenant); err == nil && c.tenant.CPU > 0 {
		err = errors.New("“cpu” is a weight and has no ceiling; give “cores”")
	}
	if err != nil {
		return c, loom.NewError(loom.Invalid, "%s: %v; the form is mem=16g,pids=16384,cores=4,disk=100g,machines=50.", tenantMaxOption, err)
	}
	for _, part := range loom.LocalParts {
		m, t, all := part.Of(&c.machine), part.Of(&c.tenant), *part.Of(&h)
		half, most := all/2, all/4*3
		switch part.Name {
		case "mem", "disk":
			half, most = even(half), even(most)
		case "cores":
			half, most = all, all
		}
		switch {
		case *m == 0 && *t == 0:
			*m, *t = half, most
		case *m == 0:
			*m = min(half, *t)
		case *t == 0:
			*t = max(most, *m)
		}
		if *m > *t {
			return c, loom.NewError(loom.Invalid, "%s allows one machine %s and %s allows all of a tenant %s: raise the latter.", machineMaxOption, part.Show(*m), tenantMaxOption, part.Show(*t))
		}
	}
	return c, nil
}

// even rounds a size down to one that reads well.
func even(n int64) int64 {
	if n >= 10<<30 {
		return n >> 30 << 30
	}
	return n >> 20 << 20
}

// bound returns a machine the ceiling where its flavor has no limit. A limit above the
// ceiling is an error with both numbers.
func (c ceilings) bound(l limits) (limits, error) {
	if have, most, above := l.Above(c.machine); above {
		return l, fmt.Errorf("“%s” is more than “%s”, the most that a machine may have here (%s)", have, most, machineMaxOption)
	}
	return c.fill(l), nil
}

// fill puts the ceilings where there is no limit.
func (c ceilings) fill(l limits) limits {
	for _, part := range loom.LocalParts {
		if have := part.Of(&l); *have == 0 {
			*have = *part.Of(&c.machine)
		}
	}
	return l
}
