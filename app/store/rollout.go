package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

type rolloutRow struct {
	pageKeys
	ID         int64              `db:"id"`
	Tenant     loom.TenantID      `db:"tenant_id"`
	Number     int                `db:"number"`
	Kind       loom.ChangeKind    `db:"kind"`
	Request    []byte             `db:"request"`
	Settings   []byte             `db:"settings"`
	Hash       string             `db:"hash"`
	Status     loom.RolloutStatus `db:"status"`
	Why        string             `db:"why"`
	Until      sql.NullTime       `db:"until"`
	Wave       int                `db:"wave"`
	Waves      int                `db:"waves"`
	WaveEnded  sql.NullTime       `db:"wave_ended_at"`
	Continued  bool               `db:"continued"`
	Failures   int                `db:"failures"`
	Unaffected int                `db:"unaffected"`
	CreatedBy  loom.UserID        `db:"created_by"`
	StartedBy  loom.UserID        `db:"started_by"`
	Created    time.Time          `db:"created_at"`
	Started    sql.NullTime       `db:"started_at"`
	Ended      sql.NullTime       `db:"ended_at"`
}

const rolloutColumns = `r.id, r.tenant_id, r.number, r.kind, r.request, r.settings, r.hash, r.status, r.why, r.until, r.wave, r.waves, r.wave_ended_at,
	r.continued, r.failures, r.unaffected, r.created_by, r.started_by, r.created_at, r.started_at, r.ended_at`

func (row *rolloutRow) rollout() (loom.Rollout, error) {
	r := loom.Rollout{
		Row: row.ID, Tenant: row.Tenant, Number: row.Number, Kind: row.Kind, Request: row.Request, Hash: row.Hash, Status: row.Status, Why: row.Why, Until: row.Until.Time,
		Wave: row.Wave, Waves: row.Waves, WaveEnded: row.WaveEnded.Time, Continued: row.Continued, Failures: row.Failures, Unaffected: row.Unaffected,
		CreatedBy: row.CreatedBy, StartedBy: row.StartedBy, Created: row.Created, Started: row.Started.Time, End: row.Ended.Time,
	}
	if err := json.Unmarshal(row.Settings, &r.Settings); err != nil {
		return r, fmt.Errorf("read the settings of rollout %d: %w", row.Number, err)
	}
	return r, nil
}

func oneRollout(ctx context.Context, q sqlx.QueryerContext, query string, args ...any) (loom.Rollout, error) {
	var row rolloutRow
	if err := sqlx.GetContext(ctx, q, &row, query, args...); err != nil {
		return loom.Rollout{}, wrap(err, "read a rollout")
	}
	return row.rollout()
}

const insertRollout = `
INSERT INTO rollouts AS r (tenant_id, number, kind, request, settings, hash, status, waves, unaffected, created_by)
SELECT $1, coalesce(max(o.number), 0) + 1, $2, $3, $4, $5, 'ready', $6, $7, $8 FROM rollouts o WHERE o.tenant_id = $1
RETURNING ` + rolloutColumns

const insertRolloutClusters = `
INSERT INTO rollout_clusters (rollout_id, tenant_id, cluster_id, wave, place, effect, nodes, replaced, tasks, digest, status, note)
SELECT $1, $2, x.* FROM unnest($3::bigint[], $4::int[], $5::int[], $6::text[], $7::int[], $8::int[], $9::jsonb[], $10::text[], $11::text[], $12::text[]) AS x`

