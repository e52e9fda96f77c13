package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// The number of the transaction is taken before the id of the entry: that is what
// the order of the chain rests on (audit_chain.go).
const insertAudit = `
WITH me AS MATERIALIZED (SELECT pg_current_xact_id() AS xid)
INSERT INTO audit (tenant_id, actor, via, address, request_id, verb, kind, object, result, before, after)
SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::jsonb, $11::jsonb
FROM me WHERE me.xid IS NOT NULL`

// InsertAudit records an act in the transaction of the change. Values of keys
// that look secret are masked in before and after, large parts are kept as their length
// and digest. An empty Result counts as "ok".
func InsertAudit(ctx context.Context, tx *sqlx.Tx, e loom.AuditEntry) error {
	return writeAudit(ctx, tx, insertAudit, e)
}

const insertRefusal = insertAudit + `
  AND NOT EXISTS (SELECT FROM audit a WHERE a.tenant_id = $1 AND a.actor = $2 AND a.verb = $6 AND a.kind = $7 AND a.result = $9
                  AND split_part(a.via, ' by ', 2) = split_part($3, ' by ', 2)
                  AND a.created_at > now() - make_interval(secs => $12))`

// InsertRefusal records an act that was not done, unless one of the same verb and
// kind by the same user, and by the same one who acts as him, is on record since
// less than every: who tries again and again must not fill the audit.
func InsertRefusal(ctx context.Context, tx *sqlx.Tx, e loom.AuditEntry, every time.Duration) error {
	return writeAudit(ctx, tx, insertRefusal, e, every.Seconds())
}

func writeAudit(ctx context.Context, tx *sqlx.Tx, query string, e loom.AuditEntry, more ...any) error {
	before, err := auditBody(e.Before, keptWhole(e))
	if err != nil {
		return err
	}
	after, err := auditBody(e.After, false)
	if err != nil {
		return err
	}
	if e.Result == "" {
		e.Result = "ok"
	}
	args := append([]any{
		e.Actor.Tenant, e.Actor.User, e.Actor.Via, e.Actor.Address, e.Actor.RequestID, e.Verb, e.Kind, loom.Recorded(e.Object), e.Result, before, after,
	}, more...)
	_, err = tx.ExecContext(ctx, query, args...)
	return wrap(err, "record %s of %s %s", e.Verb, e.Kind, loom.Recorded(e.Object))
}

// auditBody gives the masked JSON of a value, nil for nil; without its largest parts where
// it is long and not to be kept whole.
func auditBody(value any, whole bool) (any, error) {
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
	if tree = loom.MaskSecrets(tree); whole {
		raw, err = json.Marshal(tree)
	} else {
		raw, err = cutBody(tree)
	}
	return string(raw), err
}

const auditColumns = `id, tenant_id, actor, via, address, request_id, verb, kind, object, result, before, after, created_at, link, mac, key_id`

type auditRow struct {
	ID        int64          `db:"id"`
	TenantID  string         `db:"tenant_id"`
	Actor     string         `db:"actor"`
	Via       string         `db:"via"`
	Address   string         `db:"address"`
	RequestID string         `db:"request_id"`
	Verb      string         `db:"verb"`
	Kind      string         `db:"kind"`
	Object    string         `db:"object"`
	Result    string         `db:"result"`
	Before    []byte         `db:"before"` // nil for NULL, which json.RawMessage cannot take
	After     []byte         `db:"after"`
	CreatedAt time.Time      `db:"created_at"`
	Link      sql.NullInt64  `db:"link"`
	Mac       []byte         `db:"mac"`
	KeyID     sql.NullString `db:"key_id"`
}

func (r *auditRow) entry() loom.AuditEntry {
	e := loom.AuditEntry{
		ID: r.ID,
		Actor: loom.Actor{
			Tenant: loom.TenantID(r.TenantID), User: loom.UserID(r.Actor), Via: r.Via, Address: r.Address, RequestID: r.RequestID,
		},
		Verb: r.Verb, Kind: r.Kind, Object: r.Object, Result: r.Result, Time: r.CreatedAt,
	}
	if r.Before != nil {
		e.Before = json.RawMessage(r.Before)
	}
	if r.After != nil {
		e.After = json.RawMessage(r.After)
	}
	return e
}

func (r *auditRow) chained() ChainedEntry {
	return ChainedEntry{AuditEntry: r.entry(), Link: r.Link.Int64, Mac: r.Mac, KeyID: r.KeyID.String}
}

// AuditFilter limits a list of the audit; empty parts mean any. Since is
// inclusive, Until is not.
type AuditFilter struct {
	Actors, Verbs, Kinds, Results []string
	Object                        string
	// From is an address, or what was acted through: session, or a token as entries name
	// it. Request is the id of a request.
	From, Request string
	Since, Until  time.Time
}

