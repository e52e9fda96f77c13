package httpx

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"loom/app/loom"
)

// turnPatience is how long a stranger's request waits for its turn.
const turnPatience = 10 * time.Second

// turns let few requests of strangers be worked on at once, as many as there are
// processors, and the networks one after the other, in each the addresses one after the
// other: whoever is signed in and what runs in the background keep theirs. Browsers that
// signed in before have every second turn. The network has no part in a turn: bodies come
// before it, answers leave after it. The zero value is ready.
type turns struct {
	mu      sync.Mutex
	most    int // 0 for as many as there are processors
	busy    int
	waiting line
}

// line is who waits for a turn: by what they have in common, each in its turn, and at the
// last level one after the other.
type line struct {
	turns []chan struct{}
	order []string // the next one first
	of    map[string]*line
}

func (l *line) add(path []string, turn chan struct{}) {
	if len(path) == 0 {
		l.turns = append(l.turns, turn)
		return
	}
	inner := l.of[path[0]]
	if inner == nil {
		if l.of == nil {
			l.of = map[string]*line{}
		}
		inner = &line{}
		l.of[path[0]] = inner
		l.order = append(l.order, path[0])
	}
	inner.add(path[1:], turn)
}

func (l *line) empty() bool { return len(l.turns) == 0 && len(l.order) == 0 }

// next takes out who comes next; the line must not be empty.
func (l *line) next() (turn chan struct{}) {
	if len(l.order) == 0 {
		turn = l.turns[0]
		l.turns = l.turns[1:]
		return turn
	}
	first := l.order[0]
	turn = l.of[first].next()
	l.order = append(l.order[1:], first)
	l.prune(first)
	return turn
}

// remove takes out who does not wait any longer, and reports whether he was there.
func (l *line) remove(path []string, turn chan struct{}) bool {
	if len(path) == 0 {
		i := slices.Index(l.turns, turn)
		if i >= 0 {
			l.turns = slices.Delete(l.turns, i, i+1)
		}
		return i >= 0
	}
	inner := l.of[path[0]]
	if inner == nil || !inner.remove(path[1:], turn) {
		return false
	}
	l.prune(path[0])
	return true
}

// prune forgets those of whom nobody waits.
func (l *line) prune(key string) {
	if l.of[key].empty() {
		delete(l.of, key)
		l.order = slices.DeleteFunc(l.order, func(k string) bool { return k == key })
	}
}

// InTurn lets next answer when it is the request's turn among those of strangers. Throttled
// when that does not come in time; what next answers is held in memory. browser names one
// that signed in before, "" for others.
func InTurn(w http.ResponseWriter, r *http.Request, browser string, next http.Handler) error {
	p, ok := r.Context().Value(placeKey{}).(*place)
	if !ok {
		next.ServeHTTP(w, r) // a request that came through no Chain
		return nil
	}
	held, err := p.limits.turns.serve(w, r, browser, next)
	if err != nil {
		return err
	}
	if held.body.Len() <= maxPiece { // it does not need its place to be sent
		p.leave()
	}
	return held.send()
}

func (t *turns) serve(w http.ResponseWriter, r *http.Request, browser string, next http.Handler) (*heldAnswer, error) {
	if r.Body != nil && r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body) // its size is bounded (LimitOpenBody), and its time
		r.Body = &readBody{bytes.NewReader(body), err}
	}
	path := []string{"strangers", loom.NetworkOf(Address(r)), loom.PlaceOf(Address(r))}
	if browser != "" {
		path = []string{"browsers", browser}
	}
	held := &heldAnswer{ResponseWriter: w}
	return held, t.take(r, path, held, next)
}

func (t *turns) take(r *http.Request, path []string, w http.ResponseWriter, next http.Handler) error {
	ctx, cancel := context.WithTimeout(r.Context(), turnPatience)
	defer cancel()
	if err := t.wait(ctx, path); err != nil {
		if gone := r.Context().Err(); gone != nil {
			return gone
		}
		return tooMany(requestRetry, "Loom has too much to do for those who are not signed in.")
	}
	defer t.pass()
	next.ServeHTTP(w, r)
	return nil
}

// wait returns when it is the turn of a request with a path in the line, or with the error
// of ctx.
func (t *turns) wait(ctx context.Context, path []string) error {
	t.mu.Lock()
	if t.busy < cmp.Or(t.most, runtime.GOMAXPROCS(0)) {
		t.busy++
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	t.waiting.add(path, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	waited := t.waiting.remove(path, turn)
	t.mu.Unlock()
	if !waited { // it came at this moment
		t.pass()
	}
	return ctx.Err()
}

// pass returns a turn to who comes next.
func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting.empty() {
		t.busy--
		return
	}
	close(t.waiting.next())
}

// readBody is a body that came, or as much of it and why not more.
type readBody struct {
	*bytes.Reader
	err error
}

// Read returns what came, then the error.
func (b *readBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

// Close does nothing: the server closes the real one.
func (b *readBody) Close() error { return nil }

// heldAnswer is an answer that is sent later.
type heldAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader notes the status.
func (h *heldAnswer) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

// Write holds a piece of the answer.
func (h *heldAnswer) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(p)
}

func (h *heldAnswer) send() error {
	if h.status == 0 {
		return nil // an empty answer
	}
	h.ResponseWriter.WriteHeader(h.status)
	if h.body.Len() == 0 {
		return nil
	}
	_, err := h.ResponseWriter.Write(h.body.Bytes())
	return err
}