// InsertRollout stores a rollout that is ready, with the next number of its tenant, which the
// caller holds, and returns it.
func InsertRollout(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, r loom.Rollout, clusters []loom.RolloutCluster) (loom.Rollout, error) {
	settings, err := json.Marshal(r.Settings)
	if err != nil {
		return r, fmt.Errorf("encode the settings of a rollout: %w", err)
	}
	made, err := oneRollout(ctx, tx, insertRollout, tenant, string(r.Kind), r.Request, settings, r.Hash, r.Waves, r.Unaffected, string(r.CreatedBy))
	if err != nil {
		return r, err
	}
	n := len(clusters)
	ids, waves, places, nodes, replaced := make([]int64, n), make([]int, n), make([]int, n), make([]int, n), make([]int, n)
	effects, tasks, digests, statuses, notes := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, c := range clusters {
		counts, err := json.Marshal(c.Tasks)
		if err != nil {
			return r, fmt.Errorf("encode the tasks of cluster %s: %w", c.Cluster, err)
		}
		ids[i], waves[i], places[i], nodes[i], replaced[i] = int64(c.Cluster), c.Wave, c.Place, c.Nodes, c.Replaced
		effects[i], tasks[i], digests[i], statuses[i], notes[i] = c.Effect, string(counts), c.Digest, string(c.Status), cleanText(c.Note)
	}
	_, err = tx.ExecContext(ctx, insertRolloutClusters, made.Row, tenant, pq.Array(ids), pq.Array(waves), pq.Array(places), pq.Array(effects),
		pq.Array(nodes), pq.Array(replaced), pq.Array(tasks), pq.Array(digests), pq.Array(statuses), pq.Array(notes))
	return made, wrap(err, "insert the clusters of rollout %d", made.Number)
}

// OpenRollouts counts the rollouts of a tenant that are not over.
func OpenRollouts(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, `SELECT count(*) FROM rollouts WHERE tenant_id = $1 AND status IN ('ready', 'running', 'stopped')`, tenant)
	return n, wrap(err, "count open rollouts")
}

// RolloutPlace names a cluster that waits or runs in a rollout, with the number of that.
type RolloutPlace struct {
	Rollout     int            `db:"number"`
	Cluster     loom.ClusterID `db:"id"`
	ClusterName string         `db:"name"`
}

// RolloutPlaces finds those of the clusters that wait or run in a rollout, by name.
func RolloutPlaces(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, clusters ...loom.ClusterID) ([]RolloutPlace, error) {
	places := []RolloutPlace{}
	err := sqlx.SelectContext(ctx, q, &places, `
SELECT r.number, c.id, c.name
FROM rollout_clusters rc JOIN rollouts r ON r.id = rc.rollout_id JOIN clusters c ON c.id = rc.cluster_id
WHERE rc.tenant_id = $1 AND rc.cluster_id = ANY ($2) AND rc.status IN ('waiting', 'running') ORDER BY c.name, c.id`, tenant, idArray(clusters))
	return places, wrap(err, "find the rollouts of %d clusters", len(clusters))
}

// RolloutByNumber reads a rollout. NotFound.
func RolloutByNumber(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, number int) (loom.Rollout, error) {
	return oneRollout(ctx, q, `SELECT `+rolloutColumns+` FROM rollouts r WHERE r.tenant_id = $1 AND r.number = $2`, tenant, number)
}

// LockRollout reads a rollout and keeps others from changing it until the transaction ends.
// NotFound.
func LockRollout(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, number int) (loom.Rollout, error) {
	return oneRollout(ctx, tx, `SELECT `+rolloutColumns+` FROM rollouts r WHERE r.tenant_id = $1 AND r.number = $2 FOR NO KEY UPDATE`, tenant, number)
}

var rollouts = keyset{
	columns: rolloutColumns, from: `rollouts r`, id: "r.id", idKind: "bigint",
	sorts: map[string]sortColumn{"created": byCreation("r")},
}

// RolloutList is a page of rollouts, with the cursors of its neighbors.
type RolloutList struct {
	Items      []loom.Rollout
	Next, Prev string
}

