package catalog

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// adminValidate says what is wrong with a draft while it is typed. The answer is
// a fragment, whatever is wrong.
func (s *Server) adminValidate(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		d, err := s.readEditor(w, r, actor, kind, "")
		if err != nil {
			return err
		}
		s.keepDraft(r, actor, d)
		m, tabs, err := s.checkDraft(r, actor, d)
		if err != nil {
			return err
		}
		if d.form != nil {
			if m.Draft, err = s.carrier(r, actor, d); err != nil {
				return err
			}
		}
		return s.Fragment(w, r, http.StatusOK, adminview.CheckAnswer(m, tabs))
	}
}

// broken names the templates and services that would not work any more if a service were
// stored as it is in a draft. That it cannot be told stops nobody from going on.
func (s *Server) broken(r *http.Request, actor loom.Actor, service *loom.Service, solve bool) []adminview.Broken {
	found, err := s.Catalog.Breaks(r.Context(), actor, service, solve)
	if err != nil {
		s.Log.Error("what a change breaks could not be found out", "request_id", httpx.RequestID(r), "error", err.Error())
	}
	var list []adminview.Broken
	for _, f := range found {
		list = append(list, adminview.Broken{Kind: page.Capital(f.Kind.Word()), Name: f.Name, Text: page.Sentence(f), Href: route.AdminEntryEdit(f.Kind, f.Name)})
	}
	return list
}

// checkDraft says what is wrong with a draft, and counts that for each tab of its form.
func (s *Server) checkDraft(r *http.Request, actor loom.Actor, d draft) (adminview.CheckModel, []adminview.EditorTab, error) {
	m := adminview.CheckModel{Checked: true}
	var tabs adminview.EditorModel
	entry, err := readDraft(d.kind, d.body)
	e := loom.AsError(err)
	if err != nil && e.Kind != loom.Invalid {
		return m, nil, err
	}
	switch errs := d.formErrors(); {
	case d.form != nil:
		if err != nil {
			errs = append(errs, e.Fields...)
		}
		doc, failed := form.Parse(d.body)
		if failed != nil {
			return m, nil, failed
		}
		shown := d.tellForm(doc, errs, &m)
		addTabs(*d.form, d, shown, &tabs)
	case err != nil:
		m.Problems = problems(d.body, e)
	}
	if d.expected == "" && err == nil && d.reached(ui.FieldID("", adminview.FieldName)) {
		if taken, err := s.isTaken(r, actor, d.kind, entry.Meta().Name); err != nil {
			return m, nil, err
		} else if taken {
			m.Problems = append(m.Problems, adminview.Problem{Path: "Name", Message: takenText(d.kind, entry.Meta().Name)})
		}
	}
	if err == nil {
		found, err := s.Catalog.CheckEntry(r.Context(), actor, d.kind, entry)
		if err != nil {
			return m, nil, err
		}
		service, isService := entry.(*loom.Service)
		if isService && d.form != nil {
			found = tellFiles(service, found, &m)
		}
		if d.form != nil {
			found = d.tellLacking(found, d.formErrors(), &m)
		}
		m.Warnings = append(m.Warnings, draftWarnings(d, found)...)
		if isService && service.Unchecked() && len(m.Needed) == 0 { // the last thing to think of
			m.Warnings = append(m.Warnings, unchecked(d))
		}
		if isService && d.expected != "" {
			m.Breaks = s.broken(r, actor, service, false)
		}
		m.Unknown = unknownMembers(page.ParseTree([]byte(d.body)), page.TreeOf(entry))
	}
	return m, tabs.Tabs, nil
}

// unchecked warns of a service that is not checked, and leads to its check.
func unchecked(d draft) adminview.Problem {
	const text = "Nothing checks whether the service works. Enter a command, a URL or a port."
	if d.form == nil {
		return adminview.Problem{Path: "check", Message: text}
	}
	return adminview.Problem{Path: "Check", FieldID: ui.FieldID("", "check.command"), Message: text}
}

func takenText(kind loom.EntityKind, name string) string {
	return "There is " + kind.OneWord() + " “" + name + "” already; choose another name."
}

func (s *Server) isTaken(r *http.Request, actor loom.Actor, kind loom.EntityKind, name string) (bool, error) {
	_, _, err := s.Catalog.Entry(r.Context(), actor, kind, name, 0)
	if errors.Is(err, loom.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// adminValidateName says of the name of a new entry whether it can be had; the
// answer is the field.
func (s *Server) adminValidateName(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		f, err := page.ReadForm(w, r)
		if err != nil {
			return err
		}
		name := strings.TrimSpace(f.Get(adminview.FieldName))
		field := nameField(kind)
		field.Value = name
		switch wrong := loom.CheckName(adminview.FieldName, name); {
		case name == "":
		case len(wrong) > 0:
			field.Error = wrong[0].Message
		default:
			taken, err := s.isTaken(r, actor, kind, name)
			if err != nil {
				return err
			}
			if taken {
				field.Error = takenText(kind, name)
			}
		}
		return s.Fragment(w, r, http.StatusOK, ui.Field(field))
	}
}

// pluginHelp describes the fields that plugins declare for entries of a kind.
func (s *Server) pluginHelp(r *http.Request, actor loom.Actor, kind loom.EntityKind) ([]adminview.PluginHelp, error) {
	var of loom.EntityKind
	switch kind {
	case loom.KindProvider:
		of = loom.KindProviderType
	case loom.KindService:
		of = loom.KindAutomatorType
	default:
		return nil, nil
	}
	types, err := s.Catalog.PluginTypes(r.Context(), actor, of)
	if err != nil {
		return nil, err
	}
	var help []adminview.PluginHelp
	for _, t := range types {
		h := adminview.PluginHelp{Name: t.Name, Description: t.Description}
		fields := t.Parameters["admin"].Fields
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			field := fields[name]
			h.Fields = append(h.Fields, adminview.PluginField{Name: name, Type: field.Type, Tip: field.Tip, Sealed: field.IsSensitive()})
		}
		help = append(help, h)
	}
	return help, nil
}
