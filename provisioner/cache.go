package provisioner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"loom/app/loom"
	"loom/provisioner/confine"
)

// Source is where plugin resources come from.
type Source interface {
	// Live returns the resources in use by the tenant and the number of the
	// synchronisation that made them so; a higher number is newer.
	Live(ctx context.Context, tenant loom.TenantID) (set int, resources []loom.Resource, err error)
	// Open returns the content of a version, unsealed; the caller closes it.
	Open(ctx context.Context, r loom.Resource) (io.ReadCloser, error)
}

// Cache keeps plugin resources on this host: fetched
// versions in <Dir>/data, and for each synchronised set a directory of links in
// <Dir>/work/<tenant>/.sets/<number>. Several processes may share Dir: a set in
// use is held by a lock on a file, which ends with the process.
type Cache struct {
	// Dir is the provisioner's directory, absolute.
	Dir    string
	Source Source
	// User unpacks archives; nil: the user of this process.
	User *confine.User
	// Linger is for how long a set stays held after its last use. Finding it again, and
	// the secret files in it, takes longer than a short task.
	Linger time.Duration
	// Laid, if set, is told which set of a tenant this process works with, whenever
	// that is another one than before. It must not take long.
	Laid func(ctx context.Context, tenant loom.TenantID, set int)

	told sync.Map // of the sets that Laid was told of, by tenant

	mu      sync.Mutex
	tenants map[loom.TenantID]*turn
	held    map[loom.TenantID]*heldSet
}

// turn lets one task at a time fetch files of a tenant.
type turn struct {
	taken chan struct{} // holds one value while it is taken
	// failed is the last failure, and when that was.
	failed error
	at     time.Time
}

// errLost is the error of a file that cannot be fetched, however often it is tried.
var errLost = errors.New("upload the file again and release it, or withdraw it; then retry the operation")

func (c *Cache) data(tenant loom.TenantID) string {
	return filepath.Join(c.Dir, "data", string(tenant))
}
func (c *Cache) sets(tenant loom.TenantID) string {
	return filepath.Join(c.Dir, "work", string(tenant), ".sets")
}

