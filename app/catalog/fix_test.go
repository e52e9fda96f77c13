package catalog_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/testkit"
	"loom/provisioner/automator/chefsolo"
	"loom/provisioner/automator/docker"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/digitalocean"
	"loom/provisioner/provider/google"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/provider/rackspace"
)

// importSample imports the sample catalog next to the plugin types that it needs.
func (b bundle) importSample(t *testing.T) {
	t.Helper()
	if err := b.RegisterTypes(b.ctx, []loom.PluginType{aws.Type(), digitalocean.Type(), google.Type(), joyent.Type(), openstack.Type(), rackspace.Type()},
		[]loom.PluginType{chefsolo.Type(), docker.Type()}); err != nil {
		t.Fatal(err)
	}
	sample, err := catalog.DecodeFolder(os.DirFS(testkit.Catalog(t)))
	if err != nil {
		t.Fatal(err)
	}
	sample.Invalid = nil // an address without HTTPS
	if _, err := b.Import(b.ctx, b.admin, sample, catalog.Merge); err != nil {
		t.Fatal(err)
	}
}

func (b bundle) groups(t *testing.T) []loom.FindingGroup {
	t.Helper()
	found, err := b.Check(b.ctx, b.admin, catalog.CheckInput{})
	if err != nil {
		t.Fatal(err)
	}
	return loom.GroupFindings(found)
}

// groupOf is the group with a value, one without findings where there is none.
func groupOf(groups []loom.FindingGroup, code loom.FindingCode, value string) loom.FindingGroup {
	for _, g := range groups {
		if g.Code == code && slices.Contains(g.Values, value) {
			return g
		}
	}
	return loom.FindingGroup{}
}

// TestSampleCatalogFixes: the findings of the sample catalog are few groups, and each fix
// leaves none of its group and adds no other.
func TestSampleCatalogFixes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.importSample(t)
	groups := b.groups(t)
	for _, g := range groups {
		t.Logf("%s %s %v: %d findings, %v", g.Severity, g.Code, g.Values, len(g.Findings), g.Counts())
	}
	if len(groups) > 10 || len(groups) < 5 {
		t.Errorf("%d groups", len(groups))
	}
	west := groupOf(groups, loom.FindingDangling, "aws-us-west-1")
	if counts := west.Counts(); counts[loom.KindHardwareType] != 4 || counts[loom.KindImageType] != 6 || west.First().Missing != loom.KindProvider {
		t.Errorf("aws-us-west-1 is in %v", counts)
	}
	for _, in := range []catalog.FixInput{
		{Code: loom.FindingDangling, Values: []string{"aws-us-west-1"}, Fix: loom.FixRemove},
		{Code: loom.FindingDangling, Values: []string{"aws-us-west-2"}, Fix: loom.FixReplace, To: "aws-us-east-1"},
		{Code: loom.FindingDangling, Values: []string{"cdap-sandbox-docker", "coopr-standalone-docker"}, Fix: loom.FixRemove},
		{Code: loom.FindingDangling, Values: []string{"ubuntu16"}, Fix: loom.FixReplace, To: "ubuntu14"},
		{Code: loom.FindingDangling, Values: []string{"hadoop-hdfs-secondarynamenode"}, Fix: loom.FixRemove},
		{Code: loom.FindingPointless, Values: groupOf(groups, loom.FindingPointless, "aws_ebs_size").Values, Fix: loom.FixRemove},
	} {
		before := b.groups(t)
		group := groupOf(before, in.Code, in.Values[0])
		if in.To == "aws-us-east-1" {
			in.To = slices.Sorted(slices.Values(b.names(t, loom.KindProvider)))[0]
		}
		trial := in
		trial.DryRun = true
		shown, err := b.Fix(b.ctx, b.admin, trial)
		if err != nil || len(shown.Entries) != group.Entries {
			t.Fatalf("a trial of %v: %d entries of %d, %v", in.Values, len(shown.Entries), group.Entries, err)
		}
		for _, e := range shown.Entries {
			if len(e.Changes) == 0 {
				t.Errorf("%v changes nothing in %s", in.Values, e.Name)
			}
		}
		in.Digest = shown.Digest
		if _, err := b.Fix(b.ctx, b.admin, in); err != nil {
			t.Fatalf("%v: %v", in.Values, err)
		}
		after := b.groups(t)
		if left := groupOf(after, in.Code, in.Values[0]); len(left.Findings) != 0 || len(after) != len(before)-1 {
			t.Errorf("%v leaves %d findings, and %d groups of %d", in.Values, len(left.Findings), len(after), len(before))
		}
		if _, err := b.Fix(b.ctx, b.admin, in); !errors.Is(err, loom.Conflict) {
			t.Errorf("again %v: %v", in.Values, err)
		}
	}
}

