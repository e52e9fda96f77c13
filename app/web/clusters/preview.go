package clusters

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/planner/draw"
	"loom/views/clusterview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// changeGroups puts changes of the same sort of thing together, in the order in which
// they come first.
func changeGroups(lines []ui.ChangeModel) []clusterview.ChangeGroup {
	var groups []clusterview.ChangeGroup
	at := map[string]int{}
	for _, line := range lines {
		i, there := at[line.Object]
		if !there {
			i = len(groups)
			at[line.Object] = i
			groups = append(groups, clusterview.ChangeGroup{})
		}
		groups[i].Lines = append(groups[i].Lines, line)
	}
	for i, g := range groups {
		what := g.Lines[0].Object
		if len(g.Lines) > 1 {
			what = page.Plural(what)
		}
		groups[i].Title = page.Capital(what) + " (" + strconv.Itoa(len(g.Lines)) + ")"
	}
	return groups
}

// changeSigns are the words of changes in the order of their links.
var changeSigns = []ui.ChangeSign{ui.SignCreate, ui.SignChange, ui.SignRestart, ui.SignReplace, ui.SignRemove, ui.SignKeep}

// onlyChanges leaves out the changes of other signs than only, and offers a link for
// each sign that occurs. What stays is folded unless it was asked for.
func onlyChanges(m *clusterview.PreviewModel, only, page string) {
	counts, all := map[ui.ChangeSign]int{}, 0
	var chosen []ui.ChangeModel
	for _, g := range m.Changes {
		for _, line := range g.Lines {
			counts[line.Sign]++
			all++
			if string(line.Sign) == only {
				chosen = append(chosen, line)
			}
		}
	}
	if m.Kept.Count > 0 {
		counts[ui.SignKeep] = m.Kept.Count
		all += m.Kept.Count
	}
	if len(counts) < 2 {
		return
	}
	none := !slices.Contains(changeSigns, ui.ChangeSign(only)) || counts[ui.ChangeSign(only)] == 0
	m.Only = clusterview.Choices{Label: "Show", Options: []ui.Tab{{Label: "all " + strconv.Itoa(all), Href: page + "#changes", Current: none}}}
	for _, sign := range changeSigns {
		if n := counts[sign]; n > 0 {
			m.Only.Options = append(m.Only.Options, ui.Tab{Label: string(sign) + " " + strconv.Itoa(n), Href: route.Query(page, "only", string(sign)) + "#changes", Current: !none && string(sign) == only})
		}
	}
	if none {
		return
	}
	m.Changes, m.More = changeGroups(chosen), 0
	if m.Kept.Open = only == string(ui.SignKeep); !m.Kept.Open {
		m.Kept = clusterview.KeptChanges{}
	}
}

const (
	// keptShown is how many lines of what stays as it is are listed.
	keptShown = 200
	// movedShown is how many lines of the difference to an earlier preview are listed.
	movedShown = 40
)

// previewPlace is a service on a node, or the node itself where the service is empty.
type previewPlace struct {
	node    loom.NodeID
	service string
}

// previewTouched are the places that the plan, or a line of the changes, is about. Those
// without an action have no task; those of long lists have no line.
func previewTouched(p clusters.PreviewView) map[previewPlace]bool {
	touched, ids := map[previewPlace]bool{}, map[int]loom.NodeID{}
	for _, n := range slices.Concat(p.RemovedNodes, p.Nodes) {
		ids[n.Number] = n.ID
	}
	for _, t := range p.Plan.Tasks {
		touched[previewPlace{t.Node, t.Service}] = true
	}
	for _, c := range p.Changes {
		switch c.Object {
		case "node":
			touched[previewPlace{ids[c.Node], ""}] = true
		case "service":
			touched[previewPlace{ids[c.Node], c.Name}] = true
		}
	}
	return touched
}

