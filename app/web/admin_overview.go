package web

import (
	"net/http"
	"strconv"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// maxFindings bounds the list of the overview.
const maxFindings = 100

// adminFrame is the frame of the admin pages, with its rail.
func adminFrame(title, here string, crumbs ...ui.Crumb) layout.Model {
	m := layout.Model{Title: title, Section: "Admin", Area: layout.AreaAdmin, Here: here, Crumbs: crumbs}
	for _, item := range layout.Rail(layout.AreaAdmin, here) {
		m.Rail = append(m.Rail, item)
		if item.Href == route.AdminKind(loom.KindTemplate) {
			m.Rail = append(m.Rail, railItem("Partial templates", adminview.KindIcon(loom.KindPartialTemplate), route.AdminKind(loom.KindPartialTemplate), here))
		}
	}
	m.Rail = append(m.Rail, layout.RailItem{Heading: "Tenant"},
		railItem("Import and export", "layers", route.AdminTransfer(), here), railItem("Usage", "activity", route.AdminUsage(), here),
		railItem("Plugin resources", "file", route.AdminResources(), here), railItem("Users", "user", route.AdminUsers(), here),
		railItem("Hooks", "external", route.AdminHooks(), here), railItem("Queue", "clock", route.AdminQueue(), here),
		railItem("Audit", "list", route.AdminAudit(), here), railItem("Settings", "settings", route.AdminSettings(), here))
	return m
}

func railItem(label, icon, href, here string) layout.RailItem {
	return layout.RailItem{Label: label, Icon: icon, Href: href, Current: href == here}
}

// adminOverview counts the catalog and lists what in it would not work.
func (s *Server) adminOverview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	bundle, err := s.Catalog.Export(r.Context(), actor)
	if err != nil {
		return err
	}
	found, err := s.Catalog.Check(r.Context(), actor, catalog.CheckInput{})
	if err != nil {
		return err
	}
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return err
	}
	m := adminview.OverviewModel{Empty: true}
	for _, kind := range []loom.EntityKind{loom.KindTemplate, loom.KindService, loom.KindProvider, loom.KindHardwareType, loom.KindImageType, loom.KindPartialTemplate} {
		n, bad, said := len(bundle.Entries[kind]), map[string]bool{}, map[string]int{}
		for _, f := range found {
			if f.Kind != kind {
				continue
			}
			bad[f.Name] = true
			if at, again := said[f.Name+"\x00"+f.Message]; again { // the same in another field
				m.Findings[at].Others++
				continue
			}
			said[f.Name+"\x00"+f.Message] = len(m.Findings)
			m.Findings = append(m.Findings, adminview.Finding{
				Kind: kind.Word(), Name: f.Name, Text: sentence(f), Href: route.AdminEntry(kind, f.Name), FixHref: route.AdminEntryEdit(kind, f.Name),
			})
		}
		m.Empty = m.Empty && n == 0
		tile := ui.TileModel{Number: strconv.Itoa(n), Label: adminview.Plural(kind), Href: route.AdminKind(kind)}
		if len(bad) > 0 {
			tile.Note, tile.Tone = ui.Count(len(bad), "needs attention", "need attention"), ui.ToneWarn
		}
		m.Tiles = append(m.Tiles, tile)
	}
	m.Findings = m.Findings[:min(len(m.Findings), maxFindings)]
	staged, recalled := waiting(resources)
	tile := ui.TileModel{Number: strconv.Itoa(staged + recalled), Label: "Resources waiting for sync", Note: "of " + ui.Count(len(resources), "version", "versions"), Href: route.AdminResources()}
	if staged+recalled > 0 {
		tile.Tone = ui.ToneWarn
	}
	m.Tiles = append(m.Tiles, tile)
	m.Starter = s.Starter != nil
	if m.Now, m.More, err = s.adminState(r, actor); err != nil {
		return err
	}
	return s.render(w, r, actor, http.StatusOK, adminFrame("Overview", route.Admin()), adminview.OverviewPage(m))
}
