package clusterview_test

import (
	"math"
	"slices"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/planner"
	"loom/views/clusterview"
	"loom/views/ui"
)

// The models of the golden files; now is fixed.
var now = time.Date(2026, 6, 12, 14, 0, 0, 0, time.UTC)

var ref = loom.OperationRef{Cluster: 42, Number: 1}

func homeModel() clusterview.HomeModel {
	return clusterview.HomeModel{
		MayCreate: true, Templates: true, Quota: ui.QuotaModel{Label: "Nodes", Used: 8, Max: 20},
		Clusters: clusterview.HomeClusters{
			More: 2,
			Attention: []clusterview.AttentionItem{
				{Tone: ui.ToneBad, Cluster: "broken", Href: "/clusters/00000007", Text: "Create failed: the script ended with status 100.", Actions: []ui.ButtonModel{{Label: "Retry", Small: true, Href: "/clusters/00000007/operations/1/retry"}}},
				{Tone: ui.ToneWarn, Cluster: "friday", Href: "/clusters/00000008", Text: "Lease ends ", At: now.Add(20 * time.Hour), Actions: []ui.ButtonModel{{Label: "Extend lease", Small: true, Href: "/clusters/00000008/lease"}}},
			},
			Rows: listModel().Table.Rows,
		},
	}
}

func listModel() clusterview.ListModel {
	return clusterview.ListModel{
		Tabs: []ui.Tab{{Label: "All", Href: "/clusters", Count: "5", Current: true}, {Label: "Terminated", Href: "/clusters?status=terminated", Count: "10,000+"}},
		Q:    "shop", Filtered: true, ClearHref: "/clusters?sort=name", MayCreate: true, Hidden: []clusterview.HiddenField{{Name: "sort", Value: "name"}}, Chips: []ui.Tab{{Label: "Provider: lab", Href: "/clusters?q=shop"}},
		Facets: []ui.FieldModel{{Name: "template", Label: "Template", LabelHidden: true, Kind: ui.FieldSelect, Optional: true, Width: "s",
			Options: []ui.Option{{Label: "Any template"}, {Value: "single", Label: "single (2)"}, {Value: "web-cluster", Label: "web-cluster (3)", Selected: true}}}},
		Table: clusterview.ListTable{
			Live: "/clusters/rows?ids=00000042&total=3", ShowOwner: true, Fresh: 2, FreshHref: "/clusters",
			Columns: []ui.Column{{Label: "Name", Sort: "/clusters?sort=-name", Sorted: ui.Ascending}, {Label: "Status"}},
			Rows: []loom.ClusterSummary{
				{ID: 42, Name: "shop-front", Description: "the shop", Status: loom.ClusterPending, LatestOperation: 1, Progress: loom.Progress{Action: loom.ClusterCreate, Status: loom.OperationRunning, Total: 10, Done: 3, Started: now.Add(-42 * time.Second)},
					Template: loom.Base{Name: "web-cluster", Label: "Web cluster", Version: 2}, NewestTemplate: 3, Nodes: 5, Owner: loom.Account{User: "ana"}, Created: now.Add(-200 * time.Hour), Expires: now.Add(20 * time.Hour), Protected: true},
				{ID: 43, Name: "old", Status: loom.ClusterActive, Health: loom.ClusterHealth{Status: loom.HealthHealthy, CheckedAt: now.Add(-20 * time.Second)}, Template: loom.Base{Name: "single", Version: 1, Icon: "disk"}, LatestOperation: 2,
					Progress: loom.Progress{Action: loom.ClusterExpand, Status: loom.OperationComplete, Started: now.Add(-time.Hour), Ended: now.Add(-time.Hour)}, Linked: true, Owner: loom.Account{User: "bob"}},
				{ID: 44, Name: "gone", Status: loom.ClusterTerminated, Template: loom.Base{Name: "single", Version: 1}, LatestOperation: 3, Progress: loom.Progress{Action: loom.ClusterDelete, Status: loom.OperationComplete, Started: now.Add(-time.Hour), Ended: now.Add(-time.Hour)},
					Ended: now.Add(-time.Hour), Owner: loom.Account{User: "bob"}},
			},
			Pagination: ui.PaginationModel{Label: "Pages of clusters", Next: "/clusters?after=x", Text: "2 of 5 clusters"},
			Empty:      ui.EmptyModel{Icon: "cluster", Text: "No clusters yet.", Action: ui.ButtonModel{Label: "New cluster", Href: "/clusters/new"}},
		},
	}
}

