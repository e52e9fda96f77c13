// Package migrations brings a database to the schema and the functions of this release: River's
// own migrations first, then the numbered SQL files beside this one, then functions/.
//
// The file with the lowest number is the whole schema of that time; the others add to it. They
// are forward only, and the release before still runs on what they made. A function, a
// view or a trigger has its only text in functions/NAME.sql. The set of them is replaced as a
// whole when it is not the one in the database.
//
// It holds SQL and nothing that decides. Never run it while pools stay open: cached plans break.
package migrations

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver "postgres"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed *.sql
var files embed.FS

// Status says where a database stands.
type Status struct {
	// Current and Wanted are versions of Loom's own migrations.
	Current, Wanted int64
	// RiverMissing counts migrations of River that were not applied.
	RiverMissing int
	// FunctionsMissing says that the functions of this release are not there yet.
	FunctionsMissing bool
}

// Behind reports whether something is left to apply. A schema that is newer than this
// release is not behind: the release before runs on it.
func (s Status) Behind() bool {
	return s.Current < s.Wanted || s.RiverMissing > 0 || s.FunctionsMissing
}

// Problem says in a sentence why this release cannot use the database as it is, and what to do;
// nil where it can.
func (s Status) Problem() error {
	if err := tooOld(s.Current); err != nil {
		return err
	}
	switch {
	case s.Current < s.Wanted:
		return fmt.Errorf("the database is at version %d, this release needs %d: run `loom migrate up` first", s.Current, s.Wanted)
	case s.RiverMissing > 0:
		return fmt.Errorf("the database lacks %d migrations of River: run `loom migrate up` first", s.RiverMissing)
	case s.FunctionsMissing:
		return errors.New("the database lacks the functions of this release: run `loom migrate up` first")
	}
	return nil
}

// lastWithEveryStep is the commit that still brings every earlier database to the lowest version
// that is here.
const lastWithEveryStep = "b7ef2c7"

// tooOld refuses a database from before the lowest version that is here. One at 0 is empty.
func tooOld(version int64) error {
	lowest, _, err := numbers()
	if err != nil || version == 0 || version >= lowest {
		return err
	}
	return fmt.Errorf("this database is at version %d and this release begins at %d: start Loom of commit %s with it once, then this one", version, lowest, lastWithEveryStep)
}

// Up applies what is missing, under an advisory lock: several processes may
// call it at once.
func Up(ctx context.Context, dsn string) error {
	db, err := sqlx.ConnectContext(ctx, "postgres", dsn)
	if err != nil {
		return fmt.Errorf("open the database for migration: %w", err)
	}
	defer db.Close()
	return exclusively(ctx, db, func() error {
		before, err := version(ctx, db)
		if err != nil {
			return err
		}
		if err := tooOld(before); err != nil {
			return err
		}
		if err := riverUp(ctx, dsn); err != nil {
			return err
		}
		p, err := provider(db)
		if err != nil {
			return err
		}
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("migrate the database: %w", err)
		}
		wanted, err := newest()
		if err != nil || before > wanted {
			return err // a newer release was here: its functions fit its schema
		}
		return replaceFunctions(ctx, db)
	})
}

// Check says where the database stands without changing it.
func Check(ctx context.Context, dsn string) (Status, error) {
	db, err := sqlx.ConnectContext(ctx, "postgres", dsn)
	if err != nil {
		return Status{}, fmt.Errorf("open the database: %w", err)
	}
	defer db.Close()
	var s Status
	if s.Wanted, err = newest(); err != nil {
		return s, err
	}
	if s.Current, err = version(ctx, db); err != nil {
		return s, err
	}
	switch {
	case s.Current < s.Wanted:
		s.FunctionsMissing = true
	case s.Current == s.Wanted:
		if s.FunctionsMissing, err = functionsMissing(ctx, db); err != nil {
			return s, err
		}
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return s, fmt.Errorf("open the database for River's migrations: %w", err)
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return s, err
	}
	applied, err := m.ExistingVersions(ctx)
	if err != nil {
		return s, fmt.Errorf("read River's migration versions: %w", err)
	}
	s.RiverMissing = len(m.AllVersions()) - len(applied)
	return s, nil
}

// version is that of the schema in a database, 0 where there is none.
func version(ctx context.Context, db *sqlx.DB) (int64, error) {
	var there bool
	if err := db.GetContext(ctx, &there, `SELECT to_regclass('goose_db_version') IS NOT NULL`); err != nil {
		return 0, fmt.Errorf("look for the migration table: %w", err)
	}
	if !there {
		return 0, nil
	}
	var n int64
	if err := db.GetContext(ctx, &n, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`); err != nil {
		return 0, fmt.Errorf("read the migration version: %w", err)
	}
	return n, nil
}

// upLock is the key of the advisory lock that lets one migration run at a time.
const upLock = 7081103212

func exclusively(ctx context.Context, db *sqlx.DB, run func() error) error {
	conn, err := db.Connx(ctx)
	if err != nil {
		return fmt.Errorf("take a connection for the migration lock: %w", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, int64(upLock)); err != nil {
		return fmt.Errorf("take the migration lock: %w", err)
	}
	runErr := run()
	_, err = conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(upLock))
	return errors.Join(runErr, err)
}

func riverUp(ctx context.Context, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return fmt.Errorf("open the database for River's migrations: %w", err)
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate River's tables: %w", err)
	}
	return nil
}

func provider(db *sqlx.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db.DB, files, goose.WithSessionLocker(locker))
}

// newest is the highest number of a file here.
func newest() (int64, error) {
	_, high, err := numbers()
	return high, err
}

// numbers are the lowest and the highest number of a file here.
func numbers() (low, high int64, err error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		var n int64
		if _, err := fmt.Sscanf(strings.SplitN(name, "_", 2)[0], "%d", &n); err != nil {
			return 0, 0, fmt.Errorf("migration %s has no number: %w", name, err)
		}
		if low == 0 || n < low {
			low = n
		}
		high = max(high, n)
	}
	return low, high, nil
}

// Fingerprint is a short hash over the migrations and functions of this release, River's
// version list included; tests name their template database by it.
func Fingerprint() (string, error) {
	h := sha256.New()
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	set, err := definitions()
	if err != nil {
		return "", err
	}
	for _, d := range set {
		fmt.Fprintf(h, "%s %d\n%s", d.name, len(d.text), d.text)
	}
	m, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return "", err
	}
	for _, v := range m.AllVersions() {
		fmt.Fprintf(h, "river %d\n", v.Version)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6]), nil
}
