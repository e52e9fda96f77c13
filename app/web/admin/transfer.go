package admin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// Names of the fields of import and export.
const (
	fieldEntry = "entry"  // of the export, "<kind>/<name>"
	fieldNeeds = "needs"  // what the chosen entries name goes along
	fieldPaste = "bundle" // of the import, as text
	fieldFile  = "file"
	fieldSeen  = "seen"
	fieldLeave = "leave"
	fieldNames = "prefix" // what new names begin with
	fieldDoAll = "do"     // sets the choices of all entries that are there
)

func (s *Server) adminTransfer(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	return s.transferPage(w, r, actor, http.StatusOK, entryNames(f[fieldEntry]), "", ui.FormErrors{})
}

// entryNames reads "<kind>/<name>"; what is none is left out.
func entryNames(values []string) []catalog.EntryName {
	var names []catalog.EntryName
	for _, v := range values {
		if kind, name, ok := strings.Cut(v, "/"); ok {
			names = append(names, catalog.EntryName{Kind: loom.EntityKind(kind), Name: name})
		}
	}
	return names
}

// transferPage shows what can be exported, with chosen entries and what they need
// marked, and the form of the import.
func (s *Server) transferPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, chosen []catalog.EntryName, paste string, errs ui.FormErrors) error {
	return s.transferPageWith(w, r, actor, status, chosen, paste, errs, ui.FormErrors{})
}

// transferPageWith is transferPage with what is wrong with an archive of plugin
// resources.
func (s *Server) transferPageWith(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, chosen []catalog.EntryName, paste string, errs, archiveErrs ui.FormErrors) error {
	archive, err := s.archiveCards(r, actor, archiveErrs)
	if err != nil {
		return err
	}
	all, err := s.Catalog.Export(r.Context(), actor)
	if err != nil {
		return err
	}
	marked := map[catalog.EntryName]bool{}
	if len(chosen) > 0 {
		needed, err := s.Catalog.ExportOf(r.Context(), actor, chosen, true)
		if err != nil {
			return err
		}
		for kind, list := range needed.Entries {
			for _, e := range list {
				marked[catalog.EntryName{Kind: kind, Name: e.Meta().Name}] = true
			}
		}
	}
	m := adminview.PageModel{Title: "Import and export",
		Intro: "A bundle holds entries of the catalog as one JSON document, to be kept under version control or taken to another tenant. Files, the scripts and archives that services use, are exported apart, in an archive. Neither ever holds secrets.",
		Parts: append([]templ.Component{exportCard(all, marked), importCard(paste, errs)}, archive...),
		Calls: []ui.JSONCall{page.Call("export", http.MethodGet, "/v2/export", ""),
			{Label: "import", Curl: `curl -H "Authorization: Bearer $LOOM_TOKEN" -H 'Content-Type: application/json' --data-binary @bundle.json "$LOOM_URL/v2/import?mode=merge"`}}}
	return s.Sheet(w, r, actor, status, page.AdminFrame("Import and export", route.AdminTransfer()), m)
}

func exportCard(all catalog.Bundle, marked map[catalog.EntryName]bool) templ.Component {
	m := adminview.ExportModel{Action: route.AdminTransferExport(), Mark: route.AdminTransfer(), Needs: fieldNeeds}
	for _, kind := range loom.TenantKinds {
		group := adminview.ExportGroup{Choices: ui.ChoiceModel{ID: "export-" + string(kind), Name: fieldEntry, Legend: adminview.Plural(kind), Optional: true, Filter: "Filter " + strings.ToLower(adminview.Plural(kind))}}
		for _, e := range all.Entries[kind] {
			b := e.Meta()
			on := marked[catalog.EntryName{Kind: kind, Name: b.Name}]
			if on {
				group.Marked++
			}
			group.Choices.Choices = append(group.Choices.Choices, ui.Choice{Value: string(kind) + "/" + b.Name, Label: b.Name, Description: page.CutShort(b.Description), Checked: on})
		}
		if m.Total += len(group.Choices.Choices); len(group.Choices.Choices) > 0 {
			m.Groups = append(m.Groups, group)
		}
	}
	return adminview.Card("export-title", "Export", adminview.Export(m))
}

