package clusters_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

func TestCreateStoresARunningCluster(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := request(3)
	in.Labels = map[string]string{"team": "red"}
	in.ProviderFields = map[string]any{"zone": "a", "token": "s3cret", "unknown": "x", "region": "south"}
	ref, err := b.clusters.Create(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	if v.Status != loom.ClusterPending || v.Latest == nil || v.Latest.Ref != ref || ref.Number != 1 || v.Latest.Status != loom.OperationRunning {
		t.Fatalf("status %s, latest %+v, ref %v", v.Status, v.Latest, ref)
	}
	if len(v.Nodes) != 3 {
		t.Fatalf("%d nodes", len(v.Nodes))
	}
	first := v.Nodes[0]
	if first.Number != 1000 || first.Flavor != "s1" || first.Image != "deb12" || first.SSHUser != "ops" ||
		!slices.Equal(first.Automators, []string{"shell"}) || first.State != loom.NodePlanned && first.State != loom.NodeCreating {
		t.Errorf("node %+v", first)
	}
	if want := loom.Hostname("9Web_tier", ref.Cluster, 1000, "lab.example"); first.Hostname != want {
		t.Errorf("host name %q, want %q", first.Hostname, want)
	}
	if v.Provider.Fields["zone"] != "a" || v.Provider.Fields["region"] != "north" || v.Provider.Fields["token"] != nil || v.Provider.Fields["unknown"] != nil {
		t.Errorf("provider copy %v", v.Provider.Fields)
	}
	// The service's default lies below the template's.
	web, _ := v.Config["web"].(map[string]any)
	if web["port"] != json.Number("8080") || web["threads"] != json.Number("4") {
		t.Errorf("config %v", v.Config)
	}
	if v.Links[0].URL != "http://"+first.Hostname+"/" && !strings.Contains(v.Links[0].URL, "lab.example") {
		t.Errorf("link %q is not expanded", v.Links[0].URL)
	}
	if v.Links[1].URL != "http://%host.self%/" {
		t.Errorf("link %q: self cannot be known", v.Links[1].URL)
	}
	sealed, err := store.Secrets(b.ctx, b.db.DB, b.tenant, store.ClusterSecrets(ref.Cluster))
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(sealed)); !slices.Equal(got, []string{"ssh_keyfile", "ssh_public_key", "token"}) {
		t.Fatalf("secrets %v", got)
	}
	token, err := b.ring.Open(b.tenant, store.ClusterSecrets(ref.Cluster), "token", sealed["token"])
	if err != nil || token.Reveal() != "s3cret" {
		t.Errorf("token: %v", err)
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE kind = 'cluster' AND verb = 'create' AND after::text NOT LIKE '%s3cret%'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	if n := b.count(`SELECT count(*) FROM events WHERE topic = 'clusters'`); n == 0 {
		t.Error("no event")
	}
	if tasks := v.Latest.Progress().Total; tasks != b.count(`SELECT count(*) FROM river_job`) || tasks == 0 {
		t.Errorf("%d tasks, %d River jobs", tasks, b.count(`SELECT count(*) FROM river_job`))
	}
}

func TestConfigOfARequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		name string
		in   func(in *loom.CreateInput)
		want string
	}{
		{"whole", func(in *loom.CreateInput) { in.Config = map[string]any{"x": 1} }, `{"x":1}`},
		{"empty counts as given", func(in *loom.CreateInput) { in.Config = map[string]any{} }, `{}`},
		{"patch", func(in *loom.CreateInput) {
			in.ConfigPatch = map[string]any{"web": map[string]any{"peers": nil, "tls": true}}
		}, `{"web":{"port":8080,"threads":4,"tls":true}}`},
	} {
		in := request(2)
		c.in(&in)
		v := b.preview(b.ana(), in)
		got, err := json.Marshal(v.Config)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: config %s, want %s (%v)", c.name, got, c.want, err)
		}
	}
}

func TestCreateRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.save(b.tenant, loom.KindTemplate, &loom.Template{Base: loom.Base{Name: "orphan"}, Extends: &loom.NameRef{Name: "nobody"}})
	half := labType()
	half.Name = "strict"
	half.Parameters["admin"] = loom.FieldGroup{Fields: half.Parameters["admin"].Fields, Required: [][]string{{"region"}}}
	b.save(loom.SuperTenant, loom.KindProviderType, half)
	b.save(b.tenant, loom.KindProvider, &loom.Provider{Base: loom.Base{Name: "half"}, Type: "strict", Fields: map[string]any{"region": ""}})
	b.save(b.tenant, loom.KindProvider, &loom.Provider{Base: loom.Base{Name: "alien"}, Type: "nowhere"})
	leased := siteTemplate()
	leased.Name, leased.Administration.Lease = "leased", loom.LeaseRule{Initial: 1000, Max: 2000}
	b.save(b.tenant, loom.KindTemplate, leased)
	for _, c := range []struct {
		name  string
		in    func(in *loom.CreateInput)
		kind  loom.Kind
		field string
	}{
		{"no name", func(in *loom.CreateInput) { in.Name = "" }, loom.Invalid, "name"},
		{"bad name", func(in *loom.CreateInput) { in.Name = "a b" }, loom.Invalid, "name"},
		{"no template", func(in *loom.CreateInput) { in.Template = "" }, loom.Invalid, "clusterTemplate"},
		{"shape comes before the catalog", func(in *loom.CreateInput) { in.Name, in.Template = "", "x" }, loom.Invalid, "name"},
		{"both are named", func(in *loom.CreateInput) { in.Name, in.Template = "", "x" }, loom.Invalid, "clusterTemplate"},
		{"incomplete provider", func(in *loom.CreateInput) { in.Provider = "half" }, loom.Invalid, "provider"},
		{"provider type missing", func(in *loom.CreateInput) { in.Provider = "alien" }, loom.NotFound, "provider"},
		{"unknown template", func(in *loom.CreateInput) { in.Template = "x" }, loom.NotFound, "clusterTemplate"},
		{"parent missing", func(in *loom.CreateInput) { in.Template = "orphan" }, loom.NotFound, "clusterTemplate"},
		{"NUL in template", func(in *loom.CreateInput) { in.Template = "x\x00" }, loom.Invalid, "clusterTemplate"},
		{"unknown provider", func(in *loom.CreateInput) { in.Provider = "x" }, loom.NotFound, "provider"},
		{"no machines", func(in *loom.CreateInput) { in.Machines = 0 }, loom.Invalid, "numMachines"},
		{"too many for the installation", func(in *loom.CreateInput) { in.Machines = 10_001 }, loom.Invalid, "numMachines"},
		{"too many for the quota", func(in *loom.CreateInput) { in.Machines = 1001 }, loom.Exhausted, ""},
		{"size", func(in *loom.CreateInput) { in.Machines = 21 }, loom.Unsolvable, ""},
		{"unknown service", func(in *loom.CreateInput) { in.Services = []string{"x"} }, loom.Unsolvable, ""},
		{"missing dependency", func(in *loom.CreateInput) { in.Services = []string{"web"} }, loom.Unsolvable, ""},
		{"suffix", func(in *loom.CreateInput) { in.DNSSuffix = "a..b" }, loom.Invalid, "dnsSuffix"},
		{"lease", func(in *loom.CreateInput) { in.Template, in.LeaseMillis = "leased", 1001 }, loom.Invalid, "initialLeaseDuration"},
		{"both configs", func(in *loom.CreateInput) { in.Config, in.ConfigPatch = map[string]any{}, map[string]any{} }, loom.Invalid, "configPatch"},
		{"macro", func(in *loom.CreateInput) { in.Config = map[string]any{"a": "%nonsense%"} }, loom.Invalid, "config/a"},
		{"macro index", func(in *loom.CreateInput) { in.Config = map[string]any{"a": "%host.service.web[7]%"} }, loom.Invalid, "config/a"},
		{"NUL in config", func(in *loom.CreateInput) { in.Config = map[string]any{"a": "\x00"} }, loom.Invalid, "config"},
		{"number beyond bounds", func(in *loom.CreateInput) { in.Config = map[string]any{"a": json.Number("1e9999")} }, loom.Invalid, "config"},
		{"labels", func(in *loom.CreateInput) { in.Labels = map[string]string{"": "x"} }, loom.Invalid, "labels"},
		{"on failure", func(in *loom.CreateInput) { in.OnFailure = "shrug" }, loom.Invalid, "onFailure"},
		{"provider field", func(in *loom.CreateInput) { in.ProviderFields = map[string]any{"zone": "c"} }, loom.Invalid, "providerFields.zone"},
	} {
		in := request(3)
		c.in(&in)
		_, err := b.clusters.Create(b.ctx, b.ana(), in)
		e := loom.AsError(err)
		if err == nil || e.Kind != c.kind {
			t.Errorf("%s: %v, want %s", c.name, err, c.kind)
			continue
		}
		if c.field != "" && !slices.ContainsFunc(e.Fields, func(f loom.FieldError) bool { return f.Field == c.field }) {
			t.Errorf("%s: fields %v, want %s", c.name, e.Fields, c.field)
		}
		if c.kind == loom.Unsolvable && (e.Unsat == nil || len(e.Unsat.Reasons) == 0) {
			t.Errorf("%s: no reasons", c.name)
		}
		// The check gives an answer for all of these, never an error.
		result, err := b.clusters.Check(b.ctx, b.ana(), in)
		if err != nil || result.Fits {
			t.Errorf("check of %s: fits %v, %v", c.name, result.Fits, err)
		}
		if c.field != "" && !slices.ContainsFunc(result.Fields, func(f loom.FieldError) bool { return f.Field == c.field }) {
			t.Errorf("check of %s: fields %v, want %s", c.name, result.Fields, c.field)
		}
	}
	if n := b.count(`SELECT count(*) FROM clusters`) + b.count(`SELECT count(*) FROM previews`); n != 0 {
		t.Errorf("%d rows were stored", n)
	}
}

