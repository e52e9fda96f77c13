package migrations_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"loom/app/testkit"
	"loom/migrations"
)

// inPlace lists what functions/ makes, as the database has it: name and text of each function that
// no column or index is computed with, of each view and of each trigger.
const inPlace = `
SELECT 'function ' || p.oid::regprocedure || E'\n' || pg_get_functiondef(p.oid) FROM pg_proc p
WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'loom\_%' AND p.proname NOT IN ('loom_pad', 'loom_keys', 'loom_pairs')
UNION ALL
SELECT 'view ' || viewname || E'\n' || definition FROM pg_views WHERE schemaname = 'public'
UNION ALL
SELECT 'trigger ' || tgname || E'\n' || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
ORDER BY 1`

func things(t *testing.T, db *testkit.Database) []string {
	t.Helper()
	var all []string
	if err := db.Select(&all, inPlace); err != nil {
		t.Fatal(err)
	}
	return all
}

func up(t *testing.T, db *testkit.Database) {
	t.Helper()
	if err := migrations.Up(t.Context(), db.DSN); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, db *testkit.Database) migrations.Status {
	t.Helper()
	s, err := migrations.Check(t.Context(), db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// value reads one text.
func value(t *testing.T, db *testkit.Database, query string, args ...any) string {
	t.Helper()
	var s string
	if err := db.Get(&s, query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s
}

const applied = `SELECT value FROM instance WHERE key = 'functions'`

var creates = regexp.MustCompile(`(?m)^CREATE (FUNCTION|VIEW|TRIGGER) (\w+)`)

// Each function, view and trigger of the database is that of a file, and the other way round.
func TestFunctionsAreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	texts := map[string]string{}
	paths, err := filepath.Glob("functions/*.sql")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".sql")
		if !strings.HasPrefix(string(text), "-- "+name+" ") {
			t.Errorf("%s does not begin with a comment that begins with its name", path)
		}
		for _, made := range creates.FindAllStringSubmatch(string(text), -1) {
			if made[1] != "TRIGGER" && made[2] != name {
				t.Errorf("%s makes %s", path, made[2])
			}
			texts[strings.ToLower(made[1])+" "+made[2]] = string(text)
		}
	}
	there := map[string]bool{}
	for _, thing := range things(t, db) {
		head, def, _ := strings.Cut(thing, "\n")
		name, _, _ := strings.Cut(head, "(")
		there[name] = true
		text, ok := texts[name]
		if !ok {
			t.Errorf("no file makes %s", name)
		}
		if _, body, ok := strings.Cut(def, "$function$"); ok && !strings.Contains(text, "$$"+strings.Split(body, "$function$")[0]+"$$") {
			t.Errorf("%s has another body than its file", name)
		}
	}
	for name := range texts {
		if !there[name] {
			t.Errorf("the database has no %s", name)
		}
	}
}

