// Package telemetry sets up logging and knows the build. Log messages are
// constant strings, everything variable is an attribute; output of remote
// commands never goes here.
package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"unicode"
)

// Version is set at build time; the default is taken from the module's build
// information.
var Version = ""

// BuildVersion returns the version of this binary, "devel" when it is not known.
func BuildVersion() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return s.Value[:12]
			}
		}
	}
	return "devel"
}

// NewLogger writes to w. level is debug, info, warn or error; format is text,
// json, or auto for text on a terminal.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("LOOM_LOG_LEVEL is %q; it takes debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: l}
	switch strings.ToLower(format) {
	case "json":
		return slog.New(newJSON(w, l)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "auto":
		if isTerminal(w) {
			return slog.New(slog.NewTextHandler(w, options)), nil
		}
		return slog.New(newJSON(w, l)), nil
	}
	return nil, fmt.Errorf("LOOM_LOG_FORMAT is %q; it takes auto, text or json", format)
}

// newJSON writes JSON without characters that a terminal obeys: it would leave those that
// are no part of ASCII as they are. The handler for text quotes them itself.
func newJSON(w io.Writer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case string:
			a.Value = slog.StringValue(escapeOdd(v))
		case error:
			a.Value = slog.StringValue(escapeOdd(v.Error()))
		}
		return a
	}})
}

// escapeOdd writes what is neither ASCII nor printed as \uXXXX.
func escapeOdd(text string) string {
	odd := func(c rune) bool { return c >= 0x7f && !unicode.IsPrint(c) }
	if strings.IndexFunc(text, odd) < 0 {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if odd(c) {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
