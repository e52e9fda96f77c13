package macro

import (
	"slices"
	"strings"
)

// Finding is a value whose meaning differs from that for the predecessor, whatever the cluster is.
type Finding struct {
	// Pointer is the JSON pointer of the value, "" for a single text.
	Pointer string
	// Column is where in the value, in characters, from 1.
	Column int
	// Text is the part of the value in question.
	Text string
	// Before and Now say what the predecessor made of it and what Loom makes of it.
	Before, Now string
}

// Lint lists the values of a config whose meaning differs from that for the
// predecessor, by pointer and column.
func Lint(config map[string]any) []Finding {
	var all []Finding
	w := walker{}
	at := map[string][]Finding{}
	w.text = func(text string) (string, []Problem) {
		found := LintText(text)
		if len(found) == 0 {
			return text, nil
		}
		at[text] = found
		return text, []Problem{{Macro: text}} // the walker knows where
	}
	w.walk(config, 1)
	for _, p := range w.problems {
		for _, f := range at[p.Macro] {
			f.Pointer = p.Pointer
			all = append(all, f)
		}
	}
	return all
}

const (
	syntaxError = "a syntax error"
	expands     = "a macro"
)

// LintText is Lint for one text, such as a link.
func LintText(text string) []Finding {
	if !strings.Contains(text, "%") {
		return nil
	}
	now, _ := parse(text)
	before := legacyMacros(text)
	var found []Finding
	add := func(at int, part, was, is string) {
		found = append(found, Finding{Column: column(text, at), Text: shorten(part), Before: was, Now: is})
	}
	starts := map[int]legacyMacro{}
	for _, m := range before {
		starts[m.start] = m
	}
	done := 0
	for _, s := range now.segments {
		if s.column == 0 {
			continue
		}
		doubled(add, text, done, s.at)
		end := s.at + len(s.text)
		m, same := starts[s.at]
		delete(starts, s.at)
		valid := s.expr != nil
		switch is := map[bool]string{true: expands, false: syntaxError}[valid]; {
		case !same:
			add(s.at, s.text, "text, or a part of another macro", is)
		case valid && !m.valid:
			add(s.at, s.text, syntaxError, is)
		case !valid && m.valid:
			add(s.at, s.text, expands, is)
		case valid && m.end != end:
			add(s.at, s.text, "a longer macro", is)
		}
		done = end
	}
	if now.macros > 0 {
		doubled(add, text, done, len(text))
	}
	// What is left began inside what is something else now.
	for _, m := range before {
		if _, left := starts[m.start]; left && !inside(found, text, m.start) {
			add(m.start, text[m.start:m.end], map[bool]string{true: expands, false: syntaxError}[m.valid], "text")
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return a.Column - b.Column })
	return found
}

// doubled finds the doubled signs in a piece of plain text beside a macro.
func doubled(add func(int, string, string, string), text string, from, to int) {
	for {
		i := strings.Index(text[from:to], "%%")
		if i < 0 {
			return
		}
		add(from+i, "%%", "two percent signs, as written", "one percent sign")
		from += i + 2
	}
}

// inside reports whether a finding speaks of that place already.
func inside(found []Finding, text string, at int) bool {
	c := column(text, at)
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Column <= c && c < f.Column+len([]rune(f.Text)) })
}

// legacyMacro is a macro as the predecessor found it, percent signs included.
type legacyMacro struct {
	start, end int
	valid      bool
}

// legacyMacros splits a text as the predecessor did: it skips two percent signs
// side by side wherever they stand, and takes each further pair as a macro.
func legacyMacros(text string) []legacyMacro {
	var signs []int
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			continue
		}
		if i+1 < len(text) && text[i+1] == '%' {
			i++
			continue
		}
		signs = append(signs, i)
	}
	var all []legacyMacro
	for pair := range slices.Chunk(signs, 2) {
		if len(pair) < 2 {
			break
		}
		m := legacyMacro{start: pair[0], end: pair[1] + 1}
		s := scanner{text: text[:m.end], at: m.start + 1, strict: true}
		e, err := s.expr()
		m.valid = err == nil && s.at == m.end && !synonym(e.ref)
		all = append(all, m)
	}
	return all
}

// synonym reports whether a macro has one of the forms that never worked before.
func synonym(r ref) bool {
	return (r.what == hostOfSelf || r.what == addressOfSelf) && r.service != ""
}
