package account_test

import (
	"strings"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/secret"
)

func TestRetentionKeepsTheChain(t *testing.T) {
	t.Parallel()
	old, newer := secret.GenerateKey(), secret.GenerateKey()
	b := newChain(t, old)
	// Times are no part of a chain that is not made yet.
	b.write(1200)
	b.exec(`UPDATE audit SET created_at = now() - interval '40 days' WHERE id <= 1100 AND id <> 1050`)
	b.link()
	b.exec(`CREATE TABLE gone AS SELECT link, mac FROM audit WHERE link = 1000`)
	mark, err := b.NewestAudit(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := b.TrimAudit(b.ctx, 0); n != 0 || err != nil {
		t.Fatalf("kept for ever: %d, %v", n, err)
	}
	// Up to the first younger entry, though older ones follow it.
	if n, err := b.TrimAudit(b.ctx, 30*24*time.Hour); n != 1049 || err != nil {
		t.Fatalf("removed %d, %v", n, err)
	}
	if r := b.verify(mark); r.Broken != "" || r.First != 1050 || r.Entries != 151 {
		t.Errorf("%+v", r)
	}
	if n, err := b.TrimAudit(b.ctx, 30*24*time.Hour); n != 0 || err != nil {
		t.Errorf("removed %d more, %v", n, err)
	}
	b.Accounts = b.with(newer, old)
	b.write(2)
	b.link()
	if r := b.sound(); r.Entries != 153 || r.Newest.Number != 1202 {
		t.Errorf("%+v", r)
	}
	var before account.AuditMark
	if err := b.db.QueryRowContext(b.ctx, `SELECT link, mac FROM gone`).Scan(&before.Number, &before.Mac); err != nil {
		t.Fatal(err)
	}
	if _, err := b.VerifyAudit(b.ctx, before); err == nil || !strings.Contains(err.Error(), "removed by retention") {
		t.Errorf("a mark of what is gone: %v", err)
	}
	b.exec(`DELETE FROM audit WHERE link = 1050`)
	if r := b.verify(noMark); !strings.Contains(r.Broken, "number 1050 of the chain was removed") {
		t.Errorf("%q", r.Broken)
	}
	// All of it may go.
	b2 := newChain(t)
	b2.write(3)
	b2.link()
	b2.exec(`UPDATE audit SET created_at = now()`)
	if n, err := b2.TrimAudit(b2.ctx, time.Nanosecond); n != 3 || err != nil {
		t.Fatalf("removed %d, %v", n, err)
	}
	b2.write(1)
	b2.link()
	if r := b2.sound(); r.Entries != 1 || r.First != 4 {
		t.Errorf("%+v", r)
	}
}

// TestHorizonOfAnotherServer: a restored backup may bring transaction numbers
// that are far ahead of those here.
func TestHorizonOfAnotherServer(t *testing.T) {
	t.Parallel()
	b := newChain(t)
	b.write(2)
	b.exec(`UPDATE audit_chain SET horizon_id = 1, horizon_xid = '9000000000000'::xid8`)
	b.link()
	if r := b.sound(); r.Entries != 2 {
		t.Errorf("%+v", r)
	}
}
