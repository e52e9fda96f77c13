package clusters

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/planner/draw"
	"loom/views/clusterview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// signOrder is the order in which effects are shown: what goes first.
var signOrder = []ui.ChangeSign{ui.SignRemove, ui.SignReplace, ui.SignCreate, ui.SignChange, ui.SignRestart}

// effectNumbers is how many node numbers a line shows before it folds the others.
const effectNumbers = 10

// previewEffects are what applying changes, alike things in one line.
func previewEffects(p clusters.PreviewView) []clusterview.EffectGroup {
	type key struct{ sign, object, text, detail string }
	type effect struct {
		key
		nodes []int
	}
	nodes := map[int]*loom.Node{}
	for _, all := range [][]loom.Node{p.Nodes, p.RemovedNodes} {
		for i := range all {
			nodes[all[i].Number] = &all[i]
		}
	}
	changes := p.Changes
	if wholeCluster(p) { // of the nodes, which have all of it
		word := ui.SignCreate
		if p.Kind == loom.ChangeDelete {
			word = ui.SignRemove
		}
		changes = nil
		for _, n := range p.Nodes {
			changes = append(changes, clusters.ChangeLine{Change: string(word), Object: "node", Node: n.Number})
		}
	}
	var order []key
	found := map[key]*effect{}
	whole := map[int]string{} // what becomes of nodes with all that is on them
	for _, c := range changes {
		if sign := ui.ChangeSign(c.Change); c.Object == "node" && (sign == ui.SignCreate || sign == ui.SignRemove) {
			whole[c.Node] = c.Change
		}
	}
	for _, c := range changes {
		if c.Object == "service" && whole[c.Node] == c.Change {
			continue
		}
		k := key{sign: c.Change, object: c.Object, text: c.Name}
		node := c.Node
		c.Node = 0
		switch n := nodes[node]; {
		case c.Object == "node" && n != nil:
			k.text = cmp.Or(strings.Join(n.Services, ", "), "no services")
			k.detail = n.HardwareType
			if c.Because != "" {
				k.detail += " · " + c.Because
			}
		default:
			k.detail = changeDetail(c)
		}
		e := found[k]
		if e == nil {
			e = &effect{key: k}
			found[k] = e
			order = append(order, k)
		}
		if node > 0 {
			e.nodes = append(e.nodes, node)
		}
	}
	var groups []clusterview.EffectGroup
	for _, sign := range signOrder {
		at := map[string]int{}
		counts := map[string]int{}
		for _, k := range order {
			if k.sign != string(sign) {
				continue
			}
			e := found[k]
			i, there := at[k.object]
			if !there {
				i = len(groups)
				at[k.object] = i
				groups = append(groups, clusterview.EffectGroup{Sign: sign})
			}
			counts[k.object] += max(1, len(e.nodes))
			if k.object != "node" {
				counts[k.object] = len(groups[i].Lines) + 1
			}
			groups[i].Text = ui.Count(counts[k.object], k.object, page.Plural(k.object))
			line := clusterview.Effect{Text: k.text, Detail: k.detail}
			if k.object == "node" {
				line.Text = strconv.Itoa(len(e.nodes)) + " × " + k.text
			}
			line.Nodes, line.MoreNodes = nodeNumbers(e.nodes)
			groups[i].Lines = append(groups[i].Lines, line)
		}
	}
	return groups
}

