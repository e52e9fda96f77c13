package system

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// looksPart lists when providers were searched for orphans, with the button that
// searches all of them now.
func (s *Server) looksPart(r *http.Request, actor loom.Actor) ([]templ.Component, error) {
	sweeps, err := s.Processes.Sweeps(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	grid := adminview.TableModel{ID: "looks", Caption: "Searches for orphans", ShowCaption: true, Now: s.Now(),
		Columns: []ui.Column{{Label: "Provider"}, {Label: "Tenant"}, {Label: "Last search"}, {Label: "Result"}},
		Empty:   ui.EmptyModel{Icon: "search", Text: "No provider may have machines: there are no clusters, and none ended within a week."}}
	for _, l := range sweeps {
		last, progress := s.LookCells(l)
		grid.Rows = append(grid.Rows, []adminview.Cell{{Text: l.Provider}, {Text: l.TenantName, Mono: true}, last, progress})
	}
	parts := []templ.Component{adminview.Table(grid)}
	if len(sweeps) > 0 {
		parts = append(parts, adminview.Act(route.SystemOrphansLook(), page.LookNow))
	}
	return parts, nil
}

func (s *Server) systemOrphansLook(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	n, err := s.Processes.BeginSweeps(r.Context(), actor)
	said := httpx.Flash{Tone: "ok", Text: "Searching " + ui.Count(n, "provider", "providers") + "; results come here."}
	if errors.Is(err, loom.Conflict) {
		said, err = httpx.Flash{Tone: "warn", Text: loom.AsError(err).Message}, nil
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.SystemOrphans(), said)
}

func (s *Server) systemOrphans(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	orphans, err := s.Processes.Orphans(r.Context(), actor)
	if err != nil {
		return err
	}
	leftovers, err := s.Processes.Leftovers(r.Context(), actor)
	if err != nil {
		return err
	}
	tenants, err := s.Accounts.Tenants(r.Context(), actor)
	if err != nil {
		return err
	}
	names := map[loom.TenantID]string{}
	for _, t := range tenants {
		names[t.ID] = t.Name
	}
	lost := adminview.TableModel{ID: "orphans", Caption: "Orphans", ShowCaption: true, Now: s.Now(),
		Columns: []ui.Column{{Label: "Machine"}, {Label: "Provider"}, {Label: "Tenant"}, {Label: "Cluster"}, {Label: "First seen"}, {Label: "Actions", LabelHidden: true}},
		Empty:   ui.EmptyModel{Icon: "check-circle", Text: "There are no orphans."}}
	if len(orphans) > 0 {
		lost.CSV, lost.JSON = s.ExportsOf(r)
	}
	for _, o := range orphans {
		lost.Rows = append(lost.Rows, []adminview.Cell{
			{Text: o.Machine, Mono: true, Sub: page.OrphanName(o)}, {Text: o.Provider}, {Text: o.TenantName, Mono: true}, {Text: o.Cluster.String(), Mono: true}, {Time: o.FirstSeen},
			{Buttons: []ui.ButtonModel{page.Opening("Remove", "Remove machine "+o.Machine, route.SystemOrphanRemove(o.ID), ui.Danger)}},
		})
	}
	left := adminview.TableModel{ID: "leftovers", Caption: "Leftovers", ShowCaption: true, Now: s.Now(),
		Columns: []ui.Column{{Label: "Machine"}, {Label: "Provider"}, {Label: "Tenant"}, {Label: "Cluster"}, {Label: "Last try"}, {Label: "Actions", LabelHidden: true}},
		Empty:   ui.EmptyModel{Icon: "check-circle", Text: "Nothing was left behind."}}
	if len(leftovers) > 0 {
		left.CSV, left.JSON = s.ExportsAt(route.SystemLeftovers(), nil)
	}
	for _, l := range leftovers {
		machine := adminview.Cell{Text: l.Machine, Mono: true, Sub: l.Hostname}
		if l.Machine == "" {
			machine.Text, machine.Mono = "name not known", false
		}
		left.Rows = append(left.Rows, []adminview.Cell{
			machine, {Text: l.Provider}, {Text: names[l.Tenant], Mono: true}, {Text: l.Cluster.String(), Mono: true},
			{Time: l.Last, Sub: ui.Count(l.Tries, "try", "tries") + ": " + l.Error},
			{Buttons: []ui.ButtonModel{page.Opening("Stop tracking", "Stop tracking leftovers of cluster "+l.Cluster.String(), route.SystemAbandon(names[l.Tenant], l.Cluster), ui.Danger)}},
		})
	}
	m := adminview.PageModel{Title: "Orphans and leftovers", Intro: "Machines that keep running and costing although no cluster uses them. Orphans have a tag of Loom, but no node. Leftovers could not be deleted with their cluster.",
		Parts: []templ.Component{adminview.Table(lost), adminview.Table(left)}, Calls: []ui.JSONCall{page.Call("orphans", http.MethodGet, "/v2/orphans", ""), page.Call("leftovers", http.MethodGet, "/v2/leftovers", "")}}
	looks, err := s.looksPart(r, actor)
	if err != nil {
		return err
	}
	m.Parts = append(m.Parts, looks...)
	if len(leftovers) > 0 {
		m.Parts = append(m.Parts, adminview.Act(route.SystemLeftoversRetry(), ui.ButtonModel{Label: "Try all leftovers again", Busy: "Asking…", Icon: "rotate", Submit: true}))
	}
	return s.LiveSheet(w, r, actor, route.TopicSystem(), page.SystemFrame("Orphans and leftovers", route.SystemOrphans()), m)
}

// systemLeftovers leads to the page that shows them: their files are at this address.
func (s *Server) systemLeftovers(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	return httpx.SeeOther(w, r, route.SystemOrphans()+"#leftovers")
}

// ofOrphan finds the orphan of the path.
func (s *Server) ofOrphan(r *http.Request, actor loom.Actor) (loom.Orphan, error) {
	id, err := page.PathNumber(r, "id", "orphaned machine")
	if err != nil {
		return loom.Orphan{}, err
	}
	orphans, err := s.Processes.Orphans(r.Context(), actor)
	if err != nil {
		return loom.Orphan{}, err
	}
	i := slices.IndexFunc(orphans, func(o loom.Orphan) bool { return o.ID == id })
	if i < 0 {
		return loom.Orphan{}, loom.NewError(loom.NotFound, "There is no such orphaned machine; it may be gone already.")
	}
	return orphans[i], nil
}

func (s *Server) orphanPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, o loom.Orphan, typed string, errs ui.FormErrors, status int) error {
	m := adminview.ConfirmModel{Action: r.URL.Path, Errors: errs, Type: o.Machine, Typed: typed, Button: "Remove machine " + o.Machine, Busy: "Removing…", Cancel: route.SystemOrphans(),
		Lines: []string{"The machine is deleted at the provider " + o.Provider + " of the tenant " + o.TenantName + " with all that is on it. Whether no node has it after all is checked once more.", "This waits for the provider, up to a minute."}}
	if o.Own != "" {
		m.Lines = append(m.Lines, "The machine of the node, "+o.Own+", stays.")
	}
	page := page.SystemFrame("Remove machine "+o.Machine, route.SystemOrphans(), ui.Crumb{Label: "Orphans and leftovers", Href: route.SystemOrphans()}, ui.Crumb{Label: "Remove"})
	return s.AnswerConfirm(w, r, actor, status, page, adminview.Confirm(m))
}