// Rollouts reads a page of the rollouts of a tenant, the newest first. Invalid for a cursor of
// another list.
func Rollouts(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, statuses []string, p loom.Page) (RolloutList, error) {
	var b binder
	conditions := []string{"r.tenant_id = " + b.add(tenant)}
	if len(statuses) > 0 {
		conditions = append(conditions, "r.status = ANY ("+b.add(pq.Array(statuses))+")")
	}
	rows, next, prev, err := readKeyset[rolloutRow](ctx, q, rollouts, conditions, &b, []any{"rollouts", tenant, statuses}, p, "-created")
	if err != nil {
		return RolloutList{}, err
	}
	list := RolloutList{Items: make([]loom.Rollout, len(rows)), Next: next, Prev: prev}
	for i := range rows {
		if list.Items[i], err = rows[i].rollout(); err != nil {
			return list, err
		}
	}
	return list, nil
}

// RolloutCount is how many clusters of a wave have an effect and a status.
type RolloutCount struct {
	Rollout  int                       `db:"number"`
	Wave     int                       `db:"wave"`
	Effect   string                    `db:"effect"`
	Status   loom.RolloutClusterStatus `db:"status"`
	Clusters int                       `db:"clusters"`
	Replaced int                       `db:"replaced"`
}

// RolloutCounts counts the clusters of rollouts by wave, effect and status.
func RolloutCounts(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, numbers ...int) ([]RolloutCount, error) {
	var counts []RolloutCount
	err := sqlx.SelectContext(ctx, q, &counts, `
SELECT r.number, rc.wave, rc.effect, rc.status, count(*) AS clusters, sum(rc.replaced) AS replaced FROM rollouts r JOIN rollout_clusters rc ON rc.rollout_id = r.id
WHERE r.tenant_id = $1 AND r.number = ANY ($2) GROUP BY r.number, rc.wave, rc.effect, rc.status ORDER BY r.number, rc.wave, rc.effect, rc.status`, tenant, pq.Array(numbers))
	return counts, wrap(err, "count the clusters of rollouts")
}

type rolloutClusterRow struct {
	pageKeys
	Cluster   int64                     `db:"cluster_id"`
	Name      string                    `db:"name"`
	Wave      int                       `db:"wave"`
	Place     int                       `db:"place"`
	Effect    string                    `db:"effect"`
	Nodes     int                       `db:"nodes"`
	Replaced  int                       `db:"replaced"`
	Tasks     []byte                    `db:"tasks"`
	Digest    string                    `db:"digest"`
	Status    loom.RolloutClusterStatus `db:"status"`
	Note      string                    `db:"note"`
	Operation sql.NullInt64             `db:"operation"`
	Health    loom.HealthStatus         `db:"health"`
	Tried     sql.NullTime              `db:"tried_at"`
	Ended     sql.NullTime              `db:"ended_at"`
}

const rolloutClusterColumns = `rc.cluster_id, c.name, rc.wave, rc.place, rc.effect, rc.nodes, rc.replaced, rc.tasks, rc.digest, rc.status, rc.note, rc.operation, rc.health, rc.tried_at, rc.ended_at`

func (row *rolloutClusterRow) cluster() (loom.RolloutCluster, error) {
	c := loom.RolloutCluster{
		Cluster: loom.ClusterID(row.Cluster), Name: row.Name, Wave: row.Wave, Place: row.Place, Effect: row.Effect, Nodes: row.Nodes, Replaced: row.Replaced, Digest: row.Digest,
		Status: row.Status, Note: row.Note, Operation: int(row.Operation.Int64), Health: row.Health, Tried: row.Tried.Time, End: row.Ended.Time,
	}
	if err := json.Unmarshal(row.Tasks, &c.Tasks); err != nil {
		return c, fmt.Errorf("read the tasks of cluster %s: %w", c.Cluster, err)
	}
	return c, nil
}

func rolloutClustersOf(rows []rolloutClusterRow) ([]loom.RolloutCluster, error) {
	clusters := make([]loom.RolloutCluster, len(rows))
	for i := range rows {
		var err error
		if clusters[i], err = rows[i].cluster(); err != nil {
			return nil, err
		}
	}
	return clusters, nil
}

