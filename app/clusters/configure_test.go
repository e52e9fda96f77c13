package clusters_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func TestConfigureKeepsEveryConfig(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	first := b.cluster(id).Config
	for i, step := range []struct {
		in     clusters.ConfigureInput
		action loom.ClusterAction
		want   map[string]any
	}{
		{clusters.ConfigureInput{Config: parse(t, `{"a":{"b":1,"c":2},"keep":[1]}`), Restart: true}, loom.ClusterConfigureWithRestart, parse(t, `{"a":{"b":1,"c":2},"keep":[1]}`)},
		{clusters.ConfigureInput{ConfigPatch: parse(t, `{"a":{"b":null,"d":3},"keep":[2,3]}`)}, loom.ClusterConfigure, parse(t, `{"a":{"c":2,"d":3},"keep":[2,3]}`)},
		{clusters.ConfigureInput{Revision: new(1), Restart: true}, loom.ClusterConfigureWithRestart, first},
		{clusters.ConfigureInput{Config: map[string]any{}}, loom.ClusterConfigure, map[string]any{}},
	} {
		// From inconsistent every other time: a configure gets out of that.
		if i%2 == 1 {
			b.db.MustExec(`UPDATE clusters SET status = 'inconsistent' WHERE id = $1`, int64(id))
		}
		ref, err := b.configure(b.ana(), id, step.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := b.cluster(id)
		if !reflect.DeepEqual(v.Config, step.want) || v.Status != loom.ClusterPending || v.Latest.Action != step.action || ref.Number != i+2 {
			t.Errorf("step %d: operation %s, %s, status %s, config %v", i, ref, v.Latest.Action, v.Status, v.Config)
		}
		b.finish(id, loom.ClusterActive)
		stored, err := b.clusters.ConfigVersion(b.ctx, b.ana(), id, i+2)
		if err != nil || !reflect.DeepEqual(stored, step.want) {
			t.Errorf("revision %d is %v, %v", i+2, stored, err)
		}
	}
	all, err := b.clusters.ConfigVersions(b.ctx, b.ana(), id)
	if err != nil || len(all) != 5 || all[0].Revision != 5 || all[4].Revision != 1 || all[0].Author != "ana" || all[0].Operation != 5 || all[4].Operation != 1 || all[4].Time.IsZero() {
		t.Errorf("revisions %+v, %v", all, err)
	}
	_, err = b.clusters.ConfigVersion(b.ctx, b.ana(), id, 6)
	wantKind(t, err, loom.NotFound)
	_, err = b.clusters.ConfigVersions(b.ctx, b.actor("ben", loom.RoleUser), id)
	wantKind(t, err, loom.NotFound)
}

func TestConfigureIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	config := map[string]any{"a": 1}
	deep := map[string]any{}
	for range 101 {
		deep = map[string]any{"x": deep}
	}
	for _, c := range []struct {
		name   string
		status loom.ClusterStatus
		in     clusters.ConfigureInput
		fields map[string]any
		kind   loom.Kind
		field  string
	}{
		{"nothing given", loom.ClusterActive, clusters.ConfigureInput{}, nil, loom.Invalid, "config"},
		{"two given", loom.ClusterActive, clusters.ConfigureInput{Config: config, ConfigPatch: config}, nil, loom.Invalid, "configPatch"},
		{"two given", loom.ClusterActive, clusters.ConfigureInput{ConfigPatch: config, Revision: new(1)}, nil, loom.Invalid, "revision"},
		{"no such revision", loom.ClusterActive, clusters.ConfigureInput{Revision: new(9)}, nil, loom.NotFound, "revision"},
		{"revision 0", loom.ClusterActive, clusters.ConfigureInput{Revision: new(0)}, nil, loom.Invalid, "revision"},
		{"wrong macro", loom.ClusterActive, clusters.ConfigureInput{Config: map[string]any{"a": "%host.service.%"}}, nil, loom.Invalid, "config/a"},
		{"wrong macro in a patch", loom.ClusterActive, clusters.ConfigureInput{ConfigPatch: map[string]any{"a": "%join(host.service.web,'%"}}, nil, loom.Invalid, "configPatch/a"},
		{"NUL", loom.ClusterActive, clusters.ConfigureInput{Config: map[string]any{"a": "\x00"}}, nil, loom.Invalid, "config"},
		{"too deep", loom.ClusterActive, clusters.ConfigureInput{ConfigPatch: deep}, nil, loom.Invalid, "configPatch"},
		{"wrong provider field", loom.ClusterActive, clusters.ConfigureInput{Config: config}, map[string]any{"zone": "c"}, loom.Invalid, "providerFields.zone"},
		{"pending", loom.ClusterPending, clusters.ConfigureInput{Config: config}, nil, loom.Conflict, ""},
		{"incomplete", loom.ClusterIncomplete, clusters.ConfigureInput{Config: config}, nil, loom.Conflict, ""},
		{"terminated", loom.ClusterTerminated, clusters.ConfigureInput{Config: config}, nil, loom.Conflict, ""},
	} {
		b.db.MustExec(`UPDATE clusters SET status = $2 WHERE id = $1`, int64(id), c.status)
		_, err := b.configure(b.ana(), id, c.in, c.fields)
		e := wantKind(t, err, c.kind)
		if c.field != "" && (len(e.Fields) == 0 || e.Fields[0].Field != c.field) {
			t.Errorf("%s: fields %v", c.name, e.Fields)
		}
	}
	b.db.MustExec(`UPDATE clusters SET status = 'active' WHERE id = $1`, int64(id))
	_, err := b.configure(b.actor("ben", loom.RoleUser), id, clusters.ConfigureInput{Config: config}, nil)
	wantKind(t, err, loom.NotFound)
	reader := b.ana()
	reader.Scopes = []loom.Scope{loom.ScopeRead}
	_, err = b.configure(reader, id, clusters.ConfigureInput{Config: config}, nil)
	wantKind(t, err, loom.Forbidden)
	// The plugin of the provider is gone: its machines cannot be reached.
	b.db.MustExec(`WITH x AS (INSERT INTO catalog_versions (tenant_id, kind, name, version, body)
		SELECT tenant_id, 'providers', 'x', 1, '{"name": "x", "providertype": "gone"}' FROM clusters WHERE id = $1)
		UPDATE clusters SET provider_name = 'x' WHERE id = $1`, int64(id))
	_, err = b.configure(b.ana(), id, clusters.ConfigureInput{Config: config}, nil)
	wantKind(t, err, loom.NotFound)
	if n := b.count(`SELECT count(*) FROM operations`) + b.count(`SELECT count(*) FROM config_revisions`); n != 2 {
		t.Errorf("what was refused left %d operations and revisions", n)
	}
}

