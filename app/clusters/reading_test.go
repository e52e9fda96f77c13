package clusters_test

import (
	"slices"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// TestPagesOfTasksCoverThePlan walks a plan by pages of every size in both
// directions, forward and back.
func TestPagesOfTasksCoverThePlan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 3)
	op, err := b.clusters.Operation(b.ctx, b.ana(), ref)
	if err != nil {
		t.Fatal(err)
	}
	total := op.Progress().Total
	for _, sort := range []string{"number", "-number"} {
		for limit := 1; limit <= total+1; limit++ {
			var numbers []int
			page := loom.Page{Sort: sort, Limit: limit}
			last := clusters.Listed[clusters.TaskView]{}
			for more := true; more; more = last.Next != "" {
				page.After = last.Next
				if last, err = b.clusters.TaskPage(b.ctx, b.ana(), ref, clusters.TaskListInput{Page: page}); err != nil {
					t.Fatal(err)
				}
				for _, task := range last.Items {
					numbers = append(numbers, task.Ref.Number)
				}
			}
			back := slices.Clone(numbers[len(numbers)-len(last.Items):])
			for last.Prev != "" {
				last, err = b.clusters.TaskPage(b.ctx, b.ana(), ref, clusters.TaskListInput{Page: loom.Page{Sort: sort, Limit: limit, Before: last.Prev}})
				if err != nil {
					t.Fatal(err)
				}
				var part []int
				for _, task := range last.Items {
					part = append(part, task.Ref.Number)
				}
				back = append(part, back...)
			}
			if len(numbers) != total || !slices.Equal(numbers, back) || !slices.IsSortedFunc(numbers, func(x, y int) int {
				if sort == "number" {
					return x - y
				}
				return y - x
			}) {
				t.Fatalf("by %s and %d: %v, back %v", sort, limit, numbers, back)
			}
		}
	}
	_, err = b.clusters.TaskPage(b.ctx, b.ana(), ref, clusters.TaskListInput{Statuses: []loom.TaskStatus{"x"}})
	wantKind(t, err, loom.Invalid)
	_, err = b.clusters.OperationPage(b.ctx, b.ana(), ref.Cluster, clusters.OperationListInput{Actions: []loom.ClusterAction{"x"}})
	wantKind(t, err, loom.Invalid)
	one, err := b.clusters.OperationPage(b.ctx, b.ana(), ref.Cluster, clusters.OperationListInput{Statuses: []loom.OperationStatus{loom.OperationRunning}})
	if err != nil || len(one.Items) != 1 || one.Next != "" || one.Prev != "" || one.Items[0].Progress().Total != total {
		t.Errorf("%+v, %v", one, err)
	}
}

// TestForeignersReadNoNodesAndLogs is TestForeignersSeeAndDoNothing for what reads
// over several tasks or clusters.
func TestForeignersReadNoNodesAndLogs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.attempts(ref, 3)
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	node := v.Nodes[0].ID
	log, err := b.clusters.Interleaved(b.ctx, b.ana(), clusters.LogSource{Operation: ref}, clusters.InterleavedInput{Whole: true})
	if err != nil || len(log.Lines) != 3 || log.Over {
		t.Fatalf("%+v, %v", log, err)
	}
	other := loom.Actor{Tenant: "t2", TenantName: "other", User: "ana", Role: loom.RoleAdmin, Via: "session"}
	super := loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "admin", Role: loom.RoleSuperadmin, Via: "session"}
	for name, actor := range map[string]loom.Actor{"same user of another tenant": other, "superadmin": super, "other user": b.actor("bob", loom.RoleUser)} {
		calls := map[string]error{}
		_, calls["OperationPage"] = b.clusters.OperationPage(b.ctx, actor, ref.Cluster, clusters.OperationListInput{})
		_, calls["TaskPage"] = b.clusters.TaskPage(b.ctx, actor, ref, clusters.TaskListInput{})
		_, calls["NodeByID"] = b.clusters.NodeByID(b.ctx, actor, node)
		_, calls["Interleaved"] = b.clusters.Interleaved(b.ctx, actor, clusters.LogSource{Operation: ref}, clusters.InterleavedInput{})
		_, calls["Interleaved of a node"] = b.clusters.Interleaved(b.ctx, actor, clusters.LogSource{Operation: ref, Node: node}, clusters.InterleavedInput{})
		for call, err := range calls {
			if err == nil || loom.AsError(err).Kind != loom.NotFound {
				t.Errorf("%s, %s: %v", name, call, err)
			}
		}
		if page, err := b.clusters.Nodes(b.ctx, actor, loom.Page{}); err != nil || len(page.Items) != 0 {
			t.Errorf("%s lists %d nodes, %v", name, len(page.Items), err)
		}
		if found, err := b.clusters.NodeProperties(b.ctx, actor, ref.Cluster, nil); err != nil || len(found) != 0 {
			t.Errorf("%s reads %v, %v", name, found, err)
		}
	}
	for _, cursor := range []string{"x", "MQ", "MS4tMQ", "1.1", "====", "Li4u"} {
		_, err := b.clusters.Interleaved(b.ctx, b.ana(), clusters.LogSource{Operation: ref}, clusters.InterleavedInput{After: cursor})
		wantKind(t, err, loom.Invalid)
	}
}

// TestWritingANodeMakesPlansStale: a plan that was made before is not applied.
func TestWritingANodeMakesPlansStale(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	b.db.MustExec(`UPDATE nodes SET task_id = NULL, state = 'ready'`)
	preview, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: ref.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	name := "db.lab.example"
	in := clusters.NodeInput{ID: v.Nodes[0].ID, Cluster: ref.Cluster, Hostname: &name}
	_, err = b.clusters.WriteNode(b.ctx, b.ana(), in)
	wantKind(t, err, loom.Forbidden)
	if created, err := b.clusters.WriteNode(b.ctx, b.admin(), in); err != nil || created {
		t.Fatal(created, err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(preview))
	wantKind(t, err, loom.Conflict)
	after, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || after.Revision != v.Revision+1 || after.Nodes[0].Hostname != name || after.Status != loom.ClusterActive {
		t.Errorf("%+v, %v", after.Cluster, err)
	}
}

// TestSealedPasswordsStayWhereTheyAre: an administrator who does not know a provider's password does not
// choose where it is sent.
func TestSealedPasswordsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	b.db.MustExec(`UPDATE nodes SET task_id = NULL, state = 'ready', ipaddresses = '{"access_v4": "203.0.113.1"}'`)
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	write := func(addresses map[string]string) error {
		_, err := b.clusters.WriteNode(b.ctx, b.admin(), clusters.NodeInput{ID: v.Nodes[0].ID, Cluster: ref.Cluster, Addresses: addresses})
		return err
	}
	b.db.MustExec(`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ($1, 'provider:lab', 'ssh_password', 'x')`, b.tenant)
	for _, addresses := range []map[string]string{{"access_v4": "203.0.113.2"}, {}, {"bind_v4": "203.0.113.1"}} {
		wantKind(t, write(addresses), loom.Conflict)
	}
	if err := write(map[string]string{"access_v4": "203.0.113.1", "bind_v4": "10.0.0.1"}); err != nil { // the same place
		t.Error(err)
	}
	b.db.MustExec(`DELETE FROM secrets WHERE entity = 'provider:lab'`)
	if err := write(map[string]string{"access_v4": "203.0.113.2"}); err != nil {
		t.Error(err)
	}
}
