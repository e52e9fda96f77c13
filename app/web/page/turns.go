package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/ui"
)

const (
	// turnGap is the least time between two renderings of the same live part.
	turnGap = 150 * time.Millisecond
	// turnLimit ends a rendering that many wait for.
	turnLimit = 30 * time.Second
)

// turns lets many viewers of the same live part wait for one rendering of it. A
// rendering begins after all who get it asked, so that it shows what they were
// signalled; the first after a pause begins at once. The zero value is ready.
type turns struct {
	mu    sync.Mutex
	parts map[string]*part
}

// part is a live part that was asked for lately: the rendering at work or done, and
// the one that is about to begin.
type part struct {
	last, next *turn
	began      time.Time
}

// turn is one rendering; its answer may be read once done is closed.
type turn struct {
	done   chan struct{}
	status int
	header http.Header
	body   bytes.Buffer
	err    error
}

// Header, Write and WriteHeader let a handler answer into a turn.
func (t *turn) Header() http.Header { return t.header }

func (t *turn) Write(p []byte) (int, error) { return t.body.Write(p) }

func (t *turn) WriteHeader(status int) { t.status = status }

// do gives the next rendering of a part, made by the caller who asked for it first.
func (ts *turns) do(ctx context.Context, key string, work func(ctx context.Context, t *turn) error) (*turn, error) {
	ts.mu.Lock()
	p := ts.parts[key]
	if p == nil {
		p = &part{}
		if ts.parts == nil {
			ts.parts = map[string]*part{}
		}
		ts.parts[key] = p
	}
	if t := p.next; t != nil {
		ts.mu.Unlock()
		select {
		case <-t.done:
			return t, t.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	t := &turn{done: make(chan struct{}), status: http.StatusOK, header: http.Header{}, err: errors.New("web: a shared part was not rendered")}
	p.next = t
	before, wait := p.last, time.Until(p.began.Add(turnGap))
	ts.mu.Unlock()
	defer close(t.done)
	if before != nil {
		<-before.done
		time.Sleep(wait)
	}
	ts.mu.Lock()
	p.last, p.next, p.began = t, nil, time.Now()
	ts.mu.Unlock()
	defer time.AfterFunc(2*turnGap, func() { ts.forget(key, p, t) })
	// Others wait for it: it goes on when this caller is gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnLimit)
	defer cancel()
	t.err = work(ctx, t)
	return t, t.err
}

// forget drops a part that nobody asked for again after a rendering.
func (ts *turns) forget(key string, p *part, t *turn) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if p.last == t && p.next == nil && ts.parts[key] == p {
		delete(ts.parts, key)
	}
}

// RenderOnce makes a handler answer everybody with the same rights who asks on the same page
// for the same live part with one rendering: that of the id target, or any where it is empty.
// Whole pages are rendered for each.
func (s *Shared) RenderOnce(target string, h httpx.ActorHandler) httpx.ActorHandler {
	h = Once(h)
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		if !httpx.IsFragment(r) || target != "" && !Wants(r, target) {
			return h(w, r, actor)
		}
		who := []any{actor.Tenant, actor.User, actor.Role, actor.Grants, actor.Via, actor.By, actor.ByRole, actor.Scopes, s.Preferences(r), ui.ViewerOf(r.Context()).In(time.Time{}).Location().String(), here(r)}
		key := fmt.Sprintf("%q %q %q", who, r.Header.Get("HX-Target"), r.URL.RequestURI())
		t, err := s.turns.do(r.Context(), key, func(ctx context.Context, t *turn) error { return h(t, r.WithContext(ctx), actor) })
		if err != nil {
			return err
		}
		maps.Copy(w.Header(), t.header)
		w.WriteHeader(t.status)
		_, err = w.Write(t.body.Bytes())
		return err
	}
}

// Grouped makes a handler take the counts of an operation's tasks from their groups, which
// its page tells anyway.
func Grouped(h httpx.ActorHandler) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		return h(w, r.WithContext(clusters.WithTaskGroups(r.Context())), actor)
	}
}

// Once makes a handler read what several parts of its page are about once.
func Once(h httpx.ActorHandler) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		return h(w, r.WithContext(clusters.WithReadCache(r.Context())), actor)
	}
}
