package automator

import "loom/app/loom"

// Logger is what an automator implements whose services write to something of its own, such
// as a container.
type Logger interface {
	// LogText returns the shell text that prints the last lines of the log of spec.Service
	// and, with follow, those that come, also after a stop and a start. It runs as root and
	// must change nothing on the machine.
	LogText(spec *loom.TaskSpec, lines int, follow bool) string
}