func (b bundle) names(t *testing.T, kind loom.EntityKind) (names []string) {
	t.Helper()
	list, err := b.Entries(b.ctx, b.admin, kind, catalog.ListInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		names = append(names, item.Entry.Meta().Name)
	}
	return names
}

// TestFixIsWhole: a fix changes its group and nothing else, keeps sealed values, and changes
// nothing at all where one entry cannot take it or has changed since.
func TestFixIsWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.RegisterTypes(b.ctx, []loom.PluginType{aws.Type()}, []loom.PluginType{chefsolo.Type()}); err != nil {
		t.Fatal(err)
	}
	b.save(t, b.admin, loom.KindProvider, `{"name": "east", "providertype": "aws", "provisioner": {"aws_ebs": 1, "api_password": "planted-secret"}}`)
	b.save(t, b.admin, loom.KindHardwareType, `{"name": "small", "providermap": {"gone/~1": {"flavor": "a"}, "east": {"flavor": "b"}}}`)
	b.save(t, b.admin, loom.KindImageType, `{"name": "linux", "providermap": {"gone/~1": {"image": "c"}}}`)
	b.save(t, b.admin, loom.KindService, `{"name": "web", "dependencies": {"runtime": {"requires": ["gone/~1", "db"], "uses": ["gone/~1"]}}}`)
	b.save(t, b.admin, loom.KindService, `{"name": "db", "provisioner": {"actions": {"start": {"type": "chef", "fields": {}}}}}`)
	b.save(t, b.admin, loom.KindProvider, `{"name": "west", "providertype": "awss"}`)
	b.save(t, b.admin, loom.KindTemplate, `{"name": "site", "defaults": {"services": ["web", "lost"]}, "extends": {"name": "lost"}, "includes": [{"name": "lost"}],
		"constraints": {"layout": {"mustcoexist": [["web", "lost"], ["web", "db", "lost"]]}, "services": {"lost": {}}}}`)

	dangling := func(fix loom.FindingFix, value, to string, missing loom.EntityKind) catalog.FixInput {
		return catalog.FixInput{Code: loom.FindingDangling, Values: []string{value}, Fix: fix, To: to, Missing: missing}
	}
	refused := func(in catalog.FixInput, kind error, fields ...string) {
		t.Helper()
		_, err := b.Fix(b.ctx, b.admin, in)
		var got []string
		for _, f := range loom.AsError(err).Fields {
			got = append(got, f.Field)
		}
		if !errors.Is(err, kind) || !slices.Equal(got, fields) {
			t.Errorf("%+v: %v at %v", in, err, got)
		}
	}
	refused(dangling(loom.FixRemove, "gone/~1", "", ""), loom.Invalid, "kind")
	refused(dangling(loom.FixRemove, "gone/~1", "x", ""), loom.Invalid, "to")
	refused(dangling(loom.FixReplace, "gone/~1", "", ""), loom.Invalid, "to")
	refused(dangling(loom.FixReplace, "gone/~1", "none", loom.KindProvider), loom.Invalid, "to")
	refused(dangling("burn", "gone/~1", "", ""), loom.Invalid, "fix")
	refused(catalog.FixInput{Fix: loom.FixRemove}, loom.Invalid, "code", "value")
	refused(dangling(loom.FixRemove, "chef", "", ""), loom.Conflict)     // an action has an automator
	refused(dangling(loom.FixReplace, "awss", "aws", ""), loom.Conflict) // a provider keeps its type
	if _, err := b.Fix(b.ctx, b.user, dangling(loom.FixRemove, "lost", "", loom.KindService)); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user: %v", err)
	}

	shown := dangling(loom.FixReplace, "gone/~1", "east", loom.KindProvider)
	shown.DryRun = true
	fixed, err := b.Fix(b.ctx, b.admin, shown)
	if err != nil || len(fixed.Entries) != 2 {
		t.Fatalf("%+v, %v", fixed, err)
	}
	b.save(t, b.admin, loom.KindImageType, `{"name": "linux", "label": "Linux", "providermap": {"gone/~1": {"image": "c"}}}`)
	shown.DryRun, shown.Digest = false, fixed.Digest
	refused(shown, loom.Conflict)
	if small := b.document(t, loom.KindHardwareType, "small"); !strings.Contains(small, `"gone/~1"`) {
		t.Errorf("half of a fix was made: %s", small)
	}
	shown.Digest = ""
	if _, err := b.Fix(b.ctx, b.admin, shown); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"small": `"providermap":{"east":{"flavor":"b"}}`, "linux": `"providermap":{"east":{"image":"c"}}`} {
		kind := map[string]loom.EntityKind{"small": loom.KindHardwareType, "linux": loom.KindImageType}[name]
		if got := b.document(t, kind, name); !strings.Contains(got, want) {
			t.Errorf("%s is %s", name, got)
		}
	}
	if web := b.document(t, loom.KindService, "web"); !strings.Contains(web, `"requires":["gone/~1","db"]`) {
		t.Errorf("the fix left its group: %s", web)
	}
	for _, in := range []catalog.FixInput{
		dangling(loom.FixReplace, "gone/~1", "db", ""), dangling(loom.FixReplace, "chef", "chef-solo", ""),
		{Code: loom.FindingPointless, Values: []string{"aws_ebs"}, Fix: loom.FixRemove}, dangling(loom.FixRemove, "lost", "", loom.KindService),
		dangling(loom.FixRemove, "lost", "", loom.KindTemplate), dangling(loom.FixRemove, "lost", "", loom.KindPartialTemplate),
	} {
		if _, err := b.Fix(b.ctx, b.admin, in); err != nil {
			t.Fatalf("%+v: %v", in, err)
		}
	}
	for kind, wants := range map[loom.EntityKind][]string{
		loom.KindService:  {`"runtime":{"uses":["db"],"requires":["db"]}`},
		loom.KindTemplate: {`"services":["web"]`, `"mustcoexist":[["web","db"]]`},
	} {
		name := map[loom.EntityKind]string{loom.KindService: "web", loom.KindTemplate: "site"}[kind]
		got := b.document(t, kind, name)
		for _, want := range wants {
			if !strings.Contains(got, want) || strings.Contains(got, "lost") {
				t.Errorf("%s is %s", name, got)
			}
		}
	}
	east, _, err := b.Entry(b.ctx, b.admin, loom.KindProvider, "east", 0)
	if p := east.(*loom.Provider); err != nil || len(p.Fields) != 0 || !slices.Equal(p.Sealed, []string{"api_password"}) {
		t.Errorf("the provider is %+v, %v", east, err)
	}
}

// document is an entry as it is stored.
func (b bundle) document(t *testing.T, kind loom.EntityKind, name string) string {
	t.Helper()
	var text string
	if err := b.db.GetContext(b.ctx, &text, `SELECT replace(replace(body::text, ': ', ':'), ', ', ',') FROM catalog_versions WHERE tenant_id = 't-1' AND kind = $1 AND name = $2 ORDER BY version DESC LIMIT 1`, kind, name); err != nil {
		t.Fatal(err)
	}
	return text
}
