package store

import "sync"

// maxCommons is how many groups of tasks are remembered.
const maxCommons = 256

// specCommons remembers what groups of tasks have in common for their specs, with the
// stamp that PostgreSQL gave it: what begins later and has the same stamp has the same
// in common (loom_stamps).
type specCommons struct {
	mu sync.Mutex
	of map[specGroup]stampedCommon
}

type stampedCommon struct {
	stamp  string
	common *SpecFacts
}

// get gives what a group has in common, nil unless it is known under that stamp.
func (c *specCommons) get(group specGroup, stamp string) *SpecFacts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.of[group]; known.stamp == stamp {
		return known.common
	}
	return nil
}

func (c *specCommons) put(group specGroup, stamp string, common *SpecFacts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[specGroup]stampedCommon{}
	}
	if len(c.of) >= maxCommons {
		for other := range c.of {
			delete(c.of, other)
			break
		}
	}
	c.of[group] = stampedCommon{stamp, common}
}
