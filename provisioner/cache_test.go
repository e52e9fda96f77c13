package provisioner

import (
	"bytes"
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

	"loom/app/archive/archivetest"
	"loom/app/loom"
	"loom/app/testkit"
	"loom/provisioner/confine"
)

// The test program is also the process that unpacks.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == confine.Command {
		os.Exit(Confined(os.Args[2:]))
	}
	testkit.Main(m)
}

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

// Live returns the resources.
func (s *source) Live(context.Context, loom.TenantID) (int, []loom.Resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set, append([]loom.Resource(nil), s.live...), nil
}

// Open returns the content.
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
	src.add(t, 1, archive, archivetest.TarGz(t, archivetest.Entry{Name: "other/x/y", Content: "inside", Mode: 0o751}))
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
