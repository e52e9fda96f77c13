package execution_test

import (
	"slices"
	"testing"

	"loom/app/loom"
)

// TestJournalTarget: what follows a journal knows the logs of the service and every secret of
// the cluster, as tasks know them; also where the template wants no checks.
func TestJournalTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.seal("cluster:"+w.cluster.String(), "ssh_keyfile", "-----BEGIN KEY-----\nbase64line\n-----END KEY-----\n")
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	w.complete(w.deliver(1), loom.TaskResult{Hostname: "web.lab"})
	w.exec(`UPDATE clusters SET config = '{"db": {"password": "pa55word-of-%host.self%"}}', template = '{"administration": {"health": {"interval": 0}}}',
		services = jsonb_set(services, '{web,logs}', '{"units": ["web"], "files": ["/var/log/web.log"]}')`)
	var node loom.NodeID
	if err := w.db.Get(&node, `SELECT id FROM nodes`); err != nil {
		t.Fatal(err)
	}
	j := loom.Journal{Tenant: "t1", Cluster: w.cluster, Node: node, Service: "web", Lines: 10}
	target, err := w.ops.JournalTarget(ctx, j, loom.HealthNode{Node: node, Tenant: "t1", Cluster: w.cluster, Incarnation: 1, Operation: 1})
	if err != nil {
		t.Fatal(err)
	}
	if target.Journal != j || target.Trouble != "" || target.Start.Type == "" || !slices.Equal(target.Logs.Units, []string{"web"}) || !slices.Equal(target.Logs.Files, []string{"/var/log/web.log"}) {
		t.Errorf("target: %+v", target)
	}
	hidden, _ := loom.HiddenTexts(target.Spec.Config, false)
	for _, text := range []string{"base64line", "pa55word-of-web.lab"} {
		if !slices.Contains(append(hidden, target.Spec.Sensitive...), text) {
			t.Errorf("%q may be shown: %q, %q", text, hidden, target.Spec.Sensitive)
		}
	}
	if !target.Spec.Deadline.IsZero() || target.Spec.Service != nil {
		t.Errorf("spec: %+v", target.Spec)
	}
	none := loom.NodeID("00000000-0000-4000-8000-00000000ffff")
	if _, err := w.ops.JournalTarget(ctx, j, loom.HealthNode{Node: none, Tenant: "t1", Cluster: w.cluster, Operation: 1}); loom.AsError(err).Kind != loom.NotFound {
		t.Errorf("a node that is gone: %v", err)
	}
}
