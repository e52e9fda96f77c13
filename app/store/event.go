package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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

// EventPlace is how far a reader of events has come: the events that the snapshot
// could see are behind it, whatever their ids. The zero value is no place.
type EventPlace struct {
	// snapshot is a pg_snapshot as text, "xmin:xmax:xip,…".
	snapshot string
	// oldest and next are its xmin and xmax: every transaction below oldest was over,
	// none from next on had begun.
	oldest, next uint64
	// gone is the highest transaction of which an event was deleted by then.
	gone uint64
	// Server names the numbering of transactions: another one begins in a restored
	// database, and in a standby that took over.
	Server string
}

// Oldest is the transaction from which on something may be missing at this place;
// below it nothing is.
func (p *EventPlace) Oldest() uint64 { return p.oldest }

// EventPlaceAt is the place of a reader who has seen the events of all transactions
// below oldest and perhaps no other. The lower half of oldest is not 0: no transaction
// has such a number, and the database takes none.
func EventPlaceAt(server string, oldest uint64) EventPlace {
	text := strconv.FormatUint(oldest, 10)
	return EventPlace{snapshot: text + ":" + text + ":", oldest: oldest, next: oldest, Server: server}
}

// EventTopic is a topic of a tenant.
type EventTopic struct {
	Tenant loom.TenantID
	Topic  string
}

// EventNews is what a reader finds behind its place.
type EventNews struct {
	// At is the place to go on from.
	At EventPlace
	// Events has one entry for each topic in which something happened. No ids mean
	// that anything may have changed.
	Events []loom.Event
	// Lost says that events may have been deleted before they were read, or that the
	// place is none of this server.
	Lost bool
}

const placeColumns = `pg_current_snapshot()::text AS snapshot, (SELECT gone::text FROM event_floor) AS gone,
	(SELECT c.system_identifier::text || '.' || p.timeline_id FROM pg_control_system() c, pg_control_checkpoint() p) AS server`

// What a snapshot could not see are the transactions that began after it and those
// that were open in it; both are found by the index. A transaction that stays open
// therefore costs nothing and holds nothing back. Numbers from the future are of
// another server.
const newEvents = `
WITH fresh AS (
	SELECT e.tenant_id, e.topic, e.ids FROM events e
	WHERE e.xid >= pg_snapshot_xmax($1::pg_snapshot) AND e.xid < pg_snapshot_xmax(pg_current_snapshot())
	UNION ALL
	SELECT e.tenant_id, e.topic, e.ids FROM pg_snapshot_xip($1::pg_snapshot) AS x (xid) JOIN events e ON e.xid = x.xid
), news AS (
	SELECT f.tenant_id, f.topic,
		CASE WHEN bool_or(cardinality(f.ids) = 0) OR count(DISTINCT i.id) > $4 THEN '{}'
		     ELSE array_agg(DISTINCT i.id) END AS ids
	FROM fresh f
	JOIN unnest($2::text[], $3::text[]) AS w (tenant_id, topic) ON w.tenant_id = f.tenant_id AND w.topic = f.topic
	LEFT JOIN LATERAL unnest(f.ids) AS i (id) ON true
	GROUP BY f.tenant_id, f.topic
)
SELECT ` + placeColumns + `, coalesce(n.tenant_id, '') AS tenant_id, coalesce(n.topic, '') AS topic, n.ids
FROM (SELECT) AS always LEFT JOIN news n ON true
ORDER BY n.tenant_id, n.topic`

type placeRow struct {
	Snapshot string `db:"snapshot"`
	Gone     string `db:"gone"`
	Server   string `db:"server"`
}

// EventPlaceAllTenants gives the present place: all events that can be seen now are
// behind it.
func EventPlaceAllTenants(ctx context.Context, q sqlx.ExtContext) (EventPlace, error) {
	var row placeRow
	if err := sqlx.GetContext(ctx, q, &row, "SELECT "+placeColumns); err != nil {
		return EventPlace{}, wrap(err, "read the place among events")
	}
	place, err := row.place()
	return place, wrap(err, "read the place among events")
}

// NewEventsAllTenants reads what happened behind a place in the topics that are
// wanted, one entry for each. Where more than maxIDs ids would be named, none are.
func NewEventsAllTenants(ctx context.Context, q sqlx.ExtContext, after EventPlace, wanted []EventTopic, maxIDs int) (EventNews, error) {
	tenants, topics := make([]string, len(wanted)), make([]string, len(wanted))
	for i, w := range wanted {
		tenants[i], topics[i] = string(w.Tenant), w.Topic
	}
	var rows []struct {
		placeRow
		TenantID string         `db:"tenant_id"`
		Topic    string         `db:"topic"`
		IDs      pq.StringArray `db:"ids"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, newEvents, after.snapshot, pq.Array(tenants), pq.Array(topics), maxIDs)
	if err != nil {
		return EventNews{}, wrap(err, "read the events of %d topics", len(wanted))
	}
	var news EventNews
	if news.At, err = rows[0].place(); err != nil {
		return EventNews{}, wrap(err, "read the place among events")
	}
	news.Lost = after.lostAt(&news.At)
	for _, r := range rows {
		if r.Topic != "" {
			news.Events = append(news.Events, loom.Event{Tenant: loom.TenantID(r.TenantID), Topic: r.Topic, IDs: r.IDs})
		}
	}
	return news, nil
}

func (r *placeRow) place() (EventPlace, error) {
	p := EventPlace{snapshot: r.Snapshot, Server: r.Server}
	xmin, rest, _ := strings.Cut(r.Snapshot, ":")
	xmax, _, _ := strings.Cut(rest, ":")
	for _, number := range []struct {
		to   *uint64
		text string
	}{{&p.oldest, xmin}, {&p.next, xmax}, {&p.gone, r.Gone}} {
		n, err := strconv.ParseUint(number.text, 10, 64)
		if err != nil {
			return EventPlace{}, fmt.Errorf("the snapshot %q has a number %q: %w", r.Snapshot, number.text, err)
		}
		*number.to = n
	}
	return p, nil
}

// lostAt says whether a reader who goes from p to now may miss something. What was
// deleted while it stood at p counts only where it had not seen it.
func (p *EventPlace) lostAt(now *EventPlace) bool {
	if p.Server != now.Server || p.oldest > now.next {
		return true
	}
	deleted := now.gone > p.gone && now.gone < now.next
	return deleted && now.gone >= p.oldest
}

// The owner and who asked are often the same.
const tellOwner = `
INSERT INTO events (tenant_id, topic, ids)
SELECT $1::text, '` + loom.TopicOfUser + `' || who, ARRAY[$4::text]
FROM (SELECT owner_id AS who FROM clusters WHERE tenant_id = $1 AND id = $2 UNION SELECT $3::text WHERE $3 <> '') AS told`

// TellOwner records for the owner of a cluster, and for another user if one is named,
// that something of theirs needs to be known: id is that of the operation that ended,
// or of the cluster whose lease ends. InsertEvents wakes the followers.
func TellOwner(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, other loom.UserID, id string) error {
	_, err := tx.ExecContext(ctx, tellOwner, tenant, cluster, other, id)
	return wrap(err, "tell the owner of cluster %s", cluster)
}
