package wire

import (
	"encoding/json"
	"strconv"

	"loom/app/loom"
)

// AuditEntry is the record of an act. Tenant is there in lists
// that a superadmin asked for across tenants.
type AuditEntry struct {
	ID        string          `json:"id"`
	Time      int64           `json:"time" description:"Milliseconds since 1970."`
	Tenant    string          `json:"tenant,omitempty" description:"Only in lists across tenants."`
	Actor     string          `json:"actor"`
	Via       string          `json:"via" description:"session, token:<name>, headers, cli or system."`
	Address   string          `json:"address"`
	Verb      string          `json:"verb"`
	Kind      string          `json:"kind"`
	Object    string          `json:"object"`
	Result    string          `json:"result" enum:"ok,refused,failed"`
	RequestID string          `json:"requestId"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
}

// NewAuditEntry gives the wire form, without the tenant. Secrets were masked when
// the entry was written.
func NewAuditEntry(e loom.AuditEntry) AuditEntry {
	before, _ := e.Before.(json.RawMessage)
	after, _ := e.After.(json.RawMessage)
	return AuditEntry{
		ID: strconv.FormatInt(e.ID, 10), Time: Millis(e.Time), Actor: string(e.Actor.User), Via: e.Actor.Via, Address: e.Actor.Address,
		Verb: e.Verb, Kind: e.Kind, Object: e.Object, Result: e.Result, RequestID: e.Actor.RequestID, Before: before, After: after,
	}
}
