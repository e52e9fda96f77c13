package catalog

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
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

// galleryRows is how many templates are on a page of the gallery.
const galleryRows = 24

// catalogGallery shows the templates that are not deprecated, as cards.
func (s *Server) catalogGallery(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := r.URL.Query()
	deprecated := false
	list, err := s.Catalog.Entries(r.Context(), actor, loom.KindTemplate, catalog.ListInput{
		Page: loom.Page{Limit: galleryRows, After: q.Get("after"), Before: q.Get("before")}, Q: q.Get(catalogview.FieldQ), Deprecated: &deprecated, Released: true,
	})
	if err != nil {
		return err
	}
	m := catalogview.GalleryModel{Q: q.Get(catalogview.FieldQ), Admin: actor.May(loom.Publish, actor.InTenant()) == nil, Text: ui.Count(list.Total, "template", "templates")}
	if list.Next != "" {
		m.Next = route.Query(route.Catalog(), catalogview.FieldQ, m.Q, "after", list.Next)
	}
	if list.Prev != "" {
		m.Prev = route.Query(route.Catalog(), catalogview.FieldQ, m.Q, "before", list.Prev)
	}
	for _, item := range list.Items {
		card, err := s.templateCard(r.Context(), actor, item.Entry.(*loom.Template))
		if err != nil {
			return err
		}
		m.Cards = append(m.Cards, card)
	}
	page := layout.Model{Title: "Templates", Section: "Catalog", Area: layout.AreaClusters, Here: route.Catalog()}
	return s.Render(w, r, actor, http.StatusOK, page, catalogview.GalleryPage(m))
}

func (s *Server) templateCard(ctx context.Context, actor loom.Actor, stored *loom.Template) (catalogview.TemplateCard, error) {
	t, problem, err := s.resolved(ctx, actor, *stored)
	if err != nil {
		return catalogview.TemplateCard{}, err
	}
	services := strings.Join(t.Defaults.Services, ", ")
	if services == "" {
		services = "none"
	}
	return catalogview.TemplateCard{
		Base: t.Base, Size: page.NodesRange(t.Constraints.Size.Bounds()), Lease: page.LeaseText(t.Administration.Lease),
		Services: services, Problem: problem,
	}, nil
}

// resolved merges a template with what it extends and includes. problem says why
// that cannot be done; the template is then the one that is stored.
func (s *Server) resolved(ctx context.Context, actor loom.Actor, stored loom.Template) (t loom.Template, problem string, err error) {
	t, err = s.Catalog.Resolve(ctx, actor, stored)
	if errors.Is(err, loom.Invalid) || errors.Is(err, loom.NotFound) {
		return stored, loom.AsError(err).Message, nil
	}
	return t, "", err
}

// catalogTemplate shows one template, or with ?as=json the stored document.
func (s *Server) catalogTemplate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	name := route.Segment(r.PathValue("template"))
	entry, info, err := s.Catalog.Released(r.Context(), actor, loom.KindTemplate, name)
	if err != nil {
		return err
	}
	if r.URL.Query().Get("as") == "json" {
		return httpx.WriteJSON(w, entry)
	}
	t, problem, err := s.resolved(r.Context(), actor, *entry.(*loom.Template))
	if err != nil {
		return err
	}
	m := catalogview.TemplateModel{
		Base: t.Base, Facts: append(templateFacts(t), ui.Def{Term: "Version", Text: strconv.Itoa(info.Version)}), Rules: templateRules(t), Problem: problem,
	}
	if actor.May(loom.Publish, actor.InTenant()) == nil {
		m.EditHref = route.AdminEntry(loom.KindTemplate, t.Name)
	}
	if len(t.Links) > 0 {
		var labels []string
		for _, l := range t.Links {
			labels = append(labels, l.Label)
		}
		m.Facts = append(m.Facts, ui.Def{Term: "Links", Text: strings.Join(labels, ", ")})
	}
	services, err := s.Services(r.Context(), actor)
	if err != nil {
		return err
	}
	m.Services = templateServices(services, t)
	m.Settings = templateSettings(services, t)
	m.Ties = page.TemplateTies(services, t, route.CatalogService)
	if problem == "" {
		if m.Example, err = s.exampleLayout(r.Context(), actor, t, r.URL.Query().Get(catalogview.FieldNodes)); err != nil {
			return err
		}
	}
	title := t.Label
	if title == "" {
		title = t.Name
	}
	page := layout.Model{Title: title, Section: "Catalog", Area: layout.AreaClusters, Here: route.Catalog(),
		Crumbs: []ui.Crumb{{Label: "Templates", Href: route.Catalog()}, {Label: t.Name}}}
	return s.Render(w, r, actor, http.StatusOK, page, catalogview.TemplatePage(m))
}

