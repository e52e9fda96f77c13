package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// same hands these parameters on.
func same(names ...string) func(url.Values) url.Values {
	return func(page url.Values) url.Values {
		q := url.Values{}
		for _, name := range names {
			q.Set(name, page.Get(name))
		}
		return q
	}
}

// fixed hands on what is given in pairs, besides the same parameters.
func fixed(pairs []string, names ...string) func(url.Values) url.Values {
	return func(page url.Values) url.Values {
		q := same(names...)(page)
		for i := 0; i < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return q
	}
}

func write(label, method, path, body string) documentCall {
	return documentCall{label, method, path, body}
}

// documents are what the pages of all areas have in the API, by the patterns of their
// routes.
func (s *Server) makeDocuments() map[string]document {
	all := map[string]document{}
	for _, area := range []func(func(string, document)){s.clusterDocuments, s.catalogDocuments, s.accountDocuments, s.adminDocuments, s.reportDocuments, s.systemDocuments} {
		area(func(path string, d document) { all["GET "+path] = d })
	}
	return all
}

// Paths of a cluster and of the template that users see.
const (
	clusterDocument  = "/v2/clusters/{cluster}"
	templateDocument = "/v2/clustertemplates/{template}"
)

// clusterDocuments enters what the API has for the pages of the area.
func (s *Server) clusterDocuments(get func(string, document)) {
	const one, op = clusterDocument, "/v2/clusters/{cluster}/operations/{n}"
	extend := write("Change the end of the lease", http.MethodPost, one, `{"expireTime":{doc.expireTime|0}}`)
	remove := write("Delete", http.MethodDelete, one, "")
	edit := write("Change description, labels, protection", http.MethodPatch, one, `{"description":{doc.description},"labels":{doc.labels|{}},"protected":{doc.protected|false}}`)
	actions := write("What can be done now", http.MethodGet, one+"/actions", "")
	clusters := document{path: "/v2/clusters", list: true, query: clusterListParams, columns: []string{
		"id=id", "name=name", "status=status", "template=clusterTemplate.name", "provider=provider.name", "owner=ownerId", "nodes=numNodes",
		"created=@createTime", "lease ends=@expireTime", "description=description"},
		calls: []documentCall{write("Create a cluster", http.MethodPost, "/v2/clusters", `{"name":"web-1","clusterTemplate":"web-cluster","numMachines":3}`)}}
	get(route.Clusters(), clusters)
	get(route.AdminClusters(), clusters)
	get(route.ClusterNew(), document{draft: s.newClusterDraft, path: "/v2/clustertemplates", list: true, calls: []documentCall{
		write("Create a cluster", http.MethodPost, "/v2/clusters", `{doc.draft|{}}`), write("Preview it", http.MethodPost, "/v2/previews", `{"kind":"create","request":{doc.draft|{}}}`)}})
	get("/previews/{preview}", document{path: "/v2/previews/{preview}", calls: []documentCall{
		write("Changes", http.MethodGet, "/v2/previews/{preview}/changes", ""), write("Tasks", http.MethodGet, "/v2/previews/{preview}/tasks", ""),
		write("Apply", http.MethodPost, "/v2/previews/{preview}/apply", `{"hash":{doc.hash}}`), write("Discard", http.MethodDelete, "/v2/previews/{preview}", "")}})
	get("/clusters/{cluster}", document{path: one, calls: []documentCall{write("Status and progress", http.MethodGet, one+"/status", ""), actions, edit, extend, remove}})
	get("/clusters/{cluster}/nodes", document{path: one, calls: []documentCall{write("Some facts of all nodes", http.MethodPost, "/v2/getNodeProperties", `{"clusterId":{doc.id},"properties":["hostname","ipaddress"]}`)}})
	get("/clusters/{cluster}/services", document{path: one + "/services", list: true, calls: []documentCall{
		write("Restart all", http.MethodPost, one+"/services/restart", "")}})
	get("/clusters/{cluster}/operations", document{path: one + "/operations", list: true, fresh: true, query: same("status", "action"), columns: []string{
		"number=number", "action=action", "status=status", "by=requestedBy", "requested=@createTime", "started=@startTime", "ended=@endTime", "message=message"}})
	get("/clusters/{cluster}/config", document{path: one + "/config", calls: []documentCall{
		write("Configs it has had", http.MethodGet, one+"/config/versions", ""), write("Replace it", http.MethodPut, one+"/config", `{"config":{doc.config|{}},"restart":true}`)}})
	get("/clusters/{cluster}/lease", document{path: one, calls: []documentCall{extend}})
	get("/clusters/{cluster}/edit", document{path: one, calls: []documentCall{edit}})
	get("/clusters/{cluster}/delete", document{path: one, calls: []documentCall{
		write("Preview", http.MethodPost, "/v2/previews", `{"kind":"delete","clusterId":{doc.id},"request":{}}`), remove}})
	for path, c := range changeCalls {
		get("/clusters/{cluster}/"+path, document{path: one, calls: []documentCall{actions,
			write("Preview", http.MethodPost, "/v2/previews", `{"kind":"`+c.kind+`","clusterId":{doc.id},"request":`+cmp.Or(c.ask, c.body)+`}`), write("Do it at once", c.method, c.path, c.body)}})
	}
	get("/clusters/{cluster}/nodes/{node}", document{path: "/v2/nodes/{node}", calls: []documentCall{
		write("Its log", http.MethodGet, one+"/nodes/{node}/log", ""), write("Its own sign-in; audited", http.MethodPost, one+"/nodes/{node}/reveal", "")}})

	get("/clusters/{cluster}/nodes/{node}/log", document{path: one + "/nodes/{node}/log", list: true, fresh: true})

	tasks := write("Its tasks", http.MethodGet, op+"/tasks", "")
	for _, view := range []string{"", "/graph", "/stages", "/timeline", "/log"} {
		get("/clusters/{cluster}/operations/{n}"+view, document{path: op, calls: []documentCall{tasks, write("Its log", http.MethodGet, op+"/log", ""),
			write("Pause", http.MethodPost, op+"/pause", ""), write("Resume", http.MethodPost, op+"/resume", ""), write("Abort", http.MethodPost, op+"/abort", "")}})
	}
	get("/clusters/{cluster}/operations/{n}/abort", document{path: op, calls: []documentCall{write("Abort", http.MethodPost, op+"/abort", "")}})
	get("/clusters/{cluster}/operations/{n}/table", document{path: op + "/tasks", list: true, fresh: true, query: same("status", "node", "service", "action"), columns: []string{
		"number=number", "action=action", "service=service", "node=nodeId", "status=status", "stage=stage"}})
	get("/clusters/{cluster}/operations/{n}/tasks/{task}", document{path: op + "/tasks/{task}", calls: []documentCall{write("Its log", http.MethodGet, op+"/tasks/{task}/log", "")}})
	get("/clusters/{cluster}/operations/{n}/tasks/{task}/skip", document{path: op + "/tasks/{task}", calls: []documentCall{
		write("Leave it out", http.MethodPost, op+"/tasks/{task}/skip", `{"reason":"done by hand"}`)}})
}

