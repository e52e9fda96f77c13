package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// SecretRow is a sealed value with whose it is.
type SecretRow struct {
	Tenant loom.TenantID `db:"tenant_id"`
	Entity string        `db:"entity"`
	Field  string        `db:"field"`
	Sealed []byte        `db:"sealed"`
}

// The head of a sealed value is a format byte and the id of its key.
const secretsOfOtherKeys = `
SELECT tenant_id, entity, field, sealed FROM secrets
WHERE substr(sealed, 2, octet_length($1::bytea)) <> $1 AND (tenant_id, entity, field) > ($2, $3, $4)
ORDER BY tenant_id, entity, field LIMIT $5`

// SecretsOfOtherKeysAllTenants reads values that are not sealed with the key of
// the id, behind the place of another one.
func SecretsOfOtherKeysAllTenants(ctx context.Context, q sqlx.ExtContext, key []byte, after SecretRow, limit int) ([]SecretRow, error) {
	var rows []SecretRow
	err := sqlx.SelectContext(ctx, q, &rows, secretsOfOtherKeys, key, after.Tenant, after.Entity, after.Field, limit)
	return rows, wrap(err, "read sealed values")
}

const resealSecret = `
UPDATE secrets SET sealed = $5 WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND sealed = $4`

// ResealSecretAllTenants stores the same value sealed anew; false when it was
// changed or forgotten since it was read, and stays so.
func ResealSecretAllTenants(ctx context.Context, tx *sqlx.Tx, was SecretRow, sealed []byte) (bool, error) {
	result, err := tx.ExecContext(ctx, resealSecret, was.Tenant, was.Entity, was.Field, was.Sealed, sealed)
	if err != nil {
		return false, wrap(err, "seal %s of %s anew", was.Field, was.Entity)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// SecretKeysAllTenants counts the sealed values by the id of their key, in
// hexadecimal digits.
func SecretKeysAllTenants(ctx context.Context, q sqlx.ExtContext) (map[string]int, error) {
	return countByKey(ctx, q, `SELECT encode(substr(sealed, 2, 8), 'hex') AS key, count(*) AS n FROM secrets GROUP BY 1`)
}

// SealedObjectsAllTenants lists the keys of sealed objects of the bucket, in order.
func SealedObjectsAllTenants(ctx context.Context, q sqlx.ExtContext) ([]string, error) {
	var keys []string
	err := sqlx.SelectContext(ctx, q, &keys, `SELECT DISTINCT object FROM resources WHERE sealed ORDER BY object`)
	return keys, wrap(err, "list sealed objects")
}