func importCard(paste string, errs ui.FormErrors) templ.Component {
	return adminview.Card("import-title", "Import", adminview.Upload(adminview.UploadModel{
		Action: route.AdminTransferPreview(), File: fieldFile, FileLabel: "File", Accept: ".json,.gz,.tgz,.zip,application/json,application/gzip,application/zip", FileHelp: "A JSON bundle, or a packed catalog folder (.tar.gz or .zip); 8 MiB at most.", Optional: true,
		Errors: errs, Button: "Preview import", Busy: "Reading…", Parts: []templ.Component{
			page.Field(ui.FieldModel{Name: fieldPaste, Label: "Or paste it", Kind: ui.FieldTextarea, Rows: 6, Mono: true, Optional: true, Value: paste, Width: "full", Placeholder: `{"services": [{"name": "nginx"}]}`}, errs),
			adminview.Text("Nothing is stored before you have seen what would change. Passwords of providers in a bundle are sealed at once and never shown."),
		}}))
}

// adminTransferExport sends the bundle: everything, or what was chosen.
func (s *Server) adminTransferExport(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	var b catalog.Bundle
	if chosen := entryNames(f[fieldEntry]); len(chosen) > 0 {
		b, err = s.Catalog.ExportOf(r.Context(), actor, chosen, f.Get(fieldNeeds) == "true")
	} else if r.Method == http.MethodPost {
		errs := ui.NewFormErrors("Nothing was exported.", []loom.FieldError{{Message: "Choose at least one entry, or take everything."}})
		return s.transferPage(w, r, actor, http.StatusUnprocessableEntity, nil, "", errs)
	} else {
		b, err = s.Catalog.Export(r.Context(), actor)
	}
	if err != nil {
		return err
	}
	document, err := b.Document()
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", `attachment; filename="catalog-`+actor.TenantName+`.json"`)
	_, _ = w.Write(document) // that the browser went away changes nothing
	return nil
}

// adminTransferGive takes a bundle and keeps it for its preview.
func (s *Server) adminTransferGive(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	paste, body, err := givenBundle(w, r)
	if err == nil {
		err = s.Catalog.KeepBundle(r.Context(), actor, body, s.Now())
	}
	if err != nil {
		e := loom.AsError(err)
		if e.Kind != loom.Invalid {
			return err
		}
		errs := ui.NewFormErrors("The bundle was not read.", e.Fields)
		if len(e.Fields) == 0 {
			errs = ui.NewFormErrors("The bundle was not read.", []loom.FieldError{{Field: fieldPaste, Message: e.Message}})
		}
		for i := range errs.Items {
			errs.Items[i].FieldID = ui.FieldID("", fieldPaste)
		}
		return s.transferPage(w, r, actor, http.StatusUnprocessableEntity, nil, page.WithoutPrivateKeys(paste), errs)
	}
	return httpx.SeeOther(w, r, route.AdminTransferPreview())
}

// givenBundle reads the form: a file goes before what was pasted.
func givenBundle(w http.ResponseWriter, r *http.Request) (paste string, body []byte, err error) {
	httpx.Upload(r)
	r.Body = http.MaxBytesReader(w, r.Body, 2*catalog.MaxTransfer)
	reader, err := r.MultipartReader()
	if err != nil {
		return "", nil, loom.NewError(loom.Invalid, "The form could not be read; it must be sent as multipart/form-data.")
	}
	var file []byte
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			if err := httpx.Whole(r); err != nil {
				return "", nil, err
			}
			break
		}
		if err != nil {
			return "", nil, httpx.BodyError(err, "The upload broke off; try again.")
		}
		text, err := bundlePart(part)
		if err != nil {
			return "", nil, err
		}
		switch part.FormName() {
		case fieldFile:
			file = text
		case fieldPaste:
			paste = strings.TrimSpace(string(text))
		}
	}
	switch {
	case len(file) > 0:
		return paste, file, nil
	case paste != "":
		return paste, []byte(paste), nil
	}
	return "", nil, loom.NewError(loom.Invalid, "Choose a file, or paste a bundle.")
}

