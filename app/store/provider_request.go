package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// RequestPurpose is what a provider is asked for.
type RequestPurpose string

// The purposes.
const (
	PurposeProbe  RequestPurpose = "probe"
	PurposeSweep  RequestPurpose = "sweep"
	PurposeRemove RequestPurpose = "remove"
	// PurposeLeftover removes a machine that a delete left behind.
	PurposeLeftover RequestPurpose = "leftover"
	// PurposeVerify looks up one size or image.
	PurposeVerify RequestPurpose = "verify"
	// PurposeDraft is a probe of a provider that is not saved.
	PurposeDraft RequestPurpose = "draft"
)

// ProviderRequest is something that a provisioner shall ask of a provider.
type ProviderRequest struct {
	ID       int64
	Tenant   loom.TenantID
	Provider string
	Purpose  RequestPurpose
	// Orphan is the machine of a removal, else 0; Leftover one that a delete left
	// behind.
	Orphan, Leftover int64
	// Offer is what a verification is about.
	Offer loom.Offer
	By    loom.UserID
	// Digest is that of a draft; it is only written.
	Digest []byte
	// Asked is when, Now the time of the database. Started is when a provisioner took it, Ended when it was done with it; zero
	// until then.
	Asked, Now, Started, Ended time.Time
	// Probe is the answer to a probe, or as much of it as is known.
	Probe loom.Probe
	// Failure says why a removal failed; Refused that a live node has the machine.
	Failure string
	Refused bool
}

type requestRow struct {
	ID       int64         `db:"id"`
	Tenant   string        `db:"tenant_id"`
	Provider string        `db:"provider_name"`
	Purpose  string        `db:"purpose"`
	Orphan   sql.NullInt64 `db:"orphan_id"`
	Leftover sql.NullInt64 `db:"leftover_id"`
	By       string        `db:"requested_by"`
	Kind     string        `db:"offer_kind"`
	Offer    string        `db:"offer_id"`
	Started  sql.NullTime  `db:"started_at"`
	Ended    sql.NullTime  `db:"ended_at"`
	Failure  string        `db:"failure"`
	Refused  bool          `db:"refused"`
	Asked    time.Time     `db:"created_at"`
	Now      time.Time     `db:"now"`
	Probe    []byte        `db:"probe"`
}

func (r requestRow) request() ProviderRequest {
	made := ProviderRequest{ID: r.ID, Tenant: loom.TenantID(r.Tenant), Provider: r.Provider, Purpose: RequestPurpose(r.Purpose), Orphan: r.Orphan.Int64, Leftover: r.Leftover.Int64,
		Offer: loom.Offer{Kind: loom.OfferKind(r.Kind), ID: r.Offer}, By: loom.UserID(r.By), Started: r.Started.Time, Ended: r.Ended.Time, Failure: r.Failure, Refused: r.Refused, Asked: r.Asked, Now: r.Now}
	if len(r.Probe) > 0 && json.Unmarshal(r.Probe, &made.Probe) == nil {
		made.Probe.Time = made.Ended
	}
	return made
}

const requestColumns = `id, tenant_id, provider_name, purpose, orphan_id, leftover_id, requested_by, offer_kind, offer_id, started_at, ended_at, failure, refused, created_at, now() AS now, probe`

// One that nobody took for an hour may have lost its River job.
const waitingRequest = `
SELECT id FROM provider_requests
WHERE tenant_id = $1 AND provider_name = $2 AND purpose = $3 AND coalesce(orphan_id, 0) = $4
  AND offer_kind = $5 AND offer_id = $6 AND started_at IS NULL AND ended_at IS NULL AND created_at > now() - interval '1 hour'
ORDER BY id DESC LIMIT 1`

// WaitingRequest finds a request for the same as r that no provisioner took yet,
// 0 when there is none.
func WaitingRequest(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, r ProviderRequest) (int64, error) {
	var ids []int64
	err := sqlx.SelectContext(ctx, q, &ids, waitingRequest, tenant, r.Provider, r.Purpose, r.Orphan, r.Offer.Kind, r.Offer.ID)
	if err != nil || len(ids) == 0 {
		return 0, wrap(err, "look for waiting requests")
	}
	return ids[0], nil
}

