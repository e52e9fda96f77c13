package httpx

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"loom/app/loom"
	"loom/app/places"
)

// What one process does at once. More is answered by 429 with Retry-After.
const (
	// maxRequests are in flight, open event streams apart.
	maxRequests = 1000
	// maxRequestsEach are in flight for one user or token or, where nobody is known,
	// for one address.
	maxRequestsEach = 200
	// maxRequestsOfSession of these are of one session or token: one that somebody stole
	// leaves places to the others.
	maxRequestsOfSession = 150
	// maxStrangers are in flight of all who are not known, maxFiles for static files: the
	// rest is for those who are known.
	maxStrangers = 500
	maxFiles     = 300
	// maxArriving are in flight from one address before it is known for whom. All addresses
	// together have no limit of their own: it would keep out those who are about to be known,
	// and what nobody claimed waits for no network.
	maxArriving = 200
	// maxStreams are open; maxStreamsEach of them for one session or token, maxStreamsOfUser
	// for all sessions of a user, and for all of his tokens.
	maxStreams       = 4000
	maxStreamsOfUser = 400
	maxStreamsEach   = 20
)

const (
	// requestRetry and streamRetry are when a refused client may come back.
	requestRetry = 5 * time.Second
	streamRetry  = 30 * time.Second
)

// Caller is for whom a request counts.
type Caller struct {
	// User is whose requests in flight are counted together, Session whose streams.
	User, Session string
	// Tenant is who has the memory that answers take.
	Tenant loom.TenantID
}

// SessionCaller is somebody who signed in.
func SessionCaller(actor loom.Actor, session loom.Session) Caller {
	return Caller{accountKey("user", actor), "session " + session.ID, actor.Tenant}
}

// TokenCaller is who sends a token: all tokens of its owner are counted together, apart
// from his sessions; streams each by itself.
func TokenCaller(actor loom.Actor) Caller {
	owner := actor
	if actor.By != (loom.Account{}) {
		owner.Tenant, owner.User = actor.By.Tenant, actor.By.User
	}
	return Caller{accountKey("tokens", owner), "token " + strconv.FormatInt(actor.Token, 10), owner.Tenant}
}

// HeaderCaller is who is named by the headers of a trusted network.
func HeaderCaller(actor loom.Actor) Caller {
	key := accountKey("headers", actor)
	return Caller{key, key, actor.Tenant}
}

func accountKey(kind string, actor loom.Actor) string {
	return fmt.Sprintf("%s %s %s", kind, actor.Tenant, actor.User)
}

// Callers who are not known count together too, by these beginnings of their keys.
const (
	strangers = "address "
	files     = "files "
)

// AddressCaller is who asks without saying who he is.
func AddressCaller(r *http.Request) Caller {
	key := strangers + loom.PlaceOf(Address(r))
	return Caller{User: key, Session: key}
}

// FileCaller is who reads a static file or a document. He counts apart from AddressCaller,
// so that slow readers keep nobody from signing in.
func FileCaller(r *http.Request) Caller {
	key := files + loom.PlaceOf(Address(r))
	return Caller{User: key, Session: key}
}

// group returns under what a caller counts together with others, and how many requests these
// may have; "" for a caller who is known.
func (c Caller) group() (key string, most int) {
	switch {
	case strings.HasPrefix(c.User, strangers):
		return strangers, maxStrangers
	case strings.HasPrefix(c.User, files):
		return files, maxFiles
	}
	return "", 0
}

// arrivingCaller is for whom a request counts until it is claimed. It is apart from
// AddressCaller: behind a proxy that nobody named all share an address, and strangers who
// fill it must not keep out those who are about to be known.
func arrivingCaller(r *http.Request) Caller {
	key := "arriving " + loom.PlaceOf(Address(r))
	return Caller{User: key, Session: key}
}

// inSession reports whether the caller is one of several of a user.
func (c Caller) inSession() bool { return c.Session != c.User }

// limits counts what a process does at once.
type limits struct {
	mu                sync.Mutex
	requests, streams int
	// of and userStreams count for users, streamsOf for sessions.
	of, userStreams, streamsOf map[string]int
	// turns are those of strangers.
	turns turns
}

// place is what one request takes of the limits.
type place struct {
	limits *limits
	caller Caller
	// claimed says that the request counts for whom it was claimed, not for where it came
	// from; stream that it is an open stream and no request in flight any more.
	claimed, stream bool
	// left says that nothing counts now.
	left bool
	// room gives back what the request holds of the memory for answers.
	room func()
}

type placeKey struct{}

// limited counts the requests in flight, each for its address until it is claimed.
// Probes are always answered: a busy process is alive.
func limited(render ErrorRenderer, next http.Handler) http.Handler {
	l := &limits{of: map[string]int{}, streamsOf: map[string]int{}, userStreams: map[string]int{}}
	room, transactions := places.NewRoom(), &places.Transactions{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		p := &place{limits: l, caller: arrivingCaller(r)}
		if err := l.enter(p); err != nil {
			setRetryAfter(w, err)
			render(w, r, err)
			return
		}
		answer := &unclaimedAnswer{heldAnswer: heldAnswer{ResponseWriter: w}, place: p}
		func() {
			defer p.leave()
			ctx, free := room.With(context.WithValue(r.Context(), placeKey{}, p))
			defer free()
			p.room = free
			next.ServeHTTP(answer, r.WithContext(transactions.With(ctx)))
		}()
		answer.send() //nolint:errcheck // the client is gone
	})
}

