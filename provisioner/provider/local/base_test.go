package local

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"loom/app/loom"
)

func TestHostSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"os-release": "ID=debian\nVERSION_CODENAME=\"bookworm\"\n",
		"sources.list": "# main\ndeb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://near.example/debian bookworm main contrib # near\n" +
			"deb-src http://near.example/debian bookworm main\ndeb file:/mnt/cd bookworm main\ndeb cdrom:[Debian]/ bookworm main\ndeb http://near.example/debian trixie main\n",
		"sources.list.d/other.list":  "deb [signed-by=/etc/apt/keyrings/other.gpg] https://other.example bookworm main\ndeb https://other.example/docker bookworm stable\n",
		"sources.list.d/sec.sources": "Types: deb deb-src\nURIs: http://near.example/security\nSuites: bookworm-security\n # comment\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\nEnabled: no\nTypes: deb\nURIs: http://off.example\nSuites: bookworm\nComponents: main\n\nTypes: deb\nURIs: http://inline.example\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://near.example/debian bookworm main contrib",
		"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://near.example/security bookworm-security main",
	}
	if got := hostSources(filepath.Join(dir, "os-release"), dir, "bookworm"); !slices.Equal(got, want) {
		t.Errorf("sources\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, suite := range []string{"trixie", "sid"} {
		if got := hostSources(filepath.Join(dir, "os-release"), dir, suite); got != nil {
			t.Errorf("a bookworm host gives sources for %s: %q", suite, got)
		}
	}
	if got := proxyOptions("Acquire \"\";\nAcquire::http \"\";\nAcquire::http::Proxy \"http://p.example:3128\";\nAcquire::Languages:: \"none\";\n"); !slices.Equal(got, []string{`Acquire::http::Proxy "http://p.example:3128";`}) {
		t.Errorf("options %q", got)
	}
}

func TestUsableResolvers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"nameserver 127.0.0.53\noptions edns0\n", ""},
		{"# stub\nnameserver  192.0.2.53 \nnameserver ::1\nsearch a.example b.example\nsortlist 1\n", "nameserver 192.0.2.53\nsearch a.example b.example\n"},
		{"", ""}, {"nameserver", ""},
	} {
		if got := usableResolvers(c.in); got != c.want {
			t.Errorf("%q: %q", c.in, got)
		}
	}
}

func TestShiftOwners(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	root := t.TempDir()
	program, twin, link := filepath.Join(root, "su"), filepath.Join(root, "twin"), filepath.Join(root, "link")
	capability, _ := hex.DecodeString("0100000200200000000000000000000000000000") // cap_net_raw=ep
	if err := errors.Join(os.WriteFile(program, nil, 0o755), os.Chown(program, 3, 4), os.Chmod(program, 0o755|os.ModeSetuid),
		os.Link(program, twin), os.Symlink("/etc/passwd", link)); err != nil {
		t.Fatal(err)
	}
	capErr := unix.Setxattr(program, "security.capability", capability, 0)
	before, err := os.Stat("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	if err := shiftOwners(root, 0, baseID); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(twin, &st); err != nil || st.Uid != baseID+3 || st.Gid != baseID+4 || st.Mode&0o7777 != 0o4755 {
		t.Errorf("program: %d:%d %o, %v", st.Uid, st.Gid, st.Mode, err)
	}
	if err := unix.Lstat(link, &st); err != nil || st.Uid != baseID {
		t.Errorf("link: %d, %v", st.Uid, err)
	}
	if after, err := os.Stat("/etc/passwd"); err != nil || after.Sys() == nil || after.ModTime() != before.ModTime() {
		t.Errorf("the link was followed: %v", err)
	}
	if capErr != nil {
		t.Logf("file capabilities not tried: %v", capErr)
		return
	}
	value := shiftCapability(capability, baseID)
	if got := hex.EncodeToString(value); got != "0100000300200000000000000000000000000000a0860100" {
		t.Errorf("capability %s", got)
	}
	// As for a copy of a base root.
	if got := hex.EncodeToString(shiftCapability(value, 0x24000000)); got != "010000030020000000000000000000000000000000000024" {
		t.Errorf("capability %s of a copy", got)
	}
}

// TestBuildFails shows what a person sees of a build that cannot work, and that
// nothing of it stays; those who waited for the same build get the same answer.
func TestBuildFails(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	l, err := New(Options{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Prepare(b.ctx, []string{"Not A Suite"}, nil); !errors.Is(err, loom.Invalid) || loom.AsError(err).Fields[0].Field != "image" {
		t.Errorf("bad image: %v", err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var mu sync.Mutex
			var lines []string
			err := l.Prepare(b.ctx, []string{"nosuchsuite"}, func(line string) { mu.Lock(); lines = append(lines, line); mu.Unlock() })
			if !errors.Is(err, loom.Unavailable) || !strings.Contains(loom.AsError(err).Message, "nosuchsuite") || !strings.Contains(loom.AsError(err).Message, "E: ") {
				t.Errorf("build of a suite that does not exist: %v", err)
			}
			if len(lines) == 0 {
				t.Error("no progress was told")
			}
		})
	}
	wg.Wait()
	entries, err := os.ReadDir(filepath.Join(l.dataDir, "base"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			t.Errorf("%s is left of a failed build", e.Name())
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), l.dataDir) {
		t.Errorf("a mount of the build is left: %v", err)
	}
	// Who waits for a build can leave; the build goes on without them.
	ctx, cancel := context.WithCancelCause(b.ctx)
	cancel(errors.New("told to stop"))
	if err := l.Prepare(ctx, []string{"nosuchsuite"}, nil); err == nil || err.Error() != "told to stop" {
		t.Errorf("cancelled wait: %v", err)
	}
	poll(t, time.Minute, "end of the build", func() error {
		l.builds.mu.Lock()
		defer l.builds.mu.Unlock()
		if n := len(l.builds.running); n > 0 {
			return fmt.Errorf("%d builds run", n)
		}
		return nil
	})
}

// TestServices starts the services of the seeded templates as their scripts do,
// on a root that carries their packages.
func TestServices(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	spec.Image = "bookworm:redis-server,nginx-light,haproxy"
	spec.Flavor = "mem=256m,pids=256,cpu=100"
	if err := b.Prepare(b.ctx, []string{spec.Image}, func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	m := b.create(t, spec)
	if out := b.must(t, m, "ps ax | grep -cE '[n]ginx|[r]edis|[h]aproxy' || true"); out != "0" {
		t.Errorf("%s services run on a new machine before they are started", out)
	}
	b.must(t, m, "service nginx start && service redis-server start && service haproxy start")
	b.must(t, m, "service nginx status && service redis-server status && service haproxy status")
	b.must(t, m, "curl -fsS http://127.0.0.1/ | grep -q nginx && redis-cli ping | grep -q PONG")
	b.must(t, m, "service nginx stop && ! service nginx status")
	b.must(t, m, "update-rc.d redis-server enable")
	if err := b.StopAll(b.ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Adopt(b.ctx); err != nil {
		t.Fatal(err)
	}
	m = b.machine(t, spec)
	poll(t, 20*time.Second, "redis after boot", func() error {
		out, err := b.run(t, m, "redis-cli ping")
		if err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	if out := b.must(t, m, "ps ax | grep -cE '[n]ginx|[h]aproxy' || true"); out != "0" {
		t.Errorf("%s services were started at boot that nobody enabled", out)
	}
	b.delete(t, spec)
}
