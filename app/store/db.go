// Package store is all SQL of the application, one file per aggregate, beside
// the PL/pgSQL functions of migrations/.
//
// It decides nothing and starts no transaction of its own accord: use cases own
// transactions (InTx) and pass them down. Row structs are private; domain types
// go in and out. Every function that touches tenant-owned rows takes the tenant
// first after the handle and filters by it; those that cross tenants end in
// AllTenants. Reads take sqlx.ExtContext (pool or transaction), writes *sqlx.Tx.
// Locks are taken in the order tenant, cluster, operation, gates, tasks, nodes,
// River jobs; several rows of one kind in id order.
package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver "postgres"

	"loom/app/failpoint"
	"loom/app/places"
)

// Standstill is how long a session may stand still inside a transaction before
// the server ends it: a process that froze, or that a network cut off, would
// otherwise keep its locks, and with them everybody, for hours. Transactions do no
// network I/O, so those of a process that lives are never that slow.
const (
	Standstill        = "10s"
	StandstillSetting = "idle_in_transaction_session_timeout"
)

// SessionSettings are what each session of Loom asks of the server, whoever's it is. A
// DSN that names one of them itself has its way.
func SessionSettings() map[string]string {
	return map[string]string{
		StandstillSetting: Standstill,
		// Compiling a plan takes longer than any statement of Loom.
		"jit": "off",
		// Tables lie on flash or in memory: reading by an index costs little more than
		// reading in order. By the server's default of 4 the tasks of one operation are
		// found by reading the whole table where it has those of few.
		"random_page_cost": "1.1",
	}
}

// Open connects a pool of at most conns connections and checks that the
// database answers.
func Open(ctx context.Context, dsn string, conns int) (*sqlx.DB, error) {
	for name, value := range SessionSettings() {
		dsn = WithSetting(dsn, name, value)
	}
	db, err := sqlx.ConnectContext(ctx, "postgres", dsn)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, nil
}

// WithSetting adds a setting of the session to a DSN in either form, unless it is
// named there.
func WithSetting(dsn, name, value string) string {
	if regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\s*=`).MatchString(dsn) {
		return dsn
	}
	if !strings.Contains(dsn, "://") {
		return dsn + " " + name + "=" + value
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // the driver says what is wrong with it
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// InTx runs fn in a READ COMMITTED transaction and gives its result. An error or
// a panic of fn rolls back, also when ctx is cancelled. fn does no network I/O. Throttled
// for a request whose tenant has too many open.
func InTx[T any](ctx context.Context, db *sqlx.DB, fn func(tx *sqlx.Tx) (T, error)) (T, error) {
	var zero T
	end, err := places.Begin(ctx, db.Stats().MaxOpenConnections)
	if err != nil {
		return zero, err
	}
	defer end()
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return zero, fmt.Errorf("begin a transaction: %w", domainError(err))
	}
	committed := false
	defer func() {
		if !committed {
			tx.Rollback() //nolint:errcheck // the first error is the one that matters
		}
	}()
	result, err := fn(tx)
	if err != nil {
		return zero, err
	}
	failpoint.Before()
	if err := tx.Commit(); err != nil {
		return zero, fmt.Errorf("commit: %w", domainError(err))
	}
	committed = true
	failpoint.After()
	return result, nil
}

// AtOneMoment runs fn, which only reads, in a transaction that sees the database as it
// was when it began.
func AtOneMoment[T any](ctx context.Context, db *sqlx.DB, fn func(tx *sqlx.Tx) (T, error)) (T, error) {
	var zero T
	end, err := places.Begin(ctx, db.Stats().MaxOpenConnections)
	if err != nil {
		return zero, err
	}
	defer end()
	tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return zero, fmt.Errorf("begin a transaction: %w", domainError(err))
	}
	defer tx.Rollback() //nolint:errcheck // it only reads
	return fn(tx)
}

// Exec is InTx for a change without a result.
func Exec(ctx context.Context, db *sqlx.DB, fn func(tx *sqlx.Tx) error) error {
	_, err := InTx(ctx, db, func(tx *sqlx.Tx) (struct{}, error) { return struct{}{}, fn(tx) })
	return err
}

// wrap says what was being done around a database error, turned into a
// domain error where the constraint that broke is known.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), domainError(err))
}

// maxPageBytes is how much of what is long a page holds, in bytes; its last row may go
// beyond.
const maxPageBytes = 1 << 20

// selectBytes reads rows until they hold that many bytes; full says that some may be left.
// Where a request reads them it holds as much room. Throttled.
func selectBytes[R any](ctx context.Context, q sqlx.QueryerContext, most int, size func(*R) int, query string, args ...any) (rows []R, full bool, err error) {
	if err := places.Hold(ctx, int64(most)); err != nil {
		return nil, false, err
	}
	read, err := q.QueryxContext(ctx, query, args...)
	if err != nil {
		return nil, false, err
	}
	defer read.Close()
	for bytes := 0; bytes < most; {
		if !read.Next() {
			return rows, false, read.Err()
		}
		var r R
		if err := read.StructScan(&r); err != nil {
			return nil, false, err
		}
		bytes += size(&r)
		rows = append(rows, r)
	}
	return rows, read.Next(), read.Err()
}
