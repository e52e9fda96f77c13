package resource

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// lay makes resources as a provisioner lays them out, beside a canary.
func lay(t *testing.T) (files string) {
	t.Helper()
	top := t.TempDir()
	files = filepath.Join(top, "set")
	version := filepath.Join(top, "data", "site", "3", "site")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(files, "scripts"), 0o755), os.MkdirAll(filepath.Join(files, "archives"), 0o755), os.MkdirAll(filepath.Join(version, "sub"), 0o755),
		os.WriteFile(filepath.Join(top, "canary"), []byte("canary"), 0o600), os.WriteFile(filepath.Join(files, "canary"), []byte("canary"), 0o600),
		os.WriteFile(filepath.Join(files, "scripts", "run.sh"), []byte("run"), 0o755), os.WriteFile(filepath.Join(version, "sub", "f"), []byte("inside"), 0o644),
		os.Symlink(version, filepath.Join(files, "archives", "site")), os.Symlink("f", filepath.Join(version, "sub", "same")),
		syscall.Mkfifo(filepath.Join(files, "scripts", "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestRead(t *testing.T) {
	t.Parallel()
	files := lay(t)
	if content, err := Read(files, "scripts", "run.sh", 3); err != nil || string(content) != "run" {
		t.Errorf("got %q, %v", content, err)
	}
	if _, err := Read(files, "scripts", "run.sh", 2); err == nil || !strings.Contains(err.Error(), "more than 2 bytes") {
		t.Errorf("above the limit: %v", err)
	}
	for _, name := range []string{"none", "", ".", "..", "../canary", "../../canary", "/etc/passwd", ".hidden", `a\b`} {
		if content, err := Read(files, "scripts", name, 100); !errors.Is(err, ErrNotThere) {
			t.Errorf("%q: got %q, %v", name, content, err)
		}
	}
	for _, typ := range []string{"", "..", ".", "scripts/..", "none"} {
		if content, err := Read(files, typ, "canary", 100); !errors.Is(err, ErrNotThere) {
			t.Errorf("type %q: got %q, %v", typ, content, err)
		}
	}
	for name, typ := range map[string]string{"pipe": "scripts", "site": "archives"} {
		if _, err := Read(files, typ, name, 100); err == nil {
			t.Errorf("%s is no file, but it is read", name)
		}
	}
	if _, err := Read("", "scripts", "run.sh", 100); !errors.Is(err, ErrNotThere) {
		t.Errorf("without resources: %v", err)
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	files := lay(t)
	r, err := Open(files, "archives", "site")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var seen []string
	see := func(f File) error {
		text := f.Name
		if !f.Mode.IsDir() {
			file, err := r.OpenFile(f.Name)
			if err != nil {
				return err
			}
			defer file.Close()
			content, err := io.ReadAll(file)
			if err != nil {
				return err
			}
			text += "=" + string(content)
		}
		seen = append(seen, text)
		return nil
	}
	if err := r.Walk(see); err != nil || strings.Join(seen, " ") != "sub sub/f=inside sub/same=inside" {
		t.Errorf("got %v, %v", seen, err)
	}
	if names, err := Names(files, "scripts"); err != nil || strings.Join(names, " ") != "pipe run.sh" {
		t.Errorf("got %v, %v", names, err)
	}
	// What leads outside is an error, not content.
	for name, to := range map[string]string{"up": "../../../../canary", "absolute": filepath.Join(filepath.Dir(files), "canary")} {
		at := filepath.Join(filepath.Dir(files), "data/site/3/site/sub", name)
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
		seen = nil
		if err := r.Walk(see); err == nil || !strings.Contains(err.Error(), "escapes") {
			t.Errorf("%s: got %v, %v", name, seen, err)
		}
		if file, err := r.OpenFile("sub/" + name); err == nil {
			file.Close()
			t.Errorf("%s is opened", name)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
	// A folder in a circle ends.
	if err := os.Symlink(".", filepath.Join(filepath.Dir(files), "data/site/3/site/circle")); err != nil {
		t.Fatal(err)
	}
	if err := r.Walk(func(File) error { return nil }); err == nil {
		t.Error("a folder in itself was walked to an end")
	}
}
