package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/diskspace"
	"loom/app/loom"
)

// greedyBuilder stands in for mmdebstrap with packages that take 64 MiB and go on. Each
// script of a package says which rights it has.
const greedyBuilder = `#!/bin/sh
for word; do case $word in */root) root=$word ;; esac; done
sed -n 's/^CapBnd:[[:space:]]*/I: rights /p' /proc/self/status
fallocate -l 64M "$root/large"
exec sleep 1000
`

// TestBuildsKeepToTheTenant: a base root that takes more than its tenant may have is not
// built to its end, and nothing is left of it.
func TestBuildsKeepToTheTenant(t *testing.T) {
	t.Parallel()
	l := endless(t, t.TempDir())
	if err := os.WriteFile(l.builder, []byte(greedyBuilder), 0o700); err != nil {
		t.Fatal(err)
	}
	l.ceilings.tenant.Disk = 80 << 20
	before := filepath.Join(l.baseDir, "bookworm-before")
	if err := errors.Join(os.MkdirAll(filepath.Join(before, "root"), 0o755), os.WriteFile(filepath.Join(before, "root", "file"), make([]byte, 32<<20), 0o600), l.noteBuilt(before, "acme")); err != nil {
		t.Fatal(err)
	}
	if got := l.builtFor(); got["acme"] < 32<<20 || len(got) != 1 {
		t.Errorf("built: %v", got)
	}
	im, err := parseImage("bookworm:texlive-full")
	if err != nil {
		t.Fatal(err)
	}
	err = l.ensureBase(t.Context(), "acme", im, func(string) {})
	if !errors.Is(err, loom.Exhausted) || !strings.Contains(err.Error(), "80.0 MB") || !strings.Contains(err.Error(), tenantMaxOption) {
		t.Errorf("a base root of 64 MiB for a tenant that has 48 left: %v", err)
	}
	if exists(filepath.Join(l.baseDir, "."+im.hash()+".tmp")) || exists(l.baseRoot(im)) {
		t.Error("something is left of the build")
	}
}

// TestBuildsLeaveTheReserve: what is being written ends when the rest of the disk is to
// stay free.
func TestBuildsLeaveTheReserve(t *testing.T) {
	t.Parallel()
	l, err := New(Options{DataDir: t.TempDir(), Reserve: diskspace.Reserve{Bytes: 1 << 49}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := l.withinRoom(t.Context(), filepath.Join(l.baseDir, "root"), "It is not built", "")
	defer stop()
	<-ctx.Done()
	if why := context.Cause(ctx); !errors.Is(why, loom.Exhausted) || !strings.HasPrefix(why.Error(), "It is not built: the disk") {
		t.Errorf("it ended for %v", why)
	}
}

// TestBuildHasFewRights: scripts of packages neither read nor change the packet filter of
// the host, its modules, clock and logs.
func TestBuildHasFewRights(t *testing.T) {
	t.Parallel()
	l := endless(t, t.TempDir())
	if err := os.WriteFile(l.builder, []byte(greedyBuilder), 0o700); err != nil {
		t.Fatal(err)
	}
	l.ceilings.tenant.Disk = 32 << 20
	im, err := parseImage("bookworm:iptables-persistent")
	if err != nil {
		t.Fatal(err)
	}
	rights := ""
	_ = l.ensureBase(t.Context(), "acme", im, func(line string) {
		if _, after, ok := strings.Cut(line, "rights "); ok {
			rights = after
		}
	})
	// chown, dac_override, dac_read_search, fowner, fsetid, kill, setgid, setuid, setpcap,
	// sys_chroot, sys_admin, mknod, audit_write, setfcap.
	if rights != "00000000a82401ff" {
		t.Errorf("a build has the rights %q", rights)
	}
}
