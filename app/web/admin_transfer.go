package web

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/officeview"
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
	f, err := accountForm(w, r)
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
	m := officeview.SheetModel{Title: "Import and export",
		Intro: "A bundle holds entries of the catalog as one JSON document, to be kept under version control or taken to another tenant. Plugin resources, the scripts and archives that services use, travel beside it in an archive of their own. Neither ever holds secrets.",
		Parts: append([]templ.Component{exportCard(all, marked), importCard(paste, errs)}, archive...),
		Calls: []ui.JSONCall{call("export", http.MethodGet, "/v2/export", ""),
			{Label: "import", Curl: `curl -H "Authorization: Bearer $LOOM_TOKEN" -H 'Content-Type: application/json' --data-binary @bundle.json "$LOOM_URL/v2/import?mode=merge"`}}}
	return s.sheet(w, r, actor, status, adminFrame("Import and export", route.AdminTransfer()), m)
}

func exportCard(all catalog.Bundle, marked map[catalog.EntryName]bool) templ.Component {
	m := officeview.ExportModel{Action: route.AdminTransferExport(), Mark: route.AdminTransfer(), Needs: fieldNeeds}
	for _, kind := range loom.TenantKinds {
		group := officeview.ExportGroup{Choices: ui.ChoiceModel{ID: "export-" + string(kind), Name: fieldEntry, Legend: adminview.Plural(kind), Optional: true, Filter: "Filter " + strings.ToLower(adminview.Plural(kind))}}
		for _, e := range all.Entries[kind] {
			b := e.Meta()
			on := marked[catalog.EntryName{Kind: kind, Name: b.Name}]
			if on {
				group.Marked++
			}
			group.Choices.Choices = append(group.Choices.Choices, ui.Choice{Value: string(kind) + "/" + b.Name, Label: b.Name, Description: cutShort(b.Description), Checked: on})
		}
		if m.Total += len(group.Choices.Choices); len(group.Choices.Choices) > 0 {
			m.Groups = append(m.Groups, group)
		}
	}
	return officeview.Card("export-title", "Export", officeview.Export(m))
}

func importCard(paste string, errs ui.FormErrors) templ.Component {
	return officeview.Card("import-title", "Import", officeview.Upload(officeview.UploadModel{
		Action: route.AdminTransferPreview(), File: fieldFile, FileLabel: "File", Accept: ".json,.gz,.tgz,application/json,application/gzip", FileHelp: "A JSON bundle, or a packed catalog folder (.tar.gz); 8 MiB at most.", Optional: true,
		Errors: errs, Button: "Preview import", Busy: "Reading…", Parts: []templ.Component{
			field(ui.FieldModel{Name: fieldPaste, Label: "Or paste it", Kind: ui.FieldTextarea, Rows: 6, Mono: true, Optional: true, Value: paste, Width: "full", Placeholder: `{"services": [{"name": "nginx"}]}`}, errs),
			officeview.Text("Nothing is stored before you have seen what would change. Passwords of providers in a bundle are sealed at once and never shown."),
		}}))
}

// adminTransferExport sends the bundle: everything, or what was chosen.
func (s *Server) adminTransferExport(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
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
		err = s.Catalog.KeepBundle(r.Context(), actor, body, s.now())
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
		return s.transferPage(w, r, actor, http.StatusUnprocessableEntity, nil, withoutPrivateKeys(paste), errs)
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
