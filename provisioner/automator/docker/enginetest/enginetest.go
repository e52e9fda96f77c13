// Package enginetest makes machines with a real container engine, for tests. Only _test
// files import it.
//
// A machine is a set of namespaces with sshd, made from a base root as machines of the
// local provider are, but not one of them: an engine mounts, makes namespaces and filters
// packets, which those may not. It is root of a user namespace of its own and nowhere
// else; its packet filter and its bridge are those of its own network namespace. Machines
// of a yard are on one bridge, in a network namespace too, which one cable joins to the
// host. So nothing but an empty control group can outlive the test, however it ends; the
// next yard removes those of tests that were killed.
package enginetest

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"loom/app/loom"
	"loom/provisioner/provider/local"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// Engine is a container engine of Debian.
type Engine struct {
	// Packages that its base root holds besides those of every machine.
	Packages string
	// Command runs for as long as the machine.
	Command string
}

var (
	// Docker is the engine of package docker.io, with all of its defaults; only its own
	// protection from the kernel's killer is left out, which not every host allows.
	Docker = Engine{Packages: "docker-registry,docker.io,haproxy,iptables,nginx-light", Command: "dockerd --oom-score-adjust 0"}
	// Podman has no daemon; its package podman-docker brings the command docker.
	Podman = Engine{Packages: "crun,docker-registry,iptables,nginx-light,podman,podman-docker", Command: "sleep infinity"}
)

// Machine is a machine of a yard. Root signs in with the key of the yard.
type Machine struct {
	Name, Address string
	// HostKey is its ed25519 key in base64.
	HostKey string
}

// Yard is a network of machines.
type Yard struct {
	Key      sshtest.Key
	Machines []Machine

	tb    testing.TB
	dir   string
	third int // of its addresses, 10.254.third.0/24
	hub   *process
}

// The ids of base roots, and how many there are.
const firstID, idCount = 100000, 65536

//go:embed machine.sh
var machineScript string

//go:embed image.sh
var imageScript string

