package ui_test

import (
	"strings"
	"testing"

	"github.com/a-h/templ"

	"loom/app/testkit/golden"
	"loom/views/ui"
)

// sampleTies has every sort of box and every kind of line.
func sampleTies() ui.TiesModel {
	return ui.TiesModel{
		ID: "relations", Title: "What app has to do with other services", Description: "3 services with 5 relations. The table below says the same.", Width: 800, Height: 200,
		Hops:    []ui.Tab{{Label: "Direct relations", Href: "?hops=1", Current: true}, {Label: "2 hops", Href: "?hops=2"}},
		Circles: []string{"These services wait for each other in a circle: app → redis → app."},
		Boxes: []ui.TieBox{
			{ID: "s0", X: 16, Y: 16, Sort: ui.TieService, Title: "app", Line: "4 actions", Href: "/catalog/services/app", Label: "app, 4 actions", Middle: true},
			{ID: "s1", X: 304, Y: 16, Sort: ui.TieName, Title: "store", Line: "provided name", Label: "store, a name that services provide"},
			{ID: "s2", X: 592, Y: 16, Sort: ui.TieService, Title: "redis-with-a-very-long-name-<b>", Line: "2 actions", Href: "/catalog/services/redis", Label: "redis", Icon: "disk"},
			{ID: "s3", X: 304, Y: 84, Sort: ui.TieMissing, Title: "ghost", Line: "not in the catalog", Label: "ghost, not in the catalog"},
		},
		Lines: []ui.TieLine{
			{From: "s0", To: "s1", Kind: ui.TieRequires, Path: "M192 42C248 42 248 42 304 42", Text: "run", X: 248, Y: 42, Label: "app requires store, to run", Circle: true},
			{From: "s2", To: "s1", Kind: ui.TieProvides, Path: "M480 42C536 42 536 42 592 42", Backwards: true, Label: "redis provides store"},
			{From: "s0", To: "s3", Kind: ui.TieUses, Path: "M192 42C248 42 248 110 304 110", Label: "app uses ghost, to run"},
			{From: "s0", To: "s2", Kind: ui.TieConflicts, Path: "M192 56C248 56 248 56 304 56", Label: "app conflicts with redis"},
			{From: "s0", To: "s2", Kind: ui.TieFollows, Path: "M192 28C248 28 248 28 304 28", Label: "app follows redis"},
		},
		Rows: []ui.TieRow{
			{Name: "app", Href: "/catalog/services/app", Middle: true, Requires: []ui.TieRef{{Name: "store", Note: "to run"}}, Uses: []ui.TieRef{{Name: "ghost", Note: "to run", Missing: true}},
				Conflicts: []ui.TieRef{{Name: "redis", Href: "/catalog/services/redis"}}},
			{Name: "redis", Provides: []ui.TieRef{{Name: "store"}}},
		},
	}
}

func TestGoldenTies(t *testing.T) {
	t.Parallel()
	golden.HTML(t, map[string]templ.Component{"ties": ui.Ties(sampleTies()), "ties-none": ui.Ties(ui.TiesModel{ID: "relations", Nothing: "There is nothing to draw."})})
}

// TestTiesTellKindsApart sees that a kind is told by more than its colour: each has
// its own end, and the legend and the table have it in words.
func TestTiesTellKindsApart(t *testing.T) {
	t.Parallel()
	html := golden.Render(t, ui.Ties(sampleTies()))
	for _, text := range []string{"url(#relations-requires)", "url(#relations-uses)", "url(#relations-provides)", "url(#relations-follows)", "url(#relations-conflicts)",
		"requires: must be in the cluster, and comes first", "conflicts: never in one cluster", `role="group"`, `role="img"`, ">Table<", "Missing", "redis-with-a-", "very-long-name-&lt;b&gt;"} {
		if !strings.Contains(html, text) {
			t.Errorf("the picture lacks %q", text)
		}
	}
	// A provided name is no service: it leads nowhere.
	if strings.Contains(html, `href=""`) || strings.Contains(html, "style=") {
		t.Error("the markup has an empty link or a style")
	}
	if n := strings.Count(html, `marker-start="url(#relations-provides)"`); n != 1 {
		t.Errorf("the line that is drawn backwards has its end at %d starts", n)
	}
}
