package macro

import "strings"

// Mention is a macro, and what it names.
type Mention struct {
	// Pointer is the JSON pointer of the value.
	Pointer string
	// Macro is the macro as it is written, shortened when it is long.
	Macro string
	// Service is the service that it names, Address the type of address that it asks
	// for; "" for none.
	Service, Address string
	// Index is which node of the service it asks for, -1 for all.
	Index int
	// Self says that its value depends on the node that asks.
	Self bool
}

// Mentions lists the macros of a config, in the order in which Validate looks at values.
// Macros of wrong syntax are left out.
func Mentions(config map[string]any) []Mention {
	var all []Mention
	w := walker{}
	w.text = func(text string) (string, []Problem) {
		if !strings.Contains(text, "%") {
			return text, nil
		}
		t, _ := parse(text)
		var named []Problem // the walker knows where
		for _, s := range t.segments {
			if s.expr != nil {
				r := s.expr.ref
				all = append(all, Mention{Macro: shorten(s.text), Service: r.service, Address: r.address, Index: r.index, Self: r.ofSelf()})
				named = append(named, Problem{Severity: Absent, Column: len(all)})
			}
		}
		return text, named
	}
	w.walk(config, 1)
	for _, p := range w.problems {
		if p.Severity == Absent {
			all[p.Column-1].Pointer = p.Pointer
		}
	}
	return all
}
