// Package cache keeps for a while what takes long to read: bounded, with an age, and read
// by one of those who need it at the same time. It knows nothing of what it keeps, and
// imports nothing of ours.
package cache

import (
	"context"
	"sync"
	"time"
)

// Cache keeps values by key. Its fields are set before it is used and not changed. Values
// are shared: nobody changes them. Errors are not kept.
type Cache[K comparable, V any] struct {
	// Age is how long a value is good, from when its reading began; 0 for as long as
	// there is room.
	Age time.Duration
	// Most is what the kept values weigh together at most; the oldest go first.
	Most int
	// Weight is what the value of a key weighs; nil counts each as 1.
	Weight func(key K) int

	mu      sync.Mutex
	kept    map[K]entry[V]
	sum     int // of weights
	reading readGroup[K, V]
}

type entry[V any] struct {
	value V
	// read is when its reading began.
	read time.Time
}

// Get returns what was read of key less than Age ago, by the clock now, else what read
// returns. What somebody else began to read before is waited for; a reading goes on, for
// readLimit at most, when the caller who began it is gone.
func (c *Cache[K, V]) Get(ctx context.Context, key K, now func() time.Time, read func(ctx context.Context) (V, error)) (V, error) {
	c.mu.Lock()
	e, ok := c.kept[key]
	c.mu.Unlock()
	if ok && !c.old(e, now()) {
		return e.value, nil
	}
	return c.reading.do(ctx, key, func(ctx context.Context) (V, error) { return c.Renew(ctx, key, now, read) })
}

// Renew reads what is kept as too old or not good enough, and keeps that.
func (c *Cache[K, V]) Renew(ctx context.Context, key K, now func() time.Time, read func(ctx context.Context) (V, error)) (V, error) {
	began := now()
	value, err := read(ctx)
	if err == nil {
		c.keep(key, entry[V]{value, began})
	}
	return value, err
}

func (c *Cache[K, V]) old(e entry[V], now time.Time) bool {
	return c.Age > 0 && now.Sub(e.read) >= c.Age
}

func (c *Cache[K, V]) weight(key K) int {
	if c.Weight == nil {
		return 1
	}
	return c.Weight(key)
}

func (c *Cache[K, V]) keep(key K, e entry[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[K]entry[V]{}
	}
	before, had := c.kept[key]
	if had && before.read.After(e.read) {
		return // somebody read it later
	}
	c.drop(key)
	c.kept[key] = e
	c.sum += c.weight(key)
	for other, o := range c.kept {
		if c.old(o, e.read) {
			c.drop(other)
		}
	}
	for c.sum > c.Most {
		c.drop(c.oldest())
	}
}

func (c *Cache[K, V]) drop(key K) {
	if _, ok := c.kept[key]; ok {
		delete(c.kept, key)
		c.sum -= c.weight(key)
	}
}

func (c *Cache[K, V]) oldest() (key K) {
	first := true
	var read time.Time
	for k, e := range c.kept {
		if first || e.read.Before(read) {
			key, read, first = k, e.read, false
		}
	}
	return key
}
