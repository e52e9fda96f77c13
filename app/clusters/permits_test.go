package clusters_test

import (
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// TestTypeSwitchedOff: with a provider type that the superadmin switched off nothing is made,
// by no way, and what was made before is worked on and deleted as ever.
func TestTypeSwitchedOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	id, other := b.made(3), b.made(3)
	node := b.node(id, 1001)
	create := b.preview(b.ana(), request(3))
	grow := b.previewOf(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 4})
	b.db.MustExec(`UPDATE tenants SET provider_types_off = '{lab}' WHERE id = $1`, b.tenant)
	const remedy = "ask the superadmin"
	refused := func(what string, err error) {
		t.Helper()
		e := loom.AsError(err)
		if err == nil || e.Kind != loom.Invalid || !slices.ContainsFunc(e.Fields, func(f loom.FieldError) bool { return f.Field == "provider" && strings.Contains(f.Message, remedy) }) {
			t.Errorf("%s: %v %+v", what, err, e.Fields)
		}
	}
	before := b.count(`SELECT count(*) FROM clusters`) + b.count(`SELECT count(*) FROM operations`)
	_, err := b.clusters.Create(b.ctx, b.ana(), request(3))
	refused("create", err)
	_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeCreate, Create: request(3)})
	refused("preview", err)
	check, err := b.clusters.Check(b.ctx, b.ana(), request(3))
	if err != nil || check.Fits || !slices.ContainsFunc(check.Fields, func(f loom.FieldError) bool { return strings.Contains(f.Message, remedy) }) {
		t.Errorf("check: %+v, %v", check.Fields, err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(create))
	refused("apply of an old preview", err)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(grow))
	refused("apply of an old preview of more machines", err)
	for kind, in := range map[loom.ChangeKind]clusters.ChangeInput{loom.ChangeExpand: {Machines: 4}, loom.ChangeRepair: {Nodes: []loom.NodeID{node}}} {
		_, err = b.begin(kind, id, in)
		refused(string(kind), err)
		_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: kind, Cluster: id, Change: in})
		refused("preview of "+string(kind), err)
	}
	if after := b.count(`SELECT count(*) FROM clusters`) + b.count(`SELECT count(*) FROM operations`); after != before {
		t.Errorf("something was stored: %d, %d before", after, before)
	}
	if _, err := b.clusters.RunServices(b.ctx, b.ana(), id, clusters.ServicesInput{Kind: loom.ChangeRestart}); err != nil {
		t.Errorf("restart: %v", err)
	}
	b.runTasks("")
	for _, gone := range []loom.ClusterID{id, other} {
		if _, err := b.clusters.Delete(b.ctx, b.ana(), gone, clusters.DeleteInput{}); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	b.runTasks("")
	if n := b.count(`SELECT count(*) FROM clusters WHERE status <> 'terminated'`); n != 0 {
		t.Errorf("%d clusters are left", n)
	}
	b.db.MustExec(`UPDATE tenants SET provider_types_off = '{static}' WHERE id = $1`, b.tenant)
	if _, err := b.clusters.Create(b.ctx, b.ana(), request(3)); err != nil {
		t.Errorf("switched on again: %v", err)
	}
}

// TestInstanceRolesSwitchedOff: a provider that uses them makes nothing.
func TestInstanceRolesSwitchedOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for value, refused := range map[any]bool{true: true, "on": true, "TRUE": true, false: false, "": false} {
		b.save(b.tenant, loom.KindProvider, &loom.Provider{Base: loom.Base{Name: "lab"}, Type: "lab", Fields: map[string]any{"use_instance_role": value}})
		_, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeCreate, Create: request(3)})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "Instance roles") {
			t.Errorf("%v: %v", value, err)
		}
	}
	b.db.MustExec(`UPDATE tenants SET instance_roles = true WHERE id = $1`, b.tenant)
	b.save(b.tenant, loom.KindProvider, &loom.Provider{Base: loom.Base{Name: "lab"}, Type: "lab", Fields: map[string]any{"use_instance_role": true}})
	b.preview(b.ana(), request(3))
}
