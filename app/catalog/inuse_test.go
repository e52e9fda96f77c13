package catalog_test

import (
	"errors"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
)

// TestProviderInUseStays: a provider that clusters use is not deleted, keeps its type, and
// survives an import that replaces everything; without clusters all of that is done.
func TestProviderInUseStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"name": %q, "providertype": %q, "provisioner": {"api_password": "planted"}}`
	for _, name := range []string{"used", "free"} {
		b.save(t, b.admin, loom.KindProvider, body, name, "first")
	}
	b.db.MustExec(`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, services)
		VALUES (7, 't-1', 'ana', 'c', 'active', 't', 1, '{}', 'used', '{}'), (8, 't-1', 'ana', 'c', 'terminated', 't', 1, '{}', 'free', '{}')`)
	uses := "the cluster 00000007 uses"
	if err := b.Delete(b.ctx, b.admin, loom.KindProvider, "used", 0); !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), uses) {
		t.Errorf("deleting all versions: %v", err)
	}
	if err := b.Delete(b.ctx, b.admin, loom.KindProvider, "used", 1); !errors.Is(err, loom.Conflict) {
		t.Errorf("deleting the only version: %v", err)
	}
	other := decode(t, loom.KindProvider, `{"name": "used", "providertype": "second", "provisioner": {"api_password": "other"}}`)
	_, _, err := b.Save(b.ctx, b.admin, loom.KindProvider, catalog.SaveInput{Entry: other})
	if e := loom.AsError(err); !errors.Is(err, loom.Invalid) || len(e.Fields) != 1 || e.Fields[0].Field != "providertype" || !strings.Contains(e.Fields[0].Message, uses) {
		t.Errorf("another type: %v", err)
	}
	in, err := catalog.DecodeBundle([]byte(`{"services": [{"name": "only"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	report, err := b.Import(b.ctx, b.admin, in, catalog.Replace)
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range report.Removed {
		if gone.Name == "used" {
			t.Error("the import says that it removed the provider in use")
		}
	}
	if _, _, err := b.Entry(b.ctx, b.admin, loom.KindProvider, "free", 0); !errors.Is(err, loom.NotFound) {
		t.Errorf("the provider that nobody uses is still there: %v", err)
	}
	e, _, err := b.Entry(b.ctx, b.admin, loom.KindProvider, "used", 0)
	if err != nil || len(e.(*loom.Provider).Sealed) != 1 {
		t.Errorf("the provider in use is %+v, %v", e, err)
	}
	b.db.MustExec(`UPDATE clusters SET status = 'terminated'`)
	if err := b.Delete(b.ctx, b.admin, loom.KindProvider, "used", 0); err != nil {
		t.Errorf("without clusters: %v", err)
	}
}

// TestSealedValuesBelongToTheirVersion: the newest version is not deleted when the one
// before has another account, since the stored secret is not that one's.
func TestSealedValuesBelongToTheirVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.RegisterTypes(b.ctx, []loom.PluginType{{Base: loom.Base{Name: "lab"}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
		"account": {Label: "Account", Type: "text", Role: loom.RoleAccess}, "key": {Label: "Key", Type: "password"}, "disk": {Label: "Disk", Type: "text"}}}}}}, nil); err != nil {
		t.Fatal(err)
	}
	body := `{"name": "p", "providertype": "lab", "provisioner": {"account": %q, "disk": %q, "key": "k-%s"}}`
	b.save(t, b.admin, loom.KindProvider, body, "one", "10", "one")
	b.save(t, b.admin, loom.KindProvider, body, "two", "10", "two")
	if err := b.Delete(b.ctx, b.admin, loom.KindProvider, "p", 2); !errors.Is(err, loom.Conflict) {
		t.Errorf("the account of version 1 with the key of version 2: %v", err)
	}
	b.save(t, b.admin, loom.KindProvider, body, "two", "20", "two")
	if err := b.Delete(b.ctx, b.admin, loom.KindProvider, "p", 3); err != nil {
		t.Errorf("another disk: %v", err)
	}
}
