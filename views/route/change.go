package route

import (
	"strconv"

	"loom/app/loom"
)

// ClusterTry says what a form for a change of a cluster would come to (POST, fragment).
func ClusterTry(id loom.ClusterID) string { return ClusterVerb(id, "try") }

// ClusterScale is the form for another number of nodes; the nodes that leave may be
// named already.
func ClusterScale(id loom.ClusterID, leave ...loom.NodeID) string {
	url := ClusterVerb(id, "scale")
	for _, node := range leave {
		url = Query(url, "leave", string(node))
	}
	return url
}

// ClusterRepair is the form that repairs nodes, some of them ticked.
func ClusterRepair(id loom.ClusterID, nodes ...loom.NodeID) string {
	return ClusterRepairBy(id, "", nil, nodes...)
}

// ClusterRepairBy is the form that repairs nodes, with a way to do so chosen, and services
// and nodes ticked.
func ClusterRepairBy(id loom.ClusterID, how loom.RepairHow, services []string, nodes ...loom.NodeID) string {
	url := ClusterVerb(id, "repair")
	if how != "" {
		url = Query(url, "how", string(how))
	}
	for _, name := range services {
		url = Query(url, "services", name)
	}
	for _, node := range nodes {
		url = Query(url, "nodes", string(node))
	}
	return url
}

// ConfigRestore is the form that brings a config back which the cluster has had.
func ConfigRestore(id loom.ClusterID, revision int, restart bool) string {
	url := Query(ClusterVerb(id, "reconfigure"), "revision", strconv.Itoa(revision))
	if restart {
		url = Query(url, "restart", "1")
	}
	return url
}

// OperationRetry is the form for a retry, with services in their newest version and
// services to remove ticked, and the config opened.
func OperationRetry(ref loom.OperationRef, newest, remove []string, config bool) string {
	url := OperationVerb(ref, "retry")
	for _, name := range newest {
		url = Query(url, "services", name)
	}
	for _, name := range remove {
		url = Query(url, "removeServices", name)
	}
	if config {
		url = Query(url, "edit", "config")
	}
	return url
}

// ClusterServices is an action on the services of a cluster: "add", "remove", "start",
// "stop", "restart".
func ClusterServices(id loom.ClusterID, verb string) string {
	return join("clusters", id.String(), "services", verb)
}

// ClusterService is "start", "stop" or "restart" of one service of a cluster.
func ClusterService(id loom.ClusterID, service, verb string) string {
	return join("clusters", id.String(), "services", service, verb)
}

// ClusterProtect switches the protection of a cluster on or off (POST).
func ClusterProtect(id loom.ClusterID, on bool) string {
	if on {
		return ClusterVerb(id, "protect")
	}
	return Query(ClusterVerb(id, "protect"), "off", "1")
}

// ClusterEdit is the form for description and labels.
func ClusterEdit(id loom.ClusterID) string { return ClusterVerb(id, "edit") }

// TaskVerb is "retry-now" or "stop-retrying" of a task (POST).
func TaskVerb(ref loom.TaskRef, verb string) string { return Task(ref) + "/" + verb }

// TaskSkip asks for the reason to leave out a task (GET) and leaves it out (POST).
func TaskSkip(ref loom.TaskRef) string { return Task(ref) + "/skip" }
