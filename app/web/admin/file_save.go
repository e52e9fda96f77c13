package admin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// maxUploadField bounds a field before the file, maxUploadText the text that is
// written in place of one; in bytes.
const (
	maxUploadField = 4 << 10
	maxUploadText  = 256 << 10
)

// adminFileNew is the form of a new file.
func (s *Server) adminFileNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := r.URL.Query()
	return s.showNewFile(w, r, actor, http.StatusOK, adminview.NewFileModel{Name: q.Get(adminview.FieldName)}, q.Get(adminview.FieldPlugin))
}

// showNewFile completes the form with what plugins take. chosen is the type, "" for that of the
// file that was saved last.
func (s *Server) showNewFile(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m adminview.NewFileModel, chosen string) error {
	if chosen == "" {
		latest, err := s.latestType(r, actor)
		if err != nil {
			return err
		}
		chosen = latest
	}
	kinds, err := s.fileTypes(r, actor)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		value, label := adminview.FileType(k.ResourceRef), fmt.Sprintf("%s (%s): %s", k.Plugin, loom.EntityKind(k.Kind).Word(), k.Type)
		if k.format == "archive" {
			label += ", an archive"
		}
		m.Types = append(m.Types, ui.Option{Value: value, Label: label, Selected: value == chosen})
	}
	m.FileHelp = "At most " + ui.Bytes(catalog.DefaultMaxUpload) + "; a secret, such as an SSH key, at most " + ui.Bytes(catalog.MaxSealedUpload) + ". An archive is a .tar.gz or .zip with one folder at its top."
	return s.Render(w, r, actor, status, fileFrame("New file"), adminview.NewFilePage(m))
}

// latestType is that of the file that was saved last, the likely one of the next; scripts where
// there is none.
func (s *Server) latestType(r *http.Request, actor loom.Actor) (string, error) {
	list, err := s.Catalog.ListResources(r.Context(), actor, catalog.ResourceListInput{Page: loom.Page{Limit: 1, Sort: "-createTime"}})
	if err != nil || len(list.Items) == 0 {
		return adminview.FileType(loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: page.ShellType, Type: page.ScriptsType}), err
	}
	return adminview.FileType(list.Items[0].ResourceRef), nil
}

// saving is a file on its way: what the form says, and the content.
type saving struct {
	fields url.Values
	ref    loom.ResourceRef
	do     string
	// text says that the content was written in the form.
	text bool
}

// adminFileSave stores the next version of a file from a text or an upload, which it streams to
// the bucket, and stages or releases it; where a failed task led here, it also retries.
func (s *Server) adminFileSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	fields, file, err := uploadParts(r)
	if err != nil {
		return err
	}
	in := saving{fields: fields, do: r.URL.Query().Get("do")}
	content, err := in.read(r, file)
	if err == nil {
		err = s.unseen(r, actor, in)
	}
	var saved loom.Resource
	if err == nil {
		saved, err = s.saveFile(r, actor, in, content)
	}
	if err != nil {
		return s.fileNotSaved(w, r, actor, in, err)
	}
	return s.fileSaved(w, r, actor, in, saved)
}

// read checks what the form says, and gives the content: the file, or the text in place of it.
func (in *saving) read(r *http.Request, file *multipart.Part) (io.Reader, error) {
	wrong := func(field, message string) error {
		return loom.InvalidFields([]loom.FieldError{{Field: field, Message: message}})
	}
	text := unixText(in.fields.Get(adminview.FieldText))
	name := strings.TrimSpace(in.fields.Get(adminview.FieldName))
	if name == "" && file != nil {
		name = filepath.Base(file.FileName())
	}
	parts := strings.Split(in.fields.Get(adminview.FieldPlugin), "/")
	if len(parts) != 3 {
		return nil, wrong(adminview.FieldPlugin, "Choose the plugin that uses the file.")
	}
	in.ref = loom.ResourceRef{Kind: parts[0], Plugin: parts[1], Type: parts[2], Name: name}
	switch {
	case file != nil && strings.TrimSpace(text) != "":
		return nil, wrong(adminview.FieldText, "There is a text and a file; give one of them.")
	case file != nil:
		return httpx.WholePart(r, file), nil
	case strings.TrimSpace(text) == "":
		return nil, wrong(adminview.FieldText, "Write a text, or upload a file.")
	case name == "":
		return nil, wrong(adminview.FieldName, "Enter a name, such as hello.sh.")
	}
	in.text = true
	return strings.NewReader(text), nil
}

