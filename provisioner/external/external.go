// Package external runs providers and automators that are programs of their own,
// in any language: one child process per action, the request as JSON on its
// standard input, its messages as JSON lines on standard output
// (docs/plugins/README.md).
//
// What comes from a plugin is never trusted: it is bounded in size, time and
// number, redacted, and taken apart before anything of it is used. The package
// must not give a plugin more than the protocol says: no environment of the
// provisioner, no open files, no database, and keys only through an agent.
//
// A newcomer's trap: every program that runs plugins (tests too) must do as package
// confine says.
package external

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"loom/provisioner/confine"
)

// Protocol is the version of the plugin protocol that this host speaks.
const Protocol = 1

// ThrottlingRevision is the revision of version 1, declared as 1.1, since which a provider that
// fails because of throttling says that trying again helps, and of a CONFIRM that the machine is
// to be kept. Revisions add optional members of messages only.
const ThrottlingRevision = 1

// Limits of the host.
const (
	// Grace is how long a plugin has between SIGTERM and SIGKILL.
	Grace = 20 * time.Second
	// Silence is how long a plugin may give no sign of life.
	Silence = 15 * time.Minute
	// Linger is how long the pipes of a plugin that has ended may stay open.
	Linger = 2 * time.Second
	// MaxRequest is the greatest request, in bytes.
	MaxRequest = 16 << 20
	// MaxLine is the longest line of a plugin, in bytes.
	MaxLine = 1 << 20
	// MaxResult is the greatest result object, in bytes.
	MaxResult = 1 << 20
	// Rate is how many lines a second a plugin may write for long; beyond that
	// its pipe is read more slowly. Burst may come at once.
	Rate, Burst = 200, 2000
	// OpenFiles is how many files a plugin may have open unless its manifest says
	// otherwise.
	OpenFiles = 1024
)

// Host runs plugins. It may be used by many goroutines at once and must not be
// changed while it is in use.
type Host struct {
	// User runs the plugins; nil: the user of this process.
	User *confine.User
	// Environ is the environment of this process, of which plugins get PATH, TZ,
	// the proxy variables and what their manifests name.
	Environ []string
	// Level is LOOM_LOG_LEVEL; "info" when empty. Lines of level debug are kept
	// at "debug" only.
	Level string
	// Scratch is where the private directories of calls are made, the system's
	// directory for temporary files when empty. Its path should be short: sockets
	// lie below.
	Scratch string
	// Log takes what concerns the host and no user; nil: slog.Default().
	Log *slog.Logger
	// Tap, if set, sees every line of a plugin before anything is hidden. It is for
	// conformance checks only, is called by several goroutines, and must not block.
	Tap func(stream, line string)

	// Grace is how long a plugin has between SIGTERM and SIGKILL; the constant of
	// that name when 0.
	Grace time.Duration

	// Shorter in tests; the constants when 0.
	silence, linger time.Duration
	rate            int
}

// switches reports whether plugins run as another user than this process.
func (h *Host) switches() bool { return h.User != nil && h.User.UID != os.Geteuid() }

func (h *Host) logger() *slog.Logger {
	if h.Log == nil {
		return slog.Default()
	}
	return h.Log
}

func (h *Host) variable(name string) (string, bool) {
	for i := len(h.Environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(h.Environ[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