// The applier makes functions without a look at their bodies.
func TestBodiesOfFunctionsAreValid(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	var names []string
	if err := db.Select(&names, `SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'loom\_%'`); err != nil || len(names) < 30 {
		t.Fatalf("%d functions: %v", len(names), err)
	}
	for _, name := range names {
		if _, err := db.Exec(`SELECT CASE l.lanname WHEN 'sql' THEN fmgr_sql_validator(p.oid)::text ELSE plpgsql_validator(p.oid)::text END
			FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.oid = $1::regprocedure`, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSecondUpAppliesNothing(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	const oids = `SELECT string_agg(oid::text, ' ' ORDER BY oid) FROM pg_proc WHERE proname LIKE 'loom\_%'`
	before := value(t, db, oids)
	up(t, db)
	if after := value(t, db, oids); after != before {
		t.Error("functions were made again although their set is that of the database")
	}
}

// What a file says replaces what the database has, whatever its arguments were, and what has
// no file goes. What the schema made and what others made stays.
func TestChangedFunctionsAreReplaced(t *testing.T) {
	t.Parallel()
	for name, notes := range map[string]string{
		"another set":              `UPDATE instance SET value = 'other' WHERE key = 'functions'; UPDATE instance SET value = value || ' loom_seen' WHERE key = 'views'`,
		"before sets were written": `DELETE FROM instance WHERE key IN ('functions', 'views'); DROP VIEW loom_seen`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := testkit.NewDatabase(t)
			before, own := things(t, db), value(t, db, applied)
			db.MustExec(`
				CREATE OR REPLACE FUNCTION loom_merge(p_known jsonb, p_facts jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS 'SELECT p_facts';
				DROP FUNCTION loom_recall();
				CREATE FUNCTION loom_recall(p_tenant bigint) RETURNS text LANGUAGE sql AS 'SELECT NULL';
				DROP TRIGGER nodes_gone ON nodes;
				CREATE FUNCTION loom_gone() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
				CREATE TRIGGER gone AFTER INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION loom_gone();
				CREATE OR REPLACE VIEW askers AS SELECT NULL::bigint AS cluster_id, NULL AS id, NULL::text[] AS ssh_keys;
				CREATE VIEW loom_seen AS SELECT * FROM loom_waiting_queues();
				CREATE FUNCTION theirs() RETURNS int LANGUAGE sql AS 'SELECT 1';
				CREATE VIEW of_theirs AS SELECT theirs(), name FROM clusters;`)
			db.MustExec(notes)
			if s := check(t, db); !s.Behind() || s.Problem() == nil || !strings.Contains(s.Problem().Error(), "loom migrate up") {
				t.Errorf("other functions went unseen: %+v, %v", s, s.Problem())
			}
			up(t, db)
			if got := value(t, db, `SELECT theirs FROM of_theirs UNION SELECT 1`); got != "1" {
				t.Errorf("somebody's own view gives %s", got)
			}
			db.MustExec(`DROP VIEW of_theirs`)
			if got, want := strings.Join(things(t, db), "\n"), strings.Join(before, "\n"); got != want {
				t.Errorf("from\n%s\nto\n%s", want, got)
			}
			if got := strings.Fields(value(t, db, applied)); got[0] != own {
				t.Errorf("sets %q, want %q first", got, own)
			}
			if s := check(t, db); s.Behind() || s.Problem() != nil {
				t.Errorf("still behind: %+v", s)
			}
		})
	}
}

// Who works with tables that have triggers is not in the way of a migration for good, and a
// migration never is in theirs: it gives up the locks that it has before it waits for a deadlock.
func TestReplacingGivesWay(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	own := value(t, db, applied)
	db.MustExec(`UPDATE instance SET value = 'other' WHERE key = 'functions'`)
	tx := db.MustBegin()
	defer tx.Rollback() //nolint:errcheck // it is over
	tx.MustExec(`LOCK TABLE nodes IN ROW EXCLUSIVE MODE`)
	done := make(chan error, 1)
	go func() { done <- migrations.Up(t.Context(), db.DSN) }()
	for waiting := false; !waiting; { // it has clusters and waits for nodes
		select {
		case err := <-done:
			t.Fatalf("replaced under a lock: %v", err)
		default:
		}
		if err := db.Get(&waiting, `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'nodes'::regclass AND NOT granted)`); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tx.Exec(`LOCK TABLE clusters IN ROW EXCLUSIVE MODE`); err != nil {
		t.Errorf("who worked was stopped: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := strings.Fields(value(t, db, applied)); got[0] != own {
		t.Errorf("sets %q", got)
	}
}

// Somebody's own view that reads one of ours keeps it from being replaced: nothing changes, and
// the message names it.
func TestViewsOfOthersAreNotDropped(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	db.MustExec(`CREATE VIEW theirs AS SELECT * FROM askers; UPDATE instance SET value = 'other' WHERE key = 'functions'`)
	before := things(t, db)
	if err := migrations.Up(t.Context(), db.DSN); err == nil || !strings.Contains(err.Error(), "view theirs depends on view askers") {
		t.Errorf("error %v", err)
	}
	if after := things(t, db); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Error("something changed")
	}
}

// A program whose functions gave way to those of a newer one goes on; migrating with it takes them
// back, and the newer one then has to migrate again.
func TestOlderProgramBesideNewerFunctions(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	own := value(t, db, applied)
	db.MustExec(`UPDATE instance SET value = 'newest newer ' || value || ' older' WHERE key = 'functions'`)
	if s := check(t, db); s.Behind() || s.Problem() != nil {
		t.Errorf("behind newer functions: %+v", s)
	}
	up(t, db)
	if got := value(t, db, applied); got != own+" older" {
		t.Errorf("sets %q, want %q", got, own+" older")
	}
}

// The functions of a newer schema stay with it.
func TestOlderProgramBesideNewerSchema(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	db.MustExec(`INSERT INTO goose_db_version (version_id, is_applied) SELECT max(version_id) + 1, true FROM goose_db_version`)
	db.MustExec(`UPDATE instance SET value = 'newer' WHERE key = 'functions'`)
	if s := check(t, db); s.Behind() || s.Problem() != nil || s.Current != s.Wanted+1 {
		t.Errorf("behind a newer schema: %+v", s)
	}
	up(t, db)
	if got := value(t, db, applied); got != "newer" {
		t.Errorf("sets %q: functions of a newer schema were replaced", got)
	}
}

func TestOlderDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	db.MustExec(`DELETE FROM goose_db_version WHERE version_id > 0; INSERT INTO goose_db_version (version_id, is_applied) SELECT n, true FROM generate_series(1, 47) AS n`)
	db.MustExec(`UPDATE instance SET value = 'older' WHERE key = 'functions'; DELETE FROM river_migration WHERE version = 6`)
	for _, err := range []error{migrations.Up(t.Context(), db.DSN), check(t, db).Problem()} {
		if err == nil || !regexp.MustCompile(`^this database is at version 47 and this release begins at \d+: start Loom of commit [0-9a-f]{7} with it once, then this one$`).MatchString(err.Error()) {
			t.Errorf("error %v", err)
		}
	}
	if got := value(t, db, `SELECT (SELECT max(version_id) FROM goose_db_version) || ' ' || (`+applied+`) || ' ' || (SELECT count(*) FROM river_migration WHERE version = 6)`); got != "47 older 0" {
		t.Errorf("something was done: %s", got)
	}
}

func TestSeveralMigrateAtOnce(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	want := things(t, db)
	db.MustExec(`DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := migrations.Up(t.Context(), db.DSN); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := things(t, db); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Error("another set of functions")
	}
	if got := value(t, db, `SELECT string_agg(c.relname, ' ') FROM pg_class c WHERE c.relispartition AND c.relkind = 'r'`); len(strings.Fields(got)) != 4 {
		t.Errorf("partitions of task logs: %s", got)
	}
	if got := value(t, db, `SELECT (SELECT count(*) FROM audit_chain) || ' ' || (SELECT count(*) FROM event_floor)`); got != "1 1" {
		t.Errorf("rows of audit_chain and event_floor: %s", got)
	}
}