// unixText is a text with the ends of lines that scripts have, at its end as well. Browsers send
// CR LF.
func unixText(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// unseen refuses a text that was written while somebody else saved a version.
func (s *Server) unseen(r *http.Request, actor loom.Actor, in saving) error {
	seen, err := loom.ParseNumber(in.fields.Get(adminview.FieldSeen))
	if err != nil {
		return nil // a new file
	}
	versions, _, err := s.fileVersions(r.Context(), actor, in.ref, 0)
	if err != nil || versions[0].Version <= seen {
		return err
	}
	return loom.NewError(loom.Conflict, "%s saved %s in the meantime. Save again to put yours on top.", versions[0].Author, ui.Version(versions[0].Version))
}

// saveFile stores the next version, and stages or releases it. A text that is that of the
// version it was made from gets no new one.
func (s *Server) saveFile(r *http.Request, actor loom.Actor, in saving, content io.Reader) (loom.Resource, error) {
	ctx := r.Context()
	release := in.do == adminview.DoRelease || in.do == adminview.DoRetry
	if base, err := loom.ParseNumber(in.fields.Get(adminview.FieldVersion)); err == nil && in.text {
		versions, at, err := s.fileVersions(ctx, actor, in.ref, base)
		if err != nil {
			return loom.Resource{}, err
		}
		old, err := s.Catalog.ResourceContent(ctx, actor, versions[at])
		if err != nil {
			return loom.Resource{}, err
		}
		text, err := io.ReadAll(content)
		if err != nil {
			return loom.Resource{}, err
		}
		if unixText(old.Text) == string(text) {
			switch {
			case release:
				err = s.Catalog.Release(ctx, actor, in.ref, base)
			case in.do == adminview.DoStage:
				err = s.Catalog.Stage(ctx, actor, in.ref, base)
			}
			return versions[at], err
		}
		content = bytes.NewReader(text)
	}
	return s.Catalog.UploadAs(ctx, actor, in.ref, content, catalog.UploadOptions{Folder: true, Stage: in.do == adminview.DoStage, Release: release})
}

// fileNotSaved shows the form again with what was written and what is wrong.
func (s *Server) fileNotSaved(w http.ResponseWriter, r *http.Request, actor loom.Actor, in saving, err error) error {
	const title = "File not saved."
	e := loom.AsError(err)
	errs, status, ok := page.FormErrors(err, title)
	if !ok {
		switch e.Kind {
		case loom.NotFound:
			errs, status = ui.NewFormErrors(title, []loom.FieldError{{Field: adminview.FieldPlugin, Message: e.Message}}), http.StatusUnprocessableEntity
		case loom.Conflict, loom.Exhausted, loom.Unavailable:
			errs, status = ui.FormErrors{Title: title + " " + e.Message}, httpx.PageStatus(e.Kind)
		default:
			return err
		}
	}
	text := unixText(in.fields.Get(adminview.FieldText))
	version, numberErr := loom.ParseNumber(in.fields.Get(adminview.FieldVersion))
	if numberErr != nil {
		m := adminview.NewFileModel{Name: in.fields.Get(adminview.FieldName), Text: text, Errors: errs}
		return s.showNewFile(w, r, actor, status, m, in.fields.Get(adminview.FieldPlugin))
	}
	m, err := s.fileFacts(r, actor, in.ref, version)
	if err != nil {
		return err
	}
	// While the bucket fails there is nothing to compare with; what was written must not go with it.
	if err := s.readContent(r.Context(), actor, &m); err != nil && !errors.Is(err, loom.Unavailable) && !errors.Is(err, loom.NotFound) {
		return err
	}
	m.Text, m.Content.Text, m.Errors = text, text, errs
	return s.showFile(w, r, actor, status, m)
}

// fileSaved says what was done, and what follows. After a release it retries what failed, if
// asked to.
func (s *Server) fileSaved(w http.ResponseWriter, r *http.Request, actor loom.Actor, in saving, saved loom.Resource) error {
	name, task := saved.Name+" "+ui.Version(saved.Version), r.URL.Query().Get(adminview.FieldTask)
	to := adminview.FileAct(adminview.FileShow, saved.ResourceRef, saved.Version, adminview.FieldTask, task)
	flash := httpx.Flash{Tone: "ok", Text: "Saved " + name + "."}
	switch in.do {
	case adminview.DoStage:
		flash = httpx.Flash{Tone: "ok", Text: "Staged " + name + ".", URL: adminview.FilesRelease(), Link: "Preview release"}
	case adminview.DoRelease, adminview.DoRetry:
		told, err := s.released(r, actor, saved)
		if err != nil {
			return err
		}
		flash = told
	}
	ref, named := loom.ParseTaskRef(task)
	if in.do != adminview.DoRetry || !named {
		if named && in.do == adminview.DoRelease {
			flash.URL, flash.Link = route.Cluster(ref.Operation.Cluster), "Back to the cluster"
		}
		return s.Say(w, r, to, flash)
	}
	failed, err := s.failedTask(r.Context(), actor, task, saved.Name)
	if err != nil {
		return err
	}
	if failed != nil && failed.Retrying {
		flash := httpx.Flash{Tone: "ok", Text: "Released " + name + ". Retrying.", URL: route.Operation(ref.Operation), Link: "View"}
		if err := s.Operations.RetryNow(r.Context(), actor, ref); err != nil {
			e := loom.AsError(err)
			if e.Kind == loom.Internal {
				return err
			}
			flash = httpx.Flash{Tone: "warn", Text: "Released " + name + ". Not retried: " + e.Message}
		}
		return s.Say(w, r, route.Cluster(ref.Operation.Cluster), flash)
	}
	begun, err := s.Clusters.Begin(r.Context(), actor, clusters.PreviewInput{Kind: loom.ChangeRetry, Cluster: ref.Operation.Cluster, Change: clusters.ChangeInput{Operation: ref.Operation.Number}})
	if err != nil {
		e := loom.AsError(err)
		if e.Kind == loom.Internal {
			return err
		}
		return s.Say(w, r, to, httpx.Flash{Tone: "warn", Text: flash.Text + " Not retried: " + e.Message, URL: route.Cluster(ref.Operation.Cluster), Link: "Open the cluster"})
	}
	return s.Say(w, r, route.Cluster(ref.Operation.Cluster), httpx.Flash{Tone: "ok", Text: "Released " + name + ". Retrying.", URL: route.Operation(begun), Link: "View"})
}

// released says that a version is in use, and who gets it when.
func (s *Server) released(r *http.Request, actor loom.Actor, saved loom.Resource) (httpx.Flash, error) {
	flash := httpx.Flash{Tone: "ok", Text: "Released " + saved.Name + " " + ui.Version(saved.Version) + "."}
	versions, _, err := s.fileVersions(r.Context(), actor, saved.ResourceRef, 0)
	if err != nil {
		return flash, err
	}
	uses, err := s.Catalog.ResourceClusters(r.Context(), actor, saved.ResourceRef, versions)
	if err != nil {
		return flash, err
	}
	machines, of := adminview.Older(uses, saved.Version)
	if machines > 0 {
		flash.Text += " " + ui.Count(machines, "node gets", "nodes get") + " it with " + map[bool]string{true: "its", false: "their"}[machines == 1] + " next task. “Versions on nodes” leads to the " +
			ui.Count(of, "cluster", "clusters") + " to update."
	}
	return flash, nil
}

// uploadParts reads a form up to its file, which it leaves to be streamed; nil
// when none was chosen.
func uploadParts(r *http.Request) (url.Values, *multipart.Part, error) {
	httpx.Stored(r)
	reader, err := r.MultipartReader()
	if err != nil {
		return nil, nil, loom.NewError(loom.Invalid, "The form could not be read; it must be sent as multipart/form-data.")
	}
	fields := url.Values{}
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return fields, nil, httpx.Whole(r)
		}
		if err != nil {
			return nil, nil, httpx.BodyError(err, "The upload broke off; try again.")
		}
		if part.FormName() == adminview.FieldFile {
			if part.FileName() == "" {
				_, err := io.Copy(io.Discard, httpx.WholePart(r, part))
				return fields, nil, err
			}
			return fields, part, nil
		}
		limit := int64(maxUploadField)
		if part.FormName() == adminview.FieldText {
			limit = maxUploadText
		}
		value, err := io.ReadAll(io.LimitReader(part, limit+1))
		if err != nil {
			return nil, nil, httpx.BodyError(err, "The upload broke off; try again.")
		}
		if int64(len(value)) > limit {
			return nil, nil, loom.NewError(loom.Invalid, "The field “%s” holds more than %s; upload it as a file.", part.FormName(), ui.Bytes(limit))
		}
		fields.Set(part.FormName(), string(value))
	}
}
