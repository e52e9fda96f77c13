package ui

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"
)

// LogLine is a line of a task's output.
type LogLine struct {
	Seq int
	// Time is shown when timestamps are on.
	Time time.Time
	// Stream is "stdout", "stderr" or "loom".
	Stream string
	// Level is "info", "warn" or "error".
	Level string
	// Text may hold colours as ANSI sequences; everything else of that sort is
	// dropped.
	Text string
	// Source says where the line comes from in a log of several tasks, SourceHref
	// leads to the line there. Cursor is its place in such a log.
	Source, SourceHref, Cursor string
	// Marked lines are those that a link named.
	Marked bool
	// Copied lines stand in the page a second time: they have no id, and their numbers
	// lead to the first.
	Copied bool
}

// LogModel is a followed log.
type LogModel struct {
	// ID must be unique in the page.
	ID string
	// Label names the log: "Log of install nginx on web-1, attempt 1".
	Label string
	Lines []LogLine
	// More is the URL of newer rows; the script adds "after=<last seq>". Empty for
	// a log that has ended.
	More string
	// Topic is the live topic that signals new lines.
	Topic string
	// Earlier is the link to a page with the rows before the first, EarlierRows to the
	// rows alone, for scripts; empty when there are none. EarlierText is its label,
	// "Load 1,000 earlier" when empty.
	Earlier, EarlierRows, EarlierText string
	// Later is the link to the rows after the last of a page that does not end with
	// the log.
	Later string
	// At is where a page around a line of its own is found; scripts add "lines=".
	At string
	// Find is the search of the server; nil leaves it out.
	Find *LogFind
	// Every makes scripts look for newer rows every so many seconds, for logs that no
	// topic tells of.
	Every int
	// Plain says that no line is marked as an error.
	Plain bool
	// Raw is the link to the log as plain text.
	Raw string
	// Note is said at the end: "The log ended 4 minutes ago".
	Note string
}

// LogFind is the form that searches a whole log, and what the page shows of it.
type LogFind struct {
	Action string
	// Hidden are values to send along: name, value, name, value.
	Hidden []string
	Value  string
	Error  string
	// Errors is the link to the lines of errors alone, Clear to the whole log; On says
	// that the page shows those that were found, Note how many.
	Errors, Clear string
	// ErrorCount is how many lines of errors there are, empty where nobody counted.
	ErrorCount string
	On         bool
	Note       string
}

func (f LogFind) hidden() [][2]string {
	var pairs [][2]string
	for i := 0; i+1 < len(f.Hidden); i += 2 {
		if f.Hidden[i+1] != "" {
			pairs = append(pairs, [2]string{f.Hidden[i], f.Hidden[i+1]})
		}
	}
	return pairs
}

func (m LogModel) earlierText() string {
	if m.EarlierText != "" {
		return m.EarlierText
	}
	return "Load 1,000 earlier"
}

// raw is the plain text in another way.
func (m LogModel) raw(way string) string {
	mark := "?"
	if strings.Contains(m.Raw, "?") {
		mark = "&"
	}
	return m.Raw + mark + way + "=1"
}

func (l LogLine) id() string { return "L" + strconv.Itoa(l.Seq) }

// logBlock is how many rows share a block that the browser may skip drawing.
const logBlock = 200

func logBlocks(lines []LogLine) [][]LogLine {
	var blocks [][]LogLine
	for len(lines) > 0 {
		n := min(logBlock, len(lines))
		blocks = append(blocks, lines[:n])
		lines = lines[n:]
	}
	return blocks
}

// Span is a piece of a log line with the classes of its colours.
type Span struct {
	Class string
	Text  string
}