func (s *Server) systemOrphanAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	o, err := s.ofOrphan(r, actor)
	if err != nil {
		return err
	}
	return s.orphanPage(w, r, actor, o, "", ui.FormErrors{}, http.StatusOK)
}

func (s *Server) systemOrphanRemove(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	o, err := s.ofOrphan(r, actor)
	if err != nil {
		return err
	}
	const title = "The machine was not removed."
	if typed := f.Get(adminview.FieldConfirm); typed != o.Machine {
		return s.orphanPage(w, r, actor, o, typed, page.BadConfirm(title, o.Machine), http.StatusUnprocessableEntity)
	}
	err = s.Processes.RemoveOrphan(r.Context(), actor, o.ID)
	if e := loom.AsError(err); err != nil && (e.Kind == loom.Conflict || e.Kind == loom.Unavailable) {
		errs := ui.NewFormErrors(title, []loom.FieldError{{Message: e.Message}})
		return s.orphanPage(w, r, actor, o, o.Machine, errs, httpx.PageStatus(e.Kind))
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.SystemOrphans(), httpx.Flash{Tone: "ok", Text: "Removed the machine " + o.Machine + "."})
}

func (s *Server) systemLeftoversRetry(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	n, err := s.Processes.RetryLeftovers(r.Context(), actor)
	if err != nil {
		return err
	}
	said := "All of them are being tried already."
	if n > 0 {
		said = ui.Count(n, "machine is", "machines are") + " tried again now; look again in a moment."
	}
	return s.Say(w, r, route.SystemOrphans(), httpx.Flash{Tone: "ok", Text: said})
}

func (s *Server) abandonPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, typed string, errs ui.FormErrors, status int) error {
	tenant, id, err := s.ofAbandon(r, actor)
	if err != nil {
		return err
	}
	all, err := s.Processes.Leftovers(r.Context(), actor)
	if err != nil {
		return err
	}
	m := adminview.ConfirmModel{Action: r.URL.Path, Errors: errs, Type: id.String(), Typed: typed, Button: "Stop tracking leftovers of cluster " + id.String(), Busy: "Stopping…", Cancel: route.SystemOrphans(), ItemsNote: "These stay at the provider:",
		Lines: []string{"Loom stops tracking these machines and terminates the cluster. It deletes nothing at the provider: the machines may keep running and costing."}}
	for _, l := range all {
		if l.Tenant == tenant.ID && l.Cluster == id {
			m.Items = append(m.Items, page.LeftoverText(l))
		}
	}
	if len(m.Items) == 0 {
		return loom.NewError(loom.NotFound, "Cluster %s has no leftover machines.", id)
	}
	page := page.SystemFrame("Stop tracking leftovers of cluster "+id.String(), route.SystemOrphans(), ui.Crumb{Label: "Orphans and leftovers", Href: route.SystemOrphans()}, ui.Crumb{Label: "Stop tracking"})
	return s.AnswerConfirm(w, r, actor, status, page, adminview.Confirm(m))
}

