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
		page.Get(route.Home()+"{$}", loom.See, s.home),
		page.Piece(clusterview.HomeClustersURL(), loom.See, s.RenderOnce("", s.homeClustersPart)),

		page.Get(route.Clusters(), loom.See, s.clusterList),
		page.Piece(route.ClustersRows(), loom.See, s.clusterRows),
		page.Get(route.ClusterNew(), loom.Create, page.Once(s.clusterNew), route.ClusterNew(), route.ClusterNew()+"?template=shop"),
		page.Post(route.ClusterNew(), loom.Create.Reading(), s.clusterNewDiscard, route.ClusterNew(), route.ClusterNew()+"?template=shop"),
		page.Post(route.ClusterCheck(), loom.Create.Reading(), s.clusterCheck),
		page.Post(clusterview.FormURL(), loom.Create.Reading(), s.clusterForm),

		page.Post(route.Previews(), loom.Operate.Reading(), s.previewMake),
		page.Get("/previews/{preview}", loom.Operate, s.previewShow),
		page.Piece("/previews/{preview}/graph.svg", loom.Operate, s.previewGraph),
		page.Post("/previews/{preview}/apply", loom.Operate, s.previewApply),
		page.Piece("/previews/{preview}/apply", loom.Operate, s.previewAgain),
		page.Post("/previews/{preview}/discard", loom.Operate.Reading(), s.previewDiscard),

		page.Get(cluster, loom.See, page.Once(page.Grouped(s.clusterShow)), cluster, "/clusters/{paused}", "/clusters/{failed}", "/clusters/{gone}"),
		page.Piece(cluster+"/open", loom.See, s.clusterOpen),
		page.Piece(cluster+"/panel", loom.See, s.RenderOnce("", s.clusterPanel)),
		page.Get(cluster+"/nodes", loom.See, page.Once(s.clusterNodes)),
		page.Get(cluster+"/services", loom.See, page.Once(s.clusterServices)),
		page.Get(cluster+"/health", loom.See, s.clusterHealth),
		page.Get(cluster+"/operations", loom.See, s.clusterOperations),
		page.Get(cluster+"/config", loom.See, s.clusterConfig),
		page.Piece(cluster+"/activity", loom.See, s.clusterActivity),
		page.Piece(cluster+"/copy", loom.See, s.clusterCopy),
		page.Piece(cluster+"/ssh-config", loom.See, s.clusterSSHConfig),
		page.Piece(cluster+"/authorize", loom.Operate, s.clusterAgain),
		page.Post(cluster+"/authorize", loom.Operate, s.clusterAuthorize),
		page.Piece(cluster+"/key", loom.Operate, s.clusterAgain),
		page.Post(cluster+"/key", loom.Operate, s.clusterKey),
		page.Get(cluster+"/delete", loom.Own, s.clusterDeleteForm),
		page.Post(cluster+"/delete", loom.Own, s.clusterDelete),

		page.Get(cluster+"/nodes/{node}", loom.See, page.Once(s.nodeShow)),
		page.Piece(cluster+"/nodes/{node}/reveal", loom.Operate, s.nodeHide),
		page.Piece(cluster+"/nodes/{node}/log", loom.See, s.nodeLog),
		page.Post(cluster+"/nodes/{node}/reveal", loom.Operate, s.nodeReveal),
		page.Get(cluster+"/nodes/{node}/services/{service}/journal", loom.Operate, s.serviceJournal),

		page.Get(op, loom.See, page.Once(page.Grouped(s.operationTimeline)), op, "/clusters/{paused}/operations/{n}", "/clusters/{failed}/operations/{n}", "/clusters/{gone}/operations/{n}"),
		page.Piece(op+"/graph", loom.See, s.RenderOnce(clusterview.OperationViewID, page.Grouped(s.operationGraph))),
		page.Piece(op+"/graph.svg", loom.See, page.Once(s.operationGraphSVG)),
		page.Get(op+"/timeline", loom.See, s.RenderOnce(clusterview.OperationViewID, page.Grouped(s.operationTimeline))),
		page.Get(op+"/table", loom.See, s.RenderOnce(clusterview.OperationViewID, page.Grouped(s.operationTable))),
		page.Piece(op+"/log", loom.See, s.operationLog),
		page.Piece(op+"/panel", loom.See, s.RenderOnce("", page.Grouped(s.operationPanel))),

		page.Get(task, loom.See, page.Once(s.taskShow)),
		page.Piece(task+"/panel", loom.See, s.RenderOnce("", s.taskPanel)),
		page.Piece(task+"/log", loom.See, s.taskLog),
		page.Piece(task+"/log/raw", loom.See, s.taskLogRaw),
	}, s.bulkRoutes(), s.searchRoutes(), s.formRoutes(), s.atOnceRoutes())
}

// bulkRoutes change several clusters at once.
func (s *Server) bulkRoutes() []page.Route {
	sample := func(verb string) string { return route.ClustersBulk(verb) + "?id={failed}&id={cluster}" }
	return []page.Route{
		page.Get(route.ClustersBulk("delete"), loom.Own, s.bulkDelete, sample("delete")),
		page.Post(route.ClustersBulk("delete"), loom.Own, s.bulkDeleteDo, sample("delete")),
		page.Get(route.ClustersBulk("lease"), loom.Operate, s.bulkLease, sample("lease")),
		page.Post(route.ClustersBulk("lease"), loom.Operate, s.bulkLeaseDo, sample("lease")),
		page.Get(route.ClustersBulk("restart"), loom.Operate, s.bulkRestart, sample("restart")),
		page.Post(route.ClustersBulk("restart"), loom.Operate, s.bulkRestartDo, sample("restart")),
		page.Get(route.ClustersBulk("owner"), loom.Administer, s.bulkOwner, sample("owner")),
		page.Post(route.ClustersBulk("owner"), loom.Administer, s.bulkOwnerDo, sample("owner")),
	}
}

