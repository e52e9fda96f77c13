package clusters_test

import (
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// What failed in a batch ends the roll behind that batch: the other nodes of it, which
// were taken down for it, serve again, and the next one is not touched.
func TestRollEndsBehindTheBatchThatFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  loom.ChangeKind
		in    clusters.ChangeInput
		fails loom.TaskAction
		// done are the tasks of node 1002, of which none is missing.
		done string
		web  []loom.ServiceState // of 1001 to 1003
	}{
		{loom.ChangeUpgrade, clusters.ChangeInput{Batch: 2}, loom.ActionStop, "stop, install, configure, start",
			[]loom.ServiceState{loom.ServiceFailed, loom.ServiceStarted, loom.ServiceStarted}},
		{loom.ChangeUpgrade, clusters.ChangeInput{Batch: 2}, loom.ActionStart, "stop, install, configure, start",
			[]loom.ServiceState{loom.ServiceFailed, loom.ServiceStarted, loom.ServiceStarted}},
		{loom.ChangeResize, clusters.ChangeInput{HardwareType: "xlarge", Services: []string{"web"}, Batch: 2}, loom.ActionStart, "create, confirm, bootstrap, install, install, configure, start, start, delete",
			[]loom.ServiceState{loom.ServiceFailed, loom.ServiceStarted, loom.ServiceStarted}},
	} {
		t.Run(string(c.kind)+" "+string(c.fails), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.withRoles()
			id := b.made(4)
			b.renew("web")
			ref, err := b.begin(c.kind, id, c.in)
			if err != nil {
				t.Fatal(err)
			}
			b.runTasksBut(func(action loom.TaskAction, node int) bool { return action == c.fails && node == 1001 }, false)
			now := b.cluster(id)
			if now.Status != loom.ClusterInconsistent || now.Latest.Status != loom.OperationFailed {
				t.Errorf("the cluster is %s, the operation %s", now.Status, now.Latest.Status)
			}
			if m := now.Latest.Message; !strings.HasPrefix(m, "Task ") || !strings.Contains(m, string(c.fails)) || !strings.HasSuffix(m, "(node 1001), failed, and trying again would not help: no") {
				t.Errorf("message %q", m)
			}
			tasks := func(number int, status loom.TaskStatus) string {
				var text string
				if err := b.db.Get(&text, `SELECT coalesce(string_agg(t.action, ', ' ORDER BY t.action_order, t.number), '') FROM tasks t JOIN nodes n ON n.id = t.node_id JOIN operations o ON o.id = t.operation_id
					WHERE o.number = $1 AND n.number = $2 AND t.status = $3`, ref.Number, number, string(status)); err != nil {
					t.Fatal(err)
				}
				return text
			}
			if got := tasks(1002, loom.TaskComplete); got != c.done {
				t.Errorf("done on the other node of the batch: %s, want %s", got, c.done)
			}
			if got := tasks(1003, loom.TaskComplete) + tasks(1003, loom.TaskFailed); got != "" {
				t.Errorf("done on the node of the next batch: %s", got)
			}
			for i, want := range c.web {
				if got := now.Nodes[i+1].ServiceStates["web"]; got != want {
					t.Errorf("web on node %d is %q, want %q", 1001+i, got, want)
				}
			}
			if n := b.count(`SELECT count(*) FROM river_job WHERE state NOT IN ('completed', 'cancelled', 'discarded')`); n != 0 {
				t.Errorf("%d River jobs are left", n)
			}
			// The retry does what is left, and no more.
			again, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeRetry, Cluster: id})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(again)); err != nil {
				t.Fatal(err)
			}
			if n := b.count(`SELECT count(*) FROM tasks t JOIN nodes n ON n.id = t.node_id WHERE t.operation_id = (SELECT max(id) FROM operations) AND n.number = 1002`); n != 0 {
				t.Errorf("%d tasks on the node that is done", n)
			}
			b.runTasks("")
			if now := b.cluster(id); now.Status != loom.ClusterActive {
				t.Errorf("retried: %s", now.Status)
			}
		})
	}
}
