package store

import (
	"context"
	"maps"
	"slices"

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
