package route

import (
	"strconv"

	"loom/app/loom"
)

// Clusters is the list of clusters.
func Clusters() string { return "/clusters" }

// ClustersRows is the fragment with the rows of the named clusters (7.1).
func ClustersRows() string { return "/clusters/rows" }

// ClusterNew is the form for a new cluster.
func ClusterNew() string { return "/clusters/new" }

// ClusterNewFrom is that form with a template chosen.
func ClusterNewFrom(template string) string { return Query(ClusterNew(), "template", template) }

// ClusterNewLike is the form filled in as another cluster is.
func ClusterNewLike(id loom.ClusterID) string { return Query(ClusterNew(), "like", id.String()) }

// ClusterCheck solves a draft of a new cluster (POST, fragment).
func ClusterCheck() string { return "/clusters/new/check" }

// Previews makes a preview of any change (POST).
func Previews() string { return "/previews" }

// Preview is the page of a stored preview.
func Preview(id loom.PreviewID) string { return join("previews", string(id)) }

// PreviewApply starts the operation of a preview (POST).
func PreviewApply(id loom.PreviewID) string { return join("previews", string(id), "apply") }

// PreviewDiscard drops a preview (POST).
func PreviewDiscard(id loom.PreviewID) string { return join("previews", string(id), "discard") }

// PreviewGraph is the plan of a preview as a downloadable SVG.
func PreviewGraph(id loom.PreviewID) string { return join("previews", string(id), "graph.svg") }

// Cluster is the overview of a cluster.
func Cluster(id loom.ClusterID) string { return join("clusters", id.String()) }

// ClusterTab is a tab of a cluster: "nodes", "services", "operations", "config".
func ClusterTab(id loom.ClusterID, tab string) string { return join("clusters", id.String(), tab) }

// ClusterPanel is the live fragment of a cluster (7.1).
func ClusterPanel(id loom.ClusterID) string { return join("clusters", id.String(), "panel") }

// ClusterNodes is the nodes tab of a cluster.
func ClusterNodes(id loom.ClusterID) string { return ClusterTab(id, "nodes") }

// ClusterOperations is the operations tab of a cluster.
func ClusterOperations(id loom.ClusterID) string { return ClusterTab(id, "operations") }

// ClusterCopy is all nodes of a cluster as a text to copy: "ssh", "hosts" or "csv".
func ClusterCopy(id loom.ClusterID, as string) string {
	return Query(ClusterTab(id, "copy"), "as", as)
}

// ClusterVerb is an action on a cluster (4.7): "delete", "lease", "update".
func ClusterVerb(id loom.ClusterID, verb string) string { return join("clusters", id.String(), verb) }

// ClusterRepairPolicy says what Loom may repair by itself in a cluster.
func ClusterRepairPolicy(id loom.ClusterID) string { return ClusterVerb(id, "repair-policy") }

// ClusterAccept has what an incident of a cluster calls for repaired, ClusterDecline leaves it alone.
func ClusterAccept(id loom.ClusterID) string {
	return join("clusters", id.String(), "incidents", "accept")
}

// ClusterDecline leaves an incident of a cluster alone.
func ClusterDecline(id loom.ClusterID) string {
	return join("clusters", id.String(), "incidents", "decline")
}

// ClusterMaintenance announces maintenance of a cluster.
func ClusterMaintenance(id loom.ClusterID) string { return ClusterVerb(id, "maintenance") }

// ClusterMaintenanceEnd ends maintenance of a cluster and its nodes.
func ClusterMaintenanceEnd(id loom.ClusterID) string {
	return join("clusters", id.String(), "maintenance", "end")
}

// ClusterOpen leads to what the services of a cluster serve.
func ClusterOpen(id loom.ClusterID) string { return join("clusters", id.String(), "open") }

// ClusterDelete confirms (GET) and starts (POST) the deletion of a cluster.
func ClusterDelete(id loom.ClusterID) string { return ClusterVerb(id, "delete") }

// ClusterLease confirms (GET) and extends (POST) the lease of a cluster.
func ClusterLease(id loom.ClusterID) string { return ClusterVerb(id, "lease") }

// Node is the page of one node.
func Node(id loom.ClusterID, node loom.NodeID) string {
	return join("clusters", id.String(), "nodes", string(node))
}

// NodeReveal shows the sign-in made for a node, once and audited (POST).
func NodeReveal(id loom.ClusterID, node loom.NodeID) string {
	return join("clusters", id.String(), "nodes", string(node), "reveal")
}

