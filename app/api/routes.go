package api

import (
	"net/http"
	"slices"

	"loom/app/loom"
)

// routes is the table of contents of the API. What clients of the predecessor
// call comes first in each group; rows marked fresh are Loom's own.
func (a *api) routes() []route {
	return slices.Concat(a.systemRoutes(), a.clusterRoutes(), a.operationRoutes(), a.previewRoutes(), a.catalogRoutes(), a.pluginRoutes(), a.accountRoutes())
}

const (
	get   = http.MethodGet
	post  = http.MethodPost
	put   = http.MethodPut
	patch = http.MethodPatch
	del   = http.MethodDelete
)

func (a *api) systemRoutes() []route {
	text := []string{mediaText}
	return []route{
		{method: get, path: "/status", summary: "Is anybody there", open: true, media: text, handle: a.status},
		{method: get, path: "/healthz", summary: "The process runs", open: true, fresh: true, media: text, handle: a.healthz},
		{method: get, path: "/readyz", summary: "The process can serve", open: true, fresh: true, media: text, handle: a.readyz},
		{method: get, path: "/v2/openapi.json", summary: "This document", open: true, fresh: true, answer: "object", handle: a.openapi},
		{method: get, path: "/v2/events", summary: "Follow what changes", fresh: true, media: []string{mediaStream}, handle: a.events, query: []param{
			{"topics", "string", "Up to 10 of clusters, cluster:{id}, op:{id}/{n}, tenant, user:me, system, separated by commas."},
			{"after", "string", "Cursor to go on from; the header Last-Event-ID wins."},
		}},
	}
}

func (a *api) clusterRoutes() []route {
	const one = "/v2/clusters/{id}"
	return []route{
		{method: get, path: "/v2/clusters", summary: "List clusters, the newest first", paged: true, answer: "[]ClusterSummary", handle: a.listClusters, query: []param{
			{"status", "string", "Statuses in any case, separated by commas; unknown ones are ignored."},
			{"template", "string", "Name of the cluster template."},
			{"provider", "string", "Name of the provider."},
			{"owner", "string", "User id of the owner; for administrators."},
			{"q", "string", "Words in name, description, id, host names or addresses."},
		}},
		{method: post, path: "/v2/clusters", summary: "Create a cluster", once: true, body: "ClusterCreate", answer: "ClusterID", handle: a.createCluster},
		{method: get, path: one, summary: "Read a cluster with its nodes", answer: "Cluster", handle: a.showCluster},
		{method: post, path: one, summary: "Change the end of the lease", body: "ExpiryChange", handle: a.changeExpiry},
		{method: patch, path: one, summary: "Change description, labels, protection", fresh: true, body: "ClusterEdit", answer: "Cluster", handle: a.editCluster},
		{method: del, path: one, summary: "Delete a cluster", body: "OperationRequest?", handle: a.deleteCluster},
		{method: get, path: one + "/status", summary: "Read a cluster's status and progress", answer: "ClusterStatus", handle: a.clusterStatus},
		{method: get, path: one + "/config", summary: "Read a cluster's config, macros not expanded", answer: "object", handle: a.clusterConfig},
		{method: get, path: one + "/services", summary: "List a cluster's services", answer: "[]string", handle: a.clusterServices},
		{method: get, path: one + "/plans", summary: "List the plans of all operations, the newest first", paged: true, answer: "[]Plan", handle: a.listPlans},
		{method: get, path: one + "/plans/{planId}", summary: "Read a plan", answer: "Plan", handle: a.showPlan},
		{method: get, path: one + "/actions", summary: "Say what can be done now, or why not", fresh: true, answer: "{}string|null", handle: a.clusterActions},
		{method: post, path: one + "/nodes/{nodeId}/reveal", summary: "Show a machine's own sign-in; audited", fresh: true, answer: "Revealed", handle: a.reveal},
	}
}

