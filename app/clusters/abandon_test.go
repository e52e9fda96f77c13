package clusters_test

import (
	"encoding/json"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// leave makes a cluster whose delete left machines behind.
func (b *bundle) leave() loom.ClusterID {
	b.t.Helper()
	id := b.create(b.ana(), 2).Cluster
	b.runTasks("")
	b.db.MustExec(`UPDATE nodes SET state = 'ready', results = jsonb_build_object('providerid', 'm' || number) WHERE cluster_id = $1`, int64(id))
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		b.t.Fatal(err)
	}
	b.runTasks(loom.ActionDelete)
	return id
}

func TestAbandon(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.leave()
	v := b.cluster(id)
	if v.Status != loom.ClusterIncomplete || len(v.Leftovers) != 2 || v.Leftovers[0].Machine != "m1000" || v.Leftovers[0].Provider != "lab" || v.Leftovers[0].Error != "no" || v.Allowed[loom.ChangeDelete] != "" {
		t.Fatalf("%s with %+v", v.Status, v.Leftovers)
	}
	// Administrators alone see them and may give them up.
	own, err := b.clusters.Cluster(b.ctx, b.ana(), id)
	if err != nil || len(own.Leftovers) != 0 {
		t.Errorf("the owner sees %+v, %v", own.Leftovers, err)
	}
	give := clusters.DeleteInput{Abandon: true}
	_, err = b.clusters.Delete(b.ctx, b.ana(), id, give)
	wantKind(t, err, loom.Forbidden)
	_, err = b.clusters.Delete(b.ctx, b.actor("ben", loom.RoleUser), id, give)
	wantKind(t, err, loom.NotFound)
	b.db.MustExec(`UPDATE clusters SET protected = true WHERE id = $1`, int64(id))
	_, err = b.clusters.Delete(b.ctx, b.admin(), id, give)
	wantKind(t, err, loom.Conflict)
	b.db.MustExec(`UPDATE clusters SET protected = false WHERE id = $1`, int64(id))
	if ref, err := b.clusters.Delete(b.ctx, b.admin(), id, give); err != nil || ref.Number != 0 {
		t.Fatalf("%s, %v", ref, err)
	}
	if v := b.cluster(id); v.Status != loom.ClusterTerminated || len(v.Leftovers) != 0 {
		t.Errorf("%s with %+v", v.Status, v.Leftovers)
	}
	if n := b.count(`SELECT count(*) FROM leftovers WHERE ending = 'abandoned'`); n != 2 {
		t.Errorf("%d leftovers were given up", n)
	}
	if n := b.count(`SELECT count(*) FROM secrets WHERE entity LIKE 'cluster:%'`); n != 0 {
		t.Errorf("%d secrets are kept", n)
	}
	var after []byte
	if err := b.db.Get(&after, `SELECT after FROM audit WHERE actor = 'admin' AND verb = 'delete' AND kind = 'cluster' AND object = $1`, id.String()); err != nil {
		t.Fatal(err)
	}
	var entry struct {
		Status    string
		Abandoned []struct{ Provider, MachineID, LastError string }
	}
	if err := json.Unmarshal(after, &entry); err != nil || entry.Status != "terminated" || len(entry.Abandoned) != 2 || entry.Abandoned[1].MachineID != "m1001" || entry.Abandoned[1].LastError != "no" {
		t.Errorf("audit: %s", after)
	}
	// Once more is no error; what has nothing left behind cannot be given up.
	if _, err := b.clusters.Delete(b.ctx, b.admin(), id, give); err != nil {
		t.Error(err)
	}
	_, err = b.clusters.Delete(b.ctx, b.admin(), b.active(2), give)
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "without “abandon” first") {
		t.Errorf("message %q", e.Message)
	}
	_, err = b.clusters.Delete(b.ctx, b.admin(), b.create(b.ana(), 2).Cluster, give)
	wantKind(t, err, loom.Conflict)
}

// A delete that left something can be begun again, and then ends.
func TestDeleteAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.leave()
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if v := b.cluster(id); v.Status != loom.ClusterTerminated || b.count(`SELECT count(*) FROM leftovers WHERE ended_at IS NULL`) != 0 {
		t.Errorf("%s", v.Status)
	}
}
