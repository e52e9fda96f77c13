package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/jobs"
)

const deliveryColumns = `d.id, d.hook_id, d.event, d.event_at, d.created_at, coalesce(o.cluster_id, d.cluster_id) AS cluster_id, coalesce(o.number, 0) AS number, d.status, d.tries, d.code, d.duration_ms, d.error,
	CASE WHEN d.status = 'waiting' THEN d.next_at END AS next_at`

type deliveryRow struct {
	ID         int64        `db:"id"`
	HookID     int64        `db:"hook_id"`
	Event      string       `db:"event"`
	EventAt    time.Time    `db:"event_at"`
	CreatedAt  time.Time    `db:"created_at"`
	ClusterID  int64        `db:"cluster_id"`
	Number     int          `db:"number"`
	Status     string       `db:"status"`
	Tries      int          `db:"tries"`
	Code       int          `db:"code"`
	DurationMS int64        `db:"duration_ms"`
	Error      string       `db:"error"`
	NextAt     sql.NullTime `db:"next_at"`
}

func (r *deliveryRow) delivery() loom.Delivery {
	return loom.Delivery{
		ID: loom.DeliveryID(r.ID), Hook: loom.HookID(r.HookID), Event: loom.HookEvent(r.Event), Time: r.EventAt, Created: r.CreatedAt,
		Operation: loom.OperationRef{Cluster: loom.ClusterID(r.ClusterID), Number: r.Number}, Status: loom.DeliveryStatus(r.Status),
		Tries: r.Tries, Code: r.Code, Took: time.Duration(r.DurationMS) * time.Millisecond, Error: r.Error, Next: r.NextAt.Time,
	}
}

// DeliveryFilter narrows the log of a hook; empty fields do not filter.
type DeliveryFilter struct {
	Statuses []loom.DeliveryStatus
	// Since keeps deliveries of events from that time on.
	Since time.Time
}

// DeliveryList is a page of the log of a hook, newest first. Next and Prev are
// cursors, empty at the ends.
type DeliveryList struct {
	Items      []loom.Delivery
	Next, Prev string
}

const deliveriesOf = `
SELECT ` + deliveryColumns + ` FROM hook_deliveries d LEFT JOIN operations o ON o.id = d.operation_id
WHERE d.tenant_id = $1 AND d.hook_id = $2 AND ($3::text[] = '{}' OR d.status = ANY ($3::text[])) AND ($4::timestamptz IS NULL OR d.event_at >= $4)
  AND ($5 = 0 OR CASE WHEN $6 THEN d.id > $5 ELSE d.id < $5 END)
ORDER BY CASE WHEN $6 THEN d.id ELSE -d.id END LIMIT $7`

// Deliveries reads a page of the log of a hook. Invalid for a cursor of another
// list or filter.
func Deliveries(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, hook loom.HookID, f DeliveryFilter, p loom.Page) (DeliveryList, error) {
	cursor, err := p.Check(2, "-time")
	if err != nil {
		return DeliveryList{}, err
	}
	fingerprint := fmt.Sprintf("%d %v %d", hook, f.Statuses, f.Since.UnixMilli())
	back := p.Before != ""
	var at int64
	if cursor != nil {
		if at, err = strconv.ParseInt(cursor.Keys[0], 10, 64); err != nil || at <= 0 || cursor.Keys[1] != fingerprint {
			field := "after"
			if back {
				field = "before"
			}
			return DeliveryList{}, loom.InvalidFields([]loom.FieldError{{Field: field,
				Message: "This cursor belongs to another list or filter; start from the first page."}})
		}
	}
	since := sql.NullTime{Time: f.Since, Valid: !f.Since.IsZero()}
	var rows []deliveryRow
	err = sqlx.SelectContext(ctx, q, &rows, deliveriesOf, tenant, int64(hook), texts(f.Statuses), since, at, back, p.Limit+1)
	if err != nil {
		return DeliveryList{}, wrap(err, "list deliveries of hook %d", hook)
	}
	var list DeliveryList
	rows, list.Next, list.Prev = loom.CutPage(p, rows, false, func(r deliveryRow) []string { return []string{strconv.FormatInt(r.ID, 10), fingerprint} })
	list.Items = make([]loom.Delivery, len(rows))
	for i := range rows {
		list.Items[i] = rows[i].delivery()
	}
	return list, nil
}

