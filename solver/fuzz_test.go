package solver

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"loom/app/loom"
)

func FuzzSolve(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(seed%7))
	}
	f.Fuzz(func(t *testing.T, seed uint64, machines uint8) {
		in := randomInput(rand.New(rand.NewPCG(seed, 11)), 5, 6)
		in.Machines = int(machines % 7)
		checkAgainstOracle(t, mustProblem(t, in))
	})
}

// FuzzTemplate feeds whatever JSON makes a template, valid or not: no panic, and
// no layout that breaks a rule.
func FuzzTemplate(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, 3)
	}
	f.Add([]byte(`{"defaults":{"services":["a","a",""]},"constraints":{"size":{"min":-3},"services":{"a":{"quantities":{"min":-1,"max":-2}}},"layout":{"mustcoexist":[["a","a"],[]],"cantcoexist":[["","a"]]}}}`), 0)
	f.Fuzz(func(t *testing.T, body []byte, machines int) {
		var tpl loom.Template
		if json.Unmarshal(body, &tpl) != nil {
			return
		}
		services := tpl.Defaults.Services
		for s := range tpl.Constraints.Services {
			services = append(services, s)
		}
		in := testInput(machines, services, []string{"large", "small"}, []string{"deb"}, tpl.Constraints)
		in.Template = tpl
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		p, layout, unsat, err := Create(ctx, in)
		switch {
		case err != nil:
			if !errors.Is(err, loom.Unavailable) && !errors.Is(err, loom.Invalid) {
				t.Fatal(err)
			}
		case unsat != nil:
			if unsat.Code == "" || unsat.Headline == "" || len(unsat.Reasons) == 0 {
				t.Fatalf("a no without reasons: %+v\n%s", unsat, toJSON(t, p))
			}
		default:
			if broken := Valid(p, layout); len(broken) > 0 || len(layout) == 0 {
				t.Fatalf("layout %v breaks %+v", layout, broken)
			}
		}
	})
}
