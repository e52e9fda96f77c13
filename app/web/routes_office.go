package web

import (
	"loom/views/route"
)

// officeRoutes is the table of contents of the pages with which tenants and the
// installation are run.
func (s *Server) officeRoutes(mux router) {
	user := route.AdminUsers() + "/{id}"
	mux.Handle("GET "+route.AdminUsers(), s.admin(s.adminUsers))
	mux.Handle("POST "+route.AdminUsers(), s.admin(s.adminUserCreate))
	mux.Handle("GET "+user, s.admin(s.adminUser))
	mux.Handle("POST "+user, s.admin(s.adminUserSave))
	mux.Handle("GET "+user+"/{verb}", s.admin(s.adminUserAsk))
	mux.Handle("POST "+user+"/{verb}", s.admin(s.adminUserAct))
	mux.Handle("GET "+user+"/tokens/{token}/revoke", s.admin(s.adminUserTokenAsk))
	mux.Handle("POST "+user+"/tokens/{token}/revoke", s.admin(s.adminUserTokenRevoke))
	mux.Handle("GET "+user+"/sessions/{session}/end", s.admin(s.adminUserSessionAsk))
	mux.Handle("POST "+user+"/sessions/{session}/end", s.admin(s.adminUserSessionEnd))

	hook := route.AdminHooks() + "/{id}"
	mux.Handle("GET "+route.AdminHooks(), s.admin(s.adminHooks))
	mux.Handle("POST "+route.AdminHooks(), s.admin(s.adminHookCreate))
	mux.Handle("GET "+route.AdminHookNew(), s.admin(s.adminHookNew))
	mux.Handle("GET "+hook, s.admin(s.adminHook))
	mux.Handle("POST "+hook, s.admin(s.adminHookSave))
	mux.Handle("GET "+hook+"/edit", s.admin(s.adminHookEdit))
	mux.Handle("POST "+hook+"/test", s.admin(s.adminHookTest))
	mux.Handle("GET "+hook+"/delete", s.admin(s.adminHookDeleteAsk))
	mux.Handle("POST "+hook+"/delete", s.admin(s.adminHookDelete))
	mux.Handle("GET "+hook+"/deliveries", s.admin(s.adminDeliveries))
	mux.Handle("GET "+hook+"/deliveries/{delivery}", s.admin(s.adminDelivery))
	mux.Handle("POST "+hook+"/deliveries/{delivery}/replay", s.admin(s.adminDeliveryReplay))

	mux.Handle("GET "+route.AdminAudit(), s.admin(s.adminAudit))
	mux.Handle("GET "+route.AdminQueue(), s.admin(s.adminQueue))
	mux.Handle("GET "+route.AdminSettings(), s.admin(s.adminSettings))
	mux.Handle("POST "+route.AdminSettings(), s.admin(s.adminSettingsSave))
	mux.Handle("GET /admin/providers/{name}/test", s.admin(s.adminProbe))
	mux.Handle("POST /admin/providers/{name}/test", s.admin(s.adminProbeAsk))
	mux.Handle("GET /admin/providers/{name}/orphans", s.admin(s.adminOrphans))
	mux.Handle("POST /admin/providers/{name}/orphans", s.admin(s.adminOrphansLook))
	mux.Handle("GET /admin/providers/{name}/use", s.admin(s.adminProbeUse))

	tenant := route.SystemTenants() + "/{tenant}"
	mux.Handle("GET "+route.System(), s.system(s.systemOverview))
	mux.Handle("GET "+route.SystemAudit(), s.system(s.systemAudit))
	mux.Handle("GET "+route.SystemTenants(), s.system(s.systemTenants))
	mux.Handle("POST "+route.SystemTenants(), s.system(s.systemTenantCreate))
	mux.Handle("GET "+route.SystemTenantNew(), s.system(s.systemTenantNew))
	mux.Handle("GET "+tenant, s.system(s.systemTenant))
	mux.Handle("POST "+tenant, s.system(s.systemTenantSave))
	mux.Handle("GET "+tenant+"/delete", s.system(s.systemTenantDeleteAsk))
	mux.Handle("POST "+tenant+"/delete", s.system(s.systemTenantDelete))
	mux.Handle("GET "+tenant+"/edit", s.system(s.systemTenantEdit))
	mux.Handle("GET "+tenant+"/nodes", s.system(s.systemTenantNodes))
	mux.Handle("GET "+tenant+"/clusters/{cluster}/abandon", s.system(s.systemAbandonAsk))
	mux.Handle("POST "+tenant+"/clusters/{cluster}/abandon", s.system(s.systemAbandon))
	mux.Handle("GET "+route.SystemWorkers(), s.system(s.systemWorkers))
	mux.Handle("GET "+route.SystemWorkers()+"/{id}/{verb}", s.system(s.systemWorkerAsk))
	mux.Handle("POST "+route.SystemWorkers()+"/{id}/{verb}", s.system(s.systemWorkerAct))
	mux.Handle("GET "+route.SystemQueues(), s.system(s.systemQueues))
	mux.Handle("GET "+route.SystemQueues()+"/{queue}/{verb}", s.system(s.systemQueueAsk))
	mux.Handle("POST "+route.SystemQueues()+"/{queue}/{verb}", s.system(s.systemQueueAct))
	mux.Handle("GET "+route.SystemJobs(), s.system(s.systemJobs))
	mux.Handle("GET "+route.SystemJobs()+"/{id}", s.system(s.systemJob))
	mux.Handle("GET "+route.SystemJobs()+"/{id}/{verb}", s.system(s.systemJobAsk))
	mux.Handle("POST "+route.SystemJobs()+"/{id}/{verb}", s.system(s.systemJobAct))
	mux.Handle("GET "+route.SystemPlugins(), s.system(s.systemPlugins))
	mux.Handle("GET "+route.SystemOrphans(), s.system(s.systemOrphans))
	mux.Handle("GET "+route.SystemLeftovers(), s.system(s.systemLeftovers))
	mux.Handle("POST "+route.SystemLeftoversRetry(), s.system(s.systemLeftoversRetry))
	mux.Handle("POST "+route.SystemOrphansLook(), s.system(s.systemOrphansLook))
	mux.Handle("GET "+route.SystemOrphans()+"/{id}/remove", s.system(s.systemOrphanAsk))
	mux.Handle("POST "+route.SystemOrphans()+"/{id}/remove", s.system(s.systemOrphanRemove))
}
