package migrations_test

import (
	"os"
	"testing"

	"loom/app/testkit"
)

// TestNodesLoseStaticPasswords: what older releases stored of the one password of all hosts goes;
// passwords that were made for a machine stay.
func TestNodesLoseStaticPasswords(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	step, err := os.ReadFile("0054_static_passwords.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO tenants (id, name) VALUES ('lab', 'lab')`,
		`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, services)
		 SELECT x.id, 'lab', 'ana', x.kind, 'active', 't', 1, '{}', x.kind, '{}'
		 FROM (VALUES (1, 'static'), (2, 'rackspace')) x (id, kind)`,
		`INSERT INTO catalog_versions (tenant_id, kind, name, version, body)
		 SELECT 'lab', 'providers', k, 1, jsonb_build_object('name', k, 'providertype', k) FROM unnest('{static,rackspace}'::text[]) k`,
		`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, results)
		 SELECT ('00000000-0000-4000-8000-00000000000' || c)::uuid, c, 'lab', 1000, 'h', '', '', '', '', '', '{}', '{}', '{"ssh-auth": {"user": "root", "password": "p"}}'
		 FROM generate_series(1, 2) c`,
		`INSERT INTO secrets (tenant_id, entity, field, sealed) SELECT 'lab', 'node:' || id::text, field, 'x' FROM nodes, unnest('{ssh-auth,other}'::text[]) field`,
		string(step),
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	if err := db.SelectContext(t.Context(), &got, `
SELECT n.cluster_id || ' ' || n.results::text || ' ' || (SELECT string_agg(field, ',' ORDER BY field) FROM secrets WHERE entity = 'node:' || n.id::text)
FROM nodes n ORDER BY n.cluster_id`); err != nil {
		t.Fatal(err)
	}
	want := []string{`1 {"ssh-auth": {"user": "root"}} other`, `2 {"ssh-auth": {"user": "root", "password": "p"}} other,ssh-auth`}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("nodes %q, want %q", got, want)
	}
}
