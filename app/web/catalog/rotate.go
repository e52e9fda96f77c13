package catalog

import (
	"net/http"
	"strings"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// addRotation warns, in the editor of a provider with stored credentials, of operations
// that use them, and asks before they are replaced.
func (s *Server) addRotation(r *http.Request, actor loom.Actor, d draft, m *adminview.EditorModel) error {
	if d.kind != loom.KindProvider || d.name == "" {
		return nil
	}
	sealed, err := s.Catalog.SealedFields(r.Context(), actor, d.name)
	if err != nil || len(sealed) == 0 {
		return err
	}
	use, err := s.Catalog.AtWork(r.Context(), actor, d.name)
	if err != nil {
		return err
	}
	model := adminview.RotationModel{
		Text: "Each task takes the credentials that are stored when it begins. Once you replace them, the tasks to come use the new ones: they fail where those do not reach the machines that the old ones made.",
		More: use.Count - len(use.Operations),
		Confirm: ui.FieldModel{Name: catalog.FieldRotate, Label: "Replace credentials all the same", Kind: ui.FieldCheckbox, Checked: r.PostForm.Get(catalog.FieldRotate) == "true",
			Help: "Needed only where a secret below Settings gets another value."},
	}
	if d.failure != nil {
		for _, e := range d.failure.Fields {
			if e.Field == catalog.FieldRotate {
				model.Confirm.Error = e.Message
			}
		}
	}
	if use.Count == 0 && model.Confirm.Error == "" {
		return nil
	}
	for _, o := range use.Operations {
		model.Links = append(model.Links, adminview.RotationLink{Name: o.Name, Href: route.Operation(o.Ref()), Operation: strings.ToLower(o.Action.Verb()), State: ui.OperationState(o.Status, o.Aborted)})
	}
	for i := range m.Errors.Items {
		if item := &m.Errors.Items[i]; item.Field == catalog.FieldRotate {
			item.FieldID, item.Label = ui.FieldID("", catalog.FieldRotate), "Replace credentials"
		}
	}
	m.Rotation = &model
	return nil
}
