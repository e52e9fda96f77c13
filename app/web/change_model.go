package web

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// changePage is what the form of a kind says and asks for.
type changePage struct {
	lead, lost string
	// live has the answer follow the form as it is filled in.
	live bool
	// parts makes the controls. A text instead of them says why there is nothing to do.
	parts func(s *Server, ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error)
}

// lostWarning is said where machines are taken away or made anew.
const lostWarning = "What is on the disks of these machines is lost."

var changePages map[loom.PreviewKind]changePage

func init() { // a literal would refer to itself
	changePages = map[loom.PreviewKind]changePage{
		kindScale:                  {lead: "More nodes get the services that the template’s rules prefer; the present ones stay as they are. Fewer: you choose which ones leave.", live: true, parts: (*Server).scaleParts},
		loom.PreviewConfigure:      {lead: "What stands in the field becomes the config. Services are configured again with it.", live: true, parts: (*Server).configureParts},
		loom.PreviewAddServices:    {lead: "The services are put on nodes that are there, as the template’s rules say. Nothing moves, and no machine is made.", live: true, parts: (*Server).addParts},
		loom.PreviewRemoveServices: {lead: "The services are stopped and removed from all nodes. A service without a remove action leaves its files; the config stays.", live: true, parts: (*Server).removeParts},
		loom.PreviewStart:          {lead: "Each service is started after those that it needs; the preview names them all."},
		loom.PreviewStop:           {lead: "Each service is stopped after those that need it; the preview names them all."},
		loom.PreviewRestart:        {lead: "Each service is stopped after those that need it and started before them; the preview names them all."},
		loom.PreviewUpgrade:        {lead: "The newest versions of services and of their files replace those of the cluster, a few nodes at a time: stop, install, configure, start. New labels and descriptions alone change nothing.", live: true, parts: (*Server).upgradeParts},
		loom.PreviewResize:         {lead: "Machines of the new type take the place of the old ones, a few at a time. Numbers and host names stay.", lost: lostWarning, live: true, parts: (*Server).resizeParts},
		loom.PreviewRepair:         {lead: "The machine is deleted, or found to be gone, and made anew with its number, host name and services.", lost: lostWarning, live: true, parts: (*Server).repairParts},
		loom.PreviewRollback:       {lead: "This leads back to the nodes, services, versions and config from before the operation. Machines that it made are deleted; what is on the disks of others stays as it is."},
		loom.PreviewRetry:          {lead: "The tasks that are not complete run again. What finished stays finished, unless you change it here.", live: true, parts: (*Server).retryParts},
		loom.PreviewSync:           {lead: "The cluster’s copy of its template becomes the newest version. Nothing changes on its machines; later operations follow the new rules."},
	}
}