// templateServices lists the default services of a template, then those that may
// be added.
func templateServices(services map[string]loom.Service, t loom.Template) []catalogview.ServiceRow {
	var rows []catalogview.ServiceRow
	seen := map[string]bool{}
	for i, name := range slices.Concat(t.Defaults.Services, t.Compatibility.Services) {
		if seen[name] {
			continue
		}
		seen[name] = true
		row := catalogview.ServiceRow{Name: name, Default: i < len(t.Defaults.Services), Description: "There is no such service now."}
		if service, there := services[name]; there {
			row.Description, row.Needs, row.Href = service.Description, needs(service), route.CatalogService(name)
		}
		rows = append(rows, row)
	}
	return rows
}

// templateSettings lists the settings of the default services.
func templateSettings(services map[string]loom.Service, t loom.Template) []catalogview.SettingRow {
	var chosen []loom.Service
	for _, name := range t.Defaults.Services {
		if service, there := services[name]; there {
			chosen = append(chosen, service)
		}
	}
	return settingRows(chosen, &t)
}

// settingRows are the settings of services: a template's own config goes before their defaults.
func settingRows(services []loom.Service, t *loom.Template) []catalogview.SettingRow {
	byName := map[string]loom.Service{}
	for _, service := range services {
		byName[service.Name] = service
	}
	var rows []catalogview.SettingRow
	for _, p := range loom.ParametersOf(byName) {
		value, wants := p.Default, page.Capital(p.Wants())
		if t != nil {
			if own, there := loom.ConfigValue(t.Defaults.Config, p.Key); there {
				value = own
			}
			if _, fixed := t.Fixed(p.Key); fixed {
				wants = "Set by the template"
			}
		}
		row := catalogview.SettingRow{Name: p.Name(), Help: p.Help, Wants: wants, Default: loom.FieldText(value)}
		switch {
		case strings.Contains(row.Default, "%"): // a macro
			row.Default = "filled in"
		case p.Secret && row.Default != "":
			row.Default = "set"
		case row.Default == "" && p.Required:
			row.Default = "required"
		}
		rows = append(rows, row)
	}
	return rows
}

// entryJSON is the JSON pane of an entry, with the calls that read and write it.
func entryJSON(kind loom.EntityKind, entry loom.Entry, address string) ui.JSONModel {
	name, path := entry.Meta().Name, "/v2/"+string(kind)
	auth := `curl -H "Authorization: Bearer $LOOM_TOKEN" `
	return ui.JSONModel{ID: "json", Text: page.PrettyJSON(entry), Raw: route.JSON(address), Calls: []ui.JSONCall{
		{Label: "read it", Curl: auth + `"$LOOM_URL` + path + "/" + name + `"`},
		{Label: "read version " + strconv.Itoa(entry.Meta().Version), Curl: auth + `"$LOOM_URL` + path + "/" + name + "/" + strconv.Itoa(entry.Meta().Version) + `"`},
		{Label: "list all", Curl: auth + `"$LOOM_URL` + path + `"`},
		{Label: "store a new version from a file", Curl: auth + `-X PUT -H "Content-Type: application/json" --data @` + name + `.json "$LOOM_URL` + path + "/" + name + `"`},
	}}
}
