package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// restartable names the services that are configured and run, which may need a restart to
// read their settings.
func restartable(v clusters.ClusterView) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(v.Services)) {
		actions := v.Services[name].Provisioner.Actions
		_, configures := actions[loom.ActionConfigure]
		_, starts := actions[loom.ActionStart]
		if configures && starts {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return " No service of the cluster is both configured and started."
	}
	return " It concerns " + strings.Join(names, ", ") + "."
}

// changePage is what the form of a kind says and asks for.
type changePage struct {
	lead, lost string
	// live has the answer follow the form as it is filled in.
	live bool
	// parts makes the controls. A text instead of them says why there is nothing to do.
	parts func(s *Server, ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error)
}

// lostWarning is said where machines are taken away or made anew.
const lostWarning = "What is on the disks of these machines is lost."

var changePages map[loom.ChangeKind]changePage

func init() { // a literal would refer to itself
	changePages = map[loom.ChangeKind]changePage{
		kindScale:                 {lead: "Adds nodes by the template’s rules, or removes nodes that you choose.", live: true, parts: (*Server).scaleParts},
		loom.ChangeConfigure:      {lead: "Replaces the config and configures the services again.", live: true, parts: (*Server).configureParts},
		loom.ChangeAddServices:    {lead: "The services are put on nodes that are there, as the template’s rules say. Nothing moves, and no machine is made.", live: true, parts: (*Server).addParts},
		loom.ChangeRemoveServices: {lead: "The services are stopped and removed from all nodes. A service without a remove action leaves its files; the config stays.", live: true, parts: (*Server).removeParts},
		loom.ChangeStart:          {lead: "Each service is started after those that it needs; the preview names them all."},
		loom.ChangeStop:           {lead: "Each service is stopped after those that need it; the preview names them all."},
		loom.ChangeRestart:        {lead: "Each service is stopped after those that need it and started before them; the preview names them all."},
		loom.ChangeUpdate:         {lead: "Takes the newest versions of what the cluster is made of, a few nodes at a time. Nodes whose types mean another size or image now get new machines.", live: true, parts: (*Server).updateParts},
		loom.ChangeResize:         {lead: "Replaces machines, a few at a time. Numbers and host names stay.", lost: lostWarning, live: true, parts: (*Server).resizeParts},
		loom.ChangeRepair:         {lead: "Repairs nodes. Only “Replace machine” creates another one, with the number, host name and services of the node.", live: true, parts: (*Server).repairParts},
		loom.ChangeRollback:       {lead: "Restores the nodes, services, versions and config from before the operation. Deletes the machines that it created. Disks of other machines are not changed."},
		loom.ChangeRetry:          {lead: "The tasks that are not complete run again. What finished stays finished, unless you change it here.", live: true, parts: (*Server).retryParts},
	}
}

// changeModel makes the form without its panel.
func (s *Server) changeModel(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) (clusterview.ChangeModel, error) {
	page, known := changePages[f.Kind]
	if !known {
		return clusterview.ChangeModel{}, loom.NewError(loom.NotFound, "There is no form for “%.40s”.", f.Kind)
	}
	m := clusterview.ChangeModel{
		Cluster: v.ID, Name: v.Name, Title: changeTitle(v, f), Lead: page.lead, Lost: page.lost, Errors: errs, Live: page.live,
		Back: route.Cluster(v.ID), WhyNot: v.Allowed[f.verb()],
	}
	m.Hidden = f.hidden(v)
	if f.Revision != "" {
		m.Lead = "A config that the cluster has had comes back. Services are configured again with it."
	}
	if m.WhyNot != "" || page.parts == nil {
		return m, nil
	}
	var err error
	m.Parts, m.WhyNot, err = page.parts(s, ctx, actor, v, f, errs)
	return m, err
}

func changeTitle(v clusters.ClusterView, f changeForm) string {
	words := f.Kind.Change().Title
	switch {
	case f.Kind == kindScale:
		words = "Scale"
	case f.Revision != "":
		return "Restore config " + f.Revision + " of " + v.Name
	case f.Kind == loom.ChangeRepair && f.of("how") != "" && len(f.list("nodes")) > 0:
		return repairTitle(v, f) + " of " + v.Name
	case f.Service != "":
		return ui.Capital(string(f.Kind)) + " " + f.Service + " of " + v.Name
	case f.Kind == loom.ChangeRetry || f.Kind == loom.ChangeRollback:
		what := "operation " + f.Operation
		if v.Latest != nil && strconv.Itoa(v.Latest.Ref.Number) == f.Operation {
			what = v.Latest.Action.Verb()
		}
		return words + " " + what + " of " + v.Name
	}
	return words + " " + v.Name
}

