package catalog

import (
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/route"
)

// Routes are the pages of the catalog: those that everybody reads, and those on
// which administrators edit its entries. The kinds are entered one by one: an unknown one
// is no page.
func (s *Server) Routes() []page.Route {
	routes := []page.Route{
		page.Get(route.Catalog(), page.SignedIn, s.catalogGallery),
		page.Get(route.Catalog()+"/{template}", page.SignedIn, s.catalogTemplate),
		page.Get(route.Catalog()+"/services/{service}", page.SignedIn, s.catalogService),

		page.Post(route.AdminStarter(), page.Admin, s.adminStarter),
		page.Post(route.AdminProbes(), page.Admin, s.adminDraftProbe),
		page.Get(route.AdminProbes()+"/{probe}", page.Admin, s.adminProbeRun),
	}
	for _, kind := range loom.TenantKinds {
		routes = append(routes, s.kindRoutes(kind)...)
	}
	return routes
}

// kindRoutes are those of a kind of the catalog.
func (s *Server) kindRoutes(kind loom.EntityKind) []page.Route {
	list := route.AdminKind(kind)
	entry := list + "/{name}"
	routes := []page.Route{
		page.Get(list, page.Admin, s.adminList(kind)),
		page.Post(list, page.Admin, s.adminCreate(kind)),
		page.Get(route.AdminNew(kind), page.Admin, s.adminNew(kind)),
		page.Post(route.AdminNew(kind), page.Admin, s.adminStep(kind)),
		page.Get(entry, page.Admin, s.adminEntry(kind)),
		page.Post(entry, page.Admin, s.adminUpdate(kind)),
		page.Get(entry+"/edit", page.Admin, s.adminEdit(kind)),
		page.Post(entry+"/edit", page.Admin, s.adminStep(kind)),
		page.Get(entry+"/json", page.Admin, s.adminJSON(kind)),
		page.Get(entry+"/uses", page.Admin, s.adminUses(kind)),
		page.Get(entry+"/versions", page.Admin, s.adminVersions(kind)),
		page.Get(entry+"/versions/{version}", page.Admin, s.adminVersion(kind)),
		page.Get(entry+"/compare", page.Admin, s.adminCompare(kind)),
		page.Get(entry+"/activity", page.Admin, s.adminEntryActivity(kind)),
		page.Piece(entry+"/export", page.Admin, s.adminEntryExport(kind)),
		page.Post(entry+"/deprecate", page.Admin, s.adminDeprecate(kind)),
		page.Get(entry+"/delete", page.Admin, s.adminDeleteAsk(kind)),
		page.Post(entry+"/delete", page.Admin, s.adminDelete(kind)),
		page.Post(route.AdminValidate(kind), page.Admin, s.adminValidate(kind)),
		page.Post(route.AdminValidate(kind)+"/name", page.Admin, s.adminValidateName(kind)),
	}
	switch kind {
	case loom.KindService:
		routes = append(routes, page.Get(entry+"/use", page.Admin, s.adminServiceUse))
	case loom.KindProvider:
		routes = append(routes,
			page.Get(entry+"/test", page.Admin, s.adminProbe),
			page.Post(entry+"/test", page.Admin, s.adminProbeAsk),
			page.Get(entry+"/orphans", page.Admin, s.adminOrphans),
			page.Post(entry+"/orphans", page.Admin, s.adminOrphansLook),
			page.Get(entry+"/use", page.Admin, s.adminProbeUse, entry+"/use?flavor=small"))
	case loom.KindTemplate:
		var tabs []string
		for _, tab := range []string{"general", "compatibility", "defaults", "constraints", "includes", "try"} {
			tabs = append(tabs, entry+"/edit/"+tab)
		}
		routes = append(routes,
			page.Get(entry+"/try", page.Admin, s.adminTry),
			page.Get(entry+"/edit/{tab}", page.Admin, s.adminEdit(kind), tabs...),
			page.Post(entry+"/edit/{tab}", page.Admin, s.adminStep(kind), tabs...))
	}
	return page.Sample("{name}", "{"+string(kind)+"}", routes...)
}
