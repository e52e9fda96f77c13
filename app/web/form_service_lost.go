package web

import (
	"slices"
	"strings"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// uploadOf is the form for a new version of a resource, with what it is for and its name
// filled in.
func uploadOf(ref loom.ResourceRef) string {
	return route.Query(route.AdminResources(), adminview.FieldPlugin, resourceKind(ref), adminview.FieldName, ref.Name) + "#upload"
}

// lostID is that of the place beneath the script of an action, at the path of the field.
func lostID(path string) string { return ui.FieldID("", path) + "-lost" }

// lostScript says whether the script of an action is not there; its Name is empty where
// it is.
func (e *serviceEditor) lostScript(doc *form.Doc, at form.Path) adminview.LostFile {
	field := at.To("fields", scriptField)
	lost := adminview.LostFile{ID: lostID(field.String())}
	t, known := e.types[doc.Text(at.To("type"))]
	if !known {
		return lost
	}
	ref, is := catalog.ScriptOf(&t, loom.ServiceAction{Type: t.Name, Fields: map[string]string{scriptField: doc.Text(field)}})
	if is && !slices.ContainsFunc(e.resources, func(r loom.Resource) bool { return r.ResourceRef == ref && (r.Live || r.Slated) }) {
		lost.Name, lost.Upload = ref.Name, uploadOf(ref)
	}
	return lost
}

// lostScriptOf is the script that a finding misses; false for any other finding.
func lostScriptOf(service *loom.Service, f loom.Finding) (loom.ResourceRef, bool) {
	action, is := strings.CutPrefix(f.Field, "/provisioner/actions/")
	action, isScript := strings.CutSuffix(action, "/fields/"+scriptField)
	if !is || !isScript || f.Code != loom.FindingDangling || f.Name != service.Name || service.Provisioner.Actions[loom.TaskAction(action)].Type != shellType {
		return loom.ResourceRef{}, false
	}
	return loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: shellType, Type: scriptsType, Name: f.Value}, true
}

// tellScripts takes the scripts that are not there out of what is found of a form: each
// is told beneath its field, and all in one line of the check.
func tellScripts(service *loom.Service, found []loom.Finding, m *adminview.CheckModel) []loom.Finding {
	at := map[string]loom.ResourceRef{}
	var names []string
	var first string
	rest := slices.DeleteFunc(slices.Clone(found), func(f loom.Finding) bool {
		ref, lost := lostScriptOf(service, f)
		if lost {
			path := plainPath(f.Field)
			if at[path] = ref; first == "" {
				first = path
			}
			if !slices.Contains(names, ref.Name) {
				names = append(names, ref.Name)
			}
		}
		return lost
	})
	for _, action := range actionOrder {
		if !service.Defines(action) {
			continue
		}
		path := actionsPath.To(string(action), "fields", scriptField).String()
		lost := adminview.LostFile{ID: lostID(path)}
		if ref, is := at[path]; is {
			lost.Name, lost.Upload = ref.Name, uploadOf(ref)
		}
		m.Files = append(m.Files, lost)
	}
	if len(names) > 0 {
		m.Warnings = append(m.Warnings, adminview.Problem{Path: "Scripts", FieldID: ui.FieldID("", first), Message: and(names) + isNotThere(len(names))})
	}
	return rest
}

func isNotThere(n int) string {
	if n == 1 {
		return " is not there yet; its field leads to the upload."
	}
	return " are not there yet; their fields lead to the upload."
}
