package web

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/planner"
	"loom/planner/draw"
	"loom/views/clusterview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

func (s *Server) previewShow(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := s.Clusters.PreviewByID(r.Context(), actor, loom.PreviewID(r.PathValue("preview")))
	if errors.Is(err, loom.NotFound) {
		return s.previewGone(w, r, actor)
	}
	if err != nil {
		return err
	}
	m := s.previewModel(r, p)
	onlyChanges(&m, r.URL.Query().Get("only"), route.Preview(p.ID))
	return s.showPreview(w, r, actor, http.StatusOK, m)
}

func (s *Server) previewGone(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page := clusterPage("Preview expired", "Clusters", ui.Crumb{Label: "Preview"})
	return s.render(w, r, actor, http.StatusNotFound, page, clusterview.PreviewGonePage())
}

func (s *Server) showPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m clusterview.PreviewModel) error {
	return s.render(w, r, actor, status, previewFrame(m), clusterview.PreviewPage(m))
}

func previewFrame(m clusterview.PreviewModel) layout.Model {
	return clusterPage(m.Title, "Clusters", ui.Crumb{Label: m.Title})
}

// previewGraph is the plan of a preview as a file.
func (s *Server) previewGraph(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := s.Clusters.PreviewByID(r.Context(), actor, loom.PreviewID(r.PathValue("preview")))
	if err != nil {
		return err
	}
	return sendSVG(w, "preview-"+p.Name, plannedGraph(p))
}

func (s *Server) previewModel(r *http.Request, p lifecycle.PreviewView) clusterview.PreviewModel {
	m := clusterview.PreviewModel{
		ID: p.ID, Name: p.Name, Title: "Preview of " + p.Name, Summary: p.Summary(), Hash: p.Hash, Expires: p.Expires, Now: s.now(),
		Apply: "Create cluster " + p.Name, Busy: "Creating…", EditHref: clusterview.EditURL(p.ID), Warnings: p.Warnings,
		Graph: plannedGraph(p), GraphURL: route.PreviewGraph(p.ID), Stages: plannedStages(p),
	}
	switch p.Kind {
	case loom.PreviewCreate:
		m.Config = configText(p.Config)
	case loom.PreviewDelete:
		m.Title, m.EditHref = "Preview: delete "+p.Name, ""
		m.Apply, m.Busy = "Delete cluster "+p.Name, "Deleting…"
	default:
		m.Title, m.EditHref = fmt.Sprintf("Preview: %s %s", strings.ReplaceAll(string(p.Kind), "_", " "), p.Name), changeURL(p.ID, p.Asked)
		m.Apply, m.Busy = applyWords(p.Kind)+" "+p.Name, "Applying…"
		if p.Config != nil {
			m.Config = configText(p.Config)
		}
	}
	m.Heavy = heavy(p)
	switch {
	case p.Applied.Number > 0:
		m.Applied, m.AppliedHref = fmt.Sprintf("View operation %d", p.Applied.Number), route.Operation(p.Applied)
	case !p.AppliedAt.IsZero():
		m.Applied, m.AppliedHref = "View the cluster", route.Cluster(p.Cluster)
	}
	m.Facts = previewFacts(p)
	if p.Kind == loom.PreviewCreate {
		m.Layout = ui.NewLayoutPicture("layout", p.Layout)
	}
	m.Nodes, m.Services, m.Kept = previewNodes(p), previewServices(p), previewKept(p)
	lines := previewChanges(p)
	m.Changes, m.Link = changeGroups(lines), s.origin(r)+route.Preview(p.ID)
	if wholeCluster(p) { // a line holds the services of its node as well
		m.More = max(0, len(p.Nodes)-len(lines))
	} else {
		m.More = p.ChangeCount - len(lines)
	}
	for _, set := range p.Missing {
		m.Fields = append(m.Fields, providerFields(set, [][]string{slices.Collect(maps.Keys(set))}, nil, ui.FormErrors{})...)
	}
	if len(p.Missing) > 1 {
		for i := range m.Fields {
			m.Fields[i].Optional = true
		}
	}
	return m
}

func previewFacts(p lifecycle.PreviewView) []ui.Def {
	facts := []ui.Def{
		{Term: "Template", Text: p.Template.Name + " " + strconv.Itoa(p.Template.Version)},
		{Term: "Provider", Text: p.Provider.Name},
	}
	// What stays as it is needs no words.
	if p.Before.Nodes != p.After.Nodes {
		facts = append(facts, ui.Def{Term: "Nodes of the tenant", Text: fmt.Sprintf("%d → %s", p.Before.Nodes, usedOf(p.After.Nodes, p.Before.MaxNodes))})
	}
	if p.Before.Clusters != p.After.Clusters {
		facts = append(facts, ui.Def{Term: "Clusters of the tenant", Text: fmt.Sprintf("%d → %s", p.Before.Clusters, usedOf(p.After.Clusters, p.Before.MaxClusters))})
	}
	if p.Kind == loom.PreviewCreate {
		facts = append(facts, ui.Def{Term: "Id", Text: p.Cluster.String(), Mono: true}, ui.Def{Term: "Lease", Text: leaseText(loom.LeaseRule{Initial: p.LeaseMillis})})
	}
	if planner.Undoable(p.Plan.Action) && p.OnFailure != "" {
		facts = append(facts, ui.Def{Term: "If it fails", Text: ifItFails(p)})
	}
	if p.Price != nil {
		facts = append(facts, ui.Def{Term: "Price", Text: priceText(*p.Price)})
	}
	return facts
}

