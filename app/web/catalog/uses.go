package catalog

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// fieldService names, in the address of the form of a template, a service to put in.
const fieldService = "service"

// adminServiceUse asks which template is to use a service, and leads to the form of that
// with the service put in. Nothing is stored before that is saved.
func (s *Server) adminServiceUse(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	service := entryName(r)
	if _, _, err := s.Catalog.Entry(r.Context(), actor, loom.KindService, service, 0); err != nil {
		return err
	}
	if q := r.URL.Query(); q.Has(fieldUseIn) {
		to := route.AdminNew(loom.KindTemplate)
		if name := q.Get(fieldUseIn); name != "" {
			to = tabURL(loom.KindTemplate, name, "defaults")
		}
		return httpx.SeeOther(w, r, route.Query(to, fieldService, service))
	}
	found, err := s.Catalog.Newest(r.Context(), actor, loom.KindTemplate)
	if err != nil {
		return err
	}
	m := adminview.UseModel{Action: adminview.ServiceUse(service), Button: "Put " + service + " in", Back: route.AdminEntry(loom.KindService, service)}
	m.Types = ui.ChoiceModel{Name: fieldUseIn, Legend: "Template", Filter: "Filter templates",
		Choices: []ui.Choice{{Value: "", Label: "A new template", Description: "with " + service + " in it", Checked: true}}}
	for i, c := range choicesOf(found[loom.KindTemplate]) {
		t, _ := found[loom.KindTemplate][i].(*loom.Template)
		choice := ui.Choice{Value: c.Value, Label: c.Label, Facts: c.Facts, Description: templateHas(t, service)}
		if c.Deprecated {
			choice.Facts = append(choice.Facts, "deprecated")
		}
		m.Types.Choices = append(m.Types.Choices, choice)
	}
	page := entryFrame(loom.KindService, service, "Use")
	page.Title = "Use " + service + " in a template"
	return s.Confirm(w, r, actor, page, adminview.UseForm(m))
}

// templateHas tells what a template itself says of a service now.
func templateHas(t *loom.Template, service string) string {
	switch {
	case t == nil:
		return ""
	case slices.Contains(t.Defaults.Services, service):
		return "new clusters have it already"
	case slices.Contains(t.Compatibility.Services, service):
		return "allows it already"
	}
	return "does not name it yet"
}

// useService puts the service that the address names into a template, for the form of a
// new one or of one that is there: new clusters have it.
func (s *Server) useService(r *http.Request, actor loom.Actor, d *draft) error {
	name := r.URL.Query().Get(fieldService)
	if name == "" {
		return nil
	}
	if _, _, err := s.Catalog.Entry(r.Context(), actor, loom.KindService, name, 0); errors.Is(err, loom.NotFound) {
		return nil // it is gone; the form is of use without
	} else if err != nil {
		return err
	}
	doc, err := form.Parse(d.body)
	if err != nil {
		return nil // the editor says what is wrong with the draft
	}
	added := false
	for _, part := range []string{"compatibility", "defaults"} {
		at := form.At(part, "services")
		if names := doc.Texts(at); !slices.Contains(names, name) {
			doc.Set(at, texted(append(names, name)))
			added = true
		}
	}
	switch {
	case !added:
		d.note = "The template has the service " + name + " already."
		return nil
	case d.name != "":
		d.note = "New clusters have the service " + name + " now; save to keep that."
	}
	d.body, d.changed, d.asJSON = doc.String(), true, false
	return nil
}

// texted is a list of a document.
func texted(names []string) []any {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	return list
}

// usableKinds are the kinds whose rows hold what a provider offers, by the member of
// the row.
var usableKinds = map[string]loom.EntityKind{fieldFlavor: loom.KindHardwareType, fieldImage: loom.KindImageType}

// fieldUseIn names the type that takes what a provider offers; empty for a new one.
const fieldUseIn = "type"

// usedKind gives what a query wants to use: the kind of entry, the member of its row,
// and the provider's id.
func usedKind(r *http.Request) (kind loom.EntityKind, member, id string) {
	for member, kind := range usableKinds {
		if id := strings.TrimSpace(r.URL.Query().Get(member)); id != "" {
			return kind, member, id
		}
	}
	return "", "", ""
}