// RolloutClusterFilter limits the clusters of a rollout; empty parts mean any.
type RolloutClusterFilter struct {
	// Wave is a wave, with 0 the clusters that are left out.
	Wave     *int
	Statuses []string
	Effects  []string
}

var rolloutClusters = keyset{
	columns: rolloutClusterColumns, from: `rollout_clusters rc JOIN rollouts r ON r.id = rc.rollout_id JOIN clusters c ON c.id = rc.cluster_id`, id: "rc.cluster_id", idKind: "bigint",
	sorts: map[string]sortColumn{"place": {"lpad(rc.place::text, 9, '0')", "lpad(rc.place::text, 9, '0')", "text"}},
}

// RolloutClusterList is a page of clusters of a rollout, with the cursors of its neighbors.
type RolloutClusterList struct {
	Items      []loom.RolloutCluster
	Next, Prev string
}

// RolloutClusters reads a page of the clusters of a rollout, in the order of their turns; those
// left out come last. Invalid for a cursor of another list.
func RolloutClusters(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, number int, f RolloutClusterFilter, p loom.Page) (RolloutClusterList, error) {
	var b binder
	conditions := []string{"r.tenant_id = " + b.add(tenant), "r.number = " + b.add(number)}
	if f.Wave != nil {
		conditions = append(conditions, "rc.wave = "+b.add(*f.Wave))
	}
	if len(f.Statuses) > 0 {
		conditions = append(conditions, "rc.status = ANY ("+b.add(pq.Array(f.Statuses))+")")
	}
	if len(f.Effects) > 0 {
		conditions = append(conditions, "rc.effect = ANY ("+b.add(pq.Array(f.Effects))+")")
	}
	rows, next, prev, err := readKeyset[rolloutClusterRow](ctx, q, rolloutClusters, conditions, &b, []any{"rollout clusters", tenant, number, f}, p, "place")
	if err != nil {
		return RolloutClusterList{}, err
	}
	items, err := rolloutClustersOf(rows)
	return RolloutClusterList{items, next, prev}, err
}

const rolloutHeads = `
SELECT * FROM (
	SELECT ` + rolloutClusterColumns + `, row_number() OVER (PARTITION BY rc.wave ORDER BY array_position(ARRAY['failed', 'undone', 'running', 'waiting', 'skipped', 'done'], rc.status), rc.place) AS head
	FROM rollouts r JOIN rollout_clusters rc ON rc.rollout_id = r.id JOIN clusters c ON c.id = rc.cluster_id WHERE r.tenant_id = $1 AND r.number = $2
) h WHERE head <= $3 ORDER BY wave, head`

// RolloutHeads reads some clusters of each wave of a rollout, those that failed and those that
// run first.
func RolloutHeads(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, number, most int) ([]loom.RolloutCluster, error) {
	var rows []struct {
		rolloutClusterRow
		Head int `db:"head"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, rolloutHeads, tenant, number, most); err != nil {
		return nil, wrap(err, "read clusters of rollout %d", number)
	}
	clusters := make([]rolloutClusterRow, len(rows))
	for i := range rows {
		clusters[i] = rows[i].rolloutClusterRow
	}
	return rolloutClustersOf(clusters)
}

const changedByRollout = `
WITH RECURSIVE changed AS (
	SELECT rc.cluster_id, rc.operation AS number FROM rollouts r JOIN rollout_clusters rc ON rc.rollout_id = r.id
	WHERE r.tenant_id = $1 AND r.number = $2 AND rc.operation IS NOT NULL
	UNION ALL
	SELECT o.cluster_id, o.number FROM changed c JOIN operations o ON o.cluster_id = c.cluster_id AND o.concerns = c.number AND (o.retries OR o.start IS NOT NULL)
)
SELECT cluster_id, max(number) AS operation FROM changed GROUP BY cluster_id`

// ChangedByRollout finds the clusters in which a rollout began an operation, with the number of
// that, or of the last retry of it.
func ChangedByRollout(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, number int) (map[loom.ClusterID]int, error) {
	var rows []struct {
		Cluster   int64 `db:"cluster_id"`
		Operation int   `db:"operation"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, changedByRollout, tenant, number)
	changed := make(map[loom.ClusterID]int, len(rows))
	for _, row := range rows {
		changed[loom.ClusterID(row.Cluster)] = row.Operation
	}
	return changed, wrap(err, "find what rollout %d changed", number)
}

