package admin

import (
	"slices"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
)

// Routes are the pages on which administrators run their tenant; those of the
// catalog stand in its own table.
func (s *Server) Routes() []page.Route {
	return slices.Concat([]page.Route{
		page.Get(route.Admin(), loom.Administer, s.adminOverview),
		page.Get(route.AdminFix(), loom.Publish, s.adminFixAsk, route.AdminFix()+"?code=dangling&value=ghost&kind=services&fix=remove"),
		page.Post(route.AdminFix(), loom.Publish, s.adminFix),
		page.Get(route.AdminQueue(), loom.Administer, s.adminQueue),
		page.Get(route.AdminSettings(), loom.Administer, s.adminSettings),
		page.Post(route.AdminSettings(), loom.Administer, s.adminSettingsSave),
		page.Get(route.AdminClusters(), loom.Administer, s.adminClusters),
	}, s.userRoutes(), s.groupRoutes(), s.identityRoutes(), s.rolloutRoutes(), s.hookRoutes(), s.fileRoutes(), s.transferRoutes())
}

func (s *Server) userRoutes() []page.Route {
	user := route.AdminUsers() + "/{id}"
	return append([]page.Route{
		page.Get(route.AdminUsers(), loom.Administer, s.adminUsers),
		page.Post(route.AdminUsers(), loom.Administer, s.adminUserCreate),
		page.Get(route.AdminUserNew(), loom.Administer, s.adminUserNew),
		page.Get(route.AdminUsersDisable(), loom.Administer, s.usersDisableAsk, route.AdminUsersDisable()+"?id=user"),
		page.Post(route.AdminUsersDisable(), loom.Administer, s.usersDisable),
	}, page.Sample("{id}", "user",
		page.Get(user, loom.Administer, s.adminUser),
		page.Post(user, loom.Administer, s.adminUserSave),
		page.Get(user+"/{verb}", loom.Administer, s.adminUserAsk, user+"/disable", user+"/password"),
		page.Post(user+"/{verb}", loom.Administer, s.adminUserAct, user+"/disable", user+"/password"),
		page.Get(user+"/tokens/{token}/revoke", loom.Administer, s.adminUserTokenAsk),
		page.Post(user+"/tokens/{token}/revoke", loom.Administer, s.adminUserTokenRevoke),
		page.Get(user+"/sessions/{session}/end", loom.Administer, s.adminUserSessionAsk),
		page.Post(user+"/sessions/{session}/end", loom.Administer, s.adminUserSessionEnd),
	)...)
}

func (s *Server) groupRoutes() []page.Route {
	group := route.AdminGroups() + "/{id}"
	return append([]page.Route{
		page.Get(route.AdminGroups(), loom.Administer, s.adminGroups),
		page.Post(route.AdminGroups(), loom.Administer, s.adminGroupCreate),
		page.Get(route.AdminGroupNew(), loom.Administer, s.adminGroupNew),
	}, page.Sample("{id}", "{group}",
		page.Get(group, loom.Administer, s.adminGroup),
		page.Post(group, loom.Administer, s.adminGroupSave),
		page.Post(group+"/members", loom.Administer, s.adminMemberAdd),
		page.Post(group+"/members/remove", loom.Administer, s.adminMemberRemove),
		page.Post(group+"/roles", loom.Administer, s.adminGroupBind),
		page.Post(group+"/roles/remove", loom.Administer, s.adminGroupUnbind),
		page.Get(group+"/delete", loom.Administer, s.adminGroupDeleteAsk),
		page.Post(group+"/delete", loom.Administer, s.adminGroupDelete),
	)...)
}

func (s *Server) identityRoutes() []page.Route {
	one := route.AdminIdentity() + "/{id}"
	return append([]page.Route{
		page.Get(route.AdminIdentity(), loom.Administer, s.adminIdentity),
		page.Post(route.AdminIdentity(), loom.Administer, s.adminIdentityCreate),
		page.Get(route.AdminIdentityNew(), loom.Administer, s.adminIdentityNew),
	}, page.Sample("{id}", "{identity provider}",
		page.Get(one, loom.Administer, s.adminIdentityProvider),
		page.Post(one, loom.Administer, s.adminIdentitySave),
		page.Post(one+"/check", loom.Administer, s.adminIdentityCheck),
		page.Get(one+"/rules", loom.Administer, s.adminRuleNew),
		page.Post(one+"/rules", loom.Administer, s.adminRuleAdd),
		page.Post(one+"/rules/preview", loom.Administer, s.adminRulesPreview),
		page.Post(one+"/rules/apply", loom.Administer, s.adminRulesApply),
		page.Get(one+"/delete", loom.Administer, s.adminIdentityDeleteAsk),
		page.Post(one+"/delete", loom.Administer, s.adminIdentityDelete),
	)...)
}

