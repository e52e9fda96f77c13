package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// RepairCase is an incident that may be repaired, with what deciding about it needs to know.
// The gaps of the one who decides are his to add.
type RepairCase struct {
	loom.Incident
	Tenant loom.TenantID
	Facts  loom.RepairFacts
}

// A repair is an incident's operation. Whose machines share a provider, share a tenant and its
// name. In doubt is a provisioner whose suspects are unknown; a list of a provider that failed,
// or was not believed, says so in its request.
const repairCases = `
WITH asked AS (
    SELECT i.* FROM incidents i
    WHERE i.ended_at IS NULL AND i.kind IN ('service', 'unreachable', 'stopped', 'gone')
      AND CASE WHEN $1::bigint > 0 THEN i.id = $1 ELSE i.id > $2 AND i.decision IN ('', 'asked', 'held') END
    ORDER BY i.id LIMIT $3
), places AS (
    SELECT DISTINCT c.tenant_id, c.provider_name FROM asked a JOIN clusters c ON c.id = a.cluster_id
), providers AS (
    SELECT p.tenant_id, p.provider_name,
           (SELECT count(*) FROM clusters c JOIN nodes n ON n.cluster_id = c.id
            WHERE c.tenant_id = p.tenant_id AND c.provider_name = p.provider_name AND c.status <> 'terminated' AND n.state = 'ready') AS nodes,
           (SELECT count(DISTINCT i.node_id) FROM incidents i JOIN clusters c ON c.id = i.cluster_id
            WHERE i.tenant_id = p.tenant_id AND c.provider_name = p.provider_name AND i.since > now() - interval '10 minutes') AS incidents,
           coalesce((SELECT r.failure <> '' FROM provider_requests r
                     WHERE r.tenant_id = p.tenant_id AND r.provider_name = p.provider_name AND r.purpose = 'sweep' AND r.ended_at IS NOT NULL
                     ORDER BY r.id DESC LIMIT 1), false) AS doubted
    FROM places p
), members AS (
    SELECT h.cluster_id, count(*) AS nodes, count(*) FILTER (WHERE h.status IN ('failing', 'unreachable', 'stopped', 'gone', 'unknown')) AS bad
    FROM node_health h JOIN nodes n ON n.id = h.node_id AND n.state = 'ready' WHERE h.cluster_id IN (SELECT cluster_id FROM asked) GROUP BY h.cluster_id
), repairs AS (
    SELECT i.id, i.tenant_id, i.cluster_id, i.node_id, i.service, i.kind, o.action, o.number, o.status
    FROM incidents i JOIN operations o ON o.cluster_id = i.cluster_id AND o.number = i.operation
    WHERE i.decided_at > now() - interval '24 hours' AND i.tenant_id IN (SELECT tenant_id FROM places)
), own AS (
    SELECT r.* FROM repairs r JOIN incidents i ON i.id = r.id WHERE i.decision = 'begun'
)
SELECT a.id, a.tenant_id, a.cluster_id, c.name AS cluster_name, a.node_id, n.hostname, a.service, a.kind, a.since, a.message, a.decision, a.reason, a.decided_by, a.decided_at, a.operation,
       c.repair, coalesce(c.template->'administration'->'repair', '{}') AS template_repair, now() AS now,
       h.listed, h.listed_at, h.missing_since, h.seen_at, h.changed_at, h.services,
       coalesce(m.nodes, 0) AS nodes, coalesce(m.bad, 0) AS bad, p.nodes AS provider_nodes, p.incidents AS provider_incidents,
       p.doubted OR EXISTS (SELECT FROM node_health d WHERE d.status = 'unknown' AND d.down_since IS NOT NULL AND d.seen_at > now() - interval '2 minutes') AS doubt,
       c.status = 'active' AND c.delete_wanted_by = '' AND NOT EXISTS (SELECT FROM operations o WHERE o.cluster_id = c.id AND o.status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back')) AS idle,
       h.status = 'unknown' AS unknown, EXISTS (SELECT FROM paused_tenants x WHERE x.tenant_id = a.tenant_id) AS paused, c.expires_at, c.protected,
       EXISTS (SELECT FROM unnest(n.services) s WHERE c.services->s->>'shrink' = 'refuse') AS kept,
       (SELECT count(*) FROM own r WHERE r.node_id = a.node_id) AS repairs,
       (SELECT count(*) FROM own r WHERE r.node_id = a.node_id AND r.action = 'cluster_repair') AS replacements,
       (SELECT count(*) FROM own r WHERE r.cluster_id = a.cluster_id AND r.action = 'cluster_repair') AS cluster_replacements,
       (SELECT count(*) FROM own r WHERE r.tenant_id = a.tenant_id) AS tenant_repairs,
       EXISTS (SELECT FROM repairs r WHERE r.node_id = a.node_id AND r.service = a.service AND r.id <> a.id
               AND (r.kind = a.kind OR a.service = '' AND r.kind IN ('unreachable', 'stopped', 'gone'))) AS repeated,
       EXISTS (SELECT FROM incidents i JOIN operations o ON o.cluster_id = i.cluster_id AND o.number = i.operation
               WHERE i.cluster_id = a.cluster_id AND i.decision = 'begun' AND o.ended_at IS NOT NULL AND o.status <> 'complete'
                 AND NOT EXISTS (SELECT FROM operations s WHERE s.cluster_id = i.cluster_id AND s.number > o.number AND s.status = 'complete')) AS failed
FROM asked a JOIN clusters c ON c.id = a.cluster_id JOIN nodes n ON n.id = a.node_id JOIN node_health h ON h.node_id = a.node_id
JOIN providers p ON p.tenant_id = c.tenant_id AND p.provider_name = c.provider_name LEFT JOIN members m ON m.cluster_id = a.cluster_id
ORDER BY a.id`

