package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// ProviderSecrets is the entity under which sealed fields of a provider are kept.
func ProviderSecrets(name string) string { return "provider:" + name }

// ClusterSecrets is the entity under which sealed values of a cluster are kept.
func ClusterSecrets(id loom.ClusterID) string { return "cluster:" + id.String() }

// Secrets reads the sealed values of an entity by field; none for an unknown one.
func Secrets(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, entity string) (map[string][]byte, error) {
	var rows []struct {
		Field  string `db:"field"`
		Sealed []byte `db:"sealed"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, `SELECT field, sealed FROM secrets WHERE tenant_id = $1 AND entity = $2`, tenant, entity); err != nil {
		return nil, wrap(err, "read the secrets of %s", entity)
	}
	sealed := make(map[string][]byte, len(rows))
	for _, r := range rows {
		sealed[r.Field] = r.Sealed
	}
	return sealed, nil
}

const putSecret = `
INSERT INTO secrets (tenant_id, entity, field, sealed, updated_by) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant_id, entity, field) DO UPDATE SET sealed = excluded.sealed, updated_at = now(), updated_by = excluded.updated_by`

// PutSecrets stores sealed values of an entity; fields that are not named stay.
func PutSecrets(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, entity string, by loom.UserID, sealed map[string][]byte) error {
	for _, field := range slices.Sorted(maps.Keys(sealed)) {
		if _, err := tx.ExecContext(ctx, putSecret, tenant, entity, field, sealed[field], by); err != nil {
			return wrap(err, "store the secret %s of %s", field, entity)
		}
	}
	return nil
}

// DeleteSecrets forgets the named sealed values of an entity, or all when none
// is named.
func DeleteSecrets(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, entity string, fields ...string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM secrets WHERE tenant_id = $1 AND entity = $2 AND (cardinality($3::text[]) = 0 OR field = ANY ($3))`,
		tenant, entity, pq.Array(append([]string{}, fields...)))
	return wrap(err, "delete secrets of %s", entity)
}

// SecretEntities lists what has sealed values in a tenant, by a prefix of the
// entity such as "provider:".
func SecretEntities(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, prefix string) ([]string, error) {
	var entities []string
	err := sqlx.SelectContext(ctx, q, &entities, `SELECT DISTINCT entity FROM secrets WHERE tenant_id = $1 AND starts_with(entity, $2) ORDER BY entity`, tenant, prefix)
	return entities, wrap(err, "list secrets")
}

// SealedSignIns is what is sealed about signing in to the machines of a cluster.
type SealedSignIns struct {
	// Public is the sealed public key of the pair that was made for the cluster, nil where
	// none was; Private says that the private one is there as well.
	Public  []byte
	Private bool
	// Nodes are those whose sign-in is secret.
	Nodes map[loom.NodeID]bool
}

const signInSecrets = `
SELECT s.field, s.sealed, '' AS node FROM secrets s WHERE s.tenant_id = $1 AND s.entity = $3 AND s.field IN ('` + loom.FieldPrivateKey + `', '` + loom.FieldPublicKey + `')
UNION ALL
SELECT 'ssh-auth', '', n.id::text FROM nodes n
LEFT JOIN secrets s ON s.tenant_id = n.tenant_id AND s.entity = 'node:' || n.id::text AND s.field = 'ssh-auth'
WHERE n.tenant_id = $1 AND n.cluster_id = $2 AND (s.field IS NOT NULL OR n.results->'ssh-auth' ? 'password')`

// SignInSecrets looks what is sealed about signing in to the machines of a cluster.
func SignInSecrets(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID) (SealedSignIns, error) {
	var rows []struct {
		Field  string `db:"field"`
		Sealed []byte `db:"sealed"`
		Node   string `db:"node"`
	}
	found := SealedSignIns{Nodes: map[loom.NodeID]bool{}}
	if err := sqlx.SelectContext(ctx, q, &rows, signInSecrets, tenant, int64(id), ClusterSecrets(id)); err != nil {
		return found, wrap(err, "read what is sealed about signing in to cluster %s", id)
	}
	for _, r := range rows {
		switch {
		case r.Node != "":
			found.Nodes[loom.NodeID(r.Node)] = true
		case r.Field == loom.FieldPublicKey:
			found.Public = r.Sealed
		default:
			found.Private = true
		}
	}
	return found, nil
}

// SecretStamp says who stored a sealed value, and when.
type SecretStamp struct {
	By   loom.UserID
	Time time.Time
}

// SecretStamps tells of the sealed values of an entity, by field, without them.
func SecretStamps(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, entity string) (map[string]SecretStamp, error) {
	var rows []struct {
		Field string    `db:"field"`
		By    string    `db:"updated_by"`
		Time  time.Time `db:"updated_at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, `SELECT field, updated_by, updated_at FROM secrets WHERE tenant_id = $1 AND entity = $2`, tenant, entity); err != nil {
		return nil, wrap(err, "read who set the secrets of %s", entity)
	}
	stamps := make(map[string]SecretStamp, len(rows))
	for _, r := range rows {
		stamps[r.Field] = SecretStamp{By: loom.UserID(r.By), Time: r.Time}
	}
	return stamps, nil
}

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
		return false, wrap(err, "reseal %s of %s", was.Field, was.Entity)
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