func formModel() clusterview.FormModel {
	return clusterview.FormModel{
		Errors: ui.FormErrors{Title: "There is no preview yet.", Items: []ui.FormError{{Field: "name", FieldID: "f-name", Label: "Name", Message: "A name is required."}}},
		Template: ui.ChoiceModel{Name: "clusterTemplate", Legend: "Template", Choices: []ui.Choice{
			{Value: "web-cluster", Label: "Web cluster", Description: "A load balancer in front of web servers.", Facts: []string{"2 to 50 nodes"}, Checked: true}}},
		Rest: clusterview.FormRest{
			For: "web-cluster", ForProvider: "lab", Suggested: "web-cluster-ana-1", Open: true, Differs: "changed: lease",
			Name:           ui.FieldModel{Name: "name", Label: "Name", Error: "A name is required."},
			Machines:       ui.FieldModel{Name: "numMachines", Label: "Nodes", Kind: ui.FieldNumber, Value: "3", Min: "2", Max: "50"},
			Description:    ui.FieldModel{Name: "description", Label: "Description", Kind: ui.FieldTextarea, Optional: true, Value: "for the fair"},
			Provider:       ui.FieldModel{Name: "provider", Label: "Provider", Kind: ui.FieldSelect, Options: []ui.Option{{Value: "lab", Label: "lab", Selected: true}}},
			ProviderFields: []ui.FieldModel{{Name: "providerFields.token", Label: "Access token", Kind: ui.FieldPassword, Optional: true}},
			Hardware:       ui.FieldModel{Name: "hardwaretype", Label: "Hardware type", Kind: ui.FieldSelect, Optional: true},
			Image:          ui.FieldModel{Name: "imagetype", Label: "Image type", Kind: ui.FieldSelect, Optional: true},
			Services:       ui.ChoiceModel{Name: "services", Legend: "Services", Choices: []ui.Choice{{Value: "nginx", Label: "nginx", Checked: true}}},
			Lease:          ui.FieldModel{Name: "initialLeaseDuration", Label: "Lease", Optional: true, Value: "2d"},
			DNSSuffix:      ui.FieldModel{Name: "dnsSuffix", Label: "DNS suffix", Optional: true},
			Settings: clusterview.SettingsPart{Fields: []clusterview.SettingField{
				{Key: "web.title", Field: ui.FieldModel{Name: "setting.web.title", Label: "Page title", Value: "Hello", Error: "nginx: web.title must be one line of text, at most 3 characters."}},
				{Key: "web.pin", Secret: true, Field: ui.FieldModel{Name: "setting.web.pin", Label: "PIN", Kind: ui.FieldPassword, Optional: true}},
				{Key: "web.port", Field: ui.FieldModel{Name: "setting.web.port", Label: "Port", Value: "80", LockedWhy: "The template sets it."}},
			}},
			Config: clusterview.ConfigPart{Config: "{}"},
		},
		Check: fitsPanel(),
	}
}

func fitsPanel() clusterview.CheckPanel {
	return clusterview.CheckPanel{
		Head: ui.CheckModel{State: ui.CheckFits, Headline: "3 nodes, 2 services"},
		Layout: ui.LayoutPictureModel{ID: "check-layout", Groups: []ui.LayoutPictureGroup{
			{Count: 1, Services: []string{"haproxy"}, Hardware: "small", Image: "debian-12"}, {Count: 2, Services: []string{"nginx"}, Hardware: "small", Image: "debian-12"},
		}},
		Facts:    []ui.Def{{Term: "Nodes after", Text: "6 of 20"}},
		Warnings: []string{"The tenant has no workers, so nothing would run."},
	}
}

func cannotPanel() clusterview.CheckPanel {
	return clusterview.CheckPanel{
		Head:        ui.CheckModel{State: ui.CheckCannot, Headline: "No layout for 1 node"},
		Errors:      []ui.FormError{{FieldID: "f-name", Message: "A name is required."}, {Message: "Something else."}},
		Reasons:     []ui.Reason{{Text: "haproxy and nginx can't share a node.", Origin: "template web-cluster", OriginHref: "/admin/templates/web-cluster"}},
		Suggestions: []ui.Suggestion{{Label: "Use 2 nodes", Name: "numMachines", Value: "2"}, {Label: "Remove haproxy", Name: "form", Value: "remove=haproxy"}},
	}
}