func bundlePart(part *multipart.Part) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(part, catalog.MaxTransfer+1))
	if err != nil {
		return nil, httpx.BodyError(err, "The upload broke off; try again.")
	}
	if len(text) > catalog.MaxTransfer {
		return nil, loom.NewError(loom.Invalid, "The bundle is larger than %d MiB.", catalog.MaxTransfer>>20)
	}
	return text, nil
}

func (s *Server) adminTransferPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.transferPreviewPage(w, r, actor, http.StatusOK, url.Values{}, ui.FormErrors{}, nil)
}

// importForm is the ID of the form of the preview, choicePrefix begins the name of a field with
// what to do with an entry.
const (
	importForm   = "import"
	choicePrefix = "do:"
)

func choiceField(name catalog.EntryName) string {
	return choicePrefix + string(name.Kind) + "/" + name.Name
}

// transferPreviewPage shows what an import would do, and asks for each entry. What is there
// and differs is kept unless something else is chosen.
func (s *Server) transferPreviewPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, f url.Values, errs ui.FormErrors, fleet *adminview.FleetModel) error {
	t, err := s.Catalog.PreviewKept(r.Context(), actor, s.Now())
	if errors.Is(err, loom.NotFound) {
		return s.Say(w, r, route.AdminTransfer(), httpx.Flash{Tone: "warn", Text: loom.AsError(err).Message})
	}
	if err != nil {
		return err
	}
	of := map[catalog.TransferState][]catalog.TransferEntry{}
	for _, e := range t.Entries {
		of[e.State] = append(of[e.State], e)
	}
	changed, fresh, same := of[catalog.TransferChanged], of[catalog.TransferNew], of[catalog.TransferSame]
	breaks, others := splitFindings(t.Findings)
	m := adminview.PageModel{Title: "Preview of the import",
		Intro: fmt.Sprintf("Breaks %d · Changed %d · New %d · Same %d · Invalid %d. Nothing is stored yet; what you choose is stored all at once or not at all.",
			len(troubled(breaks)), len(changed), len(fresh), len(same), len(t.Invalid))}
	parts := []templ.Component{adminview.EnterSubmits("Import"), adminview.Hidden(fieldSeen, t.Seen)}
	if len(breaks) > 0 {
		parts = append(parts, transferFindings("breaks", "Breaks", breaks, changed))
	}
	if len(changed) > 0 {
		parts = append(parts, transferAll(f, errs), adminview.Table(transferTable("changed", "Changed", changed, f, errs)))
	}
	if len(fresh) > 0 {
		parts = append(parts, transferFresh(fresh, f, errs))
	}
	if len(same) > 0 {
		m := adminview.ContentsModel{ID: "same", Title: "Same", Count: len(same), Kinds: kindCounts(same)}
		for _, e := range same {
			m.Names = append(m.Names, e.Kind.Word()+" "+e.Name)
		}
		parts = append(parts, adminview.Contents(m))
	}
	if len(t.Invalid) > 0 {
		parts = append(parts, invalidEntries(t.Invalid), page.Field(ui.FieldModel{Name: fieldLeave, Label: "Leave the invalid entries out", Kind: ui.FieldCheckbox, Checked: f.Get(fieldLeave) == "true",
			Help: "Without this nothing is imported as long as something is invalid."}, errs))
	}
	if len(others) > 0 {
		parts = append(parts, transferFindings("findings", "Other findings", others, changed))
	}
	if len(changed)+len(fresh) > 0 {
		parts = append(parts, adminview.FleetPanel(adminview.FleetPanelModel{Action: route.AdminTransferFleet(), Form: importForm, Shown: fleet,
			Note: "What updating each cluster to the entries that you create or overwrite would do. The import itself changes no cluster."}))
	}
	if len(changed) > 0 {
		parts = append(parts, page.Field(ui.FieldModel{Name: adminview.FieldConfirm, Label: "Type " + actor.TenantName + " to overwrite", Value: f.Get(adminview.FieldConfirm), Optional: true, Mono: true, Autocomplete: "off",
			Help: "Entries that are overwritten get a new version; clusters keep their own copies. The versions before can be restored."}, errs))
	}
	m.Parts = []templ.Component{adminview.Form(adminview.FormModel{ID: importForm, Action: route.AdminTransferImport(), Errors: errs, Parts: parts, Button: "Import", Busy: "Importing…", Cancel: route.AdminTransfer()})}
	page := page.AdminFrame("Preview of the import", route.AdminTransfer(), ui.Crumb{Label: "Admin", Href: route.Admin()}, ui.Crumb{Label: "Import and export", Href: route.AdminTransfer()}, ui.Crumb{Label: "Preview"})
	return s.Sheet(w, r, actor, status, page, m)
}

