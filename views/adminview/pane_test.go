package adminview_test

import (
	"testing"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/testkit/golden"
	"loom/views/adminview"
	"loom/views/ui"
)

// The JSON pane, the list of what was deleted and the question where an offer is used.
func TestGoldenEditing(t *testing.T) {
	t.Parallel()
	list := adminview.ListModel{Kind: loom.KindService, Now: now, Text: "1 service", CSV: "/csv", JSON: "/json", NameOrder: ui.Ascending}
	gone := adminview.ListModel{Kind: loom.KindService, Now: now, Deleted: true, Filtered: true, Text: "1 service",
		Rows: []adminview.EntryRow{{Entry: &loom.Base{Name: "gone", Label: "Was <here>"}, Info: loom.VersionInfo{Author: "ana", Time: now}, Href: "/new?deleted=1"}}}
	none := adminview.ListModel{Kind: loom.KindService, Deleted: true, Q: "zzz"}
	golden.HTML(t, map[string]templ.Component{
		"pane":         adminview.Pane(adminview.PaneModel{Text: `{"name": "<a>"}`, Of: "key", StepURL: "/step"}),
		"pane-refused": adminview.Pane(adminview.PaneModel{Text: "{", Of: "key", Open: true, Typed: true, Problem: "This is not JSON: line 1, column 2.", Line: 1, Column: 2, StepURL: "/step"}),
		"pane-taken":   adminview.Pane(adminview.PaneModel{Text: "{}", Of: "key", Open: true, Took: true, Note: "Secrets are not sent back.", StepURL: "/step"}),
		"pane-carrier": adminview.CheckPanel(adminview.CheckModel{Checked: true, Draft: &adminview.PaneModel{Text: "{}", Of: "key"}}),
		"list-files":   adminview.ListPage(list), "list-deleted": adminview.ListPage(gone), "list-deleted-none": adminview.ListPage(none),
		"use": adminview.UseForm(adminview.UseModel{Action: "/use", Back: "/b", Member: "flavor", ID: "xl", Button: "Fill in flavor",
			Types: ui.ChoiceModel{Name: "type", Legend: "Where", Filter: "Filter", Choices: []ui.Choice{{Label: "A new one", Checked: true}, {Value: "big", Label: "Big", Facts: []string{"big"}}}}}),
	})
}
