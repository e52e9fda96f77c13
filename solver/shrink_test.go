package solver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"loom/app/loom"
)

// bonded is an input with the rules of a problem, these bonds and nothing else
// that speaks against shrinking.
func bonded(in Input, p Problem, services []string, bonds []shrinkRule) Input {
	in = ruled(in, p)
	in.Catalog = map[string]loom.Service{}
	for _, s := range services {
		in.Catalog[s] = loom.Service{Base: loom.Base{Name: s}}
	}
	for i, b := range bonds {
		s := in.Catalog[b.service]
		switch b.kind {
		case mustStay:
			s.Shrink = "refuse"
		case mustGo:
			allowed := in.Template.Compatibility.Services
			if allowed == nil {
				allowed = append([]string{"none"}, services...)
			}
			in.Template.Compatibility.Services = slices.DeleteFunc(slices.Clone(allowed), func(n string) bool { return n == b.service })
		case needsOther:
			name := fmt.Sprintf("need%d", i)
			s.Dependencies.Install.Requires = append(s.Dependencies.Install.Requires, name)
			for _, o := range b.others {
				other := in.Catalog[o]
				other.Dependencies.Provides = append(other.Dependencies.Provides, name)
				in.Catalog[o] = other
			}
		case conflictsWith:
			s.Dependencies.Conflicts = append(s.Dependencies.Conflicts, b.others[0])
		}
		in.Catalog[b.service] = s
	}
	return in
}

func TestReasonsForShrinkingAreMinimal(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(33, 1))
	found, bound := 0, 0
	for range rounds(t, 3000) {
		c, _ := randomCluster(r, 6)
		optional(r, &c)
		disturb(r, &c)
		c.Input.Template.Constraints.Size = loom.SizeConstraint{}
		if len(c.Nodes) < 2 {
			continue
		}
		less := 1 + r.IntN(len(c.Nodes)-1)
		_, unsat, err := Shrink(context.Background(), c, len(c.Nodes)-less)
		if err != nil {
			t.Fatal(err)
		}
		if unsat == nil || unsat.Reasons[0].ID == "services" {
			continue
		}
		found++
		p, nodes, _ := c.problem(nil, nil, len(c.Nodes)-less)
		p, _ = columns(p, nodes)
		named := func(id string) bool {
			return slices.ContainsFunc(unsat.Reasons, func(r loom.Reason) bool { return r.ID == id })
		}
		w := words{p: p}
		keep := slices.DeleteFunc(rules(p), func(x rule) bool { return !named(w.reason(x).ID) })
		bonds := slices.DeleteFunc(c.shrinkRules(), func(b shrinkRule) bool { return !named(b.reason.ID) })
		bound += len(bonds)
		if len(keep)+len(bonds) != len(unsat.Reasons) {
			t.Fatalf("reasons %+v are not all rules of %s", unsat.Reasons, toJSON(t, c))
		}
		some := func(keep []rule, bonds []shrinkRule) bool {
			_, ok := shrinkOracle(bonded(c.Input, p.restrictTo(keep), c.services(), bonds), bare(c.Nodes), less)
			return ok
		}
		if some(keep, bonds) {
			t.Fatalf("take %d of %s\nreasons %+v alone leave a way", less, toJSON(t, c), unsat.Reasons)
		}
		for i := range keep {
			if !some(slices.Delete(slices.Clone(keep), i, i+1), bonds) {
				t.Fatalf("take %d of %s\n%+v is not needed of %+v", less, toJSON(t, c), w.reason(keep[i]), unsat.Reasons)
			}
		}
		for i := range bonds {
			if !some(keep, slices.Delete(slices.Clone(bonds), i, i+1)) {
				t.Fatalf("take %d of %s\n%+v is not needed of %+v", less, toJSON(t, c), bonds[i].reason, unsat.Reasons)
			}
		}
	}
	t.Logf("%d refusals, %d reasons beside the template's", found, bound)
	if found < 100 || bound < 10 {
		t.Errorf("only %d refusals, %d reasons beside the template's", found, bound)
	}
}

// A node that lacks the companion of its service is as it should be once that is
// nowhere; what an optional service requires keeps it from being taken first.
func TestShrinkLetsOptionalServicesVanish(t *testing.T) {
	t.Parallel()
	zero := 0
	optional := loom.ServiceConstraint{Quantities: &loom.Quantities{Min: &zero}}
	in := testInput(2, []string{"agent", "web"}, []string{"h"}, []string{"i"}, loom.Constraints{
		Services: map[string]loom.ServiceConstraint{"agent": optional},
		Layout:   loom.LayoutConstraints{MustCoexist: [][]string{{"agent", "web"}}},
	})
	node := func(id string, services ...string) Node {
		return Node{id, loom.NodeLayout{HardwareType: "h", ImageType: "i", Services: services}}
	}
	c := Cluster{Input: in, Nodes: []Node{node("x", "web"), node("y", "agent"), node("z", "web")}}
	out, unsat, err := Shrink(context.Background(), c, 2)
	if err != nil || unsat != nil || fmt.Sprint(out.Leaving) != "[y]" {
		t.Errorf("%v %+v %v", out.Leaving, unsat, err)
	}
	if _, unsat, err := ShrinkNodes(context.Background(), c, []string{"y"}); err != nil || unsat != nil {
		t.Errorf("%+v %v", unsat, err)
	}
	// A cluster that is too large to search in the time there is gets no "no".
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Shrink(ctx, c, 2); !errors.Is(err, loom.Unavailable) {
		t.Errorf("got %v", err)
	}
}
