package loom_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// share says whether a node with some of the services of a cluster is allowed, by
// the rules word by word.
func share(l loom.LayoutConstraints, cluster, node []string) bool {
	for _, set := range l.MustCoexist {
		here := slices.DeleteFunc(slices.Clone(set), func(s string) bool { return !slices.Contains(cluster, s) })
		has := slices.DeleteFunc(slices.Clone(here), func(s string) bool { return !slices.Contains(node, s) })
		if len(has) > 0 && len(has) < len(here) {
			return false
		}
	}
	for _, set := range l.CantCoexist {
		if len(set) > 0 && !slices.ContainsFunc(set, func(s string) bool { return !slices.Contains(node, s) }) {
			return false
		}
	}
	return true
}

// meaning is all that a layout allows of four services, as a text.
func meaning(l loom.LayoutConstraints, names []string) string {
	var b strings.Builder
	pick := func(bits int) []string {
		var out []string
		for i, name := range names {
			if bits>>i&1 == 1 {
				out = append(out, name)
			}
		}
		return out
	}
	for cluster := range 1 << len(names) {
		for node := range 1 << len(names) {
			if node&^cluster == 0 {
				fmt.Fprintf(&b, "%t ", share(l, pick(cluster), pick(node)))
			}
		}
	}
	return b.String()
}

func randomSets(r *rand.Rand, names []string, most int) [][]string {
	var sets [][]string
	for range r.IntN(most + 1) {
		var set []string
		for _, name := range names {
			if r.IntN(2) == 0 {
				set = append(set, name)
			}
		}
		r.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
		sets = append(sets, set)
	}
	return sets
}

// The pairs of a layout are all that its must sets mean: whatever sets are made of
// pairs has those pairs, and means the same as any other sets with them.
func TestPairsAndSetsMeanTheSame(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d"}
	r := rand.New(rand.NewPCG(1, 2))
	byPairs := map[string]string{}
	for round := range 3000 {
		l := loom.LayoutConstraints{MustCoexist: randomSets(r, names, 3), CantCoexist: randomSets(r, names, 3)}
		same := l.WithPairs(l.MustPairs(), l.CantPairs())
		if !reflect.DeepEqual(l.MustCoexist, same.MustCoexist) && len(l.MustCoexist)+len(same.MustCoexist) > 0 || len(l.CantCoexist) != len(same.CantCoexist) {
			t.Fatalf("round %d: %v became %v although no pair changed", round, l, same)
		}
		want := loom.LayoutConstraints{MustCoexist: randomSets(r, names, 3), CantCoexist: randomSets(r, names, 3)}
		before := fmt.Sprint(l)
		got := l.WithPairs(want.MustPairs(), want.CantPairs())
		if fmt.Sprint(l) != before {
			t.Fatalf("round %d: what was given changed", round)
		}
		if !slices.Equal(got.MustPairs(), want.MustPairs()) || !slices.Equal(got.CantPairs(), want.CantPairs()) {
			t.Fatalf("round %d: %v with the pairs of %v has others: %v", round, l, want, got)
		}
		means := meaning(loom.LayoutConstraints{MustCoexist: got.MustCoexist}, names)
		if wanted := meaning(loom.LayoutConstraints{MustCoexist: want.MustCoexist}, names); means != wanted {
			t.Fatalf("round %d: must %v means another thing than %v", round, got.MustCoexist, want.MustCoexist)
		}
		key := fmt.Sprint(want.MustPairs())
		if known, there := byPairs[key]; there && known != means {
			t.Fatalf("round %d: pairs %s mean two things", round, key)
		}
		byPairs[key] = means
		for _, set := range l.CantCoexist { // larger ones, and those of one, stay
			if len(set) != 2 && !slices.ContainsFunc(got.CantCoexist, func(s []string) bool { return slices.Equal(s, set) }) {
				t.Fatalf("round %d: the can't set %v is lost: %v", round, set, got.CantCoexist)
			}
		}
	}
	if len(byPairs) < 40 { // there are 64 graphs on four services
		t.Errorf("only %d graphs were met", len(byPairs))
	}
}

func TestRelate(t *testing.T) {
	t.Parallel()
	l := loom.LayoutConstraints{MustCoexist: [][]string{{"a", "b", "c"}}, CantCoexist: [][]string{{"a", "d", "e"}}}
	p := loom.NewPair("b", "a")
	for _, c := range []struct {
		pair       loom.Pair
		r          loom.Relation
		must, cant string
	}{
		{p, loom.RelationNone, "[[b c] [a c]]", "[[a d e]]"},
		{p, loom.RelationCant, "[[b c] [a c]]", "[[a d e] [a b]]"},
		{loom.NewPair("c", "d"), loom.RelationMust, "[[a b c] [c d]]", "[[a d e]]"},
		{loom.NewPair("a", "d"), loom.RelationCant, "[[a b c]]", "[[a d e] [a d]]"},
		{loom.NewPair("a", "a"), loom.RelationMust, "[[a b c]]", "[[a d e]]"},
	} {
		got := l.Relate(c.pair, c.r)
		if fmt.Sprint(got.MustCoexist) != c.must || fmt.Sprint(got.CantCoexist) != c.cant {
			t.Errorf("%v %q: %v %v, want %s %s", c.pair, c.r, got.MustCoexist, got.CantCoexist, c.must, c.cant)
		}
	}
	// Pair by pair, sets grow together.
	var one loom.LayoutConstraints
	for _, pair := range []string{"ab", "bc", "ac", "cd", "ad", "bd"} {
		one = one.Relate(loom.NewPair(pair[:1], pair[1:]), loom.RelationMust)
	}
	if got := fmt.Sprint(one.MustCoexist); got != "[[a b c d]]" {
		t.Errorf("six pairs of four are %s", got)
	}
}

func TestSplitCant(t *testing.T) {
	t.Parallel()
	l := loom.LayoutConstraints{CantCoexist: [][]string{{"x", "y"}, {"c", "a", "b"}, {"a", "b"}}}
	if got := fmt.Sprint(l.SplitCant(1).CantCoexist); got != "[[x y] [a c] [b c] [a b]]" {
		t.Errorf("split into %s", got)
	}
	if got := fmt.Sprint(l.SplitCant(7).CantCoexist, l.SplitCant(-1).CantCoexist); got != fmt.Sprint(l.CantCoexist, l.CantCoexist) {
		t.Errorf("no such set: %s", got)
	}
}

func TestMustGroups(t *testing.T) {
	t.Parallel()
	l := loom.LayoutConstraints{MustCoexist: [][]string{{"c", "d"}, {"x"}, {"a", "b"}, {"b", "c"}, {"p", "q", "p"}}}
	if got := fmt.Sprint(l.MustGroups()); got != "[[a b c d] [p q]]" {
		t.Errorf("groups %s", got)
	}
}
