package web

import (
	"net/http"
	"net/url"

	"loom/app/loom"
	"loom/views/route"
)

var auditColumns = []string{"time=@time", "tenant=tenant", "actor=actor", "via=via", "address=address", "verb=verb", "kind=kind", "object=object", "result=result", "request=requestId"}

// accountDocuments enters what the API has for the pages of the area.
func (s *Server) accountDocuments(get func(string, document)) {
	get(route.Account(), document{path: "/v2/whoami", calls: []documentCall{
		write("Store a free-form object of yours", http.MethodPut, "/v2/profile", `{"desk":"4.17"}`), write("Read it", http.MethodGet, "/v2/profile", "")}})
	tokens := document{path: "/v2/tokens", list: true, fresh: true, query: same("q"), calls: []documentCall{
		write("Make a token", http.MethodPost, "/v2/tokens", `{"name":"nightly build","scopes":["read"]}`)},
		columns: []string{"name=name", "starts with=prefix", "created=@createTime", "expires=@expires", "last used=@lastUsed", "from=lastAddress"}}
	get(route.AccountTokens(), tokens)
	get(route.AccountTokens()+"/{id}/revoke", document{path: "/v2/tokens", list: true, fresh: true, calls: []documentCall{write("Revoke it", http.MethodDelete, "/v2/tokens/{id}", "")}})
	get(route.AccountTokens()+"/{id}/rotate", document{path: "/v2/tokens", list: true, fresh: true, calls: []documentCall{write("Give it another secret", http.MethodPost, "/v2/tokens/{id}/rotate", "")}})
	get(route.AccountSessions(), document{path: "/v2/sessions", list: true, fresh: true,
		columns: []string{"signed in=@createTime", "last used=@lastUsed", "address=address", "browser=agent"}})
	get(route.AccountActivity(), document{path: "/v2/audit", list: true, fresh: true, columns: auditColumns, query: func(page url.Values) url.Values {
		q := auditParams(page)
		q.Set("actor", "{me}")
		return q
	}})
}

// adminDocuments enters what the API has for the pages of the area.
func (s *Server) adminDocuments(get func(string, document)) {
	get(route.AdminResources(), document{path: "/v2/plugins/resources", list: true, fresh: true, query: resourceParams,
		columns: []string{"name=name", "kind=kind", "plugin=plugin", "type=type", "state=status", "in use=live", "staged=staged", "newest=version", "versions=versions", "size=size", "sha256=sha256", "uploaded=@createTime", "by=author"},
		calls:   []documentCall{write("Put in use what is staged", http.MethodPost, "/v2/plugins/sync", "")}})
	const user = "/v2/users/{id}"
	edit := write("Change", http.MethodPatch, user, `{"displayName":{doc.displayName}}`)
	get(route.AdminUsers(), document{path: "/v2/users", list: true, fresh: true, query: userParams,
		columns: []string{"id=id", "role=role", "name=displayName", "e-mail=email", "disabled=disabled", "created=@createTime", "last seen=@lastSeen", "clusters=clusters", "tokens=tokens"},
		calls:   []documentCall{write("Create", http.MethodPost, "/v2/users", `{"id":"eve","role":"user"}`)}})
	get(route.AdminUsers()+"/{id}", document{path: user, calls: []documentCall{edit, write("Tokens", http.MethodGet, user+"/tokens", ""),
		write("Sessions", http.MethodGet, user+"/sessions", ""), write("Remove", http.MethodDelete, user, "")}})
	get(route.AdminUsers()+"/{id}/{verb}", document{path: user, calls: []documentCall{edit, write("Remove", http.MethodDelete, user, "")}})
	get(route.AdminUsers()+"/{id}/tokens/{token}/revoke", document{path: user + "/tokens", list: true, fresh: true, calls: []documentCall{write("Revoke", http.MethodDelete, "/v2/tokens/{token}", "")}})
	get(route.AdminUsers()+"/{id}/sessions/{session}/end", document{path: user + "/sessions", list: true, fresh: true, calls: []documentCall{write("End", http.MethodDelete, "/v2/sessions/{session}", "")}})

	const hook = "/v2/hooks/{id}"
	make := write("Make one", http.MethodPost, "/v2/hooks", `{"name":"ci","url":"https://ci.example/loom"}`)
	get(route.AdminHooks(), document{path: "/v2/hooks", list: true, fresh: true, calls: []documentCall{make},
		columns: []string{"name=name", "address=url", "events=events", "actions=actions", "templates=templates", "blocking=blocking", "all tenants=global", "on=enabled", "created=@createTime"}})
	get(route.AdminHookNew(), document{path: "/v2/hooks", list: true, fresh: true, calls: []documentCall{make}})
	for _, end := range []string{"", "/edit", "/delete"} {
		get(route.AdminHooks()+"/{id}"+end, document{path: hook, calls: []documentCall{write("What was sent", http.MethodGet, hook+"/deliveries", ""), write("Delete", http.MethodDelete, hook, "")}})
	}
	get(route.AdminHooks()+"/{id}/deliveries", document{path: hook + "/deliveries", list: true, fresh: true, query: same("result"),
		columns: []string{"id=id", "event=event", "operation=operationId", "time=@time", "tries=tries", "result=status", "answer=code", "ms=durationMs", "problem=error", "next try=@nextTime"}})
	get(route.AdminHooks()+"/{id}/deliveries/{delivery}", document{path: hook + "/deliveries", list: true, fresh: true, calls: []documentCall{
		write("Send it again", http.MethodPost, hook+"/deliveries/{delivery}/replay", "")}})

	get(route.AdminQueue(), document{path: "/v2/metrics/queues"})
	get(route.AdminSettings(), document{path: "/v2/settings", calls: []documentCall{write("Change", http.MethodPatch, "/v2/settings", `{"requireLease":true}`)}})
}