// The provider fields of an operation: required, kept, replaced.
func TestProviderFieldsOfAnOperation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	needy := labType()
	user := needy.Parameters["user"]
	user.Required = [][]string{{"token"}}
	needy.Parameters["user"] = user
	b.save(loom.SuperTenant, loom.KindProviderType, needy)
	in := clusters.PreviewInput{Kind: loom.ChangeRestart, Cluster: id}
	_, err := b.clusters.Begin(b.ctx, b.ana(), in)
	if e := wantKind(t, err, loom.Invalid); len(e.Missing) != 1 || e.Missing[0]["token"].Label != "Token" {
		t.Errorf("missing %v", e.Missing)
	}
	// A preview lists what is missing and takes it with Apply.
	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeRestart, Cluster: id, ProviderFields: map[string]any{"zone": "b"}})
	if err != nil || len(v.Missing) != 1 {
		t.Fatalf("missing %v, %v", v.Missing, err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.Invalid)
	apply := applyOf(v)
	apply.ProviderFields = map[string]any{"token": "hush", "unknown": "x"}
	if _, err := b.clusters.Apply(b.ctx, b.ana(), apply); err != nil {
		t.Fatal(err)
	}
	c := b.cluster(id)
	if c.Provider.Fields["zone"] != "b" || c.Provider.Fields["unknown"] != nil || c.Provider.Fields["token"] != nil {
		t.Errorf("provider fields %v", c.Provider.Fields)
	}
	if n := b.count(`SELECT count(*) FROM secrets WHERE entity = 'cluster:' || $1 AND field = 'token'`, id.String()); n != 1 {
		t.Errorf("%d sealed tokens", n)
	}
	b.finish(id, loom.ClusterActive)
	// From now on the stored one does.
	if _, err := b.clusters.Begin(b.ctx, b.ana(), in); err != nil {
		t.Fatal(err)
	}
	// A preview whose request brought a secret wants it again.
	b.finish(id, loom.ClusterActive)
	v, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeStop, Cluster: id, ProviderFields: map[string]any{"token": "other"}})
	if err != nil || len(v.Missing) != 1 || b.count(`SELECT count(*) FROM previews WHERE body::text LIKE '%other%'`) != 0 {
		t.Fatalf("missing %v, %v", v.Missing, err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.Invalid)
}

