package httpx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"loom/app/loom"
)

// serve answers and sends the answer.
func serve(t *turns, w http.ResponseWriter, r *http.Request, browser string, next http.Handler) error {
	held, err := t.serve(w, r, browser, next)
	if err != nil {
		return err
	}
	return held.send()
}

// TestTurnsGoByNetworks: many addresses of one network have no more turns than one, and
// browsers that signed in before have every second, each of them in its turn.
func TestTurnsGoByNetworks(t *testing.T) {
	t.Parallel()
	var l line
	turn := map[chan struct{}]string{}
	add := func(name string, path ...string) {
		c := make(chan struct{})
		turn[c] = name
		l.add(path, c)
	}
	stranger := func(address string) { add(address, "strangers", loom.NetworkOf(address), loom.PlaceOf(address)) }
	for i := range 5 {
		for range 2 {
			stranger(fmt.Sprintf("2001:db8:1:%x::1", i))
		}
	}
	stranger("2001:db8:2::1")
	stranger("192.0.2.1")
	for range 3 {
		add("ana", "browsers", "ana")
	}
	add("ben", "browsers", "ben")
	var order []string
	for !l.empty() {
		order = append(order, turn[l.next()])
	}
	want := "2001:db8:1:0::1 ana 2001:db8:2::1 ben 192.0.2.1 ana 2001:db8:1:1::1 ana 2001:db8:1:2::1 2001:db8:1:3::1 2001:db8:1:4::1 " +
		"2001:db8:1:0::1 2001:db8:1:1::1 2001:db8:1:2::1 2001:db8:1:3::1 2001:db8:1:4::1"
	if got := strings.Join(order, " "); got != want || len(l.of) != 0 || len(l.order) != 0 {
		t.Errorf("%s, left %+v", got, l)
	}
}

// TestStrangersTakeTurns: few are worked on at once, each address in its turn, and none of
// this depends on what clients send or take slowly.
func TestStrangersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := &turns{most: 2}
		var mu sync.Mutex
		var order []string
		at, most := 0, 0
		leave := make(chan struct{})
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			at++
			most = max(most, at)
			order = append(order, Address(r))
			mu.Unlock()
			<-leave
			mu.Lock()
			at--
			mu.Unlock()
			io.WriteString(w, "done") //nolint:errcheck // a recorder
		})
		var away sync.WaitGroup
		ask := func(ctx context.Context, address string, want error) {
			away.Go(func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
				r.RemoteAddr = address + ":7"
				w := httptest.NewRecorder()
				if err := serve(turns, w, r, "", h); !errors.Is(err, want) || want == nil && w.Body.String() != "done" {
					t.Errorf("%s: %v, %q", address, err, w.Body)
				}
			})
			synctest.Wait()
		}
		for range 6 {
			ask(t.Context(), "192.0.2.1", nil)
		}
		gone, goAway := context.WithCancel(t.Context())
		ask(gone, "192.0.2.3", context.Canceled)
		ask(t.Context(), "192.0.2.2", nil)
		goAway()
		synctest.Wait()
		for range 7 {
			leave <- struct{}{}
			synctest.Wait()
		}
		away.Wait()
		want := "192.0.2.1 192.0.2.1 192.0.2.1 192.0.2.2 192.0.2.1 192.0.2.1 192.0.2.1"
		if got := strings.Join(order, " "); got != want || most != 2 {
			t.Errorf("%d at once, in the order %s", most, got)
		}
		if turns.busy != 0 || !turns.waiting.empty() || len(turns.waiting.of) != 0 {
			t.Errorf("left: %+v", turns)
		}

		// Those who wait for too long are told to come back.
		ask(t.Context(), "192.0.2.1", nil)
		ask(t.Context(), "192.0.2.1", nil)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if err := serve(turns, httptest.NewRecorder(), r, "", h); loom.AsError(err).Kind != loom.Throttled || loom.AsError(err).RetryAfter == 0 {
			t.Errorf("who waited for too long: %v", err)
		}
		close(leave)
		away.Wait()
		if turns.busy != 0 || !turns.waiting.empty() || len(turns.waiting.of) != 0 {
			t.Errorf("left: %+v", turns)
		}
	})
}

// TestTurnsAreGivenBack also after panics; bodies arrive with their errors, answers with
// status and headers.
func TestTurnsAreGivenBack(t *testing.T) {
	t.Parallel()
	turns := &turns{most: 1}
	for range 3 {
		func() {
			defer func() { recover() }()                                                                                                                                          //nolint:errcheck // it is ours
			serve(turns, httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), "", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oops") })) //nolint:errcheck // it panics
		}()
	}
	for sent, want := range map[string]string{"short": "short <nil>", strings.Repeat("x", maxOpenBody+1): strings.Repeat("x", maxOpenBody) + " http: request body too large"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(sent))
		LimitOpenBody(w, r)
		err := serve(turns, w, r, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			w.Header().Set("Said", "yes")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, string(body), " ", err) //nolint:errcheck // memory
		}))
		if err != nil || w.Code != http.StatusTeapot || w.Header().Get("Said") != "yes" || w.Body.String() != want {
			t.Errorf("%.20q: %v, %d %v, %d bytes", sent, err, w.Code, w.Header(), w.Body.Len())
		}
	}
}
