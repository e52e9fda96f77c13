package web

import (
	"net/http"

	"loom/app/loom"
)

// changeRoutes are the forms for operations on a cluster that is there, and what is
// done to it at once. The forms are sent to /previews.
func (s *Server) changeRoutes(mux router) {
	get := func(pattern string, h http.Handler) { mux.Handle("GET "+pattern, h) }
	post := func(pattern string, h http.Handler) { mux.Handle("POST "+pattern, h) }

	for path, kind := range map[string]loom.PreviewKind{
		"scale": kindScale, "reconfigure": loom.PreviewConfigure, "upgrade": loom.PreviewUpgrade, "resize": loom.PreviewResize,
		"repair": loom.PreviewRepair, "sync": loom.PreviewSync, "services/add": loom.PreviewAddServices, "services/remove": loom.PreviewRemoveServices,
		"operations/{n}/rollback": loom.PreviewRollback, "operations/{n}/retry": loom.PreviewRetry,
	} {
		get("/clusters/{cluster}/"+path, s.page(s.changeShow(kind)))
	}
	for _, kind := range []loom.PreviewKind{loom.PreviewStart, loom.PreviewStop, loom.PreviewRestart} {
		get("/clusters/{cluster}/services/"+string(kind), s.page(s.changeShow(kind)))
		get("/clusters/{cluster}/services/{service}/"+string(kind), s.page(s.changeShow(kind)))
	}
	post("/clusters/{cluster}/try", s.page(s.changeTry))

	get("/clusters/{cluster}/lease", s.page(s.clusterLeaseForm))
	post("/clusters/{cluster}/lease", s.page(s.clusterLease))
	get("/clusters/{cluster}/edit", s.page(s.clusterEditForm))
	post("/clusters/{cluster}/edit", s.page(s.clusterEdit))
	get("/clusters/{cluster}/protect", s.page(s.clusterAgain))
	post("/clusters/{cluster}/protect", s.page(s.clusterProtect))

	for _, verb := range []string{"pause", "resume"} {
		get("/clusters/{cluster}/operations/{n}/"+verb, s.page(s.operationAgain))
		post("/clusters/{cluster}/operations/{n}/"+verb, s.page(s.operationControl(verb)))
	}
	get("/clusters/{cluster}/operations/{n}/resubmit", s.page(s.operationAgain))
	post("/clusters/{cluster}/operations/{n}/resubmit", s.page(s.operationResubmit))
	for _, verb := range []string{"retry-now", "stop-retrying"} {
		get("/clusters/{cluster}/operations/{n}/tasks/{task}/"+verb, s.page(s.taskAgain))
		post("/clusters/{cluster}/operations/{n}/tasks/{task}/"+verb, s.page(s.taskRetrying(verb)))
	}
	get("/clusters/{cluster}/operations/{n}/abort", s.page(s.operationAbortForm))
	post("/clusters/{cluster}/operations/{n}/abort", s.page(s.operationAbort))
	get("/clusters/{cluster}/operations/{n}/tasks/{task}/skip", s.page(s.taskSkipForm))
	post("/clusters/{cluster}/operations/{n}/tasks/{task}/skip", s.page(s.taskSkip))
}
