package clusters

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/fleet"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// incidentsShown is how many incidents are on a page.
const incidentsShown = 50

// clusterHealth is the tab of what went wrong, and of maintenance.
func (s *Server) clusterHealth(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	return s.showHealth(w, r, actor, http.StatusOK, v, clusterview.MaintenanceForm{})
}

func (s *Server) showHealth(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, v clusters.ClusterView, form clusterview.MaintenanceForm, policyErrors ...loom.FieldError) error {
	q := r.URL.Query()
	incidents, err := s.incidentsPart(r.Context(), actor, v, loom.Page{After: q.Get("after"), Before: q.Get("before")})
	if err != nil {
		return err
	}
	m := clusterview.HealthModel{ID: v.ID, Incidents: incidents, Form: form}
	m.Form.Offered = v.Status != loom.ClusterTerminated && actor.May(loom.Operate, v.Object()) == nil
	if m.Form.Offered {
		m.Policy = policyForm(v, policyErrors)
	}
	for _, announced := range v.Health.Maintenance {
		text := "Maintenance"
		if i := slices.IndexFunc(v.Nodes, func(n loom.Node) bool { return n.ID == announced.Node }); i >= 0 {
			text += " of " + ui.NodeNumber(v.Nodes[i].Hostname)
		}
		m.Maintenance = append(m.Maintenance, text+" until "+ui.ViewerOf(r.Context()).Moment(announced.Until)+", announced by "+string(announced.By)+": "+announced.Reason)
	}
	return s.Render(w, r, actor, status, s.clusterFrame(r, v, "Health"), clusterview.HealthPage(s.clusterHead(actor, v, "health"), m))
}

// incidentsPart is a page of what went wrong in a cluster, the newest first.
func (s *Server) incidentsPart(ctx context.Context, actor loom.Actor, v clusters.ClusterView, at loom.Page) (clusterview.IncidentsModel, error) {
	base := route.ClusterTab(v.ID, "health")
	m := clusterview.IncidentsModel{ID: v.ID, Live: route.Query(clusterview.PartURL(v.ID, clusterview.PartHealth), "after", at.After, "before", at.Before)}
	at.Limit = incidentsShown
	list, err := s.Fleet.Incidents(ctx, actor, fleet.IncidentsInput{Page: at, Cluster: v.ID})
	if err != nil {
		return m, err
	}
	m.None = noIncidents(v)
	asked := false
	for _, i := range list.Items {
		row, over := clusterview.IncidentRow{Incident: i, Text: incidentText(i), Said: incidentMessage(i)}, !i.Ended.IsZero()
		if !over && v.Status != loom.ClusterTerminated {
			row.Repair, row.RepairWhyNot = repairOf(i), v.Allowed[loom.ChangeRepair]
		}
		row.Ask = askOf(actor, i)
		if over || v.Status == loom.ClusterTerminated || actor.May(loom.Operate, v.Object()) != nil {
			row.Ask.Label = ""
		}
		if row.Ask.Label != "" && !asked {
			row.Ask.Kind, asked = ui.Primary, true
		}
		switch {
		case i.Kind == loom.IncidentStopped || i.Kind == loom.IncidentGone: // that says it all
			row.Said = ""
		case i.Kind == loom.IncidentDrift && !over: // the list of differences says what, and repairs it
			row.Said, row.Repair = "", ""
		}
		m.Rows = append(m.Rows, row)
	}
	m.Drift = clusterDrift(v)
	if list.Next != "" || list.Prev != "" {
		m.Pages = ui.PaginationModel{Label: "Pages of incidents", Text: ui.Count(len(m.Rows), "incident", "incidents")}
		if list.Next != "" {
			m.Pages.Next = route.Query(base, "after", list.Next)
		}
		if list.Prev != "" {
			m.Pages.Prev = route.Query(base, "before", list.Prev)
		}
	}
	return m, nil
}