// HookOutcome is what came of the deliveries of a hook: the last one, whose id is 0 where nothing
// was sent yet, and how many failed within 24 hours.
type HookOutcome struct {
	Hook   loom.HookID
	Last   loom.Delivery
	Failed int
}

// Leans on hook_deliveries_hook; the notices that a hook keeps are bounded.
const hookOutcomes = `
SELECT h.id AS hook_id, coalesce(d.id, 0) AS id, coalesce(d.status, '') AS status, coalesce(d.error, '') AS error, d.created_at,
	(SELECT count(*) FROM hook_deliveries f WHERE f.hook_id = h.id AND f.status = 'failed' AND f.ended_at > now() - interval '24 hours') AS failed
FROM hooks h LEFT JOIN LATERAL (SELECT d.id, d.status, d.error, d.created_at FROM hook_deliveries d WHERE d.hook_id = h.id ORDER BY d.id DESC LIMIT 1) d ON true
WHERE h.tenant_id = $1`

// HookOutcomes reads what came of the deliveries of the hooks of a tenant.
func HookOutcomes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (map[loom.HookID]HookOutcome, error) {
	var rows []struct {
		HookID    int64        `db:"hook_id"`
		ID        int64        `db:"id"`
		Status    string       `db:"status"`
		Error     string       `db:"error"`
		CreatedAt sql.NullTime `db:"created_at"`
		Failed    int          `db:"failed"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, hookOutcomes, string(tenant)); err != nil {
		return nil, wrap(err, "read what came of the deliveries of hooks")
	}
	outcomes := map[loom.HookID]HookOutcome{}
	for _, r := range rows {
		hook := loom.HookID(r.HookID)
		outcomes[hook] = HookOutcome{Hook: hook, Failed: r.Failed,
			Last: loom.Delivery{ID: loom.DeliveryID(r.ID), Hook: hook, Status: loom.DeliveryStatus(r.Status), Error: r.Error, Created: r.CreatedAt.Time}}
	}
	return outcomes, nil
}

const replayDelivery = `
INSERT INTO hook_deliveries (hook_id, tenant_id, operation_id, cluster_id, event, notice, event_at)
SELECT d.hook_id, d.tenant_id, d.operation_id, d.cluster_id, d.event, d.notice, d.event_at FROM hook_deliveries d
WHERE d.tenant_id = $1 AND d.hook_id = $2 AND d.id = $3
RETURNING id`

// ReplayDelivery sends the notice of a delivery once more, as a new delivery that
// no operation waits for. NotFound.
func ReplayDelivery(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, hook loom.HookID, id loom.DeliveryID) (loom.Delivery, error) {
	var again int64
	if err := tx.GetContext(ctx, &again, replayDelivery, tenant, int64(hook), int64(id)); err != nil {
		return loom.Delivery{}, wrap(err, "replay delivery %d", id)
	}
	if err := dropDeliveries(ctx, tx, hook); err != nil {
		return loom.Delivery{}, err
	}
	if err := Enqueue(ctx, tx, jobs.DeliverHook{DeliveryID: again}); err != nil {
		return loom.Delivery{}, err
	}
	var row deliveryRow
	err := tx.GetContext(ctx, &row, `SELECT `+deliveryColumns+` FROM hook_deliveries d LEFT JOIN operations o ON o.id = d.operation_id WHERE d.tenant_id = $1 AND d.id = $2`, tenant, again)
	return row.delivery(), wrap(err, "read delivery %d", again)
}

// WaitingDeliveries counts the notices of a hook that wait to be sent and that no operation
// waits for.
func WaitingDeliveries(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, hook loom.HookID) (int, error) {
	var n int
	err := tx.GetContext(ctx, &n, `SELECT count(*) FROM hook_deliveries WHERE tenant_id = $1 AND hook_id = $2 AND status = 'waiting' AND NOT blocking`, tenant, int64(hook))
	return n, wrap(err, "count what waits for hook %d", hook)
}

// DueDelivery is all that sending a delivery needs.
type DueDelivery struct {
	loom.Delivery
	// To is the hook, Sealed its secret.
	To     loom.Hook
	Sealed []byte
	Notice loom.Notice
	// Blocking says that the operation waits for the answer, Waits that it still does.
	Blocking, Waits bool
	// Age is how long the delivery has existed, Due how long it is until its next
	// try, both by the clock of the database.
	Age, Due time.Duration
}

const dueDelivery = `
SELECT ` + deliveryColumns + `, d.notice, d.blocking AS asks, coalesce(o.status = 'not_submitted', false) AS waits, s.sealed,
	extract(epoch FROM now() - d.created_at)::float8 AS age, extract(epoch FROM d.next_at - now())::float8 AS due,
	h.id AS "h.id", h.tenant_id AS "h.tenant_id", h.name AS "h.name", h.url AS "h.url", h.events AS "h.events", h.actions AS "h.actions",
	h.templates AS "h.templates", h.blocking AS "h.blocking", h.on_timeout AS "h.on_timeout", h.global AS "h.global",
	h.legacy_body AS "h.legacy_body", h.enabled AS "h.enabled", h.created_at AS "h.created_at"
FROM hook_deliveries d
JOIN hooks h ON h.id = d.hook_id
LEFT JOIN operations o ON o.id = d.operation_id
LEFT JOIN secrets s ON s.tenant_id = h.tenant_id AND s.entity = 'hook:' || h.id AND s.field = '` + HookSecretField + `'
WHERE d.id = $1`

// DueDeliveryAllTenants reads a delivery for sending. NotFound when its hook was
// deleted.
func DueDeliveryAllTenants(ctx context.Context, q sqlx.ExtContext, id loom.DeliveryID) (DueDelivery, error) {
	var row struct {
		deliveryRow
		Notice []byte  `db:"notice"`
		Asks   bool    `db:"asks"`
		Waits  bool    `db:"waits"`
		Sealed []byte  `db:"sealed"`
		Age    float64 `db:"age"`
		Due    float64 `db:"due"`
		Hook   hookRow `db:"h"`
	}
	if err := sqlx.GetContext(ctx, q, &row, dueDelivery, int64(id)); err != nil {
		return DueDelivery{}, wrap(err, "read delivery %d", id)
	}
	d := DueDelivery{
		Delivery: row.delivery(), To: row.Hook.hook(), Sealed: row.Sealed, Blocking: row.Asks, Waits: row.Waits,
		Age: time.Duration(row.Age * float64(time.Second)), Due: time.Duration(row.Due * float64(time.Second)),
	}
	decoder := json.NewDecoder(strings.NewReader(string(row.Notice)))
	decoder.UseNumber()
	return d, wrap(decoder.Decode(&d.Notice), "read the notice of delivery %d", id)
}

// HeldDelivery is a delivery that its transaction holds. Where an operation waits
// for it, that is held too.
type HeldDelivery struct {
	ID       loom.DeliveryID
	Blocking bool
	Status   loom.DeliveryStatus
	// Operation is set for blocking deliveries only.
	Operation loom.Operation
}

// LockDeliveryAllTenants locks a delivery, after the operation that waits for it.
// NotFound when its hook was deleted.
func LockDeliveryAllTenants(ctx context.Context, tx *sqlx.Tx, id loom.DeliveryID) (HeldDelivery, error) {
	var row struct {
		OperationID int64 `db:"operation_id"`
		Blocking    bool  `db:"blocking"`
	}
	if err := tx.GetContext(ctx, &row, `SELECT coalesce(operation_id, 0) AS operation_id, blocking FROM hook_deliveries WHERE id = $1`, int64(id)); err != nil {
		return HeldDelivery{}, wrap(err, "find delivery %d", id)
	}
	h := HeldDelivery{ID: id, Blocking: row.Blocking}
	var err error
	if row.Blocking {
		if h.Operation, err = LockOperationAllTenants(ctx, tx, loom.OperationID(row.OperationID)); err != nil {
			return h, err
		}
	}
	err = tx.GetContext(ctx, &h.Status, `SELECT status FROM hook_deliveries WHERE id = $1 FOR UPDATE`, int64(id))
	return h, wrap(err, "lock delivery %d", id)
}

const recordDelivery = `
UPDATE hook_deliveries SET status = $2, tries = tries + $3, code = $4, duration_ms = $5, error = $6, next_at = now() + make_interval(secs => $7),
	ended_at = CASE WHEN $2 <> 'waiting' THEN now() END
WHERE id = $1`

// RecordDelivery stores what came of a try of a held delivery.
func RecordDelivery(ctx context.Context, tx *sqlx.Tx, h *HeldDelivery, o loom.DeliveryOutcome) error {
	sent := 0
	if o.Sent {
		sent = 1
	}
	_, err := tx.ExecContext(ctx, recordDelivery, int64(h.ID), string(o.Status), sent, o.Code, o.Took.Milliseconds(), cleanText(o.Error), o.After.Seconds())
	h.Status = o.Status
	return wrap(err, "record a try of delivery %d", h.ID)
}

// A live River job of a waiting delivery is scheduled, waits or runs.
const reviveDeliveries = `
WITH lost AS (
	SELECT d.id FROM hook_deliveries d
	WHERE d.status = 'waiting' AND d.next_at < now() - interval '1 minute' AND NOT EXISTS (
		SELECT FROM river_job r WHERE r.queue = $1 AND r.kind = $2 AND (r.args->>'delivery_id')::bigint = d.id
		AND r.state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))
	ORDER BY d.id LIMIT 1000
)
INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at)
SELECT 'available', $1, $2, jsonb_build_object('delivery_id', id), $3, now() FROM lost`

// ReviveDeliveriesAllTenants enqueues deliveries anew that are due and that no
// River job sends, and says how many there were.
func ReviveDeliveriesAllTenants(ctx context.Context, tx *sqlx.Tx) (int, error) {
	result, err := tx.ExecContext(ctx, reviveDeliveries, jobs.HookQueue, jobs.KindDeliverHook, jobs.ControlTries)
	if err != nil {
		return 0, wrap(err, "revive deliveries")
	}
	n, err := result.RowsAffected()
	if err != nil || n == 0 {
		return 0, err
	}
	return int(n), WakeQueues(ctx, tx, jobs.HookQueue)
}

// TrimDeliveriesAllTenants deletes deliveries that ended longer ago than age.
func TrimDeliveriesAllTenants(ctx context.Context, tx *sqlx.Tx, age time.Duration) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM hook_deliveries WHERE ended_at < now() - make_interval(secs => $1)`, age.Seconds())
	return wrap(err, "trim deliveries")
}

// SentDelivery reads a delivery of a hook with the facts its body is made from.
// NotFound.
func SentDelivery(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, hook loom.HookID, id loom.DeliveryID) (loom.Delivery, loom.Notice, error) {
	var row struct {
		deliveryRow
		Notice []byte `db:"notice"`
	}
	err := sqlx.GetContext(ctx, q, &row, `SELECT `+deliveryColumns+`, d.notice FROM hook_deliveries d LEFT JOIN operations o ON o.id = d.operation_id
WHERE d.tenant_id = $1 AND d.hook_id = $2 AND d.id = $3`, tenant, int64(hook), int64(id))
	if err != nil {
		return loom.Delivery{}, loom.Notice{}, wrap(err, "read delivery %d", id)
	}
	notice, err := readNotice(row.Notice)
	return row.delivery(), notice, wrap(err, "read the notice of delivery %d", id)
}

// readNotice keeps numbers as they were written.
func readNotice(text []byte) (loom.Notice, error) {
	var n loom.Notice
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err := decoder.Decode(&n)
	return n, err
}
