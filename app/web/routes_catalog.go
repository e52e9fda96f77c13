package web

import (
	"loom/app/loom"
	"loom/views/route"
)

// catalogRoutes are the pages of the catalog: those that everybody reads, and those on
// which administrators edit its entries. The kinds are entered one by one: an unknown one
// is no page.
func (s *Server) catalogRoutes() []Route {
	routes := []Route{
		Get(route.Catalog(), SignedIn, s.catalogGallery),
		Get(route.Catalog()+"/{template}", SignedIn, s.catalogTemplate),
		Get(route.Catalog()+"/services/{service}", SignedIn, s.catalogService),

		Post(route.AdminStarter(), Admin, s.adminStarter),
		Post(route.AdminProbes(), Admin, s.adminDraftProbe),
		Get(route.AdminProbes()+"/{probe}", Admin, s.adminProbeRun),
	}
	for _, kind := range loom.TenantKinds {
		routes = append(routes, s.kindRoutes(kind)...)
	}
	return routes
}

// kindRoutes are those of a kind of the catalog.
func (s *Server) kindRoutes(kind loom.EntityKind) []Route {
	list := route.AdminKind(kind)
	entry := list + "/{name}"
	routes := []Route{
		Get(list, Admin, s.adminList(kind)),
		Post(list, Admin, s.adminCreate(kind)),
		Get(route.AdminNew(kind), Admin, s.adminNew(kind)),
		Post(route.AdminNew(kind), Admin, s.adminStep(kind)),
		Get(entry, Admin, s.adminEntry(kind)),
		Post(entry, Admin, s.adminUpdate(kind)),
		Get(entry+"/edit", Admin, s.adminEdit(kind)),
		Post(entry+"/edit", Admin, s.adminStep(kind)),
		Get(entry+"/json", Admin, s.adminJSON(kind)),
		Get(entry+"/uses", Admin, s.adminUses(kind)),
		Get(entry+"/versions", Admin, s.adminVersions(kind)),
		Get(entry+"/versions/{version}", Admin, s.adminVersion(kind)),
		Get(entry+"/compare", Admin, s.adminCompare(kind)),
		Get(entry+"/activity", Admin, s.adminEntryActivity(kind)),
		Piece(entry+"/export", Admin, s.adminEntryExport(kind)),
		Post(entry+"/deprecate", Admin, s.adminDeprecate(kind)),
		Get(entry+"/delete", Admin, s.adminDeleteAsk(kind)),
		Post(entry+"/delete", Admin, s.adminDelete(kind)),
		Post(route.AdminValidate(kind), Admin, s.adminValidate(kind)),
		Post(route.AdminValidate(kind)+"/name", Admin, s.adminValidateName(kind)),
	}
	switch kind {
	case loom.KindService:
		routes = append(routes, Get(entry+"/use", Admin, s.adminServiceUse))
	case loom.KindProvider:
		routes = append(routes,
			Get(entry+"/test", Admin, s.adminProbe),
			Post(entry+"/test", Admin, s.adminProbeAsk),
			Get(entry+"/orphans", Admin, s.adminOrphans),
			Post(entry+"/orphans", Admin, s.adminOrphansLook),
			Get(entry+"/use", Admin, s.adminProbeUse, entry+"/use?flavor=small"))
	case loom.KindTemplate:
		var tabs []string
		for _, tab := range []string{"general", "compatibility", "defaults", "constraints", "includes", "try"} {
			tabs = append(tabs, entry+"/edit/"+tab)
		}
		routes = append(routes,
			Get(entry+"/try", Admin, s.adminTry),
			Get(entry+"/edit/{tab}", Admin, s.adminEdit(kind), tabs...),
			Post(entry+"/edit/{tab}", Admin, s.adminStep(kind), tabs...))
	}
	return Sample("{name}", "{"+string(kind)+"}", routes...)
}
