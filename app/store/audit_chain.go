package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// ChainedEntry is an audit entry with its place in the chain. Link is 0 and Mac
// nil as long as it is not linked.
type ChainedEntry struct {
	loom.AuditEntry
	Link  int64
	Mac   []byte
	KeyID string
}

// ChainState is where the chain of the audit begins and ends. The start is the
// last entry that retention removed, link 0 when it never did.
type ChainState struct {
	StartLink  int64  `db:"start_link"`
	StartMac   []byte `db:"start_mac"`
	StartKeyID string `db:"start_key_id"`
	StartProof []byte `db:"start_proof"`
	NewestLink int64  `db:"newest_link"`
	NewestMac  []byte `db:"newest_mac"`
}

// AuditChainAllTenants reads where the chain begins and ends.
func AuditChainAllTenants(ctx context.Context, q sqlx.ExtContext) (ChainState, error) {
	var s ChainState
	err := sqlx.GetContext(ctx, q, &s, `
SELECT start_link, start_mac, start_key_id, start_proof, newest_link, newest_mac FROM audit_chain`)
	return s, wrap(err, "read the state of the audit chain")
}

// chainLock makes linkers and retention take turns, one over all processes.
const chainLock = 7081103213

// TryLockAuditChainAllTenants makes this transaction the only one that changes
// the chain; false says that another one does.
func TryLockAuditChainAllTenants(ctx context.Context, tx *sqlx.Tx) (bool, error) {
	var got bool
	err := tx.GetContext(ctx, &got, `SELECT pg_try_advisory_xact_lock($1)`, int64(chainLock))
	return got, wrap(err, "lock the audit chain")
}

// LockAuditChainAllTenants is TryLockAuditChainAllTenants and waits.
func LockAuditChainAllTenants(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(chainLock))
	return wrap(err, "lock the audit chain")
}

const unlinked = `SELECT EXISTS (SELECT FROM audit WHERE link IS NULL)`

// UnlinkedAuditAllTenants reports whether some entry waits to be linked.
func UnlinkedAuditAllTenants(ctx context.Context, q sqlx.ExtContext) (bool, error) {
	var some bool
	err := sqlx.GetContext(ctx, q, &some, unlinked)
	return some, wrap(err, "look for entries of the audit to link")
}

// The number of this transaction is taken after the newest id was read: whoever
// took a smaller id has a smaller number (see insertAudit). A horizon from
// another server, which a restored backup brings along, is never reached here.
const noteHorizon = `
WITH seen AS MATERIALIZED (SELECT max(id) AS id FROM audit WHERE link IS NULL)
UPDATE audit_chain SET horizon_id = seen.id, horizon_xid = pg_current_xact_id()
FROM seen WHERE seen.id IS NOT NULL AND (horizon_id IS NULL OR horizon_xid > pg_current_xact_id())`

// NoteAuditHorizonAllTenants notes how far the chain may go once all transactions
// of this moment are over, unless that is noted already.
func NoteAuditHorizonAllTenants(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, noteHorizon)
	return wrap(err, "note how far the audit may be linked")
}

const reachedHorizon = `
SELECT horizon_id FROM audit_chain
WHERE horizon_id IS NOT NULL AND horizon_xid < pg_snapshot_xmin(pg_current_snapshot())`

// AuditHorizonAllTenants gives the id up to which all entries are there; false
// when transactions that may bring some are not over.
func AuditHorizonAllTenants(ctx context.Context, tx *sqlx.Tx) (id int64, reached bool, err error) {
	var ids []int64
	if err := tx.SelectContext(ctx, &ids, reachedHorizon); err != nil {
		return 0, false, wrap(err, "read how far the audit may be linked")
	}
	if len(ids) == 0 {
		return 0, false, nil
	}
	return ids[0], true, nil
}