func (a *api) operationRoutes() []route {
	const all = "/v2/clusters/{id}/operations"
	return []route{
		{method: get, path: all, summary: "List operations, the newest first", fresh: true, paged: true, answer: "[]Operation", handle: a.listOperations, query: []param{
			{"status", "string", "Statuses, separated by commas."},
			{"action", "string", "Actions, separated by commas."},
		}},
		{method: get, path: all + "/{n}", summary: "Read an operation", fresh: true, answer: "Operation", handle: a.showOperation},
		{method: get, path: all + "/{n}/tasks", summary: "List the tasks of an operation", fresh: true, paged: true, answer: "[]Task", handle: a.listTasks, query: []param{
			{"status", "string", "Statuses, separated by commas."},
			{"node", "string", "Id of a node."},
			{"service", "string", "Name of a service."},
			{"action", "string", "An action, such as “install”."},
		}},
		{method: get, path: all + "/{n}/tasks/{t}", summary: "Read a task with its tries", fresh: true, answer: "Task", handle: a.showTask},
		{method: get, path: all + "/{n}/tasks/{t}/log", summary: "Read or follow the log of a task", fresh: true, answer: "[]Line",
			media: []string{mediaJSON, mediaText, mediaStream}, handle: a.taskLog, query: []param{
				{"attempt", "integer", "The try; the newest when left out."},
				{"after", "string", "Number of the line, or id of the event, to go on behind."},
				{"limit", "integer", "Lines of a JSON answer, 1 to 500."},
				{"level", "string", "Levels, separated by commas: info, warn, error."},
			}},
	}
}

func (a *api) previewRoutes() []route {
	const one = "/v2/previews/{id}"
	return []route{
		{method: post, path: "/v2/previews", summary: "Work out what a request would do, and keep it for an hour", fresh: true, once: true,
			body: "PreviewRequest", answer: "Preview", handle: a.createPreview},
		{method: get, path: one, summary: "Read a preview", fresh: true, answer: "Preview", handle: a.showPreview},
		{method: del, path: one, summary: "Drop a preview", fresh: true, handle: a.discardPreview},
		{method: get, path: one + "/changes", summary: "List what happens to what", fresh: true, paged: true, answer: "[]Change", handle: a.previewChanges},
		{method: get, path: one + "/tasks", summary: "List the tasks of the plan", fresh: true, paged: true, answer: "[]Task", handle: a.previewTasks},
		{method: post, path: one + "/apply", summary: "Do exactly what the preview showed", fresh: true, once: true, body: "PreviewApply", answer: "Applied", handle: a.applyPreview},
	}
}

// kindSchemas names the schema of each kind.
var kindSchemas = map[loom.EntityKind]string{
	loom.KindProvider: "Provider", loom.KindHardwareType: "HardwareType", loom.KindImageType: "ImageType", loom.KindService: "Service",
	loom.KindTemplate: "Template", loom.KindPartialTemplate: "PartialTemplate",
	loom.KindProviderType: "PluginType", loom.KindAutomatorType: "PluginType",
}

var entryFilters = []param{
	{"q", "string", "Words in name, label or description."},
	{"deprecated", "boolean", "Only deprecated entries, or none of them."},
}

// catalogRoutes has rows of its own for each kind: a pattern with the kind as a
// wildcard would clash with /v2/clusters/….
func (a *api) catalogRoutes() []route {
	var all []route
	for _, kind := range loom.TenantKinds {
		e := entries{a, kind}
		base, word, schema := "/v2/"+string(kind), kind.Word(), kindSchemas[kind]
		all = append(all,
			route{method: get, path: base, summary: "List each " + word + " in its newest version", paged: true, query: entryFilters, answer: "[]" + schema, handle: e.list},
			route{method: post, path: base, summary: "Store a new " + word, body: schema, handle: e.create},
			route{method: get, path: base + "/{name}", summary: "Read a " + word, answer: schema, handle: e.show},
			route{method: put, path: base + "/{name}", summary: "Store the next version of a " + word, body: schema, handle: e.put},
			route{method: del, path: base + "/{name}", summary: "Delete all versions of a " + word, handle: e.remove},
			route{method: get, path: base + "/{name}/{version}", summary: "Read a version of a " + word, answer: schema, handle: e.showVersion},
			route{method: del, path: base + "/{name}/{version}", summary: "Delete a version of a " + word, handle: e.removeVersion},
			route{method: get, path: base + "/{name}/versions", summary: "List the versions of a " + word, fresh: true, paged: true, answer: "[]VersionInfo", handle: e.versions},
		)
	}
	return all
}

