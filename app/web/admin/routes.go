package admin

import (
	"slices"

	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
)

// Routes are the pages on which administrators run their tenant; those of the
// catalog stand in its own table.
func (s *Server) Routes() []page.Route {
	return slices.Concat([]page.Route{
		page.Get(route.Admin(), page.Admin, s.adminOverview),
		page.Get(route.AdminQueue(), page.Admin, s.adminQueue),
		page.Get(route.AdminSettings(), page.Admin, s.adminSettings),
		page.Post(route.AdminSettings(), page.Admin, s.adminSettingsSave),
		page.Get(route.AdminClusters(), page.Admin, s.adminClusters),
	}, s.userRoutes(), s.hookRoutes(), s.resourceRoutes(), s.transferRoutes())
}

func (s *Server) userRoutes() []page.Route {
	user := route.AdminUsers() + "/{id}"
	return append([]page.Route{
		page.Get(route.AdminUsers(), page.Admin, s.adminUsers),
		page.Post(route.AdminUsers(), page.Admin, s.adminUserCreate),
	}, page.Sample("{id}", "user",
		page.Get(user, page.Admin, s.adminUser),
		page.Post(user, page.Admin, s.adminUserSave),
		page.Get(user+"/{verb}", page.Admin, s.adminUserAsk, user+"/disable", user+"/password"),
		page.Post(user+"/{verb}", page.Admin, s.adminUserAct, user+"/disable", user+"/password"),
		page.Get(user+"/tokens/{token}/revoke", page.Admin, s.adminUserTokenAsk),
		page.Post(user+"/tokens/{token}/revoke", page.Admin, s.adminUserTokenRevoke),
		page.Get(user+"/sessions/{session}/end", page.Admin, s.adminUserSessionAsk),
		page.Post(user+"/sessions/{session}/end", page.Admin, s.adminUserSessionEnd),
	)...)
}

func (s *Server) hookRoutes() []page.Route {
	hook := route.AdminHooks() + "/{id}"
	return append([]page.Route{
		page.Get(route.AdminHooks(), page.Admin, s.adminHooks),
		page.Post(route.AdminHooks(), page.Admin, s.adminHookCreate),
		page.Get(route.AdminHookNew(), page.Admin, s.adminHookNew),
	}, page.Sample("{id}", "{hook}",
		page.Get(hook, page.Admin, s.adminHook),
		page.Post(hook, page.Admin, s.adminHookSave),
		page.Get(hook+"/edit", page.Admin, s.adminHookEdit),
		page.Post(hook+"/test", page.Admin, s.adminHookTest),
		page.Get(hook+"/delete", page.Admin, s.adminHookDeleteAsk),
		page.Post(hook+"/delete", page.Admin, s.adminHookDelete),
		page.Get(hook+"/deliveries", page.Admin, s.adminDeliveries),
		page.Get(hook+"/deliveries/{delivery}", page.Admin, s.adminDelivery),
		page.Post(hook+"/deliveries/{delivery}/replay", page.Admin, s.adminDeliveryReplay),
	)...)
}

func (s *Server) resourceRoutes() []page.Route {
	sample := func(path, version string) string {
		return adminview.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "hello.sh", Version: version}.Query(path)
	}
	upload, stage, show := adminview.ResourceUpload(), adminview.ResourceStage(), adminview.ResourceShow()
	recall, remove := adminview.ResourceRecall(), adminview.ResourceDelete()
	return []page.Route{
		page.Get(route.AdminResources(), page.Admin, s.adminResources),
		page.Post(upload, page.Admin, s.adminResourceUpload, sample(upload, "2")),
		page.Post(stage, page.Admin, s.adminResourceStage, sample(stage, "2")),
		page.Get(recall, page.Admin, s.adminResourceRecallAsk, sample(recall, "1")),
		page.Post(recall, page.Admin, s.adminResourceRecall, sample(recall, "1")),
		page.Get(remove, page.Admin, s.adminResourceDeleteAsk, sample(remove, "2")),
		page.Post(remove, page.Admin, s.adminResourceDelete, sample(remove, "2")),
		page.Get(show, page.Admin, s.adminResource, sample(show, "1")),
		page.Get(adminview.ResourceSync(), page.Admin, s.adminResourceSyncAsk),
		page.Post(adminview.ResourceSync(), page.Admin, s.adminResourceSync),
	}
}

func (s *Server) transferRoutes() []page.Route {
	return []page.Route{
		page.Get(route.AdminTransfer(), page.Admin, s.adminTransfer),
		page.Post(route.AdminTransfer(), page.Admin, s.adminTransfer),
		page.Piece(route.AdminTransferExport(), page.Admin, s.adminTransferExport),
		page.Post(route.AdminTransferExport(), page.Admin, s.adminTransferExport),
		page.Get(route.AdminTransferPreview(), page.Admin, s.adminTransferPreview),
		page.Post(route.AdminTransferPreview(), page.Admin, s.adminTransferGive),
		page.Get(route.AdminTransferImport(), page.Admin, s.adminTransferReport),
		page.Post(route.AdminTransferImport(), page.Admin, s.adminTransferImport),
		page.Get(route.AdminArchive(), page.Admin, s.adminArchive),
		page.Post(route.AdminArchive(), page.Admin, s.adminArchiveImport),
		page.Piece(route.AdminArchiveExport(), page.Admin, s.adminArchiveExport),
		page.Post(route.AdminArchiveExport(), page.Admin, s.adminArchiveExport),
		page.Post(route.AdminArchiveUpload(), page.Admin, s.adminArchiveGive),
	}
}
