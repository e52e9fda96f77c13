package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups are the control groups of an instance: one group of its name in every
// mounted tree, one for each tenant below, and in it one for each machine, such as
// "t3/m0123456789a". Those of machines made before tenants had groups are right below
// that of the instance. Machines get groups of their
// own also in trees that set no limit, because whoever stops Loom's group (a
// service manager does) must not stop the machines.
type cgroups struct {
	name  string // of the instance's group
	trees []cgroupTree
	// tenant is what all machines of a tenant may use together.
	tenant limits
}

// group is the name of the tenant's group.
func (n tenantNet) group() string { return fmt.Sprintf("t%d", n.index) }

// group is the name of the machine's group.
func (s *state) group() string {
	if s.Group == "" {
		return s.ID
	}
	return s.Group
}

// cgroupTree is one mounted tree: all of version 2, or one of version 1.
type cgroupTree struct {
	path        string // where it is mounted
	v2          bool
	controllers []string // version 1: those of this tree; "name=systemd" for a named one
	home        string   // group of this process in the tree, "/" for its root
}

func findCgroups(name string) (*cgroups, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if isGone(err) { // a kernel without control groups
		return &cgroups{name: name}, nil
	}
	if err != nil {
		return nil, err
	}
	return &cgroups{name: name, trees: parseTrees(string(mounts), string(own))}, nil
}

// parseTrees reads /proc/self/mountinfo and /proc/self/cgroup.
func parseTrees(mountinfo, own string) []cgroupTree {
	var trees []cgroupTree
	seen := map[string]bool{}
	for _, line := range strings.Split(mountinfo, "\n") {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		tree := cgroupTree{path: left[4]}
		switch right[0] {
		case "cgroup2":
			tree.v2 = true
		case "cgroup":
			for _, option := range strings.Split(right[2], ",") {
				if option != "rw" && option != "ro" && option != "xattr" && option != "noprefix" && option != "clone_children" && !strings.HasPrefix(option, "release_agent=") {
					tree.controllers = append(tree.controllers, option)
				}
			}
			// A new group of this tree takes no process until it is told its
			// processors; nothing is lost by staying where Loom is.
			if len(tree.controllers) == 0 || slices.Contains(tree.controllers, "cpuset") && len(tree.controllers) == 1 {
				continue
			}
		default:
			continue
		}
		id := fmt.Sprint(tree.v2, tree.controllers)
		if seen[id] {
			continue // mounted twice
		}
		seen[id] = true
		tree.home = homeIn(own, tree)
		trees = append(trees, tree)
	}
	return trees
}

// homeIn finds the group of this process in a tree, "/" when not told.
func homeIn(own string, tree cgroupTree) string {
	for _, line := range strings.Split(own, "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		if tree.v2 && parts[0] == "0" && parts[1] == "" {
			return parts[2]
		}
		if !tree.v2 && parts[1] != "" && slices.Contains(strings.Split(parts[1], ","), tree.controllers[0]) {
			return parts[2]
		}
	}
	return "/"
}

func (t cgroupTree) has(controller string) bool { return slices.Contains(t.controllers, controller) }

// shared reports that a tree neither limits machines nor is used to stop
// services, so the machines of an instance share one group there.
func (t cgroupTree) shared() bool {
	return !t.v2 && !t.has("memory") && !t.has("pids") && !t.has("cpu") && !t.has("name=systemd")
}

// skip reports that moving a machine out of Loom's group gains nothing.
func (t cgroupTree) skip() bool { return t.shared() && t.home == "/" }

// controllers are those that limit machines, with what people call it.
var controllers = []struct{ name, what string }{{"memory", "memory"}, {"pids", "processes"}, {"cpu", "processor share"}}

// prepare makes the groups of a machine and of its tenant and sets their limits. What
// cannot be limited is told in warnings; a machine without limits is still a machine.
func (c *cgroups) prepare(group string, l limits) (warnings []string) {
	done := map[string]bool{}
	for _, t := range c.trees {
		if t.skip() {
			continue
		}
		if err := c.make(t, group); err != nil {
			// Often a tree that is mounted read-only, inside a container.
			continue
		}
		if t.shared() {
			continue
		}
		if tenant := filepath.Dir(group); tenant != "." {
			c.limit(t, tenant, c.tenant)
		}
		for _, controller := range c.limit(t, group, l) {
			done[controller] = true
		}
	}
	for _, controller := range controllers {
		if limited(l, controller.name) && !done[controller.name] {
			warnings = append(warnings, fmt.Sprintf("No limit of %s for this machine: this host offers no control group for it.", controller.what))
		}
	}
	return warnings
}

