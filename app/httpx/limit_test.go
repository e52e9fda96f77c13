package httpx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"loom/app/loom"
)

// crowd is a server whose requests wait until they are let go.
type crowd struct {
	t      *testing.T
	server *httptest.Server
	leave  chan struct{}
	inside chan struct{}
	away   sync.WaitGroup
}

// newCrowd makes it. The header Who names the caller, Session his session; none claims
// nothing. The path /stream is an event stream.
func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{t: t, leave: make(chan struct{}), inside: make(chan struct{}, 2*maxStreams)}
	log := slog.New(slog.DiscardHandler)
	handler := Wrap(log, WriteProblem, func(w http.ResponseWriter, r *http.Request) error {
		if who := r.Header.Get("Who"); who != "" {
			if err := Claim(r, Caller{User: who, Session: who + r.Header.Get("Session")}); err != nil {
				return err
			}
		}
		if r.URL.Path == "/stream" {
			if _, err := NewStream(w, r); err != nil {
				return err
			}
		}
		c.inside <- struct{}{}
		select {
		case <-c.leave:
		case <-r.Context().Done():
		}
		return nil
	})
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ready") }) //nolint:errcheck // as it goes
	c.server = httptest.NewServer(Chain(log, false, http.NewCrossOriginProtection(), WriteProblem, mux))
	t.Cleanup(c.server.Close)
	return c
}

// empty waits until nobody is inside; who comes later goes at once.
func (c *crowd) empty() {
	select {
	case <-c.leave:
	default:
		close(c.leave)
	}
	c.away.Wait()
}

func (c *crowd) ask(path, who, session string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.server.URL+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Who", who)
	r.Header.Set("Session", session)
	answer, err := c.server.Client().Do(r)
	if err != nil {
		c.t.Error(err)
		return &http.Response{Body: http.NoBody}
	}
	return answer
}

// enter lets n requests in and waits until all are there.
func (c *crowd) enter(n int, path string, who func(i int) (user, session string)) {
	c.t.Helper()
	for i := range n {
		user, session := who(i)
		c.away.Go(func() {
			answer := c.ask(path, user, session)
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				c.t.Errorf("%s for %s: %s", path, user, answer.Status)
			}
			io.Copy(io.Discard, answer.Body) //nolint:errcheck // it ends with the test
		})
	}
	for range n {
		<-c.inside
	}
}

// refused asks once more, which must be refused with a problem that says when to come back.
func (c *crowd) refused(path, who, session, want string) {
	c.t.Helper()
	answer := c.ask(path, who, session)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	seconds, convErr := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil || answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Content-Type") != "application/problem+json" ||
		convErr != nil || seconds < 1 || !strings.Contains(string(body), want) {
		c.t.Errorf("%s for %q: %s, Retry-After %q, %s", path, who, answer.Status, answer.Header.Get("Retry-After"), body)
	}
}

func always(user, session string) func(int) (string, string) {
	return func(int) (string, string) { return user, session }
}

// TestRequestsInFlight: a caller has so many, the others go on; what was answered makes
// room.
func TestRequestsInFlight(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	c.enter(maxRequestsEach, "/", func(i int) (string, string) { return "ana", strconv.Itoa(i % 3) })
	c.refused("/", "ana", "9", "200 of your requests")
	c.enter(1, "/", always("ben", ""))
	c.enter(1, "/stream", always("cleo", ""))
	c.empty()
	c.enter(1, "/", always("ana", ""))
	c.empty()
}

// TestRequestsOfASession: the requests of one session or token are limited; others of its user pass.
func TestRequestsOfASession(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	c.enter(maxRequestsOfSession, "/", always("ana", "1"))
	c.refused("/", "ana", "1", "150 requests of this session or token")
	c.enter(maxRequestsEach-maxRequestsOfSession, "/", always("ana", "2"))
	c.refused("/", "ana", "3", "200 of your requests")
	c.empty()
	c.enter(maxRequestsOfSession, "/", always("ana", "1"))
	c.empty()
}

