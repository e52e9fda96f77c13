// Package local makes machines on the provisioner's own host: each is a set of
// Linux namespaces (user, mount, pid, uts, ipc, net, cgroup) with an overlay
// over a shared, cached Debian base root, a cable to its tenant's bridge, and
// sshd as its first process. No container engine takes part.
//
// Machines outlive the process that made them, like those of a cloud: what is
// known of them is in files below the data directory, written before a machine
// starts, and any process with the same data directory can adopt, stop or
// remove them.
//
// The package must not keep facts about machines in memory only, and must never
// write into a machine's root file system from outside: its owner is root there
// and could plant links that lead out. Everything below the root is written by
// the machine's own first process, after it has changed its root (stage.go).
//
// A newcomer's trap: the program re-executes itself to become a machine's first
// process, so every program that makes machines (tests too) must call Main
// when its first argument is StageCommand, before doing anything else.
package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"loom/app/diskspace"
	"loom/app/loom"
	"loom/provisioner/provider"
)

// TypeName is the name of the provider type.
const TypeName = loom.LocalProvider

// Options of a Local.
type Options struct {
	// DataDir keeps machines and the instance's choices; required. Its absolute
	// path names the instance: bridges, packet filter table and control groups
	// carry a hash of it.
	DataDir string
	// Executable is the program to run as a machine's first process until sshd
	// takes over; it must call Main. Default: the running program.
	Executable string
	// BaseDir caches base roots, default DataDir/base. Several instances may share it.
	BaseDir string
	// Host names this host in results, default the kernel's host name.
	Host string
	// MachineMax and TenantMax are the most that one machine, and all of a tenant, may have,
	// in the form of flavors; what they do not name is derived from the host.
	MachineMax, TenantMax string
	// Reserve is what stays free of the disk.
	Reserve diskspace.Reserve
	// NoInternet refuses machines with internet. Networks are reached by all that have it,
	// besides public addresses.
	NoInternet bool
	Networks   []netip.Prefix
	// Parallel bounds how many machines boot at the same time, default 4: beyond
	// that the host only gets slower.
	Parallel int
}

// Local is the provider. It is safe for concurrent use, and several processes
// may use the same data directory at once.
type Local struct {
	dataDir    string
	baseDir    string
	executable string
	host       string
	hash       string // of the data directory, part of every name outside it
	builder    string // mmdebstrap
	boots      chan struct{}
	reboots    turns // half of the places for each tenant
	cgroups    *cgroups
	ceilings   ceilings
	reserve    diskspace.Reserve
	noInternet bool
	networks   []netip.Prefix
	confirm    func(context.Context, *loom.TaskSpec, provider.Machine, loom.Sink) (loom.TaskResult, error)
	resolvers  func() string // in the form of resolv.conf

	mu sync.Mutex // together with the instance's file lock: instance.json and the network
	// loaded says that this process has loaded the tables of packet filters, so that they
	// are not those of an earlier release.
	loaded bool
	// What the packet filter of the kernel can do.
	cables, counts ability

	claims sync.Mutex // counting addresses and taking one

	builds   builds
	elements elementChanges

	adoptions adoptions

	looked looked // by keepToDisk, which one watch calls at a time
	loads  loads

	reservations hostIDs
	ids          idmaps
	mappingOnce  sync.Once
	mapping      error // why base roots cannot be shown with other ids, nil when they can
	quotaOnce    sync.Once
	quota        bool
	copies       sync.Mutex // of base roots, made where they cannot
}

// New checks the options and prepares nothing yet: an installation without
// root can still describe the type. What is missing for making machines is told
// by Ready and by every action.
func New(options Options) (*Local, error) {
	if options.DataDir == "" {
		return nil, loom.NewError(loom.Invalid, "The local provider needs a data directory.")
	}
	dataDir, err := filepath.Abs(options.DataDir)
	if err != nil {
		return nil, fmt.Errorf("resolve data directory %s: %w", options.DataDir, err)
	}
	dataDir = resolve(dataDir)
	sum := sha256.Sum256([]byte(dataDir))
	l := &Local{
		dataDir: dataDir, baseDir: options.BaseDir, executable: options.Executable, host: options.Host,
		hash: hex.EncodeToString(sum[:])[:6], builder: "mmdebstrap", confirm: confirmSteps, resolvers: hostResolvers,
		reserve: options.Reserve, noInternet: options.NoInternet, networks: options.Networks, reservations: hostReservations,
	}
	if l.ceilings, err = newCeilings(options.MachineMax, options.TenantMax, thisHost(dataDir)); err != nil {
		return nil, err
	}
	if l.baseDir == "" {
		l.baseDir = filepath.Join(dataDir, "base")
	}
	if l.executable == "" {
		l.executable = "/proc/self/exe"
	}
	if l.host == "" {
		if l.host, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("read host name: %w", err)
		}
	}
	if options.Parallel <= 0 {
		options.Parallel = 4
	}
	for _, network := range l.networks {
		if !network.Addr().Is4() {
			return nil, loom.NewError(loom.Invalid, "LOOM_LOCAL_NETWORKS holds %s; local machines have IPv4 only.", network)
		}
	}
	l.boots = make(chan struct{}, options.Parallel)
	if l.cgroups, err = findCgroups("loom-" + l.hash); err != nil {
		return nil, fmt.Errorf("look for control groups: %w", err)
	}
	l.cgroups.tenant = l.ceilings.tenant
	return l, nil
}

// resolve follows the links in a path, also when its end does not exist yet: two
// spellings of a directory must be one instance, before and after it is made.
func resolve(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// Ready reports whether this process can make machines, as an error of kind
// Unavailable that says what is missing and what to do instead.
func (l *Local) Ready() error {
	if os.Geteuid() != 0 {
		return loom.NewError(loom.Unavailable, "Local machines need root: start Loom as root, or use the static-hosts provider with machines that you already have.")
	}
	for _, tool := range []struct{ name, pkg string }{{"nft", "nftables"}, {"mmdebstrap", "mmdebstrap"}} {
		if _, err := findTool(tool.name); err != nil {
			return loom.NewError(loom.Unavailable, "Local machines need the program “%s”: install the Debian package %s (apt-get install %s).", tool.name, tool.pkg, tool.pkg)
		}
	}
	if limit, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err != nil || string(limit) == "0\n" {
		return loom.NewError(loom.Unavailable, "Local machines need user namespaces, which this host does not allow: set the kernel setting user.max_user_namespaces above 0, or use the static-hosts provider.")
	}
	return nil
}

// findTool looks in PATH and then where Debian keeps programs for root, which
// are not in the PATH of everybody who becomes root.
func findTool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: %w", name, exec.ErrNotFound)
}

// command returns a command in a process group of its own: Ctrl-C goes to the whole
// group of a terminal, and a task that a stopping Loom still ends must not lose the
// program that it runs.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// machineID derives a machine's id from the idempotency key, so that looking a
// machine up by its key is opening a file.
func machineID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "m" + hex.EncodeToString(sum[:])[:11]
}

// isGone reports that a file, process or link was not there.
func isGone(err error) bool { return errors.Is(err, os.ErrNotExist) }
