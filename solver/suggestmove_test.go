package solver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"loom/app/loom"
)

// changedInput is the input with the changes of template and catalog that a way
// speaks of, those of hardware and image types among them.
func changedInput(t testing.TB, in Input, w Way) Input {
	t.Helper()
	var types []loom.HardwareType
	var images []loom.ImageType
	patch := func(kind, name string, was, is any) {
		change, _ := w.Catalog[kind].(map[string]any)
		one, ok := change[name].(map[string]any)
		var value map[string]any
		if err := json.Unmarshal([]byte(toJSON(t, was)), &value); err != nil {
			t.Fatal(err)
		}
		if ok {
			value = loom.MergePatch(value, one)
		}
		if err := json.Unmarshal([]byte(toJSON(t, value)), is); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range in.HardwareTypes {
		var is loom.HardwareType
		patch("hardwaretypes", h.Name, h, &is)
		types = append(types, is)
	}
	for _, i := range in.ImageTypes {
		var is loom.ImageType
		patch("imagetypes", i.Name, i, &is)
		images = append(images, is)
	}
	in = applied(t, in, loom.Suggestion{Template: w.Template, Catalog: w.Catalog})
	in.HardwareTypes, in.ImageTypes = types, images
	return in
}

// moveSolves asks the oracles whether a refused move works with a way applied.
func moveSolves(t testing.TB, c Cluster, m move, w Way) bool {
	t.Helper()
	in := changedInput(t, c.Input, w)
	nodes := bare(c.Nodes)
	if w.Machines > 0 {
		m.total = w.Machines
	}
	if w.Nodes != nil {
		m.ids = w.Nodes
	}
	if w.Services != nil {
		m.services = w.Services
	}
	on := map[string]int{}
	for _, n := range nodes {
		for _, s := range n.Services {
			on[s]++
		}
	}
	switch m.kind {
	case expandMove:
		in.HardwareType = firstSet(w.HardwareType, in.HardwareType)
		in.ImageType = firstSet(w.ImageType, in.ImageType)
		p, _, _ := Cluster{in, c.Nodes}.problem(nil, nil, m.total)
		if m.total <= len(nodes) || len(p.HardwareTypes) == 0 || len(p.ImageTypes) == 0 || unmet(in, on) {
			return false
		}
		_, ok := expandOracle(in, p, nodes, m.total-len(nodes))
		return ok
	case shrinkMove:
		if m.total < 1 || m.total >= len(nodes) {
			return false
		}
		_, ok := shrinkOracle(in, nodes, len(nodes)-m.total)
		return ok
	case nodesMove:
		var gone []int
		for _, id := range m.ids {
			i := slices.IndexFunc(c.Nodes, func(n Node) bool { return n.ID == id })
			if i < 0 {
				return false
			}
			gone = append(gone, i)
		}
		return len(gone) < len(nodes) && !shrunkBreaks(in, nodes, gone)
	default:
		hardware := firstSet(w.HardwareType, m.hardware)
		usable := slices.ContainsFunc(in.HardwareTypes, func(h loom.HardwareType) bool {
			return h.Name == hardware && h.ProviderMap[in.Provider]["flavor"] != ""
		})
		found := false
		for i, n := range nodes {
			if len(m.services) == 0 || slices.ContainsFunc(m.services, func(s string) bool { return slices.Contains(n.Services, s) }) {
				nodes[i].HardwareType, found = hardware, true
			}
		}
		return usable && found && !breaks(in, nodes) && !unmet(in, on)
	}
}

// refusedMoves is a corpus of refused changes of machines, of one kind.
func refusedMoves(t testing.TB, kind moveKind, seed uint64, n int, use func(c Cluster, m move, unsat *loom.Unsat, ways []Way)) {
	t.Helper()
	r := rand.New(rand.NewPCG(31, seed))
	ctx := context.Background()
	for found, tries := 0, 0; found < n; tries++ {
		if tries > 60*n {
			t.Fatalf("only %d refusals in %d requests", found, tries)
		}
		most := 6
		if kind == expandMove {
			most = 3
		}
		c, _ := randomCluster(r, most)
		optional(r, &c)
		disturb(r, &c)
		m := move{kind: kind}
		var unsat *loom.Unsat
		var err error
		var ways []Way
		switch kind {
		case expandMove:
			m.total = len(c.Nodes) + 1 + r.IntN(3)
			if _, unsat, err = Expand(ctx, c, m.total); unsat != nil {
				ways = SuggestExpand(ctx, c, m.total, unsat)
			}
		case shrinkMove:
			if len(c.Nodes) < 2 {
				continue
			}
			m.total = 1 + r.IntN(len(c.Nodes)-1)
			if _, unsat, err = Shrink(ctx, c, m.total); unsat != nil {
				ways = SuggestShrink(ctx, c, m.total, unsat)
			}
		case nodesMove:
			for _, node := range c.Nodes {
				if r.IntN(2) == 0 {
					m.ids = append(m.ids, node.ID)
				}
			}
			if r.IntN(10) == 0 {
				m.ids = append(m.ids, "none")
			}
			if len(m.ids) == 0 {
				continue
			}
			if _, unsat, err = ShrinkNodes(ctx, c, m.ids); unsat != nil {
				ways = SuggestShrinkNodes(ctx, c, m.ids, unsat)
			}
		default:
			m.hardware = []string{"h1", "h2", "h3"}[r.IntN(3)]
			for _, s := range c.Input.Services {
				if r.IntN(3) == 0 {
					m.services = append(m.services, s)
				}
			}
			if _, unsat, err = Resize(ctx, c, m.hardware, m.services); unsat != nil {
				ways = SuggestResize(ctx, c, m.hardware, m.services, unsat)
			}
		}
		if err != nil {
			t.Fatalf("%+v of %s: %v", m, toJSON(t, c), err)
		}
		if unsat != nil {
			found++
			use(c, m, unsat, ways)
		}
	}
}

// hopeless are refusals that no suggestion can help, since what they lack is in
// neither request, template nor an entry that can be changed: a service, or a
// hardware type to resize to, that the catalog does not know, a cluster
// of one machine, which cannot lose it, and services that are nowhere where every
// node has the hardware type already.
func hopeless(c Cluster, m move, unsat *loom.Unsat) string {
	for s := range slices.Values(c.services()) {
		if _, known := c.Input.Catalog[s]; !known {
			return CodeUnknown
		}
	}
	if m.kind == resizeMove && unsat.Reasons[0].ID == "known.hardwaretypes" {
		return unsat.Reasons[0].ID
	}
	if m.kind == nodesMove && len(c.Nodes) == 1 {
		return "one machine"
	}
	other := func(n Node) bool { return n.HardwareType != m.hardware }
	here := func(s string) bool { return slices.Contains(c.services(), s) }
	if m.kind == resizeMove && len(m.services) > 0 && !slices.ContainsFunc(m.services, here) && !slices.ContainsFunc(c.Nodes, other) {
		return "nothing to resize"
	}
	return ""
}

func TestSuggestionsForMachines(t *testing.T) {
	t.Parallel()
	for kind, name := range map[moveKind]string{expandMove: "expand", shrinkMove: "shrink", nodesMove: "nodes", resizeMove: "resize"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			codes, without, offered, changes := map[string]int{}, map[string]int{}, 0, 0
			refusedMoves(t, kind, 1, rounds(t, 600), func(c Cluster, m move, unsat *loom.Unsat, ways []Way) {
				codes[unsat.Code]++
				if len(unsat.Reasons) == 0 || unsat.Headline == "" {
					t.Fatalf("no reasons: %+v", unsat)
				}
				if len(ways) == 0 {
					why := hopeless(c, m, unsat)
					without[why]++
					if why == "" {
						t.Fatalf("no suggestion for %+v of %s\nreasons %+v", m, toJSON(t, c), unsat.Reasons)
					}
				}
				for _, w := range ways {
					offered++
					if w.Template != nil || w.Catalog != nil {
						changes++
					}
					if !moveSolves(t, c, m, w) {
						t.Fatalf("%s does not help %+v of %s", toJSON(t, w), m, toJSON(t, c))
					}
					for _, d := range drops(w.Suggestion) {
						if less := (Way{d, w.Nodes, w.Services}); moveSolves(t, c, m, less) {
							t.Fatalf("%s holds more than is needed, %s would do for %+v of %s", toJSON(t, w), toJSON(t, less), m, toJSON(t, c))
						}
					}
				}
				checkNearest(t, c, m, unsat, ways)
			})
			t.Logf("%v, %d suggestions, %d of them of template or catalog; none for %v", codes, offered, changes, without)
			if len(codes) < 2 || changes == 0 || offered == changes {
				t.Errorf("the corpus says little: %v", codes)
			}
		})
	}
}

