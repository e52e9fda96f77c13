package automator

import "loom/app/loom"

// Checker is what an automator implements whose checks run elsewhere than in a plain shell
// of root.
type Checker interface {
	// CheckText returns the shell text that runs the command of a check where the START of
	// spec.Service runs, or, with an empty command, asks whether the service runs. It must
	// change nothing on the machine.
	CheckText(spec *loom.TaskSpec, command string) string
}
