// Package remote speaks SSH to machines: it dials and verifies them, runs
// commands with live output, uploads files and trees, and keeps one connection
// per node for the next tasks.
//
// It uses golang.org/x/crypto/ssh and never the ssh program, reads no
// configuration and knows nothing of clouds or services. It never repeats a
// command: what was started and then lost is reported as lost (ErrLost), and
// only the caller's next attempt may run it again. A newcomer's usual mistake is
// to expect an error from Exec when a command exits with 1; that is an Outcome.
package remote

import (
	"errors"
	"fmt"
	"time"

	"loom/app/loom"
)

// Time limits and bounds.
const (
	// ConnectTimeout bounds one TCP connect.
	ConnectTimeout = 10 * time.Second
	// HandshakeTimeout bounds key exchange and authentication together.
	HandshakeTimeout = 20 * time.Second
	// KeepaliveInterval is the time between two keepalives.
	KeepaliveInterval = 15 * time.Second
	// KeepaliveMisses unanswered keepalives in a row mean the connection is lost.
	KeepaliveMisses = 4
	// KillAfter is the time a cancelled command has between TERM and KILL.
	KillAfter = 10 * time.Second
	// IdleTimeout is how long a kept connection waits for its node's next task or sign of
	// life, which is more than a minute away where one process watches 10,000 nodes.
	IdleTimeout = 5 * time.Minute
	// MaxKept is how many connections a Pool keeps that nobody uses, and half of the files
	// that the process may open. One takes about 40 KB.
	MaxKept = 10_000
	// MaxSessions on one connection; servers refuse the 11th by default, and two
	// are left over for stopping what runs.
	MaxSessions = 8
	// MaxHandshakes is the number of connections to one host that may be
	// unauthenticated at once; servers reset more at random.
	MaxHandshakes = 8

	resetRetries = 6
)

// Kinds of trouble; use errors.Is.
var (
	// ErrHostKeyChanged: the machine showed another key than the recorded one.
	// It is never retried.
	ErrHostKeyChanged = errors.New("host key changed")
	// ErrAuth: the machine refused the user or all of its credentials.
	ErrAuth = errors.New("SSH authentication failed")
	// ErrUnreachable: no SSH server answered.
	ErrUnreachable = errors.New("SSH is unreachable")
	// ErrLost: the connection broke while a command ran, or the server ended the
	// command without saying how.
	ErrLost = errors.New("SSH connection lost")
	// ErrSignal: the command was ended by a signal.
	ErrSignal = errors.New("command ended by a signal")
	// ErrSudo: the user may not become root without a password.
	ErrSudo = errors.New("sudo needs a password")
	// ErrFailed: a command of Loom's own, such as an upload, exited with an error.
	ErrFailed = errors.New("remote command failed")
	// ErrCredentials: the credentials or settings given cannot be used, such as a
	// key that does not parse. Trying again is useless.
	ErrCredentials = errors.New("unusable credentials")
	// ErrHostCert: the machine showed a certificate of a known authority that does
	// not hold for it. Trying again is useless.
	ErrHostCert = errors.New("host certificate refused")
	// ErrJump: a jump host answers but does not pass on connections. Trying again is
	// useless until its administrator allows it.
	ErrJump = errors.New("jump host refuses")
	// ErrRefused: Loom does not connect to that address for this tenant. Trying again is
	// useless until somebody allows it.
	ErrRefused = errors.New("address refused")
)

// Error is trouble of one of the kinds above. Text is for people and holds no
// secret; Err is the cause, for the log, and may be nil.
type Error struct {
	Kind error
	Text string
	Err  error
}

// Error returns the text and at most a few sentences of the cause: much of it may be
// what the machine said.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + loom.Short(e.Err.Error())
}

// Unwrap gives kind and cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

func fail(kind error, cause error, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Err: cause}
}

// Failure is what a provider or automator returns for an error met on the way:
// trouble of this package becomes a failed result (status 1, not retryable where
// trying again is useless), anything else stays an error of the provisioner.
func Failure(err error) (loom.TaskResult, error) {
	var trouble *Error
	if !errors.As(err, &trouble) {
		return loom.TaskResult{}, err
	}
	result := loom.TaskResult{Status: 1, Message: err.Error()}
	for _, kind := range []error{ErrHostKeyChanged, ErrHostCert, ErrCredentials, ErrJump, ErrRefused} {
		if errors.Is(err, kind) {
			no := false
			result.Retryable = &no
		}
	}
	return result, nil
}
