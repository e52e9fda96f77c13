package macro

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"loom/app/loom"
)

// Expand gives a config with the macros of all string values filled for the node
// self. Keys and other values never change, and the config itself is not touched: what
// holds no macros is shared with it, so change neither. A macro that cannot be filled
// stays in the text and is in the problems, ordered by pointer and column; the first
// MaxProblems mistakes and warnings have a pointer.
func (f *Facts) Expand(config map[string]any, self loom.NodeID) (map[string]any, []Problem) {
	return f.ExpandAt(config, nil, self)
}

// ExpandAt is Expand limited to the value at a path of keys. A path that does
// not exist changes nothing.
func (f *Facts) ExpandAt(config map[string]any, path []string, self loom.NodeID) (map[string]any, []Problem) {
	if config == nil {
		return nil, nil
	}
	of := reflect.ValueOf(config).Pointer()
	f.mu.Lock()
	last := f.last
	f.mu.Unlock()
	if len(path) == 0 && last.of == of {
		return last.expanded, last.problems
	}
	e := expansion{facts: f, self: self}
	w := walker{named: MaxProblems, text: e.text}
	walked, _ := w.atPath(config, path, 1)
	expanded, _ := walked.(map[string]any)
	if len(path) == 0 && !e.ofSelf {
		f.mu.Lock()
		f.last = shared{of, config, expanded, w.problems}
		f.mu.Unlock()
	}
	return expanded, w.problems
}

// shared is an expansion that is the same for all nodes.
type shared struct {
	// of is the address of config, which is kept so that no other one gets it.
	of       uintptr
	config   map[string]any
	expanded map[string]any
	problems []Problem
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
// MaxProblems mistakes, and says of as many warnings where they are. What a macro gives is measured, not made, and once only.
func (f *Facts) Check(config map[string]any) []Problem {
	known := map[string]result{}
	w := walker{most: MaxProblems, named: MaxProblems, text: func(text string) (string, []Problem) {
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
	w.walk(config, 1)
	return w.problems
}

// Validate reports the mistakes in the macros of a config that can be known
// without a cluster, the first MaxProblems; there are no warnings among them.
func Validate(config map[string]any) []Problem {
	w := walker{most: MaxProblems, text: func(text string) (string, []Problem) { return text, ValidateText(text) }}
	w.walk(config, 1)
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
	// ofSelf says that something depends on self.
	ofSelf bool
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
		e.ofSelf = e.ofSelf || s.expr.ref.ofSelf()
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

// walker hands each string value of a config to text, and copies what leads to those that
// it changes.
type walker struct {
	text     func(string) (string, []Problem)
	problems []Problem
	// most, if set, is how many mistakes end the walk; warnings do not count.
	most, mistakes int
	// named, if set, is how many mistakes and how many warnings say where they are; the
	// others are for counting.
	named, warnings int

	at loom.JSONPath
	// pointer is that of at once somebody asked for it, "" before.
	pointer string
}

// atPath walks the value at a path only.
func (w *walker) atPath(value any, path []string, depth int) (walked any, changed bool) {
	if len(path) == 0 {
		return w.walk(value, depth)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return value, false
	}
	child, ok := object[path[0]]
	if !ok {
		return value, false
	}
	w.key(path[0])
	child, changed = w.atPath(child, path[1:], depth+1)
	w.up()
	if changed {
		object = maps.Clone(object)
		object[path[0]] = child
	}
	return object, changed
}

// walk gives the value itself where nothing in it changed.
func (w *walker) walk(value any, depth int) (walked any, changed bool) {
	if w.full() {
		return value, false
	}
	switch v := value.(type) {
	case string:
		text, problems := w.text(v)
		for _, p := range problems {
			if w.full() {
				break
			}
			w.add(p)
		}
		if text == v {
			return value, false
		}
		return text, true
	case map[string]any:
		if v == nil || w.tooDeep(depth) {
			return value, false
		}
		object := v
		for _, key := range slices.Sorted(maps.Keys(v)) {
			w.key(key)
			child, other := w.walk(v[key], depth+1)
			w.up()
			if !other {
				continue
			}
			if !changed {
				object, changed = maps.Clone(v), true
			}
			object[key] = child
		}
		return object, changed
	case []any:
		if v == nil || w.tooDeep(depth) {
			return value, false
		}
		array := v
		for i := range v {
			w.pointer = ""
			w.at.Index(i)
			child, other := w.walk(v[i], depth+1)
			w.up()
			if !other {
				continue
			}
			if !changed {
				array, changed = slices.Clone(v), true
			}
			array[i] = child
		}
		return array, changed
	}
	return value, false
}

func (w *walker) key(key string) {
	w.pointer = ""
	w.at.Key(key)
}

func (w *walker) up() {
	w.pointer = ""
	w.at.Up()
}

func (w *walker) tooDeep(depth int) bool {
	if depth <= MaxDepth {
		return false
	}
	w.add(Problem{Severity: Limit, Reason: fmt.Sprintf("the config is nested deeper than %d levels", MaxDepth)})
	return true
}

func (w *walker) add(p Problem) {
	n := &w.mistakes
	if p.Warning() {
		n = &w.warnings
	}
	if *n++; w.named == 0 || *n <= w.named {
		if w.pointer == "" {
			w.pointer = w.at.Pointer()
		}
		p.Pointer = w.pointer
	}
	w.problems = append(w.problems, p)
}

func (w *walker) full() bool { return w.most > 0 && w.mistakes >= w.most }