// changeCall is what a form of a change sends; ask is what a preview of it is asked for,
// where that is something else.
type changeCall struct{ kind, method, path, body, ask string }

// changeCalls are the calls of the forms for operations on a cluster, by the end of
// their path.
var changeCalls = map[string]changeCall{
	"scale":                      {"expand", http.MethodPost, "/v2/clusters/{cluster}/expand", `{"numMachines":{doc.more|2}}`, ""},
	"reconfigure":                {"configure", http.MethodPut, "/v2/clusters/{cluster}/config", `{"config":{doc.config|{}},"restart":true}`, ""},
	"upgrade":                    {"upgrade", http.MethodPost, "/v2/clusters/{cluster}/upgrade", `{}`, ""},
	"resize":                     {"resize", http.MethodPost, "/v2/clusters/{cluster}/resize", `{"hardwaretype":{doc.hardware|"large"}}`, ""},
	"repair":                     {"repair", http.MethodPost, "/v2/clusters/{cluster}/repair", `{"nodes":{doc.broken|[]}}`, ""},
	"sync":                       {"sync", http.MethodPost, "/v2/clusters/{cluster}/clustertemplate/sync", `{}`, ""},
	"services/add":               {"add_services", http.MethodPost, "/v2/clusters/{cluster}/services", `{"services":{doc.absent|["nginx"]}}`, ""},
	"services/remove":            {"remove_services", http.MethodPost, "/v2/clusters/{cluster}/remove-services", `{"services":{doc.present|["nginx"]}}`, ""},
	"services/start":             {"start", http.MethodPost, "/v2/clusters/{cluster}/services/start", `{}`, ""},
	"services/stop":              {"stop", http.MethodPost, "/v2/clusters/{cluster}/services/stop", `{}`, ""},
	"services/restart":           {"restart", http.MethodPost, "/v2/clusters/{cluster}/services/restart", `{}`, ""},
	"operations/{n}/rollback":    {"rollback", http.MethodPost, "/v2/clusters/{cluster}/operations/{n}/rollback", `{}`, `{"operation":{n}}`},
	"operations/{n}/retry":       {"retry", http.MethodPost, "/v2/clusters/{cluster}/operations/{n}/retry", `{}`, `{"operation":{n}}`},
	"services/{service}/start":   {"start", http.MethodPost, "/v2/clusters/{cluster}/services/{service}/start", `{}`, `{"services":["{service}"]}`},
	"services/{service}/stop":    {"stop", http.MethodPost, "/v2/clusters/{cluster}/services/{service}/stop", `{}`, `{"services":["{service}"]}`},
	"services/{service}/restart": {"restart", http.MethodPost, "/v2/clusters/{cluster}/services/{service}/restart", `{}`, `{"services":["{service}"]}`},
}

