package loom

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what sort of error an Error is; the surfaces map kinds to
// statuses. A Kind is itself an error so that errors.Is(err, loom.NotFound)
// reads naturally.
type Kind string

// The closed set of error kinds.
const (
	Invalid         Kind = "invalid"
	Unsolvable      Kind = "unsolvable"
	Unauthenticated Kind = "unauthenticated"
	Forbidden       Kind = "forbidden"
	NotFound        Kind = "not-found"
	Conflict        Kind = "conflict"
	Exhausted       Kind = "exhausted"
	Throttled       Kind = "throttled"
	Unavailable     Kind = "unavailable"
	Internal        Kind = "internal"
)

// Kinds lists every kind; mapping tables are tested against it.
var Kinds = []Kind{Invalid, Unsolvable, Unauthenticated, Forbidden, NotFound, Conflict, Exhausted, Throttled, Unavailable, Internal}

// Error makes a Kind usable as a target of errors.Is.
func (k Kind) Error() string { return string(k) }

// FieldError says what is wrong with one field of a request. Field is the name
// in the request, with dots and indexes for nested ones ("constraints.size.min").
type FieldError struct {
	Field   string `json:"field" description:"From the document on, such as services[1].name; the file before a colon in an archive."`
	Message string `json:"message"`
}

// Error is the one error type that crosses layers. Message is for people and
// safe to show; Err is the cause, for the log only.
type Error struct {
	Kind    Kind
	Message string
	Fields  []FieldError
	// Missing holds, for provider fields that a request must still give, the
	// absent fields of each unsatisfied set.
	Missing []map[string]FieldSchema
	// Unsat is set for Unsolvable.
	Unsat *Unsat
	// Preview is the id of a fresh preview when an apply was refused as stale.
	Preview PreviewID
	// RetryAfter is set for Throttled and Unavailable where it is known.
	RetryAfter time.Duration
	Err        error
}

// Error joins message, fields and cause; it is for logs, not for people.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for _, f := range e.Fields {
		fmt.Fprintf(&b, " [%s: %s]", f.Field, f.Message)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is this error's kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// NewError builds an error of a kind with a message for people, cut as BoundField does.
func NewError(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: boundText(fmt.Sprintf(format, args...))}
}

// What is sent may be long, and errors repeat it: how much an error has of each text
// between “ and ”, and of a message, in bytes.
const (
	maxQuoted  = 200
	maxMessage = 2000
)

// BoundField cuts what is long in a field error: its path as those of configs are cut, and
// of its message first what is quoted.
func BoundField(f FieldError) FieldError {
	return FieldError{Field: Cut(f.Field, MaxConfigPath+maxQuoted), Message: boundText(f.Message)}
}

func boundText(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	var b strings.Builder
	for rest := text; ; {
		before, quoted, found := strings.Cut(rest, "“")
		b.WriteString(before)
		if !found || b.Len() > maxMessage {
			return Cut(b.String(), maxMessage)
		}
		end := strings.Index(quoted, "”")
		if end < 0 {
			end = len(quoted)
		}
		b.WriteString("“" + Cut(quoted[:end], maxQuoted))
		rest = quoted[end:]
	}
}

// MaxFieldErrors is how many field errors an answer lists. One more says how many there
// are besides.
const MaxFieldErrors = 100

const moreFields = "%d more fields are wrong. Correct those above, then try again."

// BoundFields cuts field errors to as many as an answer lists, and each of them. more is how many were
// left out before, for whoever stops collecting at the bound.
func BoundFields(fields []FieldError, more int) []FieldError {
	bounded, _ := boundFields(fields, more)
	return bounded
}

// boundFields is BoundFields; total counts what is left out too.
func boundFields(fields []FieldError, more int) (bounded []FieldError, total int) {
	listed := make([]FieldError, 0, min(len(fields), MaxFieldErrors)+1)
	if len(fields) <= MaxFieldErrors && more == 0 {
		for _, f := range fields {
			listed = append(listed, BoundField(f))
		}
		return listed, len(fields)
	}
	for _, f := range fields {
		switch before := cutBefore(f); {
		case before > 0:
			more += before
		case len(listed) < MaxFieldErrors:
			listed = append(listed, BoundField(f))
		default:
			more++
		}
	}
	total = len(listed) + more
	if more > 0 {
		listed = append(listed, FieldError{Message: fmt.Sprintf(moreFields, more)})
	}
	return listed, total
}

// cutBefore is how many field errors stand behind the last one of a list that was cut.
func cutBefore(f FieldError) (n int) {
	if f.Field == "" {
		fmt.Sscanf(f.Message, moreFields, &n) //nolint:errcheck // it is another message
	}
	return n
}

// InvalidFields builds an Invalid error from field errors, or nil when there
// are none. The result is of type error so that a nil stays nil.
func InvalidFields(fields []FieldError) error {
	if len(fields) == 0 {
		return nil
	}
	fields, total := boundFields(fields, 0)
	message := fields[0].Message
	if total > 1 {
		message = fmt.Sprintf("%d fields need attention.", total)
	}
	return &Error{Kind: Invalid, Message: message, Fields: fields}
}

// AsError finds the domain error in err; anything else counts as Internal,
// with a message that gives nothing away.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Internal, Message: "Something went wrong inside Loom.", Err: err}
}
