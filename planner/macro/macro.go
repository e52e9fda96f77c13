// Package macro expands the macros in cluster configuration and in links:
// placeholders such as %host.service.db% that stand for facts known only when
// the cluster exists.
//
// It is pure, as the planner is, and knows neither clusters nor catalogs: a
// snapshot of facts goes in, text comes out. What a newcomer gets wrong: a macro
// for a service that is not on the cluster is no error. It stays in the text as
// it was written, with a warning, because one template serves many layouts.
package macro

import (
	"fmt"
	"strings"

	"loom/app/loom"
)

// Limits of what is parsed and made.
const (
	// MaxValue is the longest value that may hold macros, in bytes.
	MaxValue = 64 << 10
	// MaxExpansion bounds the text one call makes of values with macros, in bytes.
	MaxExpansion = 4 << 20
	// MaxProblems is how many mistakes of one value, and of one config, are reported.
	MaxProblems = 100
	// MaxDepth is how deep a config may be nested.
	MaxDepth = 100
)

// Severity says what a Problem means.
type Severity string

// The severities.
const (
	// Syntax: the text is wrong whatever the cluster is; refused at save.
	Syntax Severity = "syntax"
	// Unresolved: the text is right, but the cluster cannot fill it.
	Unresolved Severity = "unresolved"
	// Limit: the text, its expansion or the nesting is too large.
	Limit Severity = "limit"
	// Absent: a warning; the macro stays as written because its service is not
	// on the cluster, or not on the node.
	Absent Severity = "absent"
)

// Problem is what is wrong with one macro of one value.
type Problem struct {
	Severity Severity
	// Pointer is the JSON pointer of the value in the config, "" for a single text.
	Pointer string
	// Column is the position of the macro in the value, in characters, from 1.
	Column int
	// Macro is the macro as written, percent signs included.
	Macro string
	// Reason is a sentence for people.
	Reason string
	// Unknown says of a Syntax problem that there is no macro of that name.
	Unknown bool
}

// Warning reports whether the problem stops nothing.
func (p Problem) Warning() bool { return p.Severity == Absent }

// String gives pointer, column, macro and reason in one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.Pointer != "" {
		b.WriteString(p.Pointer + ", ")
	}
	if p.Column > 0 {
		fmt.Fprintf(&b, "column %d, ", p.Column)
	}
	if p.Macro != "" {
		b.WriteString(p.Macro + ": ")
	}
	b.WriteString(p.Reason)
	return b.String()
}

// Error gives an Invalid error with one field per problem, warnings left out,
// or nil when only warnings are there. Field names are prefix and JSON pointer.
func Error(prefix string, problems []Problem) error {
	var fields []loom.FieldError
	for _, p := range problems {
		if p.Warning() {
			continue
		}
		field := prefix + p.Pointer
		p.Pointer = ""
		fields = append(fields, loom.FieldError{Field: field, Message: p.String()})
	}
	return loom.InvalidFields(fields)
}

// Split parts problems that stop a task from warnings.
func Split(problems []Problem) (errors, warnings []Problem) {
	for _, p := range problems {
		if p.Warning() {
			warnings = append(warnings, p)
		} else {
			errors = append(errors, p)
		}
	}
	return errors, warnings
}