// noIncidents says that there are none, and what is checked.
func noIncidents(v clusters.ClusterView) string {
	switch {
	case v.Status == loom.ClusterTerminated:
		return "No incidents. The cluster is deleted, and nothing is checked."
	case v.Health.Status == loom.HealthOff:
		return "No incidents. Checks are off."
	case len(v.Health.Nodes) == 0:
		return "No incidents. Nothing has been checked yet."
	case v.Health.Status == loom.HealthStopped:
		return "No incidents. Loom checks that machines answer; the services are stopped."
	}
	checked := 0
	for name := range v.Services {
		if slices.ContainsFunc(v.Health.Nodes, func(n loom.NodeHealth) bool {
			s := n.Services[name].Status
			return s != "" && s != loom.HealthUnchecked && s != loom.HealthOff
		}) {
			checked++
		}
	}
	text := "No incidents. Loom checks " + ui.Count(len(v.Health.Nodes), "machine", "machines")
	if checked > 0 {
		text += " and " + ui.Count(checked, "service", "services")
	}
	return text + "."
}

// incidentText names what went wrong.
func incidentText(i loom.Incident) string {
	switch i.Kind {
	case loom.IncidentService:
		return i.Service + " fails"
	case loom.IncidentDisk:
		return "Disk full"
	case loom.IncidentSignIn:
		return "Sign-in refused"
	case loom.IncidentUnreachable:
		return "Machine does not answer"
	case loom.IncidentStopped:
		return "Machine stopped"
	case loom.IncidentGone:
		return "Machine gone"
	case loom.IncidentDrift:
		if i.Service == "" {
			return "Machine drifted"
		}
		return i.Service + " drifted"
	}
	return string(i.Kind)
}

// incidentMessage is what a check said, without what the text of the incident says.
func incidentMessage(i loom.Incident) string {
	if i.Kind == loom.IncidentService && i.Message != "" {
		return causeOf(i.Service, i.Message)
	}
	return i.Message
}

// repairOf is the form with the repair that suits an incident, "" where none does.
func repairOf(i loom.Incident) string {
	how := i.Kind.Repair()
	var services []string
	switch {
	case i.Kind == loom.IncidentSignIn: // a person may decide so; Loom never offers it
		how = loom.RepairByReplacement
	case i.Kind == loom.IncidentDrift && i.Service != "": // for a person too
		how, services = loom.RepairByConfigure, []string{i.Service}
	case i.Service != "":
		services = []string{i.Service}
	case how == "":
		return ""
	}
	return route.ClusterRepairBy(i.Cluster, how, services, i.Node)
}

// accepts are what accepting the repair of an incident does.
var accepts = map[loom.IncidentKind]string{loom.IncidentService: "Restart", loom.IncidentStopped: "Start machine", loom.IncidentUnreachable: "Reboot machine", loom.IncidentGone: "Replace machine"}

// askOf is what was decided about an incident, or the question what becomes of it.
func askOf(actor loom.Actor, i loom.Incident) clusterview.RepairAsk {
	who := "You"
	if i.DecidedBy != actor.User {
		who = string(i.DecidedBy)
	}
	a := clusterview.RepairAsk{Cluster: i.Cluster, Incident: i.ID}
	if i.Asks() {
		if a.Label = accepts[i.Kind]; i.Kind == loom.IncidentService {
			a.Label += " " + i.Service
		}
	}
	if i.Operation > 0 {
		a.Operation = route.Operation(loom.OperationRef{Cluster: i.Cluster, Number: i.Operation})
	}
	switch i.Decision {
	case loom.RepairHeld:
		if i.Ended.IsZero() {
			a.Text = "Not repaired automatically: " + i.Reason + "."
		}
	case loom.RepairBegun:
		a.Text = "Repaired automatically."
	case loom.RepairAccepted:
		a.Text = who + " accepted the repair."
	case loom.RepairDeclined:
		a.Text = who + " dismissed it."
	case loom.RepairAsked:
	}
	return a
}

