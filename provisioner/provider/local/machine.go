package local

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// bootLimit bounds the time until sshd takes over, which is some 30 ms on an
// idle host. A machine whose owner has broken it must not keep others waiting
// for longer.
const bootLimit = 30 * time.Second

// boot starts a machine that does not run; the caller holds its lock. Warnings
// go to log. After an error nothing of the attempt runs.
func (l *Local) boot(ctx context.Context, s *state, log func(string)) error {
	im, err := parseImage(s.Image)
	if err != nil {
		return err
	}
	if s.Stopped != "" {
		return s.stoppedError()
	}
	if err := l.ensureBase(ctx, s.Tenant, im, log); err != nil {
		return err
	}
	if s.Booted { // what its owner left there may keep it from coming up
		turn := l.reboots.of(s.Tenant, max(1, cap(l.boots)/2))
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case l.boots <- struct{}{}:
		defer func() { <-l.boots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	home, err := l.ensureTenant(ctx, s.Tenant)
	if err != nil {
		return err
	}
	if !home.subnet.Contains(parseIP(s.Address)) {
		return loom.NewError(loom.Unavailable, "Machine %s has the address %s, which is not of its tenant's network %s: the file %s was changed.", s.ID, s.Address, home.subnet, l.instanceFile())
	}
	if s.Internet {
		if err := l.allowInternet(ctx, s); err != nil {
			return err
		}
	}
	settings, err := l.settings(s, home)
	if err != nil {
		return err
	}
	lower, err := l.lowerOf(ctx, im, s.first())
	if err != nil {
		return err
	}
	root, err := onThread(func() (*os.File, error) { return l.mountRoot(s, lower) })
	if err != nil {
		return err
	}
	defer root.Close()
	for _, warning := range l.cgroups.prepare(s.group(), l.ceilings.fill(s.Limits)) {
		log(warning)
	}
	if err := l.start(ctx, s, home, settings, root, log); err != nil {
		return errors.Join(err, l.unplug(s.Address))
	}
	if s.Booted {
		return nil
	}
	s.Booted = true
	return l.writeState(s)
}

func (l *Local) settings(s *state, home tenantNet) ([]byte, error) {
	hostKey, err := os.ReadFile(l.hostKeyFile(s.ID))
	if err != nil {
		return nil, fmt.Errorf("read host key of machine %s: %w", s.ID, err)
	}
	resolvers := "" // none beats one that is out of reach
	if s.Internet {
		resolvers = l.resolvers()
	}
	ones, _ := home.subnet.Mask.Size()
	return json.Marshal(stageSettings{
		Hostname: s.Hostname, Address: fmt.Sprintf("%s/%d", s.Address, ones), Gateway: home.gateway().String(),
		HostKey: string(hostKey), AuthorizedKeys: s.AuthorizedKeys, SSHUser: s.SSHUser,
		Resolvers: resolvers, First: !s.Booted, Memory: l.ceilings.fill(s.Limits).Memory,
	})
}

// turns are places for each tenant.
type turns struct {
	mu     sync.Mutex
	places map[loom.TenantID]chan struct{}
}

// of returns the places of a tenant: who sends takes one, who receives frees it.
func (t *turns) of(tenant loom.TenantID, places int) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.places == nil {
		t.places = map[loom.TenantID]chan struct{}{}
	}
	if t.places[tenant] == nil {
		t.places[tenant] = make(chan struct{}, places)
	}
	return t.places[tenant]
}

// lowerRoot is what lies below a machine's own files.
type lowerRoot struct {
	path string
	// ids, if set, show it with the ids of the machine.
	ids *os.File
}

// mountRoot mounts the machine's root file system without giving it a place:
// it is in nobody's mount table until the machine takes it, and vanishes with
// the last process that holds it. It spoils its thread.
func (l *Local) mountRoot(s *state, lower lowerRoot) (*os.File, error) {
	dir := l.machineDir(s.ID)
	if err := errors.Join(mkdirOwned(filepath.Join(dir, "upper"), 0o755, s.first()), os.MkdirAll(filepath.Join(dir, "work"), 0o700)); err != nil {
		return nil, err
	}
	if err := l.limitDisk(s); err != nil {
		return nil, err
	}
	fd, err := l.overlay(lower, filepath.Join(dir, "upper"), filepath.Join(dir, "work"))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "root of "+s.ID), nil
}

// deviceNodes are those of a machine. They are its own: locks and watches of a file that
// all share would reach others.
var deviceNodes = []struct {
	name         string
	major, minor uint32
}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}}

