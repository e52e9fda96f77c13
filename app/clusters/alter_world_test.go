package clusters_test

import (
	"fmt"
	"slices"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

// withRoles gives the services of the bundle what changes of a layout look at: db
// follows web, all can be stopped and only web be removed; there is a larger type.
func (b *bundle) withRoles() {
	b.t.Helper()
	for _, name := range []string{"db", "web"} {
		b.save(b.tenant, loom.KindService, role(name))
	}
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "xlarge"}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "l1"}}})
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "alien"}, ProviderMap: map[string]map[string]string{"moon": {"flavor": "m1"}}})
}

// renew stores a version of a role that means other work than the one before.
func (b *bundle) renew(name string) {
	b.t.Helper()
	s := role(name)
	s.Provisioner.Actions[loom.ActionInstall].Fields["args"] = fmt.Sprint("newer than ", b.count(`SELECT max(version) FROM catalog_versions WHERE tenant_id = $1 AND name = $2`, b.tenant, name))
	b.save(b.tenant, loom.KindService, s)
}

func role(name string) *loom.Service {
	s := service(name, []string{"base"})
	for _, action := range []loom.TaskAction{loom.ActionConfigure, loom.ActionStop} {
		s.Provisioner.Actions[action] = s.Provisioner.Actions[loom.ActionStart]
	}
	if name == "db" {
		s.Follows = []string{"web"}
		return s
	}
	s.Provisioner.Actions[loom.ActionRemove] = s.Provisioner.Actions[loom.ActionStart]
	return s
}

func (b *bundle) previewOf(kind loom.ChangeKind, id loom.ClusterID, in clusters.ChangeInput) clusters.PreviewView {
	b.t.Helper()
	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: kind, Cluster: id, Change: in})
	if err != nil {
		b.t.Fatalf("preview of %s: %v", kind, err)
	}
	again, err := b.clusters.PreviewByID(b.ctx, b.ana(), v.ID)
	if err != nil || again.Hash != v.Hash || again.Summary() != v.Summary() || len(again.Plan.Tasks) != len(v.Plan.Tasks) {
		b.t.Errorf("%s read again: %q, %v", kind, again.Summary(), err)
	}
	return v
}

func (b *bundle) begin(kind loom.ChangeKind, id loom.ClusterID, in clusters.ChangeInput) (loom.OperationRef, error) {
	return b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Kind: kind, Cluster: id, Change: in})
}

// alter begins a change and carries it out.
func (b *bundle) alter(kind loom.ChangeKind, id loom.ClusterID, in clusters.ChangeInput) loom.OperationRef {
	b.t.Helper()
	ref, err := b.begin(kind, id, in)
	if err != nil {
		b.t.Fatalf("%s: %v", kind, err)
	}
	b.runTasks("")
	if c := b.cluster(id); c.Status != loom.ClusterActive || c.Latest.Status != loom.OperationComplete {
		b.t.Fatalf("%s left the cluster %s, the operation %s: %s", kind, c.Status, c.Latest.Status, c.Latest.Message)
	}
	return ref
}

// node is the id of the node of a number.
func (b *bundle) node(id loom.ClusterID, number int) loom.NodeID {
	b.t.Helper()
	v := b.cluster(id)
	for _, n := range slices.Concat(v.Nodes, v.Gone) {
		if n.Number == number {
			return n.ID
		}
	}
	b.t.Fatalf("no node %d", number)
	return ""
}

// members are "number incarnation hardware services" of the nodes that a cluster
// shows; the state is added where it is not ready, and "leaving".
func (b *bundle) members(id loom.ClusterID) []string {
	b.t.Helper()
	var out []string
	for _, n := range b.cluster(id).Nodes {
		text := fmt.Sprintf("%d %d %s %s", n.Number, n.Incarnation, n.HardwareType, strings.Join(n.Services, "+"))
		if n.State != loom.NodeReady {
			text += " " + string(n.State)
		}
		if n.Leaving {
			text += " leaving"
		}
		out = append(out, text)
	}
	return out
}

// steps counts the tasks of a plan by "action service@node".
func steps(plan loom.Plan) []string {
	var out []string
	for _, t := range plan.Tasks {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s", t.Action, t.Service))+fmt.Sprintf("@%d", t.NodeNumber))
	}
	slices.Sort(out)
	return out
}

func (b *bundle) before(ref loom.OperationRef) *loom.Snapshot {
	b.t.Helper()
	s, err := store.SnapshotBefore(b.ctx, b.db, b.tenant, ref)
	if err != nil || s == nil {
		b.t.Fatalf("no layout before %s: %v", ref, err)
	}
	return s
}

// says looks for texts in the message, reasons and fields of an error.
func says(err error, texts ...string) error {
	e := loom.AsError(err)
	all := e.Message
	if e.Unsat != nil {
		for _, r := range e.Unsat.Reasons {
			all += "\n" + r.Message
		}
	}
	for _, f := range e.Fields {
		all += "\n" + f.Field + ": " + f.Message
	}
	for _, text := range texts {
		if !strings.Contains(all, text) {
			return fmt.Errorf("%q is not said in: %s", text, all)
		}
	}
	return nil
}
