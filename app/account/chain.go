package account

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
)

// linkBatch is how many entries are linked, or removed, in one transaction.
const linkBatch = 500

// canonical is an entry as the chain sees it: the bytes that are authenticated.
// Order and names of the fields never change, or no old entry verifies any more.
type canonical struct {
	Number  int64           `json:"number"`
	ID      int64           `json:"id"`
	Micros  int64           `json:"time"`
	Tenant  string          `json:"tenant"`
	Actor   string          `json:"actor"`
	Via     string          `json:"via"`
	Address string          `json:"address"`
	Request string          `json:"requestId"`
	Verb    string          `json:"verb"`
	Kind    string          `json:"kind"`
	Object  string          `json:"object"`
	Result  string          `json:"result"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
}

// canonicalJSON gives the bytes of an entry: no blanks, keys of objects in order,
// numbers as they are stored.
func canonicalJSON(e store.ChainedEntry) ([]byte, error) {
	c := canonical{
		Number: e.Link, ID: e.ID, Micros: e.Time.UnixMicro(), Tenant: string(e.Actor.Tenant), Actor: string(e.Actor.User), Via: e.Actor.Via,
		Address: e.Actor.Address, Request: e.Actor.RequestID, Verb: e.Verb, Kind: e.Kind, Object: e.Object, Result: e.Result,
	}
	var err error
	if c.Before, err = sortedJSON(e.Before); err != nil {
		return nil, err
	}
	if c.After, err = sortedJSON(e.After); err != nil {
		return nil, err
	}
	return plainJSON(c)
}

func sortedJSON(value any) (json.RawMessage, error) {
	raw, ok := value.(json.RawMessage)
	if !ok {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read an entry of the audit: %w", err)
	}
	return plainJSON(tree)
}

func plainJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// macOf authenticates an entry and all before it.
func (a *Accounts) macOf(key secret.KeyID, before []byte, e store.ChainedEntry) ([]byte, error) {
	body, err := canonicalJSON(e)
	if err != nil {
		return nil, err
	}
	return a.ring.MAC(key, before, body)
}

// startProof authenticates that retention moved the start of the chain. Its first
// bytes cannot be a mac followed by an entry.
func (a *Accounts) startProof(key secret.KeyID, link int64, mac []byte) ([]byte, error) {
	return a.ring.MAC(key, fmt.Appendf(nil, "the audit starts behind %d ", link), mac)
}

// LinkAudit links the entries whose transactions are surely over, in order of id.
// It is a duty of schedulers, once a second; one at a time links, the others come
// back at once. An entry waits as long as a transaction runs that may bring one
// with a smaller id.
func (a *Accounts) LinkAudit(ctx context.Context) error {
	if some, err := store.UnlinkedAuditAllTenants(ctx, a.db); err != nil || !some {
		return err
	}
	for {
		// Noting and reaching are transactions of their own: the second one sees
		// whether the first one's moment is over, itself included.
		if err := a.chain(ctx, store.NoteAuditHorizonAllTenants); err != nil {
			return err
		}
		linked := 0
		err := a.chain(ctx, func(ctx context.Context, tx *sqlx.Tx) (err error) {
			linked, err = a.linkSome(ctx, tx)
			return err
		})
		if err != nil || linked < linkBatch {
			return err
		}
	}
}

// chain runs fn while nobody else changes the chain, or not at all.
func (a *Accounts) chain(ctx context.Context, fn func(ctx context.Context, tx *sqlx.Tx) error) error {
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if free, err := store.TryLockAuditChainAllTenants(ctx, tx); err != nil || !free {
			return err
		}
		return fn(ctx, tx)
	})
}

func (a *Accounts) linkSome(ctx context.Context, tx *sqlx.Tx) (int, error) {
	upTo, reached, err := store.AuditHorizonAllTenants(ctx, tx)
	if err != nil || !reached {
		return 0, err
	}
	entries, err := store.AuditToLinkAllTenants(ctx, tx, upTo, linkBatch)
	if err != nil {
		return 0, err
	}
	state, err := store.AuditChainAllTenants(ctx, tx)
	if err != nil {
		return 0, err
	}
	key := a.ring.First()
	link, mac := state.NewestLink, state.NewestMac
	for i := range entries {
		link++
		entries[i].Link, entries[i].KeyID = link, key.String()
		if mac, err = a.macOf(key, mac, entries[i]); err != nil {
			return 0, err
		}
		entries[i].Mac = mac
	}
	if err := store.LinkAuditAllTenants(ctx, tx, entries); err != nil {
		return 0, err
	}
	if len(entries) == linkBatch {
		return len(entries), nil
	}
	return len(entries), store.ForgetAuditHorizonAllTenants(ctx, tx)
}

// AuditMark is the number and mac of a linked entry. Noted elsewhere, it shows
// later whether the audit was cut off behind it.
type AuditMark struct {
	Number int64
	Mac    []byte
}

// String is "number:mac", the mac in hexadecimal digits.
func (m AuditMark) String() string { return fmt.Sprintf("%d:%s", m.Number, hex.EncodeToString(m.Mac)) }

// NewestAudit gives the mark of the newest linked entry, number 0 when there is
// none.
func (a *Accounts) NewestAudit(ctx context.Context) (AuditMark, error) {
	s, err := store.AuditChainAllTenants(ctx, a.db)
	return AuditMark{s.NewestLink, s.NewestMac}, err
}

// TrimAudit removes linked entries that are older than age, from the beginning of
// the chain up to the first younger one, and keeps the mac of the last of them as
// the new start. It says how many went. Age 0 keeps everything.
func (a *Accounts) TrimAudit(ctx context.Context, age time.Duration) (int64, error) {
	var gone int64
	for age > 0 {
		n, err := store.InTx(ctx, a.db, func(tx *sqlx.Tx) (int64, error) { return a.trimSome(ctx, tx, age) })
		gone += n
		if err != nil || n < linkBatch {
			return gone, err
		}
	}
	return gone, nil
}

func (a *Accounts) trimSome(ctx context.Context, tx *sqlx.Tx, age time.Duration) (int64, error) {
	if err := store.LockAuditChainAllTenants(ctx, tx); err != nil {
		return 0, err
	}
	state, err := store.AuditChainAllTenants(ctx, tx)
	if err != nil {
		return 0, err
	}
	last, some, err := store.ExpiredAuditAllTenants(ctx, tx, state.StartLink, age, linkBatch)
	if err != nil || !some {
		return 0, err
	}
	key := a.ring.First()
	start := store.ChainState{StartLink: last.Link, StartMac: last.Mac, StartKeyID: key.String()}
	if start.StartProof, err = a.startProof(key, start.StartLink, start.StartMac); err != nil {
		return 0, err
	}
	return store.TrimAuditAllTenants(ctx, tx, start)
}

// equalMacs compares in constant time, as one does with macs.
func equalMacs(x, y []byte) bool { return hmac.Equal(x, y) }

// named by people: entries have numbers, who they are of, and what they say.
func describe(e loom.AuditEntry) string {
	return fmt.Sprintf("entry %d (%s: %s %s %s %s)", e.ID, e.Time.UTC().Format(time.RFC3339), e.Actor.User, e.Verb, e.Kind, e.Object)
}