// make makes a group of a tree. Old kernels count what groups below use only if they are
// told so before there are any.
func (c *cgroups) make(t cgroupTree, group string) error {
	top := filepath.Join(t.path, c.name)
	if t.has("memory") && !exists(top) && os.Mkdir(top, 0o755) == nil {
		_ = writeLimit(top, "memory.use_hierarchy", "1")
	}
	for tries := 0; ; tries++ {
		err := os.MkdirAll(c.dir(t, group), 0o755)
		if !isGone(err) || tries == 100 { // the group of a tenant goes with its last machine
			return err
		}
	}
}

// limit sets the limits of a group in one tree and names the controllers that did.
func (c *cgroups) limit(t cgroupTree, group string, l limits) (done []string) {
	if l.Cores >= int64(runtime.NumCPU())*1000 { // all of them are no limit
		l.Cores = 0
	}
	for _, controller := range controllers {
		name := controller.name
		if !limited(l, name) || !t.v2 && !t.has(name) || t.v2 && !c.enable(t, filepath.Dir(group), name) {
			continue
		}
		if setLimit(c.dir(t, group), t.v2, name, l) == nil {
			done = append(done, name)
		}
	}
	return done
}

// missing names, in words, what this host cannot limit.
func (c *cgroups) missing() (missing []string) {
	for _, controller := range controllers {
		if !slices.ContainsFunc(c.trees, func(t cgroupTree) bool {
			offered, err := os.ReadFile(filepath.Join(t.path, "cgroup.controllers"))
			return (t.has(controller.name) || t.v2 && err == nil && slices.Contains(strings.Fields(string(offered)), controller.name)) && unix.Access(t.path, unix.W_OK) == nil
		}) {
			missing = append(missing, controller.what)
		}
	}
	return missing
}

func (c *cgroups) dir(t cgroupTree, group string) string {
	if t.shared() {
		return filepath.Join(t.path, c.name)
	}
	return filepath.Join(t.path, c.name, group)
}

// enable hands a controller of version 2 down from the root of the tree to the groups
// below a parent. It fails where the controller is bound to a tree of version 1.
func (c *cgroups) enable(t cgroupTree, parent, controller string) bool {
	dirs := []string{t.path, filepath.Join(t.path, c.name)}
	if parent != "." {
		dirs = append(dirs, filepath.Join(t.path, c.name, parent))
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, "cgroup.subtree_control")
		if on, err := os.ReadFile(file); err == nil && slices.Contains(strings.Fields(string(on)), controller) {
			continue
		}
		if offered, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers")); err != nil || !slices.Contains(strings.Fields(string(offered)), controller) {
			return false
		}
		if os.WriteFile(file, []byte("+"+controller), 0o644) != nil {
			return false
		}
	}
	return true
}

// quotaPeriod is the time, in microseconds, within which a group may use its cores.
const quotaPeriod = 100_000