func (s *Server) ofAbandon(r *http.Request, actor loom.Actor) (loom.Tenant, loom.ClusterID, error) {
	id, ok := loom.ParseClusterID(r.PathValue("cluster"))
	if !ok {
		return loom.Tenant{}, 0, loom.NewError(loom.NotFound, "There is no cluster “%.40s”.", r.PathValue("cluster"))
	}
	tenant, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	return tenant, id, err
}

func (s *Server) systemAbandonAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.abandonPage(w, r, actor, "", ui.FormErrors{}, http.StatusOK)
}

func (s *Server) systemAbandon(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	tenant, id, err := s.ofAbandon(r, actor)
	if err != nil {
		return err
	}
	const title = "Nothing changed."
	if typed := f.Get(adminview.FieldConfirm); typed != id.String() {
		return s.abandonPage(w, r, actor, typed, page.BadConfirm(title, id.String()), http.StatusUnprocessableEntity)
	}
	err = s.Clusters.AbandonIn(r.Context(), actor, tenant, id)
	if errors.Is(err, loom.Conflict) {
		errs, status, _ := page.FormErrors(err, title)
		return s.abandonPage(w, r, actor, id.String(), errs, status)
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.SystemOrphans(), httpx.Flash{Tone: "ok", Text: "Stopped tracking the leftover machines of cluster " + id.String() + "."})
}

// systemPlugins lists the plugin types with the processes that carry them.
func (s *Server) systemPlugins(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	processes, err := s.Processes.List(r.Context(), actor, loom.ProcessProvisioner)
	if err != nil {
		return err
	}
	m := adminview.PageModel{Title: "Plugin types", Intro: "What provisioners can talk to. Types register themselves when a provisioner starts that carries them."}
	for _, kind := range []loom.EntityKind{loom.KindProviderType, loom.KindAutomatorType} {
		list, err := s.Catalog.Entries(r.Context(), actor, kind, catalog.ListInput{Page: loom.Page{Limit: loom.MaxPageLimit}})
		if err != nil {
			return err
		}
		title := map[loom.EntityKind]string{loom.KindProviderType: "Provider types", loom.KindAutomatorType: "Automator types"}[kind]
		grid := adminview.TableModel{ID: string(kind), Caption: title, ShowCaption: true, Now: s.Now(),
			Columns: []ui.Column{{Label: "Type"}, {Label: "Version", Numeric: true}, {Label: "Fields"}, {Label: "Resources"}, {Label: "Provided by"}, {Label: "Registered"}},
			Empty:   ui.EmptyModel{Icon: "box", Text: "No type is registered. Start a provisioner."}}
		for _, item := range list.Items {
			t, ok := item.Entry.(*loom.PluginType)
			if !ok {
				continue
			}
			var carried []ui.Def
			for _, p := range processes {
				if slices.Contains(p.Plugins, t.Name) {
					carried = append(carried, ui.Def{Term: string(p.ID), Text: "release " + p.Carried()[t.Name]})
				}
			}
			grid.Rows = append(grid.Rows, []adminview.Cell{
				{Text: t.Name, Href: route.SystemPlugin(string(kind), t.Name), Mono: true, Sub: t.Description}, {Text: strconv.Itoa(item.Version)}, {Part: fieldsOf(t)}, {Text: strings.Join(page.SortedKeys(t.ResourceTypes), ", ")},
				carriers(carried), {Time: item.Time},
			})
		}
		m.Parts = append(m.Parts, adminview.Table(grid))
		m.Calls = append(m.Calls, page.Call(strings.ToLower(title), http.MethodGet, "/v2/plugins/"+string(kind), ""))
	}
	return s.Sheet(w, r, actor, http.StatusOK, page.SystemFrame("Plugin types", route.SystemPlugins()), m)
}

// carriers folds the processes that carry a type.
func carriers(processes []ui.Def) adminview.Cell {
	if len(processes) == 0 {
		return adminview.Cell{Text: "no process"}
	}
	return adminview.Cell{Part: adminview.Details(adminview.DetailsModel{Summary: ui.Count(len(processes), "process", "processes"), Facts: processes})}
}

// fieldsOf folds the declared fields of a type, those of administrators first.
func fieldsOf(t *loom.PluginType) templ.Component {
	var facts []ui.Def
	for _, who := range []string{"admin", "user"} {
		for _, name := range page.SortedKeys(t.Parameters[who].Fields) {
			f := t.Parameters[who].Fields[name]
			facts = append(facts, ui.Def{Term: name, Text: f.Type + ", for " + who + "s. " + f.Tip})
		}
	}
	return adminview.Details(adminview.DetailsModel{Summary: ui.Count(len(facts), "field", "fields"), Facts: facts})
}
