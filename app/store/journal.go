package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
	"loom/jobs"
)

type journalRow struct {
	ID      loom.JournalID `db:"id"`
	Tenant  loom.TenantID  `db:"tenant_id"`
	Cluster int64          `db:"cluster_id"`
	Node    loom.NodeID    `db:"node_id"`
	Service string         `db:"service"`
	Lines   int            `db:"lines"`
	Follow  bool           `db:"follow"`
	Began   bool           `db:"began"`
	Ended   bool           `db:"ended"`
	Message string         `db:"message"`
}

func (r journalRow) journal() loom.Journal {
	return loom.Journal{ID: r.ID, Tenant: r.Tenant, Cluster: loom.ClusterID(r.Cluster), Node: r.Node, Service: r.Service, Lines: r.Lines, Follow: r.Follow,
		Began: r.Began, Ended: r.Ended, Message: r.Message}
}

// openJournal is the condition of a journal j that goes on: somebody reads it, and a provisioner
// follows it or may still take it.
const openJournal = `j.ended_at IS NULL AND j.wanted_until > now()
	AND (j.process_id IS NULL AND j.created_at > now() - interval '30 s' OR EXISTS (SELECT FROM processes p WHERE p.id = j.process_id AND p.expires_at > now()))`

const journalColumns = `j.id, j.tenant_id, j.cluster_id, j.node_id, j.service, j.lines, j.follow, j.began_at IS NOT NULL AS began, NOT (` + openJournal + `) AS ended,
	CASE WHEN j.ended_at IS NOT NULL THEN j.message WHEN j.wanted_until <= now() THEN '` + loom.JournalUnread + `' WHEN j.process_id IS NULL THEN '` + loom.JournalUntaken + `' ELSE '` + loom.JournalLost + `' END AS message`

// OpenJournals counts the open journals of a user and those on a node, and keeps others of
// the tenant from being opened until tx ends.
func OpenJournals(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID, node loom.NodeID) (ofUser, ofNode int, err error) {
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('journals of ' || $1, 0))`, tenant); err != nil {
		return 0, 0, wrap(err, "lock the journals of a tenant")
	}
	err = tx.QueryRowxContext(ctx, `SELECT count(*) FILTER (WHERE j.user_id = $2), count(*) FILTER (WHERE j.node_id = $3) FROM journals j WHERE j.tenant_id = $1 AND `+openJournal,
		tenant, user, node).Scan(&ofUser, &ofNode)
	return ofUser, ofNode, wrap(err, "count open journals")
}

const sameJournal = `
SELECT j.id FROM journals j WHERE j.tenant_id = $1 AND j.user_id = $2 AND j.node_id = $3 AND j.service = $4 AND j.lines = $5 AND j.follow AND ` + openJournal + ` LIMIT 1`

// SameJournal returns the id of the open journal that a user follows already, "" for none.
func SameJournal(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID, j loom.Journal) (loom.JournalID, error) {
	var ids []loom.JournalID
	err := sqlx.SelectContext(ctx, q, &ids, sameJournal, tenant, user, j.Node, j.Service, j.Lines)
	if err != nil || len(ids) == 0 {
		return "", wrap(err, "look for an open journal")
	}
	return ids[0], nil
}

const insertJournal = `
INSERT INTO journals (tenant_id, cluster_id, node_id, service, user_id, lines, follow, wanted_until)
SELECT n.tenant_id, n.cluster_id, n.id, $4, $5, $6, $7, now() + make_interval(secs => $8) FROM nodes n WHERE n.tenant_id = $1 AND n.cluster_id = $2 AND n.id = $3
RETURNING id`

// InsertJournal stores a journal that a user wants to read, with the River job for it.
func InsertJournal(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID, j loom.Journal) (id loom.JournalID, err error) {
	err = tx.GetContext(ctx, &id, insertJournal, tenant, int64(j.Cluster), j.Node, j.Service, user, j.Lines, j.Follow, loom.JournalWanted.Seconds())
	if err != nil {
		return "", wrap(err, "open the journal of %s on node %s", j.Service, j.Node)
	}
	return id, Enqueue(ctx, tx, jobs.FollowJournal{JournalID: string(id)})
}

const readJournal = `SELECT ` + journalColumns + ` FROM journals j WHERE j.tenant_id = $1 AND j.user_id = $2 AND j.id = $3`

// JournalByID reads a journal of a user. NotFound.
func JournalByID(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID, id loom.JournalID) (loom.Journal, error) {
	var row journalRow
	if !isUUID(string(id)) {
		return loom.Journal{}, loom.NewError(loom.NotFound, "There is no journal “%.40s”.", id)
	}
	err := sqlx.GetContext(ctx, q, &row, readJournal, tenant, user, id)
	return row.journal(), wrap(err, "read journal %s", id)
}

const wantJournal = `
UPDATE journals SET wanted_until = now() + make_interval(secs => $3)
WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL AND wanted_until BETWEEN now() AND now() + make_interval(secs => $4)`

// WantJournal says that somebody still reads a journal, unless that was said less than 10
// seconds ago.
func WantJournal(ctx context.Context, q sqlx.ExecerContext, tenant loom.TenantID, id loom.JournalID) error {
	_, err := q.ExecContext(ctx, wantJournal, tenant, id, loom.JournalWanted.Seconds(), (loom.JournalWanted - 10*time.Second).Seconds())
	return wrap(err, "go on with journal %s", id)
}

const journalLines = `
SELECT l.seq, l.at, l.text, l.skipped FROM journals j JOIN journal_lines l ON l.journal_id = j.id
WHERE j.tenant_id = $1 AND j.id = $2 AND l.seq > $3 ORDER BY l.seq LIMIT $4`

// JournalLines reads lines of a journal after one.
func JournalLines(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.JournalID, after, limit int) ([]loom.JournalLine, error) {
	var rows []struct {
		Seq     int       `db:"seq"`
		Time    time.Time `db:"at"`
		Text    string    `db:"text"`
		Skipped int       `db:"skipped"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, journalLines, tenant, id, after, limit); err != nil {
		return nil, wrap(err, "read journal %s", id)
	}
	lines := make([]loom.JournalLine, len(rows))
	for i, r := range rows {
		lines[i] = loom.JournalLine(r)
	}
	return lines, nil
}

