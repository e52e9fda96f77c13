package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/officeview"
	"loom/views/ui"
)

// workerRoomID is the part of the form of a tenant that says how many workers there are.
const workerRoomID = "worker-room"

// maxNamed is how many names of a part are listed before the rest is counted.
const maxNamed = 12

// workerRoom says how many workers a tenant can have at this moment; url gives it again.
func (s *Server) workerRoom(r *http.Request, actor loom.Actor, tenant loom.TenantID, url string) (templ.Component, error) {
	shortage, err := s.Fleet.Shortage(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	others := 0
	for _, t := range shortage.Tenants {
		if t.Tenant != tenant {
			others += t.Wanted
		}
	}
	text := "At most " + strconv.Itoa(max(shortage.Capacity-others, 0)) + " at this moment: the running provisioners have " + ui.Count(shortage.Capacity, "worker", "workers") +
		", and other tenants are promised " + strconv.Itoa(others) + "."
	if shortage.Capacity == 0 {
		text = "No provisioner runs, so only 0 is possible at this moment."
	}
	attrs := ui.Live(url, "system")
	attrs["hx-trigger"], attrs["hx-select"] = "loom:live, every 10s", "#"+workerRoomID
	return officeview.Region(workerRoomID, attrs, officeview.Text(text)), nil
}

// bootstrapParts lets one choose what of the superadmin tenant is copied: each part with
// what is in it.
func (s *Server) bootstrapParts(r *http.Request, actor loom.Actor, chosen []string, problem string) (templ.Component, error) {
	bundle, err := s.Catalog.Export(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return nil, err
	}
	m := ui.ChoiceModel{Name: fieldParts, Legend: "Copy from the superadmin tenant", Optional: true, Error: problem,
		Help: "The newest version of each. What is chosen comes with its sealed fields and uploaded keys: the new tenant can use the same accounts. What names a part that is left out works only once the tenant has one of that name."}
	for _, kind := range loom.TenantKinds {
		var names []string
		for _, entry := range bundle.Entries[kind] {
			names = append(names, entry.Meta().Name)
		}
		m.Choices = append(m.Choices, partChoice(string(kind), adminview.Plural(kind), names, chosen))
	}
	var files []string
	sealed := 0
	for _, one := range resources {
		if name := one.Type + "/" + one.Name; !slices.Contains(files, name) {
			files = append(files, name)
			if one.Sealed {
				sealed++
			}
		}
	}
	part := partChoice(account.PartResources, "Plugin resources, all versions", files, chosen)
	if sealed > 0 {
		part.Facts = append(part.Facts, ui.Count(sealed, "of them is sealed, such as a key", "of them are sealed, such as keys")+": it goes along")
	}
	m.Choices = append(m.Choices, part)
	return ui.Picker(m), nil
}

func partChoice(value, label string, names, chosen []string) ui.Choice {
	c := ui.Choice{Value: value, Label: label + " (" + strconv.Itoa(len(names)) + ")", Checked: slices.Contains(chosen, value)}
	switch slices.Sort(names); {
	case len(names) == 0:
		c.Description = "There are none."
	case len(names) > maxNamed:
		c.Description = strings.Join(names[:maxNamed], ", ") + " and " + strconv.Itoa(len(names)-maxNamed) + " more"
	default:
		c.Description = strings.Join(names, ", ")
	}
	return c
}

// systemTenantNew is the form of a new tenant, with all parts chosen.
func (s *Server) systemTenantNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.tenantNewPage(w, r, actor, http.StatusOK, tenantDraft{workers: "0", parts: account.BootstrapParts(), may: loom.NewPermits()}, ui.FormErrors{})
}
