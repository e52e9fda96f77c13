package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"loom/app/diskspace"
	"loom/app/loom"
	"loom/provisioner/remote/sshtest"
)

// TestDiskIsWatched: a machine that fills its disk is stopped, with the reason, and the
// others go on.
func TestDiskIsWatched(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	if b.hasQuota() {
		sshtest.SkipHere(t, "the kernel keeps machines to their disk here (TestProjectQuotas)")
	}
	spec := b.spec("acme", 0)
	spec.Flavor = "disk=64m"
	m, other := b.create(t, spec), b.create(t, b.spec("umbrella", 0))
	b.must(t, m, "true")
	ctx, cancel := context.WithCancel(b.ctx)
	lines := make(chan string, 10)
	done := make(chan struct{})
	go func() { defer close(done); b.Watch(ctx, func(line string) { lines <- line }, nil) }()
	defer func() { cancel(); <-done }()
	// It ends with the machine, if not before.
	_, _ = b.run(t, m, "dd if=/dev/zero of=/root/full bs=1M count=400; sync; sleep 100")
	poll(t, 10*time.Second, "the machine that is full", func() error {
		if b.machine(t, spec).Running {
			return errors.New("runs")
		}
		return nil
	})
	if line := <-lines; !strings.Contains(line, "is stopped: its files take ") || !strings.Contains(line, "may have 64.0 MB") {
		t.Errorf("log: %s", line)
	}
	b.must(t, other, "dd if=/dev/zero of=/root/some bs=1M count=10 2>&1; sync; cat /root/some | wc -c")
	result, err := b.Confirm(b.ctx, spec, &sink{t: t})
	if err != nil || result.Status == 0 || !strings.Contains(result.Message, "was stopped: its files take") {
		t.Errorf("confirm: %+v, %v", result, err)
	}
	if err := openLocal(t, b.dataDir).Adopt(b.ctx); err != nil || b.machine(t, spec).Running {
		t.Errorf("adopt: %v, %+v", err, b.machine(t, spec))
	}
	b.delete(t, spec)
}

// TestDiskIsCounted: what counts, and for whom.
func TestDiskIsCounted(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t, func(o *Options) { o.TenantMax = "disk=128m" })
	if b.hasQuota() {
		sshtest.SkipHere(t, "the kernel counts here")
	}
	var lines []string
	look := func() string {
		t.Helper()
		lines = nil
		if err := b.keepToDisk(b.ctx, func(line string) { lines = append(lines, line) }); err != nil {
			t.Fatal(err)
		}
		return strings.Join(lines, "\n")
	}
	// A file without a name, which no walk finds.
	spec := b.spec("acme", 0)
	spec.Flavor = "disk=70m"
	m := b.create(t, spec)
	b.bring(t, m)
	if out := look(); out != "" {
		t.Errorf("a machine within its limit: %s", out)
	}
	b.must(t, m, "setsid /root/probe probe deleted > /root/out 2>&1 < /dev/null & until grep -qs . /root/out; do sleep 0.01; done")
	size := b.diskOf(mustState(t, b, m), 0).bytes
	if size < 64<<20 {
		t.Errorf("with a deleted file of 64 MiB the machine has %d bytes", size)
	}
	if out := look(); !strings.Contains(out, m.ID) {
		t.Errorf("a machine above its limit by a deleted file: %q, %d bytes", out, size)
	}
	b.delete(t, spec)

	// Many files, and directories that lead too deep.
	for name, c := range map[string]struct{ command, want string }{
		"files": {"mkdir /root/many && cd /root/many && seq -f f%g 10100 | xargs touch", "more than 10000 files"},
		"deep":  {"cd /root && for i in $(seq 300); do mkdir d && cd d; done", "nested more than 256 deep"},
	} {
		spec := b.spec("acme", 1+len(name))
		spec.Flavor = "disk=128m"
		m := b.create(t, spec)
		b.must(t, m, c.command)
		if out := look(); !strings.Contains(out, c.want) {
			t.Errorf("%s: %q", name, out)
		}
		b.delete(t, spec)
	}

	// All machines of a tenant together; the largest goes.
	small, large := b.spec("acme", 20), b.spec("acme", 21)
	for spec, mb := range map[*loom.TaskSpec]int{small: 50, large: 90} {
		b.must(t, b.create(t, spec), fmt.Sprintf("dd if=/dev/urandom of=/root/x bs=1M count=%d 2> /dev/null; sync", mb))
	}
	if out := look(); !strings.Contains(out, "the machines and base roots of its tenant take") || b.machine(t, large).Running || !b.machine(t, small).Running {
		t.Errorf("a tenant above its limit: %q", out)
	}

	// So do the base roots built for it.
	b.baseDir = t.TempDir()
	root := filepath.Join(b.baseDir, "bookworm-x", "root")
	if err := errors.Join(os.MkdirAll(root, 0o755), os.WriteFile(filepath.Join(root, "file"), make([]byte, 100<<20), 0o600), b.noteBuilt(filepath.Dir(root), "acme")); err != nil {
		t.Fatal(err)
	}
	if out := look(); !strings.Contains(out, "the machines and base roots of its tenant take") || b.machine(t, small).Running {
		t.Errorf("a tenant above its limit with a base root: %q", out)
	}
}

