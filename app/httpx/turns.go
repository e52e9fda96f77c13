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

// Turns let few requests of strangers be worked on at once, as many as there are
// processors, and the addresses one after the other: whoever is signed in and what runs
// in the background keep theirs. The network has no part in a turn: bodies come before
// it, answers leave after it. The zero value is ready.
type Turns struct {
	mu   sync.Mutex
	most int // 0 for as many as there are processors
	busy int
	// waiting are the requests of each place in the order in which they came, places those
	// that have any, the next one first.
	waiting map[string][]chan struct{}
	places  []string
}

// Serve lets next answer when it is the request's turn. Throttled when that does not come
// in time; what next answers is held in memory.
func (t *Turns) Serve(w http.ResponseWriter, r *http.Request, next http.Handler) error {
	if r.Body != nil && r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body) // its size is bounded (LimitOpenBody), and its time
		r.Body = &readBody{bytes.NewReader(body), err}
	}
	held := &heldAnswer{ResponseWriter: w}
	if err := t.take(r, held, next); err != nil {
		return err
	}
	return held.send()
}

func (t *Turns) take(r *http.Request, w http.ResponseWriter, next http.Handler) error {
	ctx, cancel := context.WithTimeout(r.Context(), turnPatience)
	defer cancel()
	if err := t.wait(ctx, loom.PlaceOf(Address(r))); err != nil {
		if gone := r.Context().Err(); gone != nil {
			return gone
		}
		return tooMany(requestRetry, "Loom has too much to do for those who are not signed in.")
	}
	defer t.pass()
	next.ServeHTTP(w, r)
	return nil
}

// wait returns when it is the turn of a request from a place, or with the error of ctx.
func (t *Turns) wait(ctx context.Context, place string) error {
	t.mu.Lock()
	if t.busy < cmp.Or(t.most, runtime.GOMAXPROCS(0)) {
		t.busy++
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if len(t.waiting[place]) == 0 {
		t.places = append(t.places, place)
	}
	if t.waiting == nil {
		t.waiting = map[string][]chan struct{}{}
	}
	t.waiting[place] = append(t.waiting[place], turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting[place], turn)
	if i >= 0 {
		t.keep(place, slices.Delete(t.waiting[place], i, i+1))
	}
	t.mu.Unlock()
	if i < 0 { // it came at this moment
		t.pass()
	}
	return ctx.Err()
}

// pass gives a turn to the next place.
func (t *Turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.places) == 0 {
		t.busy--
		return
	}
	place := t.places[0]
	turn := t.waiting[place][0]
	t.places = append(t.places[1:], place)
	t.keep(place, t.waiting[place][1:])
	close(turn)
}

// keep notes who of a place still waits.
func (t *Turns) keep(place string, turns []chan struct{}) {
	if len(turns) > 0 {
		t.waiting[place] = turns
		return
	}
	delete(t.waiting, place)
	t.places = slices.DeleteFunc(t.places, func(p string) bool { return p == place })
}

// readBody is a body that came, or as much of it and why not more.
type readBody struct {
	*bytes.Reader
	err error
}

// Read gives what came, then the error.
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
