package httpx

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"loom/app/loom"
)

// patience is how long a client may take to send or to accept something: a time, and one
// second more for so many bytes.
type patience struct {
	time  time.Duration
	bytes int64
}

func (p patience) of(bytes int64) time.Duration {
	return p.time + time.Duration(float64(bytes)/float64(p.bytes)*float64(time.Second))
}

var (
	// bodyPatience is for the body of a request, openPatience for one that anybody may send,
	// uploadPatience for one that is a file.
	bodyPatience   = patience{30 * time.Second, 64 << 10}
	openPatience   = patience{5 * time.Second, 64 << 10}
	uploadPatience = patience{10 * time.Minute, 16 << 10}
	// answerPatience is for accepting each piece of an answer.
	answerPatience = patience{time.Minute, 64 << 10}
)

// NewServer makes a server that no client can hold for longer than it is worth: headers
// have a time and a size, connections that rest are closed. Bodies and answers have
// their deadlines by Chain.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
}

type bodyKey struct{}

// deadlines bounds the time in which a body must come and each piece of an answer must
// be accepted. Handlers may take as long as they need.
func deadlines(body, answer patience, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &timedWriter{ResponseWriter: w, rc: http.NewResponseController(w), patience: answer}
		// What an earlier answer on this connection left.
		t.rc.SetWriteDeadline(time.Time{}) //nolint:errcheck // not supported: a writer of a test
		if r.Body != nil && r.Body != http.NoBody {
			b := &timedBody{ReadCloser: r.Body, rc: t.rc, patience: body, begun: time.Now(), asks: r.Header.Get("Expect") != ""}
			b.extend()
			t.body = b
			r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b))
			r.Body = b
		}
		next.ServeHTTP(t, r)
		t.extend(answer.bytes) // for what the server still holds
	})
}

// timedBody is a body that must come at some pace.
type timedBody struct {
	io.ReadCloser
	rc       *http.ResponseController
	patience patience
	begun    time.Time
	read     int64
	// ended says that all of it was read, late that it did not come in time.
	ended, late bool
	// asks says that the client waits to be told to send it.
	asks bool
}

// Read reads on, and gives more time for what came.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err == nil { // at the end the server lifts the deadline: it reads on, to see whether the client is there
		b.extend()
	}
	b.ended = b.ended || err == io.EOF
	b.late = b.late || errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}

func (b *timedBody) extend() {
	b.rc.SetReadDeadline(b.begun.Add(b.patience.of(b.read))) //nolint:errcheck // not supported: a writer of a test
}

const (
	// restPatience is how long the rest of a body may take that nobody wants, maxUnwanted how
	// much of it is read.
	restPatience = 100 * time.Millisecond
	maxUnwanted  = 256 << 10
)

// rest reads what nobody wants and has come, and reports whether that was all.
func (b *timedBody) rest() bool {
	if b.ended || b.late || b.asks && b.read == 0 {
		return b.ended
	}
	b.rc.SetReadDeadline(time.Now().Add(restPatience)) //nolint:errcheck // as below
	_, err := io.CopyN(io.Discard, b.ReadCloser, maxUnwanted)
	if b.ended = err == io.EOF; !b.ended {
		b.extend()
	}
	return b.ended
}

// Upload allows a request the time that a file needs.
func Upload(r *http.Request) {
	if b, ok := r.Context().Value(bodyKey{}).(*timedBody); ok {
		b.patience = uploadPatience
		b.extend()
	}
}

// tooSlow returns the error for a request whose body did not come in time, nil for another.
func tooSlow(r *http.Request) error {
	if b, ok := r.Context().Value(bodyKey{}).(*timedBody); !ok || !b.late {
		return nil
	}
	return loom.NewError(loom.Invalid, "The body came too slowly. Send it again over a better connection, or in smaller requests.")
}

// timedWriter is an answer that must be accepted at some pace.
type timedWriter struct {
	http.ResponseWriter
	rc       *http.ResponseController
	patience patience
	body     *timedBody // nil for none
	begun    bool
}

// begin comes before the answer. To use a connection again, the server would wait for the
// rest of the body before it sends a long answer, and the request would hold its place: where
// the body has not come, the connection is closed instead.
func (t *timedWriter) begin() {
	if !t.begun && t.body != nil && !t.body.rest() {
		t.Header().Set("Connection", "close")
	}
	t.begun = true
}

// WriteHeader begins the answer.
func (t *timedWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		t.begin()
	}
	t.ResponseWriter.WriteHeader(status)
}

// FlushError sends the bytes written so far.
func (t *timedWriter) FlushError() error {
	t.begin()
	return t.rc.Flush()
}

// maxPiece is how much of an answer is one piece: a client that takes nothing is known by
// that soon, however long the answer is.
const maxPiece = 64 << 10

// Write writes piece by piece, each within its time.
func (t *timedWriter) Write(p []byte) (int, error) {
	t.begin()
	written := 0
	for {
		piece := p[written:min(written+maxPiece, len(p))]
		t.extend(int64(len(piece)))
		n, err := t.ResponseWriter.Write(piece)
		if written += n; err != nil || written >= len(p) {
			return written, err
		}
	}
}

// Unwrap lets http.ResponseController reach the real writer.
func (t *timedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *timedWriter) extend(bytes int64) {
	t.rc.SetWriteDeadline(time.Now().Add(t.patience.of(bytes))) //nolint:errcheck // as above
}
