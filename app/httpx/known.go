package httpx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"loom/app/loom"
	"loom/app/places"
)

// askEvery is how often who sends a request is asked again while its body comes.
const askEvery = 10 * time.Second

// maxRest is what may follow the last part of a form.
const maxRest = 64 << 10

// bodies is the memory for what requests of this process send.
var bodies = places.NewBodies()

// errEnded is the cause of what the body of a request gives whose access ended.
var errEnded = errors.New("httpx: the access of a request ended")

// Known lets handle answer the request of an actor who is known. A body that is held back
// holds no access open: again says who sends the request before handle learns that all of it
// came, and now and then until then. Reading fails unless that is the same actor with the
// same rights. What the body takes in memory counts for the actor, up to the largest that
// there is; Throttled when that is too much.
func Known(w http.ResponseWriter, r *http.Request, actor loom.Actor, again func() (loom.Actor, error), handle ActorHandler) error {
	return known(askEvery, w, r, actor, again, handle)
}

func known(every time.Duration, w http.ResponseWriter, r *http.Request, actor loom.Actor, again func() (loom.Actor, error), handle ActorHandler) error {
	if r.Body == nil || r.Body == http.NoBody {
		return handle(w, r, actor)
	}
	who := actor.Account()
	if actor.ActsAsAnother() {
		who = actor.By
	}
	b := &knownBody{ReadCloser: r.Body, ctx: r.Context(), rc: http.NewResponseController(w), actor: actor, again: again, share: bodies.Share(who), held: r.ContentLength}
	defer b.done()
	b.watch(every)
	r = r.WithContext(context.WithValue(r.Context(), knownKey{}, b))
	r.Body = b
	err := handle(w, r, actor)
	if ended := b.ended(); err != nil && ended != nil {
		return ended // whatever the handler made of it
	}
	return err
}

type knownKey struct{}

// knownBody is the body of a request that somebody who is known sends.
type knownBody struct {
	io.ReadCloser
	ctx   context.Context
	rc    *http.ResponseController
	actor loom.Actor
	again func() (loom.Actor, error)
	// share is what is held in memory, nil for a body that is stored while it comes.
	share *places.Share
	// read is how much came, held for how much there is room: what the body is said to have at
	// first, -1 where nobody said.
	read, held int64

	mu    sync.Mutex
	timer *time.Timer
	// over says that all came, or that the request is answered.
	over bool
	err  error
}

// Read reads on. All that came is kept back until it is known who sends it.
func (b *knownBody) Read(p []byte) (int, error) {
	if err := b.hold(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err == io.EOF {
		b.end()
	}
	if ended := b.ended(); ended != nil {
		return 0, ended
	}
	return n, err
}

// hold takes memory before more is read.
func (b *knownBody) hold() error {
	switch {
	case b.share == nil:
		return nil
	case b.read == 0 && b.held > 0: // as was announced
	case b.read > b.held:
		b.held = 2 * b.read
	default:
		return nil
	}
	return b.share.Hold(b.ctx, b.held)
}

// end asks once, at the end of the body.
func (b *knownBody) end() {
	b.mu.Lock()
	over := b.over
	b.over = true
	b.timer.Stop()
	b.mu.Unlock()
	if over {
		return
	}
	err := b.ask()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
}

// watch asks now and then until all came, and lets reading end where the access did.
func (b *knownBody) watch(every time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(every, func() {
		err := b.ask()
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case b.over:
		case errors.Is(err, errEnded):
			b.over, b.err = true, err
			b.rc.SetReadDeadline(time.Now()) //nolint:errcheck // not supported: a writer of a test
		default:
			b.timer.Reset(every)
		}
	})
}

// ask says why the request may not go on, nil where it may.
func (b *knownBody) ask() error {
	now, err := b.again()
	if err != nil {
		switch kind := loom.AsError(err).Kind; kind {
		case loom.Unauthenticated, loom.Forbidden, loom.NotFound, loom.Invalid, loom.Conflict:
			return &loom.Error{Kind: loom.Unauthenticated, Message: "Your access ended while this was on its way; nothing was changed. Sign in again.", Err: fmt.Errorf("%w: %w", errEnded, err)}
		}
		return err
	}
	if !now.SameAccess(b.actor) {
		return &loom.Error{Kind: loom.Forbidden, Message: "What you may do changed while this was on its way; nothing was changed. Send it again.", Err: errEnded}
	}
	return nil
}

func (b *knownBody) ended() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *knownBody) done() {
	b.mu.Lock()
	b.over = true
	b.timer.Stop()
	b.mu.Unlock()
	if b.share != nil {
		b.share.Free()
	}
}

// Stored allows a request the time that a file needs which is stored while it comes, so that
// it takes no memory.
func Stored(r *http.Request) {
	Upload(r)
	if b, ok := r.Context().Value(knownKey{}).(*knownBody); ok {
		b.share = nil
	}
}

// Whole reads what follows the last part of a form: who sends it is asked again at the end
// of the body, not at that of the part.
func Whole(r *http.Request) error {
	if _, err := io.CopyN(io.Discard, r.Body, maxRest); err != io.EOF {
		return BodyError(err, "Too much follows the last part of the form.")
	}
	return nil
}

// WholePart is the last part of a form, which ends when the body does.
func WholePart(r *http.Request, part io.Reader) io.Reader { return &wholePart{part, r} }

type wholePart struct {
	io.Reader
	r *http.Request
}

// Read reads the part, and at its end what follows.
func (p *wholePart) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err == io.EOF {
		if rest := Whole(p.r); rest != nil {
			return 0, rest
		}
	}
	return n, err
}

// BodyError is why a body could not be read: what it says itself, or Invalid with a message
// for one that cannot be understood.
func BodyError(err error, otherwise string) error {
	var said *loom.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &said):
		return said
	case errors.As(err, &large):
		return TooLarge(large)
	}
	return &loom.Error{Kind: loom.Invalid, Message: otherwise, Err: err}
}
