package macro

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
)

// Expand gives a copy of a config with the macros of all string values filled
// for the node self. Keys and other values never change, and the config itself
// is not touched. A macro that cannot be filled stays in the text and is in
// the problems; all of them are reported, ordered by pointer and column.
func (f *Facts) Expand(config map[string]any, self loom.NodeID) (map[string]any, []Problem) {
	return f.ExpandAt(config, nil, self)
}

// ExpandAt is Expand limited to the value at a path of keys. A path that does
// not exist changes nothing.
func (f *Facts) ExpandAt(config map[string]any, path []string, self loom.NodeID) (map[string]any, []Problem) {
	if config == nil {
		return nil, nil
	}
	e := expansion{facts: f, self: self}
	w := walker{text: e.text}
	expanded, _ := w.at(config, path, "", 1).(map[string]any)
	return expanded, w.problems
}

// ExpandText fills the macros of one text; self may be "" where no node is meant.
func (f *Facts) ExpandText(text string, self loom.NodeID) (string, []Problem) {
	e := expansion{facts: f, self: self}
	return e.text(text)
}

// ExpandLink fills the macros of a link. Where anything is wrong, the text stays
// as it was written.
func (f *Facts) ExpandLink(text string, self loom.NodeID) string {
	expanded, problems := f.ExpandText(text, self)
	if errors, _ := Split(problems); len(errors) > 0 {
		return text
	}
	return expanded
}

// Lacks reports whether a text, such as a link, asks for hosts, addresses or instances
// of a service that no node of the cluster has. How many nodes have one is known
// without any, and what is only not known yet is not lacking.
func (f *Facts) Lacks(text string) bool {
	t, _ := f.parse(text)
	return slices.ContainsFunc(t.segments, func(s segment) bool {
		return s.expr != nil && s.expr.ref.service != "" && s.expr.ref.what != countOf && len(f.services[s.expr.ref.service]) == 0
	})
}

// Check reports what can be known before an operation starts, without a node
// and without addresses: wrong syntax, indexes out of range, and, as warnings,
// macros that will stay because their service is not on the cluster. It stops behind
// MaxProblems mistakes. What a macro gives is measured, not made, and once only.
func (f *Facts) Check(config map[string]any) []Problem {
	known := map[string]result{}
	w := walker{most: MaxProblems, text: func(text string) (string, []Problem) {
		t, problems := f.parse(text)
		problems = slices.Clone(problems)
		for _, s := range t.segments {
			if s.expr == nil || s.expr.ref.ofSelf() {
				continue
			}
			r, ok := known[s.text]
			if !ok {
				_, r = f.measure(s.expr, "", false)
				known[s.text] = r
			}
			if r.severity != "" {
				problems = append(problems, s.problem(r))
			}
		}
		return text, ordered(problems)
	}}
	w.walk(config, "", 1)
	return w.problems
}

// Validate reports the mistakes in the macros of a config that can be known
// without a cluster, the first MaxProblems; there are no warnings among them.
func Validate(config map[string]any) []Problem {
	w := walker{most: MaxProblems, text: func(text string) (string, []Problem) { return text, ValidateText(text) }}
	w.walk(config, "", 1)
	return w.problems
}

// ValidateText is Validate for one text, such as a link.
func ValidateText(text string) []Problem {
	_, problems := parse(text)
	return problems
}

// expansion is one call that fills macros; size adds up what it made.
type expansion struct {
	facts *Facts
	self  loom.NodeID
	size  int
}

func (e *expansion) text(text string) (string, []Problem) {
	if !strings.Contains(text, "%") {
		return text, nil
	}
	t, problems := e.facts.parse(text)
	problems = slices.Clone(problems)
	if !t.HasMacros() || len(text) > MaxValue {
		return text, problems
	}
	var out strings.Builder
	for _, s := range t.segments {
		if s.expr == nil {
			// Plain, or a macro of wrong syntax, which is in the problems already.
			out.WriteString(s.text)
			continue
		}
		r := e.facts.value(s, e.self, MaxExpansion-e.size-out.Len())
		if r.severity != "" {
			problems = append(problems, s.problem(r))
			out.WriteString(s.text)
			continue
		}
		out.WriteString(r.value)
	}
	e.size += out.Len()
	return out.String(), ordered(problems)
}

func (s segment) problem(r result) Problem {
	return Problem{Severity: r.severity, Column: s.column, Macro: shorten(s.text), Reason: r.reason}
}

func ordered(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Column - b.Column })
	return problems
}

// walker copies a config and hands each string value to text.
type walker struct {
	text     func(string) (string, []Problem)
	problems []Problem
	// most, if set, is how many mistakes end the walk; warnings do not count.
	most, mistakes int
}

// at copies the way to the value at a path and walks that value only.
func (w *walker) at(value any, path []string, pointer string, depth int) any {
	if len(path) == 0 {
		return w.walk(value, pointer, depth)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	child, ok := object[path[0]]
	if !ok {
		return value
	}
	object = maps.Clone(object)
	object[path[0]] = w.at(child, path[1:], pointer+"/"+escape(path[0]), depth+1)
	return object
}

func (w *walker) walk(value any, pointer string, depth int) any {
	if w.full() {
		return value
	}
	switch v := value.(type) {
	case string:
		text, problems := w.text(v)
		for _, p := range problems {
			if w.full() {
				break
			}
			w.add(p, pointer)
		}
		return text
	case map[string]any:
		if v == nil || w.tooDeep(pointer, depth) {
			return value
		}
		object := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			object[key] = w.walk(v[key], pointer+"/"+escape(key), depth+1)
		}
		return object
	case []any:
		if v == nil || w.tooDeep(pointer, depth) {
			return value
		}
		array := make([]any, len(v))
		for i := range v {
			array[i] = w.walk(v[i], pointer+"/"+strconv.Itoa(i), depth+1)
		}
		return array
	}
	return value
}

func (w *walker) tooDeep(pointer string, depth int) bool {
	if depth <= MaxDepth {
		return false
	}
	w.add(Problem{Severity: Limit, Reason: fmt.Sprintf("the config is nested deeper than %d levels", MaxDepth)}, pointer)
	return true
}

func (w *walker) add(p Problem, pointer string) {
	p.Pointer = pointer
	w.problems = append(w.problems, p)
	if !p.Warning() {
		w.mistakes++
	}
}

func (w *walker) full() bool { return w.most > 0 && w.mistakes >= w.most }

// escape writes a key as a part of a JSON pointer (RFC 6901).
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
