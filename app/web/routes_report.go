package web

import (
	"loom/views/route"
)

// reportRoutes is the table of contents of the pages that tell what was used and
// what happened.
func (s *Server) reportRoutes(mux router) {
	mux.Handle("GET "+route.Usage(), s.page(s.usage))
	mux.Handle("GET "+route.AdminUsage(), s.admin(s.adminUsage))
	mux.Handle("GET "+route.SystemUsage(), s.system(s.systemUsage))
	mux.Handle("GET "+route.Activity(), s.page(s.activity))
	mux.Handle("GET "+route.SystemActivity(), s.system(s.systemActivity))

	mux.Handle("GET "+route.SystemClusters(), s.system(s.systemClusters))
	mux.Handle("GET "+route.SystemHooks(), s.system(s.systemHooks))
	mux.Handle("GET "+route.AdminClusters(), s.admin(s.adminClusters))
	plugin := route.SystemPlugins() + "/{kind}/{name}"
	mux.Handle("GET "+plugin, s.system(s.systemPlugin))
	mux.Handle("GET "+plugin+"/versions/{version}/remove", s.system(s.systemPluginAsk))
	mux.Handle("POST "+plugin+"/versions/{version}/remove", s.system(s.systemPluginRemove))
	mux.Handle("GET "+route.SystemStatus(), s.system(s.systemStatus))
	mux.Handle("GET "+route.SystemTenants()+"/{tenant}/act-as", s.system(s.systemActAsk))
	mux.Handle("POST "+route.SystemTenants()+"/{tenant}/act-as", s.system(s.systemAct))
	mux.Handle("POST "+route.ActEnd(), s.page(s.actEnd))

	mux.Handle("POST "+route.AdminStarter(), s.admin(s.adminStarter))
	mux.Handle("GET "+route.AdminTransfer(), s.admin(s.adminTransfer))
	mux.Handle("POST "+route.AdminTransfer(), s.admin(s.adminTransfer))
	mux.Handle("GET "+route.AdminTransferExport(), s.admin(s.adminTransferExport))
	mux.Handle("POST "+route.AdminTransferExport(), s.admin(s.adminTransferExport))
	mux.Handle("GET "+route.AdminTransferPreview(), s.admin(s.adminTransferPreview))
	mux.Handle("POST "+route.AdminTransferPreview(), s.admin(s.adminTransferGive))
	mux.Handle("GET "+route.AdminTransferImport(), s.admin(s.adminTransferReport))
	mux.Handle("POST "+route.AdminTransferImport(), s.admin(s.adminTransferImport))
	mux.Handle("GET "+route.AdminArchive(), s.admin(s.adminArchive))
	mux.Handle("POST "+route.AdminArchive(), s.admin(s.adminArchiveImport))
	mux.Handle("GET "+route.AdminArchiveExport(), s.admin(s.adminArchiveExport))
	mux.Handle("POST "+route.AdminArchiveExport(), s.admin(s.adminArchiveExport))
	mux.Handle("POST "+route.AdminArchiveUpload(), s.admin(s.adminArchiveGive))
}
