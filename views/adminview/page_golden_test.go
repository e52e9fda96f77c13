package officeview_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"loom/views/officeview"
	"loom/views/ui"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	hash = regexp.MustCompile(`/static/[0-9a-f]{12}/`)
	now  = time.Date(2026, time.June, 9, 14, 0, 0, 0, time.UTC)
	off  = ui.State{Word: "Off", Icon: "ban", Tone: ui.ToneIdle}
)

func grid(rows ...[]officeview.Cell) templ.Component {
	return officeview.Grid(officeview.GridModel{ID: "things", Caption: "Things", ShowCaption: true, Now: now, Rows: rows,
		Columns: []ui.Column{{Label: "Name"}, {Label: "Count", Numeric: true}, {Label: "Seen", Low: true}, {Label: "Actions", LabelHidden: true}},
		Pages:   ui.PaginationModel{Label: "Pages of things", Next: "/things?after=x"}, Empty: ui.EmptyModel{Icon: "box", Text: "There are no things."}})
}

func TestGolden(t *testing.T) {
	t.Parallel()
	errs := ui.FormErrors{Title: "The thing was not deleted.", Items: []ui.FormError{{Field: officeview.FieldConfirm, FieldID: "f-confirm", Message: "Type “a<b” exactly."}}}
	for name, component := range map[string]templ.Component{
		"sheet": officeview.Sheet(officeview.SheetModel{Title: "Things <b>", State: &off, Intro: "What they are.", Actions: []ui.ButtonModel{{Label: "New thing", Href: "/things/new", Kind: ui.Primary}},
			TabsLabel: "Parts", Tabs: []ui.Tab{{Label: "One", Href: "/one", Current: true}}, Banners: []ui.BannerModel{{Tone: ui.ToneWarn, Text: "Careful."}},
			Calls: []ui.JSONCall{{Label: "list", Curl: "curl x"}},
			Parts: []templ.Component{
				officeview.Filters(officeview.FiltersModel{Action: "/things", Target: "things-list", Clear: "/things", Fields: []ui.FieldModel{{Name: "q", Label: "Search", Kind: ui.FieldSearch}}}),
				officeview.Region("live", ui.Live("/things", "system"), grid([]officeview.Cell{{Text: "a<b", Href: "/things/a", Mono: true, State: &off, Sub: "sub"}, {Text: "3"}, {ShowTime: true},
					{Part: officeview.Act("/things/a/go", ui.ButtonModel{Label: "Go", Submit: true}, "k", "v")}}, []officeview.Cell{{Text: "b"}, {State: &off}, {Time: now}, {Buttons: []ui.ButtonModel{{Label: "Open", Href: "/b"}}}}))}}),
		"empty": grid(),
		"form": officeview.Form(officeview.FormModel{Action: "/things", Errors: errs, Button: "Save", Busy: "Saving…", Cancel: "/things",
			Parts: []templ.Component{officeview.Text("Say it."), ui.Field(ui.FieldModel{Name: "a", Label: "A"})}}),
		"confirm": officeview.Confirm(officeview.ConfirmModel{Action: "/things/a/delete", Errors: errs, Type: "a<b", Typed: "a", Lines: []string{"It goes."}, ItemsNote: "These stay:", Items: []string{"x"},
			Button: "Delete thing a<b", Busy: "Deleting…", Cancel: "/things", Hidden: []string{"k", "v"}}),
		"confirm-light": officeview.Confirm(officeview.ConfirmModel{Action: "/things/a/enable", Lines: []string{"It works again."}, Button: "Enable a", Cancel: "/things", Harmless: true}),
		"confirm-not":   officeview.Confirm(officeview.ConfirmModel{WhyNot: "It is in use.", Cancel: "/things"}),
		"secret": officeview.Secret(officeview.SecretModel{Title: "Made", Warning: "Copy it now.", Back: "/things", Button: "I have copied it",
			Facts: []ui.Def{{Term: "Password", Value: ui.CopyText("made-up", "password")}}}),
		"secret-all": officeview.Secret(officeview.SecretModel{Title: "Made", Warning: "Copy it now.", Back: "/things", Button: "I have copied it", All: "Tenant: a\nPassword: <b\n", What: "the sign-in",
			Facts: []ui.Def{{Term: "Tenant", Text: "a"}, {Term: "Password", Value: ui.CopyText("<b", "password")}}}),
		"details": officeview.Card("c", "Card", officeview.Details(officeview.DetailsModel{Summary: "1 value", Facts: []ui.Def{{Term: "Object", Value: officeview.Link("a", "/a")}},
			Changes: []ui.ChangeModel{{Sign: ui.SignChange, Name: "size", Old: "1", New: "<2>"}}, Code: &ui.CodeModel{ID: "code", Label: "stack", Text: "at x"}})),
		"feed": officeview.Feed(officeview.FeedModel{ID: "feed", Now: now, Pages: ui.PaginationModel{Label: "Pages of the feed", Next: "/feed?after=x"}, Days: []officeview.FeedDay{{Title: "Monday, 1 June 2026", Items: []officeview.FeedItem{
			{Icon: "cluster", Who: "ana <a>", Text: "moved the lease of", Link: officeview.FeedLink{Text: "a<b", Href: "/clusters/1"}, Note: "from x to y", State: &off, Time: now},
			{Icon: "template", Who: "ben", Text: "created 2 services", Time: now, More: []officeview.FeedLink{{Text: "nginx", Href: "/nginx", Time: now}, {Text: "redis", Time: now}}}}}}}),
		"feed-empty": officeview.Feed(officeview.FeedModel{ID: "feed", Empty: ui.EmptyModel{Icon: "activity", Text: "Nothing happened yet."}}),
		"export": officeview.Export(officeview.ExportModel{Action: "/export", Mark: "/mark", Needs: "needs", Total: 3, Groups: []officeview.ExportGroup{
			{Marked: 1, Choices: ui.ChoiceModel{ID: "services", Name: "entry", Legend: "Services", Choices: []ui.Choice{{Value: "services/a", Label: "a<b", Checked: true}, {Value: "services/c", Label: "c"}}}},
			{Choices: ui.ChoiceModel{ID: "templates", Name: "entry", Legend: "Templates", Choices: []ui.Choice{{Value: "clustertemplates/t", Label: "t"}}}}}}),
		"export-empty": officeview.Export(officeview.ExportModel{Action: "/export"}),
		"upload": officeview.Upload(officeview.UploadModel{Action: "/up", File: "file", FileLabel: "File", FileHelp: "8 MiB at most.", Accept: ".json", Optional: true, Button: "Upload", Busy: "Uploading…",
			Errors: ui.NewFormErrors("Nothing was read.", nil), Parts: []templ.Component{officeview.Bare("c-card", officeview.Text("x")), officeview.Hidden("k", "v")}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if err := component.Render(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(hash.ReplaceAllString(b.String(), "/static/HASH/")+"\n", "><", ">\n<")
			for _, bad := range []string{"style=", "onclick", "hx-on", "javascript:", "<script", "a<b", "<2>"} {
				if strings.Contains(got, bad) {
					t.Errorf("the markup holds %s", bad)
				}
			}
			path := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (run with -update to write it)", err)
			}
			if got != string(want) {
				t.Errorf("%s differs; run with -update and review the difference", path)
			}
		})
	}
}
