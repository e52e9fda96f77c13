package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

//go:embed functions/*.sql
var functions embed.FS

// definition is a file of functions/: a view, or a function with its triggers.
type definition struct{ name, text string }

// definitions reads functions/. Functions come before views, which PostgreSQL checks against what
// they call when they are made. Bodies of functions are not checked then.
func definitions() ([]definition, error) {
	names, err := fs.Glob(functions, "functions/*.sql")
	if err != nil {
		return nil, err
	}
	var made, views []definition
	for _, path := range names {
		text, err := functions.ReadFile(path)
		if err != nil {
			return nil, err
		}
		d := definition{name: strings.TrimSuffix(strings.TrimPrefix(path, "functions/"), ".sql"), text: string(text)}
		if d.isView() {
			views = append(views, d)
		} else {
			made = append(made, d)
		}
	}
	return append(made, views...), nil
}

func (d definition) isView() bool { return strings.Contains(d.text, "CREATE VIEW "+d.name+" ") }

// setHash names a set of functions and the schema that it belongs to: what a migration drops
// together with a column comes back.
func setHash(set []definition) (string, error) {
	version, err := newest()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", version)
	for _, d := range set {
		fmt.Fprintf(h, "%s %d\n%s", d.name, len(d.text), d.text)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

// Rows of the table instance. The first has the hashes of the sets that were applied, the newest
// first: a program finds its own further back when a newer one has been here. The second has
// the names of the views.
const (
	setsKey  = "functions"
	viewsKey = "views"
)

// firstViews were there before names of views were stored.
const firstViews = "askers backlog running_tasks"

// schemaFunction finds the functions that belong to the schema because columns and indexes are
// computed with them.
var schemaFunction = regexp.MustCompile(`(?m)^CREATE (?:OR REPLACE )?FUNCTION (\w+)`)

// To drop a trigger locks out everybody from its table. Whoever works with several of these tables
// has locks in another order, so this gives way before PostgreSQL would look for deadlocks (after
// a second), and tries again.
const (
	locksFor = "300ms"
	tries    = 100
	between  = 50 * time.Millisecond
)

// replaceFunctions puts the functions, views and triggers of this release into place, unless they
// are there.
func replaceFunctions(ctx context.Context, db *sqlx.DB) error {
	for n := 1; ; n++ {
		err := tryToReplace(ctx, db)
		var e *pq.Error
		if !errors.As(err, &e) || e.Code != "55P03" || n == tries { // lock_not_available
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(between):
		}
	}
}

// tryToReplace replaces functions in one transaction. All of Loom's that are there go first, so
// that nothing stays for which there is no file, whatever its arguments were.
func tryToReplace(ctx context.Context, db *sqlx.DB) error {
	set, err := definitions()
	if err != nil {
		return err
	}
	own, err := setHash(set)
	if err != nil {
		return err
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin to replace functions: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing to do about it
	applied, err := fact(ctx, tx, setsKey)
	if err != nil {
		return err
	}
	sets := strings.Fields(applied)
	if len(sets) > 0 && sets[0] == own {
		return nil
	}
	// Functions call each other and read views: no order suits a check of their bodies.
	if _, err := tx.ExecContext(ctx, `SET LOCAL check_function_bodies = off; SET LOCAL lock_timeout = '`+locksFor+`'`); err != nil {
		return fmt.Errorf("replace functions: %w", err)
	}
	if err := dropFunctions(ctx, tx); err != nil {
		return err
	}
	var views []string
	for _, d := range set {
		if _, err := tx.ExecContext(ctx, d.text); err != nil {
			return fmt.Errorf("make what functions/%s.sql says: %w", d.name, err)
		}
		if d.isView() {
			views = append(views, d.name)
		}
	}
	// Sets in front of this one are newer; they are no longer in place.
	if i := slices.Index(sets, own); i >= 0 {
		sets = sets[i+1:]
	}
	for key, value := range map[string]string{setsKey: strings.Join(append([]string{own}, sets...), " "), viewsKey: strings.Join(views, " ")} {
		if _, err := tx.ExecContext(ctx, `INSERT INTO instance (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value); err != nil {
			return fmt.Errorf("note which functions are there: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("replace functions: %w", err)
	}
	return nil
}

// dropFunctions drops the views whose names are stored, and every function
// with a name of ours, with its triggers. What the schema made stays, and so does what others
// made: where that needs something of ours, this fails and names it.
func dropFunctions(ctx context.Context, tx *sqlx.Tx) error {
	kept, err := schemaFunctions()
	if err != nil {
		return err
	}
	views, err := fact(ctx, tx, viewsKey)
	if err != nil {
		return err
	}
	if views == "" {
		views = firstViews
	}
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`SELECT format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass)
		  FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
		  WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND p.pronamespace = current_schema()::regnamespace AND starts_with(p.proname, 'loom_')
		  ORDER BY 1`, nil},
		{`SELECT 'DROP VIEW ' || string_agg(c.oid::regclass::text, ', ') FROM pg_class c
		  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'v' AND c.relname = ANY($1::text[])
		  HAVING count(*) > 0`, []any{array(strings.Fields(views))}},
		{`SELECT 'DROP FUNCTION ' || string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc p
		  WHERE p.pronamespace = current_schema()::regnamespace AND starts_with(p.proname, 'loom_') AND p.proname <> ALL($1::text[])
		  HAVING count(*) > 0`, []any{array(kept)}},
	} {
		var drops []string
		if err := tx.SelectContext(ctx, &drops, step.query, step.args...); err != nil {
			return fmt.Errorf("look for functions to replace: %w", err)
		}
		for _, drop := range drops {
			if _, err := tx.ExecContext(ctx, drop); err != nil {
				return fmt.Errorf("replace functions: %w%s", err, detail(err))
			}
		}
	}
	return nil
}

// detail is what PostgreSQL says beside an error, such as what else needs a view.
func detail(err error) string {
	var e *pq.Error
	if errors.As(err, &e) && e.Detail != "" {
		return ": " + e.Detail
	}
	return ""
}

// array writes names, which need no quotes, as PostgreSQL does.
func array(names []string) string { return "{" + strings.Join(names, ",") + "}" }

// schemaFunctions are the names of the functions that the schema makes.
func schemaFunctions() ([]string, error) {
	paths, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range paths {
		text, err := files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for _, match := range schemaFunction.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names, nil
}

// functionsMissing reports whether this release's functions were never put into this database, or
// gave way to older ones. The release before runs with newer ones.
func functionsMissing(ctx context.Context, db *sqlx.DB) (bool, error) {
	set, err := definitions()
	if err != nil {
		return false, err
	}
	own, err := setHash(set)
	if err != nil {
		return false, err
	}
	applied, err := fact(ctx, db, setsKey)
	return !slices.Contains(strings.Fields(applied), own), err
}

// fact reads a row of the table instance, "" where there is none.
func fact(ctx context.Context, q sqlx.QueryerContext, key string) (string, error) {
	var value string
	err := sqlx.GetContext(ctx, q, &value, `SELECT value FROM instance WHERE key = $1`, key)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read which functions are there: %w", err)
	}
	return value, nil
}
