package clusters

import (
	"slices"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
)

// Routes are the pages of what users have: clusters, their nodes, operations and
// tasks. {cluster} is an id, {n} and {task} are numbers, {node} is a node id.
func (s *Server) Routes() []page.Route {
	const cluster, op, task = "/clusters/{cluster}", "/clusters/{cluster}/operations/{n}", "/clusters/{cluster}/operations/{n}/tasks/{task}"
	return slices.Concat([]page.Route{
		page.Get(route.Home()+"{$}", page.SignedIn, s.home),
		page.Piece(clusterview.HomeRunningURL(), page.SignedIn, s.RenderOnce("", s.homeRunning)),
		page.Piece(clusterview.HomeAttentionURL(), page.SignedIn, s.RenderOnce("", s.homeAttention)),

		page.Get(route.Clusters(), page.SignedIn, s.clusterList),
		page.Piece(route.ClustersRows(), page.SignedIn, s.clusterRows),
		page.Get(route.ClusterNew(), page.SignedIn, page.Once(s.clusterNew), route.ClusterNew(), route.ClusterNew()+"?template=shop"),
		page.Post(route.ClusterNew(), page.SignedIn, s.clusterNewDiscard, route.ClusterNew(), route.ClusterNew()+"?template=shop"),
		page.Post(route.ClusterCheck(), page.SignedIn, s.clusterCheck),
		page.Post(clusterview.FormURL(), page.SignedIn, s.clusterForm),

		page.Post(route.Previews(), page.SignedIn, s.previewMake),
		page.Get("/previews/{preview}", page.SignedIn, s.previewShow),
		page.Piece("/previews/{preview}/graph.svg", page.SignedIn, s.previewGraph),
		page.Post("/previews/{preview}/apply", page.SignedIn, s.previewApply),
		page.Piece("/previews/{preview}/apply", page.SignedIn, s.previewAgain),
		page.Post("/previews/{preview}/discard", page.SignedIn, s.previewDiscard),

		page.Get(cluster, page.SignedIn, page.Once(page.Grouped(s.clusterShow)), cluster, "/clusters/{paused}", "/clusters/{failed}", "/clusters/{gone}"),
		page.Piece(cluster+"/panel", page.SignedIn, s.RenderOnce("", s.clusterPanel)),
		page.Get(cluster+"/nodes", page.SignedIn, page.Once(s.clusterNodes)),
		page.Get(cluster+"/services", page.SignedIn, page.Once(s.clusterServices)),
		page.Get(cluster+"/operations", page.SignedIn, s.clusterOperations),
		page.Get(cluster+"/config", page.SignedIn, s.clusterConfig),
		page.Get(cluster+"/activity", page.SignedIn, s.clusterActivity),
		page.Piece(cluster+"/copy", page.SignedIn, s.clusterCopy),
		page.Piece(cluster+"/ssh-config", page.SignedIn, s.clusterSSHConfig),
		page.Piece(cluster+"/authorize", page.SignedIn, s.clusterAgain),
		page.Post(cluster+"/authorize", page.SignedIn, s.clusterAuthorize),
		page.Piece(cluster+"/key", page.SignedIn, s.clusterAgain),
		page.Post(cluster+"/key", page.SignedIn, s.clusterKey),
		page.Get(cluster+"/delete", page.SignedIn, s.clusterDeleteForm),
		page.Post(cluster+"/delete", page.SignedIn, s.clusterDelete),

		page.Get(cluster+"/nodes/{node}", page.SignedIn, page.Once(s.nodeShow)),
		page.Piece(cluster+"/nodes/{node}/reveal", page.SignedIn, s.nodeHide),
		page.Piece(cluster+"/nodes/{node}/log", page.SignedIn, s.nodeLog),
		page.Post(cluster+"/nodes/{node}/reveal", page.SignedIn, s.nodeReveal),

		page.Get(op, page.SignedIn, page.Once(page.Grouped(s.operationShow)), op, "/clusters/{paused}/operations/{n}", "/clusters/{failed}/operations/{n}", "/clusters/{gone}/operations/{n}"),
		page.Piece(op+"/graph", page.SignedIn, s.RenderOnce(clusterview.OperationViewID, page.Grouped(s.operationGraph))),
		page.Piece(op+"/graph.svg", page.SignedIn, page.Once(s.operationGraphSVG)),
		page.Get(op+"/stages", page.SignedIn, s.RenderOnce(clusterview.OperationViewID, page.Grouped(s.operationStages))),
		page.Get(op+"/timeline", page.SignedIn, s.RenderOnce(clusterview.OperationViewID, page.Grouped(s.operationTimeline))),
		page.Get(op+"/table", page.SignedIn, s.RenderOnce(clusterview.OperationViewID, page.Grouped(s.operationTable))),
		page.Piece(op+"/log", page.SignedIn, s.operationLog),
		page.Piece(op+"/panel", page.SignedIn, s.RenderOnce("", page.Grouped(s.operationPanel))),

		page.Get(task, page.SignedIn, page.Once(s.taskShow)),
		page.Piece(task+"/panel", page.SignedIn, s.RenderOnce("", s.taskPanel)),
		page.Piece(task+"/log", page.SignedIn, s.taskLog),
		page.Piece(task+"/log/raw", page.SignedIn, s.taskLogRaw),
	}, s.bulkRoutes(), s.searchRoutes(), s.formRoutes(), s.atOnceRoutes())
}