// policyForm is the form of a cluster's repair policy, with what is wrong with an entry.
func policyForm(v clusters.ClusterView, errs []loom.FieldError) *clusterview.RepairPolicyForm {
	template := v.Template.Administration.Repair.Effective()
	usual := template.Parts()
	f := &clusterview.RepairPolicyForm{Errors: ui.NewFormErrors("The policy was not changed.", errs)}
	for i, part := range v.Repair.Parts() {
		words := loom.Describe(loom.KindTemplate, "administration", "repair", part.Name)
		options := []ui.Option{{Value: "", Label: "Template default (" + page.RepairText(part.Name, *usual[i].Choice) + ")", Selected: *part.Choice == ""}}
		for _, c := range loom.RepairChoices {
			options = append(options, ui.Option{Value: string(c), Label: ui.Capital(page.RepairText(part.Name, c)), Selected: *part.Choice == c})
		}
		f.Fields = append(f.Fields, ui.FieldModel{Name: part.Name, ID: "f-policy-" + part.Name, Label: words.Label, Kind: ui.FieldSelect, Width: "l", Options: options, Error: f.Errors.For("repair." + part.Name)})
	}
	return f
}

// changeRepairPolicy changes what Loom may repair by itself in a cluster.
func (s *Server) changeRepairPolicy(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	form, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	policy := loom.RepairPolicy{Service: loom.RepairChoice(form.Get("service")), Stopped: loom.RepairChoice(form.Get("stopped")), Gone: loom.RepairChoice(form.Get("gone"))}
	_, err = s.Clusters.Edit(r.Context(), actor, v.ID, clusters.EditInput{Repair: &policy})
	if fields, status, ok := page.Refused(err); ok {
		v.Repair = policy
		return s.showHealth(w, r, actor, status, v, clusterview.MaintenanceForm{}, fields...)
	}
	if err != nil {
		return err
	}
	return s.Return(w, r, route.ClusterTab(v.ID, "health"), httpx.Flash{Tone: "ok", Text: "Changed what Loom repairs automatically in " + v.Name + "."})
}

// acceptRepair repairs what an incident calls for, and leads to the operation.
func (s *Server) acceptRepair(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.decideRepair(w, r, actor, func(v clusters.ClusterView, incident int64) (string, string, error) {
		ref, err := s.Fleet.Accept(r.Context(), actor, incident, s.Clusters.BeginRepair)
		return route.Operation(ref), "Repairing " + v.Name + ".", err
	})
}

// declineRepair leaves an incident alone.
func (s *Server) declineRepair(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.decideRepair(w, r, actor, func(v clusters.ClusterView, incident int64) (string, string, error) {
		return route.ClusterTab(v.ID, "health"), "Loom does not ask about this incident of " + v.Name + " again.", s.Fleet.Decline(r.Context(), actor, incident)
	})
}

// decideRepair decides about the incident that a form names. Where it is too late, or the
// repair cannot begin, the Health tab says why.
func (s *Server) decideRepair(w http.ResponseWriter, r *http.Request, actor loom.Actor, decide func(v clusters.ClusterView, incident int64) (next, said string, err error)) error {
	form, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	incident, err := strconv.ParseInt(form.Get("incident"), 10, 64)
	if err != nil {
		return loom.NewError(loom.NotFound, "There is no incident “%.20s”.", form.Get("incident"))
	}
	next, said, err := decide(v, incident)
	if e := loom.AsError(err); err != nil && (e.Kind == loom.Conflict || e.Kind == loom.Invalid || e.Kind == loom.Exhausted) {
		return s.Return(w, r, route.ClusterTab(v.ID, "health"), httpx.Flash{Tone: "warn", Text: e.Message})
	}
	if err != nil {
		return err
	}
	return s.Return(w, r, next, httpx.Flash{Tone: "ok", Text: said})
}