// Values of fieldDoAll.
const (
	doKeep      = "keep"
	doOverwrite = "overwrite"
	doPrefix    = "prefix"
)

// transferAll chooses for all entries that are there and differ.
func transferAll(f url.Values, errs ui.FormErrors) templ.Component {
	button := func(label, do string) ui.ButtonModel {
		return ui.ButtonModel{Label: label, Small: true, Submit: true, Name: fieldDoAll, Value: do, Attrs: templ.Attributes{"formnovalidate": true}}
	}
	return adminview.Choose(adminview.ChooseModel{Label: "All changed entries", Buttons: []ui.ButtonModel{button("Keep all", doKeep), button("Overwrite all", doOverwrite)},
		Field: ui.FieldModel{Name: fieldNames, ID: ui.FieldID("", fieldNames), Label: "Prefix", Optional: true, Width: "s", Mono: true, MaxLength: 100, Autocomplete: "off", Value: f.Get(fieldNames), Error: errs.For(fieldNames)},
		Last:  button("Prefix names", doPrefix)})
}

// chooseAll sets what is done with all entries that are there and differ.
func (s *Server) chooseAll(w http.ResponseWriter, r *http.Request, actor loom.Actor, t catalog.Transfer, f url.Values) error {
	action, prefix := "", strings.TrimSpace(f.Get(fieldNames))
	switch f.Get(fieldDoAll) {
	case doKeep:
		action = catalog.ChoiceSkip
	case doOverwrite:
		action = catalog.ChoiceWrite
	case doPrefix:
		if action = catalog.ChoiceRename; prefix == "" {
			errs := ui.NewFormErrors("No name was changed.", []loom.FieldError{{Field: fieldNames, Message: "Give what the names are to begin with, such as “new-”."}})
			return s.transferPreviewPage(w, r, actor, http.StatusUnprocessableEntity, f, errs, nil)
		}
	default:
		return loom.NewError(loom.Invalid, "There is no such button.")
	}
	for _, e := range t.Entries {
		if e.State != catalog.TransferChanged {
			continue
		}
		f.Set(choiceField(e.EntryName), action)
		if action == catalog.ChoiceRename {
			f.Set(catalog.RenameField(e.EntryName), prefix+e.Name)
		}
	}
	return s.transferPreviewPage(w, r, actor, http.StatusOK, f, ui.FormErrors{}, nil)
}

// transferTable asks for each of some entries what to do with it.
func transferTable(id, caption string, entries []catalog.TransferEntry, f url.Values, errs ui.FormErrors) adminview.TableModel {
	m := adminview.TableModel{ID: id, Caption: caption, ShowCaption: caption != "", Columns: []ui.Column{{Label: "Entry"}, {Label: "Changes"}, {Label: "Do"}}}
	if caption == "" {
		m.Caption = "Entries to create"
	}
	for _, e := range entries {
		m.Rows = append(m.Rows, transferRow(e, f, errs))
	}
	return m
}

// maxOpenEntries is how many new entries are listed without a fold.
const maxOpenEntries = 12

// transferFresh lists entries that are not there yet. Many are folded, unless something about
// one of them was chosen.
func transferFresh(entries []catalog.TransferEntry, f url.Values, errs ui.FormErrors) templ.Component {
	table := transferTable("new", "", entries, f, errs)
	m := adminview.ContentsModel{ID: "new", Title: "New", Count: len(entries), Kinds: kindCounts(entries), Open: len(entries) <= maxOpenEntries, Table: &table}
	for _, e := range entries {
		if f.Get(choiceField(e.EntryName)) != "" && f.Get(choiceField(e.EntryName)) != catalog.ChoiceWrite {
			m.Open = true
		}
	}
	return adminview.Contents(m)
}

