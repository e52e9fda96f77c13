package clusters

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/web/page"
)

// TestDifferencesHaveABudget: the differences of a page compare their lines up to one sum,
// list a bounded number of values and lines, and cut what was stored with any name.
func TestDifferencesHaveABudget(t *testing.T) {
	t.Parallel()
	const texts, lines = 250, 1990
	from, to := map[string]any{}, map[string]any{}
	for i := range texts {
		key := fmt.Sprintf("v%03d", i)
		from[key], to[key] = "x"+strings.Repeat("\n", lines)+"y", "u"+strings.Repeat("\n", lines)+"v"
	}
	d := newConfigDiffs("config", configLines)
	for view := range 3 {
		got := d.of(from, to)
		if len(got.Rows) != configLines || got.More != texts-configLines || got.Rows[0].Object != "config" {
			t.Fatalf("%d rows and %d more", len(got.Rows), got.More)
		}
		if d.lines < 0 || d.lines > page.MaxDiffCells-lines*lines {
			t.Errorf("%d cells are left", d.lines)
		}
		for i, row := range got.Rows {
			n := strings.Count(row.Lines, "\n") + 1
			if compared := i == 0 && view == 0; compared && n != 4 || !compared && (n != page.ConfigFolded+1 || !strings.HasSuffix(row.Lines, fmt.Sprintf("… %d more lines", 2*(lines+1)-page.ConfigFolded))) {
				t.Fatalf("page %d, row %d has %d lines", view, i, n)
			}
		}
	}
	long := strings.Repeat("k", 100<<10)
	for _, row := range d.of(map[string]any{long: from}, map[string]any{long: to}).Rows {
		if len(row.Name) > loom.MaxConfigPath+len("…") {
			t.Fatalf("a path has %d bytes", len(row.Name))
		}
	}
}

// TestDiffLines takes out and puts in as few lines as can be, and all of them without a
// budget.
func TestDiffLines(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	lines := func() []string {
		out := make([]string, r.IntN(20))
		for i := range out {
			out[i] = string(rune('a' + r.IntN(4)))
		}
		return out
	}
	inCommon := func(a, b []string) int {
		table := make([][]int, len(a)+1)
		table[0] = make([]int, len(b)+1)
		for i := range a {
			table[i+1] = make([]int, len(b)+1)
			for j := range b {
				table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
				if a[i] == b[j] {
					table[i+1][j+1] = table[i][j] + 1
				}
			}
		}
		return table[len(a)][len(b)]
	}
	for range 1000 {
		old, fresh := lines(), lines()
		budget, none := page.LineBudget(1000), page.LineBudget(0)
		got, more := budget.DiffLines(old, fresh, 100)
		if want := len(old) + len(fresh) - 2*inCommon(old, fresh); len(got) != want || more != 0 {
			t.Fatalf("%v to %v: %v, want %d lines", old, fresh, got, want)
		}
		// The lines that stay are the same on both sides.
		kept := func(from []string, sign string) []string {
			rest := slices.Clone(from)
			at := 0
			for _, line := range got {
				if text, ok := strings.CutPrefix(line, sign+" "); ok {
					i := slices.Index(rest[at:], text)
					if i < 0 {
						t.Fatalf("%v to %v: %v", old, fresh, got)
					}
					at += i
					rest = slices.Delete(rest, at, at+1)
				}
			}
			return rest
		}
		if a, b := kept(old, "−"), kept(fresh, "+"); len(a) != len(b) {
			t.Fatalf("%v to %v: %v leaves %v and %v", old, fresh, got, a, b)
		}
		all, _ := none.DiffLines(old, fresh, 100)
		few, more := none.DiffLines(old, fresh, 3)
		if len(few) > 3 || len(few)+more != len(all) || none != 0 || len(all) < len(got) {
			t.Fatalf("%v to %v without a budget: %v, %v and %d", old, fresh, all, few, more)
		}
	}
}

// BenchmarkConfigDiffs compares texts of many lines.
func BenchmarkConfigDiffs(b *testing.B) {
	for _, texts := range []int{1, 250} {
		from, to := map[string]any{}, map[string]any{}
		for i := range texts {
			from[fmt.Sprint(i)], to[fmt.Sprint(i)] = "x"+strings.Repeat("\n", 1990)+"y", "u"+strings.Repeat("\n", 1990)+"v"
		}
		b.Run(fmt.Sprint(texts), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newConfigDiffs("", configLines).of(from, to)
			}
		})
	}
}