// searchRoutes find clusters, nodes and pages, and say what became of the reader's own.
func (s *Server) searchRoutes() []page.Route {
	return []page.Route{
		page.Get(route.Search(), loom.See, s.search),
		page.Piece(route.Palette(), loom.See, s.palette),
		page.Piece(route.News(), loom.See, s.news),
	}
}

// formRoutes are the forms for operations on a cluster that is there. They are sent to
// /previews.
func (s *Server) formRoutes() []page.Route {
	forms := []struct {
		path string
		kind loom.ChangeKind
	}{
		{"scale", kindScale}, {"reconfigure", loom.ChangeConfigure}, {"update", loom.ChangeUpdate}, {"resize", loom.ChangeResize},
		{"repair", loom.ChangeRepair}, {"services/add", loom.ChangeAddServices}, {"services/remove", loom.ChangeRemoveServices},
		{"services/start", loom.ChangeStart}, {"services/stop", loom.ChangeStop}, {"services/restart", loom.ChangeRestart},
		{"services/{service}/start", loom.ChangeStart}, {"services/{service}/stop", loom.ChangeStop}, {"services/{service}/restart", loom.ChangeRestart},
		{"operations/{n}/rollback", loom.ChangeRollback},
	}
	const cluster, retry = "/clusters/{cluster}", "/operations/{n}/retry"
	routes := []page.Route{
		page.Post(cluster+"/try", loom.Operate.Reading(), s.changeTry),
		page.Get(cluster+retry, loom.Operate, s.changeShow(loom.ChangeRetry), "/clusters/{failed}"+retry),
	}
	for _, form := range forms {
		routes = append(routes, page.Get(cluster+"/"+form.path, loom.Operate, s.changeShow(form.kind)))
	}
	return routes
}

// atOnceRoutes are what is done without a preview. An address that can only be posted to
// leads to the page with its button.
func (s *Server) atOnceRoutes() []page.Route {
	const cluster, op, task = "/clusters/{cluster}", "/clusters/{cluster}/operations/{n}", "/clusters/{cluster}/operations/{n}/tasks/{task}"
	const paused, ready = "/clusters/{paused}/operations/{n}", "/clusters/{paused}/operations/{n}/tasks/{ready}"
	return []page.Route{
		page.Get(cluster+"/lease", loom.Operate, s.clusterLeaseForm),
		page.Post(cluster+"/lease", loom.Operate, s.clusterLease),
		page.Get(cluster+"/access", loom.See, s.clusterAccess),
		page.Post(cluster+"/access", loom.Own, s.clusterShare),
		page.Post(cluster+"/access/remove", loom.Own, s.clusterUnshare),
		page.Post(cluster+"/access/owner", loom.Own, s.clusterHandOver),
		page.Get(cluster+"/edit", loom.Operate, s.clusterEditForm),
		page.Post(cluster+"/edit", loom.Operate, s.clusterEdit),
		page.Piece(cluster+"/protect", loom.Own, s.clusterAgain),
		page.Post(cluster+"/check", loom.Operate, s.checkNow),
		page.Post(cluster+"/repair-policy", loom.Operate, s.changeRepairPolicy),
		page.Post(cluster+"/incidents/accept", loom.Operate, s.acceptRepair),
		page.Post(cluster+"/incidents/decline", loom.Operate, s.declineRepair),
		page.Post(cluster+"/maintenance", loom.Operate, s.beginMaintenance),
		page.Post(cluster+"/maintenance/end", loom.Operate, s.endMaintenance),
		page.Post(cluster+"/protect", loom.Own, s.clusterProtect),

		page.Piece(op+"/pause", loom.Operate, s.operationAgain, paused+"/pause"),
		page.Post(op+"/pause", loom.Operate, s.operationControl("pause"), paused+"/pause"),
		page.Piece(op+"/resume", loom.Operate, s.operationAgain, paused+"/resume"),
		page.Post(op+"/resume", loom.Operate, s.operationControl("resume"), paused+"/resume"),
		page.Piece(op+"/resubmit", loom.Operate, s.operationAgain),
		page.Post(op+"/resubmit", loom.Operate, s.operationResubmit),
		page.Get(op+"/abort", loom.Operate, s.operationAbortForm, paused+"/abort"),
		page.Post(op+"/abort", loom.Operate, s.operationAbort, paused+"/abort"),

		page.Piece(task+"/retry-now", loom.Operate, s.taskAgain),
		page.Post(task+"/retry-now", loom.Operate, s.taskRetrying("retry-now")),
		page.Piece(task+"/stop-retrying", loom.Operate, s.taskAgain),
		page.Post(task+"/stop-retrying", loom.Operate, s.taskRetrying("stop-retrying")),
		page.Get(task+"/skip", loom.Override, s.taskSkipForm, ready+"/skip"),
		page.Post(task+"/skip", loom.Override, s.taskSkip, ready+"/skip"),
	}
}
