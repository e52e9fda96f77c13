package web

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// maxUploadField bounds a field before the file, maxUploadText the text that is
// written in place of one; in bytes.
const (
	maxUploadField = 4 << 10
	maxUploadText  = 256 << 10
)

// adminResourceUpload streams the file of a form to the bucket, and stages it if
// asked to.
func (s *Server) adminResourceUpload(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	fields, file, err := uploadParts(r)
	if err != nil {
		return err
	}
	name := strings.TrimSpace(fields.Get(adminview.FieldName))
	if name == "" && file != nil {
		name = filepath.Base(file.FileName())
	}
	content, err := uploadContent(r, fields, file)
	var resource loom.Resource
	if err == nil {
		resource, err = s.upload(r, actor, fields.Get(adminview.FieldPlugin), name, content)
	}
	if err == nil && fields.Get(adminview.FieldStage) == "true" {
		err = s.Catalog.Stage(r.Context(), actor, resource.ResourceRef, resource.Version)
	}
	if errs, status, ok := accountErrors(err, "The file was not stored."); ok || errors.Is(err, loom.NotFound) {
		if !ok {
			errs = ui.NewFormErrors("The file was not stored.", []loom.FieldError{{Field: adminview.FieldPlugin, Message: loom.AsError(err).Message}})
			status = http.StatusUnprocessableEntity
		}
		m := adminview.ResourcesModel{Name: fields.Get(adminview.FieldName), Text: fields.Get(adminview.FieldText), Stage: fields.Get(adminview.FieldStage) == "true", Errors: errs}
		return s.resourcesPage(w, r, actor, status, m, fields.Get(adminview.FieldPlugin))
	}
	if err != nil {
		return err
	}
	text := "Stored version " + strconv.Itoa(resource.Version) + " of " + resource.Name + "."
	if fields.Get(adminview.FieldStage) == "true" {
		text += " It is staged; sync to put it in use."
	}
	return s.say(w, r, route.AdminResources(), httpx.Flash{Tone: "ok", Text: text})
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
			return nil, nil, loom.NewError(loom.Invalid, "The field “%s” holds more than %s; upload it as a file.", part.FormName(), sizeOf(limit))
		}
		fields.Set(part.FormName(), string(value))
	}
}

// uploadContent is the file, or the text in place of it. Browsers send lines that end
// in CR LF, which no script does.
func uploadContent(r *http.Request, fields url.Values, file *multipart.Part) (io.Reader, error) {
	text := strings.ReplaceAll(fields.Get(adminview.FieldText), "\r\n", "\n")
	switch {
	case file != nil && strings.TrimSpace(text) != "":
		return nil, loom.InvalidFields([]loom.FieldError{{Field: adminview.FieldText, Message: "There is a text and a file; give one of them."}})
	case file != nil:
		return httpx.WholePart(r, file), nil
	case strings.TrimSpace(text) == "":
		return nil, loom.InvalidFields([]loom.FieldError{{Field: adminview.FieldFile, Message: "Write a text, or choose a file."}})
	case strings.TrimSpace(fields.Get(adminview.FieldName)) == "":
		return nil, loom.InvalidFields([]loom.FieldError{{Field: adminview.FieldName, Message: "Give the text a name, such as hello.sh."}})
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return strings.NewReader(text), nil
}

func (s *Server) upload(r *http.Request, actor loom.Actor, plugin, name string, content io.Reader) (loom.Resource, error) {
	parts := strings.Split(plugin, "/")
	if len(parts) != 3 {
		return loom.Resource{}, loom.InvalidFields([]loom.FieldError{{Field: adminview.FieldPlugin, Message: "Choose the plugin that uses the file."}})
	}
	ref := loom.ResourceRef{Kind: parts[0], Plugin: parts[1], Type: parts[2], Name: name}
	return s.Catalog.UploadChecked(r.Context(), actor, ref, content, catalog.DefaultMaxUpload)
}

// resourceRef reads which version of which resource a request is about.
func resourceRef(values url.Values) (ref loom.ResourceRef, version int, shown adminview.ResourceRef, err error) {
	shown = adminview.ResourceRef{
		Kind: values.Get(adminview.FieldKind), Plugin: values.Get(adminview.FieldPlugin), Type: values.Get(adminview.FieldType),
		Name: values.Get(adminview.FieldName), Version: values.Get(adminview.FieldVersion), Back: values.Get(adminview.FieldBack),
	}
	version, err = strconv.Atoi(shown.Version)
	if err != nil || version < 1 {
		return ref, 0, shown, loom.NewError(loom.NotFound, "There is no version “%s” of the resource “%s”.", shown.Version, shown.Name)
	}
	return loom.ResourceRef{Kind: shown.Kind, Plugin: shown.Plugin, Type: shown.Type, Name: shown.Name}, version, shown, nil
}

// resourceAct carries out an action on a version and says what was done.
func (s *Server) resourceAct(w http.ResponseWriter, r *http.Request, act func(loom.ResourceRef, int) error, said string) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	ref, version, shown, err := resourceRef(f)
	if err != nil {
		return err
	}
	if err := act(ref, version); err != nil {
		return err
	}
	text := strings.NewReplacer("{v}", strconv.Itoa(version), "{name}", ref.Name).Replace(said)
	to := shown.Page(route.AdminResources())
	if r.URL.Path == adminview.ResourceDelete() {
		to = route.AdminResources() // the page of the version is gone with it
	}
	return s.say(w, r, to, httpx.Flash{Tone: "ok", Text: text})
}