func TestPreviewOfConfigure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(3)
	in := clusters.PreviewInput{Kind: loom.ChangeConfigure, Cluster: id, Configure: &clusters.ConfigureInput{
		ConfigPatch: parse(t, `{"web":{"port":81,"db_password":"hunter2","peers":null},"a/b":{"~":true}}`), Restart: true}}
	v, err := b.clusters.Preview(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	var config []clusters.ChangeLine
	restarts := 0
	for _, c := range v.Changes {
		switch {
		case c.Object == "config":
			config = append(config, c)
		case c.Object == "service" && c.Change == "restart":
			restarts++
		}
	}
	want := []clusters.ChangeLine{
		{Change: "create", Object: "config", Name: "/a~1b", New: map[string]any{"~": true}},
		{Change: "create", Object: "config", Name: "/web/db_password", New: "[redacted]"},
		{Change: "remove", Object: "config", Name: "/web/peers", Old: "%host.service.web%"},
		{Change: "change", Object: "config", Name: "/web/port", Old: json.Number("8080"), New: json.Number("81")},
	}
	if !reflect.DeepEqual(config, want) {
		t.Errorf("config changes\n%+v\nwant\n%+v", config, want)
	}
	// The services define START but neither STOP nor CONFIGURE: they are started.
	if restarts != 0 || v.ByAction[loom.ActionStart] == 0 || v.ByAction[loom.ActionBootstrap] != 3 || len(v.Layout) == 0 {
		t.Errorf("%d restarts, actions %v", restarts, v.ByAction)
	}
	if !strings.HasPrefix(v.Summary(), "Changes the config and configures the services of 3 nodes, runs") {
		t.Errorf("summary %q", v.Summary())
	}
	if web, _ := v.Config["web"].(map[string]any); web["db_password"] != "[redacted]" {
		t.Errorf("config %v", v.Config)
	}
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	plan, _, err := b.clusters.PlanOf(b.ctx, b.ana(), ref)
	if err != nil || !reflect.DeepEqual(plan, v.Plan) {
		t.Errorf("the stored plan is not the preview's: %v", err)
	}
	if web, _ := b.cluster(id).Config["web"].(map[string]any); web["db_password"] != "hunter2" {
		t.Errorf("stored config %v", web)
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE after::text LIKE '%hunter2%' OR before::text LIKE '%hunter2%'`); n != 0 {
		t.Errorf("%d audit entries tell the password", n)
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'apply' AND after->'changed' ? '/web/db_password'`); n != 1 {
		t.Errorf("%d audit entries say what changed", n)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.Conflict)
}