// ifItFails says what becomes of a failure where that can be chosen.
func ifItFails(p lifecycle.PreviewView) string {
	switch {
	case p.OnFailure != loom.OnFailureUndo:
		return "what was done stays, to be looked at"
	case p.Kind == loom.PreviewCreate:
		return "everything is deleted again"
	}
	return "what was done is taken back"
}

// previewChanges are the nodes, each with its services in one line; where nodes
// stay, everything that changes.
func previewChanges(p lifecycle.PreviewView) []ui.ChangeModel {
	if !wholeCluster(p) {
		lines := make([]ui.ChangeModel, len(p.Changes))
		for i, c := range p.Changes {
			lines[i] = ui.ChangeModel{Sign: ui.ChangeSign(c.Change), Object: c.Object, Name: c.Name, Detail: changeDetail(c)}
		}
		return lines
	}
	services := map[int][]string{}
	for _, n := range p.Nodes {
		services[n.Number] = n.Services
	}
	var lines []ui.ChangeModel
	for _, c := range p.Changes {
		if c.Object == "node" {
			lines = append(lines, ui.ChangeModel{Sign: ui.ChangeSign(c.Change), Object: c.Object, Name: c.Name, Detail: strings.Join(services[c.Node], " · ")})
		}
	}
	return lines
}

// wholeCluster says that all nodes come, or all go.
func wholeCluster(p lifecycle.PreviewView) bool {
	return p.Kind == loom.PreviewCreate || p.Kind == loom.PreviewDelete
}

// changeDetail says where a change happens and what it leads from and to.
func changeDetail(c lifecycle.Change) string {
	var parts []string
	if c.Node > 0 && c.Object == "service" {
		parts = append(parts, fmt.Sprintf("node %d", c.Node))
	}
	shown := loom.JSONText
	if c.Object == "service" { // states and versions are words, not JSON
		shown = func(value any) string { return strings.Trim(loom.JSONText(value), `"`) }
	}
	switch {
	case c.Old != nil && c.Object == "service" && shown(c.Old) == shown(c.New):
		parts = append(parts, shown(c.Old)+" already; the action runs again")
	case c.Old != nil && c.New != nil:
		parts = append(parts, shown(c.Old)+" → "+shown(c.New))
	case c.New != nil:
		parts = append(parts, shown(c.New))
	case c.Old != nil:
		parts = append(parts, shown(c.Old))
	}
	if c.Because != "" {
		parts = append(parts, c.Because)
	}
	return strings.Join(parts, " · ")
}

// plannedHosts are the host names of all nodes that a plan is about, those that go
// included.
func plannedHosts(p lifecycle.PreviewView) map[loom.NodeID]string {
	hosts := map[loom.NodeID]string{}
	for _, n := range slices.Concat(p.Nodes, p.Gone) {
		hosts[n.ID] = n.Hostname
	}
	return hosts
}

func plannedGraph(p lifecycle.PreviewView) ui.DAGModel {
	hosts := plannedHosts(p)
	d := draw.Draw(p.Plan, draw.Options{})
	return graphModel(p.Plan, d, graphLabels{
		title: "Plan: " + p.Summary(),
		host:  func(t loom.PlanTask) string { return hosts[t.Node] },
		node:  func(b draw.Box) string { return shortHost(hosts[b.Of.Node]) },
		href: func(tasks []int) string {
			return route.Preview(p.ID) + "#" + clusterview.StageTaskID(strconv.Itoa(tasks[0]))
		},
	})
}

func plannedStages(p lifecycle.PreviewView) []clusterview.Stage {
	hosts := plannedHosts(p)
	stages := make([]clusterview.Stage, p.Plan.Levels())
	for i := range stages {
		stages[i].Number = i + 1
	}
	for _, t := range p.Plan.Tasks {
		stages[t.Level-1].Count++
		stages[t.Level-1].Tasks = append(stages[t.Level-1].Tasks, clusterview.StageTask{
			Number: strconv.Itoa(t.Number), Action: string(t.Action), Service: t.Service, Host: shortHost(hosts[t.Node]), Planned: true, Critical: t.Critical,
		})
	}
	return stages
}
