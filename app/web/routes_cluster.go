package web

import (
	"net/http"

	"loom/views/clusterview"
	"loom/views/route"
)

// clusterRoutes is the table of contents of the user portal: everything about
// clusters. {cluster} is an id, {n} and {task} are numbers, {node} is a node id.
func (s *Server) clusterRoutes(mux router) {
	get := func(pattern string, h http.Handler) { mux.Handle("GET "+pattern, h) }
	post := func(pattern string, h http.Handler) { mux.Handle("POST "+pattern, h) }

	get(route.Home()+"{$}", s.page(s.home))
	get(clusterview.HomeRunningURL(), s.page(s.shared("", s.homeRunning)))
	get(clusterview.HomeAttentionURL(), s.page(s.shared("", s.homeAttention)))

	get(route.Clusters(), s.page(s.clusterList))
	get(route.ClustersRows(), s.page(s.clusterRows))
	get(route.ClusterNew(), s.page(once(s.clusterNew)))
	post(route.ClusterNew(), s.page(s.clusterNewDiscard))
	post(route.ClusterCheck(), s.page(s.clusterCheck))
	post(clusterview.FormURL(), s.page(s.clusterForm))

	post(route.Previews(), s.page(s.previewMake))
	get("/previews/{preview}", s.page(s.previewShow))
	get("/previews/{preview}/graph.svg", s.page(s.previewGraph))
	post("/previews/{preview}/apply", s.page(s.previewApply))
	get("/previews/{preview}/apply", s.page(s.previewAgain))
	post("/previews/{preview}/discard", s.page(s.previewDiscard))

	get("/clusters/{cluster}", s.page(once(grouped(s.clusterShow))))
	get("/clusters/{cluster}/panel", s.page(s.shared("", s.clusterPanel)))
	get("/clusters/{cluster}/nodes", s.page(once(s.clusterNodes)))
	get("/clusters/{cluster}/services", s.page(once(s.clusterServices)))
	get("/clusters/{cluster}/operations", s.page(s.clusterOperations))
	get("/clusters/{cluster}/config", s.page(s.clusterConfig))
	get("/clusters/{cluster}/activity", s.page(s.clusterActivity))
	get("/clusters/{cluster}/copy", s.page(s.clusterCopy))
	get("/clusters/{cluster}/ssh-config", s.page(s.clusterSSHConfig))
	get("/clusters/{cluster}/authorize", s.page(s.clusterAgain))
	post("/clusters/{cluster}/authorize", s.page(s.clusterAuthorize))
	get("/clusters/{cluster}/key", s.page(s.clusterAgain))
	post("/clusters/{cluster}/key", s.page(s.clusterKey))
	get("/clusters/{cluster}/delete", s.page(s.clusterDeleteForm))
	post("/clusters/{cluster}/delete", s.page(s.clusterDelete))

	s.changeRoutes(mux)

	get("/clusters/{cluster}/nodes/{node}", s.page(once(s.nodeShow)))
	get("/clusters/{cluster}/nodes/{node}/reveal", s.page(s.nodeHide))
	get("/clusters/{cluster}/nodes/{node}/log", s.page(s.nodeLog))
	post("/clusters/{cluster}/nodes/{node}/reveal", s.page(s.nodeReveal))

	get("/clusters/{cluster}/operations/{n}", s.page(once(grouped(s.operationShow))))
	get("/clusters/{cluster}/operations/{n}/graph", s.page(s.shared(clusterview.OperationViewID, grouped(s.operationGraph))))
	get("/clusters/{cluster}/operations/{n}/graph.svg", s.page(once(s.operationGraphSVG)))
	get("/clusters/{cluster}/operations/{n}/stages", s.page(s.shared(clusterview.OperationViewID, grouped(s.operationStages))))
	get("/clusters/{cluster}/operations/{n}/timeline", s.page(s.shared(clusterview.OperationViewID, grouped(s.operationTimeline))))
	get("/clusters/{cluster}/operations/{n}/table", s.page(s.shared(clusterview.OperationViewID, grouped(s.operationTable))))
	get("/clusters/{cluster}/operations/{n}/log", s.page(s.operationLog))
	get("/clusters/{cluster}/operations/{n}/panel", s.page(s.shared("", grouped(s.operationPanel))))

	get("/clusters/{cluster}/operations/{n}/tasks/{task}", s.page(once(s.taskShow)))
	get("/clusters/{cluster}/operations/{n}/tasks/{task}/panel", s.page(s.shared("", s.taskPanel)))
	get("/clusters/{cluster}/operations/{n}/tasks/{task}/log", s.page(s.taskLog))
	get("/clusters/{cluster}/operations/{n}/tasks/{task}/log/raw", s.page(s.taskLogRaw))
}
