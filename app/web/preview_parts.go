package web

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/ui"
)

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
func previewTouched(p lifecycle.PreviewView) map[previewPlace]bool {
	touched, ids := map[previewPlace]bool{}, map[int]loom.NodeID{}
	for _, n := range slices.Concat(p.Gone, p.Nodes) {
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
func previewKept(p lifecycle.PreviewView) clusterview.KeptChanges {
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
func previewNodes(p lifecycle.PreviewView) []clusterview.PreviewNode {
	words := map[int]ui.ChangeSign{}
	for _, c := range p.Changes {
		if c.Object == "node" {
			words[c.Node] = ui.ChangeSign(c.Change)
		}
	}
	alike := wholeCluster(p)
	all := slices.Concat(p.Nodes, p.Gone)
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
func previewServices(p lifecycle.PreviewView) []clusterview.PreviewService {
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
func previewMoved(old, fresh lifecycle.PreviewView) []ui.ChangeModel {
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
func comparedChanges(p lifecycle.PreviewView) []ui.ChangeModel {
	if p.Kind != loom.PreviewCreate {
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

func planText(p lifecycle.PreviewView) string {
	return ui.Count(len(p.Plan.Tasks), "task", "tasks") + " in " + ui.Count(p.Plan.Levels(), "stage", "stages")
}
