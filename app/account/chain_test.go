package account_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
)

// chainBed is an audit of its own, with the keys that it is linked with.
type chainBed struct {
	*account.Accounts
	t   *testing.T
	db  *testkit.Database
	ctx context.Context
}

var chainActor = loom.Actor{Tenant: "t-1", TenantName: "one", User: "ana", Role: loom.RoleAdmin, Via: "session", Address: "192.0.2.7"}

func newChain(t *testing.T, keys ...string) *chainBed {
	t.Helper()
	b := &chainBed{t: t, db: testkit.NewDatabase(t), ctx: t.Context()}
	if len(keys) == 0 {
		keys = []string{secret.GenerateKey()}
	}
	b.Accounts = b.with(keys...)
	return b
}

// with gives the use cases of another process, with other keys.
func (b *chainBed) with(keys ...string) *account.Accounts {
	b.t.Helper()
	ring, err := secret.ParseKeys(strings.Join(keys, ","))
	if err != nil {
		b.t.Fatal(err)
	}
	return account.New(b.db.DB, ring)
}

func (b *chainBed) insert(tx *sqlx.Tx, object string) {
	b.t.Helper()
	err := store.InsertAudit(b.ctx, tx, loom.AuditEntry{Actor: chainActor, Verb: "update", Kind: "service", Object: object,
		Before: map[string]any{"version": 1, "size": 1e21, "text": "a<b & ü"}, After: map[string]any{"version": 2, "password": "hidden"}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// write makes entries, each in a transaction of its own.
func (b *chainBed) write(n int) {
	b.t.Helper()
	for i := range n {
		err := store.Exec(b.ctx, b.db.DB, func(tx *sqlx.Tx) error {
			b.insert(tx, fmt.Sprintf("s%d", i))
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *chainBed) link() {
	b.t.Helper()
	// Other databases of the server hold transactions open too: numbers are shared.
	for range 400 {
		if err := b.LinkAudit(b.ctx); err != nil {
			b.t.Fatal(err)
		}
		if b.number(`SELECT count(*) FROM audit WHERE link IS NULL`) == 0 {
			return
		}
		b.exec(`SELECT pg_sleep(0.05)`)
	}
	b.t.Fatal("entries stay unlinked")
}

func (b *chainBed) exec(query string, args ...any) {
	b.t.Helper()
	if _, err := b.db.ExecContext(b.ctx, query, args...); err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
}

func (b *chainBed) number(query string, args ...any) int64 {
	b.t.Helper()
	var n int64
	if err := b.db.GetContext(b.ctx, &n, query, args...); err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (b *chainBed) verify(expect account.AuditMark) account.AuditReport {
	b.t.Helper()
	r, err := b.VerifyAudit(b.ctx, expect)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *chainBed) sound() account.AuditReport {
	b.t.Helper()
	r := b.verify(account.AuditMark{})
	if r.Broken != "" {
		b.t.Fatalf("the chain is broken: %s", r.Broken)
	}
	return r
}

var noMark account.AuditMark

func TestChainNamesTheFirstEntryThatIsNotAsItWas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tamper []string
		says   string
	}{
		"nothing":          {nil, ""},
		"object changed":   {[]string{`UPDATE audit SET object = 'other' WHERE link = 4`}, "entry 4 "},
		"after changed":    {[]string{`UPDATE audit SET after = after || '{"version": 3}' WHERE link = 4`}, "number 4 of the chain, was changed"},
		"before removed":   {[]string{`UPDATE audit SET before = NULL WHERE link = 4`}, "number 4 of the chain, was changed"},
		"time changed":     {[]string{`UPDATE audit SET created_at = created_at - interval '1 second' WHERE link = 4`}, "number 4 of the chain, was changed"},
		"moved to another": {[]string{`UPDATE audit SET tenant_id = 'x' WHERE link = 4`}, "number 4 of the chain, was changed"},
		"mac forged":       {[]string{`UPDATE audit SET mac = sha256('x') WHERE link = 4`}, "number 4 of the chain, was changed"},
		"one removed":      {[]string{`DELETE FROM audit WHERE link = 4`}, "number 4 of the chain was removed, before entry 5"},
		"three removed":    {[]string{`DELETE FROM audit WHERE link BETWEEN 3 AND 5`}, "numbers 3 to 5 of the chain were removed"},
		"first removed":    {[]string{`DELETE FROM audit WHERE link = 1`}, "number 1 of the chain was removed"},
		"unlinked": {[]string{`UPDATE audit SET link = NULL, mac = NULL, key_id = NULL WHERE link = 4`},
			"number 4 of the chain was removed"},
		"swapped contents": {[]string{`UPDATE audit a SET object = b.object FROM audit b WHERE a.link IN (3, 6) AND b.link = 9 - a.link`}, "entry 3 "},
		"swapped places": {[]string{`UPDATE audit SET link = -link WHERE link IN (3, 6)`,
			`UPDATE audit SET link = 9 + link WHERE link < 0`}, "number 3 of the chain, was changed or put in place of another"},
		"put in, linked": {[]string{`UPDATE audit SET link = link + 100 WHERE link >= 4`, `UPDATE audit SET link = link - 99 WHERE link >= 100`,
			`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result, link, mac, key_id) SELECT tenant_id, actor, via, verb, kind, 'new', result, 4, mac, key_id FROM audit WHERE link = 3`},
			"number 4 of the chain, was changed or put in"},
		"put in, unlinked": {[]string{`INSERT INTO audit (id, tenant_id, actor, via, verb, kind, object, result) OVERRIDING SYSTEM VALUE VALUES (0, 't-1', 'eve', 'session', 'create', 'service', 'new', 'ok')`},
			"eve create service new) was put in"},
		"tail cut": {[]string{`DELETE FROM audit WHERE link > 6`}, "the end was cut off: the chain ends with number 6, but had come to 8"},
		"prefix cut, start moved": {[]string{`UPDATE audit_chain SET start_link = 3, start_mac = (SELECT mac FROM audit WHERE link = 3), start_key_id = (SELECT key_id FROM audit WHERE link = 3), start_proof = sha256('x')`,
			`DELETE FROM audit WHERE link <= 3`}, "the start of the chain, behind number 3, was not set by Loom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newChain(t)
			b.write(8)
			b.link()
			for _, statement := range c.tamper {
				b.exec(statement)
			}
			r := b.verify(noMark)
			if (c.says == "") != (r.Broken == "") || !strings.Contains(r.Broken, c.says) {
				t.Errorf("found %q, want %q", r.Broken, c.says)
			}
			if c.says == "" && (r.Entries != 8 || r.Newest.Number != 8 || r.Waiting != 0) {
				t.Errorf("report %+v", r)
			}
		})
	}
}

// TestPutInBeforeTheLinkerComes: an entry that appears among linked ones is linked
// like any other, and stays known for what it is.
func TestPutInBeforeTheLinkerComes(t *testing.T) {
	t.Parallel()
	b := newChain(t)
	b.write(3)
	b.link()
	b.exec(`INSERT INTO audit (id, tenant_id, actor, via, verb, kind, object, result) OVERRIDING SYSTEM VALUE VALUES (0, 't-1', 'eve', 'session', 'create', 'service', 'new', 'ok')`)
	b.write(1)
	b.link()
	if r := b.verify(noMark); !strings.Contains(r.Broken, "entry 0 ") || !strings.Contains(r.Broken, "was put in later") {
		t.Errorf("found %q", r.Broken)
	}
}

// TestCutTailShowsByAMark: who also resets the record of the newest entry is
// found out by a mark that was noted elsewhere.
func TestCutTailShowsByAMark(t *testing.T) {
	t.Parallel()
	b := newChain(t)
	b.write(5)
	b.link()
	mark, err := b.NewestAudit(b.ctx)
	if err != nil || mark.Number != 5 {
		t.Fatalf("newest %v, %v", mark, err)
	}
	parsed, err := account.ParseAuditMark(mark.String())
	if err != nil || parsed.String() != mark.String() {
		t.Fatalf("%v, %v", parsed, err)
	}
	b.write(1)
	b.link()
	if r := b.verify(mark); r.Broken != "" {
		t.Errorf("a mark in the middle: %s", r.Broken)
	}
	b.exec(`DELETE FROM audit WHERE link > 3`)
	b.exec(`UPDATE audit_chain SET newest_link = 3, newest_mac = (SELECT mac FROM audit WHERE link = 3)`)
	if r := b.sound(); r.Newest.Number != 3 {
		t.Errorf("%+v", r)
	}
	if r := b.verify(mark); !strings.Contains(r.Broken, "ends with number 3, but number 5 is expected") {
		t.Errorf("cut off: %q", r.Broken)
	}
	b.write(4)
	b.link()
	if r := b.verify(mark); !strings.Contains(r.Broken, "number 5 has another mac than expected") {
		t.Errorf("grown again: %q", r.Broken)
	}
	for _, text := range []string{"", "5", "5:zz", "x:00", "0:" + strings.Repeat("00", 32), "5:00"} {
		if _, err := account.ParseAuditMark(text); err == nil {
			t.Errorf("%q is taken for a mark", text)
		}
	}
}

// TestLateCommitter: an entry whose transaction is open holds back those with
// higher ids; none is passed over and none comes behind.
func TestLateCommitter(t *testing.T) {
	t.Parallel()
	b := newChain(t)
	b.write(2)
	b.link()
	late, err := b.db.BeginTxx(b.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.insert(late, "late") // id 3, not committed
	b.write(3)             // ids 4 to 6, committed
	for range 5 {
		if err := b.LinkAudit(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.number(`SELECT count(*) FROM audit WHERE link IS NOT NULL`); n != 2 {
		t.Errorf("%d entries are linked while one of before is open", n)
	}
	if r := b.sound(); r.Entries != 2 || r.Waiting != 3 {
		t.Errorf("an unlinked tail is no damage: %+v", r)
	}
	// A transaction that began earlier but takes its id later is fine as well.
	early, err := b.db.BeginTxx(b.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := early.ExecContext(b.ctx, `SELECT pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	b.write(1)
	b.insert(early, "early")
	if err := early.Commit(); err != nil {
		t.Fatal(err)
	}
	b.link()
	if n := b.number(`SELECT count(*) FROM (SELECT id, lag(id) OVER (ORDER BY link) AS before FROM audit) x WHERE before > id`); n != 0 {
		t.Errorf("%d entries are linked behind a higher id", n)
	}
	if r := b.sound(); r.Entries != 8 || r.Newest.Number != 8 {
		t.Errorf("%+v", r)
	}
}

// TestManyWritersAndLinkers: with entries from all sides, some rolled back, and
// several linkers at once, the chain has every entry once, in order of id.
func TestManyWritersAndLinkers(t *testing.T) {
	t.Parallel()
	b := newChain(t)
	b.db.SetMaxOpenConns(12)
	ctx, stop := context.WithCancel(b.ctx)
	var linkers, writers sync.WaitGroup
	for range 3 {
		linkers.Go(func() {
			for ctx.Err() == nil {
				if err := b.LinkAudit(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for w := range 6 {
		writers.Go(func() {
			for i := range 60 {
				tx, err := b.db.BeginTxx(b.ctx, nil)
				if err != nil {
					t.Error(err)
					return
				}
				for range 1 + i%3 {
					err = store.InsertAudit(b.ctx, tx, loom.AuditEntry{Actor: chainActor, Verb: "update", Kind: "service", Object: fmt.Sprint(w, i)})
					if err != nil {
						t.Error(err)
					}
				}
				if i%5 == 4 {
					err = tx.Rollback()
				} else {
					err = tx.Commit()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	stop()
	linkers.Wait()
	b.link()
	if r := b.sound(); r.Entries != b.number(`SELECT count(*) FROM audit`) || r.Entries == 0 {
		t.Errorf("%+v", r)
	}
}

func TestChainGoesOnWithAnotherKey(t *testing.T) {
	t.Parallel()
	old, newer := secret.GenerateKey(), secret.GenerateKey()
	b := newChain(t, old)
	b.write(3)
	b.link()
	first := b.Accounts
	b.Accounts = b.with(newer, old)
	b.write(3)
	b.link()
	if r := b.sound(); r.Entries != 6 || b.number(`SELECT count(DISTINCT key_id) FROM audit`) != 2 {
		t.Errorf("%+v", r)
	}
	if _, err := first.VerifyAudit(b.ctx, noMark); err == nil || !strings.Contains(err.Error(), "entry 4 ") || !strings.Contains(err.Error(), "not among the sealing keys") {
		t.Errorf("without the newer key: %v", err)
	}
	b.exec(`UPDATE audit SET object = 'x' WHERE link = 2`)
	if r := b.verify(noMark); !strings.Contains(r.Broken, "entry 2 ") {
		t.Errorf("changed before the rotation: %q", r.Broken)
	}
}