// mountDevices mounts a machine's /dev, nowhere yet, with its nodes. Those that this
// process may not make (in a container) are left out, and the machine uses the host's.
func mountDevices(owner int) (*os.File, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("use tmpfs: %w", err)
	}
	defer unix.Close(fs)
	for _, option := range [][2]string{{"mode", "755"}, {"size", "64k"}, {"nr_inodes", "256"}, {"uid", strconv.Itoa(owner)}, {"gid", strconv.Itoa(owner)}} {
		err = errors.Join(err, unix.FsconfigSetString(fs, option[0], option[1]))
	}
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		return nil, fmt.Errorf("make /dev: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return nil, fmt.Errorf("mount /dev: %w", err)
	}
	dev := os.NewFile(uintptr(fd), "dev")
	for _, node := range deviceNodes {
		err := unix.Mknodat(fd, node.name, unix.S_IFCHR, int(unix.Mkdev(node.major, node.minor)))
		if errors.Is(err, unix.EPERM) {
			break
		}
		// Mode by itself, as the mask of this process holds for what it makes.
		if err == nil {
			err = errors.Join(unix.Fchmodat(fd, node.name, 0o666, 0), unix.Fchownat(fd, node.name, owner, owner, 0))
		}
		if err != nil {
			dev.Close()
			return nil, fmt.Errorf("make /dev/%s: %w", node.name, err)
		}
	}
	return dev, nil
}

// overlay mounts one file tree over another, nowhere yet.
func (l *Local) overlay(lower lowerRoot, upper, work string) (int, error) {
	base := lower.path
	if lower.ids != nil {
		fd, err := mapped(lower.path, lower.ids)
		if err != nil {
			return -1, err
		}
		defer unix.Close(fd)
		base = fmt.Sprintf("/proc/thread-self/fd/%d", fd)
	}
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("use the overlay file system: %w", err)
	}
	defer unix.Close(fs)
	err = unix.FsconfigSetString(fs, "source", "loom")
	for _, layer := range []struct{ option, path string }{{"lowerdir", base}, {"upperdir", upper}, {"workdir", work}} {
		// By descriptor: commas and colons in a path would be read as separators.
		layerFD, openErr := unix.Open(layer.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if openErr != nil {
			return -1, fmt.Errorf("open %s: %w", layer.path, openErr)
		}
		defer unix.Close(layerFD)
		err = errors.Join(err, unix.FsconfigSetString(fs, layer.option, fmt.Sprintf("/proc/thread-self/fd/%d", layerFD)))
	}
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		return -1, &loom.Error{Kind: loom.Unavailable, Err: fmt.Errorf("mount overlay of %s over %s: %w", upper, lower.path, err),
			Message: fmt.Sprintf("The file system of %s cannot carry machines (%v): put Loom's data directory on a local disk (ext4, xfs or btrfs; not a network or overlay file system).", l.dataDir, err)}
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return -1, fmt.Errorf("mount overlay: %w", err)
	}
	return fd, nil
}

// start runs the first process and sees it through until sshd takes over.
func (l *Local) start(ctx context.Context, s *state, home tenantNet, settings []byte, root *os.File, log func(string)) error {
	program, err := os.Open(l.executable)
	if err != nil {
		return fmt.Errorf("open the program of machines: %w", err)
	}
	defer program.Close()
	configR, configW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer configW.Close()
	reportR, reportW, err := os.Pipe()
	if err != nil {
		configR.Close()
		return err
	}
	defer reportR.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	first := s.first()
	devices, err := mountDevices(first)
	if err != nil {
		return err
	}
	defer devices.Close()
	process, err := onThread(func() (*os.Process, error) {
		if err := become(s.owner()); err != nil {
			return nil, err
		}
		return os.StartProcess(fmt.Sprintf("/proc/self/fd/%d", stageProgram), []string{"loom", StageCommand}, &os.ProcAttr{
			Dir: "/",
			// Nothing of Loom's environment, which holds its secrets, goes along.
			Env:   []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GOMAXPROCS=1", "GOGC=off"},
			Files: []*os.File{null, null, null, root, configR, reportW, program, devices},
			Sys: &syscall.SysProcAttr{
				Setsid: true, // no terminal and no group of Loom's: Ctrl-C is not for machines
				Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
					unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP,
				UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: first, Size: idCount}},
				GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: first, Size: idCount}},
				GidMappingsEnableSetgroups: true,
				Credential:                 &syscall.Credential{Uid: 0, Gid: 0},
			},
		})
	})
	configR.Close()
	reportW.Close()
	if err != nil {
		return fmt.Errorf("start the first process of machine %s: %w", s.ID, err)
	}
	// Collects the process when it ends, in an hour or a year; if this process
	// ends first, init does.
	go func() { _, _ = process.Wait() }()

	err = l.launch(ctx, s, home, settings, process.Pid, configW, reportR, log)
	if err != nil {
		_ = process.Kill()
		err = errors.Join(err, awaitGone(process.Pid, s.StartTime, deadAfterDelete))
	}
	return err
}

// launch does the part that needs the first process to exist and to wait: its
// groups and its cable come from outside.
func (l *Local) launch(ctx context.Context, s *state, home tenantNet, settings []byte, pid int, config, report *os.File, log func(string)) error {
	var err error
	if s.StartTime, _, err = processStat(pid); err != nil {
		return fmt.Errorf("the first process of machine %s ended at once: %w", s.ID, err)
	}
	s.PID, s.BootID = pid, bootID()
	// On record before it becomes a machine: until it has read its settings it
	// ends by itself when this process does.
	if err := l.writeState(s); err != nil {
		return err
	}
	l.cgroups.enter(s.group(), pid)
	if err := l.plug(home, s.Address, pid); err != nil {
		return err
	}
	if _, err := config.Write(settings); err != nil {
		return fmt.Errorf("hand machine %s its settings: %w", s.ID, err)
	}
	if err := config.Close(); err != nil {
		return err
	}
	return awaitReady(ctx, s.ID, report, log)
}

