package catalog

import (
	"net/http"
	"strings"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/catalogview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// catalogServices lists the services that are not deprecated.
func (s *Server) catalogServices(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q, deprecated := r.URL.Query(), false
	list, err := s.Catalog.Entries(r.Context(), actor, loom.KindService, catalog.ListInput{
		Page: loom.Page{Limit: s.PageRows(r), After: q.Get("after"), Before: q.Get("before")}, Q: q.Get(catalogview.FieldQ), Deprecated: &deprecated, Released: true,
	})
	if err != nil {
		return err
	}
	m := catalogview.ServicesModel{Q: q.Get(catalogview.FieldQ), Pages: ui.PaginationModel{Label: "Pages of services", Text: ui.Count(list.Total, "service", "services")}}
	at := func(after, before string) string {
		return route.Query(route.Services(), catalogview.FieldQ, m.Q, "after", after, "before", before)
	}
	if list.Next != "" {
		m.Pages.Next = at(list.Next, "")
	}
	if list.Prev != "" {
		m.Pages.Prev = at("", list.Prev)
	}
	for _, item := range list.Items {
		m.Rows = append(m.Rows, *item.Entry.Meta())
	}
	frame := layout.Model{Title: "Services", Section: "Catalog", Area: layout.AreaClusters, Here: route.Services()}
	return s.Render(w, r, actor, http.StatusOK, frame, catalogview.ServicesPage(m))
}

// catalogService shows one service to users, or with ?as=json the stored document.
func (s *Server) catalogService(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	name := route.Segment(r.PathValue("service"))
	entry, _, err := s.Catalog.Released(r.Context(), actor, loom.KindService, name)
	if err != nil {
		return err
	}
	if r.URL.Query().Get("as") == "json" {
		return httpx.WriteJSON(w, entry)
	}
	services, err := s.Services(r.Context(), actor)
	if err != nil {
		return err
	}
	service, address := entry.(*loom.Service), route.CatalogService(name)
	m := catalogview.ServiceModel{
		Base: service.Base, Settings: settingRows([]loom.Service{*service}, nil),
		Ties: page.ServiceTies(services, name, page.HopsOf(r.URL.Query().Get("hops")), address, route.CatalogService),
	}
	if actor.May(loom.Publish, actor.InTenant()) == nil {
		m.EditHref = route.AdminEntry(loom.KindService, name)
	}
	if m.Templates, err = s.templatesOf(r, actor, name); err != nil {
		return err
	}
	title := service.Label
	if title == "" {
		title = name
	}
	frame := layout.Model{Title: title, Section: "Catalog", Area: layout.AreaClusters, Here: route.Services(),
		Crumbs: []ui.Crumb{{Label: "Services", Href: route.Services()}, {Label: name}}}
	return s.Render(w, r, actor, http.StatusOK, frame, catalogview.ServicePage(m))
}

// templatesOf lists the templates that name a service, each once.
func (s *Server) templatesOf(r *http.Request, actor loom.Actor, service string) ([]catalogview.TemplateOf, error) {
	uses, err := s.Catalog.Uses(r.Context(), actor, loom.KindService, service)
	if err != nil {
		return nil, err
	}
	var found []catalogview.TemplateOf
	at := map[string]int{}
	for _, use := range uses {
		if use.Kind != loom.KindTemplate {
			continue
		}
		i, known := at[use.Name]
		if !known {
			i = len(found)
			at[use.Name] = i
			found = append(found, catalogview.TemplateOf{Name: use.Name})
		}
		found[i].Default = found[i].Default || strings.HasPrefix(use.Field, "/defaults/services")
	}
	return found, nil
}
