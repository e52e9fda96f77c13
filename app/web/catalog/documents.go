package catalog

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
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
			if tree, isObject := page.ParseTree([]byte(values[0])).(map[string]any); isObject {
				return map[string]any{"draft": tree}
			}
		}
		if name != "" {
			return map[string]any{"draft": maps.Clone(fields)}
		}
		return map[string]any{"draft": page.ParseTree([]byte(page.OfDocument(exampleOf(kind), fields)))}
	}
}

// Documents enters what the API has for the pages of the area.
func (s *Server) Documents(get func(string, page.Document)) {
	templates := page.Document{Path: "/v2/clustertemplates", List: true, Query: page.FixedParams([]string{"deprecated", "false"}, "q"), Columns: page.EntryColumns}
	get(route.Catalog(), templates)
	get(route.Catalog()+"/{template}", page.Document{Path: page.TemplateDocument, Calls: []page.DocumentCall{
		page.APICall("Create a cluster from it", http.MethodPost, "/v2/clusters", `{"name":"web-1","clusterTemplate":{doc.name},"numMachines":{doc.size|3}}`)}})
	get(route.Services(), page.Document{Path: "/v2/services", List: true, Query: page.FixedParams([]string{"deprecated", "false"}, "q"), Columns: page.EntryColumns})
	get(route.Catalog()+"/services/{service}", page.Document{Path: "/v2/services/{service}"})
	for _, kind := range loom.TenantKinds {
		base, list := "/v2/"+string(kind), route.AdminKind(kind)
		store := page.APICall("Store the next version", http.MethodPut, base+"/{name}", `{doc}`)
		remove := page.APICall("Delete all versions", http.MethodDelete, base+"/{name}", "")
		get(list, page.Document{Path: base, List: true, Query: entryParams, Columns: page.EntryColumns, Calls: []page.DocumentCall{
			page.APICall("Store a new one", http.MethodPost, base, exampleOf(kind)), page.APICall("As a bundle, with all of the catalog", http.MethodGet, "/v2/export", "")}})
		get(route.AdminNew(kind), page.Document{Draft: s.entryDraft(kind), Path: base, List: true, Calls: []page.DocumentCall{page.APICall("Store what the form says", http.MethodPost, base, `{doc.draft|{}}`)}})
		entry := page.Document{Path: base + "/{name}", Calls: []page.DocumentCall{page.APICall("Versions", http.MethodGet, base+"/{name}/versions", ""),
			page.APICall("Where it is used", http.MethodGet, base+"/{name}/uses", ""), store, remove, page.APICall("As a bundle, with all of the catalog", http.MethodGet, "/v2/export", "")}}
		edit := entry
		edit.Draft = s.entryDraft(kind)
		edit.Calls = append([]page.DocumentCall{page.APICall("Store what the form says as the next version", http.MethodPut, base+"/{name}", `{doc.draft|{}}`)}, remove)
		get(list+"/{name}/edit", edit)
		for _, tab := range []string{"", "/json", "/delete", "/compare", "/activity"} {
			get(list+"/{name}"+tab, entry)
		}
		get(list+"/{name}/uses", page.Document{Path: base + "/{name}/uses", List: true, Fresh: true})
		get(list+"/{name}/versions", page.Document{Path: base + "/{name}/versions", List: true, Fresh: true})
		get(list+"/{name}/versions/{version}", page.Document{Path: base + "/{name}/{version}"})
	}
	get("/admin/providers/{name}/orphans", page.Document{Path: "/v2/providers/{name}/sweep", Fresh: true, Calls: []page.DocumentCall{page.APICall("Look now", http.MethodPost, "/v2/providers/{name}/sweep", "")}})
	get("/admin/providers/{name}/test", page.Document{Path: "/v2/providers/{name}", Calls: []page.DocumentCall{page.APICall("Test the connection", http.MethodPost, "/v2/providers/{name}/probe", "")}})
}

// exampleOf is the least that an entry of a kind has.
func exampleOf(kind loom.EntityKind) string {
	if kind == loom.KindProvider {
		return `{"name":"example","providertype":{doc.providertype|"local"}}`
	}
	return `{"name":"example"}`
}

// entryParams gives the API's parameters for those of a list of a kind.
func entryParams(page url.Values) url.Values {
	q := url.Values{"q": {page.Get(adminview.FieldQ)}, "sort": {page.Get(adminview.FieldSort)}}
	for _, facet := range facetFields {
		q.Set(facet, page.Get(facet))
	}
	switch page.Get(adminview.FieldShow) {
	case showUsable:
		q.Set("deprecated", "false")
	case showDeprecated:
		q.Set("deprecated", "true")
	}
	return q
}
