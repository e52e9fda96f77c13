package httpx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loom/app/loom"
	"loom/app/places"
)

var ana = loom.Actor{Tenant: "t", User: "ana", Role: loom.RoleAdmin, Token: 7, Scopes: []loom.Scope{loom.ScopeAdmin}, AccessEpoch: 3}

// TestHeldBackBodiesAreAskedAgain: a handler learns that all of a body came from the same
// actor with the same rights only, however it is sent.
func TestHeldBackBodiesAreAskedAgain(t *testing.T) {
	t.Parallel()
	change := func(f func(*loom.Actor)) loom.Actor {
		now := ana
		f(&now)
		return now
	}
	for name, c := range map[string]struct {
		now    loom.Actor
		err    error
		status int
	}{
		"the same":                 {now: change(func(a *loom.Actor) { a.RequestID, a.Address = "9", "192.0.2.9" }), status: 200},
		"revoked":                  {err: loom.NewError(loom.Unauthenticated, "gone"), status: 401},
		"may act as her no more":   {err: loom.NewError(loom.Forbidden, "no"), status: 401},
		"her tenant is gone":       {err: loom.NewError(loom.NotFound, "no"), status: 401},
		"nobody can tell":          {err: loom.NewError(loom.Unavailable, "the database is away"), status: 500},
		"demoted":                  {now: change(func(a *loom.Actor) { a.Role = loom.RoleUser }), status: 403},
		"acts as another no more":  {now: change(func(a *loom.Actor) { a.User = "ben" }), status: 403},
		"another of the same id":   {now: change(func(a *loom.Actor) { a.AccessEpoch++ }), status: 403},
		"who acts was demoted":     {now: change(func(a *loom.Actor) { a.ByRole = loom.RoleUser }), status: 403},
		"with another token":       {now: change(func(a *loom.Actor) { a.Token++ }), status: 403},
		"with other scopes of one": {now: change(func(a *loom.Actor) { a.Scopes = nil }), status: 403},
	} {
		for _, length := range []string{"Content-Length: 4\r\n\r\na=", "Transfer-Encoding: chunked\r\n\r\n2\r\na=\r\n"} {
			var asked, read atomic.Int32
			half := make(chan struct{})
			server := httptest.NewServer(deadlines(bodyPatience, answerPatience, Wrap(slog.New(slog.DiscardHandler), WriteProblem, func(w http.ResponseWriter, r *http.Request) error {
				return Known(w, r, ana, func() (loom.Actor, error) { asked.Add(1); return c.now, c.err }, func(_ http.ResponseWriter, r *http.Request, _ loom.Actor) error {
					if _, err := io.ReadFull(r.Body, make([]byte, 2)); err != nil {
						return err
					}
					close(half)
					rest, err := io.ReadAll(r.Body)
					read.Store(int32(len(rest)))
					if err != nil {
						return fmt.Errorf("read a form: %w", err)
					}
					return nil
				})
			})))
			conn := dial(t, server)
			fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: loom\r\nConnection: close\r\n"+length) //nolint:errcheck // the answer tells
			<-half
			if asked.Load() != 0 {
				t.Errorf("%s: asked before the end", name)
			}
			rest := "bc"
			if strings.Contains(length, "chunked") {
				rest = "2\r\nbc\r\n0\r\n\r\n"
			}
			fmt.Fprint(conn, rest) //nolint:errcheck // the answer tells
			answer, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(answer), fmt.Sprintf("HTTP/1.1 %d ", c.status)) || asked.Load() != 1 || c.status == 200 && read.Load() != 2 {
				t.Errorf("%s, %q: %v, %d times asked, %d bytes: %.200s", name, length, err, asked.Load(), read.Load(), answer)
			}
			server.Close()
		}
	}
}