// changeButton is the button that begins a change whose dialog has its title.
func changeButton(v clusters.ClusterView, f changeForm) string {
	switch f.Kind {
	case loom.ChangeRepair:
		if f.of("how") != "" && len(f.list("nodes")) > 0 {
			return repairTitle(v, f)
		}
	case loom.ChangeStart, loom.ChangeStop, loom.ChangeRestart:
		if f.Service != "" {
			return ui.Capital(string(f.Kind)) + " " + f.Service
		}
		return ui.Capital(f.Kind.Change().Verb)
	}
	return changeTitle(v, f)
}

func (s *Server) scaleParts(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	sizes, err := s.Clusters.Sizes(ctx, actor, v.ID)
	if err != nil {
		return nil, "", err
	}
	have := len(placedNodes(v))
	field := ui.FieldModel{Name: "numMachines", Label: "Nodes", Kind: ui.FieldNumber, Value: cmp.Or(f.of("numMachines"), fmt.Sprint(have)), Min: "1", Error: errs.For("numMachines"),
		Help: sizeRange(sizes.Min, sizes.Max) + fmt.Sprintf(", now %d", have), Autofocus: true}
	if why := v.Allowed[loom.ChangeShrink]; why != "" {
		field.Help += " Fewer is not possible: " + why
	}
	return []clusterview.FormPart{{Field: &field}, policyPart(v, f, errs)}, "", nil
}

// leavingPart lists the nodes of which some go, once a number below the present one is
// asked for. Of a preview they are those that it takes, else those that were ticked.
func leavingPart(v clusters.ClusterView, f changeForm, p *clusters.PreviewView, m clusterview.ChangePanel) clusterview.ChangePanel {
	total, have := 0, len(placedNodes(v))
	if v.Allowed[loom.ChangeShrink] != "" {
		return m
	}
	if _, err := fmt.Sscanf(f.of("numMachines"), "%d", &total); f.Kind != kindScale || err != nil || total < 1 || total >= have && !f.named() {
		return m
	}
	ticked := f.list("nodes")
	if f.For != f.of("numMachines") {
		ticked = nil
	}
	if p != nil {
		ticked = nil
		for _, n := range p.RemovedNodes {
			ticked = append(ticked, string(n.ID))
		}
	}
	m.For = f.of("numMachines")
	m.Leaving = &ui.ChoiceModel{Name: "nodes", Legend: "Nodes to remove", Help: "Chosen by Loom. You can change them. " + lostWarning}
	for _, n := range removable(v) {
		c := ui.Choice{Value: string(n.ID), Label: ui.NodeNumber(n.Hostname), Description: strings.Join(n.Services, ", "), Checked: slices.Contains(ticked, string(n.ID))}
		if n.Leaving {
			c.Facts = []string{"leaving already"}
		}
		m.Leaving.Choices = append(m.Leaving.Choices, c)
	}
	m.Dead = deadPart(v, f, ticked)
	return m
}

// deadPart asks which of the nodes that leave do not answer; nil where none leaves.
func deadPart(v clusters.ClusterView, f changeForm, leaving []string) *ui.ChoiceModel {
	m := &ui.ChoiceModel{Name: "dead", Legend: "Skip stopping services on", Optional: true,
		Help: "For nodes that do not answer: their machines are deleted at once."}
	for _, n := range removable(v) {
		if id := string(n.ID); slices.Contains(leaving, id) {
			c := ui.Choice{Value: id, Label: ui.NodeNumber(n.Hostname), Checked: slices.Contains(f.list("dead"), id)}
			if n.State == loom.NodeFailed {
				c.Facts = []string{"its last task failed"}
			}
			m.Choices = append(m.Choices, c)
		}
	}
	if len(m.Choices) == 0 {
		return nil
	}
	return m
}

