package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/formview"
	"loom/views/ui"
)

// Files that the settings of a provider name are uploaded within its form: with the
// button beside the field, or, where no script runs, with whatever button is pressed,
// since the browser would forget the choice. A file becomes the next version of its
// resource, is staged, and the field names it. The rest of the draft stays as it is.

// doUpload is the verb of the button that uploads.
const doUpload = "upload"

// maxFormFile bounds a file that comes with a form, in bytes: form and file are held in
// memory.
const maxFormFile = 2 << 20

// uploadAt is the control with the file of a field, uploadAs that with the name under
// which it is stored.
func uploadAt(field string) form.Path { return form.At("upload", field) }

func uploadAs(field string) form.Path { return form.At("upload", field, "as") }

// uploadPart is where the file of a field is uploaded.
type uploadPart struct {
	name, label, group string
	at                 form.Path
	archive            bool
	stored             loom.Resource
}

// Read implements form.Part: whoever handles the request takes the file.
func (u uploadPart) Read(*form.Input) {}

// Show implements form.Part.
func (u uploadPart) Show(out *form.Output) templ.Component {
	file := ui.FieldModel{Name: uploadAt(u.name).String(), Label: "File", Kind: ui.FieldFile, Optional: true,
		Help: "At most " + ui.Bytes(maxFormFile) + ", a secret such as an SSH key at most " + ui.Bytes(catalog.MaxSealedUpload) + "; upload larger ones under Files."}
	if u.archive {
		file.Help = "A .tar.gz or .zip with one folder at its top. " + file.Help
	}
	as := ui.FieldModel{Name: uploadAs(u.name).String(), Label: "Stored as", Mono: true, Optional: true, MaxLength: loom.MaxNameLength, Autocomplete: "off",
		Help: "The name of the file when left empty. A name that exists gets a new version."}
	file.ID, as.ID = out.ID(file.Name), out.ID(as.Name)
	file.Error, as.Error = out.Claim(uploadAt(u.name), file.ID, "File of "+u.label), out.Claim(uploadAs(u.name), as.ID, "Name of the file of "+u.label)
	as.Value, _ = out.Raw(uploadAs(u.name))
	m := formview.UploadModel{Title: "Upload a file for " + u.label, File: file, As: as, Open: file.Error+as.Error != ""}
	m.Button = out.Step(ui.ButtonModel{Label: "Upload and choose it", Busy: "Uploading…", Icon: "arrow-up", Small: true}, doUpload, u.at, u.group)
	m.Button.Attrs["hx-encoding"] = "multipart/form-data"
	if u.stored.Name != "" {
		m.Said = "Saved version " + strconv.Itoa(u.stored.Version) + " of " + u.stored.Name + " and chose it here."
		if toRelease(u.stored) {
			m.Said += " The next release puts it in use."
			m.Link, m.Href = "Preview release (new tab)", adminview.FilesRelease()
		}
	}
	return formview.Upload(m)
}

// uploads gives the part of a field of a type of provider.
func uploads(t loom.PluginType, d formDraft) func(name, label, groupID string) form.Part {
	return func(name, label, groupID string) form.Part {
		return uploadPart{name: name, label: label, group: groupID, at: form.At("provisioner", name), stored: d.Stored[name],
			archive: t.ResourceTypes[t.Parameters["admin"].Fields[name].ResourceType].Format == "archive"}
	}
}

// editorForm reads what an editor sent, which may bring files.
func editorForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return page.ReadForm(w, r)
	}
	httpx.LimitBody(w, r)
	err := r.ParseMultipartForm(httpx.MaxBody)
	if err == nil {
		err = httpx.Whole(r)
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, loom.NewError(loom.Invalid, "The form and its files are larger than %s. Upload such a file under Files, and choose it here.", ui.Bytes(httpx.MaxBody))
	case err != nil:
		return nil, httpx.BodyError(err, "The form could not be read.")
	}
	return r.PostForm, nil
}

