package catalog

import (
	"slices"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/ui"
)

// lostID is that of the place beneath a field of an action that names files, at its path.
func lostID(path string) string { return ui.FieldID("", path) + "-lost" }

// lostFiles are the files that a field of an action names and that are not there, but for
// those that an action before it names too.
func (e *serviceEditor) lostFiles(doc *form.Doc, at form.Path, field string) adminview.LostFiles {
	lost := adminview.LostFiles{ID: lostID(at.To("fields", field).String())}
	for _, action := range actionOrder {
		before := actionsPath.To(string(action))
		if before.String() == at.String() {
			lost.Files = slices.DeleteFunc(e.lostAt(doc, at, field), func(f adminview.LostFile) bool { return slices.Contains(lost.Files, f) })
			return lost
		}
		if of := fileFields[doc.Text(before.To("type"))]; of != "" {
			lost.Files = append(lost.Files, e.lostAt(doc, before, of)...)
		}
	}
	lost.Files = e.lostAt(doc, at, field)
	return lost
}

// lostAt are the files that a field of an action names and that are not there.
func (e *serviceEditor) lostAt(doc *form.Doc, at form.Path, field string) []adminview.LostFile {
	t, known := e.types[doc.Text(at.To("type"))]
	if !known {
		return nil
	}
	var lost []adminview.LostFile
	there := func(ref loom.ResourceRef) bool {
		return slices.ContainsFunc(e.resources, func(r loom.Resource) bool { return r.ResourceRef == ref && (r.Live || r.Slated) })
	}
	for _, f := range loom.FilesOf(&t, loom.ServiceAction{Type: t.Name, Fields: map[string]string{field: doc.Text(at.To("fields", field))}}) {
		if f.Field == field && !slices.ContainsFunc(f.Refs, there) {
			lost = append(lost, lostFile(f.Refs[0]))
		}
	}
	return lost
}

// missesFile reports whether a finding is about a file that a service names.
func missesFile(service *loom.Service, f loom.Finding) bool {
	return f.File.Name != "" && f.Kind == loom.KindService && f.Name == service.Name
}

func lostFile(ref loom.ResourceRef) adminview.LostFile {
	return adminview.LostFile{Word: loom.FileWord(ref.Type), Name: ref.Name, Upload: adminview.FileNew(ref)}
}

// fileFields are the fields of an automator that name files, each with a place beneath it
// where those are told that are not there.
var fileFields = map[string]string{page.ShellType: scriptField, chefType: runListField}

// chefType is the automator whose field run_list names cookbooks and roles.
const (
	chefType     = "chef-solo"
	runListField = "run_list"
)

// tellFiles takes the files that are not there out of what is found of a form: each
// is told beneath the first field that names it, and all in one line of the check.
func tellFiles(service *loom.Service, found []loom.Finding, m *adminview.CheckModel) []loom.Finding {
	at := map[string][]adminview.LostFile{}
	var names []string
	var first string
	rest := slices.DeleteFunc(slices.Clone(found), func(f loom.Finding) bool {
		ref := f.File
		lost := missesFile(service, f)
		if lost {
			path := page.PlainPath(f.Field)
			if at[path] = append(at[path], lostFile(ref)); first == "" {
				first = path
			}
			if name := loom.FileWord(ref.Type) + " " + ref.Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return lost
	})
	for _, action := range actionOrder {
		field := fileFields[service.Provisioner.Actions[action].Type]
		if field == "" {
			continue
		}
		path := actionsPath.To(string(action), "fields", field).String()
		told := adminview.LostFiles{ID: lostID(path)}
		for _, f := range at[path] {
			if !slices.ContainsFunc(m.Files, func(l adminview.LostFiles) bool { return slices.Contains(l.Files, f) }) {
				told.Files = append(told.Files, f)
			}
		}
		m.Files = append(m.Files, told)
	}
	if len(names) > 0 {
		m.Warnings = append(m.Warnings, adminview.Problem{Path: "Files", FieldID: ui.FieldID("", first), Message: loom.And(names) + isNotThere(len(names))})
	}
	return rest
}

func isNotThere(n int) string {
	if n == 1 {
		return " is not there yet; its field leads to the upload."
	}
	return " are not there yet; their fields lead to the upload."
}