func graph() ui.DAGModel {
	return ui.DAGModel{
		ID: "dag", Title: "Plan", Description: "2 tasks in 2 stages.", Width: 440, Height: 84,
		Nodes: []ui.DAGNode{
			{ID: "t1", X: 16, Y: 16, Width: 176, Height: 52, State: ui.TaskState(loom.TaskComplete), Look: ui.LookComplete, Title: "create", Line: "web-1", Href: "/clusters/00000042/operations/1/tasks/1", Label: "create on web-1, complete, stage 1"},
			{ID: "t2", X: 248, Y: 16, Width: 176, Height: 52, State: ui.TaskState(loom.TaskRunning), Look: ui.LookRunning, Title: "confirm", Line: "web-1", Href: "/clusters/00000042/operations/1/tasks/2", Label: "confirm on web-1, running, stage 2", Critical: true},
		},
		Edges: []ui.DAGEdge{{From: "t1", To: "t2", Path: "M192 42C220 42 220 42 248 42", Critical: true}},
	}
}

func task(number int, action loom.TaskAction, service string, status loom.TaskStatus) loom.Task {
	return loom.Task{Ref: loom.TaskRef{Operation: ref, Number: number}, Node: "n1", NodeHostname: "web-1000.lab.example", Action: action, Service: service, Level: number, Status: status}
}

func running() clusterview.TaskList {
	t := task(2, loom.ActionConfirm, "", loom.TaskRunning)
	t.Started, t.Attempt = now.Add(-8*time.Second), 1
	return clusterview.TaskList{Status: loom.TaskRunning, All: 1, Tasks: []loom.Task{t}}
}

func stages(planned bool) []clusterview.Stage {
	first, second := task(1, loom.ActionCreate, "", loom.TaskComplete), task(2, loom.ActionInstall, "nginx", loom.TaskRunning)
	if second.Critical = true; planned {
		first.Status, second.Status = "", ""
	}
	return []clusterview.Stage{{Number: 1, Count: 1, Tasks: []loom.Task{first}}, {Number: 2, Count: 1, Tasks: []loom.Task{second}}}
}

func previewModel() clusterview.PreviewModel {
	return clusterview.PreviewModel{
		PreviewView: clusters.PreviewView{Preview: loom.Preview{ID: "ab-cd", Kind: loom.ChangeCreate, Hash: "00ff", Expires: now.Add(59 * time.Minute)}, Name: "shop-front", Lead: "Creates 2 nodes", Warnings: []string{"One node holds everything."}},
		Title:       "Create shop-front?",
		Banner:      ui.BannerModel{Tone: ui.ToneWarn, Text: "Things changed after this preview was made."},
		Facts:       []ui.Def{{Term: "Provider", Text: "lab"}},
		Effects: []clusterview.EffectGroup{{Sign: ui.SignCreate, Text: "13 nodes", Lines: []clusterview.Effect{
			{Text: "1 × haproxy", Detail: "small", Nodes: "node 1000"}, {Text: "12 × nginx", Detail: "small", MoreNodes: "nodes 1001, 1002"}}}},
		Link: "https://loom.example/previews/p", Runs: "2 tasks in 2 stages",
		Graphs: []ui.DAGModel{graph()}, Stages: stages(true), JSON: "{}",
		Fields: []ui.FieldModel{{Name: "providerFields.token", Label: "Access token", Kind: ui.FieldPassword}},
		Apply:  "Create shop-front", Busy: "Creating…", EditHref: "/clusters/new?preview=ab-cd",
	}
}

func deletePreview() clusterview.PreviewModel {
	m := previewModel()
	m.Title, m.Apply, m.Busy, m.Heavy, m.EditHref, m.JSON, m.Fields = "Delete shop-front?", "Delete shop-front", "Deleting…", true, "", "", nil
	m.ConfirmError = "Type the name of the cluster exactly: shop-front"
	return m
}

func appliedPreview() clusterview.PreviewModel {
	m := previewModel()
	m.Applied, m.AppliedAt = ref, now
	return m
}

func head() clusterview.HeadModel {
	return clusterview.HeadModel{
		ClusterView: clusters.ClusterView{Cluster: loom.Cluster{ID: 42, Name: "shop-front", Description: "the shop", Labels: map[string]string{"team": "web"}, Template: loom.Template{Base: loom.Base{Name: "web-cluster"}}, Protected: true},
			LeaseNote: "The lease ends on 2 March 2026 at 12:00 UTC. The cluster stays, because it is protected."},
		Tab: "nodes", State: ui.ClusterState(loom.ClusterActive), Open: "http://10.77.1.10/", OpenFirst: true, Scale: ui.ButtonModel{Label: "Scale", Href: "/clusters/00000042/scale"},
		Actions: []ui.MenuItem{{Label: "Scale", Href: "/clusters/00000042/scale"}, {Label: "Delete", Danger: true, Href: "/clusters/00000042/delete", WhyNot: "The cluster is protected."}},
		Facts:   []ui.Def{{Term: "Owner", Text: "ana"}}, Tabs: []ui.Tab{{Label: "Overview", Href: "/clusters/00000042"}, {Label: "Nodes", Href: "/clusters/00000042/nodes", Current: true, Count: "2"}},
	}
}

