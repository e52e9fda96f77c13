package api

import (
	"net/http"
	"slices"
	"strings"

	"loom/app/execution"
	"loom/app/loom"
)

// routes is the table of contents of the API. What clients of the predecessor
// call comes first in each group; rows marked fresh are Loom's own.
func (a *api) routes() []route {
	return slices.Concat(a.systemRoutes(), a.clusterRoutes(), a.clusterActionRoutes(), a.incidentRoutes(), a.operationRoutes(), a.readingRoutes(), a.previewRoutes(), a.rolloutRoutes(), a.catalogRoutes(), a.pluginRoutes(), a.accountRoutes(), a.groupRoutes(), a.identityRoutes(), a.auditRoutes(), a.hookRoutes(), a.probeRoutes(), a.orphanRoutes(), a.queueRoutes())
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
		{method: get, path: "/healthz", summary: "The process runs", open: true, probe: true, fresh: true, media: text, handle: a.healthz},
		{method: get, path: "/readyz", summary: "The process can serve", open: true, probe: true, fresh: true, media: text, handle: a.readyz},
		{method: get, path: "/metrics", summary: "Metrics in the text form of Prometheus; for superadmins, and for the networks of LOOM_METRICS_NETWORKS", open: true, fresh: true, media: text, handle: a.metrics},
		{method: get, path: "/v2/openapi.json", summary: "This document", open: true, fresh: true, answer: "object", handle: a.openapi},
		{method: get, path: "/v2/events", verb: loom.See, summary: "Follow what changes", fresh: true, media: []string{mediaStream}, handle: a.events, query: []param{
			{"topics", "string", "Up to 10 of clusters, cluster:{id}, op:{id}/{n}, tenant, user:me, system, separated by commas."},
			{"after", "string", "Cursor to go on from; the header Last-Event-ID wins."},
		}},
	}
}

func (a *api) clusterRoutes() []route {
	const one = "/v2/clusters/{id}"
	return []route{
		{method: get, path: "/v2/clusters", verb: loom.See, summary: "List clusters, the newest first", paged: true, answer: "[]ClusterSummary", handle: a.listClusters, query: []param{
			{"status", "string", "Statuses in any case, separated by commas; unknown ones are ignored."},
			{"template", "string", "Name of the cluster template."},
			{"provider", "string", "Name of the provider."},
			{"owner", "string", "User id of the owner; for administrators."},
			{"shared", "boolean", "With true: clusters of others that a role on them, or on their template, shows to you."},
			{"health", "string", "Healths, separated by commas: healthy, degraded, failing, unknown or off."},
			{"label", "string", "Labels as key=value, separated by commas; a cluster has all of them."},
			{"expiresBefore", "integer", "Milliseconds since 1970; clusters whose lease ends before."},
			{"q", "string", "Words in name, description, id, host names or addresses, and terms such as status:failed, label:team=web, lease:48h or -owner:ana."},
		}},
		{method: post, path: "/v2/clusters", verb: loom.Create, summary: "Create a cluster", once: true, body: "ClusterCreate", answer: "ClusterID", begins: true, handle: a.createCluster},
		{method: get, path: one, verb: loom.See, summary: "Read a cluster with its nodes", answer: "Cluster", handle: a.showCluster},
		{method: post, path: one, verb: loom.Operate, summary: "Change the end of the lease", body: "ExpiryChange", handle: a.changeExpiry},
		{method: patch, path: one, verb: loom.Operate, summary: "Change description, labels, protection, owner", fresh: true, body: "ClusterEdit", answer: "Cluster", handle: a.editCluster},
		{method: del, path: one, verb: loom.Own, summary: "Delete a cluster", body: "ClusterDelete?", begins: true, handle: a.deleteCluster},
		{method: get, path: one + "/status", verb: loom.See, summary: "Read a cluster's status and progress", answer: "ClusterStatus", handle: a.clusterStatus},
		{method: get, path: one + "/health", verb: loom.See, summary: "Read what checks last saw of a cluster and its nodes", fresh: true, answer: "ClusterHealth", handle: a.clusterHealth},
		{method: post, path: one + "/check", verb: loom.Operate, summary: "Check a cluster's nodes now", fresh: true, body: "Check?", answer: "Checking", handle: a.checkCluster},
		{method: get, path: one + "/nodes/{nodeId}/load", verb: loom.See, summary: "Read the load of a node's machine over 24 hours", fresh: true, answer: "NodeLoad", handle: a.nodeLoad},
		{method: get, path: one + "/config", verb: loom.See, summary: "Read a cluster's config, macros not expanded", answer: "object", handle: a.clusterConfig},
		{method: get, path: one + "/services", verb: loom.See, summary: "List a cluster's services", answer: "[]string", handle: a.clusterServices},
		{method: get, path: one + "/plans", verb: loom.See, summary: "List the plans of all operations, the newest first", paged: true, answer: "[]Plan", handle: a.listPlans},
		{method: get, path: one + "/plans/{planId}", verb: loom.See, summary: "Read a plan", answer: "Plan", handle: a.showPlan},
		{method: get, path: one + "/actions", verb: loom.See, summary: "Say what can be done now, or why not", fresh: true, answer: "{}string|null", handle: a.clusterActions},
		{method: post, path: one + "/reveal", verb: loom.Operate, summary: "Download the key that was made for the cluster, as loom-{id}.pem; audited", fresh: true, media: []string{mediaKey}, handle: a.downloadKey},
		{method: post, path: one + "/nodes/{nodeId}/reveal", verb: loom.Operate, summary: "Show a machine's own sign-in; audited", fresh: true, answer: "Revealed", handle: a.reveal},
	}
}

