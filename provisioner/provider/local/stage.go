package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// StageCommand is the first argument with which the program is run as the first
// process of a machine; see Main.
const StageCommand = "local-machine"

// Descriptors that the first process of a machine finds open.
const (
	stageRoot    = 3 // the machine's root file system, mounted nowhere yet
	stageConfig  = 4 // stageSettings as JSON, to the end of the pipe
	stageReport  = 5 // "warn …", "fail …" or "ready", a line each
	stageProgram = 6 // the program itself
	stageDevices = 7 // the machine's /dev, mounted nowhere yet
)

// stageSettings is what a machine needs to know of itself.
type stageSettings struct {
	Hostname       string
	Address        string // with prefix length
	Gateway        string
	HostKey        string // private, as OpenSSH reads it
	AuthorizedKeys []string
	SSHUser        string
	Resolvers      string
	First          bool // the machine has never been up
	Memory         int64
}

// Main is the first process of a machine until sshd takes its place. It returns
// only when something is wrong, with the exit code; what is wrong goes to the
// process that made the machine. It needs descriptors that only this package
// sets up, so running it by hand ends at once.
func Main([]string) int {
	// Namespaces and keyrings entered below belong to this thread, which is also
	// the one that becomes sshd.
	runtime.LockOSThread()
	report := os.NewFile(stageReport, "report")
	if report == nil || unix.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "This command starts a machine of the local provider and is run by Loom only.")
		return 2
	}
	// Nothing of Loom stays open in the machine, neither in the programs started
	// below nor in sshd; closing the report tells Loom that sshd has taken over.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return 1
	}
	say := func(kind string, text any) {
		fmt.Fprintf(report, "%s %s\n", kind, strings.ReplaceAll(fmt.Sprint(text), "\n", " "))
	}
	data, err := io.ReadAll(os.NewFile(stageConfig, "config"))
	if err != nil || len(data) == 0 { // whoever made this machine is gone
		return 1
	}
	var settings stageSettings
	if err := json.Unmarshal(data, &settings); err != nil {
		say("fail", err)
		return 1
	}
	for _, step := range []struct {
		what string
		do   func(stageSettings, func(string, any)) error
	}{
		{"enter its root", enterRoot}, {"set up its network", setUpNetwork}, {"give up rights", seal}, {"write its files", writeFiles}, {"raise its OOM score", raiseOOMScore}, {"start its services", startServices},
	} {
		if err := step.do(settings, say); err != nil {
			say("fail", fmt.Errorf("%s: %w", step.what, err))
			return 1
		}
	}
	say("ready", "")
	err = syscall.Exec("/usr/sbin/sshd", []string{"/usr/sbin/sshd", "-D", "-E", "/var/log/sshd.log"}, stageEnvironment())
	say("fail", fmt.Errorf("start /usr/sbin/sshd: %w", err))
	return 1
}

func stageEnvironment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/root", "SHELL=/bin/sh", "container=loom"}
}

// terminals is how many a machine has at once; those of all machines come from one number
// of the host.
const terminals = 256

// enterRoot makes the machine's file tree and leaves the host's for good.
func enterRoot(s stageSettings, say func(string, any)) error {
	unix.Umask(0o022)
	// From here on the machine sees its own group as the root of each tree.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		say("warn", fmt.Sprintf("The machine sees the host's names of control groups: %v.", err))
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	const root = "/tmp" // any directory of the host will do: only this process sees the mount
	if err := unix.MoveMount(stageRoot, "", unix.AT_FDCWD, root, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount the root file system: %w", err)
	}
	// Memory counts for the machine's group; the sizes keep a full directory from taking
	// all of it.
	size := func(share int64) string {
		if s.Memory == 0 {
			return ""
		}
		return fmt.Sprintf(",size=%d,nr_inodes=65536", s.Memory/share)
	}
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct {
		kind, at string
		flags    uintptr
		data     string
	}{
		// proc and sysfs must be mounted while those of the host are in sight:
		// the kernel wants proof that nothing in them was hidden from us.
		{"proc", "proc", quiet, ""},
		{"sysfs", "sys", quiet | unix.MS_RDONLY, ""},
		{"tmpfs", "run", unix.MS_NOSUID | unix.MS_NODEV, "mode=755" + size(4)},
		{"", "dev", 0, ""},
		{"devpts", "dev/pts", unix.MS_NOSUID | unix.MS_NOEXEC, fmt.Sprintf("newinstance,ptmxmode=0666,mode=620,gid=5,max=%d", terminals)},
		{"tmpfs", "dev/shm", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777" + size(2)},
	} {
		at := filepath.Join(root, m.at)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if m.kind == "" {
			if err := unix.MoveMount(stageDevices, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
				return fmt.Errorf("mount %s: %w", m.at, err)
			}
			continue
		}
		err := unix.Mount(m.kind, at, m.kind, m.flags, m.data)
		if m.kind == "sysfs" && err != nil { // a host that is a container itself
			say("warn", fmt.Sprintf("The machine has no /sys: %v.", err))
		} else if err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	for _, node := range deviceNodes { // those of the host, where Loom may not make any
		at := filepath.Join(root, "dev", node.name)
		f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		f.Close()
		if err := unix.Mount("/dev/"+node.name, at, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount dev/%s: %w", node.name, err)
		}
	}
	if err := mask(root); err != nil {
		return err
	}
	for name, target := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, filepath.Join(root, "dev", name)); err != nil {
			return err
		}
	}
	if err := unix.Chdir(root); err != nil {
		return err
	}
	// Both at one place: the host's tree comes to lie on top and is taken away.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's files: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	os.Clearenv()
	for _, pair := range stageEnvironment() {
		key, value, _ := strings.Cut(pair, "=")
		os.Setenv(key, value)
	}
	return nil
}

