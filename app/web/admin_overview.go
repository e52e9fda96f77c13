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
		railItem("Plugin resources", "file", route.AdminResources(), here), railItem("Users", "user", route.AdminUsers(), here))
	return m
}

func railItem(label, icon, href, here string) layout.RailItem {
	return layout.RailItem{Label: label, Icon: icon, Href: href, Current: href == here}
}

// adminOverview counts the catalog and lists what in it would not work.
func (s *Server) adminOverview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	k, err := s.knowledge(r.Context(), actor)
	if err != nil {
		return err
	}
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return err
	}
	m := adminview.OverviewModel{Empty: true}
	for _, kind := range []loom.EntityKind{loom.KindTemplate, loom.KindService, loom.KindProvider, loom.KindHardwareType, loom.KindImageType, loom.KindPartialTemplate} {
		n, bad := len(k.entries[kind]), 0
		for _, entry := range k.entries[kind] {
			lacks := k.lacks(entry)
			if len(lacks) > 0 {
				bad++
			}
			m.Findings = append(m.Findings, findingsOf(kind, entry, lacks)...)
		}
		m.Empty = m.Empty && n == 0
		tile := ui.TileModel{Number: strconv.Itoa(n), Label: adminview.Plural(kind), Href: route.AdminKind(kind)}
		if bad > 0 {
			tile.Note, tile.Tone = ui.Count(bad, "needs attention", "need attention"), ui.ToneWarn
		}
		m.Tiles = append(m.Tiles, tile)
	}
	m.Findings = m.Findings[:min(len(m.Findings), maxFindings)]
	tile := ui.TileModel{Number: strconv.Itoa(len(resources)), Label: "Versions of plugin resources", Href: route.AdminResources()}
	if staged, recalled := waiting(resources); staged+recalled > 0 {
		tile.Note, tile.Tone = ui.Count(staged+recalled, "change waits", "changes wait")+" for a sync", ui.ToneWarn
	}
	m.Tiles = append(m.Tiles, tile)
	return s.render(w, r, actor, http.StatusOK, adminFrame("Overview", route.Admin()), adminview.OverviewPage(m))
}

func findingsOf(kind loom.EntityKind, entry loom.Entry, lacks []string) []adminview.Finding {
	var found []adminview.Finding
	name := entry.Meta().Name
	for _, text := range lacks {
		found = append(found, adminview.Finding{
			Kind: kind.Word(), Name: name, Text: text, Href: route.AdminEntry(kind, name), FixHref: route.AdminEntryEdit(kind, name),
		})
	}
	return found
}
