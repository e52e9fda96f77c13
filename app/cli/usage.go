package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// errUsage marks a wrong use of a subcommand.
var errUsage = errors.New("wrong use")

func usageError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

// takeFlag removes "--name value" or "--name=value" from args.
func takeFlag(args []string, name string) (value string, rest []string, found bool) {
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

// takeSwitch removes "--name" from args.
func takeSwitch(args []string, name string) (rest []string, found bool) {
	i := slices.Index(args, "--"+name)
	if i < 0 {
		return args, false
	}
	return slices.Concat(args[:i], args[i+1:]), true
}