func showModel() clusterview.ShowModel {
	h := head()
	h.Leftovers = []loom.Leftover{
		{Hostname: "web-1.lab.example", Provider: "lab", Machine: "i-0d1c2b", Error: "the machine is locked", Tries: 4, Last: now.Add(-time.Hour)},
		{Hostname: "web-2.lab.example", Provider: "lab", Error: "timed out", Tries: 3, Last: now.Add(-time.Hour)}}
	h.Tab, h.Protected, h.Actions[1].WhyNot = "", false, ""
	return clusterview.ShowModel{
		Head: h,
		Operation: clusterview.OperationPanel{
			ID: 42, Topic: "op:00000042/1", Title: "Create", Href: "/clusters/00000042/operations/1", State: ui.OperationState(loom.OperationRunning, false),
			Progress: ui.ProgressModel{Label: "Progress of create", Value: 9, Max: 30, Text: "9 of 30 tasks · 42 s"}, Note: "If it fails, Loom deletes its machines.",
			Running: running(),
		},
		Connect: clusterview.ConnectModel{
			Key: clusterview.KeyModel{ByFile: 1, Closed: 1, File: "loom-00000042.pem", Download: "/clusters/00000042/key", HasKeys: true, Add: "/clusters/00000042/authorize", Provider: "lab", Jump: "ops@gate.lab.example"},
			ID:  42, Links: []loom.Link{{Label: "Web page", URL: "http://10.77.1.10/"}}, Live: "/clusters/00000042/panel?address=bind&part=connect",
			Addresses: addressChoices(), Copies: copyLinks(),
			Nodes: []clusterview.NodeRow{
				{Node: loom.Node{Hostname: "web-1000"}, Href: "/clusters/00000042/nodes/n1", Command: "ssh -i loom-00000042.pem loom@10.77.1.10", Reveal: "/clusters/00000042/nodes/n1/reveal"},
				{Node: loom.Node{Hostname: "web-1001"}, Href: "/clusters/00000042/nodes/n2", WhyNot: "no address yet"},
			},
		},
	}
}

func failedPanel() clusterview.OperationPanel {
	m := showModel().Operation
	m.State, m.Running = ui.OperationState(loom.OperationFailed, false), clusterview.TaskList{}
	m.Progress.Failed, m.Wide = true, true
	m.Failure = &clusterview.FailureModel{Task: "install nginx on web-2", Href: "/clusters/00000042/operations/1/tasks/9", Message: "The script ended with status 100.",
		Lines: []ui.LogLine{{Seq: 7, Time: now, Stream: "stderr", Level: "warn", Text: "E: no such package"}}}
	return m
}

func nodesModel() clusterview.NodesModel {
	return clusterview.NodesModel{ID: 42, Matched: 1, Live: "/clusters/00000042/panel?part=nodes", View: "flat", Action: "/clusters/00000042/nodes", Filters: true, Filtered: true, Clear: "/clusters/00000042/nodes?view=flat",
		Services: []ui.Option{{Label: "All services"}}, States: []ui.Option{{Label: "All states"}}, Copies: copyLinks(), Addresses: addressChoices(), Address: "bind",
		Rows: []clusterview.NodeRow{nodeRow()}}
}

func addressChoices() clusterview.Choices {
	return clusterview.Choices{Label: "Address", Options: []ui.Tab{{Label: "access", Href: "/clusters/00000042"}, {Label: "bind (internal)", Href: "/clusters/00000042?address=bind", Current: true}}}
}

func copyLinks() clusterview.Copies {
	return clusterview.Copies{SSHConfig: "/clusters/00000042/copy?as=ssh", Hosts: "/clusters/00000042/copy?as=hosts", CSV: "/clusters/00000042/copy?as=csv"}
}

func setsModel() clusterview.NodesModel {
	m := nodesModel()
	m.View, m.Rows = "", nil
	bad := nodeRow()
	bad.ID, bad.Number = "n2", 1001
	m.Sets = []clusterview.NodeSet{{Key: "haproxy", Count: 30, Services: []string{"haproxy"}, States: []ui.State{ui.NodeState(loom.NodeReady).With("30")}, Open: true,
		Rows: []clusterview.NodeRow{bad}, All: "/clusters/00000042/nodes?view=flat&set=haproxy"}}
	return m
}

