package macro

import "strings"

// Mention is a macro that names a service.
type Mention struct {
	// Pointer is the JSON pointer of the value.
	Pointer string
	// Macro is the macro as it is written, shortened when it is long.
	Macro   string
	Service string
}

// Mentions lists the macros of a config that name a service, in the order in
// which Validate looks at values. Macros of wrong syntax are left out.
func Mentions(config map[string]any) []Mention {
	var all []Mention
	w := walker{}
	w.text = func(text string) (string, []Problem) {
		if !strings.Contains(text, "%") {
			return text, nil
		}
		t, _ := parse(text)
		var named []Problem
		for _, s := range t.segments {
			if s.expr != nil && s.expr.ref.service != "" {
				named = append(named, Problem{Macro: shorten(s.text), Reason: s.expr.ref.service}) // the walker knows where
			}
		}
		return text, named
	}
	w.walk(config, "", 1)
	for _, p := range w.problems {
		if p.Reason != "" && p.Macro != "" {
			all = append(all, Mention{p.Pointer, p.Macro, p.Reason})
		}
	}
	return all
}