// A process may be limited to one tenant, and a local machine is reached from its host alone.
const takeJournal = `
UPDATE journals j SET process_id = p.id FROM processes p, nodes n, clusters c
WHERE j.id = $1 AND j.process_id IS NULL AND ` + openJournal + `
  AND p.id = $2 AND p.expires_at > now() AND (p.only_tenant IS NULL OR p.only_tenant = j.tenant_id)
  AND n.id = j.node_id AND coalesce(n.results->>'local_host', p.host) = p.host AND c.id = j.cluster_id
RETURNING j.id, j.tenant_id, j.cluster_id, j.node_id, j.service, j.lines, j.follow, n.incarnation, c.latest_operation AS operation`

// TakeJournalAllTenants gives an open journal to a process, and the node as it is now. taken
// is false where the process may not have it; open says whether it still waits for somebody.
func TakeJournalAllTenants(ctx context.Context, tx *sqlx.Tx, id loom.JournalID, process loom.ProcessID) (j loom.Journal, node loom.HealthNode, taken, open bool, err error) {
	var rows []struct {
		journalRow
		Incarnation int `db:"incarnation"`
		Operation   int `db:"operation"`
	}
	if err := tx.SelectContext(ctx, &rows, takeJournal, id, process); err != nil {
		return j, node, false, false, wrap(err, "take journal %s", id)
	}
	if len(rows) == 1 {
		r := rows[0]
		return r.journal(), loom.HealthNode{Node: r.Node, Tenant: r.Tenant, Cluster: loom.ClusterID(r.Cluster), Incarnation: r.Incarnation, Operation: r.Operation}, true, true, nil
	}
	err = tx.GetContext(ctx, &open, `SELECT EXISTS (SELECT FROM journals j WHERE j.id = $1 AND j.process_id IS NULL AND `+openJournal+`)`, id)
	return j, node, false, open, wrap(err, "look for journal %s", id)
}

const beginJournal = `
UPDATE journals j SET began_at = coalesce(began_at, now()) WHERE j.tenant_id = $1 AND j.id = $2 AND j.process_id = $3 AND ` + openJournal

const appendJournal = `
INSERT INTO journal_lines (journal_id, seq, at, text, skipped)
SELECT $1, l.seq, l.at, l.text, l.skipped FROM unnest($2::int[], $3::timestamptz[], $4::text[], $5::int[]) AS l (seq, at, text, skipped)
ON CONFLICT (journal_id, seq) DO NOTHING`

// AppendJournal adds lines to a journal that a process follows and wakes its reader; open is
// false, and nothing is stored, once nobody reads it or the process has lost it. Lines that
// are there already stay.
func AppendJournal(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.JournalID, process loom.ProcessID, lines []loom.JournalLine) (open bool, err error) {
	done, err := tx.ExecContext(ctx, beginJournal, tenant, id, process)
	if err != nil {
		return false, wrap(err, "look whether journal %s is read", id)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	var seqs, skipped []int64
	var ats []time.Time
	var texts []string
	for _, l := range lines {
		seqs, ats, texts, skipped = append(seqs, int64(l.Seq)), append(ats, l.Time), append(texts, cleanText(l.Text)), append(skipped, int64(l.Skipped))
	}
	if _, err := tx.ExecContext(ctx, appendJournal, id, pq.Array(seqs), pq.Array(ats), pq.Array(texts), pq.Array(skipped)); err != nil {
		return false, wrap(err, "append %d lines to journal %s", len(lines), id)
	}
	return true, signalJournal(ctx, tx, id)
}

// EndJournal records that a process follows a journal no longer, and why, and wakes its reader.
func EndJournal(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.JournalID, process loom.ProcessID, message string) error {
	_, err := tx.ExecContext(ctx, `UPDATE journals SET ended_at = now(), message = $4 WHERE tenant_id = $1 AND id = $2 AND process_id = $3 AND ended_at IS NULL`,
		tenant, id, process, cleanText(message))
	if err != nil {
		return wrap(err, "end journal %s", id)
	}
	return signalJournal(ctx, tx, id)
}

// JournalNotice begins the payload of a notice on LogChannel that is about a journal, whose
// id follows.
const JournalNotice = "journal "

func signalJournal(ctx context.Context, tx *sqlx.Tx, id loom.JournalID) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_notify($1, $2)`, LogChannel, JournalNotice+string(id))
	return wrap(err, "wake the reader of journal %s", id)
}

// TrimJournalsAllTenants deletes journals that ended longer than age ago.
func TrimJournalsAllTenants(ctx context.Context, q sqlx.ExecerContext, age time.Duration) error {
	_, err := q.ExecContext(ctx, `DELETE FROM journals WHERE least(ended_at, wanted_until) < now() - make_interval(secs => $1)`, age.Seconds())
	return wrap(err, "trim journals")
}
