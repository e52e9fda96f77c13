package page

import (
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/views/ui"
)

// TestPicturesAreBounded: of services with very many relations the page shows no picture,
// and a table of bounded size that says how much is left out.
func TestPicturesAreBounded(t *testing.T) {
	t.Parallel()
	const n = 20_000
	names := func(letter string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(letter, i))
		}
		return all
	}
	href := func(name string) string { return "/" + name }
	show := func(services map[string]loom.Service) (ui.TiesModel, string) {
		t.Helper()
		m := ServiceTies(services, "own", 3, "/", href)
		var page strings.Builder
		if err := ui.Ties(m).Render(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		return m, page.String()
	}
	// Old versions of services may have as many names as fit into a request.
	m, page := show(map[string]loom.Service{
		"own":   {Base: loom.Base{Name: "own"}, Dependencies: loom.Dependencies{Provides: names("p"), Runtime: loom.PhaseDependency{Requires: names("q")}}},
		"other": {Base: loom.Base{Name: "other"}, Dependencies: loom.Dependencies{Provides: names("q"), Runtime: loom.PhaseDependency{Uses: names("p")}}},
	})
	if len(m.Boxes)+len(m.Lines) != 0 || len(m.Rows) != 2 || len(page) > 100<<10 || !strings.Contains(page, "too many for a picture") || !strings.Contains(page, "and 19950 more") {
		t.Errorf("%d boxes, %d rows and %d bytes: %.300s", len(m.Boxes), len(m.Rows), len(page), page)
	}
	// Many services in one circle.
	all := map[string]loom.Service{}
	for i := range n {
		name := fmt.Sprint("s", i)
		if i == 0 {
			name = "own"
		}
		next := fmt.Sprint("s", i+1)
		if i == n-1 {
			next = "own"
		}
		all[name] = loom.Service{Base: loom.Base{Name: name}, Dependencies: loom.Dependencies{Runtime: loom.PhaseDependency{Requires: []string{next}, Uses: []string{"own"}}}}
	}
	m, page = show(all)
	if len(m.Boxes) != 0 || len(m.Rows) != maxTieRows || m.Rest != "19800 services more." || len(page) > 200<<10 {
		t.Errorf("%d boxes, %d rows, the rest %q and %d bytes", len(m.Boxes), len(m.Rows), m.Rest, len(page))
	}
	for _, c := range m.Circles {
		if len(c) > 1000 {
			t.Errorf("a circle takes %d bytes", len(c))
		}
	}
}