// ForgetAuditHorizonAllTenants says that the chain has come to its horizon.
func ForgetAuditHorizonAllTenants(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE audit_chain SET horizon_id = NULL, horizon_xid = NULL`)
	return wrap(err, "forget how far the audit may be linked")
}

const auditToLink = `SELECT ` + auditColumns + ` FROM audit WHERE link IS NULL AND id <= $1 ORDER BY id LIMIT $2`

// AuditToLinkAllTenants reads entries that are not linked, in order of id.
func AuditToLinkAllTenants(ctx context.Context, tx *sqlx.Tx, upTo int64, limit int) ([]ChainedEntry, error) {
	var rows []auditRow
	if err := tx.SelectContext(ctx, &rows, auditToLink, upTo, limit); err != nil {
		return nil, wrap(err, "read entries of the audit to link")
	}
	entries := make([]ChainedEntry, len(rows))
	for i := range rows {
		entries[i] = rows[i].chained()
	}
	return entries, nil
}

const linkAudit = `
UPDATE audit a SET link = x.link, mac = x.mac, key_id = x.key_id
FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::text[]) AS x (id, link, mac, key_id)
WHERE a.id = x.id AND a.link IS NULL`

// LinkAuditAllTenants stores the links of entries, which are the newest then.
func LinkAuditAllTenants(ctx context.Context, tx *sqlx.Tx, entries []ChainedEntry) error {
	if len(entries) == 0 {
		return nil
	}
	ids, links := make([]int64, len(entries)), make([]int64, len(entries))
	macs, keys := make([][]byte, len(entries)), make([]string, len(entries))
	for i, e := range entries {
		ids[i], links[i], macs[i], keys[i] = e.ID, e.Link, e.Mac, e.KeyID
	}
	_, err := tx.ExecContext(ctx, linkAudit, pq.Array(ids), pq.Array(links), pq.ByteaArray(macs), pq.Array(keys))
	if err != nil {
		return wrap(err, "link %d entries of the audit", len(entries))
	}
	last := entries[len(entries)-1]
	_, err = tx.ExecContext(ctx, `UPDATE audit_chain SET newest_link = $1, newest_mac = $2`, last.Link, last.Mac)
	return wrap(err, "note the newest linked entry of the audit")
}

const chainedAudit = `SELECT ` + auditColumns + ` FROM audit WHERE link IS NOT NULL ORDER BY link, id`

const looseAudit = `SELECT ` + auditColumns + ` FROM audit WHERE link IS NULL ORDER BY id`

// WalkAuditAllTenants hands each linked entry to do, in the order of the chain,
// or each one that is not linked, by id. Rows come one after the other; there may
// be more than memory holds. An error of do ends the walk and is given back.
func WalkAuditAllTenants(ctx context.Context, q sqlx.ExtContext, linked bool, do func(ChainedEntry) error) error {
	query := looseAudit
	if linked {
		query = chainedAudit
	}
	rows, err := q.QueryxContext(ctx, query)
	if err != nil {
		return wrap(err, "read the audit")
	}
	defer rows.Close() //nolint:errcheck // Err tells what went wrong
	for rows.Next() {
		var row auditRow
		if err := rows.StructScan(&row); err != nil {
			return wrap(err, "read an entry of the audit")
		}
		if err := do(row.chained()); err != nil {
			return err
		}
	}
	return wrap(rows.Err(), "read the audit")
}

// Expired entries stand at the beginning of the chain: the first younger one
// ends them. Times are of the begin of a transaction, so they are not in order.
const auditPrefix = `
SELECT link, mac, key_id FROM audit
WHERE link > $1 AND link < coalesce((SELECT link FROM audit WHERE link > $1 AND created_at >= now() - make_interval(secs => $2) ORDER BY link LIMIT 1), 9223372036854775807)
  AND link <= $1 + $3
ORDER BY link DESC LIMIT 1`

// ExpiredAuditAllTenants gives the last linked entry behind start that is older
// than age together with all before it, at most limit of them; false for none.
func ExpiredAuditAllTenants(ctx context.Context, tx *sqlx.Tx, start int64, age time.Duration, limit int) (ChainedEntry, bool, error) {
	var row struct {
		Link  int64  `db:"link"`
		Mac   []byte `db:"mac"`
		KeyID string `db:"key_id"`
	}
	err := tx.GetContext(ctx, &row, auditPrefix, start, age.Seconds(), limit)
	if err == sql.ErrNoRows { //nolint:errorlint // sqlx gives it as it is
		return ChainedEntry{}, false, nil
	}
	return ChainedEntry{Link: row.Link, Mac: row.Mac, KeyID: row.KeyID}, err == nil, wrap(err, "look for old entries of the audit")
}

// TrimAuditAllTenants deletes the linked entries up to the new start, and keeps
// that with its proof. It says how many there were.
func TrimAuditAllTenants(ctx context.Context, tx *sqlx.Tx, start ChainState) (int64, error) {
	_, err := tx.ExecContext(ctx, `UPDATE audit_chain SET start_link = $1, start_mac = $2, start_key_id = $3, start_proof = $4`,
		start.StartLink, start.StartMac, start.StartKeyID, start.StartProof)
	if err != nil {
		return 0, wrap(err, "move the start of the audit chain")
	}
	gone, err := tx.ExecContext(ctx, `DELETE FROM audit WHERE link <= $1`, start.StartLink)
	if err != nil {
		return 0, wrap(err, "delete old entries of the audit")
	}
	return gone.RowsAffected()
}

// AuditKeysAllTenants counts the linked entries by the id of their key.
func AuditKeysAllTenants(ctx context.Context, q sqlx.ExtContext) (map[string]int, error) {
	return countByKey(ctx, q, `SELECT key_id AS key, count(*) AS n FROM audit WHERE link IS NOT NULL GROUP BY 1`)
}

func countByKey(ctx context.Context, q sqlx.ExtContext, query string) (map[string]int, error) {
	var rows []struct {
		Key string `db:"key"`
		N   int    `db:"n"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, query); err != nil {
		return nil, wrap(err, "count by key")
	}
	counts := make(map[string]int, len(rows))
	for _, r := range rows {
		counts[r.Key] = r.N
	}
	return counts, nil
}
