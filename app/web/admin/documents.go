package admin

import (
	"net/http"
	"net/url"
	"strings"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
)

// Documents enters what the API has for the pages of the area.
func (s *Server) Documents(get func(string, page.Document)) {
	get(route.AdminResources(), page.Document{Path: "/v2/plugins/resources", List: true, Fresh: true, Query: page.SameParams("q", adminview.FieldPlugin, adminview.FieldType, "status", "sort"),
		Columns: []string{"name=name", "kind=kind", "plugin=plugin", "type=type", "state=status", "in use=live", "staged=staged", "newest=version", "versions=versions", "size=size", "sha256=sha256", "uploaded=@createTime", "by=author"},
		Calls:   []page.DocumentCall{page.APICall("Put in use what is staged", http.MethodPost, "/v2/plugins/sync", "")}})
	const user = "/v2/users/{id}"
	edit := page.APICall("Change", http.MethodPatch, user, `{"displayName":{doc.displayName}}`)
	get(route.AdminUsers(), page.Document{Path: "/v2/users", List: true, Fresh: true, Query: userParams,
		Columns: []string{"id=id", "role=role", "name=displayName", "email=email", "disabled=disabled", "created=@createTime", "last seen=@lastSeen", "clusters=clusters", "tokens=tokens"},
		Calls:   []page.DocumentCall{page.APICall("Create", http.MethodPost, "/v2/users", `{"id":"eve","role":"user"}`)}})
	get(route.AdminUserNew(), page.Document{Path: "/v2/users", List: true, Fresh: true, Calls: []page.DocumentCall{page.APICall("Create", http.MethodPost, "/v2/users", `{"id":"eve","role":"user"}`)}})
	get(route.AdminUsers()+"/{id}", page.Document{Path: user, Calls: []page.DocumentCall{edit, page.APICall("Tokens", http.MethodGet, user+"/tokens", ""),
		page.APICall("Sessions", http.MethodGet, user+"/sessions", ""), page.APICall("Remove", http.MethodDelete, user, "")}})
	get(route.AdminUsers()+"/{id}/{verb}", page.Document{Path: user, Calls: []page.DocumentCall{edit, page.APICall("Remove", http.MethodDelete, user, "")}})
	get(route.AdminUsers()+"/{id}/tokens/{token}/revoke", page.Document{Path: user + "/tokens", List: true, Fresh: true, Calls: []page.DocumentCall{page.APICall("Revoke", http.MethodDelete, "/v2/tokens/{token}", "")}})
	get(route.AdminUsers()+"/{id}/sessions/{session}/end", page.Document{Path: user + "/sessions", List: true, Fresh: true, Calls: []page.DocumentCall{page.APICall("End", http.MethodDelete, "/v2/sessions/{session}", "")}})

	const group = "/v2/groups/{id}"
	newGroup := page.APICall("Create", http.MethodPost, "/v2/groups", `{"name":"Team web"}`)
	get(route.AdminGroups(), page.Document{Path: "/v2/groups", List: true, Fresh: true, Query: page.SameParams("q"), Calls: []page.DocumentCall{newGroup},
		Columns: []string{"id=id", "name=name", "description=description", "members=members", "roles=bindings", "created=@createTime"}})
	get(route.AdminGroupNew(), page.Document{Path: "/v2/groups", List: true, Fresh: true, Calls: []page.DocumentCall{newGroup}})
	for _, end := range []string{"", "/delete"} {
		get(route.AdminGroups()+"/{id}"+end, page.Document{Path: group, Calls: []page.DocumentCall{page.APICall("Members", http.MethodGet, group+"/members", ""), page.APICall("Delete", http.MethodDelete, group, "")}})
	}

	const identity = "/v2/identity-providers/{id}"
	newIdentity := page.APICall("Create", http.MethodPost, "/v2/identity-providers", `{"name":"Example","issuer":"https://id.example.com","clientId":"loom","clientSecret":"…"}`)
	get(route.AdminIdentity(), page.Document{Path: "/v2/identity-providers", List: true, Fresh: true, Calls: []page.DocumentCall{newIdentity},
		Columns: []string{"id=id", "name=name", "issuer=issuer", "enabled=enabled", "users=users", "rules=rules", "created=@createTime"}})
	get(route.AdminIdentityNew(), page.Document{Path: "/v2/identity-providers", List: true, Fresh: true, Calls: []page.DocumentCall{newIdentity}})
	for _, end := range []string{"", "/delete"} {
		get(route.AdminIdentity()+"/{id}"+end, page.Document{Path: identity, Calls: []page.DocumentCall{page.APICall("Rules", http.MethodGet, identity+"/rules", ""), page.APICall("Delete", http.MethodDelete, identity, "")}})
	}
	get(route.AdminIdentity()+"/{id}/rules", page.Document{Path: identity + "/rules", Calls: []page.DocumentCall{page.APICall("Preview rules", http.MethodPost, identity+"/rules/preview", `{"rules":[]}`)}})

	const rollout = "/v2/rollouts/{id}"
	get(route.AdminRollouts(), page.Document{Path: "/v2/rollouts", List: true, Fresh: true, Query: page.SameParams("status"),
		Columns: []string{"number=number", "kind=kind", "status=status", "wave=wave", "why=why", "created by=createdBy", "created=@createTime", "started=@startTime", "ended=@endTime"},
		Calls:   []page.DocumentCall{page.APICall("Make one", http.MethodPost, "/v2/rollouts", `{"kind":"update"}`)}})
	get(route.AdminRolloutNew(), page.Document{Path: "/v2/rollouts", List: true, Fresh: true, Calls: []page.DocumentCall{page.APICall("Make one", http.MethodPost, "/v2/rollouts", `{"kind":"update"}`)}})
	for _, end := range []string{"", "/{verb}"} {
		get(route.AdminRollouts()+"/{id}"+end, page.Document{Path: rollout, Calls: []page.DocumentCall{page.APICall("Abort", http.MethodPost, rollout+"/abort", "")}})
	}
	get(route.AdminRollouts()+"/{id}/clusters", page.Document{Path: rollout + "/clusters", List: true, Fresh: true, Query: page.SameParams("wave", "status"),
		Columns: []string{"id=id", "name=name", "wave=wave", "effect=effect", "status=status", "note=note", "operation=operationId", "ended=@endTime"}})

	const hook = "/v2/hooks/{id}"
	make := page.APICall("Make one", http.MethodPost, "/v2/hooks", `{"name":"ci","url":"https://ci.example/loom"}`)
	get(route.AdminHooks(), page.Document{Path: "/v2/hooks", List: true, Fresh: true, Calls: []page.DocumentCall{make},
		Columns: []string{"name=name", "address=url", "events=events", "actions=actions", "templates=templates", "blocking=blocking", "all tenants=global", "on=enabled", "created=@createTime"}})
	get(route.AdminHookNew(), page.Document{Path: "/v2/hooks", List: true, Fresh: true, Calls: []page.DocumentCall{make}})
	for _, end := range []string{"", "/edit", "/delete"} {
		get(route.AdminHooks()+"/{id}"+end, page.Document{Path: hook, Calls: []page.DocumentCall{page.APICall("Deliveries", http.MethodGet, hook+"/deliveries", ""), page.APICall("Delete", http.MethodDelete, hook, "")}})
	}
	get(route.AdminHooks()+"/{id}/deliveries", page.Document{Path: hook + "/deliveries", List: true, Fresh: true, Query: page.SameParams("result"),
		Columns: []string{"id=id", "event=event", "operation=operationId", "time=@time", "tries=tries", "result=status", "answer=code", "ms=durationMs", "problem=error", "next try=@nextTime"}})
	get(route.AdminHooks()+"/{id}/deliveries/{delivery}", page.Document{Path: hook + "/deliveries", List: true, Fresh: true, Calls: []page.DocumentCall{
		page.APICall("Send it again", http.MethodPost, hook+"/deliveries/{delivery}/replay", "")}})

	get(route.AdminQueue(), page.Document{Path: "/v2/metrics/queues"})
	get(route.AdminSettings(), page.Document{Path: "/v2/settings", Calls: []page.DocumentCall{page.APICall("Change", http.MethodPatch, "/v2/settings", `{"requireLease":true}`)}})
}

// userParams gives the API's parameters for the filters of the users.
func userParams(view url.Values) url.Values {
	q := page.SameParams("q")(view)
	var roles []string
	for _, role := range filteredRoles[loom.Role(view.Get("role"))] {
		roles = append(roles, string(role))
	}
	if len(roles) > 0 {
		q.Set("role", strings.Join(roles, ","))
	}
	switch view.Get("state") {
	case "active":
		q.Set("disabled", "false")
	case "disabled":
		q.Set("disabled", "true")
	}
	return q
}
