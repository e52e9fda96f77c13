package external

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"loom/provisioner/remote"
)

// lineReader cuts a stream into lines of at most MaxLine bytes; what a line has
// beyond is read and dropped, so that no plugin fills the memory.
type lineReader struct {
	from   io.Reader
	buffer []byte
	// at and end bound what was read and not given out.
	at, end int
	failed  error
}

func newLineReader(from io.Reader) *lineReader {
	return &lineReader{from: from, buffer: make([]byte, 64<<10)}
}

// next returns a line without its end, valid until the following call, and how
// many bytes of it were dropped. The error is io.EOF after the last one.
func (r *lineReader) next() (line []byte, dropped int, err error) {
	var long []byte
	for {
		if i := bytes.IndexByte(r.buffer[r.at:r.end], '\n'); i >= 0 {
			piece := r.buffer[r.at : r.at+i]
			r.at += i + 1
			if long == nil {
				return piece, 0, nil
			}
			return grow(long, piece, dropped)
		}
		if r.at < r.end { // what waits is copied, since the buffer is read into again
			long, dropped, _ = grow(long, r.buffer[r.at:r.end], dropped)
			r.at, r.end = 0, 0
		}
		if r.failed != nil {
			if long != nil {
				return long, dropped, nil
			}
			return nil, 0, r.failed
		}
		r.at, r.end = 0, 0
		r.end, r.failed = r.from.Read(r.buffer)
		if r.failed != nil && (errors.Is(r.failed, os.ErrDeadlineExceeded) || errors.Is(r.failed, os.ErrClosed)) {
			r.failed = io.EOF
		}
	}
}

func grow(long, piece []byte, dropped int) ([]byte, int, error) {
	room := MaxLine - len(long)
	if len(piece) > room {
		dropped += len(piece) - room
		piece = piece[:room]
	}
	if long == nil {
		long = make([]byte, 0, len(piece))
	}
	return append(long, piece...), dropped, nil
}

// pieces cuts a text into parts that a log line can hold, splitting no character.
func pieces(text string) []string {
	const most = remote.MaxLine / 2 // well below the length at which a redactor expects more to come
	var parts []string
	for len(text) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		parts = append(parts, text[:cut])
		text = text[cut:]
	}
	return append(parts, text)
}

// throttle lets Burst lines through at once and Rate a second for long.
type throttle struct {
	rate   float64
	tokens float64
	last   time.Time
	// open lets everything through once it is closed.
	open <-chan struct{}
}

func newThrottle(rate int, open <-chan struct{}) *throttle {
	return &throttle{rate: float64(rate), tokens: Burst, last: time.Now(), open: open}
}

// wait takes a token, or waits for one.
func (t *throttle) wait() {
	now := time.Now()
	t.tokens = min(Burst, t.tokens+now.Sub(t.last).Seconds()*t.rate) - 1
	t.last = now
	if t.tokens >= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(-t.tokens / t.rate * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.open:
	}
}
