package loom_test

import (
	"fmt"
	"testing"

	"loom/app/loom"
)

func TestRequiredServices(t *testing.T) {
	t.Parallel()
	s := func(provides []string, install, runtime []string) loom.Service {
		return loom.Service{Dependencies: loom.Dependencies{Provides: provides, Install: loom.PhaseDependency{Requires: install}, Runtime: loom.PhaseDependency{Requires: runtime}}}
	}
	catalog := map[string]loom.Service{
		"base": s(nil, nil, nil), "java": s(nil, []string{"base"}, nil), "app": s(nil, []string{"java"}, []string{"database"}),
		"mysql": s([]string{"database"}, []string{"base"}, nil), "pg": s([]string{"database"}, []string{"base"}, nil),
		"front": s(nil, nil, []string{"cache"}), "redis": s([]string{"cache"}, []string{"base"}, nil),
		"a": s(nil, []string{"b"}, nil), "b": s(nil, []string{"a"}, nil), "lost": s(nil, []string{"nowhere"}, nil),
	}
	for _, c := range []struct{ chosen, add, open string }{
		{"[]", "[]", "[]"},
		{"[base]", "[]", "[]"},
		{"[java]", "[base]", "[]"},
		{"[app]", "[base java]", "[{database [app] [mysql pg]}]"},
		{"[app pg]", "[base java]", "[]"},
		{"[front]", "[base redis]", "[]"},
		{"[a]", "[b]", "[]"},
		{"[lost]", "[]", "[{nowhere [lost] []}]"},
		{"[unknown]", "[]", "[]"},
	} {
		var chosen []string
		for _, name := range []string{"base", "java", "app", "pg", "front", "a", "lost", "unknown"} {
			if fmt.Sprint([]string{name}) == c.chosen || c.chosen == "[app pg]" && (name == "app" || name == "pg") {
				chosen = append(chosen, name)
			}
		}
		add, open := loom.RequiredServices(chosen, catalog)
		if fmt.Sprint(chosen) != c.chosen || fmt.Sprint(add) != c.add || fmt.Sprint(open) != c.open {
			t.Errorf("%s: add %v, open %v; want %s, %s", c.chosen, add, open, c.add, c.open)
		}
		// What is added needs nothing more.
		if more, _ := loom.RequiredServices(append(chosen, add...), catalog); len(more) > 0 {
			t.Errorf("%s: still lacks %v", c.chosen, more)
		}
	}
}