// Set returns the directory of the tenant's set number atLeast or newer, fetching
// what is missing, with its number. The set stays until release is called. An
// error names the resource that could not be had: Unavailable where the store is
// away, errLost where the store has it no longer, or other content. Who waits while
// another task fails to fetch fails with it, so that a store that does not answer holds
// nobody up for longer than one fetch takes.
func (c *Cache) Set(ctx context.Context, tenant loom.TenantID, atLeast int) (dir string, set int, release func(), err error) {
	if !filepath.IsLocal(string(tenant)) || strings.ContainsAny(string(tenant), `/\`) {
		return "", 0, nil, fmt.Errorf("tenant %q cannot name a directory", tenant)
	}
	came := time.Now()
	turn := c.turnOf(tenant)
	select {
	case turn.taken <- struct{}{}:
		defer func() { <-turn.taken }()
	case <-ctx.Done():
		return "", 0, nil, context.Cause(ctx)
	}
	h, ok := c.share(tenant, atLeast)
	if !ok {
		if turn.failed != nil && turn.at.After(came) {
			return "", 0, nil, turn.failed
		}
		set, unlock, err := c.lay(ctx, tenant, atLeast)
		turn.failed = nil
		if err != nil && errors.Is(err, loom.Unavailable) {
			turn.failed, turn.at = err, time.Now()
		}
		if err != nil {
			return "", 0, nil, err
		}
		h = c.shared(tenant, set, unlock)
		c.tell(ctx, tenant, set)
	}
	var once sync.Once
	return h.dir, h.set, func() { once.Do(func() { c.leave(tenant, h) }) }, nil
}

func (c *Cache) tell(ctx context.Context, tenant loom.TenantID, set int) {
	if c.Laid == nil {
		return
	}
	if before, there := c.told.Swap(tenant, set); !there || before != set {
		c.Laid(ctx, tenant, set)
	}
}

// lay finds or makes a set for a tenant whose lock the caller holds, and holds it
// until release is called.
func (c *Cache) lay(ctx context.Context, tenant loom.TenantID, atLeast int) (set int, release func(), err error) {
	if newest := c.newest(tenant); newest >= atLeast && newest > 0 {
		if release, err := c.hold(tenant, newest); err == nil {
			if _, err := os.Stat(c.path(tenant, newest)); err == nil {
				return newest, release, nil
			}
			release() // swept away by another process meanwhile
		}
	}
	set, resources, err := c.Source.Live(ctx, tenant)
	if err != nil {
		return 0, nil, fmt.Errorf("list plugin resources: %w", err)
	}
	if set < atLeast {
		return 0, nil, fmt.Errorf("plugin resources: set %d is wanted, but the newest is %d", atLeast, set)
	}
	unlock, err := c.alone(tenant)
	if err != nil {
		return 0, nil, err
	}
	defer unlock()
	// Held before it is made, so that nobody sweeps it away half made.
	release, err = c.hold(tenant, set)
	if err != nil {
		return 0, nil, err
	}
	if err := c.layOut(ctx, tenant, set, resources); err != nil {
		release()
		return 0, nil, err
	}
	c.sweep(tenant, set)
	return set, release, nil
}

func (c *Cache) turnOf(tenant loom.TenantID) *turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenants == nil {
		c.tenants = map[loom.TenantID]*turn{}
	}
	if c.tenants[tenant] == nil {
		c.tenants[tenant] = &turn{taken: make(chan struct{}, 1)}
	}
	return c.tenants[tenant]
}

func (c *Cache) path(tenant loom.TenantID, set int) string {
	return filepath.Join(c.sets(tenant), strconv.Itoa(set))
}

// newest is the highest number laid out, 0 when there is none.
func (c *Cache) newest(tenant loom.TenantID) int {
	newest := 0
	entries, _ := os.ReadDir(c.sets(tenant))
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil && entry.IsDir() {
			newest = max(newest, n)
		}
	}
	return newest
}

// layOut fetches what is missing and makes the directory of links.
func (c *Cache) layOut(ctx context.Context, tenant loom.TenantID, set int, resources []loom.Resource) error {
	dir := c.path(tenant, set)
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(c.sets(tenant), 0o700); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(c.sets(tenant), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	for _, r := range resources {
		file, err := c.fetch(ctx, tenant, r)
		if err != nil {
			return fmt.Errorf("the file %s/%s of %s, version %d: %w", r.Type, r.Name, r.Plugin, r.Version, err)
		}
		link := filepath.Join(temporary, r.Kind, r.Plugin, r.Type, r.Name)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(file, link); err != nil {
			return err
		}
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	if err := os.Rename(temporary, dir); err != nil {
		if _, there := os.Stat(dir); there == nil {
			return nil // another process was quicker
		}
		return err
	}
	return nil
}

// fetch makes sure that a version is in the data directory and gives its path.
func (c *Cache) fetch(ctx context.Context, tenant loom.TenantID, r loom.Resource) (string, error) {
	for _, part := range []string{r.Kind, r.Plugin, r.Type, r.Name} {
		if !filepath.IsLocal(part) || strings.ContainsAny(part, `/\`) || strings.HasPrefix(part, ".") {
			return "", fmt.Errorf("%q cannot be the name of a file", part)
		}
	}
	dir := filepath.Join(c.data(tenant), r.Kind, r.Plugin, r.Type, r.Name, strconv.Itoa(r.Version))
	file := filepath.Join(dir, r.Name)
	file, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary)
	raw := filepath.Join(temporary, "raw")
	if err := c.download(ctx, r, raw); err != nil {
		return "", err
	}
	place := filepath.Join(temporary, "version")
	if err := os.Mkdir(place, 0o755); err != nil {
		return "", err
	}
	if r.Format == "archive" {
		unpacked := filepath.Join(temporary, "unpacked")
		if err := os.Mkdir(unpacked, 0o755); err != nil {
			return "", err
		}
		if err := c.unpack(ctx, raw, unpacked); err != nil {
			return "", fmt.Errorf("the archive is refused: %w", err)
		}
		err = settle(unpacked, filepath.Join(place, r.Name))
	} else {
		if err := os.Chmod(raw, permissions(r)); err != nil {
			return "", err
		}
		err = os.Rename(raw, filepath.Join(place, r.Name))
	}
	if err != nil {
		return "", err
	}
	if err := os.Rename(place, dir); err != nil {
		if _, there := os.Stat(file); there == nil {
			return file, nil
		}
		return "", err
	}
	return file, nil
}

// download writes the content and checks size and SHA-256.
func (c *Cache) download(ctx context.Context, r loom.Resource, to string) error {
	content, err := c.Source.Open(ctx, r)
	if errors.Is(err, loom.NotFound) {
		return fmt.Errorf("it is no longer in the file store; %w", errLost)
	}
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	defer content.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	hash := sha256.New()
	// One byte more than announced is enough to know that it is wrong.
	n, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(content, r.Size+1))
	if closing := file.Close(); err == nil {
		err = closing
	}
	switch {
	case err != nil:
		return fmt.Errorf("fetch: %w", err)
	case n != r.Size:
		return fmt.Errorf("its size is not the %d bytes that were uploaded; %w", r.Size, errLost)
	case hex.EncodeToString(hash.Sum(nil)) != strings.ToLower(r.SHA256):
		return fmt.Errorf("its SHA-256 is not that of the upload; %w", errLost)
	}
	return nil
}

func permissions(r loom.Resource) fs.FileMode {
	if loom.SecretResource(r.Type) {
		return 0o400
	}
	if mode, err := strconv.ParseUint(r.Permissions, 8, 32); err == nil && r.Permissions != "" {
		return fs.FileMode(mode) & fs.ModePerm
	}
	if r.Kind == "providertypes" {
		return 0o600
	}
	return 0o644
}

// heldSet is a set that tasks of this process use at the moment: they share one
// lock on it, and what is read of its files, which never change.
type heldSet struct {
	set     int
	dir     string
	users   int
	release func()
	// idle runs while nobody uses the set, until it is let go of.
	idle *time.Timer
	gone bool

	mu      sync.Mutex
	secrets map[string][]string
}

// share lets one more task use the set that others use, if it is new enough. The
// caller holds the tenant's lock.
func (c *Cache) share(tenant loom.TenantID, atLeast int) (*heldSet, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[tenant]
	if h == nil {
		return nil, false
	}
	if h.set < atLeast {
		c.drop(tenant, h) // the next one sweeps it away
		return nil, false
	}
	if h.idle != nil {
		h.idle.Stop()
		h.idle = nil
	}
	h.users++
	return h, true
}

// drop lets go of a set that nobody uses. The caller holds c.mu.
func (c *Cache) drop(tenant loom.TenantID, h *heldSet) {
	if h.users > 0 || h.gone {
		return
	}
	h.gone = true
	if c.held[tenant] == h {
		delete(c.held, tenant)
	}
	h.release()
}

// shared makes a set that is held one that others may use as well.
func (c *Cache) shared(tenant loom.TenantID, set int, release func()) *heldSet {
	h := &heldSet{set: set, dir: c.path(tenant, set), users: 1, release: release, secrets: map[string][]string{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = map[loom.TenantID]*heldSet{}
	}
	c.held[tenant] = h
	return h
}

// leave ends the use of a set by one task; a moment after the last one it is let go of.
func (c *Cache) leave(tenant loom.TenantID, h *heldSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.users--
	if h.users > 0 {
		return
	}
	if c.Linger <= 0 || c.held[tenant] != h {
		c.drop(tenant, h)
		return
	}
	h.idle = time.AfterFunc(c.Linger, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(tenant, h)
	})
}

// secretFiles is what the secret resources that a task's plugins can get at hold,
// read once for all tasks that use the set together.
func (c *Cache) secretFiles(dir string, spec *loom.TaskSpec) []string {
	h := c.heldAt(spec.Tenant, dir)
	if h == nil {
		return secretFiles(dir, spec)
	}
	plugins := spec.Provider.Type + "\n" + strings.Join(spec.Automators, "\n")
	h.mu.Lock()
	defer h.mu.Unlock()
	values, ok := h.secrets[plugins]
	if !ok {
		values = secretFiles(dir, spec)
		h.secrets[plugins] = values
	}
	return slices.Clone(values)
}

func (c *Cache) heldAt(tenant loom.TenantID, dir string) *heldSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.held[tenant]; h != nil && h.dir == dir {
		return h
	}
	return nil
}

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
