package macro

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Template is a parsed text: pieces of plain text and macros in turn.
type Template struct {
	segments []segment
	// macros counts the macros; with none the text stands for itself.
	macros int
}

// segment is plain text, or a macro when expr is set.
type segment struct {
	text string
	// at and column say where a macro begins, in bytes from 0, in characters from 1.
	at, column int
	expr       *expr
}

// expr is the content of a macro.
type expr struct {
	ref ref
	// join is set for join(...), with its separator.
	join      bool
	separator string
	// format is set for map(...).
	format *string
}

// HasMacros reports whether the text holds a macro.
func (t Template) HasMacros() bool { return t.macros > 0 }

// parse splits a text into segments, in time proportional to its length. Two
// percent signs make one, but only in a text that also holds a macro; a last single
// one is plain. A macro that is wrong becomes a problem and stays in the text; what
// stands behind MaxProblems of them is left as it is.
func parse(text string) (Template, []Problem) {
	var t Template
	if !strings.Contains(text, "%") {
		return t, nil
	}
	var problems []Problem
	var plain strings.Builder
	last := lastLone(text)
	columns := columns{text: text, column: 1}
	var closings []int32
	for i := 0; i < len(text); {
		percent := strings.IndexByte(text[i:], '%')
		if percent < 0 {
			plain.WriteString(text[i:])
			break
		}
		plain.WriteString(text[i : i+percent])
		i += percent
		rest := text[i+1:]
		switch {
		case strings.HasPrefix(rest, "%"):
			plain.WriteByte('%')
			i += 2
			continue
		case !strings.Contains(rest, "%"):
			plain.WriteString(text[i:])
			i = len(text)
			continue
		}
		s := scanner{text: text, at: i + 1}
		e, err := s.expr()
		end := s.at
		if err != nil && last <= i {
			// Whatever follows is doubled, so this is a last single sign.
			plain.WriteByte('%')
			i++
			continue
		}
		if len(text) > MaxValue {
			return Template{segments: []segment{{text: text}}, macros: 1}, []Problem{{Severity: Limit,
				Reason: fmt.Sprintf("a value with macros has at most %d bytes; this one has %d", MaxValue, len(text))}}
		}
		column := columns.to(i)
		if err != nil {
			if closings == nil {
				closings = closingsOf(text)
			}
			if end = int(closings[i+1]); end < 0 {
				// There is none outside of a literal, so it is the next one.
				end = i + 1 + strings.IndexByte(rest, '%') + 1
			}
			var name *unknownName
			problems = append(problems, Problem{Severity: Syntax, Column: column, Macro: shorten(text[i:end]), Reason: err.Error(),
				Unknown: errors.As(err, &name)})
		}
		t.flush(&plain)
		t.segments = append(t.segments, segment{text: text[i:end], at: i, column: column, expr: e})
		t.macros++
		i = end
		if len(problems) == MaxProblems {
			plain.WriteString(text[i:])
			break
		}
	}
	t.flush(&plain)
	return t, problems
}

func (t *Template) flush(plain *strings.Builder) {
	if plain.Len() > 0 {
		t.segments = append(t.segments, segment{text: plain.String()})
		plain.Reset()
	}
}

// lastLone gives where the last run of an odd number of percent signs begins: behind
// it there are only doubled ones.
func lastLone(text string) int {
	last := -1
	for i := 0; i < len(text); {
		start := i
		for i < len(text) && text[i] == '%' {
			i++
		}
		if (i-start)%2 == 1 {
			last = start
		}
		if i == start {
			i++
		}
	}
	return last
}

func column(text string, at int) int { return utf8.RuneCountInString(text[:at]) + 1 }

// columns counts characters while somebody goes through a text.
type columns struct {
	text       string
	at, column int
}

// to gives the column of a place, which is not before the last one asked for.
func (c *columns) to(at int) int {
	c.column += utf8.RuneCountInString(c.text[c.at:at])
	c.at = at
	return c.column
}

// closingsOf gives for each place of a text where a wrong macro ends whose content
// begins there, for the message and to go on behind it: behind the next percent
// sign outside a literal, -1 for none. It goes backwards, as what a place gives
// depends on what stands behind it and on being in a literal, and on nothing else.
func closingsOf(text string) []int32 {
	ends := make([]int32, len(text)+1)
	plain, single, double := int32(-1), int32(-1), int32(-1)
	ends[len(text)] = plain
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case '%':
			plain = int32(i + 1)
		case '\'':
			plain, single = single, plain
		case '"':
			plain, double = double, plain
		}
		ends[i] = plain
	}
	return ends
}

