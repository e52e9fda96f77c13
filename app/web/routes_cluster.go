package web

import (
	"slices"

	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

// clusterRoutes are the pages of what users have: clusters, their nodes, operations and
// tasks. {cluster} is an id, {n} and {task} are numbers, {node} is a node id.
func (s *Server) clusterRoutes() []Route {
	const cluster, op, task = "/clusters/{cluster}", "/clusters/{cluster}/operations/{n}", "/clusters/{cluster}/operations/{n}/tasks/{task}"
	return slices.Concat([]Route{
		Get(route.Home()+"{$}", SignedIn, s.home),
		Piece(clusterview.HomeRunningURL(), SignedIn, s.shared("", s.homeRunning)),
		Piece(clusterview.HomeAttentionURL(), SignedIn, s.shared("", s.homeAttention)),

		Get(route.Clusters(), SignedIn, s.clusterList),
		Piece(route.ClustersRows(), SignedIn, s.clusterRows),
		Get(route.ClusterNew(), SignedIn, once(s.clusterNew), route.ClusterNew(), route.ClusterNew()+"?template=shop"),
		Post(route.ClusterNew(), SignedIn, s.clusterNewDiscard),
		Post(route.ClusterCheck(), SignedIn, s.clusterCheck),
		Post(clusterview.FormURL(), SignedIn, s.clusterForm),

		Post(route.Previews(), SignedIn, s.previewMake),
		Get("/previews/{preview}", SignedIn, s.previewShow),
		Piece("/previews/{preview}/graph.svg", SignedIn, s.previewGraph),
		Post("/previews/{preview}/apply", SignedIn, s.previewApply),
		Piece("/previews/{preview}/apply", SignedIn, s.previewAgain),
		Post("/previews/{preview}/discard", SignedIn, s.previewDiscard),

		Get(cluster, SignedIn, once(grouped(s.clusterShow)), cluster, "/clusters/{paused}", "/clusters/{failed}", "/clusters/{gone}"),
		Piece(cluster+"/panel", SignedIn, s.shared("", s.clusterPanel)),
		Get(cluster+"/nodes", SignedIn, once(s.clusterNodes)),
		Get(cluster+"/services", SignedIn, once(s.clusterServices)),
		Get(cluster+"/operations", SignedIn, s.clusterOperations),
		Get(cluster+"/config", SignedIn, s.clusterConfig),
		Get(cluster+"/activity", SignedIn, s.clusterActivity),
		Piece(cluster+"/copy", SignedIn, s.clusterCopy),
		Piece(cluster+"/ssh-config", SignedIn, s.clusterSSHConfig),
		Piece(cluster+"/authorize", SignedIn, s.clusterAgain),
		Post(cluster+"/authorize", SignedIn, s.clusterAuthorize),
		Piece(cluster+"/key", SignedIn, s.clusterAgain),
		Post(cluster+"/key", SignedIn, s.clusterKey),
		Get(cluster+"/delete", SignedIn, s.clusterDeleteForm),
		Post(cluster+"/delete", SignedIn, s.clusterDelete),

		Get(cluster+"/nodes/{node}", SignedIn, once(s.nodeShow)),
		Piece(cluster+"/nodes/{node}/reveal", SignedIn, s.nodeHide),
		Piece(cluster+"/nodes/{node}/log", SignedIn, s.nodeLog),
		Post(cluster+"/nodes/{node}/reveal", SignedIn, s.nodeReveal),

		Get(op, SignedIn, once(grouped(s.operationShow)), op, "/clusters/{paused}/operations/{n}", "/clusters/{failed}/operations/{n}", "/clusters/{gone}/operations/{n}"),
		Piece(op+"/graph", SignedIn, s.shared(clusterview.OperationViewID, grouped(s.operationGraph))),
		Piece(op+"/graph.svg", SignedIn, once(s.operationGraphSVG)),
		Get(op+"/stages", SignedIn, s.shared(clusterview.OperationViewID, grouped(s.operationStages))),
		Get(op+"/timeline", SignedIn, s.shared(clusterview.OperationViewID, grouped(s.operationTimeline))),
		Get(op+"/table", SignedIn, s.shared(clusterview.OperationViewID, grouped(s.operationTable))),
		Piece(op+"/log", SignedIn, s.operationLog),
		Piece(op+"/panel", SignedIn, s.shared("", grouped(s.operationPanel))),

		Get(task, SignedIn, once(s.taskShow)),
		Piece(task+"/panel", SignedIn, s.shared("", s.taskPanel)),
		Piece(task+"/log", SignedIn, s.taskLog),
		Piece(task+"/log/raw", SignedIn, s.taskLogRaw),
	}, s.bulkRoutes(), s.searchRoutes(), s.formRoutes(), s.atOnceRoutes())
}

// bulkRoutes change several clusters at once.
func (s *Server) bulkRoutes() []Route {
	sample := func(verb string) string { return route.ClustersBulk(verb) + "?id={failed}&id={cluster}" }
	return []Route{
		Get(route.ClustersBulk("delete"), SignedIn, s.bulkDelete, sample("delete")),
		Post(route.ClustersBulk("delete"), SignedIn, s.bulkDeleteDo, sample("delete")),
		Get(route.ClustersBulk("lease"), SignedIn, s.bulkLease, sample("lease")),
		Post(route.ClustersBulk("lease"), SignedIn, s.bulkLeaseDo, sample("lease")),
		Get(route.ClustersBulk("owner"), Admin, s.bulkOwner, sample("owner")),
		Post(route.ClustersBulk("owner"), Admin, s.bulkOwnerDo, sample("owner")),
	}
}

// searchRoutes find clusters, nodes and pages, and say what became of the reader's own.
func (s *Server) searchRoutes() []Route {
	return []Route{
		Get(route.Search(), SignedIn, s.search),
		Piece(route.Palette(), SignedIn, s.palette),
		Get(route.News(), SignedIn, s.news),
	}
}

// formRoutes are the forms for operations on a cluster that is there. They are sent to
// /previews.
func (s *Server) formRoutes() []Route {
	forms := []struct {
		path string
		kind loom.PreviewKind
	}{
		{"scale", kindScale}, {"reconfigure", loom.PreviewConfigure}, {"upgrade", loom.PreviewUpgrade}, {"resize", loom.PreviewResize},
		{"repair", loom.PreviewRepair}, {"sync", loom.PreviewSync}, {"services/add", loom.PreviewAddServices}, {"services/remove", loom.PreviewRemoveServices},
		{"services/start", loom.PreviewStart}, {"services/stop", loom.PreviewStop}, {"services/restart", loom.PreviewRestart},
		{"services/{service}/start", loom.PreviewStart}, {"services/{service}/stop", loom.PreviewStop}, {"services/{service}/restart", loom.PreviewRestart},
		{"operations/{n}/rollback", loom.PreviewRollback},
	}
	const cluster, retry = "/clusters/{cluster}", "/operations/{n}/retry"
	routes := []Route{
		Post(cluster+"/try", SignedIn, s.changeTry),
		Get(cluster+retry, SignedIn, s.changeShow(loom.PreviewRetry), "/clusters/{failed}"+retry),
	}
	for _, form := range forms {
		routes = append(routes, Get(cluster+"/"+form.path, SignedIn, s.changeShow(form.kind)))
	}
	return routes
}

// atOnceRoutes are what is done without a preview. An address that can only be posted to
// leads to the page with its button.
func (s *Server) atOnceRoutes() []Route {
	const cluster, op, task = "/clusters/{cluster}", "/clusters/{cluster}/operations/{n}", "/clusters/{cluster}/operations/{n}/tasks/{task}"
	const paused, ready = "/clusters/{paused}/operations/{n}", "/clusters/{paused}/operations/{n}/tasks/{ready}"
	return []Route{
		Get(cluster+"/lease", SignedIn, s.clusterLeaseForm),
		Post(cluster+"/lease", SignedIn, s.clusterLease),
		Get(cluster+"/edit", SignedIn, s.clusterEditForm),
		Post(cluster+"/edit", SignedIn, s.clusterEdit),
		Piece(cluster+"/protect", SignedIn, s.clusterAgain),
		Post(cluster+"/protect", SignedIn, s.clusterProtect),

		Piece(op+"/pause", SignedIn, s.operationAgain, paused+"/pause"),
		Post(op+"/pause", SignedIn, s.operationControl("pause"), paused+"/pause"),
		Piece(op+"/resume", SignedIn, s.operationAgain, paused+"/resume"),
		Post(op+"/resume", SignedIn, s.operationControl("resume"), paused+"/resume"),
		Piece(op+"/resubmit", SignedIn, s.operationAgain),
		Post(op+"/resubmit", SignedIn, s.operationResubmit),
		Get(op+"/abort", SignedIn, s.operationAbortForm, paused+"/abort"),
		Post(op+"/abort", SignedIn, s.operationAbort, paused+"/abort"),

		Piece(task+"/retry-now", SignedIn, s.taskAgain),
		Post(task+"/retry-now", SignedIn, s.taskRetrying("retry-now")),
		Piece(task+"/stop-retrying", SignedIn, s.taskAgain),
		Post(task+"/stop-retrying", SignedIn, s.taskRetrying("stop-retrying")),
		Get(task+"/skip", SignedIn, s.taskSkipForm, ready+"/skip"),
		Post(task+"/skip", SignedIn, s.taskSkip, ready+"/skip"),
	}
}