func operation(ref loom.OperationRef, rest ...string) string {
	return join(append([]string{"clusters", ref.Cluster.String(), "operations", strconv.Itoa(ref.Number)}, rest...)...)
}

// Operation is the page of an operation: its timeline.
func Operation(ref loom.OperationRef) string { return operation(ref) }

// OperationGraph is the graph view of an operation's plan.
func OperationGraph(ref loom.OperationRef) string { return operation(ref, "graph") }

// OperationGraphSVG is the graph as a downloadable SVG.
func OperationGraphSVG(ref loom.OperationRef) string { return operation(ref, "graph.svg") }

// OperationTasks is the table of an operation's tasks.
func OperationTasks(ref loom.OperationRef) string { return operation(ref, "table") }

// OperationTimeline is the chart of what ran when.
func OperationTimeline(ref loom.OperationRef) string { return operation(ref, "timeline") }

// OperationLog is the log of all tasks of an operation, interleaved by time.
func OperationLog(ref loom.OperationRef) string { return operation(ref, "log") }

// NodeLog is the log of all tasks of a node, interleaved by time.
func NodeLog(id loom.ClusterID, node loom.NodeID) string {
	return join("clusters", id.String(), "nodes", string(node), "log")
}

// OperationPanel is the live fragment with progress and actions.
func OperationPanel(ref loom.OperationRef) string { return operation(ref, "panel") }

// OperationVerb is an action on an operation: "pause", "resume", "abort", "retry".
func OperationVerb(ref loom.OperationRef, verb string) string { return operation(ref, verb) }

// Task is the page of a task with its log.
func Task(ref loom.TaskRef) string {
	return operation(ref.Operation, "tasks", strconv.Itoa(ref.Number))
}

// TaskAttempt is the page of a task showing one attempt.
func TaskAttempt(ref loom.TaskRef, attempt int) string {
	return Query(Task(ref), "attempt", strconv.Itoa(attempt))
}

// ServiceJournal is the page of what a service writes on a node.
func ServiceJournal(id loom.ClusterID, node loom.NodeID, service string) string {
	return join("clusters", id.String(), "nodes", string(node), "services", service, "journal")
}

// TaskLog is the fragment with log rows of an attempt, newer than a cursor given
// as "after".
func TaskLog(ref loom.TaskRef, attempt int) string {
	return Query(operation(ref.Operation, "tasks", strconv.Itoa(ref.Number), "log"), "attempt", strconv.Itoa(attempt))
}

// TaskLogRaw is the log of an attempt as plain text.
func TaskLogRaw(ref loom.TaskRef, attempt int) string {
	return Query(operation(ref.Operation, "tasks", strconv.Itoa(ref.Number), "log", "raw"), "attempt", strconv.Itoa(attempt))
}

// TaskPanel is the live fragment with the facts of a task.
func TaskPanel(ref loom.TaskRef) string {
	return operation(ref.Operation, "tasks", strconv.Itoa(ref.Number), "panel")
}

// TopicClusters signals changes of listed clusters.
func TopicClusters() string { return "clusters" }

// TopicCluster signals changes of one cluster.
func TopicCluster(id loom.ClusterID) string { return "cluster:" + id.String() }

// TopicOperation signals task changes and progress of one operation.
func TopicOperation(ref loom.OperationRef) string {
	return "op:" + ref.Cluster.String() + "/" + strconv.Itoa(ref.Number)
}

// TopicLog signals new log lines of an attempt; pages only.
func TopicLog(ref loom.TaskRef, attempt int) string {
	return "log:" + ref.Operation.Cluster.String() + "/" + strconv.Itoa(ref.Operation.Number) + "/" +
		strconv.Itoa(ref.Number) + "/" + strconv.Itoa(attempt)
}

// ClusterAccess says who may do what with a cluster (GET) and shares it (POST).
func ClusterAccess(id loom.ClusterID) string { return ClusterVerb(id, "access") }

// ClusterAccessRemove takes a role on a cluster back (POST).
func ClusterAccessRemove(id loom.ClusterID) string {
	return join("clusters", id.String(), "access", "remove")
}

// ClusterAccessOwner hands a cluster over (POST).
func ClusterAccessOwner(id loom.ClusterID) string {
	return join("clusters", id.String(), "access", "owner")
}