func (s *Server) rolloutRoutes() []page.Route {
	rollout := route.AdminRollouts() + "/{id}"
	return append([]page.Route{
		page.Get(route.AdminRollouts(), loom.Administer, s.adminRollouts),
		page.Post(route.AdminRollouts(), loom.Administer, s.adminRolloutMake),
		page.Get(route.AdminRolloutNew(), loom.Administer, s.adminRolloutNew, route.AdminRolloutNew(), route.AdminRolloutNew("kind", "rollback", "rollout", "1")),
	}, page.Sample("{id}", "{rollout}",
		page.Get(rollout, loom.Administer, s.adminRollout),
		page.Get(rollout+"/clusters", loom.Administer, s.adminRolloutClusters),
		page.Get(rollout+"/{verb}", loom.Administer, s.adminRolloutAsk, rollout+"/abort"),
		page.Post(rollout+"/{verb}", loom.Administer, s.adminRolloutAct, rollout+"/stop"),
	)...)
}

func (s *Server) hookRoutes() []page.Route {
	hook := route.AdminHooks() + "/{id}"
	return append([]page.Route{
		page.Get(route.AdminHooks(), loom.Administer, s.adminHooks),
		page.Post(route.AdminHooks(), loom.Administer, s.adminHookCreate),
		page.Get(route.AdminHookNew(), loom.Administer, s.adminHookNew),
	}, page.Sample("{id}", "{hook}",
		page.Get(hook, loom.Administer, s.adminHook),
		page.Post(hook, loom.Administer, s.adminHookSave),
		page.Get(hook+"/edit", loom.Administer, s.adminHookEdit),
		page.Post(hook+"/test", loom.Administer, s.adminHookTest),
		page.Get(hook+"/delete", loom.Administer, s.adminHookDeleteAsk),
		page.Post(hook+"/delete", loom.Administer, s.adminHookDelete),
		page.Get(hook+"/deliveries", loom.Administer, s.adminDeliveries),
		page.Get(hook+"/deliveries/{delivery}", loom.Administer, s.adminDelivery),
		page.Post(hook+"/deliveries/{delivery}/replay", loom.Administer, s.adminDeliveryReplay),
	)...)
}

func (s *Server) fileRoutes() []page.Route {
	script := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: page.ShellType, Type: page.ScriptsType, Name: "hello.sh"}
	at := func(act string) string { return route.AdminResources() + "/" + act }
	in := func(act string, version int) string { return adminview.FileAct(act, script, version) }
	return []page.Route{
		page.Get(route.AdminResources(), loom.Publish, s.adminFiles),
		page.Get(adminview.FileNew(loom.ResourceRef{}), loom.Publish, s.adminFileNew),
		page.Post(at("save"), loom.Publish, s.adminFileSave),
		page.Post(adminview.FileCheck(), loom.Publish, s.adminFileCheck),
		page.Get(at(adminview.FileShow), loom.Publish, s.adminFile, in(adminview.FileShow, 1), in(adminview.FileShow, 0)),
		page.Post(at(adminview.FileStage), loom.Publish, s.adminFileStage, in(adminview.FileStage, 2)),
		page.Post(at(adminview.FileRelease), loom.Publish, s.adminFileRelease, in(adminview.FileRelease, 2)),
		page.Get(at(adminview.FileWithdraw), loom.Publish, s.adminFileWithdrawAsk, in(adminview.FileWithdraw, 1)),
		page.Post(at(adminview.FileWithdraw), loom.Publish, s.adminFileWithdraw, in(adminview.FileWithdraw, 1)),
		page.Get(at(adminview.FileDelete), loom.Publish, s.adminFileDeleteAsk, in(adminview.FileDelete, 2)),
		page.Post(at(adminview.FileDelete), loom.Publish, s.adminFileDelete, in(adminview.FileDelete, 2)),
		page.Get(adminview.FilesRelease(), loom.Publish, s.adminFilesReleaseAsk),
		page.Post(adminview.FilesRelease(), loom.Publish, s.adminFilesRelease),
		page.Post(adminview.FilesFleetEffect(), loom.Publish, s.adminFilesFleet),
	}
}

func (s *Server) transferRoutes() []page.Route {
	return []page.Route{
		page.Get(route.AdminTransfer(), loom.Publish, s.adminTransfer),
		page.Post(route.AdminTransfer(), loom.Publish, s.adminTransfer),
		page.Piece(route.AdminTransferExport(), loom.Publish, s.adminTransferExport),
		page.Post(route.AdminTransferExport(), loom.Publish, s.adminTransferExport),
		page.Get(route.AdminTransferPreview(), loom.Publish, s.adminTransferPreview),
		page.Post(route.AdminTransferPreview(), loom.Publish, s.adminTransferGive),
		page.Post(route.AdminTransferFleet(), loom.Publish, s.adminTransferFleet),
		page.Get(route.AdminTransferImport(), loom.Publish, s.adminTransferReport),
		page.Post(route.AdminTransferImport(), loom.Publish, s.adminTransferImport),
		page.Get(route.AdminArchive(), loom.Publish, s.adminArchive),
		page.Post(route.AdminArchive(), loom.Publish, s.adminArchiveImport),
		page.Piece(route.AdminArchiveExport(), loom.Publish, s.adminArchiveExport),
		page.Post(route.AdminArchiveExport(), loom.Publish, s.adminArchiveExport),
		page.Post(route.AdminArchiveUpload(), loom.Publish, s.adminArchiveGive),
	}
}
