package migrations_test

import (
	"os"
	"testing"

	"loom/app/testkit"
)

// TestTenantsKeepTheirPermits: tenants that are there keep what they could do; a program that
// does not know of permits makes new ones as the form of a new tenant begins.
func TestTenantsKeepTheirPermits(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	step, err := os.ReadFile("0046_permits.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`ALTER TABLE tenants DROP COLUMN private_networks, DROP COLUMN instance_roles, DROP COLUMN provider_types_off`,
		`INSERT INTO tenants (id, name) VALUES ('old', 'old')`,
		string(step),
		`INSERT INTO tenants (id, name) VALUES ('new', 'new')`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]string{"old": "true true {}", "new": "false false {static}"} {
		var got string
		if err := db.GetContext(t.Context(), &got, `SELECT concat_ws(' ', private_networks::text, instance_roles::text, provider_types_off::text) FROM tenants WHERE id = $1`, id); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", id, got, err, want)
		}
	}
}