type repairRow struct {
	incidentRow
	Tenant             loom.TenantID     `db:"tenant_id"`
	Policy             []byte            `db:"repair"`
	TemplatePolicy     []byte            `db:"template_repair"`
	Now                time.Time         `db:"now"`
	Listed             loom.MachineState `db:"listed"`
	ListedAt           sql.NullTime      `db:"listed_at"`
	Missing            sql.NullTime      `db:"missing_since"`
	SeenAt             sql.NullTime      `db:"seen_at"`
	ChangedAt          time.Time         `db:"changed_at"`
	Services           []byte            `db:"services"`
	Nodes              int               `db:"nodes"`
	Bad                int               `db:"bad"`
	ProviderNodes      int               `db:"provider_nodes"`
	ProviderIncidents  int               `db:"provider_incidents"`
	Doubt              bool              `db:"doubt"`
	Unknown            bool              `db:"unknown"`
	Idle               bool              `db:"idle"`
	Paused             bool              `db:"paused"`
	Ends               sql.NullTime      `db:"expires_at"`
	Protected          bool              `db:"protected"`
	Kept               bool              `db:"kept"`
	Repairs            int               `db:"repairs"`
	Replacements       int               `db:"replacements"`
	ClusterReplacement int               `db:"cluster_replacements"`
	TenantRepairs      int               `db:"tenant_repairs"`
	Repeated           bool              `db:"repeated"`
	Failed             bool              `db:"failed"`
}

// repairPolicy returns the policy of a cluster in force, from its own and that of its template.
func repairPolicy(own, template []byte) (loom.RepairPolicy, error) {
	var policy, under loom.RepairPolicy
	err := errors.Join(json.Unmarshal(own, &policy), json.Unmarshal(template, &under))
	return policy.Over(under).Effective(), err
}

