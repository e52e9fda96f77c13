package provisioner

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loom/app/archive/archivetest"
	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/automator/chefsolo"
	"loom/provisioner/automator/puppet"
	"loom/provisioner/automator/shell"
	"loom/provisioner/confine"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// confinedUser is the user that unpacks where tests run as root.
func confinedUser(t testing.TB) *confine.User {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	user, err := confine.LookupUser("nobody")
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// holders are the automators that take archives, with a type of resource for each.
var holders = map[string]struct {
	automator automator.Automator
	typ       string
}{
	"shell": {shell.New(), "archives"}, "chef-solo": {chefsolo.New(), "cookbooks"}, "puppet": {puppet.New(), "modules"},
}

// TestEscapeArchive: the archive whose links once led to any file of the host is
// refused with the entry's name, in both formats and for each automator, and nothing
// of it stays.
func TestEscapeArchive(t *testing.T) {
	t.Parallel()
	for plugin, holder := range holders {
		for format, pack := range archivetest.Both {
			root := t.TempDir()
			canary := filepath.Join(root, "canary")
			if err := os.WriteFile(canary, []byte("canary"), 0o600); err != nil {
				t.Fatal(err)
			}
			src := newSource(t)
			r := file("automatortypes", plugin, holder.typ, "site", 1)
			r.Format = "archive"
			src.add(t, 1, r, pack(t, archivetest.Escape("site", canary, strings.Count(root, "/")+9)...))
			cache := &Cache{Dir: filepath.Join(root, "cache"), Source: src, User: confinedUser(t)}
			_, _, _, err := cache.Set(t.Context(), "t1", 1)
			if err == nil || !strings.Contains(err.Error(), "“top/d0/d1/d2/d3/b”") {
				t.Errorf("%s, %s: got %v", plugin, format, err)
			}
			if left, _ := filepath.Glob(filepath.Join(root, "cache/data/t1/automatortypes", plugin, holder.typ, "site", "*")); len(left) > 0 {
				t.Errorf("%s, %s: left over %v", plugin, format, left)
			}
		}
	}
}

// TestEscapeOnDisk: even if the links of that archive were on disk, as older releases
// unpacked them, nothing outside of the resource is read or sent.
func TestEscapeOnDisk(t *testing.T) {
	t.Parallel()
	for plugin, holder := range holders {
		t.Run(plugin, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			canary := filepath.Join(root, "canary")
			files := filepath.Join(root, "set/automatortypes", plugin)
			site := filepath.Join(files, holder.typ, "site")
			for _, err := range []error{
				os.WriteFile(canary, []byte("canary-content"), 0o600),
				os.MkdirAll(filepath.Join(site, "sub"), 0o755), os.MkdirAll(filepath.Join(site, "d0/d1"), 0o755),
				os.WriteFile(filepath.Join(site, "harmless"), []byte("x"), 0o644),
				os.Symlink("../../../site/sub", filepath.Join(site, "d0/d1/b")),
				os.Symlink("d0/d1/b/../../../../../../canary", filepath.Join(site, "stolen")),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			// The links lead there, so the test tests something.
			if content, err := os.ReadFile(filepath.Join(site, "stolen")); err != nil || string(content) != "canary-content" {
				t.Fatalf("the links lead nowhere: %q, %v", content, err)
			}
			s := sshtest.Start(t, sshtest.Options{Isolated: true, Config: []string{"SetEnv PATH=/var/lib/stub:/usr/sbin:/usr/bin:/sbin:/bin"}})
			for _, name := range []string{"chef-solo", "puppet"} {
				if err := errors.Join(os.MkdirAll(filepath.Join(s.Dir, "lib/stub"), 0o755), os.WriteFile(filepath.Join(s.Dir, "lib/stub", name), []byte("#!/bin/sh\nexit 0\n"), 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			conn, err := remote.Dial(t.Context(), remote.Target{Address: s.Address, Port: s.Port, User: "root", Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}, HostKeys: s.HostKeys, Reach: loom.Anywhere()})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fields := map[string]map[string]string{"chef-solo": {"chef_distribution": "preinstalled"}, "puppet": {"puppet_install": "preinstalled"}}
			result, err := holder.automator.Bootstrap(t.Context(), &loom.TaskSpec{BootstrapFields: fields}, conn, files, &sshtest.Record{})
			if err == nil || !strings.Contains(err.Error(), "site/") || !strings.Contains(err.Error(), "escapes") {
				t.Errorf("got %+v, %v", result, err)
			}
			_ = filepath.WalkDir(s.Dir, func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.Type().IsRegular() {
					if content, _ := os.ReadFile(path); strings.Contains(string(content), "canary-content") {
						t.Errorf("the machine has the canary at %s", path)
					}
				}
				return nil
			})
		})
	}
}

// TestUnpackConfined: who unpacks has no rights, what it leaves is the provisioner's,
// and archives that need too much end.
func TestUnpackConfined(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	cache := &Cache{Dir: root, User: confinedUser(t)}
	unpack := func(content []byte) (string, error) {
		t.Helper()
		dir, err := os.MkdirTemp(root, "x-")
		if err != nil {
			t.Fatal(err)
		}
		raw, to := filepath.Join(dir, "raw"), filepath.Join(dir, "to")
		if err := errors.Join(os.WriteFile(raw, content, 0o600), os.Mkdir(to, 0o755)); err != nil {
			t.Fatal(err)
		}
		return to, cache.unpack(t.Context(), raw, to)
	}
	for format, pack := range archivetest.Both {
		dir, err := unpack(pack(t, archivetest.Entry{Name: "top/run", Content: "#!", Mode: 0o4711}, archivetest.Entry{Name: "top/sub/l", Link: "../run"}, archivetest.Entry{Name: "top/plain", Content: "p", Mode: 0o600}))
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		want := map[string]fs.FileMode{".": fs.ModeDir | 0o755, "top": fs.ModeDir | 0o755, "top/run": 0o755, "top/sub": fs.ModeDir | 0o755, "top/sub/l": 0o755, "top/plain": 0o644}
		for name, mode := range want {
			info, err := os.Lstat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if owner := info.Sys().(*syscall.Stat_t).Uid; info.Mode() != mode || int(owner) != os.Geteuid() {
				t.Errorf("%s: %s has mode %v and owner %d", format, name, info.Mode(), owner)
			}
		}
		if read(t, dir, "top/sub/l") != "#!" {
			t.Errorf("%s: the link is no copy", format)
		}
		if _, err := unpack(pack(t, archivetest.Entry{Name: "a", Link: "/etc/passwd"})); err == nil || !strings.Contains(err.Error(), "it holds “a”, a link to “/etc/passwd”") {
			t.Errorf("%s: got %v", format, err)
		}
	}
	if _, err := unpack(archivetest.TarGz(t, archivetest.Entry{Name: "a", Kind: tar.TypeFifo})); err == nil || !strings.Contains(err.Error(), "“a”") {
		t.Errorf("got %v", err)
	}
	if _, err := unpack([]byte("neither")); err == nil || !strings.Contains(err.Error(), "neither") {
		t.Errorf("got %v", err)
	}
}

// TestUnpackHasNoRights: the process that unpacks can reach nothing of the provisioner.
func TestUnpackHasNoRights(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has rights to give up")
	}
	dir := t.TempDir()
	cache := &Cache{Dir: dir, User: confinedUser(t)}
	// A directory that stays root's cannot be written to: the child is not root.
	raw, to := filepath.Join(dir, "raw"), filepath.Join(dir, "to")
	if err := errors.Join(os.WriteFile(raw, archivetest.TarGz(t, archivetest.Entry{Name: "a", Content: "x"}), 0o600), os.Mkdir(to, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := cache.unpackConfined(t.Context(), raw, to); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("got %v", err)
	}
}

// TestReclaim: whatever the process that unpacks might leave, only folders and files
// with one name are taken over.
func TestReclaim(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(dir string) error{
		"link": func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "x")) },
		"pipe": func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "x"), 0o600) },
		"two names": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "y"), nil, 0o600), os.Link(filepath.Join(dir, "y"), filepath.Join(dir, "x")))
		},
	} {
		dir := t.TempDir()
		if err := make(dir); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := reclaim(root); err == nil || !strings.Contains(err.Error(), "x") {
			t.Errorf("%s: got %v", name, err)
		}
		root.Close()
	}
}

