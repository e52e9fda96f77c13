package local

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// limits are what a machine, or all of a tenant, may use at most; zero means no limit
// of its own.
type limits struct {
	Memory int64 `json:"memory_bytes,omitempty"`
	Pids   int64 `json:"pids,omitempty"`
	// CPU is a weight against other machines of the tenant, 100 being the ordinary one.
	CPU int64 `json:"cpu_weight,omitempty"`
	// Cores are thousandths of a processor.
	Cores int64 `json:"cores_milli,omitempty"`
	// Disk is what files of the machine's own may take.
	Disk int64 `json:"disk_bytes,omitempty"`
}

// limit reports whether there is something to limit for a controller.
func (l limits) limit(controller string) bool {
	switch controller {
	case "memory":
		return l.Memory > 0
	case "pids":
		return l.Pids > 0
	}
	return l.CPU > 0 || l.Cores > 0
}

const (
	// minMemory is below what sshd and a login shell take.
	minMemory = 16 << 20
	// minDisk is what a machine writes by itself, with some room.
	minDisk = 16 << 20
)

// parseFlavor reads "mem=512m,pids=256,cpu=100,cores=1.5,disk=4g"; every part may be
// absent.
func parseFlavor(flavor string) (limits, error) {
	l, machines, err := parseLimits(flavor)
	if err == nil && machines > 0 {
		err = errors.New("“machines” is for tenants, not for flavors")
	}
	if err != nil {
		return limits{}, err
	}
	return l, nil
}

// parseLimits reads the parts of flavors, and “machines”.
func parseLimits(text string) (l limits, machines int64, err error) {
	seen := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, text, _ := strings.Cut(part, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		if seen[name] {
			return limits{}, 0, fmt.Errorf("“%s” is given twice", name)
		}
		seen[name] = true
		switch name {
		case "mem":
			if l.Memory, err = parseBytes(text); err == nil && l.Memory < minMemory {
				err = fmt.Errorf("a machine needs at least 16m of memory")
			}
		case "pids":
			l.Pids, err = parseCount(text, 16, 4_000_000)
		case "cpu":
			l.CPU, err = parseCount(text, 1, 10_000)
		case "cores":
			l.Cores, err = parseCores(text)
		case "disk":
			if l.Disk, err = parseBytes(text); err == nil && l.Disk < minDisk {
				err = fmt.Errorf("a machine needs at least 16m of disk")
			}
		case "machines":
			machines, err = parseCount(text, 1, maxTenants<<(32-tenantBits))
		default:
			err = fmt.Errorf("the parts are mem, pids, cpu, cores and disk")
		}
		if err != nil {
			return limits{}, 0, fmt.Errorf("“%s”: %w", part, err)
		}
	}
	return l, machines, nil
}

// parseCores reads a number of processors, in steps of a hundredth.
func parseCores(text string) (int64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0.01 && n <= 4096) {
		return 0, fmt.Errorf("give a number of processors from 0.01 to 4096, such as 0.5 or 2")
	}
	return int64(n*100+0.5) * 10, nil
}

func parseCount(text string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("give a whole number from %d to %d", low, high)
	}
	return n, nil
}

// parseBytes reads a number of bytes with an optional k, m, g or t (powers of 1024).
func parseBytes(text string) (int64, error) {
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

// image is a parsed image text: a Debian suite and packages beyond the base list.
type image struct {
	Suite    string
	Packages []string // sorted, each once, none of the base list
}

// DefaultImage is the image of a machine whose image type names none.
const DefaultImage = "bookworm"

// basePackages are on every machine: what Loom's own steps, the automators and
// the usual install scripts need.
var basePackages = []string{"openssh-server", "iproute2", "procps", "sudo", "ca-certificates", "curl", "python3-minimal"}

var (
	suiteRule   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`)
	packageRule = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,100}$`)
)

// parseImage reads "<suite>[:<package>,…]". The result is normalized, so that
// two texts with the same meaning share a base root.
func parseImage(text string) (image, error) {
	suite, list, _ := strings.Cut(strings.TrimSpace(text), ":")
	if suite = strings.TrimSpace(suite); suite == "" {
		suite = DefaultImage
	}
	if !suiteRule.MatchString(suite) {
		return image{}, fmt.Errorf("“%s” is no name of a Debian suite such as bookworm", suite)
	}
	im := image{Suite: suite}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !packageRule.MatchString(name) {
			return image{}, fmt.Errorf("“%s” is no name of a Debian package", name)
		}
		im.Packages = append(im.Packages, name)
	}
	im.Packages = normalize(im.Packages)
	return im, nil
}

// String gives the normalized text.
func (im image) String() string {
	if len(im.Packages) == 0 {
		return im.Suite
	}
	return im.Suite + ":" + strings.Join(im.Packages, ",")
}