// adminProbeUse asks which type is to use a size or image of a provider, and leads to
// the form of that with its row filled in. Nothing is stored before that is saved.
func (s *Server) adminProbeUse(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	provider := entryName(r)
	if _, _, err := s.Catalog.Entry(r.Context(), actor, loom.KindProvider, provider, 0); err != nil {
		return err
	}
	kind, member, id := usedKind(r)
	if kind == "" {
		return loom.NewError(loom.NotFound, "The address does not say which size or image is to be used; choose one of those that the provider lists.")
	}
	q := r.URL.Query()
	if q.Has(fieldUseIn) {
		to := route.AdminNew(kind)
		if name := q.Get(fieldUseIn); name != "" {
			to = route.AdminEntryEdit(kind, name)
		}
		return httpx.SeeOther(w, r, route.Query(to, fieldProvider, provider, member, id))
	}
	found, err := s.Catalog.Newest(r.Context(), actor, kind)
	if err != nil {
		return err
	}
	m := adminview.UseModel{Action: adminview.ProbeUse(provider), Member: member, ID: id, Button: "Fill in " + member, Back: route.AdminProbe(provider)}
	m.Types = ui.ChoiceModel{Name: fieldUseIn, Legend: "Where", Filter: "Filter " + kind.Word() + "s",
		Choices: []ui.Choice{{Value: "", Label: "A new " + kind.Word(), Description: "with a row for " + provider, Checked: true}}}
	for i, c := range choicesOf(found[kind]) {
		choice := ui.Choice{Value: c.Value, Label: c.Label, Facts: c.Facts, Description: rowSays(found[kind][i], provider, member, id)}
		if c.Deprecated {
			choice.Facts = append(choice.Facts, "deprecated")
		}
		m.Types.Choices = append(m.Types.Choices, choice)
	}
	page := entryFrame(loom.KindProvider, provider, "Use")
	page.Title = "Use " + id
	return s.Confirm(w, r, actor, page, adminview.UseForm(m))
}

// rowSays tells what a type has for a provider now.
func rowSays(entry loom.Entry, provider, member, id string) string {
	var rows map[string]map[string]string
	switch e := entry.(type) {
	case *loom.HardwareType:
		rows = e.ProviderMap
	case *loom.ImageType:
		rows = e.ProviderMap
	}
	switch row, there := rows[provider]; {
	case !there:
		return "no row for " + provider + " yet"
	case row[member] == id:
		return "uses it already"
	case row[member] == "":
		return "its row for " + provider + " names none"
	default:
		return "replaces " + row[member]
	}
}

// useOffer fills in the row of a type for a provider, as the query says: for the form
// of a new type, or of one that is there.
func (s *Server) useOffer(r *http.Request, actor loom.Actor, d *draft) error {
	if d.kind == loom.KindTemplate {
		return s.useService(r, actor, d)
	}
	provider := r.URL.Query().Get(fieldProvider)
	kind, member, id := usedKind(r)
	if kind != d.kind || provider == "" {
		return nil
	}
	doc, err := form.Parse(d.body)
	if err != nil {
		return nil // the editor says what is wrong with the draft
	}
	offers, err := s.offers(r, actor)
	if err != nil {
		return err
	}
	at := form.At("providermap", provider)
	if d.name == "" {
		doc.Set(form.At("providermap"), map[string]any{})
	}
	before := doc.Text(at.To(member))
	doc.Set(at.To(member), id)
	for _, flavor := range offers.probes[provider].Flavors {
		if kind != loom.KindHardwareType || flavor.ID != id {
			continue
		}
		if flavor.VCPU > 0 {
			doc.Set(at.To("vcpu"), strconv.Itoa(flavor.VCPU))
		}
		if flavor.RAM > 0 {
			doc.Set(at.To("ram"), strconv.FormatFloat(float64(flavor.RAM)/1024, 'f', -1, 64))
		}
	}
	d.body, d.changed, d.asJSON = doc.String(), true, false
	if d.name != "" {
		d.note = "The row for " + provider + " has the " + member + " " + id + " now; save to keep that."
		if before != "" && before != id {
			d.note = "The row for " + provider + " has the " + member + " " + id + " now, in place of " + before + "; save to keep that."
		}
	}
	return nil
}

// usesOf says where an entry is used, with the places as people write them.
func (s *Server) usesOf(r *http.Request, actor loom.Actor, kind loom.EntityKind, name string) ([]adminview.Use, error) {
	found, err := s.Catalog.Uses(r.Context(), actor, kind, name)
	if err != nil {
		return nil, err
	}
	var uses []adminview.Use
	for _, u := range found {
		use := adminview.Use{Kind: u.Kind.Word(), Name: u.Name, Field: page.PlainPath(u.Field)}
		if u.Kind == catalog.KindCluster {
			id, _ := loom.ParseClusterID(u.Name)
			use.Href, use.Field = route.Cluster(id), "made from it"
		} else {
			use.Href = route.AdminEntry(u.Kind, u.Name)
		}
		uses = append(uses, use)
	}
	return uses, nil
}

// usersOf names each user once, at however many fields it names the entry.
func usersOf(uses []adminview.Use) []adminview.Use {
	return slices.CompactFunc(uses, func(a, b adminview.Use) bool { return a.Href == b.Href })
}

// maxAffected is how many users the editor names.
const maxAffected = 8

// addAffected tells in the editor what names the entry. Steps that only change a part
// of the form do without.
func (s *Server) addAffected(r *http.Request, actor loom.Actor, m *adminview.EditorModel) error {
	if m.Name == "" || r.Header.Get("HX-Target") != "" {
		return nil
	}
	uses, err := s.usesOf(r, actor, m.Kind, m.Name)
	if errors.Is(err, loom.NotFound) {
		return nil // it was deleted meanwhile; saving will tell
	}
	uses = usersOf(uses)
	m.Affects = uses[:min(len(uses), maxAffected)]
	if more := len(uses) - maxAffected; more > 0 {
		m.AffectsMore = "and " + strconv.Itoa(more) + " more"
	}
	return err
}