const updateRollout = `
UPDATE rollouts SET status = $3, why = $4, until = $5, wave = $6, wave_ended_at = $7, continued = $8, failures = $9, started_by = $10,
	started_at = $11, ended_at = CASE WHEN $3 IN ('complete', 'aborted') THEN coalesce(ended_at, now()) END,
	next_at = now() + make_interval(secs => $12)
WHERE tenant_id = $1 AND number = $2`

// UpdateRollout records how far a locked rollout is. A scheduler looks at it after a time, or with
// a negative one never.
func UpdateRollout(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, r loom.Rollout, next time.Duration) error {
	at := func(t time.Time) sql.NullTime { return sql.NullTime{Time: t, Valid: !t.IsZero()} }
	seconds := sql.NullFloat64{Float64: next.Seconds(), Valid: next >= 0}
	_, err := tx.ExecContext(ctx, updateRollout, tenant, r.Number, string(r.Status), cleanText(r.Why), at(r.Until), r.Wave, at(r.WaveEnded), r.Continued, r.Failures,
		string(r.StartedBy), at(r.Started), seconds)
	return wrap(err, "update rollout %d", r.Number)
}

const takeRollout = `
UPDATE rollouts AS r SET next_at = now() + make_interval(secs => $1)
WHERE r.id = (SELECT id FROM rollouts WHERE next_at <= now() ORDER BY next_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
RETURNING ` + rolloutColumns

// TakeRolloutAllTenants takes the rollout that a scheduler is to look at next, so that others do
// not for a time. NotFound where none is due.
func TakeRolloutAllTenants(ctx context.Context, tx *sqlx.Tx, hold time.Duration) (loom.Rollout, error) {
	return oneRollout(ctx, tx, takeRollout, hold.Seconds())
}

const endRolloutClusters = `
WITH ended AS (
	SELECT rc.rollout_id, rc.cluster_id, o.ended_at, o.number, o.message,
		CASE WHEN o.status = 'complete' THEN 'done' WHEN o.status = 'rolled_back' THEN 'undone' ELSE 'failed' END AS status
	FROM rollouts r JOIN rollout_clusters rc ON rc.rollout_id = r.id JOIN operations o ON o.cluster_id = rc.cluster_id AND o.number = rc.operation
	WHERE r.tenant_id = $1 AND r.number = $2 AND rc.status = 'running' AND o.status IN ('complete', 'failed', 'aborted', 'rolled_back')
)
UPDATE rollout_clusters rc SET status = e.status, ended_at = e.ended_at, note = CASE WHEN e.status = 'done' THEN '' ELSE e.message END
FROM ended e WHERE rc.rollout_id = e.rollout_id AND rc.cluster_id = e.cluster_id
RETURNING rc.status`

// EndRolloutClusters records which operations of a locked rollout ended, and counts them by what
// became of their clusters.
func EndRolloutClusters(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, number int) (map[loom.RolloutClusterStatus]int, error) {
	var ended []loom.RolloutClusterStatus
	err := tx.SelectContext(ctx, &ended, endRolloutClusters, tenant, number)
	counts := map[loom.RolloutClusterStatus]int{}
	for _, s := range ended {
		counts[s]++
	}
	return counts, wrap(err, "record the ends of operations of rollout %d", number)
}

const rolloutClustersWith = `
SELECT ` + rolloutClusterColumns + ` FROM rollouts r JOIN rollout_clusters rc ON rc.rollout_id = r.id JOIN clusters c ON c.id = rc.cluster_id
WHERE r.tenant_id = $1 AND r.number = $2 AND rc.status = $3 AND ($4 = 0 OR rc.wave <= $4) ORDER BY rc.tried_at NULLS FIRST, rc.place LIMIT $5`

