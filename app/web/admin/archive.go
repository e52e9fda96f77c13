package admin

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// Names of the fields of the archive of plugin resources.
const (
	fieldResource = "resource" // "<kind>/<plugin>/<type>/<name>"
	fieldArchive  = "archive"
	fieldStage    = "stage"
)

func resourceKey(ref loom.ResourceRef) string {
	return ref.Kind + "/" + ref.Plugin + "/" + ref.Type + "/" + ref.Name
}

// takeField is the box that takes a resource of an archive along.
func takeField(ref loom.ResourceRef) string { return "take:" + resourceKey(ref) }

// archiveCards are the parts of the page of import and export about plugin resources.
func (s *Server) archiveCards(r *http.Request, actor loom.Actor, errs ui.FormErrors) ([]templ.Component, error) {
	resources, sealed, err := s.Catalog.ExportableResources(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	m := adminview.ArchiveModel{Action: route.AdminArchiveExport(), Choices: ui.ChoiceModel{ID: "export-resources", Name: fieldResource, Legend: "Files", Optional: true, Filter: "Filter resources"}}
	var total int64
	for _, res := range resources {
		total += res.Size
		fact := "in use"
		if !res.Live {
			fact = "with the next release"
		}
		m.Choices.Choices = append(m.Choices.Choices, ui.Choice{Value: resourceKey(res.ResourceRef), Label: res.Name,
			Description: res.Plugin + " · " + res.Type, Facts: []string{"version " + strconv.Itoa(res.Version), fact, ui.Bytes(res.Size)}})
	}
	if len(resources) > 0 {
		m.All = "Download all (" + ui.Count(len(resources), "file", "files") + ", " + ui.Bytes(total) + ")"
	}
	if sealed > 0 {
		m.Note = ui.Count(sealed, "secret is left out", "secrets are left out") + ". Loom never exports keys and other secrets. Upload them again at the destination."
	}
	upload := adminview.Upload(adminview.UploadModel{
		Action: route.AdminArchiveUpload(), File: fieldArchive, FileLabel: "Archive of files", Accept: ".tar.gz,.tgz,application/gzip", Errors: errs,
		FileHelp: "A gzipped tar with files <kind>/<plugin>/<type>/<name>, as exported here; 1 GiB at most. You see its contents before anything is saved.",
		Button:   "Preview archive", Busy: "Uploading…"})
	return []templ.Component{
		adminview.Card("archive-export-title", "Export files", adminview.Archive(m)),
		adminview.Card("archive-import-title", "Import files", upload),
	}, nil
}

// adminArchiveExport streams the plugin resources: all, or those that were chosen.
func (s *Server) adminArchiveExport(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	resources, _, err := s.Catalog.ExportableResources(r.Context(), actor)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost {
		wanted := map[string]bool{}
		for _, key := range f[fieldResource] {
			wanted[key] = true
		}
		var chosen []loom.Resource
		for _, res := range resources {
			if wanted[resourceKey(res.ResourceRef)] {
				chosen = append(chosen, res)
			}
		}
		resources = chosen
	}
	if len(resources) == 0 {
		return s.Say(w, r, route.AdminTransfer(), httpx.Flash{Tone: "warn", Text: "Nothing exported. Choose at least one file that is in use or staged."})
	}
	h := w.Header()
	h.Set("Content-Type", "application/gzip")
	h.Set("Content-Disposition", `attachment; filename="resources-`+actor.TenantName+`.tar.gz"`)
	if err := s.Catalog.ExportResources(r.Context(), actor, resources, w); err != nil {
		// The answer has begun; an archive without an end is refused by whoever reads it.
		s.Log.Error("an archive of plugin resources broke off", "request_id", httpx.RequestID(r), "error", err.Error())
		panic(http.ErrAbortHandler)
	}
	return nil
}

// adminArchiveGive streams an archive into the bucket and keeps it for its preview.
func (s *Server) adminArchiveGive(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	err := s.keepArchive(r, actor)
	if e := loom.AsError(err); err != nil {
		if e.Kind != loom.Invalid {
			return err
		}
		errs := ui.NewFormErrors("The archive was not taken.", []loom.FieldError{{Field: fieldArchive, Message: e.Message}})
		return s.transferPageWith(w, r, actor, http.StatusUnprocessableEntity, nil, "", ui.FormErrors{}, errs)
	}
	return httpx.SeeOther(w, r, route.AdminArchive())
}

func (s *Server) keepArchive(r *http.Request, actor loom.Actor) error {
	httpx.Stored(r)
	reader, err := r.MultipartReader()
	if err != nil {
		return loom.NewError(loom.Invalid, "The form could not be read; it must be sent as multipart/form-data.")
	}
	for {
		part, err := reader.NextPart()
		if err != nil && !errors.Is(err, io.EOF) {
			return httpx.BodyError(err, "The upload broke off; try again.")
		}
		if err != nil || part.FormName() == fieldArchive && part.FileName() == "" {
			return loom.NewError(loom.Invalid, "Choose an archive.")
		}
		if part.FormName() == fieldArchive {
			return s.Catalog.KeepResources(r.Context(), actor, httpx.WholePart(r, part), s.Now())
		}
	}
}

// adminArchive shows what is in the archive that the actor gave.
func (s *Server) adminArchive(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.archivePage(w, r, actor, http.StatusOK, "")
}

var archivePageTitle = "Preview of the archive"

func (s *Server) archivePage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, wrong string) error {
	page := page.AdminFrame(archivePageTitle, route.AdminTransfer(), ui.Crumb{Label: "Admin", Href: route.Admin()}, ui.Crumb{Label: "Import and export", Href: route.AdminTransfer()}, ui.Crumb{Label: "Archive"})
	m := adminview.PageModel{Title: archivePageTitle}
	t, err := s.Catalog.PreviewResources(r.Context(), actor, s.Now())
	if errors.Is(err, loom.NotFound) {
		m.Parts = []templ.Component{ui.Empty(ui.EmptyModel{Icon: "file", Text: loom.AsError(err).Message, Action: ui.ButtonModel{Label: "Import and export", Href: route.AdminTransfer()}})}
		return s.Sheet(w, r, actor, status, page, m)
	}
	if err != nil {
		return err
	}
	errs := ui.FormErrors{}
	if wrong != "" {
		errs = ui.NewFormErrors("Nothing was imported.", []loom.FieldError{{Message: wrong}})
	}
	counts := map[catalog.TransferState]int{}
	grid := adminview.TableModel{ID: "archive", Caption: "What is in the archive", ShowCaption: true,
		Columns: []ui.Column{{Label: "Resource"}, {Label: "State"}, {Label: "Size", Numeric: true}, {Label: "Remark"}, {Label: "Import"}}}
	refused := 0
	for _, item := range t.Items {
		if counts[item.State]++; item.WhyNot != "" {
			refused++
		}
		grid.Rows = append(grid.Rows, archiveRow(item))
	}
	m.Intro = ui.Count(counts[catalog.TransferNew], "resource is", "resources are") + " new, " + strconv.Itoa(counts[catalog.TransferChanged]) + " changed, " + strconv.Itoa(counts[catalog.TransferSame]) +
		" the same, " + strconv.Itoa(refused) + " cannot be imported. Nothing is stored yet; what you choose is stored all at once or not at all, as new versions."
	m.Parts = []templ.Component{adminview.Form(adminview.FormModel{Action: route.AdminArchive(), Errors: errs, Button: "Import resources", Busy: "Importing…", Cancel: route.AdminTransfer(), Parts: []templ.Component{
		adminview.Hidden(fieldSeen, t.Seen), adminview.Table(grid),
		ui.Field(ui.FieldModel{Name: fieldStage, Label: "Stage imported files", Kind: ui.FieldCheckbox, Checked: true, Help: "The next release puts them in use and replaces the current versions."}),
	}})}
	return s.Sheet(w, r, actor, status, page, m)
}

