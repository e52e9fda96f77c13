package cloud

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
)

// Kind says what sort of trouble a cloud made.
type Kind string

// The kinds of trouble.
const (
	// Credentials are refused.
	Credentials Kind = "credentials"
	// Refused: the cloud will never do this as it is asked: a setting is wrong.
	Refused Kind = "refused"
	// Quota: a limit of the account or the cloud's capacity is used up.
	Quota Kind = "quota"
	// Conflict: a name is taken.
	Conflict Kind = "conflict"
	// NotFound: the machine is not there.
	NotFound Kind = "not found"
	// Busy: the machine cannot be changed just now; later it can.
	Busy Kind = "busy"
	// Broken: the machine is there but does not do what it should.
	Broken Kind = "broken"
	// Throttled: too many calls; this one was not carried out.
	Throttled Kind = "throttled"
	// Unavailable: the cloud has trouble of its own; nobody knows whether the call was
	// carried out.
	Unavailable Kind = "unavailable"
	// Lost: there was no answer, or none that can be read; nobody knows either.
	Lost Kind = "lost"
	// Unreachable: nobody can be asked there as the provider is set up: the name does not
	// resolve, the connection is refused, or the certificate is not trusted.
	Unreachable Kind = "unreachable"
)

// Error is trouble with a cloud. Message is one line for people, without secrets.
type Error struct {
	Kind    Kind
	Message string
	// RetryAfter is how long the cloud asks to wait, 0 where it does not say.
	RetryAfter time.Duration
	// Before says that the call was not the one that makes a machine, or did not reach
	// the cloud.
	Before bool
	// Step names the check of a probe that this is about, "" where that follows from the
	// kind, or is the one that the call is made for.
	Step string
	Err  error
}

// Error is for people.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the client's error.
func (e *Error) Unwrap() error { return e.Err }

// passes reports whether the same call may succeed in a moment.
func (e *Error) passes() bool {
	return e.Kind == Throttled || e.Kind == Unavailable || e.Kind == Lost
}

// perhaps reports whether the call may have been carried out all the same.
func (e *Error) perhaps() bool { return (e.Kind == Unavailable || e.Kind == Lost) && !e.Before }

// Errorf makes an error of a kind.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// before marks errors of calls before the one that makes a machine.
type before struct{ error }

// Unwrap returns the error.
func (b before) Unwrap() error { return b.error }

// Before says of an error in Driver.Create that nothing can have been made. Nil stays nil.
func Before(err error) error {
	if err == nil {
		return nil
	}
	return before{err}
}

// local marks errors of this host.
type local struct{ error }

// Unwrap returns the error.
func (l local) Unwrap() error { return l.error }

// Local says of an error in Cloud.Open that it is trouble of this host, which says nothing of
// the provider. Nil stays nil.
func Local(err error) error {
	if err == nil {
		return nil
	}
	return local{err}
}

// Is reports whether an error is one of a kind.
func Is(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

// FromHTTP is the error of an answer with a status that is no success. message is
// the cloud's own; empty: the status' text.
func FromHTTP(status int, header http.Header, message string, cause error) *Error {
	e := &Error{Kind: Refused, Message: message, RetryAfter: retryAfter(header, time.Now()), Err: cause}
	if strings.TrimSpace(message) == "" {
		e.Message = fmt.Sprintf("the cloud answered %d %s", status, http.StatusText(status))
	}
	switch {
	case status == http.StatusUnauthorized:
		e.Kind = Credentials
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Kind = NotFound
	case status == http.StatusConflict:
		e.Kind = Conflict
	case status == http.StatusTooManyRequests, status == http.StatusRequestEntityTooLarge && e.RetryAfter > 0:
		e.Kind = Throttled
	case status == http.StatusRequestEntityTooLarge:
		e.Kind = Quota
	case status >= 500, status == http.StatusRequestTimeout:
		e.Kind = Unavailable
	}
	return e
}

// FromNetwork is the error of a call without an answer, or without one that can be
// read.
func FromNetwork(err error) *Error {
	e := &Error{Kind: Lost, Err: err}
	// The address of the call is left out: it may carry what is none of the log's business.
	var inURL *url.Error
	for errors.As(err, &inURL) {
		err = inURL.Err
	}
	var op *net.OpError
	var dns *net.DNSError
	e.Before = errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns)
	e.Message = "no usable answer from the cloud: " + err.Error()
	var l late
	if errors.As(err, &l) {
		e.Message = "the cloud gave " + l.Error()
	}
	return e
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 86400)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), 24*time.Hour)
	}
	return 0
}

// result makes a failed result. made says that a machine exists or may exist.
func (e *Error) result(create, made bool) loom.TaskResult {
	r := loom.TaskResult{Status: 1, Message: e.Message, RetryAfter: int((e.RetryAfter + time.Second - 1) / time.Second)}
	switch e.Kind {
	case Credentials, Refused, Unreachable:
		never := false
		r.Retryable = &never
	case Quota, Conflict, NotFound, Busy, Broken, Throttled, Unavailable, Lost:
	}
	// Only these say something of the machine.
	r.KeepMachine = e.Kind != Broken && e.Kind != NotFound
	if !create || made {
		return r
	}
	switch e.Kind {
	case Credentials:
		r.Status = 201
	case Refused, Quota, Conflict, NotFound, Unreachable:
		r.Status = 202
	case Busy, Broken, Throttled, Unavailable, Lost:
	}
	return r
}
