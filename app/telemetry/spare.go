package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// equalPerMinute is how many warnings and errors of the same message are written within a
// minute.
const equalPerMinute = 60

// Spare returns a logger that writes where log does, but of warnings and errors with the same
// message a limited number a minute. The next one that is written says how many were left out.
func Spare(log *slog.Logger) *slog.Logger {
	return slog.New(sparing{log.Handler(), &written{now: map[string]int{}, left: map[string]int{}}})
}

// written counts lines by their message.
type written struct {
	mu     sync.Mutex
	minute time.Time
	// now are those of this minute, left those that were left out since one was written.
	now, left map[string]int
}

// next reports whether a line may be written, and how many were not since the last.
func (w *written) next(message string, at time.Time) (left int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at.Sub(w.minute) >= time.Minute {
		w.minute = at
		clear(w.now)
	}
	if w.now[message] >= equalPerMinute {
		w.left[message]++
		return 0, false
	}
	w.now[message]++
	left = w.left[message]
	delete(w.left, message)
	return left, true
}

type sparing struct {
	slog.Handler
	written *written
}

// Handle writes a line unless there were too many like it.
func (h sparing) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	left, ok := h.written.next(r.Message, r.Time)
	if !ok {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", left))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the count.
func (h sparing) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sparing{h.Handler.WithAttrs(attrs), h.written}
}

// WithGroup keeps the count.
func (h sparing) WithGroup(name string) slog.Handler {
	return sparing{h.Handler.WithGroup(name), h.written}
}