// previewKept is what stays as it is: nodes with the services on them that nothing is
// done to, and such services of other nodes. A new or a deleted cluster keeps nothing.
func previewKept(p clusters.PreviewView) clusterview.KeptChanges {
	var m clusterview.KeptChanges
	if wholeCluster(p) {
		return m
	}
	touched := previewTouched(p)
	nodes, services := 0, 0
	for _, n := range p.Nodes {
		var kept []string
		for _, name := range n.Services {
			if !touched[previewPlace{n.ID, name}] {
				kept = append(kept, name)
			}
		}
		line := ui.ChangeModel{Sign: ui.SignKeep, Object: "node", Name: n.Hostname, Detail: strings.Join(kept, " · ")}
		if touched[previewPlace{n.ID, ""}] {
			if len(kept) == 0 {
				continue
			}
			line.Object, line.Name, line.Detail = "service", strings.Join(kept, ", "), "node "+strconv.Itoa(n.Number)
		} else {
			nodes++
		}
		services += len(kept)
		if len(m.Lines) < keptShown {
			m.Lines = append(m.Lines, line)
		} else {
			m.More++
		}
	}
	m.Count = len(m.Lines) + m.More
	var parts []string
	if nodes > 0 {
		parts = append(parts, ui.Count(nodes, "node", "nodes"))
	}
	if services > 0 {
		parts = append(parts, ui.Count(services, "service on them", "services on them"))
	}
	m.Text = strings.Join(parts, " and ")
	if services > 0 && nodes == 0 {
		m.Text = ui.Count(services, "service", "services")
	}
	return m
}

// previewNodes are the machines, those that go included. What becomes of each is said
// where not all fare alike.
func previewNodes(p clusters.PreviewView) []clusterview.PreviewNode {
	words := map[int]ui.ChangeSign{}
	for _, c := range p.Changes {
		if c.Object == "node" {
			words[c.Node] = ui.ChangeSign(c.Change)
		}
	}
	alike := wholeCluster(p)
	all := slices.Concat(p.Nodes, p.RemovedNodes)
	slices.SortStableFunc(all, func(a, b loom.Node) int { return a.Number - b.Number })
	out := make([]clusterview.PreviewNode, len(all))
	for i, n := range all {
		out[i] = clusterview.PreviewNode{
			Hostname: n.Hostname, Services: strings.Join(n.Services, ", "), Hardware: n.HardwareType + " → " + n.Flavor, Image: n.ImageType + " → " + n.Image, Provider: p.Provider.Name,
		}
		if !alike {
			out[i].Sign = ui.SignKeep
			if word := words[n.Number]; word != "" {
				out[i].Sign = word
			}
		}
	}
	return out
}

// previewServices are the services with what is done for each, in the order of the plan,
// and on how many nodes where that is not on all of them.
func previewServices(p clusters.PreviewView) []clusterview.PreviewService {
	type step struct{ service, words string }
	on, steps, times := map[string]int{}, map[string][]string{}, map[step]int{}
	for _, n := range p.Nodes {
		for _, name := range n.Services {
			on[name]++
		}
	}
	tasks := slices.Clone(p.Plan.Tasks)
	slices.SortStableFunc(tasks, func(a, b loom.PlanTask) int { return a.Level - b.Level })
	for _, t := range tasks {
		if t.Service == "" {
			continue
		}
		if _, there := on[t.Service]; !there {
			on[t.Service] = 0
		}
		at := step{t.Service, stepText(t.Action, "", t.Undo)}
		if times[at]++; times[at] == 1 {
			steps[t.Service] = append(steps[t.Service], at.words)
		}
	}
	out := make([]clusterview.PreviewService, 0, len(on))
	for _, name := range slices.Sorted(maps.Keys(on)) {
		words := steps[name]
		for i, w := range words {
			if n := times[step{name, w}]; n != on[name] {
				words[i] = w + " on " + ui.Count(n, "node", "nodes")
			}
		}
		out = append(out, clusterview.PreviewService{Name: name, Nodes: on[name], Steps: strings.Join(words, ", ")})
	}
	return out
}