func (r *repairRow) repairCase(settings map[loom.TenantID]loom.Settings) (RepairCase, error) {
	var services map[string]loom.ServiceHealth
	policy, err := repairPolicy(r.Policy, r.TemplatePolicy)
	if err = errors.Join(err, decodeExact(r.Services, &services)); err != nil {
		return RepairCase{}, fmt.Errorf("read what a repair of node %s needs: %w", r.Node, err)
	}
	seen := r.SeenAt.Time
	if r.Service == "" && r.ListedAt.Time.Before(seen) { // a machine's is proven by both
		seen = r.ListedAt.Time
	}
	set := settings[r.Tenant]
	return RepairCase{Incident: r.incident(), Tenant: r.Tenant, Facts: loom.RepairFacts{
		Kind: r.Kind, Policy: policy, Now: r.Now, Listed: loom.Listed{State: r.Listed, At: r.ListedAt.Time, MissingSince: r.Missing.Time}, Seen: seen,
		Nodes: r.Nodes, Bad: r.Bad, ProviderNodes: r.ProviderNodes, ProviderIncidents: r.ProviderIncidents, Doubt: r.Doubt,
		NeverPassed: !services[r.Service].PassedAt.After(r.ChangedAt), Idle: r.Idle, Unknown: r.Unknown, Paused: r.Paused, Ends: r.Ends.Time,
		Off: !set.AutomaticRepairs || !settings[loom.SuperTenant].AutomaticRepairs, Protected: r.Protected, Kept: r.Kept,
		Repairs: r.Repairs, Replacements: r.Replacements, ClusterReplacements: r.ClusterReplacement, TenantRepairs: r.TenantRepairs, MaxTenantRepairs: set.RepairsPerDay,
		Repeated: r.Repeated, Failed: r.Failed,
	}}, nil
}

// RepairCasesAllTenants reads incidents that last and that nobody decided about, those after
// an id, at most so many, by id.
func RepairCasesAllTenants(ctx context.Context, q sqlx.ExtContext, after int64, most int) ([]RepairCase, error) {
	return readRepairCases(ctx, q, 0, after, most)
}

// RepairCaseAllTenants reads an incident that lasts, whatever was decided about it. NotFound where
// it is over or its machine is none that Loom knows how to repair.
func RepairCaseAllTenants(ctx context.Context, q sqlx.ExtContext, id int64) (RepairCase, error) {
	cases, err := readRepairCases(ctx, q, id, 0, 1)
	if err == nil && len(cases) == 0 {
		err = loom.NewError(loom.NotFound, "incident %d is over", id)
	}
	if err != nil {
		return RepairCase{}, err
	}
	return cases[0], nil
}

func readRepairCases(ctx context.Context, q sqlx.ExtContext, id, after int64, most int) ([]RepairCase, error) {
	var rows []repairRow
	if err := sqlx.SelectContext(ctx, q, &rows, repairCases, id, after, most); err != nil || len(rows) == 0 {
		return nil, wrap(err, "read the incidents that may be repaired")
	}
	settings, err := SettingsAllTenants(ctx, q)
	if err != nil {
		return nil, err
	}
	cases := make([]RepairCase, len(rows))
	for i := range rows {
		if cases[i], err = rows[i].repairCase(settings); err != nil {
			return nil, err
		}
	}
	return cases, nil
}

// LockRepairs keeps others from deciding about repairs until the transaction ends: limits
// hold for all of them together.
func LockRepairs(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('repairs', 0))`)
	return wrap(err, "wait for other decisions about repairs")
}

const decideIncident = `
UPDATE incidents SET decision = $3, reason = $4, decided_by = $5, decided_at = now(), operation = nullif($6::int, 0)
WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL AND decision IN ('', 'asked', 'held')`

// DecideIncident records what becomes of an incident of a tenant, with its Decision, Reason,
// DecidedBy and Operation, and reports whether it lasted undecided.
func DecideIncident(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, i *loom.Incident) (bool, error) {
	result, err := tx.ExecContext(ctx, decideIncident, tenant, i.ID, string(i.Decision), cleanText(i.Reason), string(i.DecidedBy), i.Operation)
	if err != nil {
		return false, wrap(err, "record what becomes of incident %d", i.ID)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// IncidentByID reads an incident of a tenant. NotFound.
func IncidentByID(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id int64) (loom.Incident, error) {
	var row incidentRow
	err := sqlx.GetContext(ctx, q, &row, `
SELECT `+incidentColumns+`, c.name AS cluster_name, n.hostname FROM incidents i JOIN clusters c ON c.id = i.cluster_id JOIN nodes n ON n.id = i.node_id
WHERE i.tenant_id = $1 AND i.id = $2`, tenant, id)
	return row.incident(), wrap(err, "read incident %d", id)
}
