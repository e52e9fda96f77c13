package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// stopGrace is how long StopAll lets a machine's programs write their files.
const stopGrace = 5 * time.Second

// MachineInfo tells what exists, for the sweep and for people.
type MachineInfo struct {
	ID       string
	Key      string // idempotency key
	Node     loom.NodeID
	Cluster  string
	Tenant   loom.TenantID
	Hostname string
	Address  string
	// PID is the first process as the host numbers it; 0 when not running.
	PID     int
	Running bool
	Created time.Time
}

// Machines lists the machines on record, running or not, sorted by id.
func (l *Local) Machines() ([]MachineInfo, error) {
	states, _, err := l.readStates()
	if err != nil {
		return nil, err
	}
	machines := make([]MachineInfo, 0, len(states))
	for _, s := range states {
		m := MachineInfo{ID: s.ID, Key: s.Key, Node: s.Node, Cluster: s.Cluster, Tenant: s.Tenant,
			Hostname: s.Hostname, Address: s.Address, Running: s.running(), Created: s.Created}
		if m.Running {
			m.PID = s.PID
		}
		machines = append(machines, m)
	}
	return machines, nil
}

// record takes an address for a new machine and puts it on disk, state last:
// without a state a directory is a leftover.
func (l *Local) record(ctx context.Context, s *state) error {
	home, err := l.ensureTenant(ctx, s.Tenant)
	if err != nil {
		return err
	}
	dir := l.machineDir(s.ID)
	if err := errors.Join(removeTree(ctx, dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	private, public, err := newHostKey()
	if err != nil {
		return err
	}
	s.HostKey, s.FirstID, s.Group = public, home.first, home.group()+"/"+s.ID
	if err := os.WriteFile(l.hostKeyFile(s.ID), private, 0o600); err != nil {
		return err
	}
	if s.Address, err = l.claimAddress(home, s.ID); err != nil {
		return err
	}
	return l.writeState(s)
}

// remove ends a machine and takes away all of it; the caller holds its lock. It
// can be repeated after a crash or an error: that removal has begun is on record, and
// the record goes last.
func (l *Local) remove(ctx context.Context, s *state) error {
	if !s.Deleting {
		s.Deleting = true
		if err := l.writeState(s); err != nil {
			return err
		}
	}
	if err := l.halt(s, deadAfterDelete); err != nil {
		return err
	}
	// An earlier try may have freed the address, and another machine have taken it.
	holder, err := os.ReadFile(l.addressFile(s.Address))
	if err != nil && !isGone(err) {
		return err
	}
	if holds := isGone(err) || string(holder) == s.ID; holds {
		if err := l.unplug(s.Address); err != nil {
			return err
		}
		if s.Internet {
			if err := l.denyInternet(ctx, s); err != nil {
				return err
			}
		}
	}
	if err := l.cgroups.remove(s.group()); err != nil {
		return err
	}
	if err := emptyTree(ctx, l.machineDir(s.ID), filepath.Base(l.stateFile(s.ID))); err != nil {
		return err
	}
	l.freeDisk(s)
	if string(holder) == s.ID {
		if err := os.Remove(l.addressFile(s.Address)); err != nil && !isGone(err) {
			return err
		}
	}
	return l.removeFiles(ctx, s.ID)
}

// bootIfDown boots a machine on record that does not run; nil when there is no
// such machine.
func (l *Local) bootIfDown(ctx context.Context, id string, log func(string)) (*state, error) {
	unlock, err := l.lockMachine(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := l.readState(id)
	if isGone(err) || err == nil && s.Deleting {
		return nil, nil
	}
	if err != nil {
		return s, err
	}
	if runs, err := l.settle(ctx, s); err != nil || runs {
		return s, err
	}
	if s.Stopped != "" {
		return s, s.stoppedError()
	}
	log(fmt.Sprintf("Machine %s does not run and is booted.", id))
	return s, l.boot(ctx, s, log)
}

// restart boots a machine on record, whether it runs or not; nil when there is no such
// machine. Programs on it have a few seconds to end.
func (l *Local) restart(ctx context.Context, id string, log func(string)) (*state, error) {
	unlock, err := l.lockMachine(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := l.readState(id)
	if isGone(err) || err == nil && s.Deleting {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	runs, err := l.settle(ctx, s)
	if err == nil && runs {
		log(fmt.Sprintf("Machine %s is stopped.", id))
		askToEnd(ctx, map[int]bool{s.PID: true}, stopGrace)
		err = l.halt(s, deadAfterDelete)
	}
	if err != nil {
		return nil, err
	}
	log(fmt.Sprintf("Machine %s is booted.", id))
	return s, l.boot(ctx, s, log)
}

// sweep removes what belongs to no machine: directories, addresses, groups with
// their processes. (A cable goes with its machine's first process.) Each is looked at again under the machine's lock,
// since another process may be making it just now.
func (l *Local) sweep(ctx context.Context, states []*state, leftovers []string, tell func(error)) {
	known := map[string]bool{}
	for _, s := range states {
		known[s.ID] = true
	}
	ids := leftovers
	for _, group := range l.cgroups.leftovers() {
		ids = append(ids, filepath.Base(group))
	}
	addresses := map[string]string{}
	entries, _ := os.ReadDir(filepath.Join(l.dataDir, "addresses"))
	for _, e := range entries {
		id, err := os.ReadFile(l.addressFile(e.Name()))
		if err == nil && !known[string(id)] {
			addresses[string(id)] = e.Name()
			ids = append(ids, string(id))
		}
	}
	for _, id := range ids {
		if !known[id] && ctx.Err() == nil {
			known[id] = true
			id, address := strings.TrimPrefix(id, ".gone-"), addresses[id]
			if err := l.sweepMachine(ctx, id, address); err != nil {
				tell(fmt.Errorf("what is left of machine %s is not removed yet: %w", id, err))
			}
		}
	}
}

func (l *Local) sweepMachine(ctx context.Context, id, address string) error {
	if id == "" {
		if address != "" {
			return os.Remove(l.addressFile(address))
		}
		return nil
	}
	unlock, err := l.lockMachine(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.removeHalf(ctx, id); err != nil {
		return err
	}
	if _, err := l.readState(id); !isGone(err) {
		return err
	}
	var errs []error
	for _, group := range l.cgroups.leftovers() {
		if filepath.Base(group) == id {
			errs = append(errs, l.cgroups.kill(group), l.cgroups.remove(group))
		}
	}
	errs = append(errs, l.removeFiles(ctx, id))
	if err := errors.Join(errs...); err != nil || address == "" {
		return err
	}
	return errors.Join(l.unplug(address), os.Remove(l.addressFile(address)))
}

// StopAll stops every machine and keeps its files; Adopt boots them again.
// Programs on the machines are asked to end and have a few seconds to do so.
// Bridges, packet filter table and control groups go as well.
func (l *Local) StopAll(ctx context.Context) error {
	return l.stopAll(ctx, stopGrace, deadAfterStop)
}

func (l *Local) stopAll(ctx context.Context, grace, dead time.Duration) error {
	states, _, err := l.readStates()
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		if len(states) == 0 {
			return nil
		}
		return l.Ready()
	}
	var unlocks []func()
	defer func() {
		for _, unlock := range unlocks {
			unlock()
		}
	}()
	running := map[int]bool{}
	for _, s := range states {
		unlock, err := l.lockMachine(ctx, s.ID)
		if err != nil {
			return err
		}
		unlocks = append(unlocks, unlock)
		if s.running() {
			running[s.PID] = true
		}
	}
	if grace > 0 && len(running) > 0 {
		askToEnd(ctx, running, grace)
	}
	halted := make([]error, len(states))
	var wait sync.WaitGroup
	for i, s := range states {
		wait.Go(func() {
			// Its state may have changed until the lock was ours.
			s, err := l.readState(s.ID)
			if err == nil {
				err = l.halt(s, dead)
			}
			if err != nil && !isGone(err) {
				halted[i] = err
			}
		})
	}
	wait.Wait()
	return errors.Join(append(halted, l.removeOutside())...)
}

// removeOutside removes what an instance has outside its data directory.
func (l *Local) removeOutside() error {
	var errs []error
	links, err := l.links()
	errs = append(errs, err)
	for _, link := range links {
		if err := netlink.LinkDel(link); err != nil {
			if _, lookup := netlink.LinkByName(link.Attrs().Name); lookup == nil {
				errs = append(errs, fmt.Errorf("remove %s: %w", link.Attrs().Name, err))
			}
		}
	}
	for _, group := range l.cgroups.leftovers() {
		errs = append(errs, l.cgroups.kill(group))
	}
	return errors.Join(append(errs, l.removeFilter(), l.cgroups.removeAll())...)
}

// Purge removes everything of this instance: machines with their files,
// bridges, packet filter table, control groups, the choice of addresses. Cached
// base roots stay. A data directory that does not exist is fine.
func (l *Local) Purge(ctx context.Context) error {
	if err := l.stopAll(ctx, 0, deadAfterDelete); err != nil {
		return err
	}
	entries, err := os.ReadDir(l.machinesDir())
	if err != nil && !isGone(err) {
		return err
	}
	for _, e := range entries {
		if err := removeTree(ctx, filepath.Join(l.machinesDir(), e.Name())); err != nil {
			return err
		}
	}
	for _, name := range []string{"machines", "addresses", "locks", "roots", "instance.json", "instance.lock"} {
		if err := os.RemoveAll(filepath.Join(l.dataDir, name)); err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return l.reservations.release(ctx, l.dataDir)
}

// askToEnd sends a request to end to every process of the machines whose first
// processes are given, those aside, and waits until they are gone or the grace
// is over. First processes are sshd and have nothing to save.
func askToEnd(ctx context.Context, machines map[int]bool, grace time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for asked := false; ; asked = true {
		members := membersOf(machines)
		if len(members) == 0 {
			return
		}
		if !asked {
			for _, pid := range members {
				_ = unix.Kill(pid, unix.SIGTERM)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// membersOf lists the other processes in the process namespaces of some.
func membersOf(machines map[int]bool) []int {
	spaces := map[string]bool{}
	for pid := range machines {
		if space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil {
			spaces[space] = true
		}
	}
	entries, _ := os.ReadDir("/proc")
	var members []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || machines[pid] {
			continue
		}
		if space, err := os.Readlink("/proc/" + e.Name() + "/ns/pid"); err == nil && spaces[space] {
			members = append(members, pid)
		}
	}
	return members
}

// isHostTrouble tells a full disk and the like from trouble with one machine.
func isHostTrouble(err error) bool {
	for _, target := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