// nodeNumbers are the numbers of nodes, those above effectNumbers apart.
func nodeNumbers(nodes []int) (first, rest string) {
	if len(nodes) == 0 {
		return "", ""
	}
	text := func(nodes []int) string {
		words := make([]string, len(nodes))
		for i, n := range nodes {
			words[i] = strconv.Itoa(n)
		}
		return strings.Join(words, ", ")
	}
	word := "nodes "
	if len(nodes) == 1 {
		word = "node "
	}
	if len(nodes) <= effectNumbers {
		return word + text(nodes), ""
	}
	return "", word + text(nodes)
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
		line := ui.ChangeModel{Sign: ui.SignKeep, Object: "node", Name: ui.NodeNumber(n.Hostname), Detail: strings.Join(kept, " · ")}
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

// previewMoved is what a fresh preview shows otherwise than the one it takes the place
// of: facts, config, and lines of the changes.
func previewMoved(old, fresh clusters.PreviewView) []ui.ChangeModel {
	var lines []ui.ChangeModel
	was := map[string]string{}
	for _, d := range previewFacts(old) {
		was[d.Term] = d.Text
	}
	for _, d := range previewFacts(fresh) {
		if had, there := was[d.Term]; !there || had != d.Text {
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
	return s.showPreview(w, r, actor, http.StatusOK, s.previewModel(r, p))
}

func (s *Server) previewGone(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page := clusterPage("Preview expired", "Clusters", ui.Crumb{Label: "Preview"})
	return s.Render(w, r, actor, http.StatusNotFound, page, clusterview.PreviewGonePage())
}

func (s *Server) showPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m clusterview.PreviewModel) error {
	if page.Wants(r, page.DialogID) {
		return s.Fragment(w, r, status, clusterview.PreviewDialog(m))
	}
	return s.Render(w, r, actor, status, previewFrame(m), clusterview.PreviewPage(m))
}

func previewFrame(m clusterview.PreviewModel) layout.Model {
	crumbs := []ui.Crumb{{Label: m.Title}}
	if m.Kind != loom.ChangeCreate {
		crumbs = []ui.Crumb{{Label: m.Name, Href: route.Cluster(m.Cluster)}, {Label: m.Title}}
	}
	return clusterPage(m.Title, "Clusters", crumbs...)
}

// previewGraph is the plan of a preview as a file.
func (s *Server) previewGraph(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := s.Clusters.PreviewByID(r.Context(), actor, loom.PreviewID(r.PathValue("preview")))
	if err != nil {
		return err
	}
	graphs := plannedGraphs(p)
	if len(graphs) == 0 {
		return nothingDrawn()
	}
	return sendSVG(w, "preview-"+p.Name, graphs[0])
}

func (s *Server) previewModel(r *http.Request, p clusters.PreviewView) clusterview.PreviewModel {
	m := clusterview.PreviewModel{
		PreviewView: p, Title: "Create " + p.Name + "?", Apply: "Create " + p.Name, Busy: "Creating…", EditHref: clusterview.EditURL(p.ID),
		Runs: planText(p), Graphs: plannedGraphs(p), Stages: plannedStages(p),
	}
	switch p.Kind {
	case loom.ChangeCreate:
		m.JSON = configText(p.Config)
	case loom.ChangeDelete:
		m.Title, m.EditHref = "Delete "+p.Name+"?", ""
		m.Apply, m.Busy = "Delete "+p.Name, "Deleting…"
	default:
		title := p.Kind.Change().Title + " " + p.Name
		m.Title, m.EditHref = title+"?", changeURL(p.ID, p.Request)
		m.Apply, m.Busy = title, "Applying…"
		if p.Config != nil {
			m.JSON = configText(p.Config)
		}
	}
	m.Heavy, m.Harmful = heavy(p), harmful(p)
	m.Facts = previewFacts(p)
	m.Effects, m.Kept, m.Link = previewEffects(p), previewKept(p), s.Origin(r)+route.Preview(p.ID)
	if !wholeCluster(p) {
		m.More = p.ChangeCount - len(p.Changes)
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
	var facts []ui.Def
	if p.Known {
		facts = append(facts, ui.Def{Term: "Takes", Text: "about " + ui.Duration(max(p.Expected.Round(time.Second), time.Second))})
	}
	if p.Price != nil {
		facts = append(facts, ui.Def{Term: "Price", Text: priceText(*p.Price)})
	}
	// What stays the same needs no words, nor what has no limit.
	if more := p.After.Nodes - p.Before.Nodes; more != 0 && !wholeCluster(p) {
		facts = append(facts, ui.Def{Term: "Nodes", Text: strconv.Itoa(len(p.Nodes)-more) + " → " + ui.Count(len(p.Nodes), "node", "nodes")})
	}
	if p.Before.Nodes != p.After.Nodes && p.Before.MaxNodes < loom.Unlimited {
		facts = append(facts, ui.Def{Term: "Quota of nodes", Text: quotaText(p.Before.Nodes, p.After.Nodes, p.Before.MaxNodes, "nodes used")})
	}
	if p.Before.Clusters != p.After.Clusters && p.Before.MaxClusters < loom.Unlimited {
		facts = append(facts, ui.Def{Term: "Quota of clusters", Text: quotaText(p.Before.Clusters, p.After.Clusters, p.Before.MaxClusters, "clusters used")})
	}
	facts = append(facts, ui.Def{Term: "Template", Text: clusterview.TemplateText(p.Template)}, ui.Def{Term: "Provider", Text: p.Provider.Name})
	if p.Kind == loom.ChangeCreate {
		facts = append(facts, ui.Def{Term: "Lease", Text: page.LeaseText(loom.LeaseRule{Initial: p.LeaseMillis})})
	}
	if p.Plan.Action.Undoable() && p.OnFailure != "" {
		facts = append(facts, ui.Def{Term: "On failure", Text: ifItFails(p)})
	}
	return facts
}

// quotaText is how much of a quota of the tenant is used before and after: "5 → 8 of 20 nodes".
func quotaText(before, after, most int, word string) string {
	return strconv.Itoa(before) + " → " + strconv.Itoa(after) + " of " + strconv.Itoa(most) + " " + word
}

// ifItFails says what becomes of a failure where that can be chosen.
func ifItFails(p clusters.PreviewView) string {
	switch {
	case p.OnFailure != loom.OnFailureUndo:
		return "kept for inspection if it fails"
	case p.Kind == loom.ChangeCreate:
		return "deleted if it fails"
	}
	return "undone if it fails"
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

// plannedGraphs are pictures of the plan, the widest first, none of a plan without tasks.
func plannedGraphs(p clusters.PreviewView) []ui.DAGModel {
	hosts := plannedHosts(p)
	labels := graphLabels{
		title: "Plan: " + p.Summary(),
		host:  func(t loom.PlanTask) string { return hosts[t.Node] },
		node:  func(b draw.Box) string { return ui.NodeNumber(hosts[b.Of.Node]) },
		href: func(tasks []int) string {
			at := ""
			if p.ID != "" {
				at = route.Preview(p.ID)
			}
			return at + "#" + clusterview.StageTaskID(tasks[0])
		},
	}
	all, _, _ := pictures(p.Plan, draw.Options{}, func(d draw.Drawing) ui.DAGModel { return graphModel(p.Plan, d, labels) })
	return all
}

func plannedStages(p clusters.PreviewView) []clusterview.Stage {
	hosts := plannedHosts(p)
	stages := make([]clusterview.Stage, p.Plan.Levels())
	for i := range stages {
		stages[i].Number = i + 1
	}
	for _, t := range p.Plan.Tasks {
		stages[t.Level-1].Count++
		stages[t.Level-1].Tasks = append(stages[t.Level-1].Tasks, loom.Task{Ref: loom.TaskRef{Number: t.Number}, Action: t.Action, Service: t.Service, NodeHostname: hosts[t.Node], Critical: t.Critical})
	}
	return stages
}