// folded hides what is rarely needed.
func folded(f changeForm, errs ui.FormErrors, fields ...ui.FieldModel) clusterview.FormPart {
	part := clusterview.FormPart{Fold: "Advanced", Open: f.of("onFailure") != ""}
	for _, field := range fields {
		part.Open = part.Open || errs.For(field.Name) != ""
		part.More = append(part.More, clusterview.FormPart{Field: &field})
	}
	return part
}

// policyPart hides what a failure does.
func policyPart(v clusters.ClusterView, f changeForm, errs ui.FormErrors) clusterview.FormPart {
	return folded(f, errs, failureField("If it fails", f.of("onFailure"), v.Template.Administration.OnFailure, errs))
}

// failureField chooses what becomes of a failure; usual is what the template says.
func failureField(label, chosen, usual string, errs ui.FormErrors) ui.FieldModel {
	return ui.FieldModel{Name: "onFailure", Label: label, Kind: ui.FieldSelect, Optional: true, Error: errs.For("onFailure"), Options: []ui.Option{
		{Value: "", Label: "template default (" + usualPolicy(usual) + ")", Selected: chosen == ""},
		{Value: loom.OnFailureKeep, Label: "keep for inspection", Selected: chosen == loom.OnFailureKeep},
		{Value: loom.OnFailureUndo, Label: "undo changes", Selected: chosen == loom.OnFailureUndo},
	}}
}

func (s *Server) configureParts(_ context.Context, _ loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	restart := ui.FieldModel{Name: "restart", Label: "Also restart the services", Kind: ui.FieldCheckbox, Checked: f.of("restart") == "true",
		Help: "Otherwise they are configured while they run. Many read their settings only when they start." + restartable(v)}
	if f.Revision != "" {
		config := ui.FieldModel{ID: "f-revision", Name: "revision", Label: "Config", Value: "config " + f.Revision, Error: errs.For("revision"),
			LockedWhy: "The cluster has had it before. All of it takes the place of the present config, hidden values as well."}
		return []clusterview.FormPart{{Field: &config}, {Field: &restart}}, "", nil
	}
	return []clusterview.FormPart{f.settingsPart(v, errs, 18), {Field: &restart}}, "", nil
}

func (s *Server) repairParts(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	failed, err := s.failures(ctx, actor, v)
	if err != nil {
		return nil, "", err
	}
	ticked, how := f.list("nodes"), loom.RepairHow(f.of("how"))
	picker := ui.ChoiceModel{Name: "nodes", Legend: "Nodes", Filter: "Filter nodes", Error: errs.For("nodes")}
	for _, n := range v.Nodes {
		state := nodeState(v, &n, s.Now())
		c := ui.Choice{Value: string(n.ID), Label: ui.NodeNumber(n.Hostname), Description: strings.Join(n.Services, ", "),
			Facts: []string{strings.TrimSpace(strings.ToLower(state.Word) + " " + state.Detail)}, Checked: slices.Contains(ticked, string(n.ID))}
		for _, line := range nodeTrouble(v, &n) {
			c.Facts = append(c.Facts, line.Text)
		}
		if n.Leaving {
			c.Facts = append(c.Facts, "leaving; replacing keeps it")
		}
		if task, is := failed[n.ID]; is {
			c.Facts = append(c.Facts, fmt.Sprintf("%s failed: %s", strings.TrimSpace(string(task.Action)+" "+task.Service), task.Message))
		}
		picker.Choices = append(picker.Choices, c)
	}
	if len(picker.Choices) == 0 {
		return nil, "The cluster has no nodes to repair.", nil
	}
	services := ui.ChoiceModel{Name: "services", Legend: "Services", Filter: "Filter services", Optional: true, Error: errs.For("services"),
		Help: "To restart or to restore files of. None chosen means all that should run."}
	for _, name := range slices.Sorted(maps.Keys(v.Services)) {
		services.Choices = append(services.Choices, ui.Choice{Value: name, Label: name, Description: v.Services[name].Description, Checked: slices.Contains(f.list("services"), name)})
	}
	parts := []clusterview.FormPart{{Picker: &picker}, {Cards: repairCards(how, errs)}}
	if len(services.Choices) > 0 {
		parts = append(parts, clusterview.FormPart{Fold: "Only some services", Open: len(f.list("services")) > 0 || services.Error != "", More: []clusterview.FormPart{{Picker: &services}}})
	}
	return parts, "", nil
}