// RolloutClustersWith reads clusters of a rollout that have a status, up to a wave or with 0 of all;
// those whose turn did not come yet first.
func RolloutClustersWith(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, number int, status loom.RolloutClusterStatus, wave, most int) ([]loom.RolloutCluster, error) {
	var rows []rolloutClusterRow
	if err := sqlx.SelectContext(ctx, q, &rows, rolloutClustersWith, tenant, number, string(status), wave, most); err != nil {
		return nil, wrap(err, "read clusters of rollout %d", number)
	}
	return rolloutClustersOf(rows)
}

// RolloutRunning counts the clusters of a rollout on which its operations run.
func RolloutRunning(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, number int) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, `
SELECT count(*) FROM rollouts r JOIN rollout_clusters rc ON rc.rollout_id = r.id
WHERE r.tenant_id = $1 AND r.number = $2 AND rc.status = 'running'`, tenant, number)
	return n, wrap(err, "count running clusters of rollout %d", number)
}

const lockRolloutCluster = `
SELECT ` + rolloutClusterColumns + ` FROM rollouts r JOIN rollout_clusters rc ON rc.rollout_id = r.id JOIN clusters c ON c.id = rc.cluster_id
WHERE r.tenant_id = $1 AND r.number = $2 AND rc.cluster_id = $3 FOR NO KEY UPDATE OF rc`

// LockRolloutCluster reads a cluster of a rollout and keeps others from changing its row until
// the transaction ends. NotFound.
func LockRolloutCluster(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, number int, id loom.ClusterID) (loom.RolloutCluster, error) {
	var row rolloutClusterRow
	if err := tx.GetContext(ctx, &row, lockRolloutCluster, tenant, number, int64(id)); err != nil {
		return loom.RolloutCluster{}, wrap(err, "lock cluster %s of rollout %d", id, number)
	}
	return row.cluster()
}

// A cluster counts as tried from when its turn first came. Its health is that before its first
// operation: what a failed one did to it is no measure for the next.
const setRolloutCluster = `
UPDATE rollout_clusters rc SET status = $4, note = $5, operation = coalesce(nullif($6::int, 0), rc.operation), tried_at = coalesce(rc.tried_at, now()),
	ended_at = CASE WHEN $4 NOT IN ('waiting', 'running') THEN now() END,
	health = CASE WHEN $4 = 'running' AND rc.operation IS NULL THEN coalesce((SELECT h.status FROM cluster_health h WHERE h.cluster_id = rc.cluster_id), '') ELSE rc.health END
FROM rollouts r WHERE r.id = rc.rollout_id AND r.tenant_id = $1 AND r.number = $2 AND rc.cluster_id = $3`

// SetRolloutCluster records what becomes of a cluster of a locked rollout: its Status, Note and
// Operation.
func SetRolloutCluster(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, number int, c loom.RolloutCluster) error {
	_, err := tx.ExecContext(ctx, setRolloutCluster, tenant, number, int64(c.Cluster), string(c.Status), cleanText(c.Note), c.Operation)
	return wrap(err, "record what becomes of cluster %s in rollout %d", c.Cluster, number)
}

// SkipRolloutClusters skips the clusters of a locked rollout that still wait.
func SkipRolloutClusters(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, number int, note string) error {
	_, err := tx.ExecContext(ctx, `
UPDATE rollout_clusters rc SET status = 'skipped', note = $3, ended_at = now()
FROM rollouts r WHERE r.id = rc.rollout_id AND r.tenant_id = $1 AND r.number = $2 AND rc.status = 'waiting'`, tenant, number, note)
	return wrap(err, "skip clusters of rollout %d", number)
}

