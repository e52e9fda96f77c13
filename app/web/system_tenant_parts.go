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

// maxPresetWorkers is how many workers the form of a new tenant presets at most.
const maxPresetWorkers = 10

// workerRoom shows who holds the workers, and how many a tenant can have now by name, "" for
// a new one; url gives it again.
func workerRoom(room account.WorkerRoom, tenant, url string) templ.Component {
	free := room.Free(tenant)
	text := "At most " + strconv.Itoa(free) + " at this moment: the running provisioners have " + ui.Count(room.Capacity, "worker", "workers") +
		", and other tenants are promised " + strconv.Itoa(held(room.Holders, tenant)) + "."
	if room.Capacity == 0 {
		text = "No provisioner runs, so only 0 is possible at this moment."
	}
	attrs := ui.Live(url, "system")
	attrs["hx-trigger"], attrs["hx-select"] = "loom:live, every 10s", "#"+workerRoomID
	parts := []templ.Component{officeview.Text(text)}
	if room.Capacity > 0 {
		parts = append([]templ.Component{officeview.Shares(sharesOf(room))}, parts...)
	}
	return officeview.Region(workerRoomID, attrs, parts...)
}

// held counts the workers of all tenants but one.
func held(holders []account.Holder, but string) int {
	n := 0
	for _, h := range holders {
		if h.Name != but {
			n += h.Workers
		}
	}
	return n
}

// sharesOf draws the room: the holders by name, the last ones together, and what is free.
func sharesOf(room account.WorkerRoom) officeview.SharesModel {
	m := officeview.SharesModel{Label: "Held by", Used: held(room.Holders, ""), Max: room.Capacity}
	named := room.Holders[:min(len(room.Holders), maxNamed)]
	for _, h := range named {
		m.Parts = append(m.Parts, h.Name+" "+strconv.Itoa(h.Workers))
	}
	if rest := room.Holders[len(named):]; len(rest) > 0 {
		m.Parts = append(m.Parts, ui.Count(len(rest), "other", "others")+" "+strconv.Itoa(held(rest, "")))
	}
	m.Parts = append(m.Parts, "free "+strconv.Itoa(max(m.Max-m.Used, 0)))
	return m
}

// workersFrom chooses the tenant that gives workers when too few are free; nil when no
// other tenant has any.
func workersFrom(room account.WorkerRoom, tenant, chosen string, errs ui.FormErrors) templ.Component {
	choices := []ui.Option{{Label: "no tenant", Selected: chosen == ""}}
	for _, h := range room.Holders {
		if h.Name != tenant {
			choices = append(choices, ui.Option{Value: h.Name, Label: h.Name + " (has " + strconv.Itoa(h.Workers) + ", " + strconv.Itoa(h.Busy) + " busy)", Selected: chosen == h.Name})
		}
	}
	if len(choices) == 1 && errs.For(fieldWorkersFrom) == "" {
		return nil
	}
	return field(ui.FieldModel{Name: fieldWorkersFrom, Label: "Take missing workers from", Kind: ui.FieldSelect, Optional: true, Options: choices,
		Help: "If fewer are free than you enter, this tenant gives the rest."}, errs)
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

// systemTenantNew is the form of a new tenant, with all parts chosen and the workers that
// are free, up to ten.
func (s *Server) systemTenantNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	room, err := s.Accounts.WorkerRoom(r.Context(), actor)
	if err != nil {
		return err
	}
	preset := strconv.Itoa(min(room.Free(""), maxPresetWorkers))
	return s.tenantNewPage(w, r, actor, http.StatusOK, tenantDraft{workers: preset, parts: account.BootstrapParts(), may: loom.NewPermits()}, ui.FormErrors{})
}
