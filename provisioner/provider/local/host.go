package local

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// setting is a file of /proc/sys with the least that it should be.
type setting struct {
	file  string
	least int64
	why   string
}

// raised are settings of the host that count for all machines together, each with the
// least that leaves one machine, or one tenant, unable to use it up.
var raised = []setting{
	// The table of neighbors is one for the host and all machines, each of which may ask
	// for the 1,021 addresses of its network.
	{"net/ipv4/neigh/default/gc_thresh2", 32768, "neighbors"},
	{"net/ipv4/neigh/default/gc_thresh3", 65536, "neighbors"},
	{"kernel/pty/max", 256 * terminals, "terminals"},
	// Each machine gets as many as hosts usually give each user.
	{"fs/inotify/max_user_instances", 128, "inotify instances"},
	// A tenant has three quarters of mostPids unless the operator says otherwise, and there
	// are 64 of them.
	{"kernel/pid_max", maxTenants * mostPids, "processes"},
	{"kernel/threads-max", maxTenants * mostPids, "processes"},
}

// Raise lifts settings of the host that are too low for machines that share nothing, and
// says so, a sentence each. It lowers none.
func (l *Local) Raise() (said []string, err error) {
	var errs []error
	for _, r := range raised {
		before, err := raise("/proc/sys/"+r.file, r.least)
		errs = append(errs, err)
		if err == nil && before < r.least {
			said = append(said, fmt.Sprintf("Raised %s from %d to %d (%s).", strings.ReplaceAll(r.file, "/", "."), before, r.least, r.why))
		}
	}
	return said, errors.Join(errs...)
}

// raise lifts one and gives its former value; that of a setting that the kernel does not
// have is the least.
func raise(file string, least int64) (before int64, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return least, nil
	}
	if before, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && before < least {
		err = os.WriteFile(file, []byte(strconv.FormatInt(least, 10)), 0)
	}
	if err != nil {
		return before, fmt.Errorf("raise %s to %d: %w", file, least, err)
	}
	return before, nil
}