// checkNearest checks by the oracles that what is offered in place of a total, of
// nodes or of services is as near as can be, and offered whenever there is one.
func checkNearest(t testing.TB, c Cluster, m move, unsat *loom.Unsat, ways []Way) {
	t.Helper()
	plain := func(w Way) bool {
		return w.Template == nil && w.Catalog == nil && w.HardwareType == "" && w.ImageType == ""
	}
	works := func(n int) bool { return moveSolves(t, c, m, Way{Suggestion: loom.Suggestion{Machines: n}}) }
	fail := func(what string, n any) {
		t.Fatalf("%s %v, offered %s to %+v of %s\n%+v", what, n, toJSON(t, ways), m, toJSON(t, c), unsat)
	}
	offers := func(n int) bool {
		return slices.ContainsFunc(ways, func(w Way) bool { return plain(w) && w.Machines == n })
	}
	switch m.kind {
	case expandMove, shrinkMove:
		most := len(c.Nodes) + 5
		var right []int
		for n := 1; n < most; n++ {
			if works(n) {
				right = append(right, n)
			}
		}
		for _, w := range ways {
			if w.Machines > 0 && !works(w.Machines) && plain(w) {
				fail("wrong total", w.Machines)
			}
		}
		below, above := 0, 0
		for _, n := range right {
			if n < m.total {
				below = n
			} else if above == 0 {
				above = n
			}
		}
		for _, n := range []int{below, above} {
			if n > 0 && !offers(n) {
				fail("nearest total", n)
			}
		}
		if len(right) > 0 && right[len(right)-1]-right[0] == len(right)-1 {
			if s := unsat.Sizes; s == nil || s.Min != right[0] || m.kind == shrinkMove && s.Max != right[len(right)-1] {
				fail("sizes", right)
			}
		} else if unsat.Sizes != nil && len(right) > 0 {
			fail("sizes are not a range", right)
		}
	case nodesMove:
		most, same := 0, false
		for mask := 1; mask < 1<<len(c.Nodes); mask++ {
			var ids []string
			for i, n := range c.Nodes {
				if mask&(1<<i) != 0 {
					ids = append(ids, n.ID)
				}
			}
			if moveSolves(t, c, m, Way{Nodes: ids}) {
				same = same || len(ids) == len(m.ids)
				if !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(m.ids, id) }) {
					most = max(most, len(ids))
				}
			}
		}
		best, also := 0, false
		for _, w := range ways {
			also = also || plain(w) && len(w.Nodes) == len(m.ids)
			if plain(w) && !slices.ContainsFunc(w.Nodes, func(id string) bool { return !slices.Contains(m.ids, id) }) {
				best = max(best, len(w.Nodes))
			}
		}
		if best != most || also != same {
			fail("named nodes that can go, as many others", fmt.Sprint(most, same))
		}
	case resizeMove:
		for _, w := range ways {
			for _, s := range m.services {
				if slices.Contains(c.services(), s) && plain(w) && !slices.Contains(w.Services, s) && slices.Contains(m.services, w.Services[0]) &&
					moveSolves(t, c, m, Way{Services: append(slices.Clone(w.Services), s)}) {
					fail("another service can go with these", s)
				}
			}
		}
	}
}