func mustState(t *testing.T, b *bundle, m MachineInfo) *state {
	t.Helper()
	s, err := b.readState(m.ID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestReserve: with too little free space no machine and no base root is made.
func TestReserve(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	b.reserve = diskspace.Reserve{Bytes: 1 << 50}
	if result, err := b.Create(b.ctx, b.spec("acme", 1), &sink{t: t}); err != nil || result.Status == 0 || !strings.Contains(result.Message, "The machine is not made: the disk of this host has ") {
		t.Errorf("create: %+v, %v", result, err)
	}
	if err := b.Prepare(b.ctx, []string{"bookworm:never-built"}, nil); !errors.Is(err, loom.Exhausted) || !strings.Contains(loom.AsError(err).Message, "is not built: the disk") {
		t.Errorf("a base root: %v", err)
	}
}

// TestProjectQuotas: where the file system has them, the kernel ends a write, and the
// machine goes on.
func TestProjectQuotas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	mkfs, err := findTool("mkfs.ext4")
	if err != nil {
		sshtest.SkipHere(t, "not tried: %v", err)
	}
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 1<<30), os.Mkdir(at, 0o700)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, "-q", "-O", "quota,project", "-E", "quotatype=prjquota", image).CombinedOutput(); err != nil {
		sshtest.SkipHere(t, "not tried: a file system with project quotas cannot be made: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop,prjquota", image, at).CombinedOutput(); err != nil {
		sshtest.SkipHere(t, "not tried: this kernel has no project quotas of ext4 (CONFIG_QFMT_V2): %v: %s", err, out)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	b := setUpLocal(t, func(o *Options) { o.DataDir = filepath.Join(at, "data") })
	spec := b.spec("acme", 0)
	spec.Flavor = "disk=64m"
	m := b.create(t, spec)
	if !b.hasQuota() {
		t.Fatal("the quotas of the file system are not seen")
	}
	if out, err := b.run(t, m, "dd if=/dev/zero of=/root/full bs=1M count=200"); err == nil || !strings.Contains(out, "quota") && !strings.Contains(out, "No space") {
		t.Errorf("200 MiB in a machine of 64: %s, %v", out, err)
	}
	b.must(t, m, "rm /root/full; echo fine > /root/file")
	b.delete(t, spec)
}

// TestSweepBases: base roots that no image type names go a day after their last use.
func TestSweepBases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := New(Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * idleBase)
	make := func(text string, used time.Time) string {
		im, err := parseImage(text)
		if err != nil {
			t.Fatal(err)
		}
		place := filepath.Dir(l.baseRoot(im))
		file := filepath.Join(place, "image")
		if err := errors.Join(os.MkdirAll(filepath.Join(place, "root"), 0o755), os.WriteFile(file, []byte(im.String()+"\n"), 0o600), os.Chtimes(file, used, used)); err != nil {
			t.Fatal(err)
		}
		return place
	}
	gone, recent := make("bookworm:gone", old), make("bookworm:recent", time.Now())
	named, standard, has := make("bookworm:named", old), make(DefaultImage, old), make("bookworm:has", old)
	if err := errors.Join(os.MkdirAll(l.machineDir("m1"), 0o700), l.writeState(&state{ID: "m1", Image: "bookworm:has"})); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "roots", "603979776", filepath.Base(gone))
	if err := os.MkdirAll(copied, 0o755); err != nil {
		t.Fatal(err)
	}
	images := func(context.Context) ([]string, error) { return []string{"bookworm: named", "no image at all!"}, nil }
	if err := l.sweepBases(t.Context(), func(string) {}, func(context.Context) ([]string, error) { return nil, os.ErrClosed }); !errors.Is(err, os.ErrClosed) || !exists(gone) {
		t.Errorf("when the catalog cannot be read: %v", err)
	}
	if err := l.sweepBases(t.Context(), func(string) {}, images); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]bool{gone: false, copied: false, recent: true, named: true, standard: true, has: true} {
		if exists(place) != want {
			t.Errorf("%s is there: %v", place, !want)
		}
	}
	shared, err := New(Options{DataDir: t.TempDir(), BaseDir: filepath.Join(dir, "base")})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chtimes(filepath.Join(recent, "image"), old, old), shared.sweepBases(t.Context(), func(string) {}, images)); err != nil || !exists(recent) {
		t.Errorf("a cache that others use is swept: %v", err)
	}
}