// writeLimit writes to a file that the kernel made: in a tree that is none, it is absent.
func writeLimit(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// What waits in the sockets of a machine: the host's own limit for TCP is a tenth of its
// memory, and a tenant may have three quarters of that memory.
const (
	socketShare = 16
	socketLeast = 8 << 20
)

// setLimit sets the limits of one controller. The files and their units differ by
// version; a weight of 100 is 1024 shares in version 1.
func setLimit(dir string, v2 bool, controller string, l limits) error {
	write := func(file string, value int64) error { return writeLimit(dir, file, strconv.FormatInt(value, 10)) }
	switch {
	case controller == "memory" && v2:
		err := write("memory.max", l.Memory)
		// Without swap accounting the file is absent; then there is nothing to limit.
		_ = write("memory.swap.max", 0)
		return err
	case controller == "memory":
		// Booting again: memory and swap together may not lie below memory, so a
		// raised limit needs the second file first and a lowered one last.
		_ = write("memory.memsw.limit_in_bytes", l.Memory)
		err := write("memory.limit_in_bytes", l.Memory)
		_ = write("memory.memsw.limit_in_bytes", l.Memory)
		// What waits in sockets counts by itself here, and else takes from what all of
		// the host may have (tcp_mem, udp_mem). Version 2 counts it as memory.
		_ = write("memory.kmem.tcp.limit_in_bytes", max(l.Memory/socketShare, socketLeast))
		return err
	case controller == "pids":
		return write("pids.max", l.Pids)
	}
	var errs []error
	if l.CPU > 0 && v2 {
		errs = append(errs, write("cpu.weight", l.CPU))
	} else if l.CPU > 0 {
		errs = append(errs, write("cpu.shares", max(2, l.CPU*1024/100)))
	}
	if quota := l.Cores * quotaPeriod / 1000; l.Cores > 0 && v2 {
		errs = append(errs, writeLimit(dir, "cpu.max", fmt.Sprintf("%d %d", quota, quotaPeriod)))
	} else if l.Cores > 0 {
		errs = append(errs, write("cpu.cfs_period_us", quotaPeriod), write("cpu.cfs_quota_us", quota))
	}
	return errors.Join(errs...)
}

// enter puts a process, with all its threads, into the machine's groups.
func (c *cgroups) enter(group string, pid int) {
	for _, t := range c.trees {
		if !t.skip() {
			// A group that could not be made was left out with a warning by prepare.
			_ = os.WriteFile(filepath.Join(c.dir(t, group), "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
		}
	}
}

// remove takes away a machine's groups once its processes are gone, and those of its
// tenant with the last machine.
func (c *cgroups) remove(group string) error {
	var errs []error
	for _, t := range c.trees {
		if !t.shared() {
			errs = append(errs, removeGroup(filepath.Join(t.path, c.name, group)))
			if tenant := filepath.Dir(group); tenant != "." {
				_ = unix.Rmdir(filepath.Join(t.path, c.name, tenant)) // fails while there are others
			}
		}
	}
	return errors.Join(errs...)
}

// removeAll takes away every group of the instance.
func (c *cgroups) removeAll() error {
	var errs []error
	for _, t := range c.trees {
		top := filepath.Join(t.path, c.name)
		entries, err := os.ReadDir(top)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				errs = append(errs, removeGroup(filepath.Join(top, e.Name())))
			}
		}
		errs = append(errs, removeGroup(top))
	}
	return errors.Join(errs...)
}

// leftovers lists the groups of machines that there are.
func (c *cgroups) leftovers() (groups []string) {
	for _, t := range c.trees {
		for _, pattern := range []string{"m*", "t*/m*"} {
			dirs, _ := filepath.Glob(filepath.Join(t.path, c.name, pattern, "cgroup.procs"))
			for _, file := range dirs {
				group, err := filepath.Rel(filepath.Join(t.path, c.name), filepath.Dir(file))
				if err == nil && !slices.Contains(groups, group) {
					groups = append(groups, group)
				}
			}
		}
	}
	return groups
}

// removeGroup removes an empty group, and those that the machine made below it.
// The kernel refuses for a moment after the last process has gone.
func removeGroup(dir string) error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() {
				if err := removeGroup(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
		err := unix.Rmdir(dir)
		switch {
		case err == nil, errors.Is(err, unix.ENOENT):
			return nil
		case !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EINTR) || time.Now().After(deadline):
			return fmt.Errorf("remove control group %s: %w", dir, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// kill ends the processes in a machine's groups. It is for leftovers whose state
// is lost; a machine is ended by its first process.
func (c *cgroups) kill(group string) error {
	var errs []error
	for _, t := range c.trees {
		if t.shared() {
			continue
		}
		procs, _ := os.ReadFile(filepath.Join(t.path, c.name, group, "cgroup.procs"))
		for _, text := range strings.Fields(string(procs)) {
			pid, err := strconv.Atoi(text)
			if err != nil || pid == 0 {
				continue
			}
			if start, _, err := processStat(pid); err == nil {
				errs = append(errs, killProcess(pid, start, deadAfterDelete))
			}
		}
	}
	return errors.Join(errs...)
}
