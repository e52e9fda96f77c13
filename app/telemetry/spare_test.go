package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestEqualFailuresAreFew: whoever makes the same failure again and again fills no log, and
// the log says how many there were.
func TestEqualFailuresAreFew(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := Spare(slog.New(slog.NewTextHandler(&out, nil))).With("a", 1).Handler()
	begin := time.Now()
	say := func(level slog.Level, message string, after time.Duration) {
		if err := h.Handle(context.Background(), slog.NewRecord(begin.Add(after), level, message, 0)); err != nil {
			t.Error(err)
		}
	}
	for i := range 3 * equalPerMinute {
		say(slog.LevelError, "request failed", time.Duration(i)*time.Millisecond)
		say(slog.LevelInfo, "request", 0)
	}
	say(slog.LevelWarn, "not ready", time.Second)
	for message, want := range map[string]int{`"request failed"`: equalPerMinute, "msg=request ": 3 * equalPerMinute, `"not ready"`: 1, "left_out": 0} {
		if got := strings.Count(out.String(), message); got != want {
			t.Errorf("%s: %d times, want %d", message, got, want)
		}
	}
	out.Reset()
	say(slog.LevelError, "request failed", time.Minute)
	say(slog.LevelError, "request failed", time.Minute)
	if got := out.String(); strings.Count(got, "\n") != 2 || strings.Count(got, "left_out") != 1 || !strings.Contains(got, "left_out=120") {
		t.Errorf("a minute later: %q", got)
	}
}

// TestJSONLogsObeyNobody: also characters that JSON need not escape stand escaped.
func TestJSONLogsObeyNobody(t *testing.T) {
	t.Parallel()
	const odd = "a\u009b31mb\x7f\u202ec\u2066d\nü"
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log, err := NewLogger(&out, "info", format)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("m"+odd, "path", odd, "error", errors.New(odd), slog.Group("g", "in", odd))
		line := out.String()
		if strings.ContainsAny(line, "\u009b\x7f\u202e\u2066") || strings.Count(line, "\n") != 1 || strings.Count(line, "31mb") != 4 || strings.Count(line, "ü") != 4 {
			t.Errorf("%s: %q", format, line)
		}
	}
}
