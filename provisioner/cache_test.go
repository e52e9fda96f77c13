package provisioner

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"loom/app/loom"
)

// source is a Source in memory.
type source struct {
	mu      sync.Mutex
	set     int
	live    []loom.Resource
	content map[string][]byte
	opened  int
}

func newSource(testing.TB) *source { return &source{content: map[string][]byte{}} }

func (s *source) add(t testing.TB, set int, r loom.Resource, content []byte) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256(content)
	r.Size, r.SHA256, r.Object = int64(len(content)), hex.EncodeToString(sum[:]), fmt.Sprint(r.ResourceRef, r.Version)
	s.content[r.Object] = content
	s.set, s.live = set, append(s.live, r)
}

// Live gives the resources.
func (s *source) Live(context.Context, loom.TenantID) (int, []loom.Resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set, append([]loom.Resource(nil), s.live...), nil
}

// Open gives the content.
func (s *source) Open(_ context.Context, r loom.Resource) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.content[r.Object]
	if !ok {
		return nil, errors.New("no such object")
	}
	s.opened++
	return io.NopCloser(bytes.NewReader(content)), nil
}

func file(kind, plugin, typ, name string, version int) loom.Resource {
	return loom.Resource{ResourceRef: loom.ResourceRef{Kind: kind, Plugin: plugin, Type: typ, Name: name}, Version: version, Format: "file"}
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		return "-"
	}
	return string(content)
}