// takeUploads stores the files that came with a draft and lets it name them. What could
// not be stored is told at its control, and the draft stays as it is. It reports whether
// all was stored.
func (s *Server) takeUploads(r *http.Request, actor loom.Actor, d *draft) (bool, error) {
	verb, _, _ := strings.Cut(r.PostForm.Get(form.FieldDo), ":")
	if d.kind != loom.KindProvider || d.form == nil || r.MultipartForm == nil && verb != doUpload {
		return true, nil
	}
	doc, err := form.Parse(d.body)
	if err != nil {
		return true, nil // whoever shows the draft says so
	}
	types, err := s.Catalog.PluginTypes(r.Context(), actor, loom.KindProviderType)
	if err != nil {
		return false, err
	}
	var t loom.PluginType
	if i := slices.IndexFunc(types, func(t loom.PluginType) bool { return t.Name == doc.Text(form.At("providertype")) }); i >= 0 {
		t = types[i]
	}
	before := len(d.read.Errors)
	for _, name := range slices.Sorted(maps.Keys(t.Parameters["admin"].Fields)) {
		at, kind := form.At("provisioner", name), t.Parameters["admin"].Fields[name].ResourceType
		if kind == "" {
			continue
		}
		file := postedFile(r, uploadAt(name).String())
		if file == nil {
			if r.PostForm.Get(form.FieldDo) == doUpload+":"+at.String() {
				d.uploadFailed(r, name, uploadAt(name), "Choose the file to upload.")
			}
			continue
		}
		stored, err := s.storeFile(r, actor, file, loom.ResourceRef{Kind: string(loom.KindProviderType), Plugin: t.Name, Type: kind,
			Name: cmp.Or(strings.TrimSpace(r.PostForm.Get(uploadAs(name).String())), filepath.Base(file.Filename))})
		if e := loom.AsError(err); err != nil && e.Kind == loom.Invalid {
			where, why := uploadAt(name), e.Message
			if len(e.Fields) > 0 {
				where, why = uploadAs(name), fmt.Sprintf("The file “%s” was not stored. %s", file.Filename, e.Fields[0].Message)
			}
			d.uploadFailed(r, name, where, why)
			continue
		} else if err != nil {
			return false, err
		}
		doc.Set(at, stored.Name)
		if d.stored == nil {
			d.stored = map[string]loom.Resource{}
		}
		d.stored[name] = stored
	}
	d.body = doc.String()
	return len(d.read.Errors) == before, nil
}

// uploadFailed tells at a control of a field's upload why nothing was stored; the name
// that was typed is shown again.
func (d *draft) uploadFailed(r *http.Request, field string, at form.Path, why string) {
	d.read.Errors = append(d.read.Errors, loom.FieldError{Field: at.String(), Message: why})
	if d.read.Raw == nil {
		d.read.Raw = map[string]string{}
	}
	d.read.Raw[uploadAs(field).String()] = r.PostForm.Get(uploadAs(field).String())
}

// postedFile is the file that was chosen in a control, nil for none.
func postedFile(r *http.Request, control string) *multipart.FileHeader {
	if r.MultipartForm == nil {
		return nil
	}
	files := r.MultipartForm.File[control]
	if len(files) == 0 || files[0].Filename == "" {
		return nil
	}
	return files[0]
}

// storeFile uploads a file as the next version of a resource. One of a new name, which nothing uses
// yet, is in use at once; others wait for the next release.
func (s *Server) storeFile(r *http.Request, actor loom.Actor, file *multipart.FileHeader, ref loom.ResourceRef) (loom.Resource, error) {
	content, err := file.Open()
	if err != nil {
		return loom.Resource{}, fmt.Errorf("open an uploaded file: %w", err)
	}
	defer content.Close()
	if file.Size == 0 {
		return loom.Resource{}, loom.NewError(loom.Invalid, "The file “%s” is empty; choose another one.", file.Filename)
	}
	before, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{ResourceRef: ref})
	if err != nil && !errors.Is(err, loom.NotFound) {
		return loom.Resource{}, err
	}
	return s.Catalog.UploadAs(r.Context(), actor, ref, content, catalog.UploadOptions{Limit: maxFormFile, Folder: true, Stage: len(before) > 0, Release: len(before) == 0})
}

// toRelease reports whether a file that was just stored waits for a release.
func toRelease(r loom.Resource) bool { return r.Status() == loom.ResourceStaged }

// tellStored adds to what is said of a save which files were stored with it.
func tellStored(said httpx.Flash, stored map[string]loom.Resource) httpx.Flash {
	for _, field := range slices.Sorted(maps.Keys(stored)) {
		said.Text += " Saved version " + strconv.Itoa(stored[field].Version) + " of " + stored[field].Name + "."
		if !toRelease(stored[field]) {
			continue
		}
		said.Text += " The next release puts it in use."
		if said.URL == "" {
			said.URL, said.Link = adminview.FilesRelease(), "Preview release"
		}
	}
	return said
}
