package migrations_test

import (
	"context"
	"testing"

	"loom/app/testkit"
	"loom/migrations"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestUpIsCompleteAndRepeatable(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	ctx := context.Background()
	if err := migrations.Up(ctx, db.DSN); err != nil {
		t.Fatal(err)
	}
	status, err := migrations.Check(ctx, db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	if status.Behind() || status.Current != status.Wanted || status.Current == 0 {
		t.Fatalf("status after Up: %+v", status)
	}
}

func TestCheckSeesAMissingMigration(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`); err != nil {
		t.Fatal(err)
	}
	status, err := migrations.Check(ctx, db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	if !status.Behind() {
		t.Fatalf("a missing migration went unseen: %+v", status)
	}
}

// A tenant that a program makes without a word about permits gets what the form of a new tenant
// begins with.
func TestTenantsBeginWithoutPermits(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	db.MustExec(`INSERT INTO tenants (id, name) VALUES ('new', 'new')`)
	if got := value(t, db, `SELECT concat_ws(' ', private_networks, instance_roles, provider_types_off) FROM tenants WHERE id = 'new'`); got != "f f {static}" {
		t.Errorf("permits %q", got)
	}
}