// repairTitle says what a repair does, and where: "Restart nginx on node 1001".
func repairTitle(v clusters.ClusterView, f changeForm) string {
	what := repairTexts[loom.RepairHow(f.of("how"))].label
	if services := f.list("services"); len(services) > 0 && loom.RepairHow(f.of("how")) == loom.RepairByRestart {
		what = "Restart " + loom.And(services[:min(len(services), 3)])
	}
	nodes := f.list("nodes")
	if len(nodes) == 1 {
		for _, n := range v.Nodes {
			if string(n.ID) == nodes[0] {
				return what + " on node " + ui.NodeNumber(n.Hostname)
			}
		}
	}
	return what + " on " + ui.Count(len(nodes), "node", "nodes")
}

// repairFirst are the nodes that are bad or had a task that failed, and the mildest repair that
// suits all of them.
func repairFirst(v clusters.ClusterView, failed map[loom.NodeID]loom.Task) (nodes []string, how loom.RepairHow) {
	how = loom.RepairByRestart
	need := func(least loom.RepairHow) {
		if slices.Index(loom.RepairHows, least) > slices.Index(loom.RepairHows, how) {
			how = least
		}
	}
	for _, n := range v.Nodes {
		h, _ := healthOf(v, n.ID)
		task, hasFailed := failed[n.ID]
		switch {
		case h.Status == loom.HealthGone, n.State == loom.NodeFailed && !serviceFailed(&n), hasFailed && task.Service == "":
			need(loom.RepairByReplacement)
		case h.Status.Silent():
			need(loom.RepairByReboot)
		case hasFailed:
			need(loom.RepairByConfigure)
		case h.Status.Bad():
		default:
			continue
		}
		nodes = append(nodes, string(n.ID))
	}
	return nodes, how
}

// repairTexts are the words of the ways to repair nodes: of forms and of menus.
var repairTexts = map[loom.RepairHow]struct{ label, menu, icon, help string }{
	loom.RepairByRestart:     {"Restart services", "Restart services…", "rotate", "Stops and starts them."},
	loom.RepairByConfigure:   {"Restore files", "Restore files…", "file", "Stops the services, configures them again and starts them."},
	loom.RepairByReboot:      {"Reboot machine", "Reboot machine…", "server", "Starts a machine that is stopped, restarts one that runs, and starts its services."},
	loom.RepairByReplacement: {"Replace machine", "Replace machine…", "shield", "Another machine takes its place. What is on the disks is lost."},
}

// repairCards choose the way to repair nodes.
func repairCards(chosen loom.RepairHow, errs ui.FormErrors) *ui.ChoiceModel {
	m := ui.ChoiceModel{Name: "how", Legend: "Method", Error: errs.For("how")}
	for _, how := range loom.RepairHows {
		text := repairTexts[how]
		m.Choices = append(m.Choices, ui.Choice{Value: string(how), Label: text.label, Description: text.help, Checked: how == chosen})
	}
	return &m
}

// repairActions lead to the form that repairs a node, or a service there, in some ways.
func repairActions(v clusters.ClusterView, node loom.NodeID, services []string, ways ...loom.RepairHow) []ui.MenuItem {
	var items []ui.MenuItem
	for _, how := range ways {
		text := repairTexts[how]
		item := ui.MenuItem{Label: text.menu, Icon: text.icon, Href: route.ClusterRepairBy(v.ID, how, services, node), WhyNot: v.Allowed[loom.ChangeRepair]}
		if !how.Replaces() {
			item.Attrs = ui.OpensDialog(item.Href)
		}
		items = append(items, item)
	}
	return items
}

// failures are the tasks that failed in the newest operation, by node: the first of each.
// They tell which machine may be broken while its node has reached its state.
func (s *Server) failures(ctx context.Context, actor loom.Actor, v clusters.ClusterView) (map[loom.NodeID]loom.Task, error) {
	if v.LatestOperation == 0 {
		return nil, nil
	}
	ref := loom.OperationRef{Cluster: v.ID, Number: v.LatestOperation}
	tasks, err := s.Clusters.Tasks(ctx, actor, ref, clusters.TaskFilter{Statuses: []loom.TaskStatus{loom.TaskFailed}})
	failed := make(map[loom.NodeID]loom.Task, len(tasks))
	for _, t := range slices.Backward(tasks) {
		failed[t.Node] = t
	}
	return failed, err
}

