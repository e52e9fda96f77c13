package web

import (
	"slices"

	"loom/views/route"
)

// systemRoutes are the pages on which the installation is run.
func (s *Server) systemRoutes() []Route {
	return slices.Concat([]Route{
		Get(route.System(), Superadmin, s.systemOverview),
		Get(route.SystemStatus(), Superadmin, s.systemStatus),
		Get(route.SystemClusters(), Superadmin, s.systemClusters),
		Get(route.SystemHooks(), Superadmin, s.systemHooks),
		Post(route.ActEnd(), SignedIn, s.actEnd),
	}, s.tenantRoutes(), s.workRoutes(), s.machineRoutes())
}

func (s *Server) tenantRoutes() []Route {
	tenant := route.SystemTenants() + "/{tenant}"
	routes := []Route{
		Get(route.SystemTenants(), Superadmin, s.systemTenants),
		Post(route.SystemTenants(), Superadmin, s.systemTenantCreate),
		Get(route.SystemTenantNew(), Superadmin, s.systemTenantNew),
		Get(tenant, Superadmin, s.systemTenant),
		Post(tenant, Superadmin, s.systemTenantSave),
		Get(tenant+"/delete", Superadmin, s.systemTenantDeleteAsk),
		Post(tenant+"/delete", Superadmin, s.systemTenantDelete),
		Get(tenant+"/edit", Superadmin, s.systemTenantEdit),
		Get(tenant+"/nodes", Superadmin, s.systemTenantNodes),
		Get(tenant+"/act-as", Superadmin, s.systemActAsk),
		Post(tenant+"/act-as", Superadmin, s.systemAct),
	}
	return append(routes, Sample("{cluster}", "{failed}",
		Piece(tenant+"/clusters/{cluster}/abandon", Superadmin, s.systemAbandonAsk),
		Post(tenant+"/clusters/{cluster}/abandon", Superadmin, s.systemAbandon),
	)...)
}

// workRoutes are the pages of workers, queues and River's jobs.
func (s *Server) workRoutes() []Route {
	worker, queue, job := route.SystemWorkers()+"/{id}/{verb}", route.SystemQueues()+"/{queue}/{verb}", route.SystemJobs()+"/{id}"
	drain, pause := route.SystemWorkers()+"/{worker}/drain", route.SystemQueues()+"/hook/pause"
	routes := []Route{
		Get(route.SystemWorkers(), Superadmin, s.systemWorkers),
		Get(worker, Superadmin, s.systemWorkerAsk, drain),
		Post(worker, Superadmin, s.systemWorkerAct, drain),
		Get(route.SystemQueues(), Superadmin, s.systemQueues),
		Get(queue, Superadmin, s.systemQueueAsk, pause),
		Post(queue, Superadmin, s.systemQueueAct, pause),
		Get(route.SystemJobs(), Superadmin, s.systemJobs),
	}
	return append(routes, Sample("{id}", "{job}",
		Get(job, Superadmin, s.systemJob),
		Get(job+"/{verb}", Superadmin, s.systemJobAsk, job+"/retry"),
		Post(job+"/{verb}", Superadmin, s.systemJobAct, job+"/retry"),
	)...)
}

// machineRoutes are the pages of plugin types and of machines that nobody uses.
func (s *Server) machineRoutes() []Route {
	const kind, name = "providertypes", "mock"
	plugin := route.SystemPlugins() + "/{kind}/{name}"
	version := plugin + "/versions/{version}/remove"
	sample := route.SystemPlugins() + "/" + kind + "/" + name
	routes := []Route{
		Get(route.SystemPlugins(), Superadmin, s.systemPlugins),
		Get(plugin, Superadmin, s.systemPlugin, sample),
		Get(version, Superadmin, s.systemPluginAsk, sample+"/versions/{version}/remove"),
		Post(version, Superadmin, s.systemPluginRemove, sample+"/versions/{version}/remove"),
		Get(route.SystemOrphans(), Superadmin, s.systemOrphans),
		Post(route.SystemOrphansLook(), Superadmin, s.systemOrphansLook),
		Get(route.SystemLeftovers(), Superadmin, s.systemLeftovers),
		Post(route.SystemLeftoversRetry(), Superadmin, s.systemLeftoversRetry),
	}
	return append(routes, Sample("{id}", "{orphan}",
		Piece(route.SystemOrphans()+"/{id}/remove", Superadmin, s.systemOrphanAsk),
		Post(route.SystemOrphans()+"/{id}/remove", Superadmin, s.systemOrphanRemove),
	)...)
}
