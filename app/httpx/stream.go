package httpx

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"loom/app/loom"
)

// KeepAlive is how often an event stream says that it is still there.
const KeepAlive = 15 * time.Second

// writeLimit is how long a client may take to accept one event. One that takes
// longer is cut off, and comes back with its cursor when it can.
const writeLimit = time.Minute

// Stream is a text/event-stream. Methods return an error when
// the client is gone.
type Stream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// NewStream begins an event stream: headers, a time limit for each event, retry hint.
// Throttled when its caller, or the process, has too many.
func NewStream(w http.ResponseWriter, r *http.Request) (*Stream, error) {
	if err := becomeStream(r); err != nil {
		return nil, err
	}
	s := &Stream{w: w, rc: http.NewResponseController(w)}
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return nil, fmt.Errorf("set the write deadline of an event stream: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set(gzhttp.HeaderNoCompression, "true") // which would wait for more
	w.WriteHeader(http.StatusOK)
	return s, s.write("retry: 3000\n\n")
}

// Send sends an event with JSON data; an empty id is left out.
func (s *Stream) Send(id, event string, data any) error {
	body, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.SendText(id, event, string(body))
}

// SendText sends an event with text data, one data line per line.
func (s *Stream) SendText(id, event, data string) error {
	var b strings.Builder
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "event: %s\n", event)
	for _, line := range strings.Split(data, "\n") {
		fmt.Fprintf(&b, "data: %s\n", line)
	}
	b.WriteString("\n")
	return s.write(b.String())
}

// Place tells the client where to go on when it comes back, without an event.
func (s *Stream) Place(id string) error { return s.write("id: " + id + "\n\n") }

// Comment keeps the connection open.
func (s *Stream) Comment() error { return s.write(": keepalive\n\n") }

// End tells the client to close and not to come back, but for "shutdown".
func (s *Stream) End(reason string) error {
	return s.Send("", "end", map[string]string{"reason": reason})
}

func (s *Stream) write(text string) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.rc.Flush()
}

// Cursor is where a reconnecting client wants to go on: Last-Event-ID, which
// wins, or the parameter after.
func Cursor(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return r.URL.Query().Get("after")
}

const (
	// MaxBody is the largest request body that is not a file, in bytes.
	MaxBody = 4 << 20
	// maxOpenBody is the largest one of somebody who is not known yet.
	maxOpenBody = 16 << 10
)

// LimitBody bounds a request body and names the limit when it is passed.
func LimitBody(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
}

// LimitOpenBody is LimitBody where anybody may ask: what is sent there is small, and comes
// soon.
func LimitOpenBody(w http.ResponseWriter, r *http.Request) {
	if b, ok := r.Context().Value(bodyKey{}).(*timedBody); ok {
		b.patience = openPatience
		b.extend()
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxOpenBody)
}

// TooLarge is the error for a body above its limit.
func TooLarge(err *http.MaxBytesError) error {
	if err.Limit < 1<<20 {
		return loom.NewError(loom.Invalid, "The request is larger than %d KiB.", err.Limit>>10)
	}
	return loom.NewError(loom.Invalid, "The request is larger than %d MiB.", err.Limit>>20)
}
