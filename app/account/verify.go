package account

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
)

// ParseAuditMark reads what AuditMark.String gives. Invalid.
func ParseAuditMark(text string) (AuditMark, error) {
	number, mac, ok := strings.Cut(strings.TrimSpace(text), ":")
	n, err := strconv.ParseInt(number, 10, 64)
	raw, macErr := hex.DecodeString(mac)
	if !ok || err != nil || macErr != nil || n < 1 || len(raw) != 32 {
		return AuditMark{}, loom.InvalidFields([]loom.FieldError{{Field: "expect",
			Message: "A mark is a number and a mac, as in “1234:9f86d0…”; the log has one each hour (“newest entry of the audit chain”)."}})
	}
	return AuditMark{n, raw}, nil
}

// AuditReport is what a verification of the chain found.
type AuditReport struct {
	// Broken says what is wrong with the first entry that is not as it was
	// written; "" when nothing is.
	Broken string
	// First and Newest are the ends of the chain, Entries how many were verified.
	First   int64
	Newest  AuditMark
	Entries int64
	// Waiting are entries that are not linked yet.
	Waiting int64
}

// VerifyAudit recomputes the chain of the audit and names the first entry that
// was changed, removed or put in. Expect, if its number is not 0, must be in it.
// Errors: trouble with the database, and Unavailable for a key that this process
// does not have.
func (a *Accounts) VerifyAudit(ctx context.Context, expect AuditMark) (AuditReport, error) {
	// One snapshot for all of it: entries are linked meanwhile.
	tx, err := a.db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return AuditReport{}, fmt.Errorf("begin a transaction: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // it only reads
	state, err := store.AuditChainAllTenants(ctx, tx)
	if err != nil {
		return AuditReport{}, err
	}
	w := chainWalk{accounts: a, state: state, expect: expect, link: state.StartLink, mac: state.StartMac}
	w.report.First = state.StartLink + 1
	if err := w.start(); err != nil {
		return w.end(err)
	}
	if err := store.WalkAuditAllTenants(ctx, tx, true, w.next); err != nil {
		return w.end(err)
	}
	if err := w.newest(); err != nil {
		return w.end(err)
	}
	return w.end(store.WalkAuditAllTenants(ctx, tx, false, w.loose))
}

// chainWalk goes along the chain.
type chainWalk struct {
	accounts *Accounts
	state    store.ChainState
	expect   AuditMark
	report   AuditReport
	link     int64 // of the entry before
	mac      []byte
	highest  int64 // id so far
}

// broken ends a walk with what it found.
type broken struct{ what string }

func (b *broken) Error() string { return b.what }

func breaks(format string, args ...any) error { return &broken{fmt.Sprintf(format, args...)} }

func (w *chainWalk) end(err error) (AuditReport, error) {
	w.report.Newest = AuditMark{w.link, w.mac}
	var b *broken
	if errors.As(err, &b) {
		w.report.Broken = b.what
		return w.report, nil
	}
	return w.report, err
}

func (w *chainWalk) key(id, of string) (secret.KeyID, error) {
	key, ok := secret.ParseKeyID(id)
	if ok {
		_, err := w.accounts.ring.MAC(key)
		ok = err == nil
	}
	if !ok {
		return key, loom.NewError(loom.Unavailable,
			"The key %q, which %s was linked with, is not among the sealing keys; put it back behind the others to verify the audit.", id, of)
	}
	return key, nil
}

// start checks that only retention moved the beginning.
func (w *chainWalk) start() error {
	s := w.state
	if s.StartLink == 0 && len(s.StartMac) == 0 {
		return w.expected(0, nil)
	}
	key, err := w.key(s.StartKeyID, "the start of the chain")
	if err != nil {
		return err
	}
	proof, err := w.accounts.startProof(key, s.StartLink, s.StartMac)
	if err != nil {
		return err
	}
	if !equalMacs(proof, s.StartProof) {
		return breaks("the start of the chain, behind number %d, was not set by Loom: entries before it were removed", s.StartLink)
	}
	if w.expect.Number > 0 && w.expect.Number < s.StartLink {
		return loom.NewError(loom.Invalid, "Number %d was removed by retention, which left what follows %d; expect a newer mark.", w.expect.Number, s.StartLink)
	}
	return w.expected(s.StartLink, s.StartMac)
}

func (w *chainWalk) expected(link int64, mac []byte) error {
	if w.expect.Number != 0 && link == w.expect.Number && !equalMacs(mac, w.expect.Mac) {
		return breaks("number %d has another mac than expected: the chain was rewritten", link)
	}
	return nil
}

func (w *chainWalk) next(e store.ChainedEntry) error {
	switch {
	case e.Link <= w.link:
		return breaks("%s was inserted: number %d is in the chain twice", describe(e.AuditEntry), e.Link)
	case e.Link == w.link+2:
		return breaks("number %d of the chain was removed, before %s", w.link+1, describe(e.AuditEntry))
	case e.Link > w.link+1:
		return breaks("numbers %d to %d of the chain were removed, before %s", w.link+1, e.Link-1, describe(e.AuditEntry))
	}
	key, err := w.key(e.KeyID, describe(e.AuditEntry))
	if err != nil {
		return err
	}
	mac, err := w.accounts.macOf(key, w.mac, e)
	if err != nil {
		return err
	}
	if !equalMacs(mac, e.Mac) {
		return breaks("%s, number %d of the chain, was changed or put in place of another", describe(e.AuditEntry), e.Link)
	}
	if e.ID < w.highest {
		return breaks("%s, number %d of the chain, was put in later: entry %d had been linked before it", describe(e.AuditEntry), e.Link, w.highest)
	}
	w.link, w.mac, w.highest = e.Link, mac, e.ID
	w.report.Entries++
	return w.expected(e.Link, mac)
}

// newest checks that nothing is missing at the end.
func (w *chainWalk) newest() error {
	switch {
	case w.state.NewestLink > w.link:
		return breaks("the end was cut off: the chain ends with number %d, but had come to %d", w.link, w.state.NewestLink)
	case w.state.NewestLink < w.link || !equalMacs(w.state.NewestMac, w.mac):
		return breaks("the record of the newest entry was changed: it says number %d, the chain ends with %d", w.state.NewestLink, w.link)
	case w.expect.Number > w.link:
		return breaks("the end was cut off: the chain ends with number %d, but number %d is expected", w.link, w.expect.Number)
	}
	return nil
}

// loose looks at entries that are not linked: those behind the chain wait for it.
func (w *chainWalk) loose(e store.ChainedEntry) error {
	if e.ID < w.highest {
		return breaks("%s was put in: entry %d was linked without it", describe(e.AuditEntry), w.highest)
	}
	w.report.Waiting++
	return nil
}
