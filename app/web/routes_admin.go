package web

import (
	"slices"

	"loom/views/adminview"
	"loom/views/route"
)

// adminRoutes are the pages on which administrators run their tenant; those of the
// catalog stand in its own table.
func (s *Server) adminRoutes() []Route {
	return slices.Concat([]Route{
		Get(route.Admin(), Admin, s.adminOverview),
		Get(route.AdminQueue(), Admin, s.adminQueue),
		Get(route.AdminSettings(), Admin, s.adminSettings),
		Post(route.AdminSettings(), Admin, s.adminSettingsSave),
		Get(route.AdminClusters(), Admin, s.adminClusters),
	}, s.userRoutes(), s.hookRoutes(), s.resourceRoutes(), s.transferRoutes())
}

func (s *Server) userRoutes() []Route {
	user := route.AdminUsers() + "/{id}"
	return append([]Route{
		Get(route.AdminUsers(), Admin, s.adminUsers),
		Post(route.AdminUsers(), Admin, s.adminUserCreate),
	}, Sample("{id}", "user",
		Get(user, Admin, s.adminUser),
		Post(user, Admin, s.adminUserSave),
		Get(user+"/{verb}", Admin, s.adminUserAsk, user+"/disable", user+"/password"),
		Post(user+"/{verb}", Admin, s.adminUserAct, user+"/disable", user+"/password"),
		Get(user+"/tokens/{token}/revoke", Admin, s.adminUserTokenAsk),
		Post(user+"/tokens/{token}/revoke", Admin, s.adminUserTokenRevoke),
		Get(user+"/sessions/{session}/end", Admin, s.adminUserSessionAsk),
		Post(user+"/sessions/{session}/end", Admin, s.adminUserSessionEnd),
	)...)
}

func (s *Server) hookRoutes() []Route {
	hook := route.AdminHooks() + "/{id}"
	return append([]Route{
		Get(route.AdminHooks(), Admin, s.adminHooks),
		Post(route.AdminHooks(), Admin, s.adminHookCreate),
		Get(route.AdminHookNew(), Admin, s.adminHookNew),
	}, Sample("{id}", "{hook}",
		Get(hook, Admin, s.adminHook),
		Post(hook, Admin, s.adminHookSave),
		Get(hook+"/edit", Admin, s.adminHookEdit),
		Post(hook+"/test", Admin, s.adminHookTest),
		Get(hook+"/delete", Admin, s.adminHookDeleteAsk),
		Post(hook+"/delete", Admin, s.adminHookDelete),
		Get(hook+"/deliveries", Admin, s.adminDeliveries),
		Get(hook+"/deliveries/{delivery}", Admin, s.adminDelivery),
		Post(hook+"/deliveries/{delivery}/replay", Admin, s.adminDeliveryReplay),
	)...)
}

func (s *Server) resourceRoutes() []Route {
	sample := func(path, version string) string {
		return adminview.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "hello.sh", Version: version}.Query(path)
	}
	upload, stage, show := adminview.ResourceUpload(), adminview.ResourceStage(), adminview.ResourceShow()
	recall, remove := adminview.ResourceRecall(), adminview.ResourceDelete()
	return []Route{
		Get(route.AdminResources(), Admin, s.adminResources),
		Post(upload, Admin, s.adminResourceUpload, sample(upload, "2")),
		Post(stage, Admin, s.adminResourceStage, sample(stage, "2")),
		Get(recall, Admin, s.adminResourceRecallAsk, sample(recall, "1")),
		Post(recall, Admin, s.adminResourceRecall, sample(recall, "1")),
		Get(remove, Admin, s.adminResourceDeleteAsk, sample(remove, "2")),
		Post(remove, Admin, s.adminResourceDelete, sample(remove, "2")),
		Get(show, Admin, s.adminResource, sample(show, "1")),
		Get(adminview.ResourceSync(), Admin, s.adminResourceSyncAsk),
		Post(adminview.ResourceSync(), Admin, s.adminResourceSync),
	}
}

func (s *Server) transferRoutes() []Route {
	return []Route{
		Get(route.AdminTransfer(), Admin, s.adminTransfer),
		Post(route.AdminTransfer(), Admin, s.adminTransfer),
		Piece(route.AdminTransferExport(), Admin, s.adminTransferExport),
		Post(route.AdminTransferExport(), Admin, s.adminTransferExport),
		Get(route.AdminTransferPreview(), Admin, s.adminTransferPreview),
		Post(route.AdminTransferPreview(), Admin, s.adminTransferGive),
		Get(route.AdminTransferImport(), Admin, s.adminTransferReport),
		Post(route.AdminTransferImport(), Admin, s.adminTransferImport),
		Get(route.AdminArchive(), Admin, s.adminArchive),
		Post(route.AdminArchive(), Admin, s.adminArchiveImport),
		Piece(route.AdminArchiveExport(), Admin, s.adminArchiveExport),
		Post(route.AdminArchiveExport(), Admin, s.adminArchiveExport),
		Post(route.AdminArchiveUpload(), Admin, s.adminArchiveGive),
	}
}
