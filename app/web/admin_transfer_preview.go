package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

var transferStates = map[catalog.TransferState]ui.State{
	catalog.TransferNew:     {Word: "New", Icon: "plus", Tone: ui.ToneOK},
	catalog.TransferChanged: {Word: "Changed", Icon: "edit", Tone: ui.ToneWarn},
	catalog.TransferSame:    {Word: "Same", Icon: "check", Tone: ui.ToneIdle},
}

func (s *Server) adminTransferPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.transferPreviewPage(w, r, actor, http.StatusOK, url.Values{}, ui.FormErrors{})
}

func choiceField(name catalog.EntryName) string { return "do:" + string(name.Kind) + "/" + name.Name }

// transferPreviewPage shows what an import would do, and asks for each entry.
func (s *Server) transferPreviewPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, f url.Values, errs ui.FormErrors) error {
	t, err := s.Catalog.PreviewKept(r.Context(), actor, s.now())
	if errors.Is(err, loom.NotFound) {
		return s.say(w, r, route.AdminTransfer(), httpx.Flash{Tone: "warn", Text: loom.AsError(err).Message})
	}
	if err != nil {
		return err
	}
	counts := map[catalog.TransferState]int{}
	grid := officeview.GridModel{ID: "transfer", Caption: "What is in the bundle", ShowCaption: true,
		Columns: []ui.Column{{Label: "Entry"}, {Label: "State"}, {Label: "Changes"}, {Label: "Do"}, {Label: "New name", Low: false}},
		Empty:   ui.EmptyModel{Icon: "file", Text: "The bundle holds no valid entry."}}
	for _, e := range t.Entries {
		counts[e.State]++
		grid.Rows = append(grid.Rows, transferRow(e, f, errs))
	}
	m := officeview.SheetModel{Title: "Preview of the import",
		Intro: ui.Count(counts[catalog.TransferNew], "entry is", "entries are") + " new, " + strconv.Itoa(counts[catalog.TransferChanged]) + " changed, " + strconv.Itoa(counts[catalog.TransferSame]) + " the same, " + strconv.Itoa(len(t.Invalid)) + " invalid. Nothing is stored yet; what you choose is stored all at once or not at all."}
	parts := []templ.Component{officeview.Hidden(fieldSeen, t.Seen), officeview.Grid(grid)}
	if len(t.Invalid) > 0 {
		parts = append(parts, invalidEntries(t.Invalid), field(ui.FieldModel{Name: fieldLeave, Label: "Leave the invalid entries out", Kind: ui.FieldCheckbox, Checked: f.Get(fieldLeave) == "true",
			Help: "Without this nothing is imported as long as something is invalid."}, errs))
	}
	if len(t.Findings) > 0 {
		parts = append(parts, transferFindings(t.Findings))
	}
	if counts[catalog.TransferChanged] > 0 {
		parts = append(parts, field(ui.FieldModel{Name: officeview.FieldConfirm, Label: "Type " + actor.TenantName + " to overwrite", Value: f.Get(officeview.FieldConfirm), Optional: true, Mono: true, Autocomplete: "off",
			Help: "Entries that are overwritten get a new version; clusters keep their own copies. The versions before can be restored."}, errs))
	}
	m.Parts = []templ.Component{officeview.Form(officeview.FormModel{Action: route.AdminTransferImport(), Errors: errs, Parts: parts, Button: "Import", Busy: "Importing…", Cancel: route.AdminTransfer()})}
	page := adminFrame("Preview of the import", route.AdminTransfer(), ui.Crumb{Label: "Admin", Href: route.Admin()}, ui.Crumb{Label: "Import and export", Href: route.AdminTransfer()}, ui.Crumb{Label: "Preview"})
	return s.sheet(w, r, actor, status, page, m)
}

func transferRow(e catalog.TransferEntry, f url.Values, errs ui.FormErrors) []officeview.Cell {
	state := transferStates[e.State]
	id := string(e.Kind) + "/" + e.Name
	row := []officeview.Cell{{Text: e.Name, Mono: true, Sub: e.Kind.Word()}, {State: &state}, {}, {}, {}}
	if e.Version > 0 {
		row[0].Href = route.AdminEntry(e.Kind, e.Name)
		row[0].Sub += " · version " + strconv.Itoa(e.Version) + " is there"
	}
	if e.State == catalog.TransferSame {
		row[2].Text = "nothing to do"
		return row
	}
	if len(e.Changes) > 0 {
		row[2].Part = officeview.Details(officeview.DetailsModel{Summary: ui.Count(len(e.Changes), "value", "values"), Changes: changesOf(e.Changes)})
	} else if e.State == catalog.TransferChanged {
		row[2].Text = "sealed values"
	}
	write, chosen := "Create", f.Get(choiceField(e.EntryName))
	if e.State == catalog.TransferChanged {
		write = "Overwrite"
	}
	if chosen == "" {
		chosen = catalog.ChoiceWrite
	}
	rename := catalog.RenameField(e.EntryName)
	row[3].Part = ui.Field(ui.FieldModel{Name: choiceField(e.EntryName), Label: "What to do with " + id, LabelHidden: true, Kind: ui.FieldSelect, Width: "s",
		Options: options(chosen, catalog.ChoiceWrite, write, catalog.ChoiceSkip, "Skip", catalog.ChoiceRename, "Rename")})
	row[4].Part = ui.Field(ui.FieldModel{Name: rename, Label: "New name of " + id, LabelHidden: true, Optional: true, Width: "s", Mono: true, MaxLength: 255, Value: f.Get(rename), Placeholder: e.Name + "-2", Error: errs.For(rename)})
	return row
}

