package wiring

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUsage marks a wrong use of a subcommand.
var ErrUsage = errors.New("wrong use")

// UsageError is an error of wrong use.
func UsageError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUsage, fmt.Sprintf(format, args...))
}

// TakeFlag removes "--name value" or "--name=value" from args.
func TakeFlag(args []string, name string) (value string, rest []string, found bool) {
	for i, a := range args {
		if a == "--"+name && i+1 < len(args) {
			return args[i+1], slices.Concat(args[:i], args[i+2:]), true
		}
		if v, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return v, slices.Concat(args[:i], args[i+1:]), true
		}
	}
	return "", args, false
}

// TakeSwitch removes "--name" from args.
func TakeSwitch(args []string, name string) (rest []string, found bool) {
	i := slices.Index(args, "--"+name)
	if i < 0 {
		return args, false
	}
	return slices.Concat(args[:i], args[i+1:]), true
}