func TestStalePreviewOfAnOperation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeConfigure, Cluster: id,
		Configure: &clusters.ConfigureInput{ConfigPatch: map[string]any{"a": "mine"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.configure(b.ana(), id, clusters.ConfigureInput{Config: map[string]any{"b": "theirs"}}, nil); err != nil {
		t.Fatal(err)
	}
	// Busy: refused, and nothing new can be previewed.
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if e := wantKind(t, err, loom.Conflict); e.Preview != "" {
		t.Errorf("preview %s of a busy cluster", e.Preview)
	}
	b.finish(id, loom.ClusterActive)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	e := wantKind(t, err, loom.Conflict)
	if e.Preview == "" || !strings.Contains(e.Message, "The cluster changed") {
		t.Fatalf("%+v", e)
	}
	// The fresh one patches what is there now.
	fresh, err := b.clusters.PreviewByID(b.ctx, b.ana(), e.Preview)
	if err != nil || fresh.Config["a"] != "mine" || fresh.Config["b"] != "theirs" {
		t.Errorf("fresh config %v, %v", fresh.Config, err)
	}
}

// Twenty at once: one operation begins, the others hear that it runs.
func TestConfigureBeginsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	wins := 0
	for _, err := range together(20, func(i int) error {
		_, err := b.configure(b.ana(), id, clusters.ConfigureInput{Config: map[string]any{"winner": i}}, nil)
		return err
	}) {
		if err == nil {
			wins++
		} else if !errors.Is(err, loom.Conflict) {
			t.Error(err)
		}
	}
	if wins != 1 || b.count(`SELECT count(*) FROM config_revisions WHERE cluster_id = $1`, int64(id)) != 2 || b.count(`SELECT count(*) FROM operations WHERE cluster_id = $1`, int64(id)) != 2 {
		t.Errorf("%d configures began", wins)
	}
	if n := b.count(`SELECT count(*) FROM clusters c JOIN config_revisions r ON r.cluster_id = c.id AND r.revision = 2 AND r.config = c.config`); n != 1 {
		t.Error("the config of the cluster is not its newest revision")
	}
}

// TestConfigsAreBounded refuses a config above the limit wherever one is set, and lets a
// stored one be.
func TestConfigsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	half, large := strings.Repeat("x", loom.MaxConfig/2), map[string]any{"big": strings.Repeat("x", loom.MaxConfig)}
	refused := func(what, field string, err error) {
		t.Helper()
		e := wantKind(t, err, loom.Invalid)
		if len(e.Fields) != 1 || e.Fields[0].Field != field || !strings.Contains(e.Fields[0].Message, "at most 1048576 are allowed. Take large texts out") {
			t.Errorf("%s: got %+v", what, e)
		}
	}
	for field, change := range map[string]func(*loom.CreateInput){
		"config":      func(in *loom.CreateInput) { in.Config = large },
		"configPatch": func(in *loom.CreateInput) { in.ConfigPatch = large },
	} {
		in := request(2)
		change(&in)
		_, err := b.clusters.Create(b.ctx, b.ana(), in)
		refused("a create", field, err)
		_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeCreate, Create: in})
		refused("a preview of a create", field, err)
		result, err := b.clusters.Check(b.ctx, b.ana(), in)
		if err != nil || len(result.Fields) != 1 || result.Fields[0].Field != field {
			t.Errorf("a check: %+v, %v", result.Fields, err)
		}
	}
	configure := func(in clusters.ConfigureInput) error {
		_, err := b.configure(b.ana(), id, in, nil)
		return err
	}
	refused("a configure", "config", configure(clusters.ConfigureInput{Config: large}))
	refused("a patch", "configPatch", configure(clusters.ConfigureInput{ConfigPatch: large}))
	_, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeConfigure, Cluster: id, Configure: &clusters.ConfigureInput{Config: large}})
	refused("a preview of a configure", "config", err)
	// Two patches that fit come to what does not.
	if err := configure(clusters.ConfigureInput{ConfigPatch: map[string]any{"a": half}}); err != nil {
		t.Fatal(err)
	}
	b.finish(id, loom.ClusterActive)
	refused("a second patch", "configPatch", configure(clusters.ConfigureInput{ConfigPatch: map[string]any{"b": half}}))

	// One that was stored before is read, and its cluster goes on.
	b.db.MustExec(`UPDATE clusters SET config = jsonb_build_object('big', repeat('x', $2)) WHERE id = $1`, int64(id), loom.MaxConfig)
	if text, _ := b.cluster(id).Config["big"].(string); len(text) != loom.MaxConfig {
		t.Errorf("%d bytes are read", len(text))
	}
	b.previewOf(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 3})
	refused("a patch that leaves it too large", "configPatch", configure(clusters.ConfigureInput{ConfigPatch: map[string]any{"b": "x"}}))
	if err := configure(clusters.ConfigureInput{ConfigPatch: map[string]any{"big": nil}}); err != nil {
		t.Errorf("a patch that takes it out: %v", err)
	}
}