var transferStates = map[catalog.TransferState]ui.State{
	catalog.TransferNew:     {Word: "New", Icon: "plus", Tone: ui.ToneOK},
	catalog.TransferChanged: {Word: "Changed", Icon: "edit", Tone: ui.ToneWarn},
	catalog.TransferSame:    {Word: "Same", Icon: "check", Tone: ui.ToneIdle},
}

func archiveRow(item catalog.ArchivedResource) []adminview.Cell {
	state := transferStates[item.State]
	row := []adminview.Cell{{Text: item.Name, Mono: true, Sub: item.Plugin + " · " + item.Type}, {State: &state}, {Text: ui.Bytes(item.Size)}, {Text: item.Odd}, {}}
	switch item.State {
	case catalog.TransferSame:
		row[1].Sub = "as version " + strconv.Itoa(item.Version)
	case catalog.TransferChanged:
		row[1].Sub = "version " + strconv.Itoa(item.Version) + " exists"
	}
	if item.WhyNot != "" {
		row[1].State = &ui.State{Word: "Refused", Icon: "ban", Tone: ui.ToneBad}
		row[3].Text, row[4].Text = item.WhyNot, "no"
		return row
	}
	if item.State == catalog.TransferSame {
		row[4].Text = "nothing to do"
		return row
	}
	row[4].Part = ui.Field(ui.FieldModel{Name: takeField(item.ResourceRef), Label: "Import " + item.Name, Kind: ui.FieldCheckbox, Checked: true})
	return row
}

// adminArchiveImport stores what was chosen of the archive.
func (s *Server) adminArchiveImport(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	in := catalog.ResourcesInput{Seen: f.Get(fieldSeen), Stage: f.Get(fieldStage) == "true", Wanted: map[loom.ResourceRef]bool{}}
	t, err := s.Catalog.PreviewResources(r.Context(), actor, s.Now())
	if err != nil && !errors.Is(err, loom.NotFound) {
		return err
	}
	for _, item := range t.Items {
		in.Wanted[item.ResourceRef] = f.Get(takeField(item.ResourceRef)) == "true"
	}
	made, err := s.Catalog.ImportResources(r.Context(), actor, in, s.Now())
	if err != nil {
		e := loom.AsError(err)
		switch e.Kind {
		case loom.Invalid, loom.Conflict:
			return s.archivePage(w, r, actor, httpx.PageStatus(e.Kind), e.Message)
		case loom.NotFound:
			return s.Say(w, r, route.AdminTransfer(), httpx.Flash{Tone: "warn", Text: e.Message})
		}
		return err
	}
	text := "Imported " + ui.Count(len(made), "file", "files") + "."
	if in.Stage {
		text += " They are staged; sync to put them in use."
	}
	return s.Say(w, r, route.AdminResources(), httpx.Flash{Tone: "ok", Text: text})
}
