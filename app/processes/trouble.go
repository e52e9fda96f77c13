package processes

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// maxTrouble is how much of an error the list of processes shows, in characters.
const maxTrouble = 500

// Trouble remembers the last error that a process wrote to its log. Its zero value is
// ready for use, by any number of goroutines.
type Trouble struct {
	mu      sync.Mutex
	text    string
	at      time.Time
	written time.Time // what the list of processes shows
}

// Log gives a logger that writes where log does, and remembers errors.
func (t *Trouble) Log(log *slog.Logger) *slog.Logger {
	return slog.New(troubled{log.Handler(), t})
}

func (t *Trouble) note(r *slog.Record) {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			text += ": " + a.Value.Resolve().String()
		}
		return true
	})
	if runes := []rune(strings.ToValidUTF8(text, "")); len(runes) > maxTrouble {
		text = string(runes[:maxTrouble]) + "…"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Time.After(t.at) {
		t.text, t.at = text, r.Time
	}
}

// due gives what is not written yet.
func (t *Trouble) due() (text string, at time.Time, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text, t.at, t.at.After(t.written)
}

func (t *Trouble) told(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = at
}

// tellAgain makes the last error due once more, for a process that begins anew.
func (t *Trouble) tellAgain() { t.told(time.Time{}) }

// troubled hands errors to a Trouble, also those that are not to be written.
type troubled struct {
	slog.Handler
	trouble *Trouble
}

// Enabled reports whether lines of a level are looked at.
func (h troubled) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError || h.Handler.Enabled(ctx, level)
}

// Handle writes a line, and remembers it when it is an error.
func (h troubled) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		h.trouble.note(&r)
		if !h.Handler.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps remembering.
func (h troubled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return troubled{h.Handler.WithAttrs(attrs), h.trouble}
}

// WithGroup keeps remembering.
func (h troubled) WithGroup(name string) slog.Handler {
	return troubled{h.Handler.WithGroup(name), h.trouble}
}
