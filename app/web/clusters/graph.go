package clusters

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/planner/draw"
	"loom/views/ui"
)

// graphLabels is what a picture says that the plan does not know.
type graphLabels struct {
	title string
	host  func(t loom.PlanTask) string
	// node names the node of a box that stands for all its tasks of a stage.
	node func(b draw.Box) string
	// href leads to the tasks of a box: one, or those of a group.
	href func(tasks []int) string
	// state is nil for a plan that does not run yet.
	state func(task int) ui.State
	// tasksIn leads to the tasks of a group's box, nil where the stages list them.
	tasksIn func(b draw.Box) string
}

var plannedState = ui.State{Word: "Planned", Icon: "circle", Tone: ui.ToneIdle}

// pictures draws a plan as the options say, and grouped by action where that is needed to fit
// narrow windows. grouped says that the first one is grouped, note why it is not as the options
// say.
func pictures(plan loom.Plan, o draw.Options, model func(d draw.Drawing) ui.DAGModel) (all []ui.DAGModel, grouped bool, note string) {
	least := draw.Options{Grouping: draw.Always, Only: o.Only}
	d := draw.Draw(plan, o)
	if len(d.Boxes) == 0 {
		return nil, d.Grouped, ""
	}
	if d.Width > ui.WidestDAG {
		d, o = draw.Draw(plan, least), least
		d.Capped = true
	}
	if d.Capped {
		note = "Grouped by action: one box for each task would not fit."
	}
	all = append(all, model(d))
	if narrow := draw.Draw(plan, least); all[0].Fits() != ui.FitsPhones && narrow.Width < d.Width {
		m := model(narrow)
		m.ID += "-narrow"
		all = append(all, m)
	}
	return all, d.Grouped, note
}

// graphModel turns a drawing into the picture of the page.
func graphModel(plan loom.Plan, d draw.Drawing, l graphLabels) ui.DAGModel {
	m := ui.DAGModel{
		ID: "dag", Title: l.title, Width: d.Width, Height: d.Height,
		Description: ui.Count(len(plan.Tasks), "task", "tasks") + " in " + ui.Count(plan.Levels(), "stage", "stages") + ". The stages below say the same.",
	}
	for _, b := range d.Boxes {
		m.Nodes = append(m.Nodes, boxNode(plan, b, l))
	}
	for _, j := range d.Joints {
		m.Nodes = append(m.Nodes, ui.DAGNode{
			ID: j.ID, X: j.X - draw.JointRadius, Y: j.Y - draw.JointRadius, Width: 2 * draw.JointRadius, Height: 2 * draw.JointRadius,
			Gate: true, Look: ui.LookWaiting, Label: jointLabel(j),
		})
	}
	for _, e := range d.Edges {
		m.Edges = append(m.Edges, ui.DAGEdge{From: e.From, To: e.To, Path: e.Path, Critical: e.Critical})
	}
	return m
}

// jointLabel says what a joint stands for; those of nodes have no service.
func jointLabel(j draw.Joint) string {
	if j.Service == "" {
		return "all " + string(j.Action)
	}
	return "all " + string(j.Action) + " of " + j.Service
}

func boxNode(plan loom.Plan, b draw.Box, l graphLabels) ui.DAGNode {
	n := ui.DAGNode{
		ID: b.ID, X: b.X, Y: b.Y, Width: draw.BoxWidth, Height: draw.BoxHeight, Critical: b.Critical,
		State: plannedState, Title: string(b.Action), Href: l.href(b.Tasks),
	}
	if b.Group && len(b.Tasks) > 1 {
		groupNode(&n, b, l)
		return n
	}
	task := plan.Tasks[b.Tasks[0]-1]
	host := ui.NodeNumber(l.host(task))
	n.Line = host
	if task.Service != "" {
		n.Line = task.Service + " " + strconv.Itoa(task.NodeNumber)
	}
	words := []string{strings.TrimSpace(string(task.Action)+" "+task.Service) + " on " + host}
	if l.state != nil {
		n.State = l.state(task.Number)
		words = append(words, strings.ToLower(n.State.Word))
	}
	n.Look = ui.LookOf(n.State)
	n.Label = strings.Join(append(words, "stage "+strconv.Itoa(task.Level)), ", ")
	if l.state == nil {
		n.State.Word = ""
	}
	return n
}