func invalidEntries(invalid []catalog.InvalidEntry) templ.Component {
	grid := officeview.GridModel{ID: "invalid", Caption: "Invalid entries", ShowCaption: true, Columns: []ui.Column{{Label: "Entry"}, {Label: "Field"}, {Label: "What is wrong"}}}
	for _, e := range invalid {
		for _, f := range e.Fields {
			grid.Rows = append(grid.Rows, []officeview.Cell{{Text: e.Name, Mono: true, Sub: e.Kind.Word()}, {Text: f.Field, Mono: true}, {Text: f.Message}})
		}
	}
	return officeview.Grid(grid)
}

// transferFindings are what would not work after the import of everything.
func transferFindings(findings []loom.Finding) templ.Component {
	grid := officeview.GridModel{ID: "findings", Caption: "What would not work afterwards", ShowCaption: true, Columns: []ui.Column{{Label: "Entry"}, {Label: "What"}}}
	for _, f := range findings[:min(len(findings), maxFindings)] {
		grid.Rows = append(grid.Rows, []officeview.Cell{{Text: f.Name, Mono: true, Sub: f.Kind.Word()}, {Text: sentence(f)}})
	}
	return officeview.Grid(grid)
}

// adminTransferImport carries out what was chosen on the preview.
func (s *Server) adminTransferImport(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	t, err := s.Catalog.PreviewKept(r.Context(), actor, s.now())
	if errors.Is(err, loom.NotFound) {
		return s.say(w, r, route.AdminTransfer(), httpx.Flash{Tone: "warn", Text: loom.AsError(err).Message})
	}
	if err != nil {
		return err
	}
	in := catalog.KeptInput{Seen: f.Get(fieldSeen), LeaveInvalid: f.Get(fieldLeave) == "true", Choices: map[catalog.EntryName]catalog.Choice{}}
	overwrites := 0
	for _, e := range t.Entries {
		choice := catalog.Choice{Action: f.Get(choiceField(e.EntryName)), Name: strings.TrimSpace(f.Get(catalog.RenameField(e.EntryName)))}
		in.Choices[e.EntryName] = choice
		if e.State == catalog.TransferChanged && choice.Action == catalog.ChoiceWrite {
			overwrites++
		}
	}
	title := "Nothing was imported."
	if typed := f.Get(officeview.FieldConfirm); overwrites > 0 && typed != actor.TenantName {
		errs := ui.NewFormErrors(title, []loom.FieldError{{Field: officeview.FieldConfirm, Message: ui.Count(overwrites, "entry would be", "entries would be") + " overwritten; type “" + actor.TenantName + "” to do that, or skip or rename."}})
		return s.transferPreviewPage(w, r, actor, http.StatusUnprocessableEntity, f, errs)
	}
	if _, err := s.Catalog.ImportKept(r.Context(), actor, in, s.now()); err != nil {
		e := loom.AsError(err)
		if e.Kind != loom.Invalid && e.Kind != loom.Conflict {
			return err
		}
		errs, status, _ := accountErrors(err, title)
		if len(e.Fields) == 0 {
			errs = ui.NewFormErrors(title, []loom.FieldError{{Message: e.Message}})
		}
		return s.transferPreviewPage(w, r, actor, status, f, errs)
	}
	return httpx.SeeOther(w, r, route.AdminTransferImport())
}

// adminTransferReport tells what the newest import of the actor did, from the audit.
func (s *Server) adminTransferReport(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	list, err := s.Accounts.Audit(r.Context(), actor, account.AuditInput{Page: loom.Page{Limit: 1},
		AuditFilter: account.AuditFilter{Actors: []string{string(actor.User)}, Verbs: []string{"import"}, Kinds: []string{"catalog"}}})
	if err != nil {
		return err
	}
	m := officeview.SheetModel{Title: "Import", Actions: []ui.ButtonModel{{Label: "Import more", Href: route.AdminTransfer()}}}
	grid := officeview.GridModel{ID: "report", Caption: "What was imported", ShowCaption: true, Columns: []ui.Column{{Label: "Entry"}, {Label: "State"}},
		Empty: ui.EmptyModel{Icon: "file", Text: "You have imported nothing yet.", Action: ui.ButtonModel{Label: "Import a bundle", Href: route.AdminTransfer()}}}
	if len(list.Items) > 0 {
		entry := list.Items[0]
		m.Intro = "Imported by " + string(entry.Actor.User) + ", " + ui.ViewerOf(r.Context()).Full(entry.Time) + ". Entries that were the same are left out."
		report, _ := members(entry.After).(map[string]any)
		for _, part := range []struct {
			word  string
			state ui.State
		}{{"new", ui.State{Word: "Created", Icon: "plus", Tone: ui.ToneOK}}, {"changed", ui.State{Word: "New version", Icon: "edit", Tone: ui.ToneRun}}, {"removed", ui.State{Word: "Removed", Icon: "trash", Tone: ui.ToneBad}}} {
			names, _ := report[part.word].([]any)
			for _, n := range names {
				of, _ := n.(map[string]any)
				kind, name := loom.EntityKind(textOf(of["kind"])), textOf(of["name"])
				cell := officeview.Cell{Text: name, Mono: true, Sub: kind.Word()}
				if part.word != "removed" {
					cell.Href = route.AdminEntry(kind, name)
				}
				grid.Rows = append(grid.Rows, []officeview.Cell{cell, {State: &part.state}})
			}
		}
	}
	m.Parts = []templ.Component{officeview.Grid(grid)}
	page := adminFrame("Import", route.AdminTransfer(), ui.Crumb{Label: "Admin", Href: route.Admin()}, ui.Crumb{Label: "Import and export", Href: route.AdminTransfer()}, ui.Crumb{Label: "Report"})
	return s.sheet(w, r, actor, http.StatusOK, page, m)
}

func textOf(v any) string {
	text, _ := v.(string)
	return text
}
