package loom

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PlainText gives a text without control characters but tab and line feed, and without
// the sequences for terminals that they begin: what shows a text may obey them.
func PlainText(text string) string {
	if strings.IndexFunc(text, obeyed) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if obeyed(r) {
			return -1
		}
		return r
	}, terminalSequence.ReplaceAllString(text, ""))
}

// obeyed reports whether a character is for a terminal, and not to be read.
func obeyed(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' }

// terminalSequence is a CSI sequence, such as a color, or one that carries a text, such
// as the title of a window.
var terminalSequence = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\x1b[\\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)")

// Cut gives the beginning of a text of more than max bytes, at the end of a character and
// with an ellipsis.
func Cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	end := max
	for end > 0 && max-end < utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// saidMost is how much of what somebody else's program says about trouble is repeated.
const saidMost = 400

// Short gives what a machine or a program said about trouble as a few sentences on one
// line, without what a terminal obeys.
func Short(text string) string {
	begin := text[:min(len(text), 8*saidMost)]
	return Cut(strings.Join(strings.Fields(PlainText(strings.ToValidUTF8(begin, ""))), " "), saidMost)
}

func itoa(n int) string { return strconv.Itoa(n) }

func upper(s string) string { return strings.ToUpper(s) }

// And joins names for people: "a, b and c".
func And[T ~string](names []T) string { return series(names, "and") }

// Or joins names for people: "a, b or c".
func Or[T ~string](names []T) string { return series(names, "or") }

func series[T ~string](names []T, word string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(" " + word + " ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}
