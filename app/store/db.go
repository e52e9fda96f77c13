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
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver "postgres"
)

// Open connects a pool of at most conns connections and checks that the
// database answers.
func Open(ctx context.Context, dsn string, conns int) (*sqlx.DB, error) {
	db, err := sqlx.ConnectContext(ctx, "postgres", dsn)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db, nil
}

// InTx runs fn in a READ COMMITTED transaction and gives its result. An error or
// a panic of fn rolls back, also when ctx is cancelled. fn does no network I/O.
func InTx[T any](ctx context.Context, db *sqlx.DB, fn func(tx *sqlx.Tx) (T, error)) (T, error) {
	var zero T
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return zero, fmt.Errorf("begin a transaction: %w", err)
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
	if err := tx.Commit(); err != nil {
		return zero, fmt.Errorf("commit: %w", domainError(err))
	}
	committed = true
	return result, nil
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