// shorten keeps messages readable: a wrong macro may be as long as the value.
func shorten(macro string) string {
	const most = 80
	if len(macro) <= most {
		return macro
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(macro[cut]) {
		cut--
	}
	return macro[:cut] + "…"
}

// scanner reads one macro, from behind its opening sign to behind its closing one.
type scanner struct {
	// strict reads as the predecessor did: no blanks, any index.
	strict bool

	text string
	at   int
}

func (s *scanner) expr() (*expr, error) {
	e := &expr{}
	name := s.name()
	var err error
	if name == "join" && s.open() {
		e.join = true
		if err = s.inner(e, s.name()); err == nil {
			e.separator, err = s.argument("join")
		}
	} else {
		err = s.inner(e, name)
	}
	if err != nil {
		return nil, err
	}
	if s.peek() != '%' {
		return nil, s.unexpected("the closing “%”")
	}
	s.at++
	return e, nil
}

func (s *scanner) inner(e *expr, name string) error {
	if name == "map" && s.open() {
		if err := s.basic(e, s.name()); err != nil {
			return err
		}
		format, err := s.argument("map")
		e.format = &format
		return err
	}
	return s.basic(e, name)
}

func (s *scanner) basic(e *expr, name string) error {
	if name == "" {
		return s.unexpected("the name of a macro")
	}
	if (name == "join" || name == "map") && s.open() {
		return fmt.Errorf("“%s” cannot stand here: join may only stand outermost, map only once, alone or directly inside join", name)
	}
	r, err := resolve(name)
	if err != nil {
		return err
	}
	if s.peek() == '[' {
		if r.index, err = s.index(); err != nil {
			return err
		}
		if r.what != hostsOf && r.what != addressesOf && !s.strict {
			return fmt.Errorf("“%s” has one value, so it takes no index", name)
		}
	}
	e.ref = r
	return nil
}

// index reads "[digits]".
func (s *scanner) index() (int, error) {
	s.at++
	start, n := s.at, 0
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		if s.at-start >= 9 {
			return 0, fmt.Errorf("an index has at most 9 digits")
		}
		n = n*10 + int(s.text[s.at]-'0')
		s.at++
	}
	if s.at == start {
		return 0, s.unexpected("the digits of an index")
	}
	if s.peek() != ']' {
		return 0, s.unexpected("“]”")
	}
	s.at++
	return n, nil
}

// argument reads `,'literal')` with blanks around the signs.
func (s *scanner) argument(function string) (string, error) {
	s.blanks()
	if s.peek() != ',' {
		return "", s.unexpected("a comma and the second argument of " + function)
	}
	s.at++
	s.blanks()
	quote := s.peek()
	if quote != '\'' && quote != '"' {
		return "", s.unexpected("a text in quotes")
	}
	end := strings.IndexByte(s.text[s.at+1:], byte(quote))
	if end < 0 {
		return "", fmt.Errorf("the text that begins with %c is not closed", quote)
	}
	literal := s.text[s.at+1 : s.at+1+end]
	s.at += end + 2
	s.blanks()
	if s.peek() != ')' {
		return "", s.unexpected("“)”")
	}
	s.at++
	s.blanks()
	return literal, nil
}

// open reads "(" with blanks around it, if it is there.
func (s *scanner) open() bool {
	at := s.at
	s.blanks()
	if s.peek() != '(' {
		s.at = at
		return false
	}
	s.at++
	s.blanks()
	return true
}

func (s *scanner) name() string {
	start := s.at
	for s.at < len(s.text) && nameByte(s.text[s.at]) {
		s.at++
	}
	return s.text[start:s.at]
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

func (s *scanner) blanks() {
	for !s.strict && s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t') {
		s.at++
	}
}

// peek is the next character, or 0 at the end.
func (s *scanner) peek() rune {
	if s.at >= len(s.text) {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.at:])
	return r
}

func (s *scanner) unexpected(wanted string) error {
	switch r := s.peek(); r {
	case 0:
		return fmt.Errorf("the text ends where %s should be", wanted)
	case ' ', '\t':
		return fmt.Errorf("there is a blank where %s should be; write “%%%%” for a plain percent sign", wanted)
	default:
		return fmt.Errorf("there is “%c” where %s should be; write “%%%%” for a plain percent sign", r, wanted)
	}
}
