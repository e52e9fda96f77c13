package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
)

// The JSON pane beside a form shows the document that the form is made from, and takes
// changes to it. Whichever of the two was changed last goes over into the other; where
// both were, nothing is stored until somebody says which counts.

// paneDraft is what came from the pane beside a form.
type paneDraft struct {
	// text was typed and is not in the form; of is what the pane came with.
	text, of string
	open     bool
	// took says that the text is the draft now.
	took    bool
	failure *loom.Error
}

// paneKey names what a text says, however it is laid out.
func paneKey(text string) string {
	if doc, err := form.Parse(text); err == nil {
		text = doc.String()
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// readPane looks at the pane that was posted with a form. The text becomes the draft
// where its button was pressed, or where it alone was changed and the draft is needed as
// it is now.
func (s *Server) readPane(r *http.Request, actor loom.Actor, d *draft, needed bool) error {
	if d.form == nil || !r.PostForm.Has(adminview.FieldPane) {
		return nil
	}
	text := strings.ReplaceAll(r.PostForm.Get(adminview.FieldPane), "\r\n", "\n")
	of, do := r.PostForm.Get(adminview.FieldPaneOf), r.PostForm.Get(form.FieldDo)
	if do == adminview.DoShowPane {
		d.pane.open = true
		return nil
	}
	typed := paneKey(text) != of
	if !typed && do != adminview.DoTakePane {
		return nil
	}
	d.pane = paneDraft{text: text, of: of, open: true}
	says, _, err := s.shownDraft(r, actor, d.kind, d.body)
	if err != nil {
		return err
	}
	alone := paneKey(says) == of && len(d.read.Errors) == 0
	switch {
	case do == adminview.DoTakePane, needed && alone:
		return s.takePane(r, actor, d)
	case needed:
		d.pane.failure = loom.NewError(loom.Invalid, "The form and its JSON were both changed. Choose which one counts: take the JSON over into the form, or show what the form says.")
	}
	return nil
}

// takePane makes the text of the pane the draft, if it can be read.
func (s *Server) takePane(r *http.Request, actor loom.Actor, d *draft) error {
	if len(d.pane.text) > adminview.MaxBody {
		d.pane.failure = loom.AsError(tooLargeDraft())
		return nil
	}
	doc, err := form.Parse(d.pane.text)
	if err != nil {
		if _, told := readDraft(d.kind, d.pane.text); told != nil {
			err = told
		} else {
			err = loom.NewError(loom.Invalid, "The text cannot be shown as a form: %s.", err)
		}
		d.pane.failure = loom.AsError(err)
		return nil
	}
	if d.kind == loom.KindProvider {
		if before, err := form.Parse(d.body); err == nil {
			s.keepTyped(r, actor, before, doc)
		}
	}
	made, err := formMakers[d.kind](s, r, actor, formDraft{Kind: d.kind, Name: d.name, Doc: doc})
	if err != nil {
		return err
	}
	d.body, d.form, d.read, d.changed = doc.String(), &made, form.Result{}, true
	d.pane = paneDraft{open: true, took: true}
	return nil
}

// keepTyped puts secrets that were typed into the form into a text that has them empty,
// as panes have.
func (s *Server) keepTyped(r *http.Request, actor loom.Actor, typed, text *form.Doc) {
	shown, _, err := s.shownDraft(r, actor, loom.KindProvider, typed.String())
	if err != nil {
		return // whoever shows the draft tells
	}
	blank, err := form.Parse(shown)
	if err != nil {
		return
	}
	settings := form.At("provisioner")
	for _, key := range typed.Keys(settings) {
		at := settings.To(key)
		if given := typed.Text(at); given != "" && blank.Text(at) == "" && text.Has(at) && text.Text(at) == "" {
			text.Set(at, given)
		}
	}
}

// paneRefused says that a text was not taken: with scripts only that is told, and the
// form stays as it is, with what was typed in it.
func paneRefused(w http.ResponseWriter, r *http.Request, d draft) bool {
	if d.pane.failure == nil {
		return false
	}
	if r.Header.Get("HX-Target") == adminview.FormParts {
		w.Header().Set("HX-Reswap", "none")
	}
	return true
}

// addPane puts the pane into the model of a form.
func addPane(r *http.Request, d draft, m *adminview.EditorModel) {
	if !m.FormMode {
		return
	}
	m.Pane = &adminview.PaneModel{Text: m.Base, Of: paneKey(m.Base), StepURL: m.StepURL, Took: d.pane.took,
		Open: d.pane.open || r.URL.Query().Get("view") == "pane"}
	if d.pane.took && r.Header.Get("HX-Target") == adminview.FormParts {
		m.Pane.Note = d.note // its place at the top of the page is not exchanged
	}
	if d.pane.text != "" {
		m.Pane.Text, m.Pane.Of, m.Pane.Typed = d.pane.text, d.pane.of, true
	}
	e := d.pane.failure
	if e == nil {
		return
	}
	m.Pane.Problem = e.Message
	m.Pane.Line, m.Pane.Column = syntaxPosition(e.Message)
	if len(e.Fields) > 0 {
		m.Pane.Problem = page.PlainPath(e.Fields[0].Field) + ": " + e.Fields[0].Message
	}
}

// carrier is the document of a checked form, for the pane.
func (s *Server) carrier(r *http.Request, actor loom.Actor, d draft) (*adminview.PaneModel, error) {
	text, _, err := s.shownDraft(r, actor, d.kind, d.body)
	return &adminview.PaneModel{Text: text, Of: paneKey(text)}, err
}