// previewMoved is what a fresh preview shows otherwise than the one it takes the place
// of: facts, config, and lines of the changes.
func previewMoved(old, fresh clusters.PreviewView) []ui.ChangeModel {
	var lines []ui.ChangeModel
	was := map[string]string{}
	for _, d := range previewFacts(old) {
		was[d.Term] = d.Text
	}
	for _, d := range previewFacts(fresh) {
		if had, there := was[d.Term]; d.Term != "Id" && (!there || had != d.Text) {
			lines = append(lines, ui.ChangeModel{Sign: ui.SignChange, Name: d.Term, Old: had, New: d.Text})
		}
	}
	if a, b := planText(old), planText(fresh); a != b {
		lines = append(lines, ui.ChangeModel{Sign: ui.SignChange, Name: "Plan", Old: a, New: b})
	}
	lines = append(lines, newConfigDiffs("config", movedShown).of(old.Config, fresh.Config).Rows...)
	lines = append(lines, movedLines(comparedChanges(old), comparedChanges(fresh))...)
	return lines[:min(len(lines), movedShown)]
}

// comparedChanges are the changes as two previews can be compared: host names of a new
// cluster begin with its id, which is another in each preview.
func comparedChanges(p clusters.PreviewView) []ui.ChangeModel {
	if p.Kind != loom.ChangeCreate {
		return previewChanges(p)
	}
	lines := make([]ui.ChangeModel, len(p.Nodes))
	for i, n := range p.Nodes {
		lines[i] = ui.ChangeModel{Sign: ui.SignCreate, Object: "node", Name: strconv.Itoa(n.Number), Detail: strings.Join(append(slices.Clone(n.Services), n.Flavor, n.Image), " · ")}
	}
	return lines
}

// movedLines pairs the lines of two previews that are about the same and differ; one
// that only one of them has stands alone.
func movedLines(before, after []ui.ChangeModel) []ui.ChangeModel {
	same := map[ui.ChangeModel]int{}
	for _, c := range before {
		same[c]++
	}
	after = slices.DeleteFunc(after, func(c ui.ChangeModel) bool { same[c]--; return same[c] >= 0 })
	var lines []ui.ChangeModel
	add := func(c ui.ChangeModel) *ui.ChangeModel {
		lines = append(lines, ui.ChangeModel{Sign: ui.SignChange, Object: c.Object, Name: c.Name})
		return &lines[len(lines)-1]
	}
	words := func(c ui.ChangeModel) string {
		return strings.TrimSuffix(string(c.Sign)+" · "+c.Detail, " · ")
	}
	for _, c := range after {
		add(c).New = words(c)
	}
	for _, c := range before {
		if same[c] <= 0 {
			continue
		}
		same[c]--
		at := slices.IndexFunc(lines, func(l ui.ChangeModel) bool { return l.Object == c.Object && l.Name == c.Name && l.Old == "" })
		if at < 0 {
			add(c).Old = words(c)
		} else {
			lines[at].Old = words(c)
		}
	}
	return lines
}

func planText(p clusters.PreviewView) string {
	return ui.Count(len(p.Plan.Tasks), "task", "tasks") + " in " + ui.Count(p.Plan.Levels(), "stage", "stages")
}

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
	return s.Render(w, r, actor, http.StatusNotFound, page, clusterview.PreviewGonePage())
}