// TestEndedAccessEndsItsRequests: a request whose body does not come ends soon after the
// access with which it came, and not because nobody can tell.
func TestEndedAccessEndsItsRequests(t *testing.T) {
	t.Parallel()
	var state, asked atomic.Int32
	again := func() (loom.Actor, error) {
		asked.Add(1)
		switch state.Load() {
		case 0:
			return ana, nil
		case 1:
			return ana, loom.NewError(loom.Unavailable, "the database is away")
		}
		return loom.Actor{}, loom.NewError(loom.Unauthenticated, "revoked")
	}
	server := httptest.NewServer(deadlines(bodyPatience, answerPatience, Wrap(slog.New(slog.DiscardHandler), WriteProblem, func(w http.ResponseWriter, r *http.Request) error {
		return known(time.Millisecond, w, r, ana, again, func(_ http.ResponseWriter, r *http.Request, _ loom.Actor) error {
			Upload(r)
			_, err := io.ReadAll(r.Body)
			return err
		})
	})))
	t.Cleanup(server.Close)
	conn := dial(t, server)
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: loom\r\nContent-Length: 100\r\n\r\n{}") //nolint:errcheck // the answer tells
	for s := range int32(2) {
		state.Store(s)
		for before := asked.Load(); asked.Load() < before+3; {
			time.Sleep(time.Millisecond)
		}
	}
	state.Store(2)
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 401 ") || !strings.Contains(string(answer), "Your access ended") {
		t.Errorf("%v: %s", err, answer)
	}
}

// TestBodiesTakeRoom: bodies that are kept in memory have room, up to the largest one for a
// user, from their first byte on where their length is said; who stores them needs none.
func TestBodiesTakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room := places.NewBodies()
		var sent []*knownBody
		send := func(user loom.UserID, announced, bytes int64, stored bool) error {
			b := &knownBody{ReadCloser: io.NopCloser(io.LimitReader(zeros{}, bytes)), ctx: t.Context(), actor: ana, share: room.Share(loom.Account{Tenant: "t", User: user}), held: announced,
				again: func() (loom.Actor, error) { return ana, nil }}
			b.watch(time.Hour)
			sent = append(sent, b)
			if stored {
				Stored(httptest.NewRequestWithContext(context.WithValue(t.Context(), knownKey{}, b), http.MethodPost, "/", nil))
			}
			_, err := io.Copy(io.Discard, struct{ io.Reader }{b})
			return err
		}
		full := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, loom.Throttled) || loom.AsError(err).RetryAfter == 0 {
				t.Errorf("%s: %v", what, err)
			}
		}
		const large = 20 << 20
		for what, err := range map[string]error{
			"the first": send("ana", large, 2, false), "a small one": send("ana", 100, 100, false), "a stored one": send("ana", -1, 4*large, true),
			"another user": send("ben", large, large, false), "an unknown length, small": send("ana", -1, 20<<10, false),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		full("a second large one", send("ana", large, 2, false))
		full("one that grows", send("ana", -1, large, false))
		full("a third user of the tenant", send("cleo", large, large, false))
		for _, b := range sent {
			b.done()
		}
		sent = nil
		if err := send("ana", 10*large, large, false); err != nil {
			t.Errorf("the largest alone: %v", err)
		}
		for _, b := range sent {
			b.done()
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestFormsEndWithTheirBody: the last part of a form ends when its body does, so that nobody
// keeps the end back.
func TestFormsEndWithTheirBody(t *testing.T) {
	t.Parallel()
	const form = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nhello\r\n--x--\r\n"
	for name, c := range map[string]struct {
		rest  string
		ended bool
		want  string
	}{
		"all":            {want: ""},
		"ended":          {ended: true, want: "Your access ended"},
		"ended, further": {rest: strings.Repeat("\n", 8<<10), ended: true, want: "Your access ended"},
		"too much":       {rest: strings.Repeat("x", 100<<10), want: "Too much follows"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", struct{ io.Reader }{strings.NewReader(form + c.rest)})
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		var told string
		err := Known(httptest.NewRecorder(), r, ana, func() (loom.Actor, error) {
			if c.ended {
				return loom.Actor{}, loom.NewError(loom.Unauthenticated, "gone")
			}
			return ana, nil
		}, func(_ http.ResponseWriter, r *http.Request, _ loom.Actor) error {
			var form *multipart.Reader
			var part *multipart.Part
			form, err := r.MultipartReader()
			if err == nil {
				part, err = form.NextPart()
			}
			if err != nil {
				return BodyError(err, "no form")
			}
			text, err := io.ReadAll(WholePart(r, part))
			if err == nil {
				told = string(text)
			}
			return err
		})
		if (err == nil) != (c.want == "") || err == nil && told != "hello" || err != nil && (told != "" || !strings.Contains(loom.AsError(err).Message, c.want)) {
			t.Errorf("%s: %v, read %q", name, err, told)
		}
	}
}