func nodeRow() clusterview.NodeRow {
	return clusterview.NodeRow{
		Node: loom.Node{ID: "n1", Hostname: "web-1.lab.example", Number: 1000, Services: []string{"haproxy"}}, Href: "/clusters/00000042/nodes/n1", Badge: ui.NodeState(loom.NodeReady), At: []string{"10.77.1.10"},
		Command: "ssh loom@10.77.1.10", CPU: []float64{math.NaN(), 3, 5, math.NaN(), 4},
	}
}

func servicesModel() clusterview.ServicesModel {
	return clusterview.ServicesModel{ID: 42, Rows: []clusterview.ServiceRow{{Base: loom.Base{Name: "haproxy", Description: "Spreads requests.", Version: 3}, Count: 5, AllNodes: "/clusters/00000042/nodes?service=haproxy",
		Nodes: []clusterview.NodeOf{{Hostname: "web-1", Href: "/clusters/00000042/nodes/n1"}}, States: []ui.State{ui.ServiceState(loom.ServiceFailed).With("1"), ui.ServiceState(loom.ServiceStarted).With("4")},
		Last:    loom.NodeAction{Task: loom.TaskRef{Operation: ref, Number: 7}, Action: loom.ActionStart, Started: now.Add(-2 * time.Minute), Status: "failed"},
		Links:   []loom.Link{{Label: "Statistics", URL: "http://10.77.1.10:8404/"}},
		Restart: ui.ButtonModel{Label: "Restart", Small: true, Href: "/clusters/00000042/services/haproxy/restart"},
		Menu:    []ui.MenuItem{{Label: "Start", Icon: "play", Href: "/clusters/00000042/services/haproxy/start"}, {Label: "Stop", Icon: "square", WhyNot: "Operation 1 is running."}},
	}}}
}

func operationsModel() clusterview.OperationsModel {
	return clusterview.OperationsModel{ID: 42, Live: "/clusters/00000042/panel?part=operations", Clear: "/clusters/00000042/operations",
		Filters: &clusterview.OperationFilters{Action: "/clusters/00000042/operations", Actions: []ui.Option{{Label: "All actions"}}, Results: []ui.Option{{Label: "All results"}}, Filtered: true},
		Pages:   ui.PaginationModel{Label: "Pages of operations", Text: "25 operations", Next: "/clusters/00000042/operations?after=x"},
		Rows: []clusterview.OperationRow{{
			Operation: loom.Operation{Ref: ref, Action: loom.ClusterCreate, Status: loom.OperationRunning, RequestedBy: "ana", Started: now.Add(-42 * time.Second), Tasks: map[loom.TaskStatus]int{loom.TaskComplete: 9, loom.TaskReady: 21}},
		}}}
}

func configModel() clusterview.ConfigModel {
	return clusterview.ConfigModel{Label: "Config in use", Text: "{\n  \"port\": 8080\n}", Edit: "/clusters/00000042/reconfigure", Cluster: 42, Self: "/clusters/00000042/config",
		Macros: clusterview.Choices{Label: "Macros", Options: []ui.Tab{{Label: "As written", Href: "/clusters/00000042/config"}, {Label: "Filled in", Href: "/clusters/00000042/config?macros=expanded", Current: true}}},
		Nodes:  []ui.Option{{Value: "n1", Label: "web-1", Selected: true}}, Problems: []string{"peers: “%host.service.nginx%” stays as written: no node has nginx."}, More: 2,
		History: []loom.ConfigRevision{{Revision: 2, Author: "ana", Time: now.Add(-time.Hour), Operation: 3}, {Revision: 1, Author: "ana", Time: now.Add(-2 * time.Hour)}},
		Revision: &clusterview.ConfigRevision{Number: 1, Text: "{}", IsOld: true, Since: clusterview.ConfigDiff{More: 3, Rows: []ui.ChangeModel{{Sign: ui.SignCreate, Name: "port", New: "8080"},
			{Sign: ui.SignChange, Name: "web.motd", Old: "2 lines", New: "3 lines", Lines: "− good morning\n+ good evening\n+ and night"}}}},
		Template: "web-cluster", Differences: clusterview.ConfigDiff{Rows: []ui.ChangeModel{{Sign: ui.SignChange, Name: "port", Old: "80", New: "8080"}}}}
}

func deleteModel() clusterview.DeleteModel {
	return clusterview.DeleteModel{
		ID: 42, Name: "shop-front", Nodes: 2, Services: "haproxy and nginx", Value: "shop", ConfirmError: "Type the name of the cluster exactly: shop-front",
		Errors:    ui.FormErrors{Title: "Nothing was deleted.", Items: []ui.FormError{{Field: "confirm", FieldID: "f-confirm", Message: "Type the name of the cluster exactly: shop-front"}}},
		Fields:    []ui.FieldModel{{Name: "providerFields.token", Label: "Access token", Kind: ui.FieldPassword}},
		Leftovers: []string{"i-0d1c2b at lab"},
	}
}