// clusterActionRoutes change clusters that are there. The last ones say what is
// missing to carry them out.
func (a *api) clusterActionRoutes() []route {
	const one, op = "/v2/clusters/{id}", "/v2/clusters/{id}/operations/{n}"
	all := []route{
		{method: put, path: one + "/config", verb: loom.Operate, summary: "Replace or patch a cluster's config and configure its services", body: "Configure", begins: true, handle: a.legacyChange(loom.ChangeConfigure)},
		{method: get, path: one + "/config/versions", verb: loom.See, summary: "List the configs a cluster has had, the newest first", fresh: true, paged: true,
			answer: "[]ConfigRevision", handle: a.listConfigs},
		{method: get, path: one + "/config/versions/{r}", verb: loom.See, summary: "Read a config that a cluster has had", fresh: true, answer: "object", handle: a.showConfig},
		{method: post, path: one + "/services", verb: loom.Operate, summary: "Add services to a cluster, on the nodes it has", once: true, body: "ServicesAdd", begins: true, handle: a.legacyChange(loom.ChangeAddServices)},
		{method: post, path: one + "/clustertemplate/sync", verb: loom.Operate, summary: "Take the newest version of the cluster's template", handle: a.syncTemplate},
	}
	for _, kind := range []loom.ChangeKind{loom.ChangeStart, loom.ChangeStop, loom.ChangeRestart} {
		word := strings.ToUpper(string(kind[:1])) + string(kind[1:])
		all = append(all,
			route{method: post, path: one + "/services/" + string(kind), verb: loom.Operate, summary: word + " all services of a cluster", once: true,
				body: "OperationRequest?", begins: true, handle: a.legacyChange(kind)},
			route{method: post, path: one + "/services/{service}/" + string(kind), verb: loom.Operate, summary: word + " a service, and those that this concerns", once: true,
				body: "OperationRequest?", begins: true, handle: a.legacyChange(kind)})
	}
	for _, verb := range []loom.ChangeKind{loom.ChangeAbort, loom.ChangePause, loom.ChangeResume} {
		word := strings.ToUpper(string(verb[:1])) + string(verb[1:])
		all = append(all,
			route{method: post, path: one + "/" + string(verb), verb: loom.Operate, summary: word + " the running operation, if there is one", handle: a.controlCluster(verb)},
			route{method: post, path: op + "/" + string(verb), verb: loom.Operate, summary: word + " an operation, if it is the latest", fresh: true,
				answer: "Operation", handle: a.controlOperation(verb)})
	}
	for _, v := range []struct {
		path, body, what string
		kind             loom.ChangeKind
	}{
		{"expand", "Expand", "Add nodes to a cluster", loom.ChangeExpand},
		{"shrink", "Shrink", "Take nodes from a cluster", loom.ChangeShrink},
		{"remove-services", "ServicesAdd", "Remove services from a cluster", loom.ChangeRemoveServices},
		{"upgrade", "Upgrade?", "Bring services to their newest versions, batch by batch", loom.ChangeUpgrade},
		{"update", "Update?", "Bring a cluster to versions of the entries that it is made of: template, services, and types of machines", loom.ChangeUpdate},
		{"resize", "Resize", "Replace the machines of nodes by ones of another hardware type, batch by batch", loom.ChangeResize},
		{"repair", "Repair", "Replace, restart, configure or reboot the machines of nodes; numbers and host names stay", loom.ChangeRepair},
	} {
		all = append(all, route{method: post, path: one + "/" + v.path, verb: loom.Operate, summary: v.what, fresh: true, once: true,
			body: v.body, answer: "Started", handle: a.change(v.kind)})
	}
	return append(all,
		route{method: post, path: one + "/authorize", verb: loom.Operate, summary: "Put the SSH keys of your account on the machines of a cluster", fresh: true, once: true,
			body: "OperationRequest?", answer: "Started", handle: a.change(loom.ChangeAuthorize)},
		route{method: post, path: op + "/rollback", verb: loom.Operate, summary: "Go back to the layout, versions and config before an operation", fresh: true, once: true,
			body: "OperationRequest?", answer: "Started", handle: a.change(loom.ChangeRollback)},
		route{method: post, path: op + "/retry", verb: loom.Operate, summary: "Go on with what is left of the latest operation, which failed", fresh: true, once: true,
			body: "Retry?", answer: "Started", handle: a.change(loom.ChangeRetry)},
		route{method: post, path: op + "/tasks/{t}/skip", verb: loom.Override, summary: "Skip the next task of a node in a paused operation", fresh: true,
			body: "Skip", answer: "Task", handle: a.skipTask},
		route{method: post, path: op + "/tasks/{t}/retry-now", verb: loom.Operate, summary: "Begin the next try of a task that failed and waits for it", fresh: true,
			answer: "Task", handle: a.retrying((*execution.Operations).RetryNow)},
		route{method: post, path: op + "/tasks/{t}/stop-retrying", verb: loom.Operate, summary: "Stop retrying a failed task", fresh: true,
			answer: "Task", handle: a.retrying((*execution.Operations).StopRetrying)},
		route{method: post, path: op + "/resubmit", verb: loom.Operate, summary: "Ask again for an operation that was refused", fresh: true, once: true,
			body: "OperationRequest?", answer: "Started", handle: a.resubmit})
}

