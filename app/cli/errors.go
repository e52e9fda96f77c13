package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"loom/app/loom"
)

// forPeople returns the message of an error, field errors one per line. The cause of
// a domain error is for the log.
func forPeople(err error) string {
	var e *loom.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := messageOf(e)
	if whole := e.Error(); strings.Contains(err.Error(), whole) { // wrapped, with what was being done
		text = strings.Replace(err.Error(), whole, text, 1)
	}
	if e.Err != nil && (e.Kind == loom.Unavailable || e.Kind == loom.Internal) {
		text += " LOOM_LOG_LEVEL=debug shows the cause."
	}
	return text
}

// logCause logs what forPeople omits.
func logCause(log *slog.Logger, err error) {
	var e *loom.Error
	if errors.As(err, &e) && e.Err != nil {
		log.Debug("cause of an error", "message", e.Message, "cause", e.Err.Error())
	}
}

func messageOf(e *loom.Error) string {
	if len(e.Fields) == 1 && e.Fields[0].Message == e.Message {
		return e.Fields[0].Field + ": " + e.Message
	}
	var b strings.Builder
	b.WriteString(e.Message)
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "\n  %s: %s", f.Field, f.Message)
	}
	return b.String()
}
