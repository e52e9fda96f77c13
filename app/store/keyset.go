package store

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// keyset is a list that is read page by page: what is selected,
// and what it can be sorted by. The id is always the second key.
type keyset struct {
	columns, from string
	// id is the column that is unique in the list, idKind its type: text or bigint.
	id, idKind string
	sorts      map[string]sortColumn
}

// sortColumn is a column, never NULL, with the text of its value in cursors and
// its type: text or timestamptz.
type sortColumn struct{ column, key, kind string }

// byCreation sorts by a time of the table with that alias.
func byCreation(alias string) sortColumn {
	return sortColumn{alias + ".created_at", `to_char(` + alias + `.created_at AT TIME ZONE 'UTC', '` + cursorTime + `')`, "timestamptz"}
}

// pageKeys is embedded in rows of a keyset.
type pageKeys struct {
	PageKey string `db:"page_key"`
	PageID  string `db:"page_id"`
}

func (k pageKeys) keys() []string { return []string{k.PageKey, k.PageID} }

// readKeyset gives the rows of a page in the list's own order, and cursors of its
// neighbours, "" at the ends. filter is what the conditions were made from: a
// cursor belongs to it. The first of sorts is the default. Invalid for an unknown
// sort and for a cursor of another list.
func readKeyset[R interface{ keys() []string }](ctx context.Context, q sqlx.ExtContext, k keyset, conditions []string, b *binder, filter any, p loom.Page, sorts ...string) (rows []R, next, prev string, err error) {
	cursor, err := p.Check(3, sorts...)
	if err != nil {
		return nil, "", "", err
	}
	field, descending := strings.CutPrefix(p.Sort, "-")
	sort := k.sorts[field]
	// A page before a cursor is the page after it in the opposite order, turned round.
	back := p.Before != ""
	direction, comparison := "ASC", ">"
	if descending != back {
		direction, comparison = "DESC", "<"
	}
	print := fingerprintOf(filter)
	if cursor != nil {
		key, id, ok := k.place(cursor, sort.kind, print)
		if !ok {
			name := "after"
			if back {
				name = "before"
			}
			return nil, "", "", loom.InvalidFields([]loom.FieldError{{Field: name,
				Message: "This cursor belongs to another list, order or filter; start from the first page."}})
		}
		conditions = append(conditions, fmt.Sprintf("(%s, %s) %s (%s::%s, %s::%s)", sort.column, k.id, comparison, b.add(key), sort.kind, b.add(id), k.idKind))
	}
	limit := ""
	if p.Limit > 0 {
		limit = " LIMIT " + b.add(p.Limit+1)
	}
	order := fmt.Sprintf(" ORDER BY %s %s, %s %s", sort.column, direction, k.id, direction)
	query := fmt.Sprintf("SELECT %s, %s AS page_key, (%s)::text AS page_id FROM %s WHERE %s%s%s", k.columns, sort.key, k.id, k.from, strings.Join(conditions, " AND "), order, limit)
	if err := sqlx.SelectContext(ctx, q, &rows, query, b.values...); err != nil {
		return nil, "", "", wrap(err, "read a page")
	}
	rows, next, prev = loom.CutPage(p, rows, false, func(r R) []string { return append(r.keys(), print) })
	return rows, next, prev, nil
}

// place gives the sort key and the id a cursor stands at; whoever made it may
// have tampered with it.
func (k keyset) place(c *loom.Cursor, kind, print string) (key, id any, ok bool) {
	for _, text := range c.Keys {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return nil, nil, false
		}
	}
	key, id, ok = c.Keys[0], c.Keys[1], c.Keys[2] == print
	if kind == "timestamptz" {
		at, err := time.Parse(time.RFC3339Nano, c.Keys[0])
		key, ok = at, ok && err == nil && at.Year() >= 1 // the database has no year 0
	}
	if k.idKind == "bigint" {
		n, err := strconv.ParseInt(c.Keys[1], 10, 64)
		id, ok = n, ok && err == nil
	}
	return key, id, ok
}

// fingerprintOf ties cursors to the filter they were made with.
func fingerprintOf(filter any) string {
	data, err := json.Marshal(filter)
	if err != nil {
		panic(fmt.Sprintf("store: a filter is not JSON: %v", err)) // texts, booleans and lists of them only
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// allWords gives a condition for each word of a search: it is in one of the
// columns, in either case. Invalid for too many words.
func allWords(b *binder, q string, columns ...string) ([]string, error) {
	words, err := loom.SearchWords(q)
	var conditions []string
	for _, word := range words {
		w := b.add(word)
		var any []string
		for _, column := range columns {
			any = append(any, "strpos(lower("+column+"), "+w+") > 0")
		}
		conditions = append(conditions, "("+strings.Join(any, " OR ")+")")
	}
	return conditions, err
}
