package clusterview_test

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/testkit/golden"
	"loom/views/clusterview"
	"loom/views/ui"
)

// Every page and fragment, from literal models. Lines are broken between elements
// so that a difference can be read.
func TestGolden(t *testing.T) {
	t.Parallel()
	golden.HTML(t, seen(map[string]templ.Component{
		"home": clusterview.HomePage(homeModel()), "home_first": clusterview.HomePage(clusterview.HomeModel{First: true, MayCreate: true, Templates: true}),
		"home_shared_only": clusterview.HomePage(clusterview.HomeModel{First: true, Templates: true}), "access": clusterview.AccessPage(head(), accessModel()),
		"home_no_template": clusterview.HomePage(clusterview.HomeModel{First: true, MayCreate: true}), "home_no_template_admin": clusterview.HomePage(clusterview.HomeModel{First: true, MayCreate: true, MayMake: true}),
		"list": clusterview.ListPage(listModel()), "list_empty": clusterview.ListRows(clusterview.ListTable{Empty: listModel().Table.Empty}),
		"new": clusterview.NewPage(formModel()), "new_none": clusterview.NewPage(clusterview.FormModel{None: true}),
		"check_cannot": clusterview.CheckPanelPart(cannotPanel()), "check_fits": clusterview.CheckPanelPart(fitsPanel()),
		"preview": clusterview.PreviewPage(previewModel()), "preview_delete": clusterview.PreviewPage(deletePreview()),
		"preview_applied": clusterview.PreviewPage(appliedPreview()), "preview_gone": clusterview.PreviewGonePage(),
		"cluster": clusterview.ShowPage(showModel()), "cluster_failed": clusterview.OperationPart(failedPanel()),
		"nodes": clusterview.NodesPage(head(), nodesModel()), "services": clusterview.ServicesPage(head(), servicesModel()),
		"operations": clusterview.HistoryPage(head(), operationsModel(), templ.Raw("<p>Extended the lease.</p>")), "config": clusterview.ConfigPage(head(), configModel()),
		"change_scale": clusterview.ChangePage(scaleModel()), "change_upgrade": clusterview.ChangePage(upgradeModel()),
		"change_not":   clusterview.ChangePage(clusterview.ChangeModel{Cluster: 42, Name: "shop-front", Title: "Scale shop-front", WhyNot: "Operation 1 (create) is running.", Back: "/clusters/00000042"}),
		"change_panel": clusterview.ChangePanelPart(comingPanel()), "lease": clusterview.LeasePage(leaseModel()), "lease_dialog": clusterview.LeaseDialog(leaseModel()),
		"edit": clusterview.EditPage(editModel()), "edit_inline": clusterview.AboutEdit(inlineModel()), "edit_clash": clusterview.AboutEdit(clashModel()), "confirm": clusterview.ConfirmPage(confirmModel()), "confirm_dialog": clusterview.ConfirmDialog(confirmModel()),
		"skipped": clusterview.SkippedPart(clusters.ClusterView{Cluster: loom.Cluster{ID: 42}, Skipped: []loom.Task{{Ref: loom.TaskRef{Operation: ref, Number: 3}, Action: "install", Service: "nginx", NodeHostname: "web-1000", SkippedBy: "admin", SkipReason: "made by hand"}}}),
		"delete":  clusterview.DeletePage(deleteModel()), "delete_dialog": clusterview.DeleteDialog(deleteModel()),
		"delete_refused":  clusterview.DeletePage(clusterview.DeleteModel{ID: 42, Name: "shop-front", WhyNot: "Operation 1 (create) is running."}),
		"operation_graph": clusterview.OperationPage(operationModel()),
		"operation_table": clusterview.OperationViewPart(tableView()), "task": clusterview.TaskPage(taskModel()), "task_side": clusterview.TaskSidePart(sideModel()), "preview_changes": clusterview.PreviewPage(changesPreview()), "ask": clusterview.PreviewDialog(askPreview()), "ask_page": clusterview.PreviewPage(askPreview()),
		"task_waiting": clusterview.TaskPage(clusterview.TaskModel{Panel: clusterview.TaskPanel{TaskView: clusters.TaskView{Task: task(2, loom.ActionStart, "nginx", loom.TaskBlocked)}}, Waiting: true}),
		"nodes_sets":   clusterview.NodesPage(head(), setsModel()), "nodes_none": clusterview.NodesPart(clusterview.NodesModel{ID: 42, Live: "/clusters/00000042/panel?part=nodes", Empty: &ui.EmptyModel{Icon: "server", Text: "This cluster has no nodes."}}),
		"stages_grouped": clusterview.StageList(groupedStages()), "operation_timeline": clusterview.OperationViewPart(timelineView()),
		"operation_log": clusterview.OperationViewPart(logView()), "cluster_gone": clusterview.ShowPage(goneModel()),
		"node_log":     clusterview.NodeLogPage(clusterview.NodeLogModel{Hostname: "web-1", Node: "/clusters/00000042/nodes/n1", Log: *logView().Log}),
		"copy":         clusterview.CopyPage(clusterview.CopyModel{Title: "Hosts entries", Name: "shop-front", Note: "Lines for /etc/hosts.", Text: "10.77.1.10 web-1", Download: "/clusters/00000042/copy?as=hosts&download=1", Back: "/clusters/00000042/nodes"}),
		"delete_abort": clusterview.DeletePage(clusterview.DeleteModel{ID: 42, Name: "shop-front", AbortFirst: true, Nodes: 9}),
		"node":         clusterview.NodePage(nodeModel()), "reveal": clusterview.Reveal(revealModel()), "reveal_gone": clusterview.RevealGone(),
	}))
}

// seen renders components as they are at the time of the models.
func seen(all map[string]templ.Component) map[string]templ.Component {
	for name, c := range all {
		all[name] = templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
			return c.Render(ui.WithViewer(ctx, ui.Viewer{Now: now}), w)
		})
	}
	return all
}

var anchor = regexp.MustCompile(`\bid="([^"]+)"`)

// An id that occurs twice breaks labels, links and updates.
func TestIDsAreUnique(t *testing.T) {
	t.Parallel()
	for name, component := range map[string]templ.Component{
		"home": clusterview.HomePage(homeModel()), "list": clusterview.ListPage(listModel()), "new": clusterview.NewPage(formModel()),
		"preview": clusterview.PreviewPage(previewModel()), "cluster": clusterview.ShowPage(showModel()),
		"graph": clusterview.OperationPage(operationModel()), "task": clusterview.TaskPage(taskModel()), "node": clusterview.NodePage(nodeModel()),
	} {
		seen := map[string]bool{}
		for _, m := range anchor.FindAllStringSubmatch(golden.Render(t, component), -1) {
			if seen[m[1]] {
				t.Errorf("%s has the id %q twice", name, m[1])
			}
			seen[m[1]] = true
		}
	}
}

// What people and machines say is text, never markup.
func TestTextsAreEscaped(t *testing.T) {
	t.Parallel()
	const evil = `"><script>alert(1)</script>`
	show := showModel()
	show.Head.Name, show.Head.Description = evil, evil
	show.Connect.Links = []loom.Link{{Label: evil, URL: "javascript:alert(1)"}}
	show.Connect.Nodes[0].Command = evil
	html := golden.Render(t, clusterview.ShowPage(show))
	if strings.Contains(html, "<script") || strings.Contains(html, `href="javascript:`) {
		t.Errorf("markup of others is on the page: %s", html)
	}
}
