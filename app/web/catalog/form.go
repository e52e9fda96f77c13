package catalog

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/route"
)

// formMaker describes the form of a kind for a draft. It is asked anew for every
// request: what is offered for choosing comes from the catalog.
type formMaker func(s *Server, r *http.Request, actor loom.Actor, d formDraft) (form.Form, error)

// formDraft is what a form is made for. Name is that of the stored entry, "" for a
// new one.
type formDraft struct {
	Kind loom.EntityKind
	Name string
	Doc  *form.Doc
	// Told are answers about single rows, by path, that are kept nowhere else.
	Told map[string]loom.Probe
	// Stored are files that came with the draft, by the field that names each now.
	Stored map[string]loom.Resource
}

// formMakers are the kinds that have a form; the others have the JSON editor only.
var formMakers = map[loom.EntityKind]formMaker{
	loom.KindHardwareType:    hardwareForm,
	loom.KindImageType:       imageForm,
	loom.KindProvider:        providerForm,
	loom.KindService:         serviceForm,
	loom.KindTemplate:        templateForm,
	loom.KindPartialTemplate: partialForm,
}

// draft is an entry while it is edited. The document in body is all of it: a form
// is only a way to show and change it.
type draft struct {
	kind           loom.EntityKind
	name, expected string
	body, note     string
	asJSON         bool
	// changed says that body is not what is stored; restored is when it was kept, where
	// it is a draft of before.
	changed  bool
	restored time.Time
	// form and read are set when the draft came from a form.
	form *form.Form
	read form.Result
	// told are answers about single rows, by path, that are kept nowhere else.
	told map[string]loom.Probe
	// stored are files that came with the draft, by the field that names each now.
	stored map[string]loom.Resource
	// pane is what came from the JSON beside the form.
	pane paneDraft
	// left are the ids of the controls that somebody has left, as adminview.FieldLeft.
	left string
	// failure is why the draft was refused, under the title.
	failure *loom.Error
	title   string
}

// formErrors are what the form refuses, whatever the entry would say.
func (d draft) formErrors() []loom.FieldError {
	errs := d.read.Errors
	if d.form != nil && d.form.Check != nil {
		if doc, err := form.Parse(d.body); err == nil {
			errs = append(errs, d.form.Check(doc)...)
		}
	}
	return errs
}

// maxLeft bounds what a form says of controls that were left, in bytes.
const maxLeft = 16 << 10

// reached reports whether somebody has left the control with an id, so that what is wrong
// there is a mistake. What has no control always is.
func (d draft) reached(id string) bool {
	return d.form == nil || id == "" || d.left == adminview.LeftAll || slices.Contains(strings.Fields(d.left), id)
}

// stepURL is where the editor posts what changes the draft and saves nothing.
func stepURL(kind loom.EntityKind, name string) string {
	if name == "" {
		return route.AdminNew(kind)
	}
	return route.AdminEntryEdit(kind, name)
}

// readEditor reads what the editor sent: a JSON text, or a form over the document
// that it was made from.
func (s *Server) readEditor(w http.ResponseWriter, r *http.Request, actor loom.Actor, kind loom.EntityKind, name string) (draft, error) {
	f, err := editorForm(w, r)
	if err != nil {
		return draft{}, err
	}
	d := draft{kind: kind, name: name, expected: f.Get(adminview.FieldExpected), changed: true, left: adminview.LeftAll}
	if f.Has(adminview.FieldLeft) && len(f.Get(adminview.FieldLeft)) <= maxLeft {
		d.left = f.Get(adminview.FieldLeft)
	}
	if name == "" && d.expected != "" {
		d.name = f.Get(adminview.FieldEntry) // a check does not say in its address what it is about
	}
	maker := formMakers[kind]
	if !f.Has(form.FieldBase) || maker == nil {
		d.asJSON = true
		d.body = strings.ReplaceAll(f.Get(adminview.FieldBody), "\r\n", "\n")
		return d, nil
	}
	base := f.Get(form.FieldBase)
	if len(base) > adminview.MaxBody {
		return draft{}, tooLargeDraft()
	}
	doc, err := form.Parse(base)
	if err != nil {
		return draft{}, loom.NewError(loom.Invalid, "The form came without the document that it was made from; open the editor again.")
	}
	made, err := maker(s, r, actor, formDraft{Kind: kind, Name: d.name, Doc: doc})
	if err != nil {
		return draft{}, err
	}
	d.read = made.Read(doc, f)
	d.form, d.body = &made, doc.String()
	return d, nil
}