func (s *Server) showPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m clusterview.PreviewModel) error {
	return s.Render(w, r, actor, status, previewFrame(m), clusterview.PreviewPage(m))
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

func (s *Server) previewModel(r *http.Request, p clusters.PreviewView) clusterview.PreviewModel {
	m := clusterview.PreviewModel{
		ID: p.ID, Name: p.Name, Title: "Preview of " + p.Name, Summary: p.Summary(), Hash: p.Hash, Expires: p.Expires, Now: s.Now(),
		Apply: "Create cluster " + p.Name, Busy: "Creating…", EditHref: clusterview.EditURL(p.ID), Warnings: p.Warnings,
		Graph: plannedGraph(p), GraphURL: route.PreviewGraph(p.ID), Stages: plannedStages(p),
	}
	switch p.Kind {
	case loom.ChangeCreate:
		m.Config = configText(p.Config)
	case loom.ChangeDelete:
		m.Title, m.EditHref = "Preview: delete "+p.Name, ""
		m.Apply, m.Busy = "Delete cluster "+p.Name, "Deleting…"
	default:
		m.Title, m.EditHref = fmt.Sprintf("Preview: %s %s", strings.ReplaceAll(string(p.Kind), "_", " "), p.Name), changeURL(p.ID, p.Request)
		m.Apply, m.Busy = p.Kind.ApplyWords()+" "+p.Name, "Applying…"
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
	if p.Kind == loom.ChangeCreate {
		m.Layout = ui.NewLayoutPicture("layout", p.Layout)
	}
	m.Nodes, m.Services, m.Kept = previewNodes(p), previewServices(p), previewKept(p)
	lines := previewChanges(p)
	m.Changes, m.Link = changeGroups(lines), s.Origin(r)+route.Preview(p.ID)
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

func previewFacts(p clusters.PreviewView) []ui.Def {
	facts := []ui.Def{
		{Term: "Template", Text: p.Template.Name + " " + strconv.Itoa(p.Template.Version)},
		{Term: "Provider", Text: p.Provider.Name},
	}
	// What stays as it is needs no words.
	if p.Before.Nodes != p.After.Nodes {
		facts = append(facts, ui.Def{Term: "Nodes of the tenant", Text: fmt.Sprintf("%d → %s", p.Before.Nodes, page.UsedOf(p.After.Nodes, p.Before.MaxNodes))})
	}
	if p.Before.Clusters != p.After.Clusters {
		facts = append(facts, ui.Def{Term: "Clusters of the tenant", Text: fmt.Sprintf("%d → %s", p.Before.Clusters, page.UsedOf(p.After.Clusters, p.Before.MaxClusters))})
	}
	if p.Kind == loom.ChangeCreate {
		facts = append(facts, ui.Def{Term: "Id", Text: p.Cluster.String(), Mono: true}, ui.Def{Term: "Lease", Text: page.LeaseText(loom.LeaseRule{Initial: p.LeaseMillis})})
	}
	if p.Plan.Action.Undoable() && p.OnFailure != "" {
		facts = append(facts, ui.Def{Term: "If it fails", Text: ifItFails(p)})
	}
	if p.Price != nil {
		facts = append(facts, ui.Def{Term: "Price", Text: priceText(*p.Price)})
	}
	return facts
}

// ifItFails says what becomes of a failure where that can be chosen.
func ifItFails(p clusters.PreviewView) string {
	switch {
	case p.OnFailure != loom.OnFailureUndo:
		return "what was done stays, to be looked at"
	case p.Kind == loom.ChangeCreate:
		return "everything is deleted again"
	}
	return "what was done is taken back"
}

// previewChanges are the nodes, each with its services in one line; where nodes
// stay, everything that changes.
func previewChanges(p clusters.PreviewView) []ui.ChangeModel {
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
func wholeCluster(p clusters.PreviewView) bool {
	return p.Kind == loom.ChangeCreate || p.Kind == loom.ChangeDelete
}

// changeDetail says where a change happens and what it leads from and to.
func changeDetail(c clusters.ChangeLine) string {
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
func plannedHosts(p clusters.PreviewView) map[loom.NodeID]string {
	hosts := map[loom.NodeID]string{}
	for _, n := range slices.Concat(p.Nodes, p.RemovedNodes) {
		hosts[n.ID] = n.Hostname
	}
	return hosts
}

func plannedGraph(p clusters.PreviewView) ui.DAGModel {
	hosts := plannedHosts(p)
	d := draw.Draw(p.Plan, draw.Options{})
	return graphModel(p.Plan, d, graphLabels{
		title: "Plan: " + p.Summary(),
		host:  func(t loom.PlanTask) string { return hosts[t.Node] },
		node:  func(b draw.Box) string { return page.ShortHost(hosts[b.Of.Node]) },
		href: func(tasks []int) string {
			return route.Preview(p.ID) + "#" + clusterview.StageTaskID(strconv.Itoa(tasks[0]))
		},
	})
}

func plannedStages(p clusters.PreviewView) []clusterview.Stage {
	hosts := plannedHosts(p)
	stages := make([]clusterview.Stage, p.Plan.Levels())
	for i := range stages {
		stages[i].Number = i + 1
	}
	for _, t := range p.Plan.Tasks {
		stages[t.Level-1].Count++
		stages[t.Level-1].Tasks = append(stages[t.Level-1].Tasks, clusterview.StageTask{
			Number: strconv.Itoa(t.Number), Action: string(t.Action), Service: t.Service, Host: page.ShortHost(hosts[t.Node]), Planned: true, Critical: t.Critical,
		})
	}
	return stages
}
