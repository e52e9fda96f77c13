package clusters_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

// provider stores another version of the provider “lab”.
func (b *bundle) provider(fields map[string]any) {
	b.t.Helper()
	b.save(b.tenant, loom.KindProvider, &loom.Provider{Base: loom.Base{Name: "lab", Label: "The lab"}, Type: "lab", Fields: fields})
}

// setupLive is setup with a type whose region is a place and whose account is for access.
func setupLive(t *testing.T) *bundle {
	b := setup(t)
	kind := labType()
	admin := kind.Parameters["admin"].Fields
	admin["region"] = loom.FieldSchema{Label: "Region", Type: "text", Role: loom.RolePlace}
	admin["account"] = loom.FieldSchema{Label: "Account", Type: "text", Role: loom.RoleAccess}
	admin["disk"] = loom.FieldSchema{Label: "Disk", Type: "text", Default: "10"}
	b.save(loom.SuperTenant, loom.KindProviderType, kind)
	b.provider(map[string]any{"region": "north", "account": "first"})
	return b
}

// TestPreviewPromisesWhatIsBuilt: what a provider needs for access may change between a
// preview and its use; what decides what is built, and where, makes it stale. A preview
// that makes no machine does not care.
func TestPreviewPromisesWhatIsBuilt(t *testing.T) {
	t.Parallel()
	b := setupLive(t)
	id, machines := b.active(2), 3
	for _, c := range []struct {
		what   string
		before map[string]any
		after  map[string]any
		moved  string // the label of the field that changed
	}{
		{"the account", map[string]any{"region": "north", "account": "first"}, map[string]any{"region": "north", "account": "second"}, ""},
		{"what is the default anyway", map[string]any{"region": "north"}, map[string]any{"region": "north", "disk": "10"}, ""},
		{"the region", map[string]any{"region": "north"}, map[string]any{"region": "south"}, "Region"},
		{"the disk", map[string]any{"region": "north"}, map[string]any{"region": "north", "disk": "20"}, "Disk"},
		{"no disk", map[string]any{"region": "north", "disk": "20"}, map[string]any{"region": "north"}, "Disk"},
	} {
		for _, in := range []clusters.PreviewInput{
			{Kind: loom.ChangeCreate, Create: request(2)},
			{Kind: loom.ChangeExpand, Cluster: id, Change: clusters.ChangeInput{Machines: machines}},
			{Kind: loom.ChangeStop, Cluster: id},
			{Kind: loom.ChangeStart, Cluster: id},
		} {
			b.provider(c.before)
			v, err := b.clusters.Preview(b.ctx, b.ana(), in)
			if err != nil {
				t.Fatal(err)
			}
			b.provider(c.after)
			if again, err := b.clusters.PreviewByID(b.ctx, b.ana(), v.ID); err != nil || again.Hash != v.Hash {
				t.Errorf("%s, %s: the preview has another hash, %v", c.what, in.Kind, err)
			}
			_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
			makes := in.Kind == loom.ChangeCreate || in.Kind == loom.ChangeExpand
			if makes && c.moved != "" {
				if !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "“"+c.moved+"” changed") || loom.AsError(err).Preview == "" {
					t.Errorf("%s, %s: %v", c.what, in.Kind, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", c.what, in.Kind, err)
			}
			if in.Cluster == id {
				b.finish(id, loom.ClusterActive)
			}
			if in.Kind == loom.ChangeExpand {
				machines++
			}
		}
	}
}

// TestClusterKeepsOnlyItsOwnFields: a cluster reads its provider as it is, with the fields
// in front that were given for it; what a create and an operation give adds up.
func TestClusterKeepsOnlyItsOwnFields(t *testing.T) {
	t.Parallel()
	b := setupLive(t)
	in := request(2)
	in.ProviderFields = map[string]any{"zone": "a"}
	ref, err := b.clusters.Create(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	b.finish(ref.Cluster, loom.ClusterActive)
	b.provider(map[string]any{"region": "north", "account": "second", "zone": "b"})
	read := func() loom.Cluster {
		c, err := store.ClusterByID(b.ctx, b.db.DB, b.tenant, ref.Cluster)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := read()
	if want := (map[string]any{"region": "north", "account": "second", "zone": "a"}); !reflect.DeepEqual(c.Provider.Fields, want) || c.Provider.Type != "lab" ||
		!reflect.DeepEqual(c.ProviderFields, map[string]any{"zone": "a"}) {
		t.Errorf("the provider is %+v, the cluster's own are %v", c.Provider, c.ProviderFields)
	}
	if _, err := b.configure(b.ana(), ref.Cluster, clusters.ConfigureInput{Config: map[string]any{"n": json.Number("1")}}, map[string]any{"zone": "b"}); err != nil {
		t.Fatal(err)
	}
	if c = read(); c.ProviderFields["zone"] != "b" || c.Provider.Fields["account"] != "second" {
		t.Errorf("after another field the provider is %+v", c.Provider)
	}
	if kept := b.count(`SELECT count(*) FROM clusters WHERE provider_fields::text LIKE '%second%' OR provider_fields::text LIKE '%north%'`); kept != 0 {
		t.Error("the cluster has a copy of the provider")
	}
}

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
	if _, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: loom.ChangeRestart}); err != nil {
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
