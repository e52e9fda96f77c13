package web

import (
	"net/http"
	"strconv"
	"strings"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

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
	return s.accountConfirm(w, r, actor, page, adminview.UseForm(m))
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
