package adminview_test

import (
	"testing"

	"github.com/a-h/templ"

	"loom/app/testkit/golden"
	"loom/views/adminview"
	"loom/views/ui"
)

var off = ui.State{Word: "Off", Icon: "ban", Tone: ui.ToneIdle}

func table(rows ...[]adminview.Cell) templ.Component {
	return adminview.Table(adminview.TableModel{ID: "things", Caption: "Things", ShowCaption: true, Now: now, Rows: rows,
		Columns: []ui.Column{{Label: "Name"}, {Label: "Count", Numeric: true}, {Label: "Seen", Low: true}, {Label: "Actions", LabelHidden: true}},
		Pages:   ui.PaginationModel{Label: "Pages of things", Next: "/things?after=x"}, Empty: ui.EmptyModel{Icon: "box", Text: "There are no things."}})
}

func TestPageGolden(t *testing.T) {
	t.Parallel()
	errs := ui.FormErrors{Title: "The thing was not deleted.", Items: []ui.FormError{{Field: adminview.FieldConfirm, FieldID: "f-confirm", Message: "Type “a<b” exactly."}}}
	golden.HTML(t, map[string]templ.Component{
		"page": adminview.Page(adminview.PageModel{Title: "Things <b>", State: &off, Intro: "What they are.", Actions: []ui.ButtonModel{{Label: "New thing", Href: "/things/new", Kind: ui.Primary}},
			TabsLabel: "Parts", Tabs: []ui.Tab{{Label: "One", Href: "/one", Current: true}}, Banners: []ui.BannerModel{{Tone: ui.ToneWarn, Text: "Careful."}},
			Calls: []ui.JSONCall{{Label: "list", Curl: "curl x"}},
			Parts: []templ.Component{
				adminview.Filters(adminview.FiltersModel{Action: "/things", Target: "things-list", Clear: "/things", Fields: []ui.FieldModel{{Name: "q", Label: "Search", Kind: ui.FieldSearch}}}),
				adminview.Region("live", ui.Live("/things", "system"), table([]adminview.Cell{{Text: "a<b", Href: "/things/a", Mono: true, State: &off, Sub: "sub"}, {Text: "3"}, {ShowTime: true},
					{Part: adminview.Act("/things/a/go", ui.ButtonModel{Label: "Go", Submit: true}, "k", "v")}}, []adminview.Cell{{Text: "b"}, {State: &off}, {Time: now}, {Buttons: []ui.ButtonModel{{Label: "Open", Href: "/b"}}}}))}}),
		"empty": table(),
		"form": adminview.Form(adminview.FormModel{Action: "/things", Errors: errs, Button: "Save", Busy: "Saving…", Cancel: "/things",
			Parts: []templ.Component{adminview.Text("Say it."), ui.Field(ui.FieldModel{Name: "a", Label: "A"})}}),
		"confirm": adminview.Confirm(adminview.ConfirmModel{Action: "/things/a/delete", Errors: errs, Type: "a<b", Typed: "a", Lines: []string{"It goes."}, ItemsNote: "These stay:", Items: []string{"x"},
			Button: "Delete thing a<b", Busy: "Deleting…", Cancel: "/things", Hidden: []string{"k", "v"}}),
		"confirm-light": adminview.Confirm(adminview.ConfirmModel{Action: "/things/a/enable", Lines: []string{"It works again."}, Button: "Enable a", Cancel: "/things", Harmless: true}),
		"confirm-not":   adminview.Confirm(adminview.ConfirmModel{WhyNot: "It is in use.", Cancel: "/things"}),
		"secret": adminview.Secret(adminview.SecretModel{Title: "Made", Warning: "Copy it now.", Back: "/things", Button: "I have copied it",
			Facts: []ui.Def{{Term: "Password", Value: ui.CopyText("made-up", "password")}}}),
		"secret-all": adminview.Secret(adminview.SecretModel{Title: "Made", Warning: "Copy it now.", Back: "/things", Button: "I have copied it", All: "Tenant: a\nPassword: <b\n", What: "the sign-in",
			Facts: []ui.Def{{Term: "Tenant", Text: "a"}, {Term: "Password", Value: ui.CopyText("<b", "password")}}}),
		"details": adminview.Card("c", "Card", adminview.Details(adminview.DetailsModel{Summary: "1 value", Facts: []ui.Def{{Term: "Object", Value: adminview.Link("a", "/a")}},
			Changes: []ui.ChangeModel{{Sign: ui.SignChange, Name: "size", Old: "1", New: "<2>"}}, Code: &ui.CodeModel{ID: "code", Label: "stack", Text: "at x"}})),
		"feed": adminview.Feed(adminview.FeedModel{ID: "feed", Now: now, Pages: ui.PaginationModel{Label: "Pages of the feed", Next: "/feed?after=x"}, Days: []adminview.FeedDay{{Title: "Monday, 1 June 2026", Items: []adminview.FeedItem{
			{ID: "event-2", Icon: "cluster", Who: "ana <a>", Text: "tried to scale", Link: adminview.FeedLink{Text: "a<b", Href: "/clusters/1"}, Rest: "from 3 to <5", State: &off, StateHref: "/clusters/1/operations/1", StateSays: "It is",
				Note: "no <image>", Actions: []ui.ButtonModel{{Label: "Retry", Href: "/retry"}}, Time: now},
			{ID: "event-1", Icon: "template", Who: "ben", Text: "created 2 services", Time: now, More: []adminview.FeedLink{{Text: "nginx", Href: "/nginx", Time: now}, {Text: "redis", Time: now}}}}}}}),
		"filters-whole": adminview.Filters(adminview.FiltersModel{Action: "/things", Whole: true, Label: "Filter things", RangesLabel: "Time range", RangesError: "No range.", Ranges: []ui.Tab{{Label: "1 h", Href: "/things?period=1h", Current: true}, {Label: "All", Href: "/things"}},
			Hidden: []adminview.HiddenField{{Name: "period", Value: "1h"}, {Name: "user"}}, Chips: []ui.Tab{{Label: "User: a<b", Href: "/things"}}}),
		"figure":     adminview.Figure(adminview.FigureModel{Fact: "usage total", Value: "20.0", Unit: "node-hours", Notes: []string{"a – b", "<c"}}),
		"feed-empty": adminview.Feed(adminview.FeedModel{ID: "feed", Empty: ui.EmptyModel{Icon: "activity", Text: "No activity yet."}}),
		"export": adminview.Export(adminview.ExportModel{Action: "/export", Mark: "/mark", Needs: "needs", Total: 3, Groups: []adminview.ExportGroup{
			{Marked: 1, Choices: ui.ChoiceModel{ID: "services", Name: "entry", Legend: "Services", Choices: []ui.Choice{{Value: "services/a", Label: "a<b", Checked: true}, {Value: "services/c", Label: "c"}}}},
			{Choices: ui.ChoiceModel{ID: "templates", Name: "entry", Legend: "Templates", Choices: []ui.Choice{{Value: "clustertemplates/t", Label: "t"}}}}}}),
		"export-empty": adminview.Export(adminview.ExportModel{Action: "/export"}),
		"upload": adminview.Upload(adminview.UploadModel{Action: "/up", File: "file", FileLabel: "File", FileHelp: "8 MiB at most.", Accept: ".json", Optional: true, Button: "Upload", Busy: "Uploading…",
			Errors: ui.NewFormErrors("Nothing was read.", nil), Parts: []templ.Component{adminview.Bare("c-card", adminview.Text("x")), adminview.Hidden("k", "v")}}),
	})
}