// beginMaintenance announces maintenance of a whole cluster.
func (s *Server) beginMaintenance(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	form, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	until, reason, see := form.Get("until"), form.Get("reason"), ui.ViewerOf(r.Context())
	in := fleet.MaintenanceInput{Reason: reason}
	end, ok := parseEnd(until, see.In(s.Now()))
	if ok {
		in.Until = end
		err = s.Fleet.Maintain(r.Context(), actor, v.ID, in)
	} else {
		err = loom.InvalidFields([]loom.FieldError{{Field: "until", Message: "Write how long from now, such as 2 hours, or a date such as 2026-12-24 14:00."}})
	}
	if errors.Is(err, loom.Invalid) {
		return s.showHealth(w, r, actor, httpx.PageStatus(loom.Invalid), v, clusterview.MaintenanceForm{Until: until, Reason: reason, Errors: ui.NewFormErrors("No maintenance was announced.", loom.AsError(err).Fields)})
	}
	if err != nil {
		return err
	}
	return s.Return(w, r, route.ClusterTab(v.ID, "health"), httpx.Flash{Tone: "ok", Text: "Maintenance of " + v.Name + " lasts until " + see.Moment(in.Until) + "."})
}

// endMaintenance ends all maintenance of a cluster and its nodes.
func (s *Server) endMaintenance(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	if err := s.Fleet.EndMaintenance(r.Context(), actor, v.ID, nil); err != nil {
		return err
	}
	return s.Return(w, r, route.ClusterTab(v.ID, "health"), httpx.Flash{Tone: "ok", Text: "Maintenance of " + v.Name + " is over."})
}

// checkNow asks for checks of a cluster's nodes; what they see comes to the page by itself.
func (s *Server) checkNow(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	_, err = s.Fleet.Check(r.Context(), actor, v.ID, nil)
	if err != nil && !errors.Is(err, loom.Throttled) { // somebody asked a moment ago, which is as good
		return err
	}
	back, err := page.Back(w, r, route.Cluster(v.ID))
	if err != nil {
		return err
	}
	return httpx.SeeOther(w, r, back)
}

// healthOf returns what is known of a node; ok is false while nothing is.
func healthOf(v clusters.ClusterView, id loom.NodeID) (h loom.NodeHealth, ok bool) {
	at := slices.IndexFunc(v.Health.Nodes, func(n loom.NodeHealth) bool { return n.Node == id })
	if at < 0 || v.Health.Nodes[at].Status == loom.HealthOff {
		return loom.NodeHealth{}, false
	}
	return v.Health.Nodes[at], true
}

// troubleLines is how many lines the top of a cluster's page has for what is wrong.
const troubleLines = 5

// trouble says what is wrong on the nodes of a cluster, one line each, the first of them.
func trouble(v clusters.ClusterView) []clusterview.TroubleLine {
	var lines []clusterview.TroubleLine
	for i := range v.Nodes {
		n := &v.Nodes[i]
		for _, line := range nodeTrouble(v, n) {
			line.Node, line.Href = ui.NodeNumber(n.Hostname), route.Node(v.ID, n.ID)
			lines = append(lines, line)
		}
		if h, ok := healthOf(v, n.ID); ok {
			for _, text := range driftLines(ui.NodeNumber(n.Hostname), h) {
				lines = append(lines, clusterview.TroubleLine{Text: text})
			}
		}
		if len(lines) > troubleLines {
			return append(lines[:troubleLines], clusterview.TroubleLine{Text: "…"})
		}
	}
	return append(lines, stoppedServices(v)...)
}

