package system

import (
	"slices"

	"loom/app/web/page"
	"loom/views/route"
)

// Routes are the pages on which the installation is run.
func (s *Server) Routes() []page.Route {
	return slices.Concat([]page.Route{
		page.Get(route.System(), page.Superadmin, s.systemOverview),
		page.Get(route.SystemStatus(), page.Superadmin, s.systemStatus),
		page.Get(route.SystemClusters(), page.Superadmin, s.systemClusters),
		page.Get(route.SystemHooks(), page.Superadmin, s.systemHooks),
		page.Post(route.ActEnd(), page.SignedIn, s.actEnd),
	}, s.tenantRoutes(), s.workRoutes(), s.machineRoutes())
}

func (s *Server) tenantRoutes() []page.Route {
	tenant := route.SystemTenants() + "/{tenant}"
	routes := []page.Route{
		page.Get(route.SystemTenants(), page.Superadmin, s.systemTenants),
		page.Post(route.SystemTenants(), page.Superadmin, s.systemTenantCreate),
		page.Get(route.SystemTenantNew(), page.Superadmin, s.systemTenantNew),
		page.Get(tenant, page.Superadmin, s.systemTenant),
		page.Post(tenant, page.Superadmin, s.systemTenantSave),
		page.Get(tenant+"/delete", page.Superadmin, s.systemTenantDeleteAsk),
		page.Post(tenant+"/delete", page.Superadmin, s.systemTenantDelete),
		page.Get(tenant+"/edit", page.Superadmin, s.systemTenantEdit),
		page.Get(tenant+"/nodes", page.Superadmin, s.systemTenantNodes),
		page.Get(tenant+"/act-as", page.Superadmin, s.systemActAsk),
		page.Post(tenant+"/act-as", page.Superadmin, s.systemAct),
	}
	return append(routes, page.Sample("{cluster}", "{failed}",
		page.Piece(tenant+"/clusters/{cluster}/abandon", page.Superadmin, s.systemAbandonAsk),
		page.Post(tenant+"/clusters/{cluster}/abandon", page.Superadmin, s.systemAbandon),
	)...)
}

// workRoutes are the pages of workers, queues and River's jobs.
func (s *Server) workRoutes() []page.Route {
	worker, queue, job := route.SystemWorkers()+"/{id}/{verb}", route.SystemQueues()+"/{queue}/{verb}", route.SystemJobs()+"/{id}"
	drain, pause := route.SystemWorkers()+"/{worker}/drain", route.SystemQueues()+"/hook/pause"
	routes := []page.Route{
		page.Get(route.SystemWorkers(), page.Superadmin, s.systemWorkers),
		page.Get(worker, page.Superadmin, s.systemWorkerAsk, drain),
		page.Post(worker, page.Superadmin, s.systemWorkerAct, drain),
		page.Get(route.SystemQueues(), page.Superadmin, s.systemQueues),
		page.Get(queue, page.Superadmin, s.systemQueueAsk, pause),
		page.Post(queue, page.Superadmin, s.systemQueueAct, pause),
		page.Get(route.SystemJobs(), page.Superadmin, s.systemJobs),
	}
	return append(routes, page.Sample("{id}", "{job}",
		page.Get(job, page.Superadmin, s.systemJob),
		page.Get(job+"/{verb}", page.Superadmin, s.systemJobAsk, job+"/retry"),
		page.Post(job+"/{verb}", page.Superadmin, s.systemJobAct, job+"/retry"),
	)...)
}

// machineRoutes are the pages of plugin types and of machines that nobody uses.
func (s *Server) machineRoutes() []page.Route {
	const kind, name = "providertypes", "mock"
	plugin := route.SystemPlugins() + "/{kind}/{name}"
	version := plugin + "/versions/{version}/remove"
	sample := route.SystemPlugins() + "/" + kind + "/" + name
	routes := []page.Route{
		page.Get(route.SystemPlugins(), page.Superadmin, s.systemPlugins),
		page.Get(plugin, page.Superadmin, s.systemPlugin, sample),
		page.Get(version, page.Superadmin, s.systemPluginAsk, sample+"/versions/{version}/remove"),
		page.Post(version, page.Superadmin, s.systemPluginRemove, sample+"/versions/{version}/remove"),
		page.Get(route.SystemOrphans(), page.Superadmin, s.systemOrphans),
		page.Post(route.SystemOrphansLook(), page.Superadmin, s.systemOrphansLook),
		page.Piece(route.SystemLeftovers(), page.Superadmin, s.systemLeftovers),
		page.Post(route.SystemLeftoversRetry(), page.Superadmin, s.systemLeftoversRetry),
	}
	return append(routes, page.Sample("{id}", "{orphan}",
		page.Piece(route.SystemOrphans()+"/{id}/remove", page.Superadmin, s.systemOrphanAsk),
		page.Post(route.SystemOrphans()+"/{id}/remove", page.Superadmin, s.systemOrphanRemove),
	)...)
}
