package catalog

import (
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
)

// Routes are the pages of the catalog: those that everybody reads, and those on
// which administrators edit its entries. The kinds are entered one by one: an unknown one
// is no page.
func (s *Server) Routes() []page.Route {
	routes := []page.Route{
		page.Get(route.Catalog(), loom.Read, s.catalogGallery),
		page.Get(route.Catalog()+"/{template}", loom.Read, s.catalogTemplate),
		page.Get(route.Services(), loom.Read, s.catalogServices),
		page.Get(route.Catalog()+"/services/{service}", loom.Read, s.catalogService),

		page.Piece("/icons/{kind}/{name}/{version}", loom.Read, s.entryIcon, "/icons/services/{service}/1"),

		page.Post(route.AdminStarter(), loom.Publish, s.adminStarter),
		page.Post(route.AdminProbes(), loom.Administer, s.adminDraftProbe),
		page.Get(route.AdminProbes()+"/{probe}", loom.Administer, s.adminProbeRun),
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
		page.Get(list, loom.Publish, s.adminList(kind)),
		page.Post(list, loom.Publish, s.adminCreate(kind)),
		page.Get(route.AdminNew(kind), loom.Publish, s.adminNew(kind)),
		page.Post(route.AdminNew(kind), loom.Publish, s.adminStep(kind)),
		page.Get(entry, loom.Publish, s.adminEntry(kind)),
		page.Post(entry, loom.Publish, s.adminUpdate(kind)),
		page.Get(entry+"/edit", loom.Publish, s.adminEdit(kind)),
		page.Post(entry+"/edit", loom.Publish, s.adminStep(kind)),
		page.Get(entry+"/json", loom.Publish, s.adminJSON(kind)),
		page.Get(entry+"/uses", loom.Publish, s.adminUses(kind)),
		page.Get(entry+"/versions", loom.Publish, s.adminVersions(kind)),
		page.Get(entry+"/versions/{version}", loom.Publish, s.adminVersion(kind)),
		page.Post(entry+"/versions/{version}/"+adminview.VersionDeprecation, loom.Publish, s.adminVersionDeprecate(kind)),
		page.Get(entry+"/compare", loom.Publish, s.adminCompare(kind)),
		page.Get(entry+"/activity", loom.Publish, s.adminEntryActivity(kind)),
		page.Piece(entry+"/export", loom.Publish, s.adminEntryExport(kind)),
		page.Post(entry+"/deprecate", loom.Publish, s.adminDeprecate(kind)),
		page.Get(entry+"/delete", loom.Publish, s.adminDeleteAsk(kind)),
		page.Post(entry+"/delete", loom.Publish, s.adminDelete(kind)),
		page.Post(route.AdminValidate(kind), loom.Publish, s.adminValidate(kind)),
		page.Post(route.AdminValidate(kind)+"/name", loom.Publish, s.adminValidateName(kind)),
	}
	routes = append(routes, s.bulkRoutes(kind)...)
	if kind.Releasable() {
		routes = append(routes,
			page.Post(adminview.FleetEffect(kind), loom.Publish, s.adminFleet(kind)),
			page.Post(entry+"/versions/{version}/"+adminview.VersionRelease, loom.Publish, s.adminVersionRelease(kind, true)),
			page.Post(entry+"/versions/{version}/"+adminview.VersionWithdraw, loom.Publish, s.adminVersionRelease(kind, false)))
	}
	switch kind {
	case loom.KindService:
		routes = append(routes, page.Get(entry+"/use", loom.Publish, s.adminServiceUse))
	case loom.KindProvider:
		routes = append(routes,
			page.Get(entry+"/test", loom.Administer, s.adminProbe),
			page.Post(entry+"/test", loom.Administer, s.adminProbeAsk),
			page.Get(entry+"/orphans", loom.Publish, s.adminOrphans),
			page.Post(entry+"/orphans", loom.Publish, s.adminOrphansLook),
			page.Get(entry+"/use", loom.Publish, s.adminProbeUse, entry+"/use?flavor=small"))
	case loom.KindTemplate:
		var tabs []string
		for _, tab := range []string{"general", "compatibility", "defaults", "constraints", "includes", "try"} {
			tabs = append(tabs, entry+"/edit/"+tab)
		}
		routes = append(routes,
			page.Get(entry+"/try", loom.Publish, s.adminTry),
			page.Get(entry+"/edit/{tab}", loom.Publish, s.adminEdit(kind), tabs...),
			page.Post(entry+"/edit/{tab}", loom.Publish, s.adminStep(kind), tabs...))
	}
	return page.Sample("{name}", "{"+string(kind)+"}", routes...)
}