const insertRequest = `
INSERT INTO provider_requests (tenant_id, provider_name, purpose, orphan_id, requested_by, offer_kind, offer_id, digest)
VALUES ($1, $2, $3, nullif($4, 0::bigint), $5, $6, $7, $8) RETURNING id`

// InsertRequest stores a request and gives its id. Enqueueing its River job is
// the caller's.
func InsertRequest(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, r ProviderRequest) (int64, error) {
	var id int64
	err := tx.GetContext(ctx, &id, insertRequest, tenant, r.Provider, r.Purpose, r.Orphan, r.By, r.Offer.Kind, r.Offer.ID, r.Digest)
	return id, wrap(err, "store a request to provider %s", r.Provider)
}

// RequestByID reads a request. NotFound once it is trimmed.
func RequestByID(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id int64) (ProviderRequest, error) {
	var row requestRow
	err := sqlx.GetContext(ctx, q, &row, `SELECT `+requestColumns+` FROM provider_requests WHERE tenant_id = $1 AND id = $2`, tenant, id)
	return row.request(), wrap(err, "read request %d", id)
}

// DropRequest deletes a request that no provisioner took; false when one did.
func DropRequest(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64) (bool, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM provider_requests WHERE tenant_id = $1 AND id = $2 AND started_at IS NULL`, tenant, id)
	if err != nil {
		return false, wrap(err, "drop request %d", id)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// SlowRequestsOfATenant is how many requests of a tenant a process works at once of those
// that take minutes: half of its workers for them, so that a provider which does not answer
// leaves the others to other tenants.
const SlowRequestsOfATenant = 2

const lockSlowRequests = `
SELECT pg_advisory_xact_lock(hashtextextended('requests of ' || tenant_id, 0)) FROM provider_requests WHERE id = $1 AND purpose IN ('sweep', 'remove', 'leftover')`

// A process may be limited to one tenant; requests of others are not for it.
const takeRequest = `
UPDATE provider_requests r SET process_id = $2, started_at = now()
FROM processes p
WHERE r.id = $1 AND r.ended_at IS NULL AND p.id = $2 AND (p.only_tenant IS NULL OR p.only_tenant = r.tenant_id)
  AND (r.purpose NOT IN ('sweep', 'remove', 'leftover') OR $3 > (SELECT count(*) FROM provider_requests o
	WHERE o.tenant_id = r.tenant_id AND o.id <> r.id AND o.process_id = $2 AND o.ended_at IS NULL AND o.purpose IN ('sweep', 'remove', 'leftover')))
RETURNING r.id, r.tenant_id, r.provider_name, r.purpose, r.orphan_id, r.leftover_id, r.requested_by, r.offer_kind, r.offer_id, r.started_at, r.ended_at, r.failure, r.refused, r.created_at, now() AS now, r.probe`

// TakeRequestAllTenants gives a request to a process. taken is false when the
// process may not have it, or works enough of the tenant; open whether it still waits for somebody.
func TakeRequestAllTenants(ctx context.Context, tx *sqlx.Tx, id int64, process loom.ProcessID) (r ProviderRequest, taken, open bool, err error) {
	if _, err := tx.ExecContext(ctx, lockSlowRequests, id); err != nil {
		return r, false, false, wrap(err, "lock the requests of a tenant")
	}
	var rows []requestRow
	if err := tx.SelectContext(ctx, &rows, takeRequest, id, process, SlowRequestsOfATenant); err != nil {
		return r, false, false, wrap(err, "take request %d", id)
	}
	if len(rows) > 0 {
		return rows[0].request(), true, true, nil
	}
	err = tx.GetContext(ctx, &open, `SELECT EXISTS (SELECT FROM provider_requests WHERE id = $1 AND ended_at IS NULL)`, id)
	return r, false, open, wrap(err, "look for request %d", id)
}

// GiveBackRequestAllTenants undoes TakeRequestAllTenants, for a process that ends.
func GiveBackRequestAllTenants(ctx context.Context, tx *sqlx.Tx, id int64, process loom.ProcessID) error {
	_, err := tx.ExecContext(ctx, `UPDATE provider_requests SET process_id = '', started_at = NULL WHERE id = $1 AND process_id = $2 AND ended_at IS NULL`, id, process)
	return wrap(err, "give request %d back", id)
}

const endRequest = `
UPDATE provider_requests SET ended_at = clock_timestamp(), sealed = NULL, probe = $4, failure = $5, refused = $6
WHERE tenant_id = $1 AND id = $2 AND process_id = $3 AND ended_at IS NULL`

// EndRequest records what came of a request; false when the process does not
// hold it any more. probe is nil but for a probe or a verification. The secrets of a
// draft go.
func EndRequest(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64, process loom.ProcessID, probe *loom.Probe, failure string, refused bool) (bool, error) {
	var body any
	if probe != nil {
		data, err := json.Marshal(probe)
		if err != nil {
			return false, fmt.Errorf("encode a probe: %w", err)
		}
		body = string(data)
	}
	result, err := tx.ExecContext(ctx, endRequest, tenant, id, process, body, failure, refused)
	if err != nil {
		return false, wrap(err, "end request %d", id)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

const trimProbes = `
DELETE FROM provider_requests r
WHERE r.tenant_id = $1 AND r.provider_name = $2 AND r.purpose = 'probe' AND r.ended_at IS NOT NULL
  AND r.id < (SELECT max(n.id) FROM provider_requests n
              WHERE n.tenant_id = $1 AND n.provider_name = $2 AND n.purpose = 'probe' AND n.ended_at IS NOT NULL)`

// keptDrafts is how many answers to drafts a tenant has at most.
const keptDrafts = 10

const trimDraftProbes = `
DELETE FROM provider_requests WHERE tenant_id = $1 AND purpose = 'draft' AND ended_at IS NOT NULL AND id NOT IN (
  SELECT id FROM provider_requests WHERE tenant_id = $1 AND purpose = 'draft' ORDER BY id DESC LIMIT $2)`

// TrimDraftProbes keeps the newest answers to drafts of a tenant, which somebody may still be
// looking at.
func TrimDraftProbes(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) error {
	_, err := tx.ExecContext(ctx, trimDraftProbes, tenant, keptDrafts)
	return wrap(err, "trim drafts")
}

// Answers so far are about what the provider was before. The draft is asked for as of now: a
// provider that is saved later was saved since its test.
const adoptDraftProbe = `
WITH adopted AS (
  UPDATE provider_requests SET purpose = 'probe', provider_name = $3, digest = NULL, created_at = now()
  WHERE id = (SELECT max(id) FROM provider_requests
    WHERE tenant_id = $1 AND requested_by = $2 AND purpose = 'draft' AND ended_at IS NOT NULL AND digest = $4)
  RETURNING id)
DELETE FROM provider_requests r USING adopted
WHERE r.tenant_id = $1 AND r.provider_name = $3 AND r.purpose = 'probe' AND r.ended_at IS NOT NULL AND r.id <> adopted.id`

// AdoptDraftProbe makes the newest answer to a draft of a user the answer of a saved provider, if
// the draft has the digest.
func AdoptDraftProbe(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, by loom.UserID, provider string, digest []byte) error {
	_, err := tx.ExecContext(ctx, adoptDraftProbe, tenant, by, provider, digest)
	return wrap(err, "take over the test of provider %s", provider)
}

// SealDraft stores the sealed provider of a draft that waits.
func SealDraft(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64, sealed []byte) error {
	_, err := tx.ExecContext(ctx, `UPDATE provider_requests SET sealed = $3 WHERE tenant_id = $1 AND id = $2 AND purpose = 'draft' AND ended_at IS NULL`, tenant, id, sealed)
	return wrap(err, "seal draft %d", id)
}

// SealedDraft reads the sealed provider of a draft. NotFound once it has ended.
func SealedDraft(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id int64) ([]byte, error) {
	var sealed []byte
	err := sqlx.GetContext(ctx, q, &sealed, `SELECT sealed FROM provider_requests WHERE tenant_id = $1 AND id = $2 AND sealed IS NOT NULL`, tenant, id)
	return sealed, wrap(err, "read draft %d", id)
}

// ProgressProbe stores what is known of a probe so far. One that the process does not
// hold any more, or that has ended, stays as it is.
func ProgressProbe(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64, process loom.ProcessID, probe loom.Probe) error {
	data, err := json.Marshal(probe)
	if err != nil {
		return fmt.Errorf("encode a probe: %w", err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE provider_requests SET probe = $4 WHERE tenant_id = $1 AND id = $2 AND process_id = $3 AND ended_at IS NULL`, tenant, id, process, string(data))
	return wrap(err, "store the steps of probe %d", id)
}