// changeLines is how much of a preview a form shows of itself.
const changeLines = 8

// changeShow is the form of a kind, filled in as the query says.
func (s *Server) changeShow(kind loom.ChangeKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		v, err := s.pathCluster(r, actor)
		if err != nil {
			return err
		}
		q := r.URL.Query()
		f := readChangeForm(q)
		f.Kind, f.Service = kind, route.Segment(r.PathValue("service"))
		if _, there := v.Services[f.Service]; f.Service != "" && !there {
			return loom.NewError(loom.NotFound, "Cluster %s has no service “%.40s”.", v.ID, f.Service)
		}
		if kind == loom.ChangeRollback || kind == loom.ChangeRetry {
			if _, err := pathOperation(r); err != nil {
				return err
			}
			f.Operation = r.PathValue("n")
		}
		if id := q.Get(previewParam); (kind == loom.ChangeConfigure || kind == loom.ChangeRetry) && id != "" {
			if err := s.configureAgain(r.Context(), actor, v, loom.PreviewID(id), &f); err != nil {
				return err
			}
		}
		if kind == loom.ChangeRepair && len(f.list("nodes")) == 0 && f.of("how") == "" {
			failed, err := s.failures(r.Context(), actor, v)
			if err != nil {
				return err
			}
			nodes, how := repairFirst(v, failed)
			f.Doc.Set(form.At("nodes"), nodes)
			f.Doc.Set(form.At("how"), string(how))
		}
		if nodes := q["leave"]; kind == kindScale && len(nodes) > 0 {
			f.leave(v, nodes)
		}
		if asks(r, kind) {
			return s.showAsk(w, r, actor, v, f)
		}
		return s.showChange(w, r, actor, http.StatusOK, v, f, ui.FormErrors{}, nil)
	}
}

// configureAgain fills in the config that a preview of this cluster was asked for.
func (s *Server) configureAgain(ctx context.Context, actor loom.Actor, v clusters.ClusterView, id loom.PreviewID, f *changeForm) error {
	p, err := s.Clusters.PreviewByID(ctx, actor, id)
	if err != nil {
		return err
	}
	in := p.Request.Configure
	if patch := p.Request.Change.ConfigPatch; patch != nil {
		in = &clusters.ConfigureInput{ConfigPatch: patch}
	}
	if p.Request.Cluster != v.ID || in == nil {
		return loom.NewError(loom.NotFound, "Preview %.40s is not about the config of this cluster.", id)
	}
	config := in.Config
	if config == nil {
		config = secretsOf(v).Mask(loom.MergePatch(maskedConfig(v), in.ConfigPatch))
	}
	f.Config, f.Open = configText(config), "config"
	f.Doc.Set(form.At("restart"), in.Restart)
	return nil
}

// changeTry says what the form as it stands would come to.
func (s *Server) changeTry(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	form, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	f := readChangeForm(form)
	f.takeSettings(v)
	panel, err := s.tryChange(r.Context(), actor, v, f)
	if err != nil {
		return err
	}
	parts := append([]templ.Component{clusterview.ChangePanelPart(panel)}, f.settingsAgain(v, panel.Check)...)
	return s.Fragment(w, r, http.StatusOK, templ.Join(append(parts, clusterview.CheckLine(panel.Check.Head, true))...))
}

// previewChange makes the preview that a form asks for.
func (s *Server) previewChange(w http.ResponseWriter, r *http.Request, actor loom.Actor, form url.Values) error {
	id, ok := loom.ParseClusterID(form.Get("cluster"))
	if !ok {
		return loom.NewError(loom.NotFound, "There is no cluster “%.40s”.", form.Get("cluster"))
	}
	v, err := s.Clusters.Cluster(r.Context(), actor, id)
	if err != nil {
		return err
	}
	f := readChangeForm(form)
	f.takeSettings(v)
	if f.Change != "" {
		if err := f.apply(v, f.Change); err != nil {
			return err
		}
	}
	if f.Change != "" || f.Do != "" {
		return s.showChange(w, r, actor, http.StatusOK, v, f, ui.FormErrors{}, nil)
	}
	in, err := f.input(v)
	if err == nil && form.Get(fieldApply) != "" {
		return s.applyAsked(w, r, actor, v, f, in, form)
	}
	if err == nil {
		var p clusters.PreviewView
		if p, err = s.Clusters.Preview(r.Context(), actor, in); err == nil {
			return httpx.SeeOther(w, r, route.Preview(p.ID))
		}
	}
	return s.refuseChange(w, r, actor, v, f, err)
}

