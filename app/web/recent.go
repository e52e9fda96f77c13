package web

import (
	"context"
	"maps"
	"sync"
	"time"
)

const (
	// recentFor is for how long what was read is good enough for a page that sums up a
	// tenant.
	recentFor = time.Second
	// recentMost is how much of a sort is kept.
	recentMost = 1000
)

// recent keeps for a moment what takes long to read and what the pages of many tell
// alike: sums over a whole tenant. It is for whole pages only. What such a page shows live
// it fetches again as soon as it is open, and parts are fetched upon signals: they read
// what the signal was about. Values are shared, nobody changes them. The zero value is
// ready.
type recent[K comparable, V any] struct {
	mu      sync.Mutex
	kept    map[K]recentValue[V]
	reading together[K, V]
}

type recentValue[V any] struct {
	value V
	// read is when its reading began.
	read time.Time
}

// of gives what was read of key less than recentFor ago, by the clock now, else what read
// gives. Errors are not kept.
func (r *recent[K, V]) of(ctx context.Context, key K, now func() time.Time, read func(ctx context.Context) (V, error)) (V, error) {
	r.mu.Lock()
	v, there := r.kept[key]
	r.mu.Unlock()
	if there && now().Sub(v.read) < recentFor {
		return v.value, nil
	}
	return r.reading.do(ctx, key, func(ctx context.Context) (V, error) { return r.renew(ctx, key, now, read) })
}

// renew reads what is kept as too old or not good enough, and keeps that.
func (r *recent[K, V]) renew(ctx context.Context, key K, now func() time.Time, read func(ctx context.Context) (V, error)) (V, error) {
	began := now()
	value, err := read(ctx)
	if err == nil {
		r.keep(key, recentValue[V]{value, began})
	}
	return value, err
}

func (r *recent[K, V]) keep(key K, v recentValue[V]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.kept, func(_ K, old recentValue[V]) bool { return v.read.Sub(old.read) >= recentFor })
	if r.kept == nil || len(r.kept) >= recentMost {
		r.kept = map[K]recentValue[V]{}
	}
	r.kept[key] = v
}
