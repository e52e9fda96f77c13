package processes_test

import (
	"testing"

	"loom/app/loom"
)

// TestSweepLooksWhereMachinesWereMade: a provider that names another region since is swept
// in both, an orphan of the first is removed there, and is forgotten only when it is gone.
func TestSweepLooksWhereMachinesWereMade(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	live, dead := a.node("t1", 1, "active", "ready"), a.node("t1", 2, "terminated", "deleted")
	a.operation(2, "complete", "-1 h")
	a.exec(`UPDATE nodes SET results = results || '{"place": {"region": "north"}}'`)
	a.exec(`INSERT INTO catalog_versions (tenant_id, kind, name, version, body)
		VALUES ('t1', 'providers', 'lab', 50, '{"name": "lab", "providertype": "lab", "provisioner": {"region": "south"}}')`)
	c := &cloud{regions: map[string][]loom.TaggedMachine{"north": {live, dead}}}
	a.must(a.sweep(c))
	if got := a.listed(); got != dead.ID {
		t.Fatalf("orphans: %q, want %q", got, dead.ID)
	}
	if len(c.calls) != 2 {
		t.Errorf("%d lists, want one each of two regions", len(c.calls))
	}
	// Also when its cluster ended too long ago to be swept for itself.
	a.exec(`UPDATE operations SET ended_at = now() - interval '30 days'`)
	a.must(a.sweep(c))
	if got := a.listed(); got != dead.ID {
		t.Errorf("orphans a month later: %q, want %q", got, dead.ID)
	}
	orphans, err := a.Orphans(a.ctx, a.super)
	a.must(err)
	stop := a.serve(c)
	defer stop()
	a.must(a.RemoveOrphan(a.ctx, a.super, orphans[0].ID))
	if got := a.listed(); got != "" || len(c.regions["north"]) != 1 {
		t.Errorf("after the removal: orphans %q, machines %v", got, c.regions["north"])
	}
}