// setUpNetwork configures the machine's end of its cable, named eth0 by Loom.
func setUpNetwork(s stageSettings, _ func(string, any)) error {
	// Absent on kernels without IPv6.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", []byte("1"), 0)
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	eth, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	address, err := netlink.ParseAddr(s.Address)
	if err != nil {
		return err
	}
	gateway, err := netlink.ParseAddr(s.Gateway + "/32")
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetUp(lo), netlink.AddrAdd(eth, address), netlink.LinkSetUp(eth),
		netlink.RouteAdd(&netlink.Route{LinkIndex: eth.Attrs().Index, Gw: gateway.IP}))
}

// writeFiles returns the machine its names and keys. It runs inside the machine's
// root, so links planted there lead nowhere else.
func writeFiles(s stageSettings, _ func(string, any)) error {
	for path, mode := range map[string]os.FileMode{"/run/sshd": 0o755, "/run/lock": 0o777 | os.ModeSticky, "/run/shm": 0o777 | os.ModeSticky, "/tmp": 0o777 | os.ModeSticky} {
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, mode)); err != nil {
			return err
		}
	}
	short, _, _ := strings.Cut(s.Hostname, ".")
	kernelName := s.Hostname
	if len(kernelName) > 64 { // all that Linux takes
		kernelName = short
	}
	if err := unix.Sethostname([]byte(kernelName)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	address, _, _ := strings.Cut(s.Address, "/")
	files := []struct {
		path, text string
		mode       os.FileMode
		once       bool
	}{
		{"/etc/hostname", s.Hostname + "\n", 0o644, true},
		{"/etc/hosts", fmt.Sprintf("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n%s %s %s\n", address, s.Hostname, short), 0o644, true},
		{"/etc/resolv.conf", s.Resolvers, 0o644, false},
		{"/etc/ssh/ssh_host_ed25519_key", s.HostKey, 0o600, false},
	}
	for _, f := range files {
		if f.once && !s.First {
			continue
		}
		if err := replaceFile(f.path, f.text, f.mode); err != nil {
			return err
		}
	}
	return authorize(s)
}

// replaceFile writes a new file in place of whatever has the name.
func replaceFile(path, text string, mode os.FileMode) error {
	if err := os.Remove(path); err != nil && !isGone(err) {
		return err
	}
	return os.WriteFile(path, []byte(text), mode)
}

// authorize lets the keys in, adding to those the machine has; the user is made
// when absent and may do everything, as on cloud images.
func authorize(s stageSettings) error {
	user, err := passwdEntry(s.SSHUser)
	if err != nil && s.First {
		if out, err := exec.Command("useradd", "--create-home", "--shell", "/bin/bash", "--", s.SSHUser).CombinedOutput(); err != nil {
			return fmt.Errorf("make user %s: %w: %s", s.SSHUser, err, out)
		}
		if err := replaceFile("/etc/sudoers.d/90-loom", s.SSHUser+" ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440); err != nil {
			return err
		}
		user, err = passwdEntry(s.SSHUser)
	}
	if err != nil {
		if s.First {
			return err
		}
		return nil // whoever rules the machine has removed the user: their decision
	}
	dir := filepath.Join(user.home, ".ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, "authorized_keys")
	present, err := readPlain(path)
	if err != nil && !isGone(err) {
		return err
	}
	lines := strings.Split(strings.TrimRight(string(present), "\n"), "\n")
	for _, key := range s.AuthorizedKeys {
		if !slices.Contains(lines, key) {
			lines = append(lines, key)
		}
	}
	text := strings.TrimLeft(strings.Join(lines, "\n"), "\n") + "\n"
	return errors.Join(replacePlain(path, text), os.Chown(dir, user.uid, user.gid), os.Chown(path, user.uid, user.gid))
}

// replacePlain writes to a file that readPlain can read.
func replacePlain(path, text string) error {
	f, err := openPlain(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// maxPlain is how much of a file of the machine its first process reads.
const maxPlain = 1 << 20

// readPlain reads a file of a machine that its owner may have replaced by anything.
func readPlain(path string) ([]byte, error) {
	f, err := openPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPlain+1))
	if err == nil && len(data) > maxPlain {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxPlain)
	}
	return data, err
}

// openPlain opens a regular file. A pipe would keep the machine from coming up for good,
// and who waits for it.
func openPlain(path string, flags int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

type account struct {
	uid, gid int
	home     string
}

func passwdEntry(name string) (account, error) {
	text, err := readPlain("/etc/passwd")
	if err != nil {
		return account{}, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Split(line, ":")
		if len(f) < 7 || f[0] != name {
			continue
		}
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		return account{uid, gid, f[5]}, errors.Join(err1, err2)
	}
	return account{}, fmt.Errorf("no user %s on the machine", name)
}

// raiseOOMScore makes the kernel end programs of the machine before those of the host when
// memory is short; see unspared.
func raiseOOMScore(stageSettings, func(string, any)) error {
	err := os.WriteFile("/proc/self/oom_score_adj", []byte(unspared), 0)
	if errors.Is(err, os.ErrPermission) { // Loom itself has more
		return nil
	}
	return err
}

// startServices starts, beside sshd, what is enabled on a machine that boots
// again. A base root has nothing enabled, so a first boot starts nothing.
func startServices(stageSettings, func(string, any)) error {
	scripts, err := filepath.Glob("/etc/rc2.d/S[0-9][0-9]*")
	if err != nil || len(scripts) == 0 {
		return err
	}
	log, err := openPlain("/var/log/loom-boot.log", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", "-c", `for script in "$@"; do case "$script" in *ssh) ;; *) "$script" start ;; esac; done`, "boot")
	cmd.Args = append(cmd.Args, scripts...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start() // sshd, our successor, collects it
}
