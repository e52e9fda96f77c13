package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// Verification is what a provider said when it was last asked for a size or an image.
type Verification struct {
	Provider string
	loom.Offer
	// Answer has one check.
	Answer loom.Probe
}

type verificationRow struct {
	Provider string    `db:"provider_name"`
	Kind     string    `db:"offer_kind"`
	ID       string    `db:"offer_id"`
	Ended    time.Time `db:"ended_at"`
	Probe    []byte    `db:"probe"`
}

func (r verificationRow) verification() (Verification, error) {
	v := Verification{Provider: r.Provider, Offer: loom.Offer{Kind: loom.OfferKind(r.Kind), ID: r.ID}}
	if err := json.Unmarshal(r.Probe, &v.Answer); err != nil {
		return v, fmt.Errorf("read what provider %s said of %s: %w", r.Provider, r.ID, err)
	}
	v.Answer.Time = r.Ended
	return v, nil
}

// maxVerifications bounds how many answers a form is told of.
const maxVerifications = 500

const verifications = `
SELECT DISTINCT ON (provider_name, offer_id) provider_name, offer_kind, offer_id, ended_at, probe FROM provider_requests
WHERE tenant_id = $1 AND purpose = 'verify' AND offer_kind = $2 AND ended_at IS NOT NULL AND probe IS NOT NULL
ORDER BY provider_name, offer_id, id DESC LIMIT $3`

// Verifications reads the newest answers about sizes or images, one for each provider
// and id. They go with the other requests after a while.
func Verifications(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.OfferKind) ([]Verification, error) {
	var rows []verificationRow
	if err := sqlx.SelectContext(ctx, q, &rows, verifications, tenant, kind, maxVerifications); err != nil {
		return nil, wrap(err, "read verifications")
	}
	found := make([]Verification, len(rows))
	for i, row := range rows {
		var err error
		if found[i], err = row.verification(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

const verification = `
SELECT provider_name, offer_kind, offer_id, ended_at, probe FROM provider_requests
WHERE tenant_id = $1 AND id = $2 AND purpose = 'verify' AND ended_at IS NOT NULL AND probe IS NOT NULL`

// VerificationByID reads the answer to a request. NotFound while there is none, and
// once it is trimmed.
func VerificationByID(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id int64) (Verification, error) {
	var row verificationRow
	if err := sqlx.GetContext(ctx, q, &row, verification, tenant, id); err != nil {
		return Verification{}, wrap(err, "read the answer to request %d", id)
	}
	return row.verification()
}

// openRequest is the condition of a request r that has no answer yet. One that is older than
// its River job is tried for no longer counts.
const openRequest = `r.ended_at IS NULL AND r.created_at > now() - interval '1 hour'`

const openProbe = `
SELECT ` + requestColumns + ` FROM provider_requests r
WHERE r.tenant_id = $1 AND r.provider_name = $2 AND r.purpose = 'probe' AND ` + openRequest + `
ORDER BY id DESC LIMIT 1`

// OpenProbeOf finds the newest probe of a provider that has no answer yet; ok is false
// when there is none.
func OpenProbeOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, provider string) (r ProviderRequest, ok bool, err error) {
	var rows []requestRow
	if err := sqlx.SelectContext(ctx, q, &rows, openProbe, tenant, provider); err != nil || len(rows) == 0 {
		return r, false, wrap(err, "look for open probes of provider %s", provider)
	}
	return rows[0].request(), true, nil
}

// ProbeOutcome is how the newest probe of a provider went; Open says that one has not ended.
type ProbeOutcome struct {
	Provider string    `db:"provider_name"`
	Open     bool      `db:"open"`
	OK       bool      `db:"ok"`
	Time     time.Time `db:"at"`
	Asked    time.Time `db:"created_at"`
}

const probeOutcomes = `
SELECT DISTINCT ON (provider_name) provider_name, ended_at IS NULL AS open, coalesce((probe->>'OK')::boolean, false) AS ok, coalesce(ended_at, created_at) AS at, created_at FROM provider_requests
WHERE tenant_id = $1 AND purpose = 'probe'
ORDER BY provider_name, ended_at IS NULL DESC, id DESC`

// ProbeOutcomes reads how the newest probes of all providers of a tenant went; those never
// probed are left out.
func ProbeOutcomes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) ([]ProbeOutcome, error) {
	var rows []ProbeOutcome
	err := sqlx.SelectContext(ctx, q, &rows, probeOutcomes, tenant)
	return rows, wrap(err, "read how probes went")
}

const newestProbes = `
SELECT DISTINCT ON (provider_name) provider_name, probe, ended_at FROM provider_requests
WHERE tenant_id = $1 AND purpose = 'probe' AND ended_at IS NOT NULL AND probe IS NOT NULL
ORDER BY provider_name, id DESC`

// NewestProbes reads the newest answers of all providers of a tenant, by name;
// those never probed are left out.
func NewestProbes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (map[string]loom.Probe, error) {
	var rows []struct {
		Provider string    `db:"provider_name"`
		Probe    []byte    `db:"probe"`
		Ended    time.Time `db:"ended_at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, newestProbes, tenant); err != nil {
		return nil, wrap(err, "read the newest probes")
	}
	probes := make(map[string]loom.Probe, len(rows))
	for _, r := range rows {
		var p loom.Probe
		if err := json.Unmarshal(r.Probe, &p); err != nil {
			return nil, fmt.Errorf("read the newest probe of provider %s: %w", r.Provider, err)
		}
		p.Time = r.Ended
		probes[r.Provider] = p
	}
	return probes, nil
}

const newestProbe = `
SELECT ` + requestColumns + ` FROM provider_requests
WHERE tenant_id = $1 AND provider_name = $2 AND purpose = 'probe' AND ended_at IS NOT NULL
ORDER BY id DESC LIMIT 1`

// NewestProbe reads the newest answer of a provider. NotFound when it was never
// probed.
func NewestProbe(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, provider string) (ProviderRequest, error) {
	var row requestRow
	err := sqlx.GetContext(ctx, q, &row, newestProbe, tenant, provider)
	return row.request(), wrap(err, "read the newest probe of provider %s", provider)
}
