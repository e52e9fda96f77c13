package migrations_test

import (
	"os"
	"testing"

	"loom/app/testkit"
)

// TestClustersForgetTheirCopies: of its copy of a provider a cluster keeps what was given
// for it; a provider that was deleted under a cluster is there again; machines keep their
// place.
func TestClustersForgetTheirCopies(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	upTo(t, db, 46)
	for _, statement := range []string{
		`INSERT INTO tenants (id, name) VALUES ('superadmin', 'superadmin'), ('t1', 'acme') ON CONFLICT DO NOTHING`,
		`INSERT INTO catalog_versions (tenant_id, kind, name, version, body) VALUES
			('superadmin', 'providertypes', 'aws', 1, '{"parameters": {"admin": {"fields": {"disk": {"override": true}, "aws_region": {}}}, "user": {"fields": {"zone": {}}}}}'),
			('t1', 'providers', 'cloud', 1, '{"name": "cloud", "providertype": "aws", "provisioner": {"aws_region": "us-east-1", "api_user": "first", "disk": "10"}}'),
			('t1', 'providers', 'cloud', 2, '{"name": "cloud", "providertype": "aws", "provisioner": {"aws_region": "us-west-1", "api_user": "second", "disk": "10"}}'),
			('t1', 'providers', 'trimmed', 9, '{"name": "trimmed", "providertype": "aws", "provisioner": {"api_user": "ninth"}}')`,
		`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider, services) VALUES
			(1, 't1', 'ana', 'c', 'active', 't', 1, '{}', 'cloud', '{"name": "cloud", "version": 1, "providertype": "aws", "provisioner": {"aws_region": "us-east-1", "api_user": "first", "disk": "20", "zone": "b"}}', '{}'),
			(2, 't1', 'ana', 'c', 'active', 't', 1, '{}', 'trimmed', '{"name": "trimmed", "version": 1, "providertype": "aws", "provisioner": {"api_user": "old", "zone": "a"}}', '{}'),
			(3, 't1', 'ana', 'c', 'active', 't', 1, '{}', 'gone', '{"name": "gone", "version": 4, "providertype": "mock", "provisioner": {"x": "y"}, "sealed": ["k"]}', '{}'),
			(4, 't1', 'ana', 'c', 'terminated', 't', 1, '{}', 'long gone', '{"name": "long gone", "version": 4, "providertype": "mock", "provisioner": null}', '{}')`,
		`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, results) VALUES
			('0c1d0000-0000-4000-8000-000000000001', 1, 't1', 1000, 'h', 'h', 'i', 'f', 'm', 'root', '{}', '{}', '{"providerid": "i-1"}'),
			('0c1d0000-0000-4000-8000-000000000002', 1, 't1', 1001, 'h', 'h', 'i', 'f', 'm', 'root', '{}', '{}', '{}')`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	step, err := os.ReadFile("0047_live_providers.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), string(step)); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`SELECT string_agg(id || ' ' || provider_fields, ', ' ORDER BY id) FROM clusters`:                         `1 {"disk": "20", "zone": "b"}, 2 {"zone": "a"}, 3 {}, 4 {}`,
		`SELECT loom_provider('t1', 'cloud', provider_fields)->'provisioner' #>> '{}' FROM clusters WHERE id = 1`: `{"disk": "20", "zone": "b", "api_user": "second", "aws_region": "us-west-1"}`,
		`SELECT body #>> '{}' FROM catalog_versions WHERE name = 'gone'`:                                          `{"name": "gone", "provisioner": {"x": "y"}, "providertype": "mock"}`,
		`SELECT count(*)::text FROM catalog_versions WHERE name = 'long gone'`:                                    `0`,
		`SELECT loom_provider('t1', 'long gone', '{}') #>> '{}'`:                                                  `{"name": "long gone", "provisioner": {}}`,
		`SELECT string_agg(number || ' ' || results, ', ' ORDER BY number) FROM nodes`:                            `1000 {"place": {"aws_region": "us-east-1"}, "providerid": "i-1"}, 1001 {}`,
	} {
		var got string
		if err := db.GetContext(t.Context(), &got, query); err != nil || got != want {
			t.Errorf("%s\ngives %s (%v), want %s", query, got, err, want)
		}
	}
}