// nodeTrouble says what is wrong on a node, each with what most likely helps.
func nodeTrouble(v clusters.ClusterView, n *loom.Node) []clusterview.TroubleLine {
	h, ok := healthOf(v, n.ID)
	if !ok || v.Status != loom.ClusterActive {
		return nil
	}
	fix := func(label string, how loom.RepairHow, services ...string) ui.ButtonModel {
		why, offered := v.Allowed[loom.ChangeRepair]
		if !offered {
			return ui.ButtonModel{}
		}
		b := ui.ButtonModel{Label: label, Small: true, Icon: repairTexts[how].icon, Href: route.ClusterRepairBy(v.ID, how, services, n.ID), WhyNot: why}
		if !how.Replaces() {
			b.Attrs = ui.OpensDialog(b.Href)
		}
		return b
	}
	switch h.Status {
	case loom.HealthStopped:
		return []clusterview.TroubleLine{{Text: h.Message, Bad: true, Fix: fix("Start machine…", loom.RepairByReboot)}}
	case loom.HealthUnreachable:
		return []clusterview.TroubleLine{{Text: h.Message, Bad: true, Fix: fix("Reboot machine…", loom.RepairByReboot)}}
	case loom.HealthGone:
		return []clusterview.TroubleLine{{Text: h.Message, Bad: true, Fix: fix("Replace machine…", loom.RepairByReplacement)}}
	}
	var lines []clusterview.TroubleLine
	for _, name := range slices.Sorted(maps.Keys(h.Services)) {
		switch s := h.Services[name]; {
		case s.Status == loom.HealthFailing:
			lines = append(lines, clusterview.TroubleLine{Text: causeOf(name, s.Message) + ".", Bad: true, Fix: fix("Restart "+name+"…", loom.RepairByRestart, name)})
		case s.Status == loom.HealthPassing && s.Message != "": // one failure is not certain, nor is one right after a start
			lines = append(lines, clusterview.TroubleLine{Text: causeOf(name, s.Message) + ". Checking again."})
		}
	}
	if h.Status == loom.HealthFailing && !slices.ContainsFunc(lines, func(l clusterview.TroubleLine) bool { return l.Bad }) { // the disk, or the sign-in
		lines = append(lines, clusterview.TroubleLine{Text: h.Message, Bad: true})
	}
	return lines
}

// exitStatus is what a check says of itself before what it printed.
var exitStatus = regexp.MustCompile(`^exit status \d+: `)

// causeOf is the message of a check of a service, without what tells a reader nothing, and
// with the name of the service.
func causeOf(service, message string) string {
	message = strings.TrimSuffix(exitStatus.ReplaceAllString(message, ""), ".")
	switch {
	case message == "":
		return service + " fails"
	case strings.Contains(message, service):
		return message
	}
	return service + ": " + message
}

// stoppedServices names the services that were stopped on all their nodes while others run.
func stoppedServices(v clusters.ClusterView) []clusterview.TroubleLine {
	if v.Status != loom.ClusterActive || v.Health.Status == loom.HealthStopped {
		return nil
	}
	var lines []clusterview.TroubleLine
	for _, name := range slices.Sorted(maps.Keys(v.Services)) {
		on, stopped := serviceCounts(v, name, loom.ServiceStopped)
		if on == 0 || stopped < on {
			continue
		}
		line := clusterview.TroubleLine{Text: name + " is stopped."}
		if why, offered := v.Allowed[loom.ChangeStart]; offered {
			at := route.ClusterService(v.ID, name, string(loom.ChangeStart))
			line.Fix = ui.ButtonModel{Label: "Start " + name + "…", Icon: "play", Small: true, Href: at, WhyNot: why, Attrs: ui.OpensDialog(at)}
		}
		lines = append(lines, line)
	}
	if len(lines) == len(v.Services) {
		return nil // the state of the cluster says so
	}
	return lines
}

// serviceCounts returns on how many nodes a service is, and on how many in a state.
func serviceCounts(v clusters.ClusterView, service string, state loom.ServiceState) (on, in int) {
	for i := range v.Nodes {
		if n := &v.Nodes[i]; slices.Contains(n.Services, service) && n.State != loom.NodeDeleted {
			on++
			if n.ServiceStates[service] == state {
				in++
			}
		}
	}
	return on, in
}

// allServices reports whether all services of a cluster are in a state on all nodes, and there
// are some.
func allServices(v clusters.ClusterView, state loom.ServiceState) bool {
	for name := range v.Services {
		if on, in := serviceCounts(v, name, state); in < on {
			return false
		}
	}
	return len(v.Services) > 0
}