func (a *api) operationRoutes() []route {
	const all = "/v2/clusters/{id}/operations"
	return []route{
		{method: get, path: all, verb: loom.See, summary: "List operations, the newest first", fresh: true, paged: true, answer: "[]Operation", handle: a.listOperations, query: []param{
			{"status", "string", "Statuses, separated by commas."},
			{"action", "string", "Actions, separated by commas."},
		}},
		{method: get, path: all + "/{n}", verb: loom.See, summary: "Read an operation", fresh: true, answer: "Operation", handle: a.showOperation},
		{method: get, path: all + "/{n}/tasks", verb: loom.See, summary: "List the tasks of an operation", fresh: true, paged: true, answer: "[]Task", handle: a.listTasks, query: []param{
			{"status", "string", "Statuses, separated by commas."},
			{"node", "string", "Id of a node."},
			{"service", "string", "Names of services, separated by commas."},
			{"action", "string", "Actions, separated by commas, such as “install”."},
		}},
		{method: get, path: all + "/{n}/tasks/{t}", verb: loom.See, summary: "Read a task with its attempts", fresh: true, answer: "Task", handle: a.showTask},
		{method: get, path: all + "/{n}/tasks/{t}/log", verb: loom.See, summary: "Read or follow the log of a task", fresh: true, answer: "[]Line",
			media: []string{mediaJSON, mediaText, mediaStream}, handle: a.taskLog, query: []param{
				{"attempt", "integer", "The attempt; the newest when left out."},
				{"after", "string", "Number of the line, or id of the event, to go on behind."},
				{"limit", "integer", "Lines of a JSON answer, 1 to 500."},
				{"level", "string", "Levels, separated by commas: info, warn, error."},
				{"ansi", "integer", "1 leaves control characters, such as colors of terminals, in a plain text; else only tabs and line ends stay."},
			}},
	}
}