// TestKeysOfConfigsAreBounded refuses a key above the limit wherever one is set, and lets a
// stored one be.
func TestKeysOfConfigsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	key := strings.Repeat("k", loom.MaxConfigKey+1)
	long := map[string]any{key: 1}
	b.refusesConfig(id, long, "has 256 bytes; at most 255 are allowed")
	configure := func(patch map[string]any) error {
		_, err := b.configure(b.ana(), id, clusters.ConfigureInput{ConfigPatch: patch}, nil)
		return err
	}

	// One that was stored before is read, and its cluster goes on.
	b.db.MustExec(`UPDATE clusters SET config = jsonb_build_object(repeat('k', 100000), '%ip.self%') WHERE id = $1`, int64(id))
	b.previewOf(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 3})
	if e := wantKind(t, configure(map[string]any{"b": 1}), loom.Invalid); !strings.Contains(e.Message, "has 100000 bytes") {
		t.Errorf("a patch that leaves it: %+v", e)
	}
	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeConfigure, Cluster: id, Configure: &clusters.ConfigureInput{Config: map[string]any{}}})
	if err != nil || len(v.Changes) == 0 || len(v.Changes[0].Name) > loom.MaxConfigPath+len("…") {
		t.Errorf("a preview without it: %v", err)
	}
	if err := configure(map[string]any{strings.Repeat("k", 100_000): nil}); err != nil {
		t.Errorf("a patch that takes it out: %v", err)
	}
}

// TestSecretsOfAConfigAreCounted: one with more secrets than tasks hide in their logs is refused wherever one is set.
func TestSecretsOfAConfigAreCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	tokens := make([]any, 1001)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token %05d", i)
	}
	many := map[string]any{"app": map[string]any{"token": tokens}}
	b.refusesConfig(id, many, "“app.token”")
}

// refusesConfig checks that a create, a check and a configure refuse a config in its own field.
func (b *bundle) refusesConfig(id loom.ClusterID, config map[string]any, says string) {
	b.t.Helper()
	refused := func(what, field string, fields []loom.FieldError) {
		b.t.Helper()
		if len(fields) != 1 || fields[0].Field != field || !strings.Contains(fields[0].Message, says) {
			b.t.Errorf("%s: got %+v", what, fields)
		}
	}
	in := request(2)
	in.Config = config
	_, err := b.clusters.Create(b.ctx, b.ana(), in)
	refused("a create", "config", wantKind(b.t, err, loom.Invalid).Fields)
	result, err := b.clusters.Check(b.ctx, b.ana(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	refused("a check", "config", result.Fields)
	_, err = b.configure(b.ana(), id, clusters.ConfigureInput{ConfigPatch: config}, nil)
	refused("a configure", "configPatch", wantKind(b.t, err, loom.Invalid).Fields)
}

// TestUnexpandedMacrosAreBounded: of macros that stay as written the first hundred are listed.
func TestUnexpandedMacrosAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := request(2)
	values := make([]any, 1000)
	for i := range values {
		values[i] = fmt.Sprintf("%%host.service.gone%d%%", i)
	}
	in.ConfigPatch = map[string]any{"a": values}
	stay := 0
	v := b.preview(b.ana(), in)
	for _, w := range v.Warnings {
		if strings.HasPrefix(w, "In the config, %host.service.gone") {
			stay++
		}
	}
	if last := v.Warnings[len(v.Warnings)-1]; stay != 100 || last != "In the config, 900 more macros stay as written." {
		t.Errorf("%d are listed, then %q", stay, last)
	}
}
