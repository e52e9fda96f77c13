package clusters_test

import (
	"fmt"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

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
		_, err := b.clusters.Configure(b.ctx, b.ana(), id, in, nil)
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
	refused := func(what, field string, fields []loom.FieldError) {
		t.Helper()
		if len(fields) != 1 || fields[0].Field != field || !strings.Contains(fields[0].Message, "has 256 bytes; at most 255 are allowed") {
			t.Errorf("%s: got %+v", what, fields)
		}
	}
	in := request(2)
	in.Config = long
	_, err := b.clusters.Create(b.ctx, b.ana(), in)
	refused("a create", "config", wantKind(t, err, loom.Invalid).Fields)
	result, err := b.clusters.Check(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	refused("a check", "config", result.Fields)
	configure := func(patch map[string]any) error {
		_, err := b.clusters.Configure(b.ctx, b.ana(), id, clusters.ConfigureInput{ConfigPatch: patch}, nil)
		return err
	}
	refused("a configure", "configPatch", wantKind(t, configure(long), loom.Invalid).Fields)

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
	refused := func(what, field string, fields []loom.FieldError) {
		t.Helper()
		if len(fields) != 1 || fields[0].Field != field || !strings.Contains(fields[0].Message, "“app.token”") {
			t.Errorf("%s: got %+v", what, fields)
		}
	}
	in := request(2)
	in.Config = many
	_, err := b.clusters.Create(b.ctx, b.ana(), in)
	refused("a create", "config", wantKind(t, err, loom.Invalid).Fields)
	result, err := b.clusters.Check(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	refused("a check", "config", result.Fields)
	_, err = b.clusters.Configure(b.ctx, b.ana(), id, clusters.ConfigureInput{ConfigPatch: many}, nil)
	refused("a configure", "configPatch", wantKind(t, err, loom.Invalid).Fields)
}

// TestStayingMacrosAreBounded: of macros that stay as written the first hundred are listed.
func TestStayingMacrosAreBounded(t *testing.T) {
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