// RetryRolloutClusters lets the clusters of a locked rollout that failed or were undone wait for
// another turn, in its present wave, unless they are in another rollout by now.
func RetryRolloutClusters(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, number int) error {
	_, err := tx.ExecContext(ctx, `
UPDATE rollout_clusters rc SET status = 'waiting', wave = r.wave, note = '', ended_at = NULL, tried_at = NULL
FROM rollouts r WHERE r.id = rc.rollout_id AND r.tenant_id = $1 AND r.number = $2 AND rc.status IN ('failed', 'undone') AND rc.wave <= r.wave
	AND NOT EXISTS (SELECT FROM rollout_clusters o WHERE o.cluster_id = rc.cluster_id AND o.status IN ('waiting', 'running'))`, tenant, number)
	return wrap(err, "retry clusters of rollout %d", number)
}

// WaveHealth is the health of a cluster that a wave changed, and what it was before.
type WaveHealth struct {
	Cluster loom.ClusterID    `db:"cluster_id"`
	Name    string            `db:"name"`
	Before  loom.HealthStatus `db:"before"`
	Now     loom.HealthStatus `db:"now"`
}

// HealthOfWave reads the health of the clusters that a wave of a rollout changed, in the order of
// their turns.
func HealthOfWave(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, number, wave int) ([]WaveHealth, error) {
	var all []WaveHealth
	err := sqlx.SelectContext(ctx, q, &all, `
SELECT rc.cluster_id, c.name, rc.health AS before, coalesce(`+clusterHealth+`, '') AS now
FROM rollouts r JOIN rollout_clusters rc ON rc.rollout_id = r.id JOIN clusters c ON c.id = rc.cluster_id LEFT JOIN cluster_health h ON h.cluster_id = c.id
WHERE r.tenant_id = $1 AND r.number = $2 AND rc.wave = $3 AND rc.status = 'done' AND rc.operation IS NOT NULL AND c.status <> 'terminated' ORDER BY rc.place`, tenant, number, wave)
	return all, wrap(err, "read the health of wave %d of rollout %d", wave, number)
}

// rolloutAge is how long rollouts are kept after their end, readyAge how long one waits for its
// start.
const (
	rolloutAge = 400 * 24 * time.Hour
	readyAge   = 24 * time.Hour
)

// TrimRolloutsAllTenants deletes rollouts that ended long ago, and those that nobody started.
func TrimRolloutsAllTenants(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, `
DELETE FROM rollouts WHERE ended_at < now() - make_interval(secs => $1) OR status = 'ready' AND created_at < now() - make_interval(secs => $2)`,
		rolloutAge.Seconds(), readyAge.Seconds())
	return wrap(err, "trim rollouts")
}

// Leans on rollout_clusters_open.
const openRollouts = `
SELECT (SELECT count(*) FROM rollouts WHERE status = 'running') AS running, (SELECT count(*) FROM rollouts WHERE status = 'stopped') AS stopped,
	count(*) FILTER (WHERE rc.status = 'waiting') AS waiting, count(*) FILTER (WHERE rc.status = 'running') AS changing
FROM rollout_clusters rc JOIN rollouts r ON r.id = rc.rollout_id AND r.status IN ('running', 'stopped') WHERE rc.status IN ('waiting', 'running')`

// RolloutFigureAllTenants counts the rollouts that are not over, and the clusters in them.
func RolloutFigureAllTenants(ctx context.Context, q sqlx.ExtContext) (loom.RolloutFigure, error) {
	var row struct {
		Running  int `db:"running"`
		Stopped  int `db:"stopped"`
		Waiting  int `db:"waiting"`
		Changing int `db:"changing"`
	}
	err := sqlx.GetContext(ctx, q, &row, openRollouts)
	return loom.RolloutFigure{
		Rollouts: map[loom.RolloutStatus]int{loom.RolloutRunning: row.Running, loom.RolloutStopped: row.Stopped},
		Clusters: map[loom.RolloutClusterStatus]int{loom.RolloutWaits: row.Waiting, loom.RolloutRuns: row.Changing},
	}, wrap(err, "count open rollouts of all tenants")
}
