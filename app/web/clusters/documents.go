package clusters

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/route"
)

// newClusterDraft puts beside the members of a template the request for a new cluster.
func (s *Server) newClusterDraft(r *http.Request, actor loom.Actor, fields map[string]any) map[string]any {
	if len(fields) > 0 {
		fields["draft"] = s.draftBody(r, actor, fields)
	}
	return fields
}

// draftBody is the request for a new cluster as its form stands: the draft of whoever
// asks, or the least that a template wants.
func (s *Server) draftBody(r *http.Request, actor loom.Actor, template map[string]any) map[string]any {
	f, at := s.restoreCreateDraft(r, actor)
	if at.IsZero() || f.of("clusterTemplate") == "" {
		return map[string]any{"name": "web-1", "clusterTemplate": template["name"], "numMachines": template["size"]}
	}
	in, _ := f.input(nil) // what cannot be read is left out
	in.Config = masked(in.Config)
	return createBody(in)
}

// Documents enters what the API has for the pages of the area.
func (s *Server) Documents(get func(string, page.Document)) {
	const one, op = page.ClusterDocument, "/v2/clusters/{cluster}/operations/{n}"
	extend := page.APICall("Change the end of the lease", http.MethodPost, one, `{"expireTime":{doc.expireTime|0}}`)
	remove := page.APICall("Delete", http.MethodDelete, one, "")
	edit := page.APICall("Change description, labels, protection", http.MethodPatch, one, `{"description":{doc.description},"labels":{doc.labels|{}},"protected":{doc.protected|false}}`)
	actions := page.APICall("What can be done now", http.MethodGet, one+"/actions", "")
	clusters := page.Document{Path: "/v2/clusters", List: true, Query: clusterListParams, Columns: []string{
		"id=id", "name=name", "status=status", "template=clusterTemplate.name", "provider=provider.name", "owner=ownerId", "nodes=numNodes",
		"created=@createTime", "lease ends=@expireTime", "description=description"},
		Calls: []page.DocumentCall{page.APICall("Create a cluster", http.MethodPost, "/v2/clusters", `{"name":"web-1","clusterTemplate":"web-cluster","numMachines":3}`)}}
	get(route.Clusters(), clusters)
	get(route.AdminClusters(), clusters)
	get(route.ClusterNew(), page.Document{Draft: s.newClusterDraft, Path: "/v2/clustertemplates", List: true, Calls: []page.DocumentCall{
		page.APICall("Create a cluster", http.MethodPost, "/v2/clusters", `{doc.draft|{}}`), page.APICall("Preview it", http.MethodPost, "/v2/previews", `{"kind":"create","request":{doc.draft|{}}}`)}})
	get("/previews/{preview}", page.Document{Path: "/v2/previews/{preview}", Calls: []page.DocumentCall{
		page.APICall("Changes", http.MethodGet, "/v2/previews/{preview}/changes", ""), page.APICall("Tasks", http.MethodGet, "/v2/previews/{preview}/tasks", ""),
		page.APICall("Apply", http.MethodPost, "/v2/previews/{preview}/apply", `{"hash":{doc.hash}}`), page.APICall("Discard", http.MethodDelete, "/v2/previews/{preview}", "")}})
	get("/clusters/{cluster}", page.Document{Path: one, Calls: []page.DocumentCall{page.APICall("Status and progress", http.MethodGet, one+"/status", ""), actions, edit, extend, remove}})
	get("/clusters/{cluster}/nodes", page.Document{Path: one, Calls: []page.DocumentCall{page.APICall("Some facts of all nodes", http.MethodPost, "/v2/getNodeProperties", `{"clusterId":{doc.id},"properties":["hostname","ipaddress"]}`)}})
	get("/clusters/{cluster}/services", page.Document{Path: one + "/services", List: true, Calls: []page.DocumentCall{
		page.APICall("Restart all", http.MethodPost, one+"/services/restart", "")}})
	get("/clusters/{cluster}/operations", page.Document{Path: one + "/operations", List: true, Fresh: true, Query: page.SameParams("status", "action"), Columns: []string{
		"number=number", "action=action", "status=status", "by=requestedBy", "requested=@createTime", "started=@startTime", "ended=@endTime", "message=message"}})
	get("/clusters/{cluster}/health", page.Document{Path: one + "/incidents", List: true, Fresh: true, Columns: []string{
		"id=id", "kind=kind", "service=service", "node=hostname", "since=@since", "ended=@endedAt", "message=message", "decision=decision", "reason=reason"},
		Calls: []page.DocumentCall{page.APICall("Health of each node", http.MethodGet, one+"/health", ""), page.APICall("End maintenance", http.MethodDelete, one+"/maintenance", "")}})
	get("/clusters/{cluster}/config", page.Document{Path: one + "/config", Calls: []page.DocumentCall{
		page.APICall("Configs it has had", http.MethodGet, one+"/config/versions", ""), page.APICall("Replace it", http.MethodPut, one+"/config", `{"config":{doc.config|{}},"restart":true}`)}})
	get("/clusters/{cluster}/lease", page.Document{Path: one, Calls: []page.DocumentCall{extend}})
	get("/clusters/{cluster}/access", page.Document{Path: one + "/access", Calls: []page.DocumentCall{
		page.APICall("Share it", http.MethodPost, one+"/access", `{"user":"eve","role":"operator"}`)}})
	get("/clusters/{cluster}/edit", page.Document{Path: one, Calls: []page.DocumentCall{edit}})
	get("/clusters/{cluster}/delete", page.Document{Path: one, Calls: []page.DocumentCall{
		page.APICall("Preview", http.MethodPost, "/v2/previews", `{"kind":"delete","clusterId":{doc.id},"request":{}}`), remove}})
	for path, c := range changeCalls {
		get("/clusters/{cluster}/"+path, page.Document{Path: one, Calls: []page.DocumentCall{actions,
			page.APICall("Preview", http.MethodPost, "/v2/previews", `{"kind":"`+c.kind+`","clusterId":{doc.id},"request":`+cmp.Or(c.ask, c.body)+`}`), page.APICall("Do it at once", c.method, c.path, c.body)}})
	}
	get("/clusters/{cluster}/nodes/{node}", page.Document{Path: "/v2/nodes/{node}", Calls: []page.DocumentCall{
		page.APICall("Its load", http.MethodGet, one+"/nodes/{node}/load", ""), page.APICall("Its log", http.MethodGet, one+"/nodes/{node}/log", ""), page.APICall("Its own sign-in; audited", http.MethodPost, one+"/nodes/{node}/reveal", "")}})

	get("/clusters/{cluster}/nodes/{node}/log", page.Document{Path: one + "/nodes/{node}/log", List: true, Fresh: true})

	get("/clusters/{cluster}/nodes/{node}/services/{service}/journal", page.Document{Path: one + "/nodes/{node}/services/{service}/journal"})

	tasks := page.APICall("Its tasks", http.MethodGet, op+"/tasks", "")
	for _, view := range []string{"", "/graph", "/timeline", "/log"} {
		get("/clusters/{cluster}/operations/{n}"+view, page.Document{Path: op, Calls: []page.DocumentCall{tasks, page.APICall("Its log", http.MethodGet, op+"/log", ""),
			page.APICall("Pause", http.MethodPost, op+"/pause", ""), page.APICall("Resume", http.MethodPost, op+"/resume", ""), page.APICall("Abort", http.MethodPost, op+"/abort", "")}})
	}
	get("/clusters/{cluster}/operations/{n}/abort", page.Document{Path: op, Calls: []page.DocumentCall{page.APICall("Abort", http.MethodPost, op+"/abort", "")}})
	get("/clusters/{cluster}/operations/{n}/table", page.Document{Path: op + "/tasks", List: true, Fresh: true, Query: page.SameParams("status", "node", "service", "action"), Columns: []string{
		"number=number", "action=action", "service=service", "node=nodeId", "status=status", "stage=stage"}})
	get("/clusters/{cluster}/operations/{n}/tasks/{task}", page.Document{Path: op + "/tasks/{task}", Calls: []page.DocumentCall{page.APICall("Its log", http.MethodGet, op+"/tasks/{task}/log", "")}})
	get("/clusters/{cluster}/operations/{n}/tasks/{task}/skip", page.Document{Path: op + "/tasks/{task}", Calls: []page.DocumentCall{
		page.APICall("Leave it out", http.MethodPost, op+"/tasks/{task}/skip", `{"reason":"done by hand"}`)}})
}

