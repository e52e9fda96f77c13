package solver

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

func toJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkAgainstOracle states what must hold of every answer.
func checkAgainstOracle(t testing.TB, p Problem) {
	t.Helper()
	ctx := context.Background()
	want, ok := oracle(p)
	got, unsat, err := Solve(ctx, p)
	if err != nil {
		t.Fatalf("%v\n%s", err, toJSON(t, p))
	}
	if ok != (unsat == nil) || ok && !reflect.DeepEqual(got, want) {
		t.Fatalf("problem %s\ngot  %s %+v\nwant %s", toJSON(t, p), toJSON(t, got), unsat, toJSON(t, want))
	}
	sizes, any, err := Sizes(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if inside := any && sizes.Min <= p.Machines && p.Machines <= sizes.Max; inside != ok {
		t.Fatalf("problem %s\nsizes %v %v, solvable %v", toJSON(t, p), sizes, any, ok)
	}
	if ok {
		if broken := Valid(p, got); len(broken) > 0 {
			t.Fatalf("problem %s\nlayout %s breaks %+v", toJSON(t, p), toJSON(t, got), broken)
		}
		return
	}
	if (unsat.Sizes != nil) != any || any && *unsat.Sizes != sizes {
		t.Fatalf("problem %s\nsizes %v, in the answer %v", toJSON(t, p), sizes, unsat.Sizes)
	}
	checkMinimal(t, p, unsat)
}

// checkMinimal checks with the oracle that reasons are minimal: the reasons alone leave no
// layout, and any one less leaves one.
func checkMinimal(t testing.TB, p Problem, unsat *loom.Unsat) {
	t.Helper()
	if unsat.Code == CodeSize {
		return
	}
	var keep []rule
	machines := false
	for _, r := range unsat.Reasons {
		if r.ID == "M" {
			machines = true
			continue
		}
		found := false
		w := words{p: p}
		for _, rule := range rules(p) {
			if w.reason(rule).ID == r.ID {
				keep, found = append(keep, rule), true
			}
		}
		if !found {
			t.Fatalf("reason %+v names no constraint of %s", r, toJSON(t, p))
		}
	}
	some := func(keep []rule, machines bool) bool {
		q := p.restrictTo(keep)
		q.Size = loom.SizeRange{Min: 1, Max: loom.Unlimited}
		if machines {
			_, ok := oracle(q)
			return ok
		}
		// More machines than all minima need never help.
		for q.Machines = 1; q.Machines <= 12; q.Machines++ {
			if _, ok := oracle(q); ok {
				return true
			}
		}
		return false
	}
	if some(keep, machines) {
		t.Fatalf("problem %s\nreasons %+v alone have a layout", toJSON(t, p), unsat.Reasons)
	}
	for i := range keep {
		if !some(slices.Delete(slices.Clone(keep), i, i+1), machines) {
			t.Fatalf("problem %s\nreason %d of %+v is not needed", toJSON(t, p), i, unsat.Reasons)
		}
	}
	if machines && !some(keep, false) {
		t.Fatalf("problem %s\nthe number of machines does not matter to %+v", toJSON(t, p), unsat.Reasons)
	}
}

func TestSolveEqualsExhaustiveSearch(t *testing.T) {
	t.Parallel()
	n := rounds(t, 6000)
	r := rand.New(rand.NewPCG(1, 2))
	solvable := 0
	for range n {
		p := mustProblem(t, randomInput(r, 5, 6))
		checkAgainstOracle(t, p)
		if _, ok := oracle(p); ok {
			solvable++
		}
	}
	t.Logf("%d problems, %d solvable", n, solvable)
	if solvable < n/4 || solvable > n*9/10 {
		t.Errorf("%d of %d instances are solvable: the generator says little", solvable, n)
	}
}

func TestOrderOfInputDoesNotMatter(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 800 {
		in := randomInput(r, 6, 8)
		a, ua, err := Solve(context.Background(), mustProblem(t, in))
		if err != nil {
			t.Fatal(err)
		}
		shuffle(r, &in, false)
		b, ub, err := Solve(context.Background(), mustProblem(t, in))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(ua, ub) {
			t.Fatalf("%+v\n%v %+v\n%v %+v", in, a, ua, b, ub)
		}
		// Layout sets have numbers, which reasons show; the answer is the same.
		shuffle(r, &in, true)
		c, uc, err := Solve(context.Background(), mustProblem(t, in))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, c) || (ua == nil) != (uc == nil) {
			t.Fatalf("%+v\n%v\n%v", in, a, c)
		}
	}
}

// Every size inside the range works, at a scale the oracle cannot reach.
func TestMonotoneInMachines(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		p := mustProblem(t, randomInput(r, 8, 1))
		sizes, any, err := Sizes(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		for m := 1; m <= 40; m++ {
			p.Machines = m
			l, unsat, err := Solve(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			if inside := any && sizes.Min <= m && m <= sizes.Max; inside != (unsat == nil) {
				t.Fatalf("problem %s\nsizes %v, unsat %+v", toJSON(t, p), sizes, unsat)
			}
			if unsat == nil && len(Valid(p, l)) > 0 {
				t.Fatalf("problem %s\nlayout %s", toJSON(t, p), toJSON(t, l))
			}
		}
	}
}

// Without a minimum the predecessor may put a service nowhere. Where
// its complete search places all of them, the answer is the same.
func TestSameAsThePredecessorWhereItPlacesAll(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(12, 13))
	same := 0
	for range 1500 {
		in := randomInput(r, 4, 5)
		in.Template.Preferences = nil
		p := mustProblem(t, in)
		old := p
		old.Services = slices.Clone(p.Services)
		for i, s := range old.Services {
			if sc := in.Template.Constraints.Services[s.Name]; sc.Quantities == nil || sc.Quantities.Min == nil {
				old.Services[i].Min = 0
			}
		}
		before, ok := oracle(old)
		if !ok || strings.Contains(toJSON(t, Valid(p, before)), ".min") {
			continue
		}
		after, unsat, err := Solve(context.Background(), p)
		if err != nil || unsat != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("problem %s\nbefore %s\nafter  %s %v %v", toJSON(t, p), toJSON(t, before), toJSON(t, after), unsat, err)
		}
		same++
	}
	if same < 300 {
		t.Errorf("only %d comparable instances", same)
	}
}