// changeModel makes the form without its panel.
func (s *Server) changeModel(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, f changeForm, errs ui.FormErrors) (clusterview.ChangeModel, error) {
	page, known := changePages[f.Kind]
	if !known {
		return clusterview.ChangeModel{}, loom.NewError(loom.NotFound, "There is no form for “%.40s”.", f.Kind)
	}
	m := clusterview.ChangeModel{
		Cluster: v.ID, Name: v.Name, Title: changeTitle(v, f), Lead: page.lead, Lost: page.lost, Errors: errs, Live: page.live,
		Back: route.Cluster(v.ID), WhyNot: v.Allowed[f.verb()],
	}
	for _, h := range []clusterview.HiddenField{{Name: "kind", Value: string(f.Kind)}, {Name: "cluster", Value: v.ID.String()}, {Name: "service", Value: f.Service}, {Name: "operation", Value: f.Operation}, {Name: "revision", Value: f.Revision}} {
		if h.Value != "" {
			m.Hidden = append(m.Hidden, h)
		}
	}
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

func changeTitle(v lifecycle.ClusterView, f changeForm) string {
	words := kindWords[f.Kind].title
	switch {
	case f.Kind == kindScale:
		words = "Scale"
	case f.Revision != "":
		return "Restore config " + f.Revision + " of " + v.Name
	case f.Service != "":
		return capital(string(f.Kind)) + " " + f.Service + " of " + v.Name
	case f.Kind == loom.PreviewRetry:
		return "Retry operation " + f.Operation + " of " + v.Name
	case f.Kind == loom.PreviewRollback:
		return "Roll back operation " + f.Operation + " of " + v.Name
	}
	return words + " " + v.Name
}

func (s *Server) scaleParts(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	sizes, err := s.Clusters.Sizes(ctx, actor, v.ID)
	if err != nil {
		return nil, "", err
	}
	have := len(placedNodes(v))
	if f.Machines == "" {
		f.Machines = fmt.Sprint(have)
	}
	field := ui.FieldModel{Name: "numMachines", Label: "Number of nodes", Kind: ui.FieldNumber, Value: f.Machines, Min: "1", Error: errs.For("numMachines"),
		Help: fmt.Sprintf("The cluster has %d. It works with %s.", have, nodesRange(sizes.Min, sizes.Max)), Autofocus: true}
	if why := v.Allowed[loom.VerbShrink]; why != "" {
		field.Help += " Fewer is not possible: " + why
	}
	return []clusterview.FormPart{{Field: &field}, policyPart(v, f, errs)}, "", nil
}

// leavingPart lists the nodes of which some go, once a number below the present one is
// asked for. Of a preview they are those that it takes, else those that were ticked.
func leavingPart(v lifecycle.ClusterView, f changeForm, p *lifecycle.PreviewView, m clusterview.ChangePanel) clusterview.ChangePanel {
	total, have := 0, len(placedNodes(v))
	if v.Allowed[loom.VerbShrink] != "" {
		return m
	}
	if _, err := fmt.Sscanf(f.Machines, "%d", &total); f.Kind != kindScale || err != nil || total < 1 || total >= have && !f.named() {
		return m
	}
	ticked := f.Nodes
	if f.For != f.Machines {
		ticked = nil
	}
	if p != nil {
		ticked = nil
		for _, n := range p.Gone {
			ticked = append(ticked, string(n.ID))
		}
	}
	m.For = f.Machines
	m.Leaving = &ui.ChoiceModel{Name: "nodes", Legend: "Nodes that leave", Help: "The ticked ones go; tick others instead if you like. " + lostWarning}
	for _, n := range removable(v) {
		c := ui.Choice{Value: string(n.ID), Label: shortHost(n.Hostname), Description: strings.Join(n.Services, ", "), Checked: slices.Contains(ticked, string(n.ID))}
		if n.Leaving {
			c.Facts = []string{"on its way out already"}
		}
		m.Leaving.Choices = append(m.Leaving.Choices, c)
	}
	m.Dead = deadPart(v, f, ticked)
	return m
}

// deadPart asks which of the nodes that leave do not answer; nil where none leaves.
func deadPart(v lifecycle.ClusterView, f changeForm, leaving []string) *ui.ChoiceModel {
	m := &ui.ChoiceModel{Name: "dead", Legend: "Machines that do not answer", Optional: true,
		Help: "Nothing is stopped on the ticked ones; their machines are only deleted."}
	for _, n := range removable(v) {
		if id := string(n.ID); slices.Contains(leaving, id) {
			c := ui.Choice{Value: id, Label: shortHost(n.Hostname), Checked: slices.Contains(f.Dead, id)}
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
	part := clusterview.FormPart{Fold: "Advanced", Open: f.OnFailure != ""}
	for _, field := range fields {
		part.Open = part.Open || errs.For(field.Name) != ""
		part.More = append(part.More, clusterview.FormPart{Field: &field})
	}
	return part
}

// policyPart hides what a failure does.
func policyPart(v lifecycle.ClusterView, f changeForm, errs ui.FormErrors) clusterview.FormPart {
	return folded(f, errs, failureField("If it fails", f.OnFailure, v.Template.Administration.OnFailure, errs))
}

// failureField chooses what becomes of a failure; usual is what the template says.
func failureField(label, chosen, usual string, errs ui.FormErrors) ui.FieldModel {
	return ui.FieldModel{Name: "onFailure", Label: label, Kind: ui.FieldSelect, Optional: true, Error: errs.For("onFailure"), Options: []ui.Option{
		{Value: "", Label: "as the template says (" + usualPolicy(usual) + ")", Selected: chosen == ""},
		{Value: loom.OnFailureKeep, Label: "keep what was done, to look at it", Selected: chosen == loom.OnFailureKeep},
		{Value: loom.OnFailureUndo, Label: "take back what was done", Selected: chosen == loom.OnFailureUndo},
	}}
}

func (s *Server) configureParts(_ context.Context, _ loom.Actor, v lifecycle.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	restart := ui.FieldModel{Name: "restart", Label: "Restart the services as well", Kind: ui.FieldCheckbox, Checked: f.Restart,
		Help: "Otherwise they are configured while they run, and many read their settings only when they start." + restartable(v)}
	if f.Revision != "" {
		config := ui.FieldModel{ID: "f-revision", Name: "revision", Label: "Config", Value: "config " + f.Revision, Error: errs.For("revision"),
			LockedWhy: "The cluster has had it before. All of it takes the place of the present config, hidden values as well."}
		return []clusterview.FormPart{{Field: &config}, {Field: &restart}}, "", nil
	}
	if f.Config == "" {
		shown, _ := loom.MaskSecrets(v.Config).(map[string]any)
		f.Config = configText(shown)
	}
	config := configField(f.Config, errs)
	config.Optional, config.Rows = false, 18
	config.Help += " Hidden values stay as they are while they are left as " + loom.Redacted + "."
	return []clusterview.FormPart{{Facts: fixedFacts(v)}, {Field: &config}, {Field: &restart}}, "", nil
}

func (s *Server) repairParts(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, f changeForm, errs ui.FormErrors) ([]clusterview.FormPart, string, error) {
	failed, err := s.failures(ctx, actor, v)
	if err != nil {
		return nil, "", err
	}
	picker := ui.ChoiceModel{Name: "nodes", Legend: "Nodes", Filter: "Filter nodes", Error: errs.For("nodes")}
	for _, n := range v.Nodes {
		c := ui.Choice{Value: string(n.ID), Label: shortHost(n.Hostname), Description: strings.Join(n.Services, ", "),
			Facts: []string{strings.ToLower(standingOf(v, &n).state().Word)}, Checked: slices.Contains(f.Nodes, string(n.ID))}
		if n.Leaving {
			c.Facts = append(c.Facts, "leaving; a repair keeps it")
		}
		if task, is := failed[n.ID]; is {
			c.Facts = append(c.Facts, fmt.Sprintf("task %d, %s, failed: %s", task.Ref.Number, task.Action, task.Message))
		}
		picker.Choices = append(picker.Choices, c)
	}
	if len(picker.Choices) == 0 {
		return nil, "The cluster has no nodes to repair.", nil
	}
	return []clusterview.FormPart{{Picker: &picker}}, "", nil
}

// failures are the tasks that failed in the newest operation, by node: the first of each.
// They tell which machine may be broken while its node has reached its state.
func (s *Server) failures(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView) (map[loom.NodeID]loom.Task, error) {
	if v.LatestOperation == 0 {
		return nil, nil
	}
	ref := loom.OperationRef{Cluster: v.ID, Number: v.LatestOperation}
	tasks, err := s.Clusters.Tasks(ctx, actor, ref, lifecycle.TaskFilter{Statuses: []loom.TaskStatus{loom.TaskFailed}})
	failed := make(map[loom.NodeID]loom.Task, len(tasks))
	for _, t := range slices.Backward(tasks) {
		failed[t.Node] = t
	}
	return failed, err
}
