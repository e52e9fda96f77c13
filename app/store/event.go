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

// trimEvents leaves what was still open when events were trimmed before: a reader
// may not have seen it yet. Numbers from the future came with a restored database.
const trimEvents = `
DELETE FROM events WHERE created_at < now() - make_interval(secs => $1)
  AND (xid < (SELECT settled FROM event_floor) OR xid >= pg_snapshot_xmax(pg_current_snapshot()))`

// TrimEventsAllTenants deletes events older than age that every reader could see
// when events were trimmed the time before, and says how many.
func TrimEventsAllTenants(ctx context.Context, tx *sqlx.Tx, age time.Duration) (int64, error) {
	result, err := tx.ExecContext(ctx, trimEvents, age.Seconds())
	if err != nil {
		return 0, wrap(err, "trim events")
	}
	if _, err := tx.ExecContext(ctx, `UPDATE event_floor SET settled = pg_snapshot_xmin(pg_current_snapshot())`); err != nil {
		return 0, wrap(err, "note up to where events are settled")
	}
	return result.RowsAffected()
}

// LogChannel is the NOTIFY channel that wakes followers of logs; the payload is
// the task's row id.
const LogChannel = "loom_log"
