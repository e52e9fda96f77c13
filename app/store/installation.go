package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"
)

// InstanceValue gives a fact of the installation, "" when it is not set.
func InstanceValue(ctx context.Context, q sqlx.ExtContext, key string) (string, error) {
	var value string
	err := sqlx.GetContext(ctx, q, &value, `SELECT value FROM instance WHERE key = $1`, key)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, wrap(err, "read the instance value %s", key)
}

// SetInstanceValue stores a fact of the installation.
func SetInstanceValue(ctx context.Context, tx *sqlx.Tx, key, value string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO instance (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return wrap(err, "store the instance value %s", key)
}
