package httpx

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

// slowServer answers with deadlines of its own: what the handler read, and its error.
func slowServer(t *testing.T, body, answer patience, handler func(w http.ResponseWriter, r *http.Request)) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(deadlines(body, answer, http.HandlerFunc(handler)))
	t.Cleanup(server.Close)
	return server
}

func dial(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // a test that hangs fails
	return c
}

// trickle sends a byte of a body each 10 ms until nobody takes them.
func trickle(c net.Conn) {
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		if _, err := c.Write([]byte("x")); err != nil {
			return
		}
	}
}

// TestSlowBodiesEnd: a client that sends slowly is told so and cut off, whether the
// handler reads its body or not.
func TestSlowBodiesEnd(t *testing.T) {
	t.Parallel()
	for name, reads := range map[string]bool{"read": true, "not read": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			server := slowServer(t, patience{200 * time.Millisecond, 1 << 20}, answerPatience, Wrap(slog.New(slog.NewTextHandler(&log, nil)), WriteProblem, func(_ http.ResponseWriter, r *http.Request) error {
				if !reads {
					return loom.NewError(loom.Conflict, "no")
				}
				_, err := io.ReadAll(r.Body)
				return fmt.Errorf("upload it: %w", err)
			}).ServeHTTP)
			c := dial(t, server)
			fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: loom\r\nContent-Length: 100000\r\n\r\n") //nolint:errcheck // the answer tells
			go trickle(c)
			text, err := io.ReadAll(c)
			if err != nil && os.IsTimeout(err) {
				t.Error("the connection stays open")
			}
			if says := map[bool]string{true: "400 Bad Request", false: "409 Conflict"}[reads]; err == nil && !strings.Contains(string(text), says) {
				t.Errorf("answered %q", text)
			}
			server.Close()
			if log.Len() > 0 {
				t.Errorf("logged %q", log.String())
			}
		})
	}
}

// TestSteadyBodiesPass: what comes at the pace may take longer than the first time, and
// once it is there the handler may take as long as it likes.
func TestSteadyBodiesPass(t *testing.T) {
	t.Parallel()
	const base = 300 * time.Millisecond
	server := slowServer(t, patience{base, 10}, answerPatience, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("after %d bytes: %v", len(body), err)
			return
		}
		select { // longer than the deadline of the short body would have been
		case <-r.Context().Done():
			t.Errorf("the request was cancelled while it was being answered: %v", r.Context().Err())
		case <-time.After(4 * base):
		}
		fmt.Fprint(w, len(body)) //nolint:errcheck // the client tells
	})
	read, write := io.Pipe()
	go func() {
		for range 20 { // at 10 bytes a second they would have minutes
			<-time.After(base / 10)
			write.Write(bytes.Repeat([]byte("x"), 50)) //nolint:errcheck // the answer tells
		}
		write.Close()
	}()
	for _, body := range []io.Reader{read, strings.NewReader("short")} { // both over one connection
		answer, err := server.Client().Post(server.URL, "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || string(text) != "1000" && string(text) != "5" {
			t.Errorf("%s %q %v", answer.Status, text, err)
		}
	}
}

// TestOpenBodiesComeSoon: who is not known has less time, however much others have.
func TestOpenBodiesComeSoon(t *testing.T) {
	t.Parallel()
	if openPatience.of(maxOpenBody) > 6*time.Second || openPatience.of(0) >= bodyPatience.of(0) {
		t.Errorf("a form has %s", openPatience.of(maxOpenBody))
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a=b"))
	b := &timedBody{rc: http.NewResponseController(httptest.NewRecorder()), patience: bodyPatience}
	LimitOpenBody(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), bodyKey{}, b)))
	if b.patience != openPatience {
		t.Errorf("the body has %v", b.patience)
	}
}

// TestUploadsHaveTheirOwnTime: a file is not held to the pace of other bodies.
func TestUploadsHaveTheirOwnTime(t *testing.T) {
	t.Parallel()
	const base = 100 * time.Millisecond
	server := slowServer(t, patience{base, 1 << 20}, answerPatience, func(w http.ResponseWriter, r *http.Request) {
		Upload(r)
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, n) //nolint:errcheck // the client tells
	})
	c := dial(t, server)
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: loom\r\nConnection: close\r\nContent-Length: 5\r\n\r\n") //nolint:errcheck // the answer tells
	for range 5 {
		<-time.After(base)
		c.Write([]byte("x")) //nolint:errcheck // same
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "5" {
		t.Errorf("%q %v", text, err)
	}
}

// TestAnswersMustBeTaken: a client that reads nothing does not hold its request for ever.
func TestAnswersMustBeTaken(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	server := slowServer(t, bodyPatience, patience{200 * time.Millisecond, 1 << 20}, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				ended <- err
				return
			}
		}
	})
	c := dial(t, server)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: loom\r\n\r\n") //nolint:errcheck // nobody reads
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the answer is still being written")
	}
}

// TestLongAnswersMustBeTaken: an answer that is written at once has no longer for each of
// its pieces than one that is written piece by piece.
func TestLongAnswersMustBeTaken(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	// As a whole it would have a quarter of an hour.
	server := slowServer(t, bodyPatience, patience{200 * time.Millisecond, 64 << 10}, func(w http.ResponseWriter, _ *http.Request) {
		n, err := w.Write(make([]byte, 64<<20))
		if n == 0 || n >= 64<<20 {
			t.Errorf("%d bytes were written", n)
		}
		ended <- err
	})
	c := dial(t, server)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: loom\r\n\r\n") //nolint:errcheck // nobody reads
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the answer is still being written")
	}
}

// TestServerHasLimits of its own, before there is a request.
func TestServerHasLimits(t *testing.T) {
	t.Parallel()
	s := NewServer(http.NotFoundHandler())
	if s.ReadHeaderTimeout <= 0 || s.IdleTimeout <= 0 {
		t.Errorf("no time for headers (%s) or for rest (%s)", s.ReadHeaderTimeout, s.IdleTimeout)
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = s
	server.Start()
	t.Cleanup(server.Close)
	for size, want := range map[int]int{32 << 10: http.StatusNotFound, 128 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Long", strings.Repeat("x", size))
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("headers of %d KiB: %s", size>>10, answer.Status)
		}
	}
}
