package web

import (
	"maps"
	"net/http"

	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
)

// catalogDraft is what the editor of a catalog entry would store now: the draft that
// whoever asks has not saved, else what is stored, else the least that a new entry has.
// nil for other pages.
func (s *Server) catalogDraft(r *http.Request, actor loom.Actor, fields map[string]any) any {
	for _, kind := range loom.TenantKinds {
		name := ""
		switch r.Pattern {
		case "GET " + route.AdminNew(kind):
		case "GET " + route.AdminKind(kind) + "/{name}/edit":
			name = entryName(r)
		default:
			continue
		}
		kept, err := s.Accounts.Draft(r.Context(), actor, draftSubject(kind, name))
		if values := kept.Values[adminview.FieldBody]; err == nil && len(values) > 0 {
			if tree, isObject := parseTree([]byte(values[0])).(map[string]any); isObject {
				return tree
			}
		}
		if name != "" {
			return maps.Clone(fields)
		}
		return parseTree([]byte(ofDocument(exampleOf(kind), fields)))
	}
	return nil
}