var views = []ui.Tab{{Label: "Graph", Href: "/clusters/00000042/operations/1/graph", Current: true}, {Label: "Tasks", Href: "/clusters/00000042/operations/1/table"}}

func operationModel() clusterview.OperationModel {
	return clusterview.OperationModel{
		Head: clusterview.OperationHead{
			Ref: ref, Title: "Create", State: ui.OperationState(loom.OperationFailing, false), Segments: &ui.SegmentsModel{ID: "segments", Complete: 1, Running: 1, Failed: 1, Retrying: 9, Rest: 3},
			Facts: []ui.Def{{Term: "By", Text: "ana"}}, Message: "1 task failed.", Waiting: "It is ending: 1 task that was begun still runs.",
			Failed:   clusterview.TaskList{Status: loom.TaskFailed, All: 1, Tasks: []loom.Task{task(3, loom.ActionInstall, "nginx", loom.TaskFailed)}},
			Running:  running(),
			Retrying: clusterview.RetryList{Operation: ref, Count: 9, Tries: []clusters.NextTry{{Number: 4, Action: "install", Service: "<nginx>", Hostname: "web-1002", Attempt: 1, Message: "exited with 1", Error: "first\nno space\n", At: now.Add(30 * time.Second)}}},
		},
		View: clusterview.OperationView{Ref: ref, Views: views, Live: "/clusters/00000042/operations/1/graph", Graph: &clusterview.GraphModel{
			Pictures: []ui.DAGModel{graph()}, Note: "The tasks are grouped.", Options: []clusterview.Choices{{Label: "Boxes", Options: []ui.Tab{{Label: "Tasks", Href: "/clusters/00000042/operations/1/graph", Current: true}, {Label: "By action", Href: "/clusters/00000042/operations/1/graph?group=on"}}}},
			SVG: "/clusters/00000042/operations/1/graph.svg", Stages: stages(false),
		}},
	}
}

var filters = &clusterview.TaskFilters{Action: "/clusters/00000042/operations/1/table", Clear: "/clusters/00000042/operations/1/table", Filtered: true, Keep: []ui.Option{{Label: "by", Value: "node"}},
	Levels: []ui.Option{{Label: "All stages"}}, Statuses: []ui.Option{{Label: "All states"}}, Nodes: []ui.Option{{Label: "All nodes"}},
	Services: []ui.Option{{Label: "All services"}}, Verbs: []ui.Option{{Label: "All actions"}}}

func tableView() clusterview.OperationView {
	return clusterview.OperationView{Ref: ref, Views: views, Live: "/clusters/00000042/operations/1/table", Filters: filters, Table: &clusterview.TaskTable{
		Clear: "/clusters/00000042/operations/1/table", Pages: ui.PaginationModel{Label: "Pages of tasks", Text: "100 tasks", Next: "/clusters/00000042/operations/1/table?after=x"},
		Rows: []clusters.TaskView{{Task: running().Tasks[0]}},
	}}
}

func taskModel() clusterview.TaskModel {
	failed := clusters.TaskView{Task: task(2, loom.ActionInstall, "nginx", loom.TaskFailed), Behind: []planner.GateDependency{{Action: loom.ActionStart, Service: "zookeeper", Count: 3}}}
	failed.Attempt, failed.Message = 2, "The script ended with status 100."
	after := slices.Repeat([]loom.Task{task(4, loom.ActionStart, "nginx", loom.TaskBlocked)}, 8)
	return clusterview.TaskModel{
		Panel: clusterview.TaskPanel{
			TaskView: failed, Shown: 1, Bad: true, Cause: "unable to bind port 80",
			Facts:  []ui.Def{{Term: "Node", Value: clusterview.TextLink("web-1.lab.example", "/clusters/00000042/nodes/n1")}},
			Result: []ui.Def{{Term: "providerid", Text: "i-0d1c2b", Mono: true}},
			Before: []loom.Task{task(1, loom.ActionCreate, "", loom.TaskComplete)},
			After:  after,
		},
		Tabs: []ui.Tab{{Label: "Attempt 2, Running", Href: "/a2"}, {Label: "Attempt 1, Failed", Href: "/a1", Current: true}},
		Log:  ui.LogModel{ID: "log", Label: "Log", Lines: []ui.LogLine{{Seq: 1, Time: now, Stream: "stdout", Level: "info", Text: "hello"}}, Raw: "/raw", Note: "The log ended."},
	}
}

