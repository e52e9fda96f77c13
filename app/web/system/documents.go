package system

import (
	"net/http"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/route"
)

// Documents enters what the API has for the pages of the area.
func (s *Server) Documents(get func(string, page.Document)) {
	hold := []page.DocumentCall{page.APICall("Pause one", http.MethodPost, "/v2/queues/probe/pause", ""), page.APICall("Resume it", http.MethodPost, "/v2/queues/probe/resume", "")}
	get(route.SystemQueues(), page.Document{Path: "/v2/queues", List: true, Fresh: true, Calls: hold, Columns: []string{"queue=queue", "tenant=tenant", "waiting=counts.available", "running=counts.running",
		"scheduled=counts.scheduled", "retrying=counts.retryable", "pending=counts.pending", "discarded=counts.discarded", "oldest=@oldestTime", "paused=@pausedTime"}})
	get(route.SystemQueues()+"/{queue}/{verb}", page.Document{Path: "/v2/queues", List: true, Fresh: true, Calls: []page.DocumentCall{page.APICall("Do it", http.MethodPost, "/v2/queues/{queue}/{verb}", "")}})
	get(route.SystemJobs(), page.Document{Path: "/v2/riverjobs", List: true, Fresh: true, Query: page.SameParams("state", "queue", "kind", "id", "tenant"),
		Columns: []string{"id=id", "queue=queue", "kind=kind", "state=state", "tries=attempt", "of=maxAttempts", "made=@createTime", "due=@dueTime", "tried=@attemptTime", "ended=@endTime", "arguments=args", "error=error"}})
	get(route.SystemJobs()+"/{id}", page.Document{Path: "/v2/riverjobs/{id}"})
	get(route.SystemClusters(), page.Document{Path: "/v2/system/clusters", List: true, Fresh: true, Query: page.SameParams("q", "tenant", "owner", "status"),
		Columns: []string{"id=id", "name=name", "status=status", "tenant=tenant", "owner=ownerId", "template=template", "nodes=numNodes", "created=@createTime", "lease ends=@expireTime"}})

	const tenant = "/v2/tenants/{tenant}"
	change := page.APICall("Change", http.MethodPut, tenant, `{"tenant":{"name":{doc.name},"workers":{doc.workers|0}}}`)
	make := page.APICall("Make one", http.MethodPost, "/v2/tenants", `{"tenant":{"name":"lab","workers":2},"bootstrap":true}`)
	get(route.SystemTenants(), page.Document{Path: "/v2/tenants", List: true, Query: page.SameParams("q"), Calls: []page.DocumentCall{make},
		Columns: []string{"name=name", "description=description", "workers=workers", "most clusters=maxClusters", "most nodes=maxNodes"}})
	get(route.SystemTenantNew(), page.Document{Path: "/v2/tenants", List: true, Calls: []page.DocumentCall{make}})
	for _, end := range []string{"", "/edit", "/delete"} {
		get(route.SystemTenants()+"/{tenant}"+end, page.Document{Path: tenant, Calls: []page.DocumentCall{change, page.APICall("Delete", http.MethodDelete, tenant, "")}})
	}
	get(route.SystemTenants()+"/{tenant}/nodes", page.Document{Path: tenant + "/nodes", List: true, Fresh: true,
		Columns: []string{"node=id", "host name=hostname", "state=state", "provider=provider", "machine=machineId", "cluster=clusterId", "cluster name=clusterName", "owner=ownerId", "created=@createTime"}})
	get(route.SystemTenants()+"/{tenant}/clusters/{cluster}/abandon", page.Document{Path: tenant})
	get(route.SystemWorkers(), page.Document{Path: "/v2/processes", List: true, Fresh: true,
		Columns: []string{"id=id", "kind=kind", "host=host", "version=version", "started=@startTime", "last seen=@lastSeen", "draining=draining", "capacity=capacity", "busy=busy", "last error=lastError", "at=@lastErrorTime"}})
	get(route.SystemWorkers()+"/{id}/{verb}", page.Document{Path: "/v2/processes", List: true, Fresh: true, Calls: []page.DocumentCall{
		page.APICall("Drain", http.MethodPost, "/v2/processes/{id}/drain", ""), page.APICall("Resume", http.MethodPost, "/v2/processes/{id}/resume", "")}})
	get(route.SystemOrphans(), page.Document{Path: "/v2/orphans", List: true, Fresh: true, Calls: []page.DocumentCall{
		page.APICall("When providers were looked at", http.MethodGet, "/v2/sweeps", ""), page.APICall("Look now", http.MethodPost, "/v2/sweeps", "")},
		Columns: []string{"machine=machineId", "name=name", "provider=provider", "tenant=tenant", "cluster=clusterId", "node=nodeId", "machine of the node=ownMachineId", "first seen=@firstSeen"}})
	get(route.SystemLeftovers(), page.Document{Path: "/v2/leftovers", List: true, Fresh: true,
		Columns: []string{"machine=machineId", "host name=hostname", "provider=provider", "tenant=tenant", "cluster=clusterId", "node=nodeId", "tries=tries", "last error=lastError", "first seen=@firstSeen", "last try=@lastTry"}})
	get(route.SystemOrphans()+"/{id}/remove", page.Document{Path: "/v2/orphans", List: true, Fresh: true, Calls: []page.DocumentCall{page.APICall("Remove", http.MethodDelete, "/v2/orphans/{id}", "")}})
	get(route.SystemPlugins(), page.Document{Path: "/v2/plugins/" + string(loom.KindProviderType), List: true, Columns: page.EntryColumns, Calls: []page.DocumentCall{
		page.APICall("Automator types", http.MethodGet, "/v2/plugins/"+string(loom.KindAutomatorType), "")}})
}