func (f *AuditFilter) where(b *binder) []string {
	var conditions []string
	for _, list := range []struct {
		column string
		values []string
	}{{"actor", f.Actors}, {"verb", f.Verbs}, {"kind", f.Kinds}, {"result", f.Results}} {
		switch len(list.values) {
		case 0:
		case 1: // an equality keeps the order of the index
			conditions = append(conditions, "a."+list.column+" = "+b.add(list.values[0]))
		default:
			conditions = append(conditions, "a."+list.column+" = ANY ("+b.add(pq.Array(list.values))+")")
		}
	}
	if f.Object != "" {
		conditions = append(conditions, "a.object = "+b.add(f.Object))
	}
	if f.From != "" {
		from := b.add(f.From)
		conditions = append(conditions, "(a.address = "+from+" OR a.via = "+from+" OR a.via = 'token:' || "+from+")")
	}
	if f.Request != "" {
		conditions = append(conditions, "a.request_id = "+b.add(f.Request))
	}
	if !f.Since.IsZero() {
		conditions = append(conditions, "a.created_at >= "+b.add(f.Since))
	}
	if !f.Until.IsZero() {
		conditions = append(conditions, "a.created_at < "+b.add(f.Until))
	}
	return conditions
}

// fingerprint ties cursors to the list and filter they were made with.
func (f *AuditFilter) fingerprint(list string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", list, fmt.Sprint(*f)))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// AuditList is a page of the audit with the cursors of its neighbours.
type AuditList struct {
	Items      []loom.AuditEntry
	Next, Prev string
}

// Audit reads a page of the entries of a tenant, the newest first. A page ends early where
// its entries are long. Invalid for a cursor of another list.
func Audit(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f AuditFilter, p loom.Page) (AuditList, error) {
	var b binder
	return auditPage(ctx, q, &b, "of "+string(tenant), []string{"a.tenant_id = " + b.add(tenant)}, f, p)
}

// AuditAllTenants is Audit over all tenants.
func AuditAllTenants(ctx context.Context, q sqlx.ExtContext, f AuditFilter, p loom.Page) (AuditList, error) {
	var b binder
	return auditPage(ctx, q, &b, "of all", nil, f, p)
}

// AuditDeletedAllTenants is Audit over the deleted tenants of a name.
func AuditDeletedAllTenants(ctx context.Context, q sqlx.ExtContext, name string, f AuditFilter, p loom.Page) (AuditList, error) {
	var b binder
	of := "a.tenant_id IN (SELECT id FROM tenants WHERE deleted_at IS NOT NULL AND name = " + b.add(name) + ")"
	return auditPage(ctx, q, &b, "of deleted "+name, []string{of}, f, p)
}

// AuditValues are what the newest entries of a list of the audit say, by which it can be limited.
type AuditValues struct {
	Actors, Verbs, Kinds []string
}

// auditNewest is how many entries are read for AuditValues: to read all of them takes minutes
// where there are millions.
const auditNewest = 5000

const auditValuesOf = `
WITH newest AS MATERIALIZED (SELECT a.actor, a.verb, a.kind FROM audit a WHERE %s ORDER BY a.id DESC LIMIT %d)
SELECT 'actor' AS what, actor AS value FROM newest UNION SELECT 'verb', verb FROM newest UNION SELECT 'kind', kind FROM newest ORDER BY what, value`

// AuditValuesOf reads the values of the newest entries of a tenant; with an actor, of his entries.
func AuditValuesOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, actor loom.UserID) (AuditValues, error) {
	if actor != "" {
		return auditValues(ctx, q, "a.tenant_id = $1 AND a.actor = $2", tenant, actor)
	}
	return auditValues(ctx, q, "a.tenant_id = $1", tenant)
}

// AuditValuesAllTenants is AuditValuesOf over all tenants.
func AuditValuesAllTenants(ctx context.Context, q sqlx.ExtContext) (AuditValues, error) {
	return auditValues(ctx, q, "true")
}