func (s *Server) adminResourceStage(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.resourceAct(w, r, func(ref loom.ResourceRef, version int) error {
		return s.Catalog.Stage(r.Context(), actor, ref, version)
	}, "Staged version {v} of {name}; sync to put it in use.")
}

func (s *Server) adminResourceRecall(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.resourceAct(w, r, func(ref loom.ResourceRef, version int) error {
		return s.Catalog.Recall(r.Context(), actor, ref, version)
	}, "Recalled version {v} of {name}; the next sync takes it out of use.")
}

func (s *Server) adminResourceDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.resourceAct(w, r, func(ref loom.ResourceRef, version int) error {
		return s.Catalog.DeleteResource(r.Context(), actor, ref, version)
	}, "Deleted version {v} of {name}.")
}

func (s *Server) adminResourceRecallAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.resourceAsk(w, r, actor, "Recall", adminview.ResourceConfirmModel{
		Action: adminview.ResourceRecall(), Busy: "Recalling…",
		Text: "The next sync takes it out of use; tasks that start after that do without it. What names it fails then.",
	})
}

func (s *Server) adminResourceDeleteAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.resourceAsk(w, r, actor, "Delete", adminview.ResourceConfirmModel{
		Action: adminview.ResourceDelete(), Busy: "Deleting…", Text: "The file is gone for good; its version number is not given again.",
	})
}

// resourceAsk asks whether to act on a version that exists.
func (s *Server) resourceAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor, verb string, m adminview.ResourceConfirmModel) error {
	ref, version, shown, err := resourceRef(r.URL.Query())
	if err != nil {
		return err
	}
	if err := s.resourceExists(r, actor, ref, version); err != nil {
		return err
	}
	m.Ref = shown
	if m.Users, err = s.resourceUsers(r, actor, ref); err != nil {
		return err
	}
	m.Button = verb + " version " + shown.Version + " of " + shown.Name
	return s.accountConfirm(w, r, actor, resourceAskFrame(m.Button, verb), adminview.ResourceConfirmForm(m, shown.Page(route.AdminResources())))
}

// resourceUsers are what names a resource.
func (s *Server) resourceUsers(r *http.Request, actor loom.Actor, ref loom.ResourceRef) ([]adminview.Use, error) {
	found, err := s.Catalog.ResourceUsers(r.Context(), actor, ref)
	if err != nil {
		return nil, err
	}
	var users []adminview.Use
	for _, u := range found.Entries {
		users = append(users, adminview.Use{Kind: u.Kind.Word(), Name: u.Name, Href: route.AdminEntry(u.Kind, u.Name)})
	}
	for _, r := range found.Files {
		users = append(users, adminview.Use{Kind: catalog.FileWord(r.Type), Name: r.Name, Href: resourceURL(r)})
	}
	return users, nil
}

func resourceAskFrame(title, verb string) layout.Model {
	return adminFrame(title, route.AdminResources(), ui.Crumb{Label: "Admin", Href: route.Admin()},
		ui.Crumb{Label: "Plugin resources", Href: route.AdminResources()}, ui.Crumb{Label: verb})
}

func (s *Server) resourceExists(r *http.Request, actor loom.Actor, ref loom.ResourceRef, version int) error {
	versions, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{ResourceRef: ref})
	if err != nil {
		return err
	}
	for _, v := range versions {
		if v.Version == version {
			return nil
		}
	}
	return noResource(ref, version)
}

// adminResourceSync makes live what is slated, and says what that was.
func (s *Server) adminResourceSync(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	before, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return err
	}
	if err := s.Catalog.Sync(r.Context(), actor); err != nil {
		return err
	}
	flash := httpx.Flash{Tone: "ok", Text: "Nothing was waiting; all stays as it is."}
	if staged, recalled := waiting(before); staged+recalled > 0 {
		flash.Text = "Synced: " + syncText(staged, recalled) + "."
	}
	return s.say(w, r, adminview.ResourceSync(), flash)
}
