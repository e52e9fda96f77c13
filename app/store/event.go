package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// EventChannel is the NOTIFY channel that wakes followers of events.
const EventChannel = "loom_event"

const insertEvents = `
INSERT INTO events (tenant_id, topic, ids)
SELECT e.tenant_id, e.topic, coalesce(string_to_array(nullif(e.ids, ''), ','), '{}')
FROM unnest($1::text[], $2::text[], $3::text[]) AS e(tenant_id, topic, ids)`

// InsertEvents records that things changed and wakes the followers when the
// transaction commits. Ids hold no commas.
func InsertEvents(ctx context.Context, tx *sqlx.Tx, events ...loom.Event) error {
	if len(events) == 0 {
		return nil
	}
	var tenants, topics, ids []string
	for _, e := range events {
		tenants = append(tenants, string(e.Tenant))
		topics = append(topics, e.Topic)
		joined := ""
		for i, id := range e.IDs {
			if i > 0 {
				joined += ","
			}
			joined += id
		}
		ids = append(ids, joined)
	}
	if _, err := tx.ExecContext(ctx, insertEvents, pq.Array(tenants), pq.Array(topics), pq.Array(ids)); err != nil {
		return wrap(err, "insert %d events", len(events))
	}
	_, err := tx.ExecContext(ctx, `SELECT pg_notify($1, '')`, EventChannel)
	return wrap(err, "wake followers of events")
}

// StoredEvent is an event as followers read it.
type StoredEvent struct {
	ID   int64
	Time time.Time
	loom.Event
}

type eventRow struct {
	ID        int64          `db:"id"`
	TenantID  string         `db:"tenant_id"`
	Topic     string         `db:"topic"`
	IDs       pq.StringArray `db:"ids"`
	CreatedAt time.Time      `db:"created_at"`
}

const eventsSince = `
SELECT id, tenant_id, topic, coalesce(ids, '{}') AS ids, created_at FROM events
WHERE id > $1 AND created_at > now() - make_interval(secs => $2)
ORDER BY id LIMIT $3`

// EventsSinceAllTenants reads events with ids above after that are younger than
// window. Ids are handed out before commit, so a reader asks again for a window
// it has already seen rather than trust the highest id.
func EventsSinceAllTenants(ctx context.Context, q sqlx.ExtContext, after int64, window time.Duration, limit int) ([]StoredEvent, error) {
	var rows []eventRow
	if err := sqlx.SelectContext(ctx, q, &rows, eventsSince, after, window.Seconds(), limit); err != nil {
		return nil, wrap(err, "read events after %d", after)
	}
	events := make([]StoredEvent, len(rows))
	for i, r := range rows {
		events[i] = StoredEvent{ID: r.ID, Time: r.CreatedAt, Event: loom.Event{Tenant: loom.TenantID(r.TenantID), Topic: r.Topic, IDs: r.IDs}}
	}
	return events, nil
}

// TrimEventsAllTenants deletes events older than age and says how many.
func TrimEventsAllTenants(ctx context.Context, tx *sqlx.Tx, age time.Duration) (int64, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM events WHERE created_at < now() - make_interval(secs => $1)`, age.Seconds())
	if err != nil {
		return 0, wrap(err, "trim events")
	}
	return result.RowsAffected()
}

// LogChannel is the NOTIFY channel that wakes followers of logs; the payload is
// the task's row id.
const LogChannel = "loom_log"

// OldestEventAllTenants is the id of the oldest event kept, 0 when there is none.
func OldestEventAllTenants(ctx context.Context, q sqlx.ExtContext) (int64, error) {
	var id int64
	err := sqlx.GetContext(ctx, q, &id, `SELECT coalesce(min(id), 0) FROM events`)
	return id, wrap(err, "find the oldest event")
}
