package web

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
)

// adminValidate says what is wrong with a draft while it is typed. The answer is
// a fragment, whatever is wrong.
func (s *Server) adminValidate(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		f, err := accountForm(w, r)
		if err != nil {
			return err
		}
		body := strings.ReplaceAll(f.Get(adminview.FieldBody), "\r\n", "\n")
		m := adminview.CheckModel{Checked: true}
		entry, err := readDraft(kind, body)
		if err != nil {
			e := loom.AsError(err)
			if e.Kind != loom.Invalid {
				return err
			}
			m.Problems = problems(body, e)
			return s.fragment(w, r, http.StatusOK, adminview.CheckPanel(m))
		}
		found, err := s.Catalog.CheckEntry(r.Context(), actor, kind, entry)
		if err != nil {
			return err
		}
		m.Warnings = sentences(found)
		m.Unknown = unknownMembers(parseTree([]byte(body)), treeOf(entry))
		return s.fragment(w, r, http.StatusOK, adminview.CheckPanel(m))
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
