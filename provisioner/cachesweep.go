package provisioner

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"loom/app/loom"
)

// hold takes a shared lock on a set's file, for as long as the set is in use.
func (c *Cache) hold(tenant loom.TenantID, set int) (release func(), err error) {
	if err := os.MkdirAll(c.sets(tenant), 0o700); err != nil {
		return nil, err
	}
	path := c.path(tenant, set) + ".lock"
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH); err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("lock set %d of plugin resources: %w", set, err)
		}
		// A sweep may have removed the file between opening and locking it.
		held, err := file.Stat()
		now, nowErr := os.Stat(path)
		if err == nil && nowErr == nil && os.SameFile(held, now) {
			var once sync.Once
			return func() { once.Do(func() { _ = file.Close() }) }, nil
		}
		_ = file.Close()
	}
}

// alone keeps other processes from fetching and sweeping for the tenant.
func (c *Cache) alone(tenant loom.TenantID) (unlock func(), err error) {
	if err := os.MkdirAll(c.sets(tenant), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(c.sets(tenant), ".lock"), os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock plugin resources of tenant %s: %w", tenant, err)
	}
	return func() { _ = file.Close() }, nil
}

// sweep removes sets older than the current one that nobody uses, and then
// secret files that no set holds. What cannot be removed now is left for the
// next sweep.
func (c *Cache) sweep(tenant loom.TenantID, current int) {
	entries, err := os.ReadDir(c.sets(tenant))
	if err != nil {
		return
	}
	for _, entry := range entries {
		set, err := strconv.Atoi(strings.TrimSuffix(entry.Name(), ".lock"))
		if err != nil || set >= current {
			continue
		}
		c.removeUnused(tenant, set)
	}
	c.sweepSecrets(tenant)
}

func (c *Cache) removeUnused(tenant loom.TenantID, set int) {
	path := c.path(tenant, set) + ".lock"
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return // in use
	}
	_ = os.RemoveAll(c.path(tenant, set))
	_ = os.Remove(path)
}

func (c *Cache) sweepSecrets(tenant loom.TenantID) {
	used := map[string]bool{}
	_ = filepath.WalkDir(c.sets(tenant), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSymlink != 0 {
			if to, err := os.Readlink(path); err == nil {
				used[filepath.Dir(to)] = true
			}
		}
		return nil
	})
	versions, _ := filepath.Glob(filepath.Join(c.data(tenant), "*", "*", "*", "*", "*"))
	for _, dir := range versions {
		kind := filepath.Base(filepath.Dir(filepath.Dir(dir)))
		absolute, err := filepath.Abs(dir)
		if err == nil && loom.SecretResource(kind) && !used[absolute] && !strings.HasPrefix(filepath.Base(dir), ".") {
			_ = os.RemoveAll(dir)
		}
	}
}
