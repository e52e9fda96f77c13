package loom

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// LocalProvider is the name of the provider type whose machines are on the host of their
// provisioner.
const LocalProvider = "local"

// LocalHost is what a provisioner says of its host, for machines there.
type LocalHost struct {
	Host string `json:"-"`
	// Max is the most that one machine may have, in the form of flavors; "" where the host
	// makes no machines.
	Max string `json:"max,omitempty"`
	// Lacks says, a sentence each, what the host does not have and what is done instead.
	Lacks []string `json:"lacks,omitempty"`
}

// LocalLimits are what a machine of the local provider, or all of a tenant, may use at
// most; zero means no limit of its own.
type LocalLimits struct {
	Memory int64 `json:"memory_bytes,omitempty"`
	Pids   int64 `json:"pids,omitempty"`
	// CPU is a weight against other machines of the tenant, 100 being the ordinary one.
	CPU int64 `json:"cpu_weight,omitempty"`
	// Cores are thousandths of a processor.
	Cores int64 `json:"cores_milli,omitempty"`
	// Disk is what files of the machine's own may take.
	Disk int64 `json:"disk_bytes,omitempty"`
}

const (
	// minLocalMemory is below what sshd and a login shell take.
	minLocalMemory = 16 << 20
	// MinLocalDisk is what a machine writes by itself, with some room.
	MinLocalDisk = 16 << 20
)

// ParseLocalFlavor reads "mem=512m,pids=256,cpu=100,cores=1.5,disk=4g"; every part may be
// absent.
func ParseLocalFlavor(flavor string) (LocalLimits, error) {
	l, machines, err := ParseLocalLimits(flavor)
	if err == nil && machines > 0 {
		err = errors.New("“machines” is for tenants, not for flavors")
	}
	if err != nil {
		return LocalLimits{}, err
	}
	return l, nil
}

// ParseLocalLimits reads the parts of flavors, and “machines”.
func ParseLocalLimits(text string) (l LocalLimits, machines int64, err error) {
	seen := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, text, _ := strings.Cut(part, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		if seen[name] {
			return LocalLimits{}, 0, fmt.Errorf("“%s” is given twice", name)
		}
		seen[name] = true
		switch name {
		case "mem":
			if l.Memory, err = localBytes(text); err == nil && l.Memory < minLocalMemory {
				err = fmt.Errorf("a machine needs at least 16m of memory")
			}
		case "pids":
			l.Pids, err = localCount(text, 16, 4_000_000)
		case "cpu":
			l.CPU, err = localCount(text, 1, 10_000)
		case "cores":
			l.Cores, err = localCores(text)
		case "disk":
			if l.Disk, err = localBytes(text); err == nil && l.Disk < MinLocalDisk {
				err = fmt.Errorf("a machine needs at least 16m of disk")
			}
		case "machines":
			machines, err = localCount(text, 1, 1<<16)
		default:
			err = fmt.Errorf("the parts are mem, pids, cpu, cores and disk")
		}
		if err != nil {
			return LocalLimits{}, 0, fmt.Errorf("“%s”: %w", part, err)
		}
	}
	return l, machines, nil
}

// localCores reads a number of processors, in steps of a hundredth.
func localCores(text string) (int64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0.01 && n <= 4096) {
		return 0, fmt.Errorf("give a number of processors from 0.01 to 4096, such as 0.5 or 2")
	}
	return int64(n*100+0.5) * 10, nil
}

func localCount(text string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("give a whole number from %d to %d", low, high)
	}
	return n, nil
}

// localBytes reads a number of bytes with an optional k, m, g or t (powers of 1024).
func localBytes(text string) (int64, error) {
	text = strings.TrimSuffix(strings.ToLower(text), "b")
	shift := 0
	if i := strings.IndexAny(text, "kmgt"); i >= 0 && i == len(text)-1 {
		shift = 10 * (1 + strings.IndexByte("kmgt", text[i]))
		text = text[:i]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > (1<<50)>>shift {
		return 0, fmt.Errorf("give a size such as 512m or 2g")
	}
	return n << shift, nil
}

// LocalParts are the limits that have ceilings.
var LocalParts = []struct {
	Name string
	Of   func(*LocalLimits) *int64
	Show func(int64) string
}{
	{"mem", func(l *LocalLimits) *int64 { return &l.Memory }, func(n int64) string { return "mem=" + showLocalBytes(n) }},
	{"pids", func(l *LocalLimits) *int64 { return &l.Pids }, func(n int64) string { return "pids=" + strconv.FormatInt(n, 10) }},
	{"cores", func(l *LocalLimits) *int64 { return &l.Cores }, func(n int64) string { return "cores=" + strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }},
	{"disk", func(l *LocalLimits) *int64 { return &l.Disk }, func(n int64) string { return "disk=" + showLocalBytes(n) }},
}

// showLocalBytes writes a size as flavors have it.
func showLocalBytes(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 40, "t"}, {1 << 30, "g"}, {1 << 20, "m"}, {1 << 10, "k"}} {
		if n >= unit.size && n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// String writes the limits that have ceilings in the form of flavors.
func (l LocalLimits) String() string {
	var parts []string
	for _, part := range LocalParts {
		if n := *part.Of(&l); n > 0 {
			parts = append(parts, part.Show(n))
		}
	}
	return strings.Join(parts, ",")
}

// Above gives the first limit that is above that of a ceiling, and the ceiling.
func (l LocalLimits) Above(ceiling LocalLimits) (have, most string, above bool) {
	for _, part := range LocalParts {
		if a, b := *part.Of(&l), *part.Of(&ceiling); a > b && b > 0 {
			return part.Show(a), part.Show(b), true
		}
	}
	return "", "", false
}