func (a *api) pluginRoutes() []route {
	all := []route{
		{method: post, path: "/v2/plugins/sync", summary: "Make the staged plugin resources live", handle: a.syncResources},
	}
	status := []param{{"status", "string", "One of active, inactive, staged, recalled, in any case."}}
	for _, kind := range []loom.EntityKind{loom.KindProviderType, loom.KindAutomatorType} {
		e := entries{a, kind}
		base, word := "/v2/plugins/"+string(kind), kind.Word()
		named := base + "/{name}/{version}/{resource}" // the middle segment is the resource type here
		all = append(all,
			route{method: get, path: base, summary: "List each " + word, paged: true, query: entryFilters, answer: "[]PluginType", handle: e.list},
			route{method: get, path: base + "/{name}", summary: "Read a " + word, answer: "PluginType", handle: e.show},
			route{method: put, path: base + "/{name}", summary: "Store the next version of a " + word, body: "PluginType", handle: e.put},
			route{method: del, path: base + "/{name}", summary: "Delete all versions of a " + word, handle: e.remove},
			route{method: get, path: base + "/{name}/{version}", summary: "Read a version of a " + word + " (all digits), or list its resources of a type",
				query: status, answer: "PluginTypeOrResources", handle: e.showVersionOrResources},
			route{method: del, path: base + "/{name}/{version}", summary: "Delete a version of a " + word, handle: e.removeVersion},
			route{method: post, path: named, summary: "Upload the next version of a resource", body: "bytes", answer: "Resource", handle: e.upload},
			route{method: get, path: named, summary: "List the versions of a resource", paged: true, query: status, answer: "[]Resource", handle: e.listResource},
			route{method: del, path: named, summary: "Delete all versions of a resource", handle: e.removeResource},
			route{method: post, path: named + "/versions/{v}/stage", summary: "Slate a version for the next sync", handle: e.stage},
			route{method: post, path: named + "/versions/{v}/recall", summary: "Take a version out with the next sync", handle: e.recall},
			route{method: del, path: named + "/versions/{v}", summary: "Delete a version of a resource", handle: e.removeResourceVersion},
		)
	}
	return all
}

func (a *api) accountRoutes() []route {
	return []route{
		{method: get, path: "/v2/whoami", summary: "Say who the request acts as", fresh: true, answer: "Whoami", handle: a.whoami},
		{method: get, path: "/v2/tokens", summary: "List one's own tokens", fresh: true, paged: true, answer: "[]Token", handle: a.listTokens},
		{method: post, path: "/v2/tokens", summary: "Make a token; its secret is shown this once", fresh: true, once: true, body: "TokenCreate", answer: "Token", handle: a.createToken},
		{method: del, path: "/v2/tokens/{id}", summary: "Revoke a token", fresh: true, handle: a.revokeToken},
		{method: get, path: "/v2/tenants", summary: "List tenants", paged: true, answer: "[]Tenant", handle: a.listTenants},
		{method: post, path: "/v2/tenants", summary: "Make a tenant", body: "TenantWrite", handle: a.createTenant},
		{method: get, path: "/v2/tenants/{name}", summary: "Read a tenant", answer: "Tenant", handle: a.showTenant},
		{method: put, path: "/v2/tenants/{name}", summary: "Change a tenant, or make it", body: "TenantWrite", handle: a.putTenant},
	}
}
