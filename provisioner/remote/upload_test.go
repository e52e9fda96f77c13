package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

func TestUpload(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	to := target(s)
	to.User = sshtest.SudoUser
	conn := dial(t, to)
	ctx := context.Background()
	dir := filepath.Join(s.Dir, "root")
	content := bytes.Repeat([]byte{0, 1, 2, 255, '\n'}, 300_000)
	if err := conn.Upload(ctx, remote.File{Path: "/root/it's here", Mode: 0o640, Root: true, Content: bytes.NewReader(content)}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "it's here"))
	info, statErr := os.Stat(filepath.Join(dir, "it's here"))
	if err != nil || statErr != nil || !bytes.Equal(got, content) || info.Mode().Perm() != 0o640 {
		t.Fatalf("%d bytes, %v, %v", len(got), info.Mode(), err)
	}
	trouble := errors.New("disk trouble")
	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(trouble))
	if err := conn.Upload(ctx, remote.File{Path: "/root/it's here", Root: true, Content: broken}); !errors.Is(err, trouble) {
		t.Fatalf("got %v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "it's here")); !bytes.Equal(got, content) {
		t.Fatal("a broken upload changed the file")
	}
	if err := conn.Upload(ctx, remote.File{Path: "/no/such/dir/x", Root: true, Content: strings.NewReader("x")}); !errors.Is(err, remote.ErrFailed) {
		t.Fatalf("got %v", err)
	}
	if err := conn.Upload(ctx, remote.File{Path: "relative"}); !errors.Is(err, remote.ErrFailed) {
		t.Fatalf("got %v", err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 1 {
		t.Fatalf("left over: %v", left)
	}
}

func TestUploadTree(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	conn := dial(t, target(s))
	source := filepath.Join(t.TempDir(), "x")
	write := func(name, content string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a.sh", "#!/bin/sh\n", 0o755)
	write("real/data", "linked", 0o644)
	if err := os.Symlink(filepath.Join(source, "real"), filepath.Join(source, "link")); err != nil {
		t.Fatal(err)
	}
	up := func(o remote.TreeOptions) bool {
		t.Helper()
		tree := remote.NewTree()
		if err := tree.AddResources("x", filepath.Dir(source), "x"); err != nil {
			t.Fatal(err)
		}
		tree.AddFile("lib/own.sh", 0o755, []byte("own"))
		sent, err := conn.UploadTree(context.Background(), tree, "/var/cache/t", o)
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	at := func(name string) string {
		content, err := os.ReadFile(filepath.Join(s.Dir, "cache/t", name))
		if err != nil {
			return "-"
		}
		return string(content)
	}
	if !up(remote.TreeOptions{Root: true}) || up(remote.TreeOptions{Root: true}) {
		t.Fatal("sent or not sent at the wrong time")
	}
	if at("x/link/data") != "linked" || at("lib/own.sh") != "own" {
		t.Fatal("content")
	}
	if info, err := os.Lstat(filepath.Join(s.Dir, "cache/t/x/link")); err != nil || !info.IsDir() {
		t.Fatalf("link was not followed: %v", err)
	}
	if info, err := os.Stat(filepath.Join(s.Dir, "cache/t/x/a.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Fatalf("mode: %v", err)
	}
	// What the machine made stays; what the last tree brought and this one lacks goes.
	if err := os.WriteFile(filepath.Join(s.Dir, "cache/t/x/state"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(source, "a.sh")); err != nil {
		t.Fatal(err)
	}
	if !up(remote.TreeOptions{Root: true}) || at("x/a.sh") != "-" || at("x/state") != "mine" || at("x/real/data") != "linked" {
		t.Fatalf("after a change: %q %q", at("x/a.sh"), at("x/state"))
	}
	write("a.sh", "#!/bin/sh\n", 0o755) // back to the first tree: its old marker must not fool us
	if !up(remote.TreeOptions{Root: true}) || at("x/a.sh") == "-" {
		t.Fatal("the first tree did not come back")
	}
	write("b", "b", 0o644)
	if !up(remote.TreeOptions{Root: true, Replace: true, Owner: sshtest.SudoUser}) || at("x/state") != "-" || at("x/b") != "b" {
		t.Fatal("not replaced")
	}
	left, _ := os.ReadDir(filepath.Join(s.Dir, "cache"))
	if len(left) != 1 {
		t.Fatalf("left over: %v", left)
	}
}
