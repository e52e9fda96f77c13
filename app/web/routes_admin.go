package web

import (
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
)

// adminRoutes is the table of contents of the admin area. The kinds are
// registered one by one: an unknown one is no page.
func (s *Server) adminRoutes(mux router) {
	mux.Handle("GET "+route.Admin(), s.admin(s.adminOverview))
	for _, kind := range loom.TenantKinds {
		list := route.AdminKind(kind)
		mux.Handle("GET "+list, s.admin(s.adminList(kind)))
		mux.Handle("POST "+list, s.admin(s.adminCreate(kind)))
		mux.Handle("GET "+route.AdminNew(kind), s.admin(s.adminNew(kind)))
		mux.Handle("POST "+route.AdminNew(kind), s.admin(s.adminStep(kind)))
		mux.Handle("GET "+list+"/{name}", s.admin(s.adminEntry(kind)))
		mux.Handle("POST "+list+"/{name}", s.admin(s.adminUpdate(kind)))
		mux.Handle("GET "+list+"/{name}/edit", s.admin(s.adminEdit(kind)))
		mux.Handle("POST "+list+"/{name}/edit", s.admin(s.adminStep(kind)))
		mux.Handle("GET "+list+"/{name}/json", s.admin(s.adminJSON(kind)))
		mux.Handle("GET "+list+"/{name}/uses", s.admin(s.adminUses(kind)))
		mux.Handle("GET "+list+"/{name}/versions", s.admin(s.adminVersions(kind)))
		mux.Handle("GET "+list+"/{name}/versions/{version}", s.admin(s.adminVersion(kind)))
		mux.Handle("GET "+list+"/{name}/compare", s.admin(s.adminCompare(kind)))
		mux.Handle("GET "+list+"/{name}/activity", s.admin(s.adminEntryActivity(kind)))
		mux.Handle("GET "+list+"/{name}/export", s.admin(s.adminEntryExport(kind)))
		mux.Handle("POST "+list+"/{name}/deprecate", s.admin(s.adminDeprecate(kind)))
		mux.Handle("GET "+list+"/{name}/delete", s.admin(s.adminDeleteAsk(kind)))
		mux.Handle("POST "+list+"/{name}/delete", s.admin(s.adminDelete(kind)))
		mux.Handle("POST "+route.AdminValidate(kind), s.admin(s.adminValidate(kind)))
		mux.Handle("POST "+route.AdminValidate(kind)+"/name", s.admin(s.adminValidateName(kind)))
	}

	mux.Handle("GET "+route.AdminKind(loom.KindService)+"/{name}/use", s.admin(s.adminServiceUse))

	mux.Handle("POST "+route.AdminProbes(), s.admin(s.adminDraftProbe))
	mux.Handle("GET "+route.AdminProbes()+"/{probe}", s.admin(s.adminProbeRun))

	templates := route.AdminKind(loom.KindTemplate)
	mux.Handle("GET "+templates+"/{name}/try", s.admin(s.adminTry))
	mux.Handle("GET "+templates+"/{name}/edit/{tab}", s.admin(s.adminEdit(loom.KindTemplate)))
	mux.Handle("POST "+templates+"/{name}/edit/{tab}", s.admin(s.adminStep(loom.KindTemplate)))

	mux.Handle("GET "+route.AdminResources(), s.admin(s.adminResources))
	mux.Handle("POST "+adminview.ResourceUpload(), s.admin(s.adminResourceUpload))
	mux.Handle("POST "+adminview.ResourceStage(), s.admin(s.adminResourceStage))
	mux.Handle("GET "+adminview.ResourceRecall(), s.admin(s.adminResourceRecallAsk))
	mux.Handle("POST "+adminview.ResourceRecall(), s.admin(s.adminResourceRecall))
	mux.Handle("GET "+adminview.ResourceDelete(), s.admin(s.adminResourceDeleteAsk))
	mux.Handle("POST "+adminview.ResourceDelete(), s.admin(s.adminResourceDelete))
	mux.Handle("GET "+adminview.ResourceShow(), s.admin(s.adminResource))
	mux.Handle("GET "+adminview.ResourceSync(), s.admin(s.adminResourceSyncAsk))
	mux.Handle("POST "+adminview.ResourceSync(), s.admin(s.adminResourceSync))
}
