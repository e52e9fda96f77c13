package catalog_test

import (
	"errors"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
)

// TestProvidersKeepToThePermits: a provider of a type, or with a role, that the superadmin
// switched off is not saved, by itself or in an import. One that was there can be
// changed, such as its password, but does not come to need more.
func TestProvidersKeepToThePermits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mine := func(body string) error {
		_, _, err := b.Save(b.ctx, b.admin, loom.KindProvider, catalog.SaveInput{Entry: decode(t, loom.KindProvider, "%s", body)})
		return err
	}
	field := func(what string, err error, name string) {
		t.Helper()
		e := loom.AsError(err)
		if !errors.Is(err, loom.Invalid) || len(e.Fields) != 1 || e.Fields[0].Field != name || !strings.Contains(e.Fields[0].Message, "ask the superadmin") {
			t.Errorf("%s: %v %+v", what, err, e.Fields)
		}
	}
	if err := mine(`{"name": "old", "providertype": "static", "provisioner": {"hosts": "h"}}`); err != nil {
		t.Fatal(err)
	}
	b.db.MustExec(`UPDATE tenants SET provider_types_off = '{static}', instance_roles = false`)
	field("a new one", mine(`{"name": "new", "providertype": "static"}`), "providertype")
	field("another type", mine(`{"name": "old", "providertype": "aws", "provisioner": {"use_instance_role": true}}`), "provisioner.use_instance_role")
	field("a role besides", mine(`{"name": "old", "providertype": "static", "provisioner": {"use_instance_role": "on"}}`), "provisioner.use_instance_role")
	if err := mine(`{"name": "old", "providertype": "static", "provisioner": {"hosts": "i"}}`); err != nil {
		t.Errorf("one that was there: %v", err)
	}
	if err := mine(`{"name": "cloud", "providertype": "aws"}`); err != nil {
		t.Errorf("a type that is on: %v", err)
	}
	field("a provider of another type before", mine(`{"name": "cloud", "providertype": "static"}`), "providertype")

	versions := b.count(t, `SELECT count(*) FROM catalog_versions`)
	in, err := catalog.DecodeBundle([]byte(`{"providers": [{"name": "planted", "providertype": "static"}, {"name": "old", "providertype": "static"}], "services": [{"name": "web"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []catalog.Mode{catalog.Merge, catalog.Replace} {
		_, err = b.Import(b.ctx, b.admin, in, mode)
		field("an import", err, "providertype")
		if !strings.Contains(err.Error(), "planted") {
			t.Errorf("the import does not say which: %v", err)
		}
		report, err := b.CompareImport(b.ctx, b.admin, in, mode)
		if err != nil || len(report.Invalid) != 1 || report.Invalid[0].Name != "planted" {
			t.Errorf("a comparison: %+v, %v", report, err)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM catalog_versions`); n != versions {
		t.Errorf("a refused import stored %d versions", n-versions)
	}
}