// sideModel is a task beside its plan that runs again after it failed.
func sideModel() clusterview.TaskModel {
	m := taskModel()
	m.Panel.Side, m.Panel.Speaks, m.Panel.Doing = true, true, "Preparing image bookworm for its first use on this host."
	m.Log.ID, m.Log.Find = "task-log", &ui.LogFind{Action: "/clusters/00000042/operations/1/tasks/2", Errors: "/clusters/00000042/operations/1/tasks/2?errors=1", ErrorCount: "3"}
	return m
}

// changesPreview is that of a change, in place of one that could not be applied any more.
func changesPreview() clusterview.PreviewModel {
	m := previewModel()
	m.Title, m.Stale, m.More = "Scale shop-front?", true, 3
	m.Moved = []ui.ChangeModel{{Sign: ui.SignChange, Name: "Plan", Old: "2 tasks in 2 stages", New: "3 tasks in 2 stages"}}
	m.Warnings = append(m.Warnings, "All data on node 1001 is lost.")
	m.Kept = clusterview.KeptChanges{Text: "1 node and 1 service on them", Count: 3, More: 2, Lines: []ui.ChangeModel{{Sign: ui.SignKeep, Object: "node", Name: "shop-front42-1000.lab.example", Detail: "haproxy"}}}
	return m
}

func nodeModel() clusterview.NodeModel {
	return clusterview.NodeModel{
		Cluster: 42, Node: loom.Node{ID: "n1", Hostname: "web-1.lab.example"}, Title: "Node 1000", Badge: ui.NodeState(loom.NodeReady), Facts: []ui.Def{{Term: "Address", Text: "10.77.1.10"}},
		Rows: []clusterview.NodeService{{ServiceOn: clusterview.ServiceOn{Name: "nginx", State: ui.ServiceState(loom.ServiceStarted)}, Last: loom.NodeAction{Task: loom.TaskRef{Operation: ref, Number: 7}, Attempt: 2, Action: loom.ActionStart, Started: now.Add(-2 * time.Minute), Status: "failed"},
			Menu: []ui.MenuItem{{Label: "Restart on all nodes", Icon: "rotate", Href: "/clusters/00000042/services/nginx/restart"}}}}, Links: []loom.Link{{Label: "Statistics", URL: "http://10.77.1.10:8404/"}},
		Command: "ssh loom@10.77.1.10", Reveal: "/clusters/00000042/nodes/n1/reveal", Key: clusterview.KeyModel{Own: 1, File: "loom-00000042.pem", Download: "/clusters/00000042/key", HasKeys: true}, Live: "/clusters/00000042/nodes/n1", Technical: []ui.Def{{Term: "providerid", Text: "m-17", Mono: true}},
		Addresses: addressChoices(), Menu: []ui.MenuItem{{Label: "Reboot…", Icon: "server", Href: "/clusters/00000042/repair"}},
		History: []loom.NodeAction{{Task: loom.TaskRef{Operation: ref, Number: 7}, Action: loom.ActionStart, Service: "nginx", Attempt: 2, Started: now.Add(-2 * time.Minute), Ended: now.Add(-115 * time.Second), Status: "complete"}},
	}
}

func revealModel() clusterview.RevealModel {
	return clusterview.RevealModel{Hostname: "web-1", Revealed: clusters.Revealed{User: "loom", Password: loom.NewSecret("made-up")}, Again: "/clusters/00000042/nodes/n1/reveal"}
}

func groupedStages() []clusterview.Stage {
	return []clusterview.Stage{{Number: 1, Count: 480, Groups: []clusterview.StageGroup{{Text: "install nginx × 480", Summary: "1 failed, 479 complete", State: ui.TaskState(loom.TaskFailed), Critical: true,
		Href: "/clusters/00000042/operations/1/table?stage=1&action=install&service=nginx"}}}}
}