// groupNode sums the tasks of a box up; the worst of their states is shown.
func groupNode(n *ui.DAGNode, b draw.Box, l graphLabels) {
	n.Group = true
	what, of := fmt.Sprintf("%d × %s", len(b.Tasks), b.Action), b.Service
	if b.Of.Node != "" {
		what, of = ui.Count(len(b.Tasks), "task", "tasks"), l.node(b)
	}
	n.Title, n.Line = what, of
	complete := 0
	looks := map[ui.DAGLook]ui.State{}
	if l.state != nil {
		for _, number := range b.Tasks {
			state := l.state(number)
			looks[ui.LookOf(state)] = state
			if ui.LookOf(state) == ui.LookComplete {
				complete++
			}
		}
		n.Line = strings.TrimSpace(fmt.Sprintf("%s %d complete", of, complete))
	}
	n.Look = ui.LookWaiting
	order := []ui.DAGLook{ui.LookFailed, ui.LookRunning, ui.LookRetry, ui.LookPaused, ui.LookWaiting, ui.LookOff, ui.LookComplete}
	for _, look := range order {
		if state, ok := looks[look]; ok {
			n.Look, n.State = look, state
			break
		}
	}
	if n.Look == ui.LookWaiting && complete > 0 {
		n.Look = ui.LookRunning
	}
	n.Label = fmt.Sprintf("%s, %d complete, stage %d", strings.TrimSpace(strings.Replace(what, "×", "times", 1)+" "+of), complete, b.Level)
	if l.tasksIn != nil {
		n.Href = l.tasksIn(b)
	}
}

// svgStyle makes a downloaded picture readable by itself: pages style theirs by
// classes.
const svgStyle = `<style>text{font-family:sans-serif;fill:#1a2230;font-size:12px}.dag-title{font-weight:600;font-size:13px}` +
	`.dag-line,.dag-state{fill:#545f6f;font-size:11px}.dag-edge{fill:none;stroke:#7b8797;stroke-width:1.5}.dag-edge.is-critical{stroke-width:2.5}` +
	`.dag-box,.dag-shadow,circle{fill:#fff;stroke:#7b8797}.is-complete .dag-box{fill:#e3f4e9;stroke:#1a6e3c}.is-running .dag-box{fill:#e4effb;stroke:#1b5fa8}` +
	`.is-failed .dag-box{fill:#fdeae8;stroke:#b3261e}.is-retry .dag-box{fill:#fbf0dc;stroke:#8a5a00}.dag-arrow{fill:#7b8797}.dag-icon{display:none}</style>`

func nothingDrawn() error { return loom.NewError(loom.NotFound, "There is nothing to draw.") }

// sendSVG answers with a picture as a file of its own.
func sendSVG(w http.ResponseWriter, name string, m ui.DAGModel) error {
	var b bytes.Buffer
	if err := ui.DAG(m).Render(context.Background(), &b); err != nil {
		return err
	}
	text := b.String()
	from, to := strings.Index(text, "<svg"), strings.LastIndex(text, "</svg>")
	if from < 0 || to < 0 {
		return nothingDrawn()
	}
	text = text[from : to+len("</svg>")]
	open := strings.Index(text, ">")
	text = strings.Replace(text[:open], "<svg", `<svg xmlns="http://www.w3.org/2000/svg"`, 1) + ">" + svgStyle + text[open+1:]
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name+".svg"))
	_, err := w.Write([]byte(text))
	return err
}