// clusterListParams gives the API's parameters for the filters of the list of clusters.
func clusterListParams(page url.Values) url.Values {
	q := readListQuery(page)
	out := url.Values{"q": {q.search()}, "template": {q.Template}, "provider": {q.Provider}, "owner": {q.Owner}, "sort": {q.Sort}}
	var statuses []string
	for _, status := range q.input(1).Statuses {
		if slices.Contains(loom.ClusterStatuses, status) {
			statuses = append(statuses, string(status))
		}
	}
	out.Set("status", strings.Join(statuses, ","))
	return out
}

// catalogDocuments enters what the API has for the pages of the area.
func (s *Server) catalogDocuments(get func(string, document)) {
	templates := document{path: "/v2/clustertemplates", list: true, query: fixed([]string{"deprecated", "false"}, "q"), columns: entryColumns}
	get(route.Catalog(), templates)
	get(route.Catalog()+"/{template}", document{path: templateDocument, calls: []documentCall{
		write("Create a cluster from it", http.MethodPost, "/v2/clusters", `{"name":"web-1","clusterTemplate":{doc.name},"numMachines":{doc.size|3}}`)}})
	get(route.Catalog()+"/services/{service}", document{path: "/v2/services/{service}"})
	for _, kind := range loom.TenantKinds {
		base, list := "/v2/"+string(kind), route.AdminKind(kind)
		store := write("Store the next version", http.MethodPut, base+"/{name}", `{doc}`)
		remove := write("Delete all versions", http.MethodDelete, base+"/{name}", "")
		get(list, document{path: base, list: true, query: entryParams, columns: entryColumns, calls: []documentCall{
			write("Store a new one", http.MethodPost, base, exampleOf(kind)), write("As a bundle, with all of the catalog", http.MethodGet, "/v2/export", "")}})
		get(route.AdminNew(kind), document{draft: s.entryDraft(kind), path: base, list: true, calls: []documentCall{write("Store what the form says", http.MethodPost, base, `{doc.draft|{}}`)}})
		entry := document{path: base + "/{name}", calls: []documentCall{write("Versions", http.MethodGet, base+"/{name}/versions", ""),
			write("Where it is used", http.MethodGet, base+"/{name}/uses", ""), store, remove, write("As a bundle, with all of the catalog", http.MethodGet, "/v2/export", "")}}
		edit := entry
		edit.draft = s.entryDraft(kind)
		edit.calls = append([]documentCall{write("Store what the form says as the next version", http.MethodPut, base+"/{name}", `{doc.draft|{}}`)}, remove)
		get(list+"/{name}/edit", edit)
		for _, tab := range []string{"", "/json", "/delete", "/compare", "/activity"} {
			get(list+"/{name}"+tab, entry)
		}
		get(list+"/{name}/uses", document{path: base + "/{name}/uses", list: true, fresh: true})
		get(list+"/{name}/versions", document{path: base + "/{name}/versions", list: true, fresh: true})
		get(list+"/{name}/versions/{version}", document{path: base + "/{name}/{version}"})
	}
	get("/admin/providers/{name}/orphans", document{path: "/v2/providers/{name}/sweep", fresh: true, calls: []documentCall{write("Look now", http.MethodPost, "/v2/providers/{name}/sweep", "")}})
	get("/admin/providers/{name}/test", document{path: "/v2/providers/{name}", calls: []documentCall{write("Test the connection", http.MethodPost, "/v2/providers/{name}/probe", "")}})
}

// exampleOf is the least that an entry of a kind has.
func exampleOf(kind loom.EntityKind) string {
	if kind == loom.KindProvider {
		return `{"name":"example","providertype":{doc.providertype|"local"}}`
	}
	return `{"name":"example"}`
}

var entryColumns = []string{"name=name", "label=label", "description=description", "version=version", "deprecated=deprecated"}

// entryParams gives the API's parameters for those of a list of a kind.
func entryParams(page url.Values) url.Values {
	q := url.Values{"q": {page.Get(adminview.FieldQ)}, "sort": {page.Get(adminview.FieldSort)}}
	switch page.Get(adminview.FieldShow) {
	case showUsable:
		q.Set("deprecated", "false")
	case showDeprecated:
		q.Set("deprecated", "true")
	}
	return q
}

// auditParams gives the API's parameters for the filters of the audit.
func auditParams(page url.Values) url.Values {
	return same("actor", "verb", "kind", "object", "result", "from", "request", "since", "until")(page)
}

// spanOf gives the days between which a list is asked for as the API wants them:
// milliseconds since 1970, where the viewer's days begin and end.
func spanOf(see ui.Viewer, page url.Values) url.Values {
	for name, days := range map[string]int{"since": 0, "until": 1} {
		if at, err := see.ParseDay(page.Get(name)); err == nil {
			page.Set(name, strconv.FormatInt(at.AddDate(0, 0, days).UnixMilli(), 10))
		} else {
			page.Del(name)
		}
	}
	return page
}
