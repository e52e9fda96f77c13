package account_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/store"
)

// record writes an entry and gives what the audit has of it.
func (b *chainBed) record(e loom.AuditEntry) loom.AuditEntry {
	b.t.Helper()
	e.Actor, e.Kind, e.Object = chainActor, "service", "large"
	if err := store.Exec(b.ctx, b.db.DB, func(tx *sqlx.Tx) error { return store.InsertAudit(b.ctx, tx, e) }); err != nil {
		b.t.Fatal(err)
	}
	list, err := b.Audit(b.ctx, chainActor, account.AuditInput{Page: loom.Page{Limit: 1}})
	if err != nil || len(list.Items) != 1 {
		b.t.Fatalf("%d entries, %v", len(list.Items), err)
	}
	return list.Items[0]
}

func digestOf(v any) string {
	text, _ := json.Marshal(v) //nolint:errcheck // texts and numbers
	sum := sha256.Sum256(text)
	return fmt.Sprintf(`{"bytes": %d, "sha256": %q}`, len(text), hex.EncodeToString(sum[:]))
}

// TestAuditKeepsLittle: of what is large the audit keeps the length and the digest of the
// parts that make it so, and the rest as it is. A deleted entry can be brought back.
func TestAuditKeepsLittle(t *testing.T) {
	t.Parallel()
	b := newChain(t)
	large := strings.Repeat("x", 900_000)
	many := map[string]any{}
	for i := range 50_000 {
		many[fmt.Sprint(i)] = i
	}
	deep := any(large)
	for range 90 {
		deep = map[string]any{"a": deep}
	}
	for name, c := range map[string]struct {
		given any
		want  string
	}{
		"small":           {map[string]any{"a": strings.Repeat("x", 10_000)}, `{"a": "` + strings.Repeat("x", 10_000) + `"}`},
		"a large text":    {map[string]any{"name": "n", "config": map[string]any{"a": 1, "text": large}}, `{"name": "n", "config": {"a": 1, "text": ` + digestOf(large) + `}}`},
		"a secret":        {map[string]any{"name": "n", "password": large, "text": "t"}, `{"name": "n", "text": "t", "password": "[redacted]"}`},
		"only the larger": {map[string]any{"a": strings.Repeat("x", 9_000), "b": strings.Repeat("y", 9_001)}, `{"a": "` + strings.Repeat("x", 9_000) + `", "b": ` + digestOf(strings.Repeat("y", 9_001)) + `}`},
		"many values":     {map[string]any{"name": "n", "config": many}, `{"name": "n", "config": ` + digestOf(many) + `}`},
		"one large list":  {[]any{large}, digestOf([]any{large})},
	} {
		t.Run(name, func(t *testing.T) {
			e := b.record(loom.AuditEntry{Verb: "update", Before: c.given, After: c.given})
			for _, got := range []any{e.Before, e.After} {
				if text := string(got.(json.RawMessage)); text != c.want {
					t.Errorf("kept %.300s\nwant %.300s", text, c.want)
				}
			}
		})
	}
	if e := b.record(loom.AuditEntry{Verb: "update", After: map[string]any{"a": deep}}); len(e.After.(json.RawMessage)) > 1000 {
		t.Errorf("of what is deep it keeps %.300s", e.After)
	}
	entry := &loom.Service{Base: loom.Base{Name: "large", Description: large}}
	if e := b.record(loom.AuditEntry{Verb: "delete", Before: entry}); !strings.Contains(string(e.Before.(json.RawMessage)), large) {
		t.Error("a deleted entry cannot be made again")
	}
	if e := b.record(loom.AuditEntry{Verb: "update", Before: entry}); len(e.Before.(json.RawMessage)) > 2000 {
		t.Error("a changed one is kept whole")
	}
}

// TestPagesOfTheAuditEndByTheirLength: however many entries are asked for, and however
// large older releases made them, pages are short and lead to all.
func TestPagesOfTheAuditEndByTheirLength(t *testing.T) {
	t.Parallel()
	b := newChain(t)
	if _, err := b.db.Exec(`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result, before, after)
		SELECT $1, 'ana', 'session', 'update', 'service', n::text, 'ok', to_jsonb(repeat('x', 300000)), to_jsonb(repeat('y', 300000)) FROM generate_series(1, 9) n`, chainActor.Tenant); err != nil {
		t.Fatal(err)
	}
	walk := func(page loom.Page, turn func(account.AuditList, *loom.Page) bool) string {
		var pages []string
		for more := true; more; {
			list, err := b.Audit(b.ctx, chainActor, account.AuditInput{Page: page})
			if err != nil {
				t.Fatal(err)
			}
			var objects []string
			for _, e := range list.Items {
				objects = append(objects, e.Object)
			}
			pages = append(pages, strings.Join(objects, ""))
			more = turn(list, &page)
		}
		return strings.Join(pages, " ")
	}
	var last string
	forwards := walk(loom.Page{Limit: 500}, func(l account.AuditList, p *loom.Page) bool {
		if p.After = l.Next; l.Next == "" {
			last = l.Prev
		}
		return l.Next != ""
	})
	if forwards != "98 76 54 32 1" {
		t.Errorf("pages are %s", forwards)
	}
	back := walk(loom.Page{Limit: 500, Before: last}, func(l account.AuditList, p *loom.Page) bool {
		p.Before = l.Prev
		return l.Prev != ""
	})
	if back != "32 54 76 98" {
		t.Errorf("pages back are %s", back)
	}
}
