package provisioner

import (
	"slices"
	"strings"
	"sync"
	"time"

	"loom/app/loom"
)

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