// BenchmarkUnpack unpacks a small archive, which is mostly the process that does it.
func BenchmarkUnpack(b *testing.B) {
	cache := &Cache{Dir: b.TempDir(), User: confinedUser(b)}
	raw := filepath.Join(cache.Dir, "raw")
	if err := os.WriteFile(raw, archivetest.TarGz(b, archivetest.Entry{Name: "top/a", Content: "x"}), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		dir, err := os.MkdirTemp(cache.Dir, "x-")
		if err == nil {
			err = cache.unpack(b.Context(), raw, dir)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// TestRoomOfADisk: unpacking leaves a part of the disk free, and takes nothing where that
// is gone already.
func TestRoomOfADisk(t *testing.T) {
	t.Parallel()
	const block = 4096
	for name, c := range map[string]struct{ size, free, want int64 }{
		"large":       {400 << 30, 100 << 30, 99 << 30},
		"small":       {2000 << 20, 500 << 20, 400 << 20},
		"nearly full": {400 << 30, 1 << 30, 0},
		"full":        {400 << 30, 0, 0},
	} {
		disk := syscall.Statfs_t{Bsize: block, Blocks: uint64(c.size / block), Bavail: uint64(c.free / block)}
		if got := room(disk); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

// TestUnpackNeedsRoom: an archive that would fill the disk is refused, and it is said why.
func TestUnpackNeedsRoom(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root makes a small disk")
	}
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=1m,mode=0755"); err != nil {
		t.Skipf("no small disk can be made here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(root, syscall.MNT_DETACH) })
	raw, to := filepath.Join(t.TempDir(), "raw"), filepath.Join(root, "to")
	content := archivetest.Both["tar.gz"](t, archivetest.Entry{Name: "top/zeros", Content: strings.Repeat("0", 2<<20)})
	if err := errors.Join(os.WriteFile(raw, content, 0o600), os.Mkdir(to, 0o755)); err != nil {
		t.Fatal(err)
	}
	cache := &Cache{Dir: root, User: confinedUser(t)}
	if err := cache.unpack(t.Context(), raw, to); err == nil || !strings.Contains(err.Error(), "no more room on the disk") {
		t.Errorf("got %v", err)
	}
}
