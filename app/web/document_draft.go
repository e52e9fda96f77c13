package web

import (
	"maps"
	"net/http"
	"strings"

	"loom/app/loom"
	"loom/views/adminview"
)

// entryDraft is what the editor of a catalog entry would store now: the draft that
// whoever asks has not saved, else what is stored, else the least that a new entry has.
func (s *Server) entryDraft(kind loom.EntityKind) func(r *http.Request, actor loom.Actor, fields map[string]any) map[string]any {
	return func(r *http.Request, actor loom.Actor, fields map[string]any) map[string]any {
		name := ""
		if strings.HasSuffix(r.Pattern, "/edit") {
			name = entryName(r)
		}
		kept, err := s.Accounts.Draft(r.Context(), actor, draftSubject(kind, name))
		if values := kept.Values[adminview.FieldBody]; err == nil && len(values) > 0 {
			if tree, isObject := parseTree([]byte(values[0])).(map[string]any); isObject {
				return map[string]any{"draft": tree}
			}
		}
		if name != "" {
			return map[string]any{"draft": maps.Clone(fields)}
		}
		return map[string]any{"draft": parseTree([]byte(ofDocument(exampleOf(kind), fields)))}
	}
}