func auditValues(ctx context.Context, q sqlx.ExtContext, where string, args ...any) (AuditValues, error) {
	var rows []struct {
		What  string `db:"what"`
		Value string `db:"value"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, fmt.Sprintf(auditValuesOf, where, auditNewest), args...); err != nil {
		return AuditValues{}, wrap(err, "read what the audit log can be filtered by")
	}
	var values AuditValues
	into := map[string]*[]string{"actor": &values.Actors, "verb": &values.Verbs, "kind": &values.Kinds}
	for _, r := range rows {
		*into[r.What] = append(*into[r.What], r.Value)
	}
	return values, nil
}

const auditPageOf = `
SELECT a.*, coalesce(t.name, '') AS tenant_name FROM (
    SELECT ` + auditColumns + ` FROM audit a
    WHERE %s
    ORDER BY a.id %s LIMIT %s) AS a
LEFT JOIN tenants t ON t.id = a.tenant_id
ORDER BY a.id %s`

func auditPage(ctx context.Context, q sqlx.ExtContext, b *binder, list string, conditions []string, f AuditFilter, p loom.Page) (AuditList, error) {
	cursor, err := p.Check(2, "-id")
	if err != nil {
		return AuditList{}, err
	}
	back := p.Before != ""
	direction, comparison := "DESC", "<"
	if back {
		direction, comparison = "ASC", ">"
	}
	conditions = append(append(conditions, f.where(b)...), "true")
	if cursor != nil {
		id, err := strconv.ParseInt(cursor.Keys[0], 10, 64)
		if err != nil || cursor.Keys[1] != f.fingerprint(list) {
			field := "after"
			if back {
				field = "before"
			}
			return AuditList{}, loom.InvalidFields([]loom.FieldError{{Field: field,
				Message: "This cursor belongs to another list or filter; start from the first page."}})
		}
		conditions = append(conditions, "a.id "+comparison+" "+b.add(id))
	}
	limit := loom.MaxPageLimit
	if p.Limit > 0 {
		limit = p.Limit
	}
	query := fmt.Sprintf(auditPageOf, strings.Join(conditions, "\n      AND "), direction, b.add(limit+1), direction)
	type row struct {
		auditRow
		TenantName string `db:"tenant_name"`
	}
	rows, full, err := selectBytes(ctx, q, maxPageBytes, func(r *row) int { return len(r.Before) + len(r.After) }, query, b.values...)
	if err != nil {
		return AuditList{}, wrap(err, "list the audit")
	}
	var page AuditList
	p.Limit = limit
	rows, page.Next, page.Prev = loom.CutPage(p, rows, full, func(r row) []string { return []string{strconv.FormatInt(r.ID, 10), f.fingerprint(list)} })
	page.Items = make([]loom.AuditEntry, len(rows))
	for i := range rows {
		page.Items[i] = rows[i].entry()
		page.Items[i].Actor.TenantName = rows[i].TenantName
	}
	return page, nil
}

const (
	// maxAuditBody is how much the audit keeps of what a thing was, and of what it became,
	// in bytes of JSON.
	maxAuditBody = 16 << 10
	// maxAuditDepth is how deep the large part of a thing is looked for.
	maxAuditDepth = 8
	// leastAuditPart is kept as it is: what would stand in its place takes as much.
	leastAuditPart = 128
)

// cutBody gives a masked value with its largest parts replaced by their length and digest,
// so that it is no longer than maxAuditBody, and its JSON.
func cutBody(tree any) ([]byte, error) {
	text, err := json.Marshal(tree)
	if err != nil || len(text) <= maxAuditBody {
		return text, err
	}
	cut, _, err := cutPart(tree, text, maxAuditBody, maxAuditDepth)
	if err != nil {
		return nil, err
	}
	return json.Marshal(cut)
}

// cutPart gives what is kept of a part in at most that many bytes, with the length of its JSON.
func cutPart(part any, text []byte, most, depth int) (any, int, error) {
	if len(text) <= max(most, leastAuditPart) {
		return part, len(text), nil
	}
	members, ok := part.(map[string]any)
	if !ok || depth == 0 || most < leastAuditPart {
		return digest(text)
	}
	texts := make(map[string][]byte, len(members))
	for name, member := range members {
		var err error
		if texts[name], err = json.Marshal(member); err != nil {
			return nil, 0, err
		}
	}
	size, kept := len(text), maps.Clone(members)
	largest := slices.SortedFunc(maps.Keys(members), func(a, b string) int {
		return cmp.Or(len(texts[b])-len(texts[a]), cmp.Compare(a, b))
	})
	for _, name := range largest {
		was := len(texts[name])
		if size <= most || was <= leastAuditPart {
			break
		}
		member, is, err := cutPart(members[name], texts[name], most-(size-was), depth-1)
		if err != nil {
			return nil, 0, err
		}
		kept[name] = member
		size += is - was
	}
	if size > most {
		return digest(text)
	}
	return kept, size, nil
}

// digest tells one value from another without it.
func digest(text []byte) (any, int, error) {
	sum := sha256.Sum256(text)
	short := map[string]any{"bytes": len(text), "sha256": hex.EncodeToString(sum[:])}
	text, err := json.Marshal(short)
	return short, len(text), err
}

// keptWhole are what can be made again from the audit: catalog entries that were deleted.
func keptWhole(e loom.AuditEntry) bool {
	_, ok := e.Before.(loom.Entry)
	return ok && e.Verb == "delete"
}