// refuseChange shows the form again with what is wrong.
func (s *Server) refuseChange(w http.ResponseWriter, r *http.Request, actor loom.Actor, v clusters.ClusterView, f changeForm, err error) error {
	e := loom.AsError(err)
	switch e.Kind {
	case loom.Invalid, loom.Unsolvable, loom.Conflict, loom.Exhausted, loom.Unavailable, loom.NotFound:
	default:
		return err
	}
	if _, known := changePages[f.Kind]; !known {
		return err
	}
	fields := e.Fields
	if len(fields) == 0 {
		fields = []loom.FieldError{{Message: e.Message}}
	}
	status := httpx.PageStatus(e.Kind)
	if e.Kind == loom.NotFound {
		status = http.StatusUnprocessableEntity
	}
	return s.showChange(w, r, actor, status, v, f, settingErrors(plainFields(fields), loom.ParametersOf(v.Services), f.fieldKeys(v)), err)
}

// plainFields leads errors about an entry of a list to the list.
func plainFields(fields []loom.FieldError) []loom.FieldError {
	out := make([]loom.FieldError, len(fields))
	for i, e := range fields {
		e.Field, _, _ = strings.Cut(e.Field, "[")
		out[i] = e
	}
	return out
}

// showChange answers with the form. refused is why there is no preview; without it the
// form is tried.
func (s *Server) showChange(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, v clusters.ClusterView, f changeForm, errs ui.FormErrors, refused error) error {
	m, err := s.changeModel(r.Context(), actor, v, f, errs)
	if err != nil {
		return err
	}
	switch {
	case m.WhyNot != "":
	case refused != nil:
		m.Panel = refusedPanel(actor, v, f, refused)
		if err := s.scaleWithin(r.Context(), actor, v, f, refused, &m.Panel); err != nil {
			return err
		}
		if m.Panel.Leaving != nil {
			m.Panel.Leaving.Error = errs.For("nodes")
		}
	default:
		if m.Panel, err = s.tryChange(r.Context(), actor, v, f); err != nil {
			return err
		}
	}
	page := clusterPage(m.Title, "Clusters", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: m.Title})
	return s.Render(w, r, actor, status, page, clusterview.ChangePage(m))
}

// tryChange asks what the form comes to and words the answer.
func (s *Server) tryChange(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm) (clusterview.ChangePanel, error) {
	if text := f.blank(v); text != "" {
		return leavingPart(v, f, nil, clusterview.ChangePanel{Check: clusterview.CheckPanel{Head: ui.CheckModel{State: ui.CheckIncomplete, Headline: text}}}), nil
	}
	in, err := f.input(v)
	if err == nil {
		var p clusters.PreviewView
		if p, err = s.Clusters.PreviewUnsaved(ctx, actor, in); err == nil {
			return fittingPanel(v, f, p), nil
		}
	}
	switch loom.AsError(err).Kind {
	case loom.Invalid, loom.Unsolvable, loom.Conflict, loom.Exhausted, loom.Unavailable, loom.NotFound, loom.Forbidden:
		m := refusedPanel(actor, v, f, err)
		return m, s.scaleWithin(ctx, actor, v, f, err, &m)
	}
	return clusterview.ChangePanel{}, err
}

