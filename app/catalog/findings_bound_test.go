package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestCirclesAreNamedShort: all services of a circle share one text, which names 20 of
// them, so that findings take memory in proportion to the circle.
func TestCirclesAreNamedShort(t *testing.T) {
	t.Parallel()
	const n = 500
	name := func(i int) string { return fmt.Sprintf("s%03d-%s", i%n, strings.Repeat("x", 95)) }
	f := newFinder()
	for i := range n {
		f.add(loom.KindService, &loom.Service{Base: loom.Base{Name: name(i)}, Dependencies: loom.Dependencies{Provides: []string{fmt.Sprint("p", i)},
			Runtime: loom.PhaseDependency{Requires: []string{name(i + 1)}}}})
	}
	found, err := f.find(t.Context(), everything)
	if err != nil || len(found) != n {
		t.Fatalf("%d findings, %v", len(found), err)
	}
	texts, bytes := map[string]bool{}, 0
	for i, f := range found {
		if !texts[f.Message] {
			texts[f.Message] = true
			bytes += len(f.Message)
		}
		if f.Name != name(i) || f.Value != name(i+1) || f.Field != "/dependencies/runtime/requires/0" || f.Code != loom.FindingCycle {
			t.Fatalf("finding %d is %+v", i, f)
		}
	}
	if len(texts) != 1 || bytes > 20*120+200 || !strings.Contains(found[0].Message, "there are 500 in it") {
		t.Errorf("%d texts of %d bytes: %.300s", len(texts), bytes, found[0].Message)
	}
}

// TestFindingsAreBounded: of an entry 100 of a severity are given, of a catalog 10,000,
// and it is said that there are more.
func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	missing := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint("none", i))
		}
		return names
	}
	one := newFinder()
	one.add(loom.KindService, &loom.Service{Base: loom.Base{Name: "s"}, Dependencies: loom.Dependencies{Conflicts: missing(150), Runtime: loom.PhaseDependency{Requires: missing(120)}}})
	found, err := one.find(t.Context(), everything)
	if err != nil || len(found) != 202 {
		t.Fatalf("%d findings, %v", len(found), err)
	}
	errs := slices.DeleteFunc(slices.Clone(found), func(f loom.Finding) bool { return f.Severity != loom.FindingError })
	if last := errs[len(errs)-1]; len(errs) != 101 || last.Code != loom.FindingMore || !strings.Contains(last.Message, "20 more") || last.Name != "s" {
		t.Errorf("%d errors, the last %+v", len(errs), last)
	}
	if last := found[len(found)-1]; last.Code != loom.FindingMore && !slices.ContainsFunc(found, func(f loom.Finding) bool { return strings.Contains(f.Message, "50 more") }) {
		t.Errorf("warnings end with %+v", last)
	}
	all := newFinder()
	for i := range maxFindings/maxOfEntry + 20 {
		all.add(loom.KindService, &loom.Service{Base: loom.Base{Name: fmt.Sprint("s", i)}, Dependencies: loom.Dependencies{Runtime: loom.PhaseDependency{Requires: missing(maxOfEntry)}}})
	}
	found, err = all.find(t.Context(), everything)
	if last := found[len(found)-1]; err != nil || len(found) != maxFindings+1 || last.Code != loom.FindingMore || last.Severity != loom.FindingError {
		t.Errorf("%d findings, %v, the last %+v", len(found), err, last)
	}
}

// manyNames is two services that name each other by very many names, as older versions
// could.
func manyNames(n int) *finder {
	f := newFinder()
	names := func(letter string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(letter, i))
		}
		return all
	}
	f.add(loom.KindService, &loom.Service{Base: loom.Base{Name: "own"}, Dependencies: loom.Dependencies{Provides: names("p"), Conflicts: names("c"), Runtime: loom.PhaseDependency{Requires: names("q")}}})
	f.add(loom.KindService, &loom.Service{Base: loom.Base{Name: "other"}, Dependencies: loom.Dependencies{Provides: names("q"), Runtime: loom.PhaseDependency{Uses: names("p")}}})
	return f
}

// BenchmarkManyNames checks services with many names and what depends on them: ten times
// the names are to cost about ten times as much.
func BenchmarkManyNames(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := manyNames(n)
			for b.Loop() {
				again := f.copied()
				if _, err := again.find(b.Context(), everything); err != nil {
					b.Fatal(err)
				}
				if len(again.dependents("own")) != 2 {
					b.Fatal("they depend on each other")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/name")
		})
	}
}
