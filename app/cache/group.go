package cache

import (
	"context"
	"errors"
	"sync"
	"time"
)

// readLimit ends a reading that many wait for.
const readLimit = 30 * time.Second

// readGroup lets all who need the same at once wait for one reading of it: hundreds of
// pages open at the same time when an operation begins. What began before somebody asked
// is good enough. It differs from singleflight.Group in what the pages need: keys have
// types, those who wait may leave, and a reading that panics does so in the goroutine of
// its request, where that is recovered. The zero value is ready.
type readGroup[K comparable, V any] struct {
	mu    sync.Mutex
	going map[K]*reading[V]
}

// reading is one that is under way; its result may be read once done is closed.
type reading[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// do returns what read gives, to be had from another caller where one is at it. The
// reading goes on when the caller who began it is gone.
func (g *readGroup[K, V]) do(ctx context.Context, key K, read func(ctx context.Context) (V, error)) (V, error) {
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
	r = &reading[V]{done: make(chan struct{}), err: errors.New("cache: the shared read failed")}
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readLimit)
	defer cancel()
	r.value, r.err = read(ctx)
	return r.value, r.err
}