// TestRequestsOfAProcess: whoever sends them, there are only so many at once, and probes
// are answered all the same.
func TestRequestsOfAProcess(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	c.enter(maxRequests, "/", func(i int) (string, string) { return fmt.Sprint("user", i%10), "" })
	c.refused("/", "somebody else", "", "1000 requests")
	c.refused("/", "", "", "1000 requests")
	answer := c.ask("/readyz", "", "")
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the probe: %s", answer.Status)
	}
	c.empty()
}

// TestStreamsOfASession: twenty for a session, as many for another one of the same user.
// They are no requests in flight, and those that end make room.
func TestStreamsOfASession(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	for session := range 2 + maxRequestsEach/maxStreamsEach { // more than requests may be in flight
		c.enter(maxStreamsEach, "/stream", always("ana", strconv.Itoa(session)))
	}
	c.refused("/stream", "ana", "0", "20 event streams are open for this session or token")
	c.enter(1, "/", always("ana", "0"))
	c.empty()
	c.enter(maxStreamsEach, "/stream", always("ana", "0"))
	c.empty()
}

// TestOneAddressTakesOnlySoMuch: who is not known counts for the address, from the start,
// and keeps nobody else out: neither who is known nor another address.
func TestOneAddressTakesOnlySoMuch(t *testing.T) {
	t.Parallel()
	for name, claim := range map[string]bool{"nothing is claimed": false, "open routes": true} {
		inside, leave := make(chan struct{}), make(chan struct{})
		h := BehindProxies([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, limited(WriteProblem, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			caller := AddressCaller(r)
			if who := r.Header.Get("Who"); who != "" {
				caller = Caller{User: who, Session: who}
			}
			if claim || r.Header.Get("Who") != "" {
				if err := Claim(r, caller); err != nil {
					WriteProblem(w, r, loom.AsError(err))
					return
				}
			}
			inside <- struct{}{}
			<-leave
		})))
		var away sync.WaitGroup
		ask := func(address, who string) int {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = net.JoinHostPort(address, "5")
			if forwarded, ok := strings.CutPrefix(address, "10.0.0.1 for "); ok {
				r.RemoteAddr = "10.0.0.1:5"
				r.Header.Set("X-Forwarded-For", forwarded)
			}
			r.Header.Set("Who", who)
			answer, done := httptest.NewRecorder(), make(chan struct{})
			away.Go(func() { h.ServeHTTP(answer, r); close(done) })
			select {
			case <-inside:
				return http.StatusOK
			case <-done:
				return answer.Code
			}
		}
		full := []string{"192.0.2.1", "2001:db8::%x", "10.0.0.1 for 198.51.100.7"}
		if claim {
			full = full[:maxStrangers/maxRequestsEach] // more do not fit in together
		}
		for _, address := range full {
			for i := range maxRequestsEach {
				at := strings.Replace(address, "%x", strconv.FormatInt(int64(i+1), 16), 1)
				if status := ask(at, ""); status != http.StatusOK {
					t.Fatalf("%s: request %d of %s: %d", name, i, at, status)
				}
			}
			if status := ask(strings.Replace(address, "%x", "ffff", 1), ""); status != http.StatusTooManyRequests {
				t.Errorf("%s: one more of %s: %d", name, address, status)
			}
		}
		for _, address := range []string{"192.0.2.2", "2001:db8:0:1::1", "10.0.0.1 for 198.51.100.8"} {
			if status := ask(address, ""); status != http.StatusOK {
				t.Errorf("%s: %s is kept out: %d", name, address, status)
			}
		}
		for i := range maxRequestsEach { // of users who share an address
			if status := ask("192.0.2.3", fmt.Sprint("user", i%2)); status != http.StatusOK {
				t.Fatalf("%s: request %d of users: %d", name, i, status)
			}
		}
		if status := ask("192.0.2.3", ""); status != http.StatusOK {
			t.Errorf("%s: users count for their address: %d", name, status)
		}
		if claim {
			if status := ask("192.0.2.1", "ana"); status != http.StatusOK {
				t.Errorf("%s: strangers of the same address keep a user out: %d", name, status)
			}
		}
		close(leave)
		away.Wait()
	}
}

