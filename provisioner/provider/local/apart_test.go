package local

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"loom/app/loom"
	"loom/provisioner/remote/sshtest"
)

// probeCommand runs this program on a machine: it makes calls that no shell makes.
const probeCommand = "probe"

// probe does one of these and gives the exit status.
func probe(what string) int {
	runtime.LockOSThread()
	switch what {
	case "calls": // a line for each call of the list that came through
		for _, d := range denied {
			want := unix.EPERM
			if d.missing {
				want = unix.ENOSYS
			}
			if _, _, errno := syscall.RawSyscall6(d.call, 0, 0, 0, 0, 0, 0); errno != want {
				fmt.Printf("call %d (%s): %v\n", d.call, d.why, errno)
			}
		}
		for _, family := range []int{unix.AF_PACKET, unix.AF_VSOCK, unix.AF_ALG, unix.AF_BLUETOOTH, unix.AF_RDS, unix.AF_TIPC} {
			if fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0); !errors.Is(err, unix.EAFNOSUPPORT) {
				fmt.Printf("socket of family %d: %d, %v\n", family, fd, err)
			}
		}
		if err := unix.Unshare(unix.CLONE_NEWUSER); !errors.Is(err, unix.EPERM) {
			fmt.Printf("a user namespace: %v\n", err)
		}
		if _, _, errno := syscall.RawSyscall(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0); errno != unix.EPERM {
			fmt.Printf("a user namespace by clone: %v\n", errno)
		}
	case "key": // the number of a key of that name, where one is found
		kind, _ := unix.BytePtrFromString("user")
		name, _ := unix.BytePtrFromString(os.Args[3])
		for _, ring := range []int{unix.KEY_SPEC_SESSION_KEYRING, unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_USER_SESSION_KEYRING} {
			if id, err := unix.KeyctlSearch(ring, "user", os.Args[3], 0); err == nil {
				fmt.Println(id)
			}
		}
		if id, _, errno := syscall.RawSyscall6(unix.SYS_REQUEST_KEY, uintptr(unsafe.Pointer(kind)), uintptr(unsafe.Pointer(name)), 0, 0, 0, 0); errno == 0 { //nolint:gosec // package unix has no request without a ring
			fmt.Println(id)
		}
	case "terminals": // as many as there are, and then sleep with them
		n := 0
		for ; ; n++ {
			if _, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0); err != nil {
				break
			}
		}
		fmt.Println(n)
		os.Stdout.Close()
		select {}
	case "sockets": // as much as fits waits in sockets that nobody reads, and is counted then
		tx, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return 1
		}
		var sockets []int
		packet := make([]byte, 60_000)
		for range 1000 {
			rx, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
			if err != nil || unix.Bind(rx, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) != nil {
				return 1
			}
			at, err := unix.Getsockname(rx)
			if err != nil {
				return 1
			}
			for range 4 {
				_ = unix.Sendto(tx, packet, unix.MSG_DONTWAIT, at)
			}
			sockets = append(sockets, rx)
		}
		bytes := 0
		for _, rx := range sockets {
			for {
				n, _, err := unix.Recvfrom(rx, packet, 0)
				if err != nil {
					break
				}
				bytes += n
			}
		}
		fmt.Println(bytes >> 20)
	case "inotify": // as many instances as there are, and then sleep with them
		n := 0
		for ; ; n++ {
			if _, err := unix.InotifyInit1(0); err != nil {
				break
			}
		}
		fmt.Println(n)
		os.Stdout.Close()
		select {}
	case "deleted": // a file that has no name, and grows
		f, err := os.Create("/root/nameless")
		if err != nil || os.Remove("/root/nameless") != nil {
			return 1
		}
		_, err = io.CopyN(f, zeros{}, 64<<20)
		fmt.Println(err, f.Sync())
		os.Stdout.Close()
		select {}
	default:
		return probeFiles(what)
	}
	return 0
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// bring puts this program on a machine, as /root/probe.
func (b *bundle) bring(t testing.TB, m MachineInfo) {
	t.Helper()
	b.must(t, m, "true")
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	s, err := b.readState(m.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	client := b.clients[fmt.Sprint("root", m.ID, s.PID, s.StartTime)]
	b.mu.Unlock()
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	session.Stdin = program
	if out, err := session.CombinedOutput("cat > /root/probe && chmod 755 /root/probe"); err != nil {
		t.Fatalf("bring the probe: %v %s", err, out)
	}
}

// neighbors are a machine and two beside it: of its tenant and of another.
func (b *bundle) neighbors(t testing.TB) (own *loom.TaskSpec, m, beside, other MachineInfo) {
	t.Helper()
	own = b.spec("acme", 0)
	m = b.create(t, own)
	return own, m, b.create(t, b.spec("acme", 1)), b.create(t, b.spec("umbrella", 0))
}

// TestIDsAreApart: machines of two tenants share no id of the host, and each has one of
// its own that owns its namespaces.
func TestIDsAreApart(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	_, m, beside, other := b.neighbors(t)
	in, err := b.readInstance()
	if err != nil || in.IDs%blockIDs != 0 {
		t.Fatalf("block %d, %v", in.IDs, err)
	}
	firsts, owners := map[string]int{}, map[int]bool{}
	for _, one := range []MachineInfo{m, beside, other} {
		s, err := b.readState(one.ID)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := readMap(fmt.Sprintf("/proc/%d/uid_map", one.PID))
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", one.PID))
		if err != nil || len(ids) != 1 || fmt.Sprint(strings.Fields(string(text))) != fmt.Sprintf("[0 %d %d]", s.FirstID, idCount) {
			t.Errorf("ids of %s: %s, %v", one.ID, text, err)
		}
		firsts[one.ID] = s.FirstID
		// Who owns the namespace is who the kernel charges.
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", one.PID))
		if err != nil {
			t.Fatal(err)
		}
		var uid uint32
		const getOwner = 0xb704 // NS_GET_OWNER_UID
		_, _, errno := syscall.Syscall(unix.SYS_IOCTL, ns.Fd(), getOwner, uintptr(unsafe.Pointer(&uid)))
		ns.Close()
		if errno != 0 || int(uid) != s.owner() || uid == 0 || owners[int(uid)] {
			t.Errorf("the namespaces of %s belong to %d (%v), want %d alone", one.ID, uid, errno, s.owner())
		}
		owners[int(uid)] = true
		// The base root is seen with the ids of the machine.
		if out := b.must(t, one, "stat -c %u:%g / /etc/passwd /usr/bin/passwd; stat -c %a /usr/bin/su; find / -xdev -nouser | head -3"); out != "0:0\n0:0\n0:0\n4755" {
			t.Errorf("files of %s: %s", one.ID, out)
		}
	}
	if firsts[m.ID] != firsts[beside.ID] || firsts[m.ID] == firsts[other.ID] {
		t.Errorf("ranges: %v", firsts)
	}
	for _, first := range firsts {
		if first < in.IDs || first >= in.IDs+blockIDs {
			t.Errorf("range %d is outside of the block %d", first, in.IDs)
		}
	}
}

// TestReservations: blocks of installations do not overlap, and keep clear of what the
// host gave to others.
func TestReservations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	subuid := filepath.Join(dir, "subuid")
	const hash = "000000"
	if err := os.WriteFile(subuid, fmt.Appendf(nil, "somebody:%d:65536\n# a comment\nbad\n", firstBlock*blockIDs+70000), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hostIDs{dir: filepath.Join(dir, "ids"), files: []string{subuid, filepath.Join(dir, "missing")}}
	homes := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
	for i, home := range homes {
		if err := os.Mkdir(home, 0o700); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it stays
			if got, err := h.reserve(t.Context(), home, hash); err != nil || got != (firstBlock+1+i)*blockIDs {
				t.Errorf("%s: %d, %v, want block %d", home, got, err, firstBlock+1+i)
			}
		}
	}
	// An installation that is gone keeps its block while there are others.
	if err := os.Remove(homes[0]); err != nil {
		t.Fatal(err)
	}
	if got, err := h.reserve(t.Context(), filepath.Join(dir, "three"), hash); err != nil || got != (firstBlock+3)*blockIDs {
		t.Errorf("third: %d, %v", got, err)
	}
	for block := firstBlock; block <= lastBlock; block++ {
		path := filepath.Join(h.dir, strconv.Itoa(block))
		if !exists(path) {
			if err := os.WriteFile(path, []byte(dir), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, err := h.reserve(t.Context(), filepath.Join(dir, "four"), hash); err != nil || got != (firstBlock+1)*blockIDs {
		t.Errorf("when all are taken: %d, %v, want that of the one that is gone", got, err)
	}
	if err := h.release(t.Context(), homes[1]); err != nil {
		t.Fatal(err)
	}
	if got, err := h.reserve(t.Context(), dir+"/five", hash); err != nil || got != (firstBlock+2)*blockIDs {
		t.Errorf("released: %d, %v", got, err)
	}
	if gaps := (idRanges{{0, 1000}}).gaps(); !gaps.overlap(5000, 1) || gaps.overlap(999, 1) {
		t.Errorf("ids that a host does not have: %v", gaps)
	}
}

// TestKeyRings: a machine sees and makes no keys, those of the host least of all.
func TestKeyRings(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	// The canary: a key of root of the host, who was in the machines' ranges before.
	canary := fmt.Sprintf("canary-%s", b.hash)
	id, err := onThread(func() (int, error) { return unix.AddKey("user", canary, []byte("x"), unix.KEY_SPEC_USER_KEYRING) })
	if err != nil {
		t.Logf("not tried: a key of the host, which this one may not make: %v", err)
	} else {
		if found, err := onThread(func() (int, error) { return unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", canary, 0) }); err != nil || found != id {
			t.Errorf("the host finds its own key as %d, %v, want %d", found, err, id)
		}
		t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
	}
	_, m, _, other := b.neighbors(t)
	for _, one := range []MachineInfo{m, other} {
		b.bring(t, one)
		if out := b.must(t, one, "/root/probe probe calls"); out != "" {
			t.Errorf("calls that came through:\n%s", out)
		}
		if out, err := b.run(t, one, "cat /proc/keys /proc/key-users"); err != nil || out != "" {
			t.Errorf("keys that a machine sees: %s, %v", out, err)
		}
		if out := b.must(t, one, "/root/probe probe key "+canary); out != "" {
			t.Errorf("a machine finds the host's key: %s", out)
		}
	}
	// Who starts a machine has a new session key ring, in which no key of the host is found.
	rings := map[int]bool{}
	for _, one := range []MachineInfo{m, other} {
		s, err := b.readState(one.ID)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := onThread(func() (int, error) {
			before, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
			if err != nil {
				return 0, err
			}
			rings[before] = true
			if err := become(s.owner()); err != nil {
				return 0, err
			}
			if found, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", canary, 0); err == nil {
				t.Errorf("the key ring of %s has the host's key as %d", one.Hostname, found)
			}
			return unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
		})
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			t.Skipf("not tried: key rings, which this host does not let processes have: %v", err)
		}
		if err != nil || rings[ring] {
			t.Errorf("%s has no key ring of its own: %d, %v", one.Hostname, ring, err)
		}
		rings[ring] = true
	}
}

// TestInotify: a machine that takes all inotify instances takes none of others.
func TestInotify(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	_, m, beside, other := b.neighbors(t)
	b.bring(t, m)
	out := b.must(t, m, "setsid /root/probe probe inotify > /root/count 2>&1 < /dev/null & until grep -qs . /root/count; do sleep 0.01; done; cat /root/count")
	n, err := strconv.Atoi(out)
	if err != nil || n < 8 {
		t.Fatalf("instances: %s", out)
	}
	for _, one := range []MachineInfo{beside, other} {
		b.bring(t, one)
		if got := b.must(t, one, "setsid /root/probe probe inotify > /root/count 2>&1 < /dev/null & until grep -qs . /root/count; do sleep 0.01; done; cat /root/count"); got != out {
			t.Errorf("beside a machine with %s instances another gets %s", out, got)
		}
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatalf("the host gets no instance: %v", err)
	}
	unix.Close(fd)
}

// TestSealed: what a machine may do, and what of the host it sees.
func TestSealed(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	spec.Flavor = "mem=256m"
	m := b.create(t, spec)
	var mask uint64
	for _, right := range kept {
		mask |= 1 << right
	}
	if out := b.must(t, m, "grep -E 'CapBnd|CapEff' /proc/self/status"); out != fmt.Sprintf("CapEff:\t%016[1]x\nCapBnd:\t%016[1]x", mask) {
		t.Errorf("rights: %q, want %016x", out, mask)
	}
	for _, name := range masked {
		if !exists("/" + name) {
			continue
		}
		if out, err := b.run(t, m, "cat /"+name); err != nil || out != "" {
			t.Errorf("/%s: %q, %v", name, out, err)
		}
		for _, command := range []string{"umount /", "mount --bind /dev/zero /", "echo x > /"} {
			if out, err := b.run(t, m, command+name); err == nil {
				t.Errorf("%s%s worked: %s", command, name, out)
			}
		}
	}
	for _, command := range []string{"unshare -U true", "unshare -m true", "unshare -n true", "mount -t proc proc /mnt", "mount -t tmpfs x /mnt", "dmesg", "hostname other",
		"date -s 2001-01-01", "nsenter -t 1 -m true", "mkdir /sys/fs/cgroup/x",
		// Tables of the network are memory of the host that counts for nobody.
		"ip neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 nud permanent dev eth0",
		"ip xfrm policy add dir out src 10.0.0.0/8 dst 10.0.0.0/8", "ip link add type dummy", "ip address add 10.9.9.9/32 dev eth0",
		"ip link set eth0 address 02:00:00:00:00:01", "ip route add 10.9.0.0/16 dev eth0",
		"echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6"} {
		if out, err := b.run(t, m, command); err == nil {
			t.Errorf("%s worked: %s", command, out)
		}
	}
	// Sizes, in kB: a half and a quarter of the memory.
	if out := b.must(t, m, "df -k --output=size /dev/shm /run | tail -n 2 | xargs"); out != "131072 65536" {
		t.Errorf("sizes of /dev/shm and /run: %s", out)
	}
	// What services need goes on working.
	if out := b.must(t, m, "useradd -m worker && su worker -c 'id -un' && su worker -c 'sudo -n true' 2>&1 | grep -c password; chroot / true && setpriv --reuid 1 true && chown worker /tmp/x$(touch /tmp/x) && echo fine"); !strings.HasPrefix(out, "worker\n") || !strings.HasSuffix(out, "fine") {
		t.Errorf("ordinary work: %s", out)
	}
	// sshd is spared, its sessions are not, and nothing before programs of the host.
	if result, err := b.Confirm(b.ctx, spec, &sink{t: t}); err != nil || result.Status != 0 {
		t.Fatalf("confirm: %+v, %v", result, err)
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", m.PID)); err != nil || strings.TrimSpace(string(text)) != spared {
		t.Errorf("oom_score_adj of sshd: %s, %v", text, err)
	}
	if out := b.must(t, m, "cat /proc/self/oom_score_adj"); out != unspared {
		t.Errorf("oom_score_adj of a session: %s", out)
	}
}

// TestBombs: what a machine does to itself, others do not notice.
func TestBombs(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t, func(o *Options) { o.MachineMax, o.TenantMax = "mem=128m,pids=60", "mem=256m,pids=200" })
	own, m, beside, other := b.neighbors(t)
	s, err := b.readState(m.ID)
	if err != nil || s.Limits.Memory != 128<<20 || s.Limits.Pids != 60 {
		t.Fatalf("a flavor without limits got %+v, %v", s.Limits, err)
	}
	if missing := b.cgroups.missing(); len(missing) > 0 {
		sshtest.SkipHere(t, "this host limits no %s", strings.Join(missing, ", "))
	}
	if result, err := b.Confirm(b.ctx, own, &sink{t: t}); err != nil || result.Status != 0 {
		t.Fatalf("confirm: %+v, %v", result, err)
	}
	// Memory: the program ends, the machine stays.
	if out, err := b.run(t, m, "python3 -c 'x = bytearray(400 << 20); print(len(x))'"); err == nil {
		t.Errorf("400 MiB in a machine of 128 MiB: %s", out)
	}
	if out, err := b.run(t, m, "dd if=/dev/zero of=/dev/shm/x bs=1M count=400 2>&1; rm -f /dev/shm/x"); err != nil || !strings.Contains(out, "No space left") {
		t.Errorf("a full /dev/shm: %s, %v", out, err)
	}
	b.must(t, m, "true")
	// Processes, without end.
	b.must(t, m, "cat > /root/bomb <<'END'\n#!/bin/sh\n/root/bomb & /root/bomb &\nwhile :; do :; done\nEND\nchmod 755 /root/bomb; setsid /root/bomb > /dev/null 2>&1 < /dev/null &")
	poll(t, 10*time.Second, "the bomb at its limit", func() error {
		if n := len(b.cgroups.pids(s.group())); n < 55 {
			return fmt.Errorf("%d processes", n)
		}
		return nil
	})
	for _, one := range []MachineInfo{beside, other} {
		start := time.Now()
		b.must(t, one, "for i in 1 2 3 4 5; do sh -c true; done")
		t.Logf("beside a fork bomb %s answers within %v", one.Tenant, time.Since(start))
	}
	if n := len(b.cgroups.pids(s.group())); n > 60 {
		t.Errorf("%d processes in a machine of 60", n)
	}
	late := b.create(t, b.spec("umbrella", 1))
	b.must(t, late, "true")
	b.delete(t, own)

	// The tenant's group encloses its machines: each may have 128 MiB, all of them 256.
	third := b.create(t, b.spec("acme", 2))
	fourth := b.create(t, b.spec("acme", 3))
	hold := "setsid python3 -c 'x = bytearray(100 << 20)\nimport time\ntime.sleep(1000)' > /dev/null 2>&1 < /dev/null & sleep 1; pgrep -fc '^python3.*bytearray'"
	held := 0
	for _, one := range []MachineInfo{beside, third, fourth} {
		if out, err := b.run(t, one, hold); err == nil && out == "1" {
			held++
		}
	}
	if held == 0 {
		t.Error("no program of 100 MiB began, so nothing was limited")
	}
	poll(t, time.Minute, "programs of 100 MiB in a tenant of 256 MiB", func() error {
		alive := 0
		for _, one := range []MachineInfo{beside, third, fourth} {
			if out, err := b.run(t, one, "pgrep -fc '^python3.*bytearray'"); err == nil && out == "1" {
				alive++
			}
		}
		if alive > 2 { // on a busy host they need a while to ask for all of it
			return fmt.Errorf("%d run (%d began)", alive, held)
		}
		return nil
	})
	b.must(t, other, "true")
}

// TestSocketsCount: what waits in the sockets of a machine has a limit.
func TestSocketsCount(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	if missing := b.cgroups.missing(); len(missing) > 0 {
		sshtest.SkipHere(t, "this host limits no %s", strings.Join(missing, ", "))
	}
	spec := b.spec("acme", 0)
	spec.Flavor = "mem=160m"
	m := b.create(t, spec)
	b.bring(t, m)
	most := 160 // as version 2 counts it: as memory
	for _, tree := range b.cgroups.trees {
		if tree.has("memory") {
			if !exists(filepath.Join(tree.path, "memory.kmem.tcp.limit_in_bytes")) {
				sshtest.SkipHere(t, "this kernel counts no sockets: memory.kmem.tcp.limit_in_bytes is absent")
			}
			most = 10
		}
	}
	out := b.must(t, m, "/root/probe probe sockets")
	if n, err := strconv.Atoi(out); err != nil || n == 0 || n > most {
		t.Errorf("%s MiB wait in sockets of a machine that may have %d", out, most)
	}
	b.must(t, m, "true")
}

// TestDeviceNodes: those of a machine are its own, so that a lock or a watch of one reaches
// nobody else.
func TestDeviceNodes(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	_, m, _, other := b.neighbors(t)
	names := ""
	for _, node := range deviceNodes {
		names += " /dev/" + node.name
	}
	seen := map[string]string{}
	for _, one := range []MachineInfo{m, other} {
		for _, line := range strings.Split(b.must(t, one, "stat -c '%n %d:%i'"+names), "\n") {
			name, id, _ := strings.Cut(line, " ")
			var host unix.Stat_t
			if err := unix.Stat(name, &host); err != nil {
				t.Fatal(err)
			}
			if id == fmt.Sprintf("%d:%d", host.Dev, host.Ino) || seen[name+id] != "" {
				t.Errorf("%s of %s is shared", name, one.Hostname)
			}
			seen[name+id] = one.ID
		}
		if out := b.must(t, one, "stat -c %F:%a:%u:%g"+names+" | sort -u; echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; echo x 2>&1 > /dev/full | grep -c 'No space'; grep ' /dev ' /proc/mounts | cut -d, -f 1-3"); !strings.HasPrefix(out, "character special file:666:0:0\n3\n3\n1\n") {
			t.Errorf("nodes of %s: %s", one.Hostname, out)
		}
		for _, command := range []string{"mknod /dev/mem c 1 1", "mknod /root/x c 1 3", "mount -o remount,suid /dev"} {
			if out, err := b.run(t, one, command); err == nil {
				t.Errorf("%s worked: %s", command, out)
			}
		}
	}
	b.must(t, m, "setsid flock -x /dev/null sleep 1000 > /root/log 2>&1 < /dev/zero & until pgrep -x sleep; do :; done")
	b.must(t, other, "flock -xn /dev/null true")
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := unix.Flock(int(null.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		t.Errorf("a machine keeps the host from a lock of /dev/null: %v", err)
	}
}

// TestTerminals: a machine that takes all terminals leaves those of others, whose number is
// one for all.
func TestTerminals(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	if _, err := b.Raise(); err != nil {
		t.Fatal(err)
	}
	_, m, _, other := b.neighbors(t)
	for _, one := range []MachineInfo{m, other} {
		b.bring(t, one)
		if out := b.must(t, one, "ulimit -n 8192; setsid /root/probe probe terminals > /root/count 2>&1 < /dev/null & until grep -qs . /root/count; do sleep 0.01; done; cat /root/count"); out != strconv.Itoa(terminals) {
			t.Errorf("a machine has %s terminals, want %d", out, terminals)
		}
	}
	text, err := os.ReadFile("/proc/sys/kernel/pty/max")
	if n, parse := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || parse != nil || n < 100*terminals {
		t.Errorf("terminals of all machines: %s, %v", text, err)
	}
}

// TestHostIsRaised: settings that count for all machines together are high enough for one
// that takes all it can, and are never lowered.
func TestHostIsRaised(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	if _, err := b.Raise(); err != nil {
		t.Fatal(err)
	}
	if said, err := b.Raise(); err != nil || len(said) > 0 {
		t.Errorf("raised twice: %q, %v", said, err)
	}
	for _, r := range raised {
		text, err := os.ReadFile("/proc/sys/" + r.file)
		if isGone(err) {
			t.Logf("not tried: this kernel has no %s", r.file)
			continue
		}
		if n, parse := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil || parse != nil || n < r.least {
			t.Errorf("%s is %s, %v, want %d and more", r.file, text, err, r.least)
		}
	}
	file := filepath.Join(t.TempDir(), "setting")
	for _, c := range []struct{ is, least, want string }{{"5", "10", "10"}, {"20\n", "10", "20\n"}} {
		least, _ := strconv.ParseInt(c.least, 10, 64)
		if err := os.WriteFile(file, []byte(c.is), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := raise(file, least); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != c.want {
			t.Errorf("%q raised to %s: %q, %v", c.is, c.least, got, err)
		}
	}
}

// TestNeighborsOfAll: machines that ask for all addresses of their network leave room in
// the table of neighbors, which is one for all.
func TestNeighborsOfAll(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	if _, err := b.Raise(); err != nil {
		t.Fatal(err)
	}
	_, m, beside, other := b.neighbors(t)
	home, err := b.ensureTenant(b.ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []MachineInfo{m, beside} {
		b.must(t, one, fmt.Sprintf(`cat > /root/ask <<'END'
import ipaddress, socket
hosts = [(str(h), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for h in list(ipaddress.ip_network("%s").hosts())[:1000]]
while True:
    for h, s in hosts:
        try: s.sendto(b"x", socket.MSG_DONTWAIT, (h, 9))
        except OSError: pass
END
setsid python3 /root/ask > /dev/null 2>&1 < /dev/null &`, home.subnet))
	}
	for _, one := range []MachineInfo{m, beside} {
		poll(t, 30*time.Second, "neighbors of "+one.Hostname, func() error {
			out := b.must(t, one, "ip neigh show | wc -l")
			if n, err := strconv.Atoi(out); err != nil || n < 900 {
				return fmt.Errorf("%s of them", out)
			}
			return nil
		})
	}
	late := b.create(t, b.spec("umbrella", 7))
	b.must(t, late, reaches(other.Address, 22))
	b.must(t, other, reaches(late.Address, 22))
}

// TestCores: a flavor that names cores gets them and no more.
func TestCores(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	spec.Flavor = "cores=0.2,cpu=50"
	log := &sink{t: t}
	if result, err := b.Create(b.ctx, spec, log); err != nil || result.Status != 0 {
		t.Fatalf("create: %+v, %v", result, err)
	}
	if strings.Contains(strings.Join(log.lines, "\n"), "No limit of processor") {
		sshtest.SkipHere(t, "this host has no control group for processors")
	}
	out := b.must(t, b.machine(t, spec), "python3 -c 'import time\nt = time.monotonic()\nc = time.process_time()\nwhile time.monotonic() - t < 2: pass\nprint((time.process_time() - c) / (time.monotonic() - t))'")
	if share, err := strconv.ParseFloat(out, 64); err != nil || share > 0.3 {
		t.Errorf("a machine with 0.2 processors had %s", out)
	}
}

// TestCeilings: limits above the ceilings are refused with both numbers, before anything
// is made.
func TestCeilings(t *testing.T) {
	t.Parallel()
	h := limits{Memory: 16 << 30, Pids: 32768, Cores: 4000, Disk: 100 << 30}
	for _, c := range []struct{ machine, tenant, machineWant, tenantWant, err string }{
		{"", "", "mem=8g,pids=16384,cores=4,disk=50g", "mem=12g,pids=24576,cores=4,disk=75g", ""},
		{"mem=1g,cores=0.5", "disk=10g,machines=3", "mem=1g,pids=16384,cores=0.5,disk=10g", "mem=12g,pids=24576,cores=4,disk=10g", ""},
		{"mem=14g", "", "mem=14g,pids=16384,cores=4,disk=50g", "mem=14g,pids=24576,cores=4,disk=75g", ""},
		{"mem=2g", "mem=1g", "", "", "allows one machine mem=2g and LOOM_LOCAL_TENANT_MAX allows all of a tenant mem=1g"},
		{"machines=2", "", "", "", "belongs to LOOM_LOCAL_TENANT_MAX"},
		{"cpu=5", "", "", "", "“cpu” is a weight"},
		{"", "swap=5", "", "", "LOOM_LOCAL_TENANT_MAX: “swap=5”"},
	} {
		got, err := newCeilings(c.machine, c.tenant, h)
		if c.err != "" {
			if err == nil || !strings.Contains(loom.AsError(err).Message, c.err) {
				t.Errorf("%q, %q: %v", c.machine, c.tenant, err)
			}
			continue
		}
		if err != nil || got.machine.String() != c.machineWant || got.tenant.String() != c.tenantWant {
			t.Errorf("%q, %q: %s and %s, %v", c.machine, c.tenant, got.machine, got.tenant, err)
		}
	}

	// Processes of all tenants together stay below what a host has.
	if c, err := newCeilings("", "", thisHost(t.TempDir())); err != nil || c.tenant.Pids > mostPids/4*3 {
		t.Errorf("processes of a tenant: %d, %v", c.tenant.Pids, err)
	}
	for _, file := range []string{"kernel/pid_max", "kernel/threads-max"} {
		if !slices.ContainsFunc(raised, func(r setting) bool { return r.file == file && r.least >= maxTenants*mostPids }) {
			t.Errorf("%s is not raised for %d tenants", file, maxTenants)
		}
	}

	b := setUpLocal(t, func(o *Options) { o.MachineMax, o.TenantMax = "mem=64m", "machines=1" })
	spec := b.spec("acme", 0)
	spec.Flavor = "mem=1g"
	if result, err := b.Create(b.ctx, spec, &sink{t: t}); err != nil || result.Status != 200 || !strings.Contains(result.Message, "“mem=1g” is more than “mem=64m”") {
		t.Errorf("above the ceiling: %+v, %v", result, err)
	}
	if probe, err := b.Verify(b.ctx, &loom.ProviderCall{Ask: loom.Offer{Kind: loom.OfferFlavor, ID: "mem=1g"}}); err != nil || probe.OK {
		t.Errorf("asked for a flavor above the ceiling: %+v, %v", probe, err)
	}
	first := b.spec("acme", 1)
	b.create(t, first)
	second := b.spec("acme", 2)
	if result, err := b.Create(b.ctx, second, &sink{t: t}); err != nil || result.Status == 0 || !strings.Contains(result.Message, "has 1 local machines and may have 1") {
		t.Errorf("one more than the tenant may have: %+v, %v", result, err)
	}
	b.create(t, b.spec("umbrella", 1))
	b.delete(t, first)
	b.create(t, second)
}

// TestOperatorSaysWhatIsReached: internet at all, and networks besides public ones.
func TestOperatorSaysWhatIsReached(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	outside := newOutside(t, b)
	for address, want := range map[string]bool{outside.address + "/32": true, "10.255.0.0/16": false} {
		b.networks = prefixesOf(t, address)
		spec := b.spec(loom.TenantID("acme"+fmt.Sprint(want)), 0)
		spec.Provider.Fields["internet"] = "on"
		_, err := b.run(t, b.create(t, spec), reaches(outside.address, 80))
		if (err == nil) != want {
			t.Errorf("with LOOM_LOCAL_NETWORKS=%s a machine reaches %s: %v", address, outside.address, err)
		}
		if want {
			<-outside.seen
		}
		// It opens nothing for those without internet.
		if _, err := b.run(t, b.create(t, b.spec(spec.Tenant, 1)), reach(outside.address, 80)); err == nil {
			t.Errorf("with LOOM_LOCAL_NETWORKS=%s a machine without internet reaches %s", address, outside.address)
		}
		if err := b.removeFilter(); err != nil {
			t.Fatal(err)
		}
	}
	closed := openLocal(t, b.dataDir, func(o *Options) { o.NoInternet = true })
	spec := b.spec("acme", 7)
	spec.Provider.Fields["internet"] = "on"
	if result, err := closed.Create(b.ctx, spec, &sink{t: t}); err != nil || result.Status != 200 || !strings.Contains(result.Message, "LOOM_LOCAL_INTERNET") {
		t.Errorf("internet that the operator does not allow: %+v, %v", result, err)
	}
}

// TestRootsAreCopied where they cannot be shown with other ids.
func TestRootsAreCopied(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	b.mappingOnce.Do(func() { b.mapping = errors.New("as if this were an old kernel") })
	if host := b.Host(); len(host.Lacks) == 0 || !strings.Contains(host.Lacks[0], "each tenant gets a copy") {
		t.Errorf("what the host lacks: %q", host.Lacks)
	}
	spec := b.spec("acme", 0)
	m := b.create(t, spec)
	if out := b.must(t, m, "stat -c %u:%g / /etc/passwd; stat -c %a /usr/bin/su; find / -xdev -nouser | head -3"); out != "0:0\n0:0\n4755" {
		t.Errorf("files over a copy: %s", out)
	}
	im, _ := parseImage(DefaultImage)
	s, err := b.readState(m.ID)
	if err != nil || !exists(filepath.Join(b.dataDir, "roots", fmt.Sprint(s.FirstID), im.hash())) {
		t.Errorf("the copy is not where it belongs: %v", err)
	}
	b.must(t, b.create(t, b.spec("acme", 1)), "true")
}

// TestOldMachinesGoOn: machines from before there were ranges and groups of tenants keep
// running, boot again as they were, and are deleted cleanly.
func TestOldMachinesGoOn(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	s, err := b.newState(b.ctx, spec)
	if err == nil {
		s.Limits = limits{}
		err = b.record(b.ctx, s)
	}
	if err == nil { // as an earlier release wrote it
		s.FirstID, s.Group = 0, ""
		err = errors.Join(b.writeState(s), b.boot(b.ctx, s, func(string) {}))
	}
	if err != nil {
		t.Fatal(err)
	}
	before := b.machine(t, spec)
	b.must(t, before, "echo kept > /root/file")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", before.PID))
	if err != nil || !strings.Contains(string(status), "Uid:\t100000\t") {
		t.Fatalf("ids of a machine from before: %v %s", err, status)
	}
	later := openLocal(t, b.dataDir)
	if err := later.Adopt(b.ctx); err != nil {
		t.Fatal(err)
	}
	if after := b.machine(t, spec); after.PID != before.PID {
		t.Errorf("before %+v, after %+v", before, after)
	}
	// A new one beside it has ids of its own.
	fresh := b.create(t, b.spec("acme", 1))
	b.must(t, fresh, reaches(before.Address, 22))
	if err := errors.Join(later.StopAll(b.ctx), later.Adopt(b.ctx)); err != nil {
		t.Fatal(err)
	}
	if out := b.must(t, b.machine(t, spec), "cat /root/file; stat -c %u /root/file /etc/passwd"); out != "kept\n0\n0" {
		t.Errorf("files after a boot: %s", out)
	}
	b.delete(t, spec)
	if groups := b.cgroups.leftovers(); len(groups) != 1 || !strings.HasPrefix(groups[0], "t0/") {
		t.Errorf("groups that are left: %v", groups)
	}
}

func prefixesOf(t *testing.T, texts ...string) (all []netip.Prefix) {
	t.Helper()
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}
