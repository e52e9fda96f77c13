package gallery

import (
	"fmt"
	"time"

	"loom/app/loom"
	"loom/views/ui"
)

// now is the fixed clock of the gallery, so that it renders the same always.
var now = time.Date(2026, time.June, 9, 14, 0, 0, 0, time.UTC)

func states() [][]ui.State {
	var cluster, operation, task, node, service, resource []ui.State
	for _, s := range loom.ClusterStatuses {
		cluster = append(cluster, ui.ClusterState(s))
	}
	cluster[0] = cluster[0].With("62 %")
	for _, s := range loom.OperationStatuses {
		operation = append(operation, ui.OperationState(s, false))
	}
	for _, s := range loom.TaskStatuses {
		task = append(task, ui.TaskState(s))
	}
	for _, s := range []loom.NodeState{loom.NodePlanned, loom.NodeCreating, loom.NodeReady, loom.NodeFailed, loom.NodeDeleting, loom.NodeDeleted} {
		node = append(node, ui.NodeState(s))
	}
	for _, s := range []loom.ServiceState{loom.ServiceAbsent, loom.ServiceInstalled, loom.ServiceStarted, loom.ServiceStopped, loom.ServiceFailed} {
		service = append(service, ui.ServiceState(s))
	}
	for _, s := range []loom.ResourceStatus{loom.ResourceInactive, loom.ResourceStaged, loom.ResourceActive, loom.ResourceRecalled} {
		resource = append(resource, ui.ResourceState(s))
	}
	return [][]ui.State{cluster, operation, task, node, service, resource}
}

type cluster struct {
	id, name, template, lease string
	state                     ui.State
	nodes                     string
	created                   time.Time
	progress                  ui.ProgressModel
}

func clusters() []cluster {
	return []cluster{
		{id: "00000042", name: "shop-front", template: "web-cluster", lease: "in 3 days", nodes: "3",
			state: ui.ClusterState(loom.ClusterPending).With("60 %"), created: now.Add(-3 * time.Minute),
			progress: ui.ProgressModel{Label: "Progress of create", Value: 49, Max: 81, Text: "49 of 81 tasks"}},
		{id: "00000041", name: "sessions", template: "redis-replicated", lease: "none", nodes: "5",
			state: ui.ClusterState(loom.ClusterActive), created: now.Add(-30 * time.Hour)},
		{id: "00000037", name: "ana-try-out-with-a-rather-long-name", template: "web-cluster", lease: "in 9 hours", nodes: "12",
			state: ui.ClusterState(loom.ClusterIncomplete), created: now.Add(-9 * 24 * time.Hour)},
	}
}

func log() []ui.LogLine {
	return []ui.LogLine{
		{Seq: 118, Time: now.Add(2*time.Minute + 11204*time.Millisecond), Stream: "loom", Level: "info", Text: "Attempt 2 on provisioner host-3f9a, signed in as loom@10.77.1.12"},
		{Seq: 119, Time: now.Add(2*time.Minute + 11316*time.Millisecond), Stream: "stdout", Level: "info", Text: "Reading package lists..."},
		{Seq: 120, Time: now.Add(2*time.Minute + 11902*time.Millisecond), Stream: "stdout", Level: "info", Text: "\x1b[32mok\x1b[0m nginx 1.22.1 is \x1b[1minstalled\x1b[0m  <script>alert(1)</script>"},
		{Seq: 121, Time: now.Add(2*time.Minute + 12010*time.Millisecond), Stream: "stdout", Level: "info", Text: "\x1b[31mred \x1b[33myellow \x1b[34mblue \x1b[35mmagenta \x1b[36mcyan \x1b[90mdim \x1b[4munderlined\x1b[0m plain"},
		{Seq: 122, Time: now.Add(2*time.Minute + 12400*time.Millisecond), Stream: "stderr", Level: "warn", Text: "nginx: [warn] conflicting server name \"_\" on 0.0.0.0:80, ignored"},
		{Seq: 123, Time: now.Add(2*time.Minute + 12812*time.Millisecond), Stream: "stderr", Level: "error", Text: "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use), and this line continues for quite a while to show what happens then"},
	}
}