// TestStrangersTogetherAreBounded: from however many addresses they come, they leave places
// to those who are known, and slow readers of files leave places to those who sign in.
func TestStrangersTogetherAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fill   func(r *http.Request) Caller
		most   int
		others []func(r *http.Request) Caller
	}{
		{AddressCaller, maxStrangers, []func(r *http.Request) Caller{FileCaller, knownCaller}},
		{FileCaller, maxFiles, []func(r *http.Request) Caller{AddressCaller, knownCaller}},
	} {
		l := &limits{of: map[string]int{}, streamsOf: map[string]int{}}
		var inside []*place
		ask := func(i int, who func(r *http.Request) Caller) error {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = fmt.Sprintf("192.0.2.%d:7", i%200)
			p := &place{limits: l, caller: arrivingCaller(r)}
			if err := l.enter(p); err != nil {
				return err
			}
			inside = append(inside, p)
			return Claim(r.WithContext(context.WithValue(r.Context(), placeKey{}, p)), who(r))
		}
		for i := range c.most {
			if err := ask(i, c.fill); err != nil {
				t.Fatal(i, err)
			}
		}
		if err := ask(c.most, c.fill); loom.AsError(err).Kind != loom.Throttled {
			t.Errorf("one too many: %v", err)
		}
		for _, other := range c.others {
			if err := ask(7, other); err != nil {
				t.Errorf("others are kept out: %v", err)
			}
		}
		for _, p := range inside {
			p.leave()
		}
		if l.requests != 0 || len(l.of) != 0 {
			t.Errorf("left: %+v", l)
		}
	}
}

func knownCaller(*http.Request) Caller { return Caller{User: "user ana", Session: "session 1"} }

// TestPlacesAreGivenBack also after panics, and nothing is kept of who is gone.
func TestPlacesAreGivenBack(t *testing.T) {
	t.Parallel()
	var l *limits
	h := recovery(slog.New(slog.DiscardHandler), WriteProblem, limited(WriteProblem, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l = r.Context().Value(placeKey{}).(*place).limits
		if err := Claim(r, AddressCaller(r)); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/stream" {
			if err := becomeStream(r); err != nil {
				t.Error(err)
			}
		}
		panic("oops")
	})))
	for range 2 * maxRequests {
		for _, path := range []string{"/", "/stream"} {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		}
	}
	if l.requests != 0 || l.streams != 0 || len(l.of) != 0 || len(l.streamsOf) != 0 {
		t.Errorf("left: %+v", l)
	}
}

