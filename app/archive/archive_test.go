package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loom/app/archive"
	"loom/app/archive/archivetest"
)

type entry = archivetest.Entry

// small are limits that tests reach.
var small = archive.Limits{Bytes: 100, Entries: 12}

// extract unpacks into a new directory beside a canary.
func extract(t testing.TB, content []byte, limits archive.Limits) (dir string, err error) {
	t.Helper()
	top := t.TempDir()
	dir = filepath.Join(top, "out")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(top, "canary"), []byte("canary"), 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	opened := watch(t, filepath.Join(top, "canary"))
	err = archive.Extract(archive.Bytes(content), limits, root)
	if opened() {
		t.Error("the file beside the directory was opened")
	}
	return dir, err
}

// watch has the kernel tell whether a file is opened, until opened is called. That it
// would tell is checked with each call.
func watch(t testing.TB, file string) (opened func() bool) {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.InotifyAddWatch(fd, file, syscall.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	seen := func() bool {
		n, err := syscall.Read(fd, make([]byte, 4096))
		return err == nil && n > 0
	}
	return func() bool {
		defer syscall.Close(fd) //nolint:errcheck // of a test
		was := seen()
		if _, err := os.ReadFile(file); err != nil || !seen() {
			t.Errorf("the kernel does not tell that a file was opened: %v", err)
		}
		return was
	}
}

// held lists what a directory holds as "name=content", and fails for anything that
// is neither file nor folder.
func held(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case e.IsDir():
		case e.Type().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[name] = string(content)
		default:
			t.Errorf("%s is a %v on disk", name, e.Type())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// alone fails when anything lies beside the directory but the canary as it was.
func alone(t testing.TB, dir string) {
	t.Helper()
	beside, _ := os.ReadDir(filepath.Dir(dir))
	canary, _ := os.ReadFile(filepath.Join(filepath.Dir(dir), "canary"))
	if len(beside) != 2 || string(canary) != "canary" {
		t.Errorf("something outside of the directory was changed: %v, %q", beside, canary)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	for name, c := range map[string]struct {
		entries []entry
		names   string // the entry that the message names
		why     string
	}{
		"absolute":                  {[]entry{{Name: "/etc/x"}}, "/etc/x", "absolute"},
		"dots":                      {[]entry{{Name: "a/../../x"}}, "a/../../x", "leads outside"},
		"dots inside":               {[]entry{{Name: "a/../x"}}, "a/../x", "leads outside"},
		"backslash":                 {[]entry{{Name: `..\x`}}, `..\x`, "backslash"},
		"newline":                   {[]entry{{Name: "a\nb"}}, "a?b", "control character"},
		"link outside":              {[]entry{{Name: "t/a", Link: "../x"}}, "t/a", "leads outside"},
		"link to beside the top":    {[]entry{{Name: "t/f"}, {Name: "t/a", Link: "../t/f"}}, "t/a", "leads outside"},
		"absolute link":             {[]entry{{Name: "a", Link: "/etc"}}, "a", "no place inside"},
		"dangling link":             {[]entry{{Name: "t/a", Link: "b"}}, "t/a", "is not there"},
		"link below a file":         {[]entry{{Name: "t/f"}, {Name: "t/a", Link: "f/../f"}}, "t/a", "is not there"},
		"link to a link":            {[]entry{{Name: "t/f"}, {Name: "t/b", Link: "f"}, {Name: "t/a", Link: "b"}}, "t/a", "passes through another link"},
		"link through a link":       {[]entry{{Name: "t/d/f"}, {Name: "t/b", Link: "d"}, {Name: "t/a", Link: "b/f"}}, "t/a", "passes through another link"},
		"link through a link up":    {[]entry{{Name: "t/d/e/f"}, {Name: "t/b", Link: "d/e"}, {Name: "t/a", Link: "b/../../d/e/f"}}, "t/a", "passes through another link"},
		"link into itself":          {[]entry{{Name: "t/d/f"}, {Name: "t/d/a", Link: "../d"}}, "t/d/a", "leads into itself"},
		"links into each other":     {[]entry{{Name: "t/d/a", Link: "../e"}, {Name: "t/e/b", Link: "../d"}}, "a", "leads into itself"},
		"entry below a link":        {[]entry{{Name: "t/d/f"}, {Name: "t/a", Link: "d"}, {Name: "t/a/x"}}, "t/a/x", "below"},
		"link over a file":          {[]entry{{Name: "a", Content: "x"}, {Name: "a", Link: "b"}}, "a", "twice"},
		"file over a link":          {[]entry{{Name: "b"}, {Name: "a", Link: "b"}, {Name: "a", Content: "x"}}, "a", "twice"},
		"file below a file":         {[]entry{{Name: "a", Content: "x"}, {Name: "a/b", Content: "x"}}, "a/b", "below"},
		"file over a folder":        {[]entry{{Name: "a/b"}, {Name: "a"}}, "a", "twice"},
		"hard link":                 {[]entry{{Name: "b"}, {Name: "a", Kind: tar.TypeLink, Link: "b"}}, "a", "hard link"},
		"block device":              {[]entry{{Name: "a", Kind: tar.TypeBlock}}, "a", "no file, folder"},
		"character device":          {[]entry{{Name: "a", Kind: tar.TypeChar}}, "a", "no file, folder"},
		"pipe":                      {[]entry{{Name: "a", Kind: tar.TypeFifo}}, "a", "no file, folder"},
		"too large":                 {[]entry{{Name: "a", Content: long}, {Name: "b", Content: long}}, "", "more than 100 bytes"},
		"too large by a copy":       {[]entry{{Name: "t/a", Content: long}, {Name: "t/b", Link: "a"}}, "", "more than 100 bytes"},
		"too many":                  {many(13), "", "more than 12 entries"},
		"too many by folders":       {[]entry{{Name: "a/b/c/d/e/f/g/h/i/j/k/l/m"}}, "", "more than 12 entries"},
		"too many by copies":        {[]entry{{Name: "t/d/1"}, {Name: "t/d/2"}, {Name: "t/d/3"}, {Name: "t/a", Link: "d"}, {Name: "t/b", Link: "d"}}, "", "more than 12 entries"},
		"a part that is too long":   {[]entry{{Name: "a/" + strings.Repeat("n", 256)}}, "n", "255 bytes"},
		"the host's file by rename": {archivetest.Escape("site", "/etc/shadow", 9), "top/d0/d1/d2/d3/b", "leads outside"},
	} {
		limits := small
		if strings.HasPrefix(name, "the host") {
			limits = archive.Usual
		}
		for format, pack := range archivetest.Both {
			if format == "zip" && (name == "hard link") {
				continue // a zip has none
			}
			content := pack(t, c.entries...)
			dir, err := extract(t, content, limits)
			if _, checked := archive.Check(context.Background(), archive.Bytes(content), limits, nil); fmt.Sprint(checked) != fmt.Sprint(err) {
				t.Errorf("%s, %s: the check says %v, the unpacking %v", name, format, checked, err)
			}
			if err == nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), c.names) {
				t.Errorf("%s, %s: got %v", name, format, err)
			}
			alone(t, dir)
		}
	}
}

func many(n int) (entries []entry) {
	for i := range n {
		entries = append(entries, entry{Name: fmt.Sprint(i)})
	}
	return entries
}

func TestExtract(t *testing.T) {
	t.Parallel()
	entries := []entry{
		{Name: "./"}, {Name: "./top/"}, {Name: "./top/run", Content: "x", Mode: 0o4777}, {Name: "top//sub/./plain", Content: "y", Mode: 0o600},
		{Name: "top/sub/l", Link: "../run"}, {Name: "top/all", Link: "sub"}, {Name: "top/.gitignore", Content: "g"},
		{Name: "._top", Content: "left out"}, {Name: ".git/config", Content: "left out"}, {Name: ".link", Link: "/etc/passwd"},
	}
	for format, pack := range archivetest.Both {
		var seen []string
		content := pack(t, entries...)
		_, err := archive.Check(context.Background(), archive.Bytes(content), archive.Usual, func(e archive.Entry) error { seen = append(seen, e.Name); return nil })
		if want := "top top/run top/sub/plain top/sub/l top/all top/.gitignore"; err != nil || strings.Join(seen, " ") != want {
			t.Errorf("%s: saw %v, %v", format, seen, err)
		}
		dir, err := extract(t, content, archive.Usual)
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		want := map[string]string{"top/run": "x", "top/sub/plain": "y", "top/sub/l": "x", "top/all/plain": "y", "top/all/l": "x", "top/.gitignore": "g"}
		if got := held(t, dir); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v", format, got)
		}
		for name, mode := range map[string]fs.FileMode{"top/run": 0o755, "top/sub/plain": 0o644, "top/sub/l": 0o755, "top/all/l": 0o755} {
			if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
				t.Errorf("%s: %s has %v, %v", format, name, info.Mode(), err)
			}
		}
	}
	// As tar has it, the later of two files stays.
	dir, err := extract(t, archivetest.TarGz(t, entry{Name: "a", Content: "old", Mode: 0o755}, entry{Name: "a", Content: "new", Mode: 0o644}), small)
	if got := held(t, dir); err != nil || got["a"] != "new" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	packed := archivetest.TarGz(t, entry{Name: "a", Content: strings.Repeat("abc", 30)}, entry{Name: "b", Content: "x"})
	for name, c := range map[string]struct {
		content []byte
		want    error
	}{
		"neither": {[]byte("neither"), archive.ErrNoArchive}, "empty": {nil, archive.ErrNoArchive}, "half": {packed[:len(packed)/2], archive.ErrDamaged},
		"without its checksum": {packed[:len(packed)-4], archive.ErrDamaged}, "half a zip": {archivetest.Zip(t, entry{Name: "a"})[:20], archive.ErrDamaged},
	} {
		if _, err := extract(t, c.content, small); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Trouble of the place where it lies is not the archive's.
	src := archive.Bytes(archivetest.Zip(t, entry{Name: "a", Content: "x"}))
	src.At = broken{}
	if _, err := archive.Check(context.Background(), src, small, nil); err == nil || !strings.Contains(err.Error(), "bucket") {
		t.Errorf("got %v", err)
	}
	stop := errors.New("enough")
	if _, err := archive.Check(context.Background(), archive.Bytes(packed), small, func(archive.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

// counted counts what is read of an archive.
type counted struct {
	io.ReaderAt
	read int64
}

// ReadAt implements io.ReaderAt.
func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	c.read += int64(len(p))
	return c.ReaderAt.ReadAt(p, at)
}

// TestOverlapping: entries of a zip that lie over each other would each cost the size
// of the archive; they are refused before more is read than an honest archive needs.
func TestOverlapping(t *testing.T) {
	t.Parallel()
	content := archivetest.Overlapping(t, 500, 1<<20)
	src := archive.Bytes(content)
	at := &counted{ReaderAt: src.At}
	src.At = at
	_, err := archive.Check(context.Background(), src, archive.Usual, nil)
	if err == nil || !strings.Contains(err.Error(), "lies over other entries") || !strings.Contains(err.Error(), "“f0000") {
		t.Errorf("got %v", err)
	}
	if at.read > 2*src.Size+1<<20 {
		t.Errorf("%d bytes were read of %d", at.read, src.Size)
	}
	if _, err := archive.Check(context.Background(), archive.Bytes(archivetest.Overlapping(t, 1, 1<<20)), archive.Usual, nil); err != nil {
		t.Errorf("an entry alone: %v", err)
	}
}

// TestCheckEnds: nothing is read on when nobody waits for it.
func TestCheckEnds(t *testing.T) {
	t.Parallel()
	for format, pack := range archivetest.Both {
		ctx, cancel := context.WithCancel(t.Context())
		content := pack(t, entry{Name: "a", Content: strings.Repeat("x", 100)}, entry{Name: "b", Content: strings.Repeat("x", 1<<20)})
		seen := 0
		_, err := archive.Check(ctx, archive.Bytes(content), archive.Usual, func(archive.Entry) error {
			seen++
			cancel()
			return nil
		})
		cancel()
		if !errors.Is(err, context.Canceled) || seen != 1 {
			t.Errorf("%s: %d entries, %v", format, seen, err)
		}
	}
}

// TestLinkTargetsCount: what links name counts as names do.
func TestLinkTargetsCount(t *testing.T) {
	t.Parallel()
	entries := []entry{{Name: "t/x"}}
	for i := range 17_000 {
		entries = append(entries, entry{Name: fmt.Sprint("t/", i), Link: strings.Repeat("./", 1000) + "x"})
	}
	_, err := archive.Check(context.Background(), archive.Bytes(archivetest.TarGz(t, entries...)), archive.Usual, nil)
	if err == nil || !strings.Contains(err.Error(), "names have more than") {
		t.Errorf("got %v", err)
	}
}

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errors.New("the bucket is away") }

// FuzzExtract: whatever an archive holds, nothing outside of the directory is
// opened, what is left are files and folders, and the check agrees with it.
func FuzzExtract(f *testing.F) {
	f.Add("a", "b", byte(tar.TypeSymlink), "a/c", "../x", byte(tar.TypeReg))
	f.Add("t/a", "../canary", byte(tar.TypeSymlink), "t/b", "a", byte(tar.TypeSymlink))
	f.Add("t/d/a", "..", byte(tar.TypeSymlink), "t/d/b", "a/../../canary", byte(tar.TypeSymlink))
	f.Add("t/d/a", "../x", byte(tar.TypeSymlink), "t/x/f", "", byte(tar.TypeReg))
	f.Fuzz(func(t *testing.T, name, link string, kind byte, second, secondLink string, secondKind byte) {
		if strings.ContainsRune(name+link+second+secondLink, 0) || len(name)+len(second) > 200 {
			t.Skip()
		}
		entries := []entry{{Name: "t/x/keep", Content: "x"}, {Name: name, Link: link, Kind: kind}, {Name: second, Link: secondLink, Kind: secondKind}}
		packed := pack(entries)
		for _, content := range packed {
			dir, err := extract(t, content, small)
			alone(t, dir)
			for name, got := range held(t, dir) { // fails for links and anything special
				if strings.Contains(got, "canary") {
					t.Errorf("%s holds what lies outside", name)
				}
			}
			if _, checked := archive.Check(context.Background(), archive.Bytes(content), small, nil); fmt.Sprint(checked) != fmt.Sprint(err) {
				t.Errorf("the check says %v, the unpacking %v", checked, err)
			}
		}
	})
}

// pack packs the entries where the format can have them.
func pack(entries []entry) (packed [][]byte) {
	for _, one := range archivetest.Both {
		var try giveUp
		func() {
			defer func() { _ = recover() }()
			content := one(&try, entries...)
			if content != nil && !try.gaveUp {
				packed = append(packed, bytes.Clone(content))
			}
		}()
	}
	return packed
}

// giveUp lets a helper of tests fail without failing the test.
type giveUp struct {
	testing.TB
	gaveUp bool
}

func (*giveUp) Helper()        {}
func (g *giveUp) Fatal(...any) { g.gaveUp = true; panic("given up") }

// TestSparseFilesAreRefused: a header that makes few bytes into much disk is refused by
// the name of its entry, in both ways to write it. These two are of 50 bytes.
func TestSparseFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"pax": "H4sIAKpnBGsC/+3UMQrCMBjF8cw5hSdIv4TareCkTiKIBwiYoWJrSRTE0xt1UAQ3FcX/b2l4HTI8XkxhitHcH6bBr0JUbyFXz75iy9v5kltxVtTgoD5gn3Y+5uvVf3JuMJktTep9TMG0fr2NtdUPadPlVLSr7tPOt6Hebfsi9Q9/YvCb1BxDPRSt8NXOBebqFpfmxs0mGMmFvn7/VVk+27+9fwuu+7fVMO9f2P/bWS2alQIAAAAAAAAAAAAAAPyuEy9Uiq4AKAAA",
		"gnu": "H4sIAAAAAAACAyvJL9AvLmCgKTAAAjMTEzANBOg0JtvQwNDYlEEhmIEOoLS4JLFIQYFh+AJ4wJoZMYyCUTAKRgEcAAAXO2DCAAYAAA==",
	} {
		content, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := extract(t, content, small)
		if err == nil || !strings.Contains(err.Error(), "“top/sp”, a sparse file") {
			t.Errorf("%s: got %v", name, err)
		}
		if _, checked := archive.Check(context.Background(), archive.Bytes(content), small, nil); fmt.Sprint(checked) != fmt.Sprint(err) {
			t.Errorf("%s: the check says %v, the unpacking %v", name, checked, err)
		}
		alone(t, dir)
	}
}