func timelineView() clusterview.OperationView {
	return clusterview.OperationView{Ref: ref, Views: views, Live: "/clusters/00000042/operations/1/timeline", Time: &clusterview.TimelineView{
		Options: []clusterview.Choices{{Label: "Rows", Options: []ui.Tab{{Label: "Nodes", Href: "/clusters/00000042/operations/1/timeline?by=node", Current: true}}}},
		Chart: ui.TimelineModel{ID: "timeline", Label: "Nodes", Ticks: []ui.TimelineTick{{Text: "start"}, {X: 50_000, Text: "1 min"}, {X: 100_000, Text: "2 min"}}, Lanes: []ui.TimelineLane{{ID: "n1", Label: "web-1", Href: "/clusters/00000042/nodes/n1", Note: "1 m 4 s", Bars: []ui.TimelineBar{
			{X: 1_000, Width: 40_000, Look: ui.LookComplete, Text: "create", Label: "create on web-1, complete, 48 s", Href: "/clusters/00000042/operations/1/tasks/1", Critical: true},
			{X: 60_000, Width: 250, Look: ui.LookFailed, Text: "confirm", Label: "confirm on web-1, failed, 0.3 s", Href: "/clusters/00000042/operations/1/tasks/2"}}}}},
		Nodes: []clusterview.CourseRow{{Name: "web-1", Href: "/clusters/00000042/nodes/n1", Tasks: "1 of 3", TasksIn: "/clusters/00000042/operations/1/table?node=n1", Begin: "1 s", End: "1 m 12 s", Busy: "48 s", Idle: "24 s", Failed: 1}},
		Pages: ui.PaginationModel{Label: "Pages of nodes", Text: "1–40 of 500 nodes", Next: "/clusters/00000042/operations/1/timeline?by=node&page=2"},
	}}
}

func logView() clusterview.OperationView {
	return clusterview.OperationView{Ref: ref, Views: views, Log: &ui.LogModel{ID: "log", Label: "Log of operation 1", Earlier: "/clusters/00000042/operations/1/log?before=x", EarlierRows: "/clusters/00000042/operations/1/log?before=x&rows=1",
		More: "/clusters/00000042/operations/1/log?rows=1", Every: 3, Find: &ui.LogFind{Action: "/clusters/00000042/operations/1/log", Value: "nginx", On: true, Note: "1 line", Clear: "/clusters/00000042/operations/1/log", Errors: "/clusters/00000042/operations/1/log?errors=1"},
		Lines: []ui.LogLine{{Seq: 7, Time: now, Stream: "stdout", Level: "info", Text: "hello", Cursor: "abc", Source: "2 install nginx on web-1", SourceHref: "/clusters/00000042/operations/1/tasks/2?lines=7#L7"}}}}
}

func goneModel() clusterview.ShowModel {
	m := clusterview.ShowModel{Head: head(), Connect: clusterview.ConnectModel{ID: 42, Gone: true}, Operation: clusterview.OperationPanel{
		ID: 42, Topic: "op:00000042/1", Last: &clusterview.LastChange{Operation: loom.Operation{Ref: ref, Action: loom.ClusterDelete, RequestedBy: "ana", Started: now.Add(-time.Hour - 21*time.Second), Ended: now.Add(-time.Hour)}}},
		Sets: clusterview.SetsModel{ID: 42, Sets: []clusterview.NodeSet{{Count: 1, Services: []string{"haproxy"}, All: "/a"}, {Count: 2, All: "/b"}}}}
	m.Head.Actions, m.Head.Status, m.Head.Description, m.Head.Labels = nil, loom.ClusterTerminated, "", nil
	m.Head.Newer = &clusterview.NewerNotice{Text: "web-cluster v7 is available.", Update: ui.ButtonModel{Label: "Update", Small: true, Href: "/clusters/00000042/update"}}
	return m
}

func accessModel() clusterview.AccessModel {
	roles := []string{}
	for _, role := range loom.BoundAt(loom.PlaceCluster) {
		roles = append(roles, string(role))
	}
	var options []ui.Option
	for _, role := range roles {
		options = append(options, ui.Option{Value: role, Label: clusterview.RoleWords[loom.Role(role)]})
	}
	return clusterview.AccessModel{Cluster: 42, Owner: "ana",
		Bindings: []loom.Binding{
			{ID: 7, User: "ben", Grant: loom.Grant{Role: loom.RoleOperator, Cluster: 42}},
			{ID: 8, Group: 3, GroupName: "Team web", Grant: loom.Grant{Role: loom.RoleReader, Template: "web"}},
			{ID: 9, Group: 4, GroupName: "Auditors", Grant: loom.Grant{Role: loom.RoleReader}},
		},
		Share:    &clusterview.AccessForm{Fields: []ui.FieldModel{{Name: "user", Label: "User", Optional: true}, {Name: "role", Label: "Role", Kind: ui.FieldSelect, Options: options}}},
		HandOver: &clusterview.AccessForm{Errors: ui.NewFormErrors("The owner was not changed.", []loom.FieldError{{Field: "owner", Message: "There is no user with this id who may create clusters from the template “web”."}}), Fields: []ui.FieldModel{{Name: "owner", Label: "New owner", Error: "There is no user with this id who may create clusters from the template “web”."}}},
	}
}