func dAG() ui.DAGModel {
	m := ui.DAGModel{ID: "plan", Title: "Plan of create shop-front", Description: "12 tasks in 4 stages; 4 complete, 2 running, 1 failed, 5 waiting.", Width: 4*ui.DAGNodeWidth + 3*ui.DAGColumnGap, Height: 3*ui.DAGNodeHeight + 2*ui.DAGRowGap}
	actions := []string{"create", "confirm", "install", "start"}
	hosts := []string{"lb-1", "web-1", "shop-front-web-node-2.lab.example"}
	states := [][]loom.TaskStatus{
		{loom.TaskComplete, loom.TaskComplete, loom.TaskComplete},
		{loom.TaskComplete, loom.TaskRunning, loom.TaskSkipped},
		{loom.TaskRunning, loom.TaskFailed, loom.TaskBlocked},
		{loom.TaskBlocked, loom.TaskDropped, loom.TaskReady},
	}
	id := func(column, row int) string { return string(rune('a'+column)) + string(rune('1'+row)) }
	for column, action := range actions {
		for row, host := range hosts {
			x, y := column*(ui.DAGNodeWidth+ui.DAGColumnGap), row*(ui.DAGNodeHeight+ui.DAGRowGap)
			state := ui.TaskState(states[column][row])
			m.Nodes = append(m.Nodes, ui.DAGNode{
				ID: id(column, row), X: x, Y: y, Width: ui.DAGNodeWidth, Height: ui.DAGNodeHeight, State: state, Look: ui.LookOf(state),
				Title: action, Line: host, Href: "#" + host, Label: action + " on " + host + ", " + state.Word,
				Critical: row == 1, Group: column == 3 && row == 2,
			})
			if column == 0 {
				continue
			}
			from := []int{row}
			if column == 3 && row == 0 {
				from = []int{0, 1, 2}
			}
			for _, r := range from {
				m.Edges = append(m.Edges, ui.DAGEdge{From: id(column-1, r), To: id(column, row), Critical: row == 1,
					Path: edgePath(x-ui.DAGColumnGap, r*(ui.DAGNodeHeight+ui.DAGRowGap)+ui.DAGNodeHeight/2, x, y+ui.DAGNodeHeight/2)})
			}
		}
	}
	return m
}

func templates() ui.ChoiceModel {
	return ui.ChoiceModel{Name: "clusterTemplate", Legend: "Template", Choices: []ui.Choice{
		{Value: "web-cluster", Label: "web-cluster", Description: "A load balancer in front of as many web servers as you like.", Facts: []string{"2–50 nodes", "haproxy", "nginx"}, Checked: true},
		{Value: "redis-replicated", Label: "redis-replicated", Description: "One primary and replicas on nodes of their own.", Facts: []string{"2–9 nodes", "redis"}},
		{Value: "old", Label: "hadoop", Description: "A distributed file system.", WhyNot: "Its provider has no image for it."},
	}}
}

func services() ui.ChoiceModel {
	m := ui.ChoiceModel{Name: "services", Legend: "Services", Help: "What the nodes will run.", Filter: "Filter services", Optional: true}
	for i, name := range []string{"haproxy", "nginx", "redis-primary", "redis-replica", "postgres", "app", "metrics", "backup"} {
		m.Choices = append(m.Choices, ui.Choice{Value: name, Label: name, Description: "Requires base.", Checked: i < 2})
	}
	return m
}

// use is a chart of the use of three templates over two weeks.
func use(lines bool) ui.ChartModel {
	m := ui.ChartModel{ID: "chart-use", Title: "Use of nodes", Unit: "node-hours", PlaceWord: "Day", Lines: lines, Limit: &ui.ChartLimit{Name: "quota", Value: 480}, Decimals: 1}
	if lines {
		m.ID, m.Title, m.Unit, m.PlaceWord, m.Limit = "chart-wait", "Waiting tasks", "tasks", "Minute", nil
	}
	for day := range 14 {
		at := now.AddDate(0, 0, day-14)
		m.Places = append(m.Places, ui.ChartPlace{Short: at.Format("2 Jan"), Long: at.Format("2006-01-02")})
	}
	for i, name := range []string{"web-cluster", "redis-replicated", "hadoop-distributed", "postgres-ha", "docker-host", "others"} {
		s := ui.ChartSeries{Name: name}
		for day := range m.Places {
			s.Values = append(s.Values, float64((day*(i+3)*7)%(24*(7-i)))+.5)
		}
		m.Series = append(m.Series, s)
	}
	return m
}

// edgePath is a cubic curve between two points, level at both ends.
func edgePath(x1, y1, x2, y2 int) string {
	middle := (x1 + x2) / 2
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, middle, y1, middle, y2, x2, y2)
}