// TestOneBuildOfATenant: a second image of a tenant waits for the first, that of another
// tenant does not.
func TestOneBuildOfATenant(t *testing.T) {
	t.Parallel()
	l := endless(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan string, 100)
	ended := make(chan struct{}, 3)
	for _, one := range []struct {
		tenant loom.TenantID
		image  string
	}{{"acme", "bookworm:a-one"}, {"acme", "bookworm:b-two"}, {"umbrella", "bookworm:c-three"}} {
		im, err := parseImage(one.image)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = l.ensureBase(ctx, one.tenant, im, func(line string) { said <- line })
			ended <- struct{}{}
		}()
		for line := range said {
			if strings.HasPrefix(line, "Preparing image "+one.image) && one.image != "bookworm:b-two" {
				break
			}
			if strings.HasPrefix(line, "Image bookworm:b-two is prepared after bookworm:a-one") {
				break
			}
			if strings.HasPrefix(line, "Preparing image bookworm:b-two") {
				t.Fatal("two base roots of a tenant are built at once")
			}
		}
	}
	cancel()
	l.Close()
	for range 3 {
		<-ended
	}
}

// TestFilterOfCalls runs the filter as the kernel does, with calls that no program here
// can make: those of other architectures.
func TestFilterOfCalls(t *testing.T) {
	t.Parallel()
	filter, err := assemble()
	if err != nil {
		t.Fatal(err)
	}
	var program []bpf.Instruction
	for _, f := range filter {
		program = append(program, bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K}.Disassemble())
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	// It reads words in the order of the network, which is no matter as long as both do.
	run := func(call, arch, first uint32) uint32 {
		data := make([]byte, 64)
		for at, word := range map[int]uint32{dataCall: call, dataArch: arch, dataFirst: first} {
			data[at], data[at+1], data[at+2], data[at+3] = byte(word>>24), byte(word>>16), byte(word>>8), byte(word)
		}
		answer, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(answer)
	}
	own := machineArch["amd64"]
	if unix.SYS_READ != 0 {
		own = machineArch["arm64"]
	}
	missing, no, unknown := uint32(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)), uint32(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)), uint32(unix.SECCOMP_RET_ERRNO|uint32(unix.EAFNOSUPPORT))
	for _, c := range []struct {
		what              string
		call, arch, first uint32
		want              uint32
	}{
		{"read", unix.SYS_READ, own, 0, unix.SECCOMP_RET_ALLOW},
		{"read of 32 bits", unix.SYS_READ, unix.AUDIT_ARCH_I386, 0, missing},
		{"read of x32", 0x40000000 | unix.SYS_READ, own, 0, missing},
		{"keyctl", unix.SYS_KEYCTL, own, 0, no},
		{"clone3", unix.SYS_CLONE3, own, 0, missing},
		{"fork", unix.SYS_CLONE, own, uint32(unix.SIGCHLD), unix.SECCOMP_RET_ALLOW},
		{"a user namespace", unix.SYS_CLONE, own, unix.CLONE_NEWUSER | unix.CLONE_NEWNS, no},
		{"unshare", unix.SYS_UNSHARE, own, unix.CLONE_NEWUSER, no},
		{"unshare of files", unix.SYS_UNSHARE, own, unix.CLONE_FILES, unix.SECCOMP_RET_ALLOW},
		{"TCP", unix.SYS_SOCKET, own, unix.AF_INET, unix.SECCOMP_RET_ALLOW},
		{"a pair", unix.SYS_SOCKETPAIR, own, unix.AF_UNIX, unix.SECCOMP_RET_ALLOW},
		{"packets", unix.SYS_SOCKET, own, unix.AF_PACKET, unknown},
		{"vsock", unix.SYS_SOCKET, own, unix.AF_VSOCK, unknown},
	} {
		if got := run(c.call, c.arch, c.first); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.what, got, c.want)
		}
	}
	for _, d := range denied {
		if got := run(uint32(d.call), own, 0); got == unix.SECCOMP_RET_ALLOW || d.why == "" {
			t.Errorf("call %d (%s): %#x", d.call, d.why, got)
		}
	}
}