// refusedPanel words why a change cannot be made, and what would work.
func refusedPanel(actor loom.Actor, v clusters.ClusterView, f changeForm, err error) clusterview.ChangePanel {
	e := loom.AsError(err)
	m := clusterview.ChangePanel{}
	switch {
	case e.Unsat != nil:
		st := &settled{form: formOf(loom.CreateInput{Template: v.Template.Name})}
		reasons := *e.Unsat
		reasons.Suggestions = nil
		m.Check = cannot(actor, st, &reasons)
		for _, su := range e.Unsat.Suggestions {
			if len(su.Template)+len(su.Catalog) > 0 { // nothing that this form could set
				m.Check.Elsewhere = append(m.Check.Elsewhere, su.Label)
				continue
			}
			name, value := changeSuggestion(su)
			m.Check.Suggestions = append(m.Check.Suggestions, ui.Suggestion{Label: su.Label, Name: name, Value: value})
		}
	case errors.Is(err, loom.Invalid) || errors.Is(err, loom.NotFound):
		m.Check.Head = ui.CheckModel{State: ui.CheckIncomplete, Headline: "Something is missing or wrong"}
		for _, item := range ui.NewFormErrors("", plainFields(configFields(e.Fields, f.fieldKeys(v)))).Items {
			if item.FieldID == "" {
				continue
			}
			m.Check.Errors = append(m.Check.Errors, item)
		}
		if len(m.Check.Errors) == 0 {
			m.Check.Head.Headline = strings.TrimSuffix(e.Message, ".")
		}
	case errors.Is(err, loom.Unavailable):
		m.Check.Head = ui.CheckModel{State: ui.CheckUnsure, Headline: "The search took too long", Note: e.Message}
	default:
		m.Check.Head = ui.CheckModel{State: ui.CheckCannot, Headline: "This cannot begin"}
		m.Check.Reasons = []ui.Reason{{Text: e.Message}}
		if errors.Is(err, loom.Exhausted) {
			m.Check.Head.Headline, m.Check.Reasons[0].Origin = "The quota does not allow it", "quota"
		}
	}
	return leavingPart(v, f, nil, m)
}

// fittingPanel is what the preview will say, in short.
func fittingPanel(v clusters.ClusterView, f changeForm, p clusters.PreviewView) clusterview.ChangePanel {
	m := clusterview.ChangePanel{Check: clusterview.CheckPanel{
		Head: ui.CheckModel{State: ui.CheckFits, Headline: strings.TrimSuffix(p.Summary(), " Changes nothing else.")}, Warnings: p.Warnings,
	}}
	if len(p.Missing) > 0 {
		m.Check.Warnings = append(m.Check.Warnings, "The provider needs "+missingLabels(p.Missing)+" when the preview is applied.")
	}
	if p.Before.Nodes != p.After.Nodes && p.Before.MaxNodes < loom.Unlimited {
		m.Check.Facts = append(m.Check.Facts, ui.Def{Term: "Nodes used", Text: page.UsedOf(p.After.Nodes, p.Before.MaxNodes)})
	}
	if p.Kind == loom.ChangeExpand {
		for _, n := range p.Nodes {
			if n.State == loom.NodePlanned && n.Incarnation == 1 {
				m.Coming = append(m.Coming, clusterview.ComingNode{
					Hostname: ui.NodeNumber(n.Hostname), Services: strings.Join(n.Services, ", "), Hardware: n.HardwareType, Image: n.ImageType})
			}
		}
	} else if p.Kind != loom.ChangeShrink {
		m.Changes = previewChanges(p)
		m.More = max(0, p.ChangeCount-changeLines)
		m.Changes = m.Changes[:min(len(m.Changes), changeLines)]
	}
	return leavingPart(v, f, &p, m)
}

// scaleWithin offers the greatest number of nodes that the quota, this installation and
// the rules of the cluster allow, where more were asked for than the first two do.
// Clashes of rules bring suggestions of their own.
func (s *Server) scaleWithin(ctx context.Context, actor loom.Actor, v clusters.ClusterView, f changeForm, err error, m *clusterview.ChangePanel) error {
	asked, wrong := strconv.Atoi(f.of("numMachines"))
	have := len(placedNodes(v))
	if f.Kind != kindScale || wrong != nil || asked <= have || !errors.Is(err, loom.Exhausted) && !errors.Is(err, loom.Invalid) {
		return nil
	}
	sizes, failed := s.Clusters.Sizes(ctx, actor, v.ID)
	switch {
	case refused(failed):
		return nil // the panel says what is the matter
	case failed != nil:
		return failed
	case sizes.Max > have && sizes.Max < asked:
		n := strconv.Itoa(sizes.Max)
		m.Check.Suggestions = append(m.Check.Suggestions, ui.Suggestion{Label: "Use " + ui.Count(sizes.Max, "node", "nodes"), Name: "numMachines", Value: n})
	case sizes.Max <= have && errors.Is(err, loom.Exhausted):
		m.Check.Head.Note = "No further node can be had now."
	}
	return nil
}