// TestLogLinesCannotBeForged: what a request names stands quoted in the log.
func TestLogLinesCannotBeForged(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(w io.Writer) slog.Handler{
		"text": func(w io.Writer) slog.Handler {
			return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
		},
		"json": func(w io.Writer) slog.Handler {
			return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
		},
	} {
		var out bytes.Buffer
		log := slog.New(handler(&out))
		h := Chain(log, false, http.NewCrossOriginProtection(), WriteProblem, Wrap(log, WriteProblem, func(_ http.ResponseWriter, r *http.Request) error {
			return fmt.Errorf("read the user %s", r.URL.Query().Get("user"))
		}))
		const forged = "%0Atime=x%20level=ERROR%20msg=forged%0D%1B%5B2J%C2%9B31m%E2%80%A8"
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/a"+forged+"?user=ana"+forged, nil))
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != 2 { // the error and the request
			t.Errorf("%s: %d lines: %q", name, len(lines), lines)
		}
		for _, line := range lines {
			if strings.HasPrefix(line, "time=x") || strings.ContainsAny(line, "\r\x1b\u2028") || name == "text" && strings.Contains(line, "\u009b") {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}

// TestStreamsOfAUser: many sessions or tokens do not give a user all streams.
func TestStreamsOfAUser(t *testing.T) {
	t.Parallel()
	l := &limits{of: map[string]int{}, streamsOf: map[string]int{}, userStreams: map[string]int{}}
	var open []*place
	stream := func(user, session string) error {
		p := &place{limits: l, caller: Caller{User: user, Session: session}, claimed: true, room: func() {}}
		l.requests, l.of[user] = l.requests+1, l.of[user]+1
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		open = append(open, p)
		return becomeStream(r.WithContext(context.WithValue(r.Context(), placeKey{}, p)))
	}
	for i := range maxStreamsOfUser {
		if err := stream("ana", strconv.Itoa(i)); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
	if err := stream("ana", "new"); !errors.Is(err, loom.Throttled) || !strings.Contains(err.Error(), "Close one") {
		t.Errorf("one more: %v", err)
	}
	if err := stream("ben", "his"); err != nil {
		t.Errorf("another user: %v", err)
	}
	for _, p := range open {
		p.leave()
	}
	if l.requests != 0 || l.streams != 0 || len(l.of)+len(l.streamsOf)+len(l.userStreams) != 0 {
		t.Errorf("left are %+v", l)
	}
}

// TestLongPathsAreLoggedShort: nobody fills the log with what he asks for.
func TestLongPathsAreLoggedShort(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]*http.Request{
		"path":   httptest.NewRequest(http.MethodPost, "/"+strings.Repeat("x", 60_000), nil),
		"method": httptest.NewRequest(strings.Repeat("X", 60_000), "/", nil),
	} {
		for outcome, handler := range map[string]http.Handler{
			"answers": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
			"panics":  http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("no") }),
			"fails": Wrap(slog.New(slog.DiscardHandler), WriteProblem, func(http.ResponseWriter, *http.Request) error {
				return errors.New("no")
			}),
		} {
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
			Chain(log, false, http.NewCrossOriginProtection(), WriteProblem, handler).ServeHTTP(httptest.NewRecorder(), request)
			if !strings.Contains(out.String(), "xxx…") && !strings.Contains(out.String(), "XXX…") || strings.Contains(strings.ToLower(out.String()), strings.Repeat("x", loom.MaxRecorded+1)) {
				t.Errorf("a long %s that %s: %.1000s", name, outcome, out.String())
			}
		}
	}
}

// TestStrangersDoNotFillTheLog: what stands in it of a request is short, and requests for
// what is not there are told for debugging only.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	for path, answer := range map[string]error{
		"missing": loom.NewError(loom.NotFound, "There is no such page."), "wrong": errors.New("oops"), "panics": nil,
	} {
		for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == "stack" {
					return slog.Attr{}
				}
				return a
			}}))
			h := Chain(log, false, http.NewCrossOriginProtection(), WriteProblem, Wrap(log, WriteProblem, func(http.ResponseWriter, *http.Request) error {
				if answer == nil {
					panic("oops")
				}
				return answer
			}))
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/"+path+strings.Repeat("%80", 20_000), nil))
			told := strings.Contains(out.String(), "/"+path)
			if told != (path != "missing" || level == slog.LevelDebug) || out.Len() > 3000 {
				t.Errorf("%s, from %s on: %d bytes: %.300q", path, level, out.Len(), out.String())
			}
		}
	}
}

// TestTokensAndAddressesAreApart: callers are told apart, tokens by their ids: all secrets of
// one count together.
func TestTokensAndAddressesAreApart(t *testing.T) {
	t.Parallel()
	a, b := loom.Actor{Tenant: "t", User: "ana"}, loom.Actor{Tenant: "u", User: "ana"}
	one, two := loom.Session{ID: "1"}, loom.Session{ID: "2"}
	first, second := a, a
	first.Token, second.Token = 1, 2
	if c, d := SessionCaller(a, one), SessionCaller(a, two); c.User != d.User || c.Session == d.Session {
		t.Errorf("two sessions of a user: %v %v", c, d)
	}
	if c, d := SessionCaller(a, one), SessionCaller(b, one); c.User == d.User {
		t.Errorf("users of two tenants: %v %v", c, d)
	}
	if c, d := TokenCaller(first), TokenCaller(second); c.User != d.User || c.Session == d.Session {
		t.Errorf("two tokens: %v %v", c, d)
	}
	if SessionCaller(a, one).User == HeaderCaller(a).User {
		t.Error("headers of a trusted network count as the user's own sessions")
	}
}