// reportDocuments enters what the API has for the pages of the area.
func (s *Server) reportDocuments(get func(string, document)) {
	get(route.AdminAudit(), document{path: "/v2/audit", list: true, fresh: true, query: auditParams, columns: auditColumns})
	get(route.SystemAudit(), document{path: "/v2/audit", list: true, fresh: true, columns: auditColumns, query: func(page url.Values) url.Values {
		q := auditParams(page)
		if q.Set("tenant", page.Get("tenant")); q.Get("tenant") == "" {
			q.Set("tenant", "*")
		}
		return q
	}})
}

// systemDocuments enters what the API has for the pages of the area.
func (s *Server) systemDocuments(get func(string, document)) {
	hold := []documentCall{write("Pause one", http.MethodPost, "/v2/queues/probe/pause", ""), write("Resume it", http.MethodPost, "/v2/queues/probe/resume", "")}
	get(route.SystemQueues(), document{path: "/v2/queues", list: true, fresh: true, calls: hold, columns: []string{"queue=queue", "tenant=tenant", "waiting=counts.available", "running=counts.running",
		"scheduled=counts.scheduled", "tried again later=counts.retryable", "not due yet=counts.pending", "given up=counts.discarded", "oldest=@oldestTime", "paused=@pausedTime"}})
	get(route.SystemQueues()+"/{queue}/{verb}", document{path: "/v2/queues", list: true, fresh: true, calls: []documentCall{write("Do it", http.MethodPost, "/v2/queues/{queue}/{verb}", "")}})
	get(route.SystemJobs(), document{path: "/v2/riverjobs", list: true, fresh: true, query: same("state", "queue", "kind", "id", "tenant"),
		columns: []string{"id=id", "queue=queue", "kind=kind", "state=state", "tries=attempt", "of=maxAttempts", "made=@createTime", "due=@dueTime", "tried=@attemptTime", "ended=@endTime", "arguments=args", "error=error"}})
	get(route.SystemJobs()+"/{id}", document{path: "/v2/riverjobs/{id}"})
	get(route.SystemClusters(), document{path: "/v2/system/clusters", list: true, fresh: true, query: same("q", "tenant", "owner", "status"),
		columns: []string{"id=id", "name=name", "status=status", "tenant=tenant", "owner=ownerId", "template=template", "nodes=numNodes", "created=@createTime", "lease ends=@expireTime"}})

	const tenant = "/v2/tenants/{tenant}"
	change := write("Change", http.MethodPut, tenant, `{"tenant":{"name":{doc.name},"workers":{doc.workers|0}}}`)
	make := write("Make one", http.MethodPost, "/v2/tenants", `{"tenant":{"name":"lab","workers":2},"bootstrap":true}`)
	get(route.SystemTenants(), document{path: "/v2/tenants", list: true, query: same("q"), calls: []documentCall{make},
		columns: []string{"name=name", "description=description", "workers=workers", "most clusters=maxClusters", "most nodes=maxNodes"}})
	get(route.SystemTenantNew(), document{path: "/v2/tenants", list: true, calls: []documentCall{make}})
	for _, end := range []string{"", "/edit", "/delete"} {
		get(route.SystemTenants()+"/{tenant}"+end, document{path: tenant, calls: []documentCall{change, write("Delete", http.MethodDelete, tenant, "")}})
	}
	get(route.SystemTenants()+"/{tenant}/nodes", document{path: tenant + "/nodes", list: true, fresh: true,
		columns: []string{"node=id", "host name=hostname", "state=state", "provider=provider", "machine=machineId", "cluster=clusterId", "cluster name=clusterName", "owner=ownerId", "created=@createTime"}})
	get(route.SystemTenants()+"/{tenant}/clusters/{cluster}/abandon", document{path: tenant})
	get(route.SystemWorkers(), document{path: "/v2/processes", list: true, fresh: true,
		columns: []string{"id=id", "kind=kind", "host=host", "version=version", "started=@startTime", "last seen=@lastSeen", "draining=draining", "capacity=capacity", "busy=busy", "last error=lastError", "at=@lastErrorTime"}})
	get(route.SystemWorkers()+"/{id}/{verb}", document{path: "/v2/processes", list: true, fresh: true, calls: []documentCall{
		write("Drain", http.MethodPost, "/v2/processes/{id}/drain", ""), write("Resume", http.MethodPost, "/v2/processes/{id}/resume", "")}})
	get(route.SystemOrphans(), document{path: "/v2/orphans", list: true, fresh: true, calls: []documentCall{
		write("When providers were looked at", http.MethodGet, "/v2/sweeps", ""), write("Look now", http.MethodPost, "/v2/sweeps", "")},
		columns: []string{"machine=machineId", "name=name", "provider=provider", "tenant=tenant", "cluster=clusterId", "node=nodeId", "machine of the node=ownMachineId", "first seen=@firstSeen"}})
	get(route.SystemLeftovers(), document{path: "/v2/leftovers", list: true, fresh: true,
		columns: []string{"machine=machineId", "host name=hostname", "provider=provider", "tenant=tenant", "cluster=clusterId", "node=nodeId", "tries=tries", "last error=lastError", "first seen=@firstSeen", "last try=@lastTry"}})
	get(route.SystemOrphans()+"/{id}/remove", document{path: "/v2/orphans", list: true, fresh: true, calls: []documentCall{write("Remove", http.MethodDelete, "/v2/orphans/{id}", "")}})
	get(route.SystemPlugins(), document{path: "/v2/plugins/" + string(loom.KindProviderType), list: true, columns: entryColumns, calls: []documentCall{
		write("Automator types", http.MethodGet, "/v2/plugins/"+string(loom.KindAutomatorType), "")}})
}

// userParams gives the API's parameters for the filters of the users.
func userParams(page url.Values) url.Values {
	q := same("q")(page)
	switch page.Get("role") {
	case string(loom.RoleUser):
		q.Set("role", "user")
	case string(loom.RoleAdmin):
		q.Set("role", "admin,superadmin")
	}
	switch page.Get("state") {
	case "active":
		q.Set("disabled", "false")
	case "disabled":
		q.Set("disabled", "true")
	}
	return q
}