func TestCheckShowsWhatThePanelNeeds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(b.ana(), 2)
	in := request(4)
	in.ConfigPatch = map[string]any{"far": "%host.service.cache%"}
	r, err := b.clusters.Check(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Fits || r.Layout.Machines() != 4 || r.Tasks == 0 || r.Stages == 0 || r.Quota.Clusters != 2 || r.Quota.Nodes != 6 {
		t.Fatalf("%+v", r)
	}
	if r.Sizes == nil || r.Sizes.Min != 2 || r.Sizes.Max != 20 {
		t.Errorf("sizes %+v", r.Sizes)
	}
	if r.Price == nil || *r.Price != 2 {
		t.Errorf("price %v", r.Price)
	}
	all := strings.Join(r.Warnings, "\n")
	for _, want := range []string{"“web” can use “cache”", "%host.service.cache% stays"} {
		if !strings.Contains(all, want) {
			t.Errorf("warnings %q lack %q", all, want)
		}
	}
	f, err := b.clusters.FormFacts(b.ctx, b.ana(), in.Template, in.Provider)
	if err != nil || len(f.HardwareTypes) != 1 || f.MinMachines != 2 || f.MaxMachines != 20 || f.ProviderFields["zone"].Label != "Zone" {
		t.Errorf("template facts %+v, %v", f, err)
	}

	b.db.MustExec(`UPDATE tenants SET workers = 0, max_nodes = 5 WHERE id = $1`, b.tenant)
	r, err = b.clusters.Check(b.ctx, b.ana(), in)
	if err != nil || r.Fits || r.Exceeded == "" || !strings.Contains(strings.Join(r.Warnings, "\n"), "no workers") {
		t.Errorf("over the quota and without workers: %+v, %v", r, err)
	}

	in.Machines = 1
	r, err = b.clusters.Check(b.ctx, b.ana(), in)
	if err != nil || r.Fits || r.Unsat == nil || len(r.Unsat.Reasons) == 0 || r.Sizes == nil {
		t.Errorf("too small: %+v, %v", r, err)
	}
	if len(r.Unsat.Suggestions) == 0 {
		t.Error("no suggestion")
	}
}

func TestCheckSearchesWhileTheNameIsMissing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := request(3)
	in.Name = ""
	r, err := b.clusters.Check(b.ctx, b.ana(), in)
	if err != nil || r.Fits || r.Layout.Machines() != 3 || len(r.Fields) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestProviderFieldsAreRequired(t *testing.T) {
	t.Parallel()
	b := setup(t)
	needy := labType()
	needy.Parameters["user"] = loom.FieldGroup{Fields: needy.Parameters["user"].Fields, Required: [][]string{{"zone", "token"}}}
	b.save(loom.SuperTenant, loom.KindProviderType, needy)

	_, err := b.clusters.Create(b.ctx, b.ana(), request(2))
	e := wantKind(t, err, loom.Invalid)
	if len(e.Missing) != 1 || len(e.Missing[0]) != 2 {
		t.Fatalf("missing %v", e.Missing)
	}
	r, err := b.clusters.Check(b.ctx, b.ana(), request(2))
	if err != nil || len(r.Missing) != 1 || !r.Fits {
		t.Errorf("check: %+v, %v", r, err)
	}

	// The preview keeps the zone and asks for the token again.
	in := request(2)
	in.ProviderFields = map[string]any{"zone": "a", "token": "s3cret"}
	v := b.preview(b.ana(), in)
	if len(v.Missing) != 1 || len(v.Missing[0]) != 1 || v.Missing[0]["token"].Label != "Token" {
		t.Fatalf("missing %v", v.Missing)
	}
	if n := b.count(`SELECT count(*) FROM previews WHERE body::text LIKE '%s3cret%'`); n != 0 {
		t.Fatal("the preview holds a secret")
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID, Hash: v.Hash})
	if e := wantKind(t, err, loom.Invalid); len(e.Missing) != 1 {
		t.Errorf("missing %v", e.Missing)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID, Hash: v.Hash, ProviderFields: map[string]any{"token": "s3cret", "zone": "b"}})
	if e := wantKind(t, err, loom.Invalid); e.Fields[0].Field != "providerFields.zone" {
		t.Errorf("fields %v", e.Fields)
	}
	ref, err := b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID, Hash: v.Hash, ProviderFields: map[string]any{"token": "s3cret"}})
	if err != nil {
		t.Fatal(err)
	}
	// Deleting finds both where the create left them.
	b.finish(ref.Cluster, loom.ClusterActive)
	if _, err := b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{}); err != nil {
		t.Fatal(err)
	}
}