// kindCounts says how many entries there are of each kind.
func kindCounts(entries []catalog.TransferEntry) string {
	counts := map[loom.EntityKind]int{}
	for _, e := range entries {
		counts[e.Kind]++
	}
	var words []string
	for _, kind := range loom.TenantKinds {
		if n := counts[kind]; n > 0 {
			words = append(words, ui.Count(n, kind.Word(), kind.Word()+"s"))
		}
	}
	return strings.Join(words, ", ")
}

func transferRow(e catalog.TransferEntry, f url.Values, errs ui.FormErrors) []adminview.Cell {
	id := string(e.Kind) + "/" + e.Name
	row := []adminview.Cell{{Text: e.Name, Mono: true, Sub: e.Kind.Word()}, {}, {}}
	if e.Version > 0 {
		row[0].Href = route.AdminEntry(e.Kind, e.Name)
		row[0].Sub += " v" + strconv.Itoa(e.Version)
	}
	if len(e.Breaks) > 0 {
		row[1].Sub = "breaks " + namesOf(e.Breaks)
	}
	if len(e.Changes) > 0 {
		row[1].Part = adminview.Details(adminview.DetailsModel{Summary: ui.Count(len(e.Changes), "value differs", "values differ"), Changes: page.ChangesOf(e.Changes)})
	} else if e.State == catalog.TransferChanged {
		row[1].Text = "sealed values"
	}
	choices, chosen := []string{catalog.ChoiceWrite, "Create", catalog.ChoiceSkip, "Skip"}, catalog.ChoiceWrite
	if e.State == catalog.TransferChanged {
		choices, chosen = []string{catalog.ChoiceSkip, "Keep mine", catalog.ChoiceWrite, "Overwrite"}, catalog.ChoiceSkip
	}
	chosen = cmp.Or(f.Get(choiceField(e.EntryName)), chosen)
	rename := catalog.RenameField(e.EntryName)
	row[2].Part = templ.Join(
		ui.Field(ui.FieldModel{Name: choiceField(e.EntryName), Label: "What to do with " + id, LabelHidden: true, Kind: ui.FieldSelect, Width: "s",
			Options: page.Options(chosen, append(choices, catalog.ChoiceRename, "Rename")...)}),
		ui.Field(ui.FieldModel{Name: rename, Label: "New name of " + id, LabelHidden: true, Optional: true, Width: "s", Mono: true, MaxLength: 255, Value: f.Get(rename), Placeholder: e.Name + "-2", Error: errs.For(rename)}))
	return row
}

// maxInLine is how many names stand in a line.
const maxInLine = 8

// namesOf enumerates names of entries, maxInLine at most.
func namesOf(names []catalog.EntryName) string {
	var words []string
	for _, n := range names[:min(len(names), maxInLine)] {
		words = append(words, n.Name)
	}
	if more := len(names) - maxInLine; more > 0 {
		words = append(words, strconv.Itoa(more)+" more")
	}
	return loom.And(words)
}

func invalidEntries(invalid []catalog.InvalidEntry) templ.Component {
	grid := adminview.TableModel{ID: "invalid", Caption: "Invalid entries", ShowCaption: true, Columns: []ui.Column{{Label: "Entry"}, {Label: "Field"}, {Label: "What is wrong"}}}
	for _, e := range invalid {
		for _, f := range e.Fields {
			grid.Rows = append(grid.Rows, []adminview.Cell{{Text: e.Name, Mono: true, Sub: e.Kind.Word()}, {Text: f.Field, Mono: true}, {Text: f.Message}})
		}
	}
	return adminview.Table(grid)
}

// splitFindings parts what breaks entries that are there from what is wrong with new ones.
func splitFindings(found []catalog.TransferFinding) (breaks, others []catalog.TransferFinding) {
	for _, f := range found {
		if f.Breaks() {
			breaks = append(breaks, f)
		} else {
			others = append(others, f)
		}
	}
	return breaks, others
}

