package api

import (
	"net/http"

	"loom/app/loom"
)

// readingRoutes read what runs: nodes, logs of several tasks, metrics, processes.
func (a *api) readingRoutes() []route {
	const node, process = "/v2/nodes/{id}", "/v2/processes/{id}"
	logMedia := []string{mediaJSON, mediaText, mediaStream}
	logQuery := []param{
		{"attempt", "integer", "Only lines of attempts with this number."},
		{"after", "string", "Cursor to go on behind: from the header Link, or the id of an event."},
		{"limit", "integer", "Lines of a JSON answer, 1 to 500."},
		{"level", "string", "Levels, separated by commas: info, warn, error."},
		{"ansi", "integer", "1 leaves control characters, such as colors of terminals, in a plain text; else only tabs and line ends stay."},
	}
	return []route{
		{method: get, path: "/v2/nodes", verb: loom.See, summary: "List the nodes of all clusters that one may see", paged: true, answer: "[]Node", handle: a.listNodes},
		{method: post, path: "/v2/nodes", verb: loom.Administer, summary: "Write a node: host name, addresses and user of an existing one, or a record without a machine",
			body: "NodeWrite", success: http.StatusCreated, handle: a.postNode},
		{method: get, path: node, verb: loom.See, summary: "Read a node", answer: "Node", handle: a.showNode},
		{method: put, path: node, verb: loom.Administer, summary: "Write a node, as POST does", body: "NodeWrite", success: http.StatusNoContent, handle: a.putNode},
		{method: del, path: node, verb: loom.Administer, summary: "Remove the record of a node that never had a machine", success: http.StatusNoContent, handle: a.deleteNode},
		{method: post, path: "/v2/getNodeProperties", verb: loom.See, summary: "Read facts of nodes by their services", body: "NodeQuery", answer: "{}object", handle: a.nodeProperties},
		{method: post, path: "/v2/getClusterStatuses", verb: loom.See, summary: "Read status and progress of all clusters that one may see", answer: "[]ClusterStatus", handle: a.clusterStatuses},

		{method: get, path: "/v2/clusters/{id}/operations/{n}/log", verb: loom.See, summary: "Read or follow the log of an operation, as lines were stored", fresh: true,
			answer: "[]Line", media: logMedia, query: logQuery, handle: a.operationLog},
		{method: get, path: "/v2/clusters/{id}/nodes/{nodeId}/log", verb: loom.See, summary: "Read or follow the log of a node, as lines were stored", fresh: true,
			answer: "[]Line", media: logMedia, query: logQuery, handle: a.nodeLog},
		{method: get, path: "/v2/clusters/{id}/nodes/{nodeId}/services/{service}/journal", verb: loom.Operate, summary: "Read or follow the journal of a service on a node; needs the scope clusters:write; audited", fresh: true,
			answer: "Journal", media: logMedia, query: []param{{"lines", "integer", "Lines of the past, of each unit and file, 0 to 1000; 100 when left out."}, {"after", "string", "Id of an event to go on behind; the header Last-Event-ID wins."}}, handle: a.serviceJournal},

		{method: get, path: "/v2/provisioners", verb: loom.Install, summary: "List the provisioners; for superadmins", paged: true, answer: "[]Provisioner", handle: a.listProvisioners},
		{method: get, path: "/v2/provisioners/{id}", verb: loom.Install, summary: "Read a provisioner; for superadmins", answer: "Provisioner", handle: a.showProvisioner},
		{method: get, path: "/v2/processes", verb: loom.Install, summary: "List the processes of the installation; for superadmins", fresh: true, paged: true,
			answer: "[]Process", handle: a.listProcesses, query: []param{{"kind", "string", "Kinds, separated by commas: web, scheduler, provisioner."}}},
		{method: post, path: process + "/drain", verb: loom.Install, summary: "Drain a provisioner: it takes no new tasks", fresh: true, answer: "Process", handle: a.drainProcess},
		{method: post, path: process + "/resume", verb: loom.Install, summary: "Resume a drained provisioner", fresh: true, answer: "Process", handle: a.resumeProcess},

		{method: get, path: "/v2/metrics/queues", verb: loom.Administer, summary: "Count tasks that wait and that run; for administrators", answer: "{}Queue", handle: a.queueMetrics},
		{method: get, path: "/v2/metrics/nodes/usage", verb: loom.Read, summary: "Sum up for how long nodes were used", answer: "Usage", handle: a.usageMetrics, query: []param{
			{"tenant", "string", "Id or name of a tenant; others than one's own are for superadmins."},
			{"user", "string", "Id of the owner of clusters; others than oneself are for administrators."},
			{"cluster", "string", "Id of a cluster."},
			{"clustertemplate", "string", "Name of a cluster template."},
			{"start", "integer", "Second since 1970; the first use when left out."},
			{"end", "integer", "Second since 1970; now when left out."},
			{"groupby", "string", "hour, day, week, month (30 days) or year (360 days); one interval when left out."},
			{"timeunit", "string", "nanoseconds, microseconds, milliseconds, seconds, minutes, hours or days."},
			{"split", "string", "user, clustertemplate, cluster, hardwaretype or provider."},
		}},
	}
}