const openProbes = `
SELECT count(*) FROM provider_requests WHERE tenant_id = $1 AND purpose IN ('probe', 'draft', 'verify') AND ended_at IS NULL AND created_at > now() - interval '1 hour'`

// CountOpenProbes counts the probes of a tenant that have not ended, and keeps others from
// being counted in other transactions until tx ends.
func CountOpenProbes(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) (n int, err error) {
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('probes of ' || $1, 0))`, tenant); err != nil {
		return 0, wrap(err, "lock the probes of a tenant")
	}
	err = tx.GetContext(ctx, &n, openProbes, tenant)
	return n, wrap(err, "count open probes")
}

const anyProvisioner = `
SELECT EXISTS (SELECT FROM processes WHERE kind = $2 AND expires_at > now() AND NOT draining AND (only_tenant IS NULL OR only_tenant = $1))`

// AnyProvisioner reports whether a provisioner runs that takes requests of a tenant.
func AnyProvisioner(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (any bool, err error) {
	err = sqlx.GetContext(ctx, q, &any, anyProvisioner, tenant, loom.ProcessProvisioner)
	return any, wrap(err, "look for provisioners")
}

// LostProbe is a probe that has no answer coming. Started says that a provisioner had taken it.
type LostProbe struct {
	ID       int64
	Tenant   loom.TenantID
	Provider string
	Draft    bool
	Started  bool
	// Probe is what is known of it.
	Probe loom.Probe
}

const lostProbes = `
SELECT id, tenant_id, provider_name, purpose, started_at, now() AS now, probe, NULL::bigint AS orphan_id FROM provider_requests r
WHERE ended_at IS NULL AND purpose IN ('probe', 'draft', 'verify') AND (created_at < now() - make_interval(secs => $1) AND coalesce(started_at, created_at) < now() - make_interval(secs => $1)
   OR process_id <> '' AND NOT EXISTS (SELECT FROM processes p WHERE p.id = r.process_id AND p.expires_at > now()))
ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED`

// LostProbesAllTenants locks probes that wait or are worked for longer than age, and those
// whose process is gone.
func LostProbesAllTenants(ctx context.Context, tx *sqlx.Tx, age time.Duration) ([]LostProbe, error) {
	var rows []requestRow
	if err := tx.SelectContext(ctx, &rows, lostProbes, age.Seconds()); err != nil {
		return nil, wrap(err, "look for lost probes")
	}
	lost := make([]LostProbe, len(rows))
	for i, row := range rows {
		r := row.request()
		lost[i] = LostProbe{ID: r.ID, Tenant: r.Tenant, Provider: r.Provider, Draft: r.Purpose == PurposeDraft, Started: !r.Started.IsZero(), Probe: r.Probe}
	}
	return lost, nil
}

// EndLostProbe ends a probe that nobody will.
func EndLostProbe(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64, probe loom.Probe) error {
	data, err := json.Marshal(probe)
	if err != nil {
		return fmt.Errorf("encode a probe: %w", err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE provider_requests SET ended_at = clock_timestamp(), sealed = NULL, probe = $3 WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL`, tenant, id, string(data))
	return wrap(err, "end probe %d", id)
}

// TrimProbes keeps only the newest answer of a provider.
func TrimProbes(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, provider string) error {
	_, err := tx.ExecContext(ctx, trimProbes, tenant, provider)
	return wrap(err, "trim probes of provider %s", provider)
}

const trimRequests = `
DELETE FROM provider_requests r
WHERE r.created_at < now() - make_interval(secs => $1) AND (r.ended_at IS NULL OR r.purpose <> 'probe')
  AND NOT (r.purpose = 'sweep' AND r.ended_at IS NOT NULL AND NOT EXISTS (SELECT FROM provider_requests n
	WHERE n.tenant_id = r.tenant_id AND n.provider_name = r.provider_name AND n.purpose = 'sweep' AND n.ended_at IS NOT NULL AND n.id > r.id))`

// TrimRequestsAllTenants deletes requests older than age, answers of probes and the
// last look at each provider aside: done ones, and those that nobody can still wait for.
func TrimRequestsAllTenants(ctx context.Context, tx *sqlx.Tx, age time.Duration) error {
	_, err := tx.ExecContext(ctx, trimRequests, age.Seconds())
	return wrap(err, "trim requests to providers")
}