// maxReport is the most that a first process says. Services of a machine that boots again
// are its owner's and may get hold of the report for a moment.
const maxReport = 64 << 10

// awaitReady reads the first process's report up to its end, which is where
// sshd has taken over.
func awaitReady(ctx context.Context, id string, report *os.File, log func(string)) error {
	if err := report.SetReadDeadline(time.Now().Add(bootLimit)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = report.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	ready, failure := false, ""
	limited := &io.LimitedReader{R: report, N: maxReport}
	lines := bufio.NewScanner(limited)
	for lines.Scan() {
		kind, text, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "ready":
			ready = true
		case "warn":
			log(loom.Short(text))
		case "fail":
			failure = loom.Short(text)
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.N <= 0 || errors.Is(lines.Err(), bufio.ErrTooLong):
		return fmt.Errorf("the first process of machine %s says more than %d bytes", id, maxReport)
	case failure != "":
		return fmt.Errorf("machine %s could not %s", id, failure)
	case lines.Err() != nil:
		return fmt.Errorf("machine %s did not come up within %v: %w", id, bootLimit, lines.Err())
	case !ready:
		return fmt.Errorf("the first process of machine %s ended before the machine was up", id)
	}
	return nil
}

// running reports whether the machine's first process is alive.
func (s *state) running() bool {
	if s.PID == 0 || s.BootID != bootID() {
		return false
	}
	start, status, err := processStat(s.PID)
	return err == nil && start == s.StartTime && status != 'Z' && status != 'X'
}

// starting reports whether the first process has not become a machine yet, or never
// will.
func (s *state) starting() bool {
	line, err := readStart(fmt.Sprintf("/proc/%d/cmdline", s.PID), 64)
	return err == nil && undecided(line)
}

// readStart reads the first bytes of a file of a process of a machine, which may make it
// as long as it likes.
func readStart(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// undecided tells a command line that is not that of a machine. One that takes the
// place of another has none for a moment, and so has a process on its way out: it is
// listed as running until its network and its mounts are gone.
func undecided(line []byte) bool {
	return len(line) == 0 || string(line) == "loom\x00"+StageCommand+"\x00"
}

// settle reports whether the machine runs; the caller holds its lock. A first process
// that is still starting then has lost the process that made it: it becomes a machine
// if it was handed its settings in time, else it ends, by itself and soon.
func (l *Local) settle(ctx context.Context, s *state) (runs bool, err error) {
	for deadline := time.Now().Add(bootLimit); s.running(); {
		switch {
		case !s.starting():
			return s.running(), nil
		case time.Now().After(deadline):
			return false, l.halt(s, deadAfterDelete)
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
	return false, nil
}

// halt ends a machine at once: with its first process the kernel ends all
// others. It returns when the process is gone, whoever its parent is.
func (l *Local) halt(s *state, dead time.Duration) error {
	if s.PID == 0 || s.BootID != bootID() {
		return nil
	}
	if err := killProcess(s.PID, s.StartTime, dead); err != nil {
		return fmt.Errorf("stop machine %s: %w", s.ID, err)
	}
	return nil
}

// killProcess kills exactly the process with that number and start, and waits.
func killProcess(pid int, start uint64, dead time.Duration) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// The descriptor is bound to one process; now see whether it is the one.
	if found, _, err := processStat(pid); err != nil || found != start {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return awaitGone(pid, start, dead)
}

// How long a dead entry in the process table may stay uncollected. A first process
// is dead only when its namespaces are empty, so it holds nothing any longer: DELETE
// would rather not show it to who looks for leftovers, a stop of all machines
// need not wait.
const (
	deadAfterDelete = 5 * time.Second
	deadAfterStop   = 250 * time.Millisecond
)

// awaitGone waits until a killed process has left the process table, or has been
// a dead entry for a while because its parent is slow to collect it, as some
// hosts' first process is.
func awaitGone(pid int, start uint64, dead time.Duration) error {
	begun := time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		found, status, err := processStat(pid)
		if err != nil || found != start {
			return nil
		}
		switch waited := time.Since(begun); {
		case status == 'Z' && waited > dead:
			return nil
		case waited > time.Minute:
			return fmt.Errorf("process %d does not end (state %c)", pid, status)
		}
		time.Sleep(wait)
	}
}

// processStat returns a process's start, in clock ticks since the host's boot,
// and its state letter (proc(5)).
func processStat(pid int) (start uint64, status byte, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name in parentheses may hold anything; field 3 follows the last one.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 {
		return 0, 0, fmt.Errorf("process %d: unexpected stat line", pid)
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return start, fields[0][0], err
}

// bootID identifies this boot of the host.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}
