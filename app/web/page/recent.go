package page

import (
	"context"
	"errors"
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

// Recent keeps for a moment what takes long to read and what the pages of many tell
// alike: sums over a whole tenant. It is for whole pages only. What such a page shows live
// it fetches again as soon as it is open, and parts are fetched upon signals: they read
// what the signal was about. Values are shared, nobody changes them. The zero value is
// ready.
type Recent[K comparable, V any] struct {
	mu      sync.Mutex
	kept    map[K]recentValue[V]
	reading Together[K, V]
}

type recentValue[V any] struct {
	value V
	// read is when its reading began.
	read time.Time
}

// Of gives what was read of key less than recentFor ago, by the clock now, else what read
// gives. Errors are not kept.
func (r *Recent[K, V]) Of(ctx context.Context, key K, now func() time.Time, read func(ctx context.Context) (V, error)) (V, error) {
	r.mu.Lock()
	v, there := r.kept[key]
	r.mu.Unlock()
	if there && now().Sub(v.read) < recentFor {
		return v.value, nil
	}
	return r.reading.Do(ctx, key, func(ctx context.Context) (V, error) { return r.Renew(ctx, key, now, read) })
}

// Renew reads what is kept as too old or not good enough, and keeps that.
func (r *Recent[K, V]) Renew(ctx context.Context, key K, now func() time.Time, read func(ctx context.Context) (V, error)) (V, error) {
	began := now()
	value, err := read(ctx)
	if err == nil {
		r.keep(key, recentValue[V]{value, began})
	}
	return value, err
}

func (r *Recent[K, V]) keep(key K, v recentValue[V]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.kept, func(_ K, old recentValue[V]) bool { return v.read.Sub(old.read) >= recentFor })
	if r.kept == nil || len(r.kept) >= recentMost {
		r.kept = map[K]recentValue[V]{}
	}
	r.kept[key] = v
}

// Together lets all who need the same at once wait for one reading of it: hundreds of
// pages open at the same time when an operation begins, and what they need is kept
// afterwards. What began before somebody asked is good enough. The zero value is ready.
type Together[K comparable, V any] struct {
	mu    sync.Mutex
	going map[K]*reading[V]
}

// reading is one that is under way; its result may be read once done is closed.
type reading[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// Do gives what read gives, to be had from another caller where one is at it. The
// reading goes on when the caller who began it is gone.
func (g *Together[K, V]) Do(ctx context.Context, key K, read func(ctx context.Context) (V, error)) (V, error) {
	g.mu.Lock()
	r := g.going[key]
	if r != nil {
		g.mu.Unlock()
		select {
		case <-r.done:
			return r.value, r.err
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
	r = &reading[V]{done: make(chan struct{}), err: errors.New("web: what was read together was not read")}
	if g.going == nil {
		g.going = map[K]*reading[V]{}
	}
	g.going[key] = r
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.going, key)
		g.mu.Unlock()
		close(r.done)
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnLimit)
	defer cancel()
	r.value, r.err = read(ctx)
	return r.value, r.err
}