// bulkRoutes change several clusters at once.
func (s *Server) bulkRoutes() []page.Route {
	sample := func(verb string) string { return route.ClustersBulk(verb) + "?id={failed}&id={cluster}" }
	return []page.Route{
		page.Get(route.ClustersBulk("delete"), page.SignedIn, s.bulkDelete, sample("delete")),
		page.Post(route.ClustersBulk("delete"), page.SignedIn, s.bulkDeleteDo, sample("delete")),
		page.Get(route.ClustersBulk("lease"), page.SignedIn, s.bulkLease, sample("lease")),
		page.Post(route.ClustersBulk("lease"), page.SignedIn, s.bulkLeaseDo, sample("lease")),
		page.Get(route.ClustersBulk("owner"), page.Admin, s.bulkOwner, sample("owner")),
		page.Post(route.ClustersBulk("owner"), page.Admin, s.bulkOwnerDo, sample("owner")),
	}
}

// searchRoutes find clusters, nodes and pages, and say what became of the reader's own.
func (s *Server) searchRoutes() []page.Route {
	return []page.Route{
		page.Get(route.Search(), page.SignedIn, s.search),
		page.Piece(route.Palette(), page.SignedIn, s.palette),
		page.Piece(route.News(), page.SignedIn, s.news),
	}
}

// formRoutes are the forms for operations on a cluster that is there. They are sent to
// /previews.
func (s *Server) formRoutes() []page.Route {
	forms := []struct {
		path string
		kind loom.ChangeKind
	}{
		{"scale", kindScale}, {"reconfigure", loom.ChangeConfigure}, {"upgrade", loom.ChangeUpgrade}, {"resize", loom.ChangeResize},
		{"repair", loom.ChangeRepair}, {"sync", loom.ChangeSync}, {"services/add", loom.ChangeAddServices}, {"services/remove", loom.ChangeRemoveServices},
		{"services/start", loom.ChangeStart}, {"services/stop", loom.ChangeStop}, {"services/restart", loom.ChangeRestart},
		{"services/{service}/start", loom.ChangeStart}, {"services/{service}/stop", loom.ChangeStop}, {"services/{service}/restart", loom.ChangeRestart},
		{"operations/{n}/rollback", loom.ChangeRollback},
	}
	const cluster, retry = "/clusters/{cluster}", "/operations/{n}/retry"
	routes := []page.Route{
		page.Post(cluster+"/try", page.SignedIn, s.changeTry),
		page.Get(cluster+retry, page.SignedIn, s.changeShow(loom.ChangeRetry), "/clusters/{failed}"+retry),
	}
	for _, form := range forms {
		routes = append(routes, page.Get(cluster+"/"+form.path, page.SignedIn, s.changeShow(form.kind)))
	}
	return routes
}

// atOnceRoutes are what is done without a preview. An address that can only be posted to
// leads to the page with its button.
func (s *Server) atOnceRoutes() []page.Route {
	const cluster, op, task = "/clusters/{cluster}", "/clusters/{cluster}/operations/{n}", "/clusters/{cluster}/operations/{n}/tasks/{task}"
	const paused, ready = "/clusters/{paused}/operations/{n}", "/clusters/{paused}/operations/{n}/tasks/{ready}"
	return []page.Route{
		page.Get(cluster+"/lease", page.SignedIn, s.clusterLeaseForm),
		page.Post(cluster+"/lease", page.SignedIn, s.clusterLease),
		page.Get(cluster+"/edit", page.SignedIn, s.clusterEditForm),
		page.Post(cluster+"/edit", page.SignedIn, s.clusterEdit),
		page.Piece(cluster+"/protect", page.SignedIn, s.clusterAgain),
		page.Post(cluster+"/protect", page.SignedIn, s.clusterProtect),

		page.Piece(op+"/pause", page.SignedIn, s.operationAgain, paused+"/pause"),
		page.Post(op+"/pause", page.SignedIn, s.operationControl("pause"), paused+"/pause"),
		page.Piece(op+"/resume", page.SignedIn, s.operationAgain, paused+"/resume"),
		page.Post(op+"/resume", page.SignedIn, s.operationControl("resume"), paused+"/resume"),
		page.Piece(op+"/resubmit", page.SignedIn, s.operationAgain),
		page.Post(op+"/resubmit", page.SignedIn, s.operationResubmit),
		page.Get(op+"/abort", page.SignedIn, s.operationAbortForm, paused+"/abort"),
		page.Post(op+"/abort", page.SignedIn, s.operationAbort, paused+"/abort"),

		page.Piece(task+"/retry-now", page.SignedIn, s.taskAgain),
		page.Post(task+"/retry-now", page.SignedIn, s.taskRetrying("retry-now")),
		page.Piece(task+"/stop-retrying", page.SignedIn, s.taskAgain),
		page.Post(task+"/stop-retrying", page.SignedIn, s.taskRetrying("stop-retrying")),
		page.Get(task+"/skip", page.SignedIn, s.taskSkipForm, ready+"/skip"),
		page.Post(task+"/skip", page.SignedIn, s.taskSkip, ready+"/skip"),
	}
}
