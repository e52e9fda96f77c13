package system

import (
	"slices"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/route"
)

// Routes are the pages on which the installation is run.
func (s *Server) Routes() []page.Route {
	return slices.Concat([]page.Route{
		page.Get(route.System(), loom.Install, s.systemOverview),
		page.Get(route.SystemStatus(), loom.Install, s.systemStatus),
		page.Get(route.SystemClusters(), loom.Install, s.systemClusters),
		page.Post(route.ActEnd(), loom.Self, s.actEnd),
	}, s.tenantRoutes(), s.workRoutes(), s.machineRoutes())
}

func (s *Server) tenantRoutes() []page.Route {
	tenant := route.SystemTenants() + "/{tenant}"
	routes := []page.Route{
		page.Get(route.SystemTenants(), loom.Install, s.systemTenants),
		page.Post(route.SystemTenants(), loom.Install, s.systemTenantCreate),
		page.Get(route.SystemTenantNew(), loom.Install, s.systemTenantNew),
		page.Get(tenant, loom.Install, s.systemTenant),
		page.Post(tenant, loom.Install, s.systemTenantSave),
		page.Get(tenant+"/delete", loom.Install, s.systemTenantDeleteAsk),
		page.Post(tenant+"/delete", loom.Install, s.systemTenantDelete),
		page.Get(tenant+"/edit", loom.Install, s.systemTenantEdit),
		page.Get(tenant+"/clusters", loom.Install, s.systemTenantClusters),
		page.Get(tenant+"/users", loom.Install, s.systemTenantUsers),
		page.Get(tenant+"/activity", loom.Install, s.systemTenantActivity),
		page.Get(tenant+"/nodes", loom.Install, s.systemTenantNodes),
		page.Get(tenant+"/act-as", loom.Install, s.systemActAsk),
		page.Post(tenant+"/act-as", loom.Install, s.systemAct),
	}
	return append(routes, page.Sample("{cluster}", "{failed}",
		page.Piece(tenant+"/clusters/{cluster}/abandon", loom.Install, s.systemAbandonAsk),
		page.Post(tenant+"/clusters/{cluster}/abandon", loom.Install, s.systemAbandon),
	)...)
}

// workRoutes are the pages of workers, queues and River's jobs.
func (s *Server) workRoutes() []page.Route {
	worker, queue, job := route.SystemWorkers()+"/{id}/{verb}", route.SystemQueues()+"/{queue}/{verb}", route.SystemJobs()+"/{id}"
	drain, pause := route.SystemWorkers()+"/{worker}/drain", route.SystemQueues()+"/hook/pause"
	routes := []page.Route{
		page.Get(route.SystemWorkers(), loom.Install, s.systemWorkers),
		page.Get(worker, loom.Install, s.systemWorkerAsk, drain),
		page.Post(worker, loom.Install, s.systemWorkerAct, drain),
		page.Get(route.SystemQueues(), loom.Install, s.systemQueues),
		page.Get(queue, loom.Install, s.systemQueueAsk, pause),
		page.Post(queue, loom.Install, s.systemQueueAct, pause),
		page.Get(route.SystemJobs(), loom.Install, s.systemJobs),
	}
	return append(routes, page.Sample("{id}", "{job}",
		page.Get(job, loom.Install, s.systemJob),
		page.Get(job+"/{verb}", loom.Install, s.systemJobAsk, job+"/retry"),
		page.Post(job+"/{verb}", loom.Install, s.systemJobAct, job+"/retry"),
	)...)
}

// machineRoutes are the pages of plugin types and of machines that nobody uses.
func (s *Server) machineRoutes() []page.Route {
	const kind, name = "providertypes", "mock"
	plugin := route.SystemPlugins() + "/{kind}/{name}"
	version := plugin + "/versions/{version}/remove"
	sample := route.SystemPlugins() + "/" + kind + "/" + name
	routes := []page.Route{
		page.Get(route.SystemPlugins(), loom.Install, s.systemPlugins),
		page.Get(plugin, loom.Install, s.systemPlugin, sample),
		page.Get(version, loom.Install, s.systemPluginAsk, sample+"/versions/{version}/remove"),
		page.Post(version, loom.Install, s.systemPluginRemove, sample+"/versions/{version}/remove"),
		page.Get(route.SystemOrphans(), loom.Install, s.systemOrphans),
		page.Post(route.SystemOrphansLook(), loom.Install, s.systemOrphansLook),
		page.Piece(route.SystemLeftovers(), loom.Install, s.systemLeftovers),
		page.Post(route.SystemLeftoversRetry(), loom.Install, s.systemLeftoversRetry),
	}
	return append(routes, page.Sample("{id}", "{orphan}",
		page.Piece(route.SystemOrphans()+"/{id}/remove", loom.Install, s.systemOrphanAsk),
		page.Post(route.SystemOrphans()+"/{id}/remove", loom.Install, s.systemOrphanRemove),
	)...)
}
