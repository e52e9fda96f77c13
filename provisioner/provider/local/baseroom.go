package local

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"loom/app/diskspace"
	"loom/app/loom"
)

// Base roots take disk: those built for a tenant count as the files of its machines do,
// and a build ends when it would use up what stays free.
const (
	// roomEvery is how often a build is looked at, and countEvery every how many times its
	// files are counted.
	roomEvery  = time.Second
	countEvery = 5
)

// built is what is on record of a base root.
type built struct {
	Tenant loom.TenantID `json:"tenant"` // who asked first
	Bytes  int64         `json:"bytes"`
}

const builtFile = "built"

// builtFor adds up the base roots that were built for each tenant.
func (l *Local) builtFor() map[loom.TenantID]int64 {
	tenants := map[loom.TenantID]int64{}
	files, _ := filepath.Glob(filepath.Join(l.baseDir, "*", builtFile))
	for _, file := range files {
		var b built
		if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &b) == nil && b.Tenant != "" {
			tenants[b.Tenant] += b.Bytes
		}
	}
	return tenants
}

// noteBuilt records for whom the base root in a directory was built, and its size.
func (l *Local) noteBuilt(dir string, tenant loom.TenantID) error {
	u, err := filesIn(filepath.Join(dir, "root"), 1<<62)
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, builtFile), built{Tenant: tenant, Bytes: u.bytes})
}

// withinRoom returns a context for writing a directory. It ends when the disk has no more
// than what stays free, or when the base roots of the tenant, this one included, take more
// than the tenant may have; its cause is Exhausted and begins with what. stop ends it too.
func (l *Local) withinRoom(ctx context.Context, dir, what string, tenant loom.TenantID) (within context.Context, stop func()) {
	most := int64(0)
	if tenant != "" && l.ceilings.tenant.Disk > 0 {
		most = max(l.ceilings.tenant.Disk-l.builtFor()[tenant], 1)
	}
	within, cancel := context.WithCancelCause(ctx)
	go func() {
		for n := 0; ; n++ {
			if err := l.hasRoom(dir, what, most, n%countEvery == 0); err != nil {
				cancel(err)
				return
			}
			select {
			case <-within.Done():
				return
			case <-time.After(roomEvery):
			}
		}
	}()
	return within, func() { cancel(nil) }
}

// hasRoom returns Exhausted when there is no room for what is being written; most is in
// bytes, 0 for any number.
func (l *Local) hasRoom(dir, what string, most int64, counting bool) error {
	if err := l.reserve.Check(filepath.Dir(dir), what, 0); errors.Is(err, loom.Exhausted) {
		return err
	}
	if most == 0 || !counting {
		return nil
	}
	u, err := filesIn(dir, most)
	if err == nil && (u.bytes > most || u.files > filesOf(most)) {
		return loom.NewError(loom.Exhausted, "%s: the base roots of a tenant take %s at most, together with its machines (%s). Name fewer packages, or delete image types that name others.",
			what, diskspace.Size(l.ceilings.tenant.Disk), tenantMaxOption)
	}
	return nil
}

// filesIn counts what lies in a directory, no further than is needed to see that it is
// more than the limit.
func filesIn(dir string, limit int64) (use, error) {
	var u use
	root, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return u, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	count(root, &u, limit, deepest, map[uint64]bool{})
	return u, nil
}
