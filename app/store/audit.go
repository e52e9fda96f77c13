package store

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

const insertAudit = `
INSERT INTO audit (tenant_id, actor, via, address, request_id, verb, kind, object, result, before, after)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

// InsertAudit records an act in the transaction of the change. Values of keys
// that look secret are masked in before and after. An empty Result counts as "ok".
func InsertAudit(ctx context.Context, tx *sqlx.Tx, e loom.AuditEntry) error {
	before, err := auditBody(e.Before)
	if err != nil {
		return err
	}
	after, err := auditBody(e.After)
	if err != nil {
		return err
	}
	if e.Result == "" {
		e.Result = "ok"
	}
	_, err = tx.ExecContext(ctx, insertAudit, e.Actor.Tenant, e.Actor.User, e.Actor.Via, e.Actor.Address, e.Actor.RequestID,
		e.Verb, e.Kind, e.Object, e.Result, before, after)
	return wrap(err, "record %s of %s %s", e.Verb, e.Kind, e.Object)
}

// auditBody gives the masked JSON of a value, nil for nil.
func auditBody(value any) (any, error) {
	if value == nil {
		return nil, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	raw, err = json.Marshal(loom.MaskSecrets(tree))
	return string(raw), err
}

const auditOf = `
SELECT actor, via, address, request_id, verb, kind, object, result, before, after, created_at FROM audit
WHERE tenant_id = $1 AND ($2 = '' OR actor = $2) ORDER BY id DESC LIMIT $3`

// Audit lists the newest entries of a tenant, of one user only when actor is not
// empty.
func Audit(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, actor loom.UserID, limit int) ([]loom.AuditEntry, error) {
	var rows []struct {
		Actor     string    `db:"actor"`
		Via       string    `db:"via"`
		Address   string    `db:"address"`
		RequestID string    `db:"request_id"`
		Verb      string    `db:"verb"`
		Kind      string    `db:"kind"`
		Object    string    `db:"object"`
		Result    string    `db:"result"`
		Before    []byte    `db:"before"` // nil for NULL, which json.RawMessage cannot take
		After     []byte    `db:"after"`
		CreatedAt time.Time `db:"created_at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, auditOf, tenant, actor, limit); err != nil {
		return nil, wrap(err, "read the audit")
	}
	entries := make([]loom.AuditEntry, len(rows))
	for i, r := range rows {
		entries[i] = loom.AuditEntry{
			Actor: loom.Actor{Tenant: tenant, User: loom.UserID(r.Actor), Via: r.Via, Address: r.Address, RequestID: r.RequestID},
			Verb:  r.Verb, Kind: r.Kind, Object: r.Object, Result: r.Result, Time: r.CreatedAt,
		}
		if r.Before != nil {
			entries[i].Before = json.RawMessage(r.Before)
		}
		if r.After != nil {
			entries[i].After = json.RawMessage(r.After)
		}
	}
	return entries, nil
}