func tooLargeDraft() error {
	return loom.NewError(loom.Invalid, "The definition is larger than 256 KiB.")
}

// addForm puts the form of a draft into the model, if it has one and is to be
// shown as one.
func (s *Server) addForm(r *http.Request, actor loom.Actor, d draft, m *adminview.EditorModel) error {
	maker := formMakers[d.kind]
	m.HasForm = maker != nil
	if maker == nil || d.asJSON {
		return nil
	}
	doc, err := form.Parse(d.body)
	if err != nil {
		return nil // the JSON editor says what is wrong
	}
	made, err := maker(s, r, actor, formDraft{Kind: d.kind, Name: d.name, Doc: doc, Told: d.told, Stored: d.stored})
	if err != nil {
		return err
	}
	m.Files, m.Left = made.Files, d.left
	if made.Tab != "" {
		m.StepURL = tabURL(d.kind, d.name, made.Tab)
	}
	shown := made.Show(doc, m.StepURL, d.title, d.failures(), d.read)
	addTabs(made, d, shown, m)
	m.FormMode, m.Sections, m.Beside, m.Base, m.Errors = true, shown.Sections, shown.Beside, doc.String(), shown.Errors
	if d.failure != nil {
		m.Left = adminview.LeftAll
		m.Check = adminview.CheckModel{Checked: true, Problems: formProblems(shown), Listed: made.Tab == ""}
		markTabs(d, shown, m.Check.Problems)
		return nil
	}
	d.form = &made
	return s.addCheck(r, actor, d, m)
}

// failures are the errors of the fields; one of the whole entry is without a field.
// That a name is taken belongs to the name.
func (d draft) failures() []loom.FieldError {
	e := d.failure
	switch {
	case e == nil:
		return d.read.Errors
	case len(e.Fields) > 0:
		return e.Fields
	case e.Kind == loom.Conflict && d.name == "":
		return []loom.FieldError{{Field: "name", Message: e.Message}}
	}
	return []loom.FieldError{{Message: e.Message}}
}

func formProblems(shown form.Shown) []adminview.Problem {
	var found []adminview.Problem
	for _, item := range shown.Errors.Items {
		found = append(found, adminview.Problem{Path: cmp.Or(item.Label, item.Field), Message: item.Message, FieldID: item.FieldID})
	}
	return found
}

// adminStep changes a draft without saving it: rows come and go, the form becomes
// JSON and back. With scripts only the group that changed is put into the page.
func (s *Server) adminStep(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		d, err := s.readEditor(w, r, actor, kind, entryName(r))
		if err != nil {
			return err
		}
		status, do := http.StatusOK, r.PostForm.Get(form.FieldDo)
		if do == adminview.DoDiscard || do == adminview.DoCancel {
			return s.leaveDraft(w, r, actor, kind, d.name, do == adminview.DoDiscard)
		}
		if d.name != "" {
			if _, _, err := s.Catalog.Entry(r.Context(), actor, kind, d.name, 0); err != nil {
				return err // also a name of another tenant's
			}
		}
		s.verifyRow(r, actor, &d)
		if err := s.readPane(r, actor, &d, do == adminview.DoJSON); err != nil {
			return err
		}
		stored, err := s.takeUploads(r, actor, &d)
		if err != nil {
			return err
		}
		if paneRefused(w, r, d) || !stored {
			status = http.StatusUnprocessableEntity
		}
		switch do {
		case adminview.DoJSON:
			if d.asJSON = len(d.read.Errors) == 0 && d.pane.failure == nil; !d.asJSON {
				status = http.StatusUnprocessableEntity
			}
		case adminview.DoForm:
			if _, err := form.Parse(d.body); err != nil {
				if _, told := readDraft(kind, d.body); told != nil {
					err = told
				} else {
					err = loom.NewError(loom.Invalid, "The text cannot be shown as a form: %s.", err)
				}
				d.failure, status = loom.AsError(err), http.StatusUnprocessableEntity
				d.title = "The text cannot be shown as a form yet."
			} else {
				d.asJSON = false
			}
		}
		if d.title == "" {
			d.title = "Some values cannot be taken yet."
		}
		if stayOnTab(r, &d) {
			status = http.StatusUnprocessableEntity
		}
		if err := s.hideSecrets(r, actor, &d); err != nil {
			return err
		}
		markTouched(r, &d)
		if d.changed {
			s.keepDraft(r, actor, d)
		}
		return s.editorPage(w, r, actor, status, d)
	}
}