// troubled names each entry of findings once.
func troubled(found []catalog.TransferFinding) []catalog.EntryName {
	var names []catalog.EntryName
	for _, f := range found {
		if name := (catalog.EntryName{Kind: f.Kind, Name: f.Name}); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// maxGroups is how many causes the page of an import lists.
const maxGroups = 100

// transferFindings are what would not work after the import, by cause as on the overview: first
// what comes in any case, then what depends on the choices about the changed entries.
func transferFindings(id, title string, found []catalog.TransferFinding, changed []catalog.TransferEntry) templ.Component {
	m := adminview.FoundModel{ID: id, Title: title}
	for _, when := range []struct{ kept, overwritten bool }{{true, true}, {true, false}, {false, true}} {
		var these []loom.Finding
		by := map[[2]string][]catalog.EntryName{}
		known := true
		for _, f := range found {
			if f.Kept == when.kept && f.Overwritten == when.overwritten {
				these, known = append(these, f.Finding), known && f.Known
				by[[2]string{string(f.Kind), f.Name}] = f.By
			}
		}
		for _, g := range loom.GroupFindings(these) {
			group := adminview.FindingGroup{FindingGroup: g, Rows: findingRows(g)}
			for i := range group.Rows {
				if group.Rows[i].Links = nil; !known {
					group.Rows[i].Href = ""
				}
			}
			switch {
			case when.kept && when.overwritten:
				group.When = "in any case"
			case when.kept:
				group.When = "if existing entries are kept"
			default:
				group.When = "if " + overwrittenOf(g, by, changed)
			}
			if len(m.Groups) < maxGroups {
				m.Groups = append(m.Groups, group)
			}
		}
	}
	return adminview.Found(m)
}

// overwrittenOf names the changed entries that a group comes from.
func overwrittenOf(g loom.FindingGroup, by map[[2]string][]catalog.EntryName, changed []catalog.TransferEntry) string {
	var names []string
	for _, e := range changed {
		if slices.ContainsFunc(g.Findings, func(f loom.Finding) bool { return slices.Contains(by[[2]string{string(f.Kind), f.Name}], e.EntryName) }) {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 || len(names) > maxInLine {
		return "existing entries are overwritten"
	}
	return loom.Or(names) + " is overwritten"
}

// adminTransferImport carries out what was chosen on the preview.
func (s *Server) adminTransferImport(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	t, err := s.Catalog.PreviewKept(r.Context(), actor, s.Now())
	if errors.Is(err, loom.NotFound) {
		return s.Say(w, r, route.AdminTransfer(), httpx.Flash{Tone: "warn", Text: loom.AsError(err).Message})
	}
	if err != nil {
		return err
	}
	if f.Get(fieldDoAll) != "" {
		return s.chooseAll(w, r, actor, t, f)
	}
	in := keptInput(f)
	overwrites := 0
	for _, e := range t.Entries {
		if e.State == catalog.TransferChanged && in.Choices[e.EntryName].Action == catalog.ChoiceWrite {
			overwrites++
		}
	}
	title := "Nothing was imported."
	if typed := f.Get(adminview.FieldConfirm); overwrites > 0 && typed != actor.TenantName {
		errs := ui.NewFormErrors(title, []loom.FieldError{{Field: adminview.FieldConfirm, Message: ui.Count(overwrites, "entry would be", "entries would be") + " overwritten; type “" + actor.TenantName + "” to do that, or keep or rename."}})
		return s.transferPreviewPage(w, r, actor, http.StatusUnprocessableEntity, f, errs, nil)
	}
	if _, err := s.Catalog.ImportKept(r.Context(), actor, in, s.Now()); err != nil {
		e := loom.AsError(err)
		if e.Kind != loom.Invalid && e.Kind != loom.Conflict {
			return err
		}
		errs, status, _ := page.FormErrors(err, title)
		if len(e.Fields) == 0 {
			errs = ui.NewFormErrors(title, []loom.FieldError{{Message: e.Message}})
		}
		return s.transferPreviewPage(w, r, actor, status, f, errs, nil)
	}
	return httpx.SeeOther(w, r, route.AdminTransferImport())
}

// keptInput reads what is chosen for each entry.
func keptInput(f url.Values) catalog.KeptInput {
	in := catalog.KeptInput{Seen: f.Get(fieldSeen), LeaveInvalid: f.Get(fieldLeave) == "true", Choices: map[catalog.EntryName]catalog.Choice{}}
	for field := range f {
		id, is := strings.CutPrefix(field, choicePrefix)
		kind, name, _ := strings.Cut(id, "/")
		if of := (catalog.EntryName{Kind: loom.EntityKind(kind), Name: name}); is {
			in.Choices[of] = catalog.Choice{Action: f.Get(field), Name: strings.TrimSpace(f.Get(catalog.RenameField(of)))}
		}
	}
	return in
}

// adminTransferFleet says what the chosen entries would do to each cluster: as a part of the
// preview, or on the preview with all that is chosen. Invalid entries bring nothing.
func (s *Server) adminTransferFleet(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	in := keptInput(f)
	in.LeaveInvalid = true
	m, err := s.transferFleet(r, actor, in)
	if err != nil {
		return err
	}
	if httpx.IsFragment(r) {
		return s.Fragment(w, r, http.StatusOK, adminview.Fleet(m))
	}
	return s.transferPreviewPage(w, r, actor, http.StatusOK, f, ui.FormErrors{}, &m)
}

func (s *Server) transferFleet(r *http.Request, actor loom.Actor, in catalog.KeptInput) (adminview.FleetModel, error) {
	report, err := s.Catalog.CompareKept(r.Context(), actor, in, s.Now())
	if err != nil {
		return page.FleetFailed(err)
	}
	return s.FleetEffect(r, actor, report.Drafts, false)
}

// adminTransferReport tells what the newest import of the actor did, from the audit.
func (s *Server) adminTransferReport(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	list, err := s.Accounts.Audit(r.Context(), actor, account.AuditInput{Page: loom.Page{Limit: 1},
		AuditFilter: account.AuditFilter{Actors: []string{string(actor.User)}, Verbs: []string{"import"}, Kinds: []string{"catalog"}}})
	if err != nil {
		return err
	}
	m := adminview.PageModel{Title: "Import", Actions: []ui.ButtonModel{{Label: "Import more", Href: route.AdminTransfer()}}}
	grid := adminview.TableModel{ID: "report", Caption: "Imported", ShowCaption: true, Columns: []ui.Column{{Label: "Entry"}, {Label: "State"}},
		Empty: ui.EmptyModel{Icon: "file", Text: "You have imported nothing yet.", Action: ui.ButtonModel{Label: "Import a bundle", Href: route.AdminTransfer()}}}
	if len(list.Items) > 0 {
		entry := list.Items[0]
		m.Intro = "Imported by " + string(entry.Actor.User) + ", " + ui.ViewerOf(r.Context()).Full(entry.Time) + ". Entries that were the same are left out."
		report, _ := page.Members(entry.After).(map[string]any)
		for _, part := range []struct {
			word  string
			state ui.State
		}{{"new", ui.State{Word: "Created", Icon: "plus", Tone: ui.ToneOK}}, {"changed", ui.State{Word: "New version", Icon: "edit", Tone: ui.ToneRun}}, {"removed", ui.State{Word: "Removed", Icon: "trash", Tone: ui.ToneBad}}} {
			names, _ := report[part.word].([]any)
			for _, n := range names {
				of, _ := n.(map[string]any)
				kind, name := loom.EntityKind(textOf(of["kind"])), textOf(of["name"])
				cell := adminview.Cell{Text: name, Mono: true, Sub: kind.Word()}
				if part.word != "removed" {
					cell.Href = route.AdminEntry(kind, name)
				}
				grid.Rows = append(grid.Rows, []adminview.Cell{cell, {State: &part.state}})
			}
		}
	}
	m.Parts = []templ.Component{adminview.Table(grid)}
	page := page.AdminFrame("Import", route.AdminTransfer(), ui.Crumb{Label: "Admin", Href: route.Admin()}, ui.Crumb{Label: "Import and export", Href: route.AdminTransfer()}, ui.Crumb{Label: "Report"})
	return s.Sheet(w, r, actor, http.StatusOK, page, m)
}

func textOf(v any) string {
	text, _ := v.(string)
	return text
}
