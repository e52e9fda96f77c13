package solver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
)

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("s%04d", i)
	}
	return names
}

// plainInput has two services, one kind of machine and no constraint.
func plainInput() Input {
	at := map[string]map[string]string{"p": {"flavor": "f", "image": "i"}}
	return Input{Provider: "p", Machines: 1, MaxMachines: 100,
		Catalog:       map[string]loom.Service{"web": {}, "db": {}},
		HardwareTypes: []loom.HardwareType{{Base: loom.Base{Name: "h"}, ProviderMap: at}},
		ImageTypes:    []loom.ImageType{{Base: loom.Base{Name: "i"}, ProviderMap: at}},
	}
}

func plainCluster() Cluster {
	return Cluster{Input: plainInput(), Nodes: []Node{{ID: "1", NodeLayout: loom.NodeLayout{HardwareType: "h", ImageType: "i", Services: []string{"web"}}}}}
}

// TestEveryTryCosts: tries end once the steps are spent, and at once when time is up, also
// those that no search belongs to. A change of the template counts them.
func TestEveryTryCosts(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	removed := plainCluster()
	for name, c := range map[string]struct {
		ctx  context.Context
		ask  request
		left int
		most int
	}{
		"new":           {t.Context(), request{in: plainInput()}, 5000, 5000 / 145},
		"add":           {t.Context(), request{in: removed.Input, nodes: removed.Nodes, add: numbered(500)}, 5000, 5000 / 145},
		"remove":        {t.Context(), request{in: removed.Input, nodes: removed.Nodes, remove: numbered(500)}, 5000, 5000 / 145},
		"time is up":    {over, request{in: plainInput()}, 5000, 0},
		"nothing spent": {t.Context(), request{in: plainInput()}, 0, 0},
	} {
		if !c.ask.onCluster() {
			c.ask.in.Services = numbered(500)
		}
		tries := 0
		g := suggester{ctx: c.ctx, ask: c.ask, left: c.left}
		parts := []part{{kind: templatePart, change: func(*loom.Template) { tries++ }}}
		for _, s := range numbered(400) {
			parts = append(parts, machines(1), part{kind: templatePart, words: s, change: func(*loom.Template) {}})
		}
		kept := g.needed(parts)
		if tries > c.most+1 || len(kept) == 0 {
			t.Errorf("%s: %d tries, want at most %d; %d steps are left", name, tries, c.most+1, g.left)
		}
		if c.most > 0 && g.left > 0 {
			t.Errorf("%s: it stopped after %d tries with %d steps left", name, tries, g.left)
		}
	}
}

// TestAnswersAboutManyServicesAreShort: reasons and wordings of suggestions name a few, and
// say how many more there are.
func TestAnswersAboutManyServicesAreShort(t *testing.T) {
	t.Parallel()
	in, names := plainInput(), append(numbered(500), "web")
	in.Services = names
	_, _, made, err := Create(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	c := plainCluster()
	_, added, err := Add(t.Context(), c, numbered(500))
	if err != nil {
		t.Fatal(err)
	}
	added.Suggestions = SuggestChange(t.Context(), c, numbered(500), nil, added)
	_, gone, err := Remove(t.Context(), c, numbered(500))
	if err != nil {
		t.Fatal(err)
	}
	gone.Suggestions = SuggestChange(t.Context(), c, nil, numbered(500), gone)
	for name, unsat := range map[string]*loom.Unsat{"new": made, "add": added, "remove": gone} {
		text, err := json.Marshal(unsat.Reasons)
		if err != nil {
			t.Fatal(err)
		}
		last := unsat.Reasons[len(unsat.Reasons)-1].Message
		if len(unsat.Reasons) != 21 || last != "And 480 more." || len(text) > 4000 || !strings.Contains(unsat.Headline, "500 problems") {
			t.Errorf("%s: %s: %d reasons of %d bytes, at last %q", name, unsat.Headline, len(unsat.Reasons), len(text), last)
		}
		for _, s := range unsat.Suggestions {
			if len(s.Label) > 500 {
				t.Errorf("%s: a suggestion takes %d bytes to word: %.80s…", name, len(s.Label), s.Label)
			}
		}
	}
}

// TestExplanationsEndWithTheirTime: a question whose time is up is not asked.
func TestExplanationsEndWithTheirTime(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	asked := 0
	c := conflict{ctx: over, left: explainSteps, p: Problem{Nodes: []Column{{Count: 1}}},
		test: func(Problem) (bool, int, error) { asked++; return false, 0, nil }}
	if c.clashes(nil) || asked > 0 || c.left > 0 {
		t.Errorf("%d questions were asked when time was up; %d steps are left", asked, c.left)
	}
	c.ctx, c.left = t.Context(), explainSteps
	if !c.clashes(nil) || asked != 1 {
		t.Errorf("%d questions were asked in time", asked)
	}
}

// BenchmarkUnknownServices asks for services that are not there.
func BenchmarkUnknownServices(b *testing.B) {
	for _, n := range []int{20, 100, 200, 400, 800} {
		b.Run(fmt.Sprintf("create/%d", n), func(b *testing.B) {
			in := plainInput()
			in.Services = numbered(n)
			for b.Loop() {
				if _, _, unsat, err := Create(b.Context(), in); err != nil || unsat == nil {
					b.Fatal(unsat, err)
				}
			}
		})
		b.Run(fmt.Sprintf("add/%d", n), func(b *testing.B) {
			c := plainCluster()
			for b.Loop() {
				_, unsat, _ := Add(b.Context(), c, numbered(n))
				SuggestChange(b.Context(), c, numbered(n), nil, unsat)
			}
		})
		b.Run(fmt.Sprintf("remove/%d", n), func(b *testing.B) {
			c := plainCluster()
			for b.Loop() {
				_, unsat, _ := Remove(b.Context(), c, numbered(n))
				SuggestChange(b.Context(), c, nil, numbered(n), unsat)
			}
		})
	}
}
