package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
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

// documents are the pages that the API has something for, by the pattern of their
// route.
var documents = makeDocuments()

func makeDocuments() map[string]document {
	all := map[string]document{}
	get := func(pattern string, d document) { all["GET "+pattern] = d }
	clusterDocuments(get)
	catalogDocuments(get)
	accountDocuments(get)
	systemDocuments(get)
	return all
}

func clusterDocuments(get func(string, document)) {
	const one, op = "/v2/clusters/{cluster}", "/v2/clusters/{cluster}/operations/{n}"
	extend := write("Change the end of the lease", http.MethodPost, one, `{"expireTime":1893456000000}`)
	remove := write("Delete", http.MethodDelete, one, "")
	edit := write("Change description, labels, protection", http.MethodPatch, one, `{"description":"for the shop","labels":{"team":"web"},"protected":true}`)
	actions := write("What can be done now", http.MethodGet, one+"/actions", "")
	clusters := document{path: "/v2/clusters", list: true, query: clusterListParams, columns: []string{
		"id=id", "name=name", "status=status", "template=clusterTemplate.name", "provider=provider.name", "owner=ownerId", "nodes=numNodes",
		"created=@createTime", "lease ends=@expireTime", "description=description"},
		calls: []documentCall{write("Create a cluster", http.MethodPost, "/v2/clusters", `{"name":"web-1","clusterTemplate":"web-cluster","numMachines":3}`)}}
	get(route.Clusters(), clusters)
	get(route.AdminClusters(), clusters)
	get(route.ClusterNew(), document{path: "/v2/clustertemplates", list: true, calls: []documentCall{
		write("Create a cluster", http.MethodPost, "/v2/clusters", `{"name":"web-1","clusterTemplate":"web-cluster","numMachines":3}`),
		write("Preview one", http.MethodPost, "/v2/previews", `{"kind":"create","request":{"name":"web-1","clusterTemplate":"web-cluster","numMachines":3}}`)}})
	get("/previews/{preview}", document{path: "/v2/previews/{preview}", calls: []documentCall{
		write("Changes", http.MethodGet, "/v2/previews/{preview}/changes", ""), write("Tasks", http.MethodGet, "/v2/previews/{preview}/tasks", ""),
		write("Apply", http.MethodPost, "/v2/previews/{preview}/apply", `{"hash":{doc.hash}}`), write("Discard", http.MethodDelete, "/v2/previews/{preview}", "")}})
	get("/clusters/{cluster}", document{path: one, calls: []documentCall{write("Status and progress", http.MethodGet, one+"/status", ""), actions, edit, extend, remove}})
	get("/clusters/{cluster}/nodes", document{path: one, calls: []documentCall{write("Some facts of all nodes", http.MethodPost, "/v2/getNodeProperties", `{"clusterId":{doc.id},"properties":["hostname","ipaddress"]}`)}})
	get("/clusters/{cluster}/services", document{path: one + "/services", list: true, calls: []documentCall{
		write("Restart all", http.MethodPost, one+"/services/restart", ""), write("Add services", http.MethodPost, one+"/services", `{"services":["nginx"]}`)}})
	get("/clusters/{cluster}/operations", document{path: one + "/operations", list: true, fresh: true, query: same("status", "action"), columns: []string{
		"number=number", "action=action", "status=status", "by=requestedBy", "requested=@createTime", "started=@startTime", "ended=@endTime", "message=message"}})
	get("/clusters/{cluster}/config", document{path: one + "/config", calls: []documentCall{
		write("Configs it has had", http.MethodGet, one+"/config/versions", ""), write("Replace it", http.MethodPut, one+"/config", `{"config":{},"restart":true}`)}})
	get("/clusters/{cluster}/lease", document{path: one, calls: []documentCall{extend}})
	get("/clusters/{cluster}/edit", document{path: one, calls: []documentCall{edit}})
	get("/clusters/{cluster}/delete", document{path: one, calls: []documentCall{
		write("Preview", http.MethodPost, "/v2/previews", `{"kind":"delete","clusterId":{doc.id},"request":{}}`), remove}})
	for path, c := range changeCalls {
		get("/clusters/{cluster}/"+path, document{path: one, calls: []documentCall{actions,
			write("Preview", http.MethodPost, "/v2/previews", `{"kind":"`+c.kind+`","clusterId":{doc.id},"request":`+c.body+`}`), write("Do it at once", c.method, c.path, c.body)}})
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

// changeCall is what a form of a change sends.
type changeCall struct{ kind, method, path, body string }

// changeCalls are the calls of the forms for operations on a cluster, by the end of
// their path.
var changeCalls = map[string]changeCall{
	"scale":                   {"expand", http.MethodPost, "/v2/clusters/{cluster}/expand", `{"count":1}`},
	"reconfigure":             {"configure", http.MethodPut, "/v2/clusters/{cluster}/config", `{"config":{},"restart":true}`},
	"upgrade":                 {"upgrade", http.MethodPost, "/v2/clusters/{cluster}/upgrade", `{}`},
	"resize":                  {"resize", http.MethodPost, "/v2/clusters/{cluster}/resize", `{"hardwaretype":"large"}`},
	"repair":                  {"repair", http.MethodPost, "/v2/clusters/{cluster}/repair", `{"nodes":[]}`},
	"sync":                    {"sync", http.MethodPost, "/v2/clusters/{cluster}/clustertemplate/sync", `{}`},
	"services/add":            {"add_services", http.MethodPost, "/v2/clusters/{cluster}/services", `{"services":["nginx"]}`},
	"services/remove":         {"remove_services", http.MethodPost, "/v2/clusters/{cluster}/remove-services", `{"services":["nginx"]}`},
	"services/start":          {"start", http.MethodPost, "/v2/clusters/{cluster}/services/start", `{}`},
	"services/stop":           {"stop", http.MethodPost, "/v2/clusters/{cluster}/services/stop", `{}`},
	"services/restart":        {"restart", http.MethodPost, "/v2/clusters/{cluster}/services/restart", `{}`},
	"operations/{n}/rollback": {"rollback", http.MethodPost, "/v2/clusters/{cluster}/operations/{n}/rollback", `{}`},
	"operations/{n}/retry":    {"retry", http.MethodPost, "/v2/clusters/{cluster}/operations/{n}/retry", `{}`},
	// {service} is filled in from the path.
	"services/{service}/start":   {"start", http.MethodPost, "/v2/clusters/{cluster}/services/{service}/start", `{}`},
	"services/{service}/stop":    {"stop", http.MethodPost, "/v2/clusters/{cluster}/services/{service}/stop", `{}`},
	"services/{service}/restart": {"restart", http.MethodPost, "/v2/clusters/{cluster}/services/{service}/restart", `{}`},
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

func catalogDocuments(get func(string, document)) {
	templates := document{path: "/v2/clustertemplates", list: true, query: fixed([]string{"deprecated", "false"}, "q"), columns: entryColumns}
	get(route.Catalog(), templates)
	get(route.Catalog()+"/{template}", document{path: "/v2/clustertemplates/{template}", calls: []documentCall{
		write("Create a cluster from it", http.MethodPost, "/v2/clusters", `{"name":"web-1","clusterTemplate":{doc.name},"numMachines":3}`)}})
	get(route.Catalog()+"/services/{service}", document{path: "/v2/services/{service}"})
	for _, kind := range loom.TenantKinds {
		base, list := "/v2/"+string(kind), route.AdminKind(kind)
		store := write("Store the next version", http.MethodPut, base+"/{name}", `{"name":{doc.name}}`)
		remove := write("Delete all versions", http.MethodDelete, base+"/{name}", "")
		get(list, document{path: base, list: true, query: entryParams, columns: entryColumns, calls: []documentCall{
			write("Store a new one", http.MethodPost, base, `{"name":"example"}`), write("As a bundle, with all of the catalog", http.MethodGet, "/v2/export", "")}})
		get(route.AdminNew(kind), document{path: base, list: true, calls: []documentCall{write("Store a new one", http.MethodPost, base, `{"name":"example"}`)}})
		entry := document{path: base + "/{name}", calls: []documentCall{write("Versions", http.MethodGet, base+"/{name}/versions", ""),
			write("Where it is used", http.MethodGet, base+"/{name}/uses", ""), store, remove, write("As a bundle, with all of the catalog", http.MethodGet, "/v2/export", "")}}
		for _, tab := range []string{"", "/json", "/edit", "/delete", "/compare", "/activity"} {
			get(list+"/{name}"+tab, entry)
		}
		get(list+"/{name}/uses", document{path: base + "/{name}/uses", list: true, fresh: true})
		get(list+"/{name}/versions", document{path: base + "/{name}/versions", list: true, fresh: true})
		get(list+"/{name}/versions/{version}", document{path: base + "/{name}/{version}"})
	}
	get("/admin/providers/{name}/test", document{path: "/v2/providers/{name}", calls: []documentCall{write("Test the connection", http.MethodPost, "/v2/providers/{name}/probe", "")}})
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
	q := same("actor", "verb", "kind", "object", "result")(page)
	for name, days := range map[string]int{"since": 0, "until": 1} {
		if at, err := time.Parse(time.DateOnly, page.Get(name)); err == nil {
			q.Set(name, strconv.FormatInt(at.AddDate(0, 0, days).UnixMilli(), 10))
		}
	}
	return q
}