func TestCacheSets(t *testing.T) {
	t.Parallel()
	ctx, src, root := context.Background(), newSource(t), t.TempDir()
	cache := &Cache{Dir: root, Source: src}
	src.add(t, 1, file("automatortypes", "shell", "scripts", "a.sh", 1), []byte("one"))
	src.add(t, 1, file("providertypes", "static", "ssh_keys", "prod", 1), []byte("key one"))
	archive := file("automatortypes", "shell", "archives", "site", 1)
	archive.Format = "archive"
	src.add(t, 1, archive, tarball(t, entry{name: "other/x/y", content: "inside", mode: 0o751}))
	first, set, release, err := cache.Set(ctx, "t1", 1)
	if err != nil || set != 1 || filepath.Base(first) != "1" {
		t.Fatal(first, set, err)
	}
	again := &Cache{Dir: root, Source: src} // as after a restart, or of another process
	_, _, releaseAgain, err := again.Set(ctx, "t1", 1)
	if err != nil || src.opened != 3 {
		t.Fatal(err, src.opened)
	}
	releaseAgain()
	key := filepath.Join(first, "providertypes/static/ssh_keys/prod")
	if read(t, first, "automatortypes/shell/scripts/a.sh") != "one" || read(t, key) != "key one" || read(t, first, "automatortypes/shell/archives/site/x/y") != "inside" {
		t.Fatal("content")
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o400 {
		t.Fatal(info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Join(first, "automatortypes/shell/archives/site/x/y")); err != nil || info.Mode().Perm() != 0o755 {
		t.Fatal(info.Mode(), err)
	}
	// A newer set: those who hold the old one keep it, and it goes afterwards.
	src.live = nil
	src.add(t, 2, file("automatortypes", "shell", "scripts", "a.sh", 2), []byte("two"))
	second, set, releaseSecond, err := cache.Set(ctx, "t1", 2)
	if err != nil || set != 2 || read(t, second, "automatortypes/shell/scripts/a.sh") != "two" {
		t.Fatal(set, err)
	}
	if read(t, first, "automatortypes/shell/scripts/a.sh") != "one" || read(t, key) != "key one" {
		t.Fatal("a set in use was changed")
	}
	release()
	src.live = nil
	src.add(t, 3, file("automatortypes", "shell", "scripts", "a.sh", 3), []byte("three"))
	_, _, releaseThird, err := cache.Set(ctx, "t1", 3)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseThird()
	releaseSecond()
	if read(t, first, "automatortypes/shell/scripts/a.sh") != "-" {
		t.Fatal("an unused set is still there")
	}
	if read(t, root, "data/t1/providertypes/static/ssh_keys/prod/1/prod") != "-" {
		t.Fatal("a secret outlived its set")
	}
	if read(t, root, "data/t1/automatortypes/shell/scripts/a.sh/1/a.sh") != "one" {
		t.Fatal("an ordinary file should stay for the next time")
	}
}

func TestCacheTroubles(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		change func(*source)
		want   string
	}{
		"other content": {func(s *source) { s.content[s.live[0].Object] = []byte("eno") }, "SHA-256"},
		"shorter":       {func(s *source) { s.content[s.live[0].Object] = []byte("on") }, "size"},
		"longer":        {func(s *source) { s.content[s.live[0].Object] = []byte("one more") }, "size"},
		"gone":          {func(s *source) { s.content = nil }, "no such object"},
		"bad name":      {func(s *source) { s.live[0].Name = ".." }, "cannot be the name"},
		"slash":         {func(s *source) { s.live[0].Type = "a/b" }, "cannot be the name"},
		"old":           {func(s *source) { s.set = 0 }, "set 1 is wanted"},
	} {
		src := newSource(t)
		src.add(t, 1, file("automatortypes", "shell", "scripts", "a.sh", 1), []byte("one"))
		c.change(src)
		cache := &Cache{Dir: t.TempDir(), Source: src}
		if _, _, _, err := cache.Set(ctx, "t1", 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := filepath.Glob(filepath.Join(cache.Dir, "data/t1/automatortypes/shell/scripts/*/*")); len(left) > 0 {
			t.Errorf("%s: left over %v", name, left)
		}
	}
	if _, _, _, err := (&Cache{Dir: t.TempDir(), Source: newSource(t)}).Set(ctx, "../t", 1); err == nil {
		t.Error("a tenant that leads elsewhere")
	}
}

func TestCacheManyAtOnce(t *testing.T) {
	t.Parallel()
	src, root := newSource(t), t.TempDir()
	src.add(t, 1, file("automatortypes", "shell", "scripts", "a.sh", 1), []byte("one"))
	var group sync.WaitGroup
	caches := []*Cache{{Dir: root, Source: src}, {Dir: root, Source: src}}
	for i := range 40 {
		group.Go(func() {
			dir, _, release, err := caches[i%2].Set(context.Background(), "t1", 1)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if read(t, dir, "automatortypes/shell/scripts/a.sh") != "one" {
				t.Error("content")
			}
		})
	}
	group.Wait()
	if src.opened != 1 {
		t.Errorf("fetched %d times", src.opened)
	}
}

type entry struct {
	name, content, link string
	kind                byte
	mode                int64
}

func tarball(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		kind := e.kind
		if kind == 0 {
			kind = tar.TypeReg
		}
		header := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: kind, Mode: e.mode, Size: int64(len(e.content))}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	_ = archive.Close()
	_ = zipped.Close()
	return out.Bytes()
}

func unpackBytes(t testing.TB, content []byte) (dir string, err error) {
	t.Helper()
	top := t.TempDir()
	from, to := filepath.Join(top, "a"), filepath.Join(top, "out")
	if err := os.WriteFile(from, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	return to, unpackWithin(from, to, 100, 5)
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string][]entry{
		"absolute":           {{name: "/etc/x"}},
		"dots":               {{name: "a/../../x"}},
		"dots inside":        {{name: "a/../x"}},
		"link outside":       {{name: "a", kind: tar.TypeSymlink, link: "../x"}},
		"absolute link":      {{name: "a", kind: tar.TypeSymlink, link: "/etc"}},
		"link through link":  {{name: "a", kind: tar.TypeSymlink, link: "b/c/d"}, {name: "b/c/d", kind: tar.TypeSymlink, link: "../../../x"}},
		"chain of links":     {{name: "d/x", content: "x"}, {name: "d/up", kind: tar.TypeSymlink, link: ".."}, {name: "out", kind: tar.TypeSymlink, link: "d/up/../d/up/../../etc"}},
		"hard link":          {{name: "a", kind: tar.TypeLink, link: "b"}},
		"device":             {{name: "a", kind: tar.TypeBlock}},
		"pipe":               {{name: "a", kind: tar.TypeFifo}},
		"too large":          {{name: "a", content: strings.Repeat("x", 60)}, {name: "b", content: strings.Repeat("x", 60)}},
		"too many":           {{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}, {name: "e"}, {name: "f"}},
		"backslash":          {{name: `..\x`}},
		"file below a file":  {{name: "a", content: "x"}, {name: "a/b", content: "x"}},
		"link over a file":   {{name: "a", content: "x"}, {name: "a", kind: tar.TypeSymlink, link: "b"}},
		"no directory entry": {{name: "", content: "x"}},
	} {
		dir, err := unpackBytes(t, tarball(t, entries...))
		if err == nil {
			t.Errorf("%s: unpacked", name)
		}
		if beside, _ := os.ReadDir(filepath.Dir(dir)); len(beside) != 2 {
			t.Errorf("%s: wrote outside: %v", name, beside)
		}
	}
	if _, err := unpackBytes(t, []byte("neither")); err == nil {
		t.Error("garbage unpacked")
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	dir, err := unpackBytes(t, tarball(t, entry{name: "./top/", kind: tar.TypeDir}, entry{name: "./top/a", content: "x", mode: 0o4777},
		entry{name: "top/sub/l", kind: tar.TypeSymlink, link: "../a"}))
	if err != nil || read(t, dir, "top/sub/l") != "x" {
		t.Fatal(err)
	}
	if info, _ := os.Stat(filepath.Join(dir, "top/a")); info.Mode() != 0o755 {
		t.Fatalf("mode %v", info.Mode())
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	w, err := archive.Create("a/b")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("zipped"))
	_ = archive.Close()
	if dir, err = unpackBytes(t, out.Bytes()); err != nil || read(t, dir, "a/b") != "zipped" {
		t.Fatal(err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add("a", "b", byte(tar.TypeSymlink), "a/c")
	f.Fuzz(func(t *testing.T, name, link string, kind byte, second string) {
		if strings.ContainsRune(name+link+second, 0) || len(name)+len(link)+len(second) > 90 {
			t.Skip()
		}
		var out bytes.Buffer
		zipped := gzip.NewWriter(&out)
		archive := tar.NewWriter(zipped)
		if archive.WriteHeader(&tar.Header{Name: name, Linkname: link, Typeflag: kind, Format: tar.FormatUSTAR}) != nil ||
			archive.WriteHeader(&tar.Header{Name: second, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}) != nil || archive.Close() != nil || zipped.Close() != nil {
			t.Skip()
		}
		dir, err := unpackBytes(t, out.Bytes())
		if beside, _ := os.ReadDir(filepath.Dir(dir)); len(beside) != 2 {
			t.Fatalf("wrote outside: %v", beside)
		}
		if err == nil {
			// Whatever was accepted resolves below the directory, or nowhere.
			_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
				if to, err := filepath.EvalSymlinks(path); err == nil && to != dir && !strings.HasPrefix(to, dir+"/") {
					t.Fatalf("%s leads to %s", path, to)
				}
				return nil
			})
		}
	})
}