// changeCall is what a form of a change sends; ask is what a preview of it is asked for,
// where that is something else.
type changeCall struct{ kind, method, path, body, ask string }

// changeCalls are the calls of the forms for operations on a cluster, by the end of
// their path.
var changeCalls = map[string]changeCall{
	"scale":                      {"expand", http.MethodPost, "/v2/clusters/{cluster}/expand", `{"numMachines":{doc.more|2}}`, ""},
	"reconfigure":                {"configure", http.MethodPut, "/v2/clusters/{cluster}/config", `{"config":{doc.config|{}},"restart":true}`, ""},
	"update":                     {"update", http.MethodPost, "/v2/clusters/{cluster}/update", `{}`, ""},
	"resize":                     {"resize", http.MethodPost, "/v2/clusters/{cluster}/resize", `{"hardwaretype":{doc.hardware|"large"}}`, ""},
	"repair":                     {"repair", http.MethodPost, "/v2/clusters/{cluster}/repair", `{"nodes":{doc.broken|[]}}`, ""},
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
	out := url.Values{"q": {q.search()}, "template": {q.Template}, "provider": {q.Provider}, "owner": {q.Owner}, "shared": {q.Shared}, "sort": {q.Sort}}
	var statuses []string
	in := q.input(1)
	for _, health := range in.Health {
		out.Add("health", string(health))
	}
	for _, status := range in.Statuses {
		if slices.Contains(loom.ClusterStatuses, status) {
			statuses = append(statuses, string(status))
		}
	}
	out.Set("status", strings.Join(statuses, ","))
	return out
}