// logText writes the pieces of a line, escaped. It is written by hand because
// generated code may put white space between elements, which a log shows.
func logText(line string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		for _, s := range Spans(line) {
			if s.Class == "" {
				b.WriteString(templ.EscapeString(s.Text))
				continue
			}
			b.WriteString(`<span class="` + s.Class + `">` + templ.EscapeString(s.Text) + `</span>`)
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// ansiColours maps the 16 colours to six tokens that are readable in both themes;
// black and white become the plain text colour.
var ansiColours = [16]string{
	"", "a-red", "a-green", "a-yellow", "a-blue", "a-magenta", "a-cyan", "",
	"a-dim", "a-red", "a-green", "a-yellow", "a-blue", "a-magenta", "a-cyan", "",
}

// style is the state of the sequences seen so far.
type style struct {
	colour                string
	bold, dim, underlined bool
}

func (s style) class() string {
	var parts []string
	if s.colour != "" {
		parts = append(parts, s.colour)
	}
	if s.bold {
		parts = append(parts, "a-bold")
	}
	if s.dim && s.colour == "" {
		parts = append(parts, "a-dim")
	}
	if s.underlined {
		parts = append(parts, "a-underline")
	}
	return strings.Join(parts, " ")
}

// Spans splits a line at its colour sequences. Colours become classes out of a
// fixed list; every other escape sequence and control character is dropped, as
// are the marks that change the direction of text. A carriage return starts the
// line over, as a terminal would.
func Spans(line string) []Span {
	line = afterLastReturn(line)
	var spans []Span
	var text strings.Builder
	var now style
	flush := func() {
		if text.Len() > 0 {
			spans = append(spans, Span{Class: now.class(), Text: text.String()})
			text.Reset()
		}
	}
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		switch {
		case r == 0x1b || r == 0x9b:
			sequence, parameters, colour := escape(line[i:])
			if colour {
				flush()
				now = now.apply(parameters)
			}
			i += sequence
			continue
		case r == '\t':
			text.WriteRune(r)
		case r == utf8.RuneError && size == 1:
			text.WriteRune(utf8.RuneError)
		case unicode.IsControl(r) || isDirectionMark(r):
		default:
			text.WriteRune(r)
		}
		i += size
	}
	flush()
	return spans
}

func afterLastReturn(line string) string {
	line = strings.TrimRight(line, "\r\n")
	return line[strings.LastIndexByte(line, '\r')+1:]
}

func isDirectionMark(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
}

// escape measures the sequence at the start of s, which begins with ESC or the
// one-character CSI. colour says that it is "select graphic rendition", whose
// parameters are returned.
func escape(s string) (length int, parameters string, colour bool) {
	i := 1
	if s[0] == 0x1b {
		if i >= len(s) {
			return i, "", false
		}
		switch s[i] {
		case '[':
			i++
		case ']', 'P', 'X', '^', '_':
			return controlString(s, i+1), "", false
		default:
			return simpleEscape(s), "", false
		}
	} else {
		// U+009B is two bytes of UTF-8.
		i = utf8.RuneLen(0x9b)
	}
	start := i
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
		i++
	}
	if i >= len(s) {
		return len(s), "", false
	}
	if s[i] < 0x40 || s[i] > 0x7e {
		return i, "", false
	}
	return i + 1, s[start:i], s[i] == 'm'
}

// controlString ends at BEL or ESC \; an unended one takes the rest of the line.
func controlString(s string, i int) int {
	for ; i < len(s); i++ {
		if s[i] == 0x07 {
			return i + 1
		}
		if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
			return i + 2
		}
	}
	return len(s)
}

// simpleEscape is ESC, any intermediates, and a final character.
func simpleEscape(s string) int {
	i := 1
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		i++
	}
	return i
}

// apply reads the parameters of a colour sequence. Extended colours (38;5;n and
// 38;2;r;g;b) are skipped apart from the 16 basic ones; backgrounds are ignored,
// since no pair of arbitrary colours is sure to be readable.
func (s style) apply(parameters string) style {
	codes := strings.FieldsFunc(parameters, func(r rune) bool { return r == ';' || r == ':' })
	if len(codes) == 0 {
		return style{}
	}
	for i := 0; i < len(codes); i++ {
		code, err := strconv.Atoi(codes[i])
		if err != nil {
			return s
		}
		switch {
		case code == 0:
			s = style{}
		case code == 1:
			s.bold = true
		case code == 2:
			s.dim = true
		case code == 4:
			s.underlined = true
		case code == 22:
			s.bold, s.dim = false, false
		case code == 24:
			s.underlined = false
		case code >= 30 && code <= 37:
			s.colour = ansiColours[code-30]
		case code >= 90 && code <= 97:
			s.colour = ansiColours[code-90+8]
		case code == 39:
			s.colour = ""
		case code == 38 || code == 48:
			var basic string
			var known bool
			i, basic, known = extended(codes, i)
			if code == 38 && known {
				s.colour = basic
			}
		}
	}
	return s
}

// extended steps over an extended colour at codes[i]; known says that it is one
// of the 16 basic ones.
func extended(codes []string, i int) (next int, basic string, known bool) {
	if i+1 >= len(codes) {
		return len(codes), "", false
	}
	switch codes[i+1] {
	case "5":
		if i+2 < len(codes) {
			if n, err := strconv.Atoi(codes[i+2]); err == nil && n >= 0 && n < len(ansiColours) {
				return i + 2, ansiColours[n], true
			}
		}
		return i + 2, "", false
	case "2":
		return i + 4, "", false
	}
	return i + 1, "", false
}