func (a *api) previewRoutes() []route {
	const one = "/v2/previews/{id}"
	return []route{
		{method: post, path: "/v2/previews", verb: loom.Operate.Reading(), summary: "Work out what a request would do, and keep it for an hour", fresh: true, once: true,
			body: "PreviewRequest", answer: "Preview", handle: a.createPreview},
		{method: post, path: "/v2/fleet-previews", verb: loom.Publish.Reading(), summary: "Work out what a change would do to each cluster, with entries that need not be saved; for administrators", fresh: true,
			body: "FleetRequest", answer: "FleetPreview", media: []string{mediaJSON, mediaMarkdown}, handle: a.createFleetPreview},
		{method: get, path: one, verb: loom.Operate, summary: "Read a preview", fresh: true, answer: "Preview", handle: a.showPreview},
		{method: del, path: one, verb: loom.Operate.Reading(), summary: "Drop a preview", fresh: true, handle: a.discardPreview},
		{method: get, path: one + "/changes", verb: loom.Operate, summary: "List what happens to what", fresh: true, paged: true, answer: "[]Change", handle: a.previewChanges},
		{method: get, path: one + "/tasks", verb: loom.Operate, summary: "List the tasks of the plan", fresh: true, paged: true, answer: "[]Task", handle: a.previewTasks},
		{method: post, path: one + "/apply", verb: loom.Operate, summary: "Do exactly what the preview showed", fresh: true, once: true, body: "PreviewApply", answer: "Applied", handle: a.applyPreview},
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
	{"label", "string", "A label that the entries have, as key=value."},
	{"provider", "string", "A provider that the entries name."},
	{"automator", "string", "An automator type that an action runs with."},
	{"findings", "string", "A severity or code of a finding of the entries."},
	{"use", "string", "“unused”: only entries that no other entry names."},
}

var releases = []param{{"release", "boolean", "“false” saves a version that clusters are not made of until it is released."}}

var compared = []param{
	{"from", "integer", "The older version; the one before “to” when left out."},
	{"to", "integer", "The younger version; the newest when left out."},
}

// catalogRoutes has rows of its own for each kind: a pattern with the kind as a
// wildcard would clash with /v2/clusters/….
func (a *api) catalogRoutes() []route {
	all := []route{
		{method: post, path: "/v2/resolve", verb: loom.Read, summary: "Merge a template, which need not be stored, with all it extends and includes", body: "Template", answer: "Template", findings: true, handle: a.resolve},
		{method: get, path: "/v2/export", verb: loom.Read, summary: "Read the whole catalog of the tenant, without secrets", answer: "CatalogDocument", media: []string{mediaJSON, mediaArchive}, handle: a.export},
		{method: post, path: "/v2/import", verb: loom.Publish.Reading(), summary: "Replace the whole catalog of the tenant, or merge into it; the body is an export in either form. A dry run needs the scope read only", body: "CatalogDocument",
			answer: "ImportReport", media: []string{mediaJSON, mediaMarkdown}, strict: true, findings: true, handle: a.importCatalog, query: []param{
				{"mode", "string", "“replace” (default), or “merge”: saves differing entries as new versions and keeps the rest."},
				{"dryRun", "boolean", "Say what would happen, and change nothing. Otherwise the answer is empty."},
				{"fleet", "boolean", "With dryRun: say what new and changed entries would do to each cluster as well. The header Loom-Invalid counts invalid entries, Loom-Effect is the strongest effect on clusters that can be changed now."},
			}},
		{method: get, path: "/v2/check", verb: loom.Read, summary: "List errors and warnings of the tenant's catalog", fresh: true, paged: true, answer: "[]Finding", handle: a.check, query: []param{
			{"kind", "string", "Kinds as in paths, separated by commas."},
			{"name", "string", "Names of entries, separated by commas."},
			{"severity", "string", "“error”, “warning” or both, separated by commas."},
		}},
		{method: post, path: "/v2/check/fix", verb: loom.Publish, summary: "Fix all findings of a code and value at once: name another entry, or remove the reference or the unknown field", fresh: true, body: "Fix", answer: "Fixed", handle: a.fix, query: []param{
			{"dryRun", "boolean", "Say what would change, and change nothing."},
		}},
	}
	for _, kind := range loom.TenantKinds {
		e := entries{a, kind}
		base, word, one, schema := "/v2/"+string(kind), kind.Word(), kind.OneWord(), kindSchemas[kind]
		version := base + "/{name}/versions/{v}"
		all = append(all,
			route{method: get, path: base, verb: loom.Read, summary: "List each " + word + " in its newest version", paged: true, query: entryFilters, answer: "[]" + schema, handle: e.list},
			route{method: post, path: base, verb: loom.Publish, summary: "Store a new " + word, body: schema, query: releases, findings: true, handle: e.create},
			route{method: get, path: base + "/{name}", verb: loom.Read, summary: "Read " + one, answer: schema, handle: e.show},
			route{method: put, path: base + "/{name}", verb: loom.Publish, summary: "Store the next version of " + one, body: schema, query: releases, matches: true, findings: true, handle: e.put},
			route{method: del, path: base + "/{name}", verb: loom.Publish, summary: "Delete all versions of " + one, findings: true, handle: e.remove},
			route{method: get, path: base + "/{name}/{version}", verb: loom.Read, summary: "Read a version of " + one, answer: schema, handle: e.showVersion},
			route{method: del, path: base + "/{name}/{version}", verb: loom.Publish, summary: "Delete a version of " + one, findings: true, handle: e.removeVersion},
			route{method: get, path: base + "/{name}/versions", verb: loom.Read, summary: "List the versions of " + one, fresh: true, paged: true, answer: "[]VersionInfo", handle: e.versions},
			route{method: post, path: version + "/release", verb: loom.Publish, summary: "Release a version of " + one + ": new clusters and updates take the newest released one", fresh: true, handle: e.releaseVersion},
			route{method: post, path: version + "/withdraw", verb: loom.Publish, summary: "Withdraw a version of " + one, fresh: true, handle: e.withdrawVersion},
			route{method: put, path: version + "/deprecation", verb: loom.Publish, summary: "Deprecate a version of " + one + ", with a message to the owners of its clusters", fresh: true, body: "Deprecation", handle: e.deprecateVersion},
			route{method: get, path: base + "/{name}/uses", verb: loom.Read, summary: "List where " + one + " is used: entries and live clusters", fresh: true, paged: true, answer: "[]Use", handle: e.uses},
			route{method: get, path: base + "/{name}/compare", verb: loom.Read, summary: "Compare two versions of " + one, fresh: true, answer: "[]Difference", handle: e.compare, query: compared},
		)
	}
	return all
}

func (a *api) pluginRoutes() []route {
	all := []route{
		{method: post, path: "/v2/plugins/sync", verb: loom.Publish, summary: "Make the staged plugin resources live", handle: a.syncResources},
		{method: get, path: "/v2/plugins/resources", verb: loom.Publish, summary: "List the plugin resources of all plugins, by name", fresh: true, paged: true, answer: "[]ResourceName", handle: a.listResources, query: []param{
			{"q", "string", "Words in name, plugin or resource type."},
			{"kind", "string", "automatortypes or providertypes."},
			{"plugin", "string", "The name of a plugin type."},
			{"type", "string", "The name of a resource type."},
			{"status", "string", "One of active, inactive, staged, recalled, in any case."},
		}},
	}
	status := []param{{"status", "string", "One of active, inactive, staged, recalled, in any case."}}
	for _, kind := range []loom.EntityKind{loom.KindProviderType, loom.KindAutomatorType} {
		e := entries{a, kind}
		base, word, one := "/v2/plugins/"+string(kind), kind.Word(), kind.OneWord()
		named := base + "/{name}/{version}/{resource}" // the middle segment is the resource type here
		all = append(all,
			route{method: get, path: base, verb: loom.Read, summary: "List each " + word, paged: true, query: entryFilters, answer: "[]PluginType", handle: e.list},
			route{method: get, path: base + "/{name}", verb: loom.Read, summary: "Read " + one, answer: "PluginType", handle: e.show},
			route{method: get, path: base + "/{name}/uses", verb: loom.Read, summary: "List where " + one + " is used: entries and live clusters", fresh: true, paged: true, answer: "[]Use", handle: e.uses},
			route{method: put, path: base + "/{name}", verb: loom.Install, summary: "Store the next version of " + one, body: "PluginType", matches: true, findings: true, handle: e.put},
			route{method: del, path: base + "/{name}", verb: loom.Install, summary: "Delete all versions of " + one, findings: true, handle: e.remove},
			route{method: get, path: base + "/{name}/{version}", verb: loom.Read, summary: "Read a version of " + one + " (all digits), or list its resources of a type",
				query: status, answer: "PluginTypeOrResources", handle: e.showVersionOrResources},
			route{method: del, path: base + "/{name}/{version}", verb: loom.Install, summary: "Delete a version of " + one, findings: true, handle: e.removeVersion},
			route{method: post, path: named, verb: loom.Publish, summary: "Upload the next version of a resource", body: "bytes", answer: "Resource", handle: e.upload},
			route{method: get, path: named, verb: loom.Publish, summary: "List the versions of a resource", paged: true, query: status, answer: "[]Resource", handle: e.listResource},
			route{method: del, path: named, verb: loom.Publish, summary: "Delete all versions of a resource", handle: e.removeResource},
			route{method: post, path: named + "/versions", verb: loom.Publish, summary: "Upload the next version of a resource, and put it in use with release=true", body: "bytes", answer: "Resource",
				query: []param{{"release", "boolean", "Put this version in use at once, and no other resource."}}, handle: e.upload},
			route{method: post, path: named + "/versions/{v}/release", verb: loom.Publish, summary: "Put a version in use at once, and no other resource", handle: e.release},
			route{method: post, path: named + "/versions/{v}/stage", verb: loom.Publish, summary: "Slate a version for the next sync", handle: e.stage},
			route{method: post, path: named + "/versions/{v}/recall", verb: loom.Publish, summary: "Take a version out with the next sync", handle: e.recall},
			route{method: del, path: named + "/versions/{v}", verb: loom.Publish, summary: "Delete a version of a resource", handle: e.removeResourceVersion},
		)
	}
	return all
}

func (a *api) accountRoutes() []route {
	const user = "/v2/users/{id}"
	search := []param{{"q", "string", "Words in the texts that the list shows."}}
	return []route{
		{method: get, path: "/v2/whoami", verb: loom.Self, summary: "Say who the request acts as", fresh: true, answer: "Whoami", handle: a.whoami},
		{method: get, path: "/v2/tokens", verb: loom.Self, summary: "List one's own tokens", fresh: true, paged: true, query: search, answer: "[]Token", handle: a.listTokens},
		{method: post, path: "/v2/tokens", verb: loom.Self, summary: "Create a token; its secret is shown only once", fresh: true, once: true, body: "TokenCreate", answer: "Token", handle: a.createToken},
		{method: post, path: "/v2/tokens/{id}/rotate", verb: loom.Self, summary: "Give a token another secret, shown only once; the old one works 24 more hours", fresh: true, answer: "Token", handle: a.rotateToken},
		{method: del, path: "/v2/tokens/{id}", verb: loom.Self, summary: "Revoke a token", fresh: true, handle: a.revokeToken},
		{method: get, path: "/v2/sessions", verb: loom.Self, summary: "List one's own sessions", fresh: true, paged: true, query: search, answer: "[]Session", handle: a.listSessions},
		{method: del, path: "/v2/sessions", verb: loom.Self, summary: "End all one's sessions but that of the request", fresh: true, handle: a.endSessions},
		{method: del, path: "/v2/sessions/{id}", verb: loom.Self, summary: "End a session", fresh: true, handle: a.endSession},
		{method: get, path: "/v2/profile", verb: loom.Profile, summary: "Read one's own free-form object", answer: "object", handle: a.showProfile},
		{method: put, path: "/v2/profile", verb: loom.Profile, summary: "Replace one's own free-form object", body: "object", handle: a.putProfile},
		{method: del, path: "/v2/profile", verb: loom.Profile, summary: "Forget one's own free-form object", handle: a.deleteProfile},
		{method: get, path: "/v2/users", verb: loom.Administer, summary: "List the users of the tenant", fresh: true, paged: true, answer: "[]User", handle: a.listUsers, query: []param{
			{"q", "string", "Words in id, name or email address."},
			{"role", "string", "Roles, separated by commas: user, admin, superadmin, none."},
			{"disabled", "boolean", "Only disabled users, or none of them."},
		}},
		{method: post, path: "/v2/users", verb: loom.Administer, summary: "Create a user; a generated password is shown only once, and to be changed at the first sign-in", fresh: true, once: true, body: "UserCreate", answer: "User", handle: a.createUser},
		{method: get, path: user, verb: loom.See, summary: "Read a user", fresh: true, answer: "User", handle: a.showUser},
		{method: patch, path: user, verb: loom.Self, summary: "Change a user", fresh: true, body: "UserEdit", answer: "User", handle: a.editUser},
		{method: del, path: user, verb: loom.Administer, summary: "Remove a user who owns no live clusters", fresh: true, handle: a.deleteUser},
		{method: get, path: user + "/tokens", verb: loom.See, summary: "List the tokens of a user", fresh: true, paged: true, query: search, answer: "[]Token", handle: a.userTokens},
		{method: get, path: user + "/sessions", verb: loom.See, summary: "List the sessions of a user", fresh: true, paged: true, query: search, answer: "[]Session", handle: a.userSessions},
		{method: get, path: "/v2/settings", verb: loom.Read, summary: "Read the settings of the tenant", fresh: true, answer: "Settings", handle: a.showSettings},
		{method: patch, path: "/v2/settings", verb: loom.Administer, summary: "Change settings of the tenant", fresh: true, body: "SettingsEdit", answer: "Settings", handle: a.editSettings},
		{method: get, path: "/v2/tenants", verb: loom.Install, summary: "List tenants", paged: true, query: search, answer: "[]Tenant", handle: a.listTenants},
		{method: post, path: "/v2/tenants", verb: loom.Install, summary: "Make a tenant", body: "TenantWrite", handle: a.createTenant},
		{method: get, path: "/v2/tenants/{name}", verb: loom.Install, summary: "Read a tenant", answer: "Tenant", handle: a.showTenant},
		{method: put, path: "/v2/tenants/{name}", verb: loom.Install, summary: "Change a tenant, or make it", body: "TenantWrite", handle: a.putTenant},
		{method: del, path: "/v2/tenants/{name}", verb: loom.Install, summary: "Delete a tenant that has no live clusters and no workers", handle: a.deleteTenant},
	}
}