// unclaimedAnswer holds what is answered to a request that nobody claimed, which is short,
// until the request has left its place: no client keeps one by taking nothing.
type unclaimedAnswer struct {
	heldAnswer
	place *place
}

func (u *unclaimedAnswer) holds() bool { return u.status != 0 || !u.place.claimed }

// WriteHeader passes on or notes the status.
func (u *unclaimedAnswer) WriteHeader(status int) {
	if u.holds() {
		u.heldAnswer.WriteHeader(status)
		return
	}
	u.ResponseWriter.WriteHeader(status)
}

// Write passes on or holds a piece of the answer.
func (u *unclaimedAnswer) Write(p []byte) (int, error) {
	if u.holds() {
		return u.heldAnswer.Write(p)
	}
	return u.ResponseWriter.Write(p)
}

// Flush sends the bytes passed on so far; compression asks for it by this name.
func (u *unclaimedAnswer) Flush() {
	if !u.holds() {
		http.NewResponseController(u.ResponseWriter).Flush() //nolint:errcheck // the next write tells
	}
}

// Unwrap lets http.ResponseController reach the real writer.
func (u *unclaimedAnswer) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func (l *limits) enter(p *place) *loom.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests >= maxRequests {
		return tooMany(requestRetry, "Loom is answering %d requests at this moment, the most that this process takes at once.", maxRequests)
	}
	if l.of[p.caller.User] >= maxArriving {
		return tooMany(requestRetry, "%d requests of your address are waiting at this moment, the most that are taken at once.", maxArriving)
	}
	l.requests++
	l.of[p.caller.User]++
	return nil
}

// Claim counts a request for its caller until it is answered. Throttled when he has too
// many in flight. A request counts once, for whom it was claimed first.
func Claim(r *http.Request, caller Caller) error {
	p, ok := r.Context().Value(placeKey{}).(*place)
	if !ok {
		return nil // a request that came through no Chain
	}
	l := p.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.claimed {
		return nil
	}
	if l.of[caller.User] >= maxRequestsEach {
		return tooMany(requestRetry, "%d of your requests are being answered at this moment, the most that are taken at once. Wait for their answers.", maxRequestsEach)
	}
	if caller.inSession() && l.of[caller.Session] >= maxRequestsOfSession {
		return tooMany(requestRetry, "%d requests of this session or token are being answered at this moment, the most that are taken at once. Wait for their answers.", maxRequestsOfSession)
	}
	group, most := caller.group()
	if group != "" {
		if l.of[group] >= most {
			return tooMany(requestRetry, "%d requests of those who are not signed in are being answered at this moment, the most that are taken at once.", most)
		}
		l.of[group]++
	}
	take(l.of, p.caller.User)
	l.of[caller.User]++
	if caller.inSession() {
		l.of[caller.Session]++
	}
	p.claimed, p.caller = true, caller
	if a, ok := r.Context().Value(askedKey{}).(*asked); ok {
		a.known = group == ""
	}
	places.For(r.Context(), caller.Tenant)
	return nil
}

// becomeStream counts a request as an open stream from now on. Throttled when there are
// too many.
func becomeStream(r *http.Request) error {
	p, ok := r.Context().Value(placeKey{}).(*place)
	if !ok {
		return nil
	}
	p.room() // a stream lasts, what was read for it does not
	l := p.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case p.stream:
		return nil
	case l.streamsOf[p.caller.Session] >= maxStreamsEach:
		return tooMany(streamRetry, "%d event streams are open for this session or token, the most there are. Close one, or ask for the resource itself every few seconds.", maxStreamsEach)
	case l.userStreams[p.caller.User] >= maxStreamsOfUser:
		return tooMany(streamRetry, "%d event streams are open for your sessions or tokens, the most there are. Close one, or ask for the resource itself every few seconds.", maxStreamsOfUser)
	case l.streams >= maxStreams:
		return tooMany(streamRetry, "%d event streams are open, the most that this process has. Ask for the resource itself every few seconds.", maxStreams)
	}
	l.release(p)
	l.streams++
	l.streamsOf[p.caller.Session]++
	l.userStreams[p.caller.User]++
	p.stream = true
	return nil
}

func (p *place) leave() {
	l := p.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	if !p.stream {
		l.release(p)
		return
	}
	l.streams--
	take(l.streamsOf, p.caller.Session)
	take(l.userStreams, p.caller.User)
}

// release takes a request out of those in flight.
func (l *limits) release(p *place) {
	l.requests--
	take(l.of, p.caller.User)
	if p.caller.inSession() {
		take(l.of, p.caller.Session)
	}
	if group, _ := p.caller.group(); group != "" {
		take(l.of, group)
	}
}

// take counts down and forgets who has nothing any more.
func take(counts map[string]int, key string) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

func tooMany(retry time.Duration, format string, args ...any) *loom.Error {
	e := loom.NewError(loom.Throttled, format, args...)
	e.RetryAfter = retry
	return e
}

func setRetryAfter(w http.ResponseWriter, e *loom.Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds()+0.999)))
		w.Header().Set("Connection", "close") // what else waits there would be refused as well
	}
}
