package catalog

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// addPictures adds to the page of a service what it has to do with others and when
// its actions run, and to that of a template the picture of its services.
func (s *Server) addPictures(r *http.Request, actor loom.Actor, entry loom.Entry, m *adminview.EntryModel) error {
	href := func(service string) string { return route.AdminEntry(loom.KindService, service) }
	switch e := entry.(type) {
	case *loom.Service:
		found, err := s.Catalog.Newest(r.Context(), actor, loom.KindService, loom.KindTemplate, loom.KindPartialTemplate)
		if err != nil {
			return err
		}
		m.Unused = !namesService(found, e.Name)
		picture := page.ServiceTies(page.ServicesIn(found), e.Name, page.HopsOf(r.URL.Query().Get("hops")), href(e.Name), href)
		m.Ties = &picture
		m.Order, err = s.orderModel(r, actor, found[loom.KindTemplate], *e)
		return err
	case *loom.Template:
		t, _, err := s.resolved(r.Context(), actor, *e)
		if err != nil {
			return err
		}
		services, err := s.Services(r.Context(), actor)
		m.Ties = page.TemplateTies(services, t, href)
		return err
	}
	return nil
}

// namesService reports whether a template or a part of one has a service or allows it.
func namesService(found map[loom.EntityKind][]loom.Entry, service string) bool {
	for _, kind := range []loom.EntityKind{loom.KindTemplate, loom.KindPartialTemplate} {
		for _, entry := range found[kind] {
			var defaults, allowed []string
			switch e := entry.(type) {
			case *loom.Template:
				defaults, allowed = e.Defaults.Services, e.Compatibility.Services
			case *loom.PartialTemplate:
				defaults, allowed = e.Defaults.Services, e.Compatibility.Services
			}
			if slices.Contains(defaults, service) || slices.Contains(allowed, service) {
				return true
			}
		}
	}
	return false
}

// orderModel is the choice of a template, and the answer for the one the query names.
func (s *Server) orderModel(r *http.Request, actor loom.Actor, templates []loom.Entry, service loom.Service) (*adminview.OrderModel, error) {
	chosen := r.URL.Query().Get(adminview.FieldTemplate)
	m := &adminview.OrderModel{Service: service.Name, Action: route.AdminEntry(loom.KindService, service.Name), Templates: templateOptions(templates, service.Name, chosen)}
	if chosen == "" {
		return m, nil
	}
	var err error
	m.Result, err = s.orderResult(r.Context(), actor, chosen, service)
	return m, err
}

// templateOptions are the templates to choose from: those that name the service
// first.
func templateOptions(templates []loom.Entry, service, chosen string) []ui.Option {
	var with, without []ui.Option
	for _, e := range templates {
		t, ok := e.(*loom.Template)
		if !ok || t.Deprecated && t.Name != chosen {
			continue
		}
		o := ui.Option{Value: t.Name, Label: t.Name, Selected: t.Name == chosen}
		if slices.Contains(t.Defaults.Services, service) || slices.Contains(t.Compatibility.Services, service) {
			with = append(with, o)
			continue
		}
		o.Label += " (does not name it)"
		without = append(without, o)
	}
	return append(with, without...)
}

// orderResult asks for the plan of a template with a service. What is wrong with
// either is an answer.
func (s *Server) orderResult(ctx context.Context, actor loom.Actor, template string, service loom.Service) (adminview.OrderResult, error) {
	r := adminview.OrderResult{Template: template}
	order, err := s.Clusters.Order(ctx, actor, template, service)
	if err != nil {
		e := loom.AsError(err)
		if e.Kind != loom.Invalid && e.Kind != loom.NotFound && e.Kind != loom.Unavailable {
			return r, err
		}
		r.Problem = e.Message
		return r, nil
	}
	if len(order.Missing) > 0 {
		r.Problem, r.Lost = "There is no plan for a cluster of "+template+" as long as something of it is missing:", lostModels(order.Missing, template, service.Name)
		return r, nil
	}
	if order.Unsat != nil {
		r.Problem = "No cluster of " + template + " can have it: " + order.Unsat.Headline
		for _, reason := range order.Unsat.Reasons {
			r.Reasons = append(r.Reasons, reason.Message)
		}
		return r, nil
	}
	r.Notes = orderNotes(order, service.Name)
	r.Rows = orderRows(order.Plan, service.Name)
	return r, nil
}

func orderNotes(o clusters.Order, service string) []string {
	notes := []string{"For the smallest cluster: " + ui.Count(o.Machines, "node", "nodes") + ", " +
		ui.Count(len(o.Plan.Tasks), "task", "tasks") + " in " + ui.Count(o.Plan.Levels(), "stage", "stages") +
		". Stages are no barriers: a task starts when what it waits for is done."}
	var more []string
	for _, name := range o.With {
		if name != service {
			more = append(more, name)
		}
	}
	if len(more) > 0 {
		notes = append(notes, "Added because it is required: "+loom.And(more)+".")
	}
	if !o.Allowed {
		notes = append(notes, "The template does not allow all of these services yet; this is the plan as if it did.")
	}
	return notes
}

// maxOthers is how many actions of other services a stage lists.
const maxOthers = 8

// orderRows sums the tasks of each stage up by action and service.
func orderRows(plan loom.Plan, service string) []adminview.OrderRow {
	type key struct {
		action  loom.TaskAction
		service string
	}
	rows := make([]adminview.OrderRow, plan.Levels())
	counts := make([]map[key]int, len(rows))
	order := make([][]key, len(rows))
	for _, t := range plan.Tasks {
		at, k := t.Level-1, key{t.Action, t.Service}
		if counts[at] == nil {
			counts[at] = map[key]int{}
		}
		if counts[at][k] == 0 {
			order[at] = append(order[at], k)
		}
		counts[at][k]++
	}
	for i := range rows {
		rows[i].Stage = strconv.Itoa(i + 1)
		for _, k := range order[i] {
			text := string(k.action)
			if k.service != "" && k.service != service {
				text += " " + k.service
			}
			if n := counts[i][k]; n > 1 {
				text += fmt.Sprintf(" × %d", n)
			}
			switch {
			case k.service == service:
				rows[i].Own = append(rows[i].Own, text)
			case len(rows[i].Others) < maxOthers:
				rows[i].Others = append(rows[i].Others, text)
			default:
				rows[i].More++
			}
		}
	}
	return rows
}