// Start makes n machines and waits until their engines answer; they go with the test.
// The test is skipped where the kernel is known to refuse what an engine needs (refusals), and,
// unless LOOM_TEST_REQUIRE is 1, where anything else fails.
func Start(tb testing.TB, engine Engine, n int) *Yard {
	tb.Helper()
	y := &Yard{tb: tb, dir: tb.TempDir(), Key: sshtest.NewKey(tb, "ed25519", "")}
	for _, dir := range []string{y.dir, filepath.Dir(y.dir)} { // machines pass through
		if err := os.Chmod(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	root := y.baseRoot("bookworm:" + engine.Packages)
	y.sweep()
	if err := y.plug(); err != nil {
		cannot(tb, fmt.Errorf("this host has no network for machines with an engine: %w", err))
	}
	type made struct {
		Machine
		err error
	}
	all := make([]chan made, n)
	for i := range all {
		all[i] = make(chan made, 1)
		go func() {
			m, err := y.machine(engine, root, i+2)
			all[i] <- made{m, err}
		}()
	}
	var problems []error
	for _, one := range all {
		m := <-one
		y.Machines = append(y.Machines, m.Machine)
		problems = append(problems, m.err)
	}
	if err := errors.Join(problems...); err != nil {
		cannot(tb, fmt.Errorf("no container engine runs on this host: %w", err))
	}
	return y
}

// refusals are what kernels and the shell around them say of what they do not allow.
var refusals = []string{
	"operation not permitted", "permission denied", // namespaces, mounts, control groups
	"function not implemented", "operation not supported", // mounts with other ids
	"unknown filesystem type", "no such device", // overlay or cgroup2 are not in the kernel
	"read-only file system", // control groups that belong to somebody else
	"cgroup mountpoint does not exist", "devices cgroup isn't mounted",
}

// refusal returns what the kernel refused in an error, "" where it has another reason.
func refusal(err error) string {
	text := strings.ToLower(err.Error())
	for _, r := range refusals {
		if strings.Contains(text, r) {
			return r
		}
	}
	return ""
}

// cannot ends a test for which no machine can be made.
func cannot(tb testing.TB, err error) {
	tb.Helper()
	if why := refusal(err); why != "" {
		sshtest.SkipHere(tb, "the kernel refuses it (%s): %v", why, err)
	}
	if os.Getenv("LOOM_TEST_REQUIRE") == "1" {
		tb.Fatal(err)
	}
	tb.Skip(err)
}

// baseRoot builds the base root where it is not there, as for local machines.
func (y *Yard) baseRoot(image string) string {
	y.tb.Helper()
	dir := os.Getenv("LOOM_TEST_BASE_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			y.tb.Fatal(err)
		}
		dir = filepath.Join(cache, "loom-test", "base")
	}
	l, err := local.New(local.Options{DataDir: y.tb.TempDir(), BaseDir: dir})
	if err != nil {
		y.tb.Fatal(err)
	}
	defer l.Close()
	if err := l.Ready(); err != nil {
		if os.Getenv("LOOM_TEST_REQUIRE") == "1" {
			y.tb.Fatal(err)
		}
		y.tb.Skip(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := l.Prepare(ctx, []string{image}, func(line string) { y.tb.Log(line) }); err != nil {
		y.tb.Fatal(err)
	}
	root, err := l.BaseRoot(image)
	if err != nil {
		y.tb.Fatal(err)
	}
	return root
}

// process is one whose standard input ends with the test, and it with that.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// start starts a command and ends it with the test.
func (y *Yard) start(cmd *exec.Cmd) (*process, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, stdin}
	y.tb.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return p, nil
}

// Dial signs in to a machine; the connection ends with the test.
func (y *Yard) Dial(m Machine, user string) *remote.Conn {
	y.tb.Helper()
	conn, err := y.dial(m, user, time.Minute)
	if err != nil {
		y.tb.Fatal(err)
	}
	y.tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (y *Yard) dial(m Machine, user string, limit time.Duration) (*remote.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return remote.Dial(ctx, remote.Target{Reach: loom.Anywhere(), Address: m.Address, User: user,
		Keys: []loom.Secret{loom.NewSecret(y.Key.PEM)}, HostKeys: map[string]string{"ed25519": m.HostKey}})
}

// Image imports an image of a web server, whose page has a title and the name that it
// finds in /etc/machine-name; /greeting gives its variable GREETING.
func (y *Yard) Image(m Machine, name, title string) {
	y.tb.Helper()
	command := remote.Command{Text: imageScript, Env: map[string]string{"IMAGE": name, "TITLE": title}}
	if _, err := y.Dial(m, "root").Run(context.Background(), "image", command); err != nil {
		y.tb.Fatal(err)
	}
}

// plug makes the bridge and the cable from the host to it.
func (y *Yard) plug() error {
	// Two yards must not choose the same addresses.
	lock, err := os.OpenFile("/run/lock/loom-test-engines.lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	// Local machines are in 10.128.0.0 to 10.253.255.255.
	for y.third = 0; ; y.third++ {
		if y.third > 255 {
			return errors.New("all networks of 10.254.0.0/16 are taken")
		}
		if free(net.IPv4(10, 254, byte(y.third), 0), taken) {
			break
		}
	}
	hub := exec.Command("cat")
	hub.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if y.hub, err = y.start(hub); err != nil {
		return err
	}
	pid, cable := strconv.Itoa(hub.Process.Pid), "loom-engine"+strconv.Itoa(y.third)
	// It goes with the bridge, too, but the kernel takes its time.
	y.tb.Cleanup(func() { _ = run(`ip link delete "$1"`, cable) })
	return run(`set -e
nsenter -t "$1" -n sh -c 'ip link add bridge address 02:00:00:00:00:01 type bridge && ip link set bridge up'
ip link add "$2" type veth peer name host netns "$1"
nsenter -t "$1" -n ip link set host master bridge up
ip address add "$3" dev "$2"
ip link set "$2" up`, pid, cable, y.address(1)+"/24")
}

func (y *Yard) address(host int) string { return fmt.Sprintf("10.254.%d.%d", y.third, host) }

// free reports whether no address of the host lies in a network of 24 bits.
func free(network net.IP, taken []net.Addr) bool {
	n := net.IPNet{IP: network, Mask: net.CIDRMask(24, 32)}
	for _, address := range taken {
		if a, ok := address.(*net.IPNet); ok && (n.Contains(a.IP) || a.Contains(network)) {
			return false
		}
	}
	return true
}

// run runs a script of the host with arguments.
func run(script string, arguments ...string) error {
	if out, err := exec.Command("sh", append([]string{"-c", script, "sh"}, arguments...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// machine makes one. An error is what the kernel or the engine refused.
func (y *Yard) machine(engine Engine, root string, host int) (Machine, error) {
	key := sshtest.NewKey(y.tb, "ed25519", "")
	m := Machine{Name: fmt.Sprintf("engine%d", host-1), Address: y.address(host), HostKey: key.Blob}
	dir := filepath.Join(y.dir, m.Name)
	for _, name := range []string{"", "upper", "work", "root", "docker", "containers"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chown(path, firstID, firstID)); err != nil {
			return m, err
		}
	}
	group, err := y.group(m.Name)
	if err != nil {
		return m, err
	}
	defer group.Close()
	cmd := exec.Command("unshare", "--cgroup", "sh", "-c", machineScript, "sh", filepath.Join(dir, "root"), dir)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "ENGINE=" + engine.Command,
		"NAME=" + m.Name, "ADDRESS=" + m.Address + "/24", "GATEWAY=" + y.address(1), "HOST_KEY=" + key.PEM, "AUTHORIZED=" + y.Key.Authorized}
	ids := []syscall.SysProcIDMap{{HostID: firstID, Size: idCount}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{}, Setsid: true,
		UseCgroupFD: true, CgroupFD: int(group.Fd()),
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return m, err
	}
	var p *process
	// In mounts of a thread of its own, which ends with them: the host never has them.
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
				return fmt.Errorf("private mounts: %w", err)
			}
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return fmt.Errorf("private mounts: %w", err)
			}
			layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", root, filepath.Join(dir, "upper"), filepath.Join(dir, "work"))
			if err := unix.Mount("overlay", filepath.Join(dir, "root"), "overlay", 0, layers); err != nil {
				return fmt.Errorf("overlay: %w", err)
			}
			p, err = y.start(cmd)
			return err
		}()
	}()
	if err := <-done; err != nil {
		return m, err
	}
	if err := run(`nsenter -t "$1" -n ip link add "$3" type veth peer name eth0 netns "$2" && nsenter -t "$1" -n ip link set "$3" master bridge up`,
		strconv.Itoa(y.hub.cmd.Process.Pid), strconv.Itoa(cmd.Process.Pid), m.Name); err != nil {
		return m, err
	}
	if _, err := io.WriteString(p.stdin, "go\n"); err != nil {
		return m, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return m, fmt.Errorf("%s ended before it was ready: %w", m.Name, err)
	}
	if line != "ready\n" {
		return m, fmt.Errorf("%s: %s", m.Name, strings.TrimSpace(line))
	}
	// On a busy host a new cable loses packets for a while.
	for try := 0; ; try++ {
		conn, err := y.dial(m, "root", 2*time.Second)
		if err == nil {
			return m, conn.Close()
		}
		if try == 20 {
			y.tb.Errorf("%s runs and cannot be reached: %v", m.Name, err)
			return m, nil
		}
	}
}

// groups is the prefix of the control groups; the id of the test's process follows.
const groups = "loom-test-engine-"

// group makes the control group of a machine, in which it may make others.
func (y *Yard) group(name string) (*os.File, error) {
	tree, err := groupTree()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(tree, fmt.Sprintf("%s%d-%d-%s", groups, os.Getpid(), y.third, name))
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	y.tb.Cleanup(func() { // after its processes
		if err := removeGroup(path); err != nil {
			y.tb.Error(err)
		}
	})
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		if err := os.Chown(filepath.Join(path, file), firstID, firstID); err != nil {
			return nil, err
		}
	}
	return os.Open(path)
}

// groupTree is where the host has the tree of control groups of version 2.
func groupTree() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1], nil
		}
	}
	return "", errors.New("control groups of version 2 are mounted nowhere")
}

// removeGroup removes a control group with all below it.
func removeGroup(path string) error {
	var all []string
	err := filepath.WalkDir(path, func(dir string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, dir)
		}
		return err
	})
	for i := len(all) - 1; i >= 0; i-- {
		err = errors.Join(err, os.Remove(all[i]))
	}
	return err
}

// sweep removes the empty control groups of tests that were killed.
func (y *Yard) sweep() {
	tree, err := groupTree()
	if err != nil {
		return
	}
	left, _ := filepath.Glob(filepath.Join(tree, groups+"*"))
	for _, path := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groups), "-")
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, fs.ErrNotExist) {
			_ = removeGroup(path)
		}
	}
}
