package api

import (
	"slices"
	"strings"
	"testing"
)

// badInput is a request that must be refused: with exactly this status, and with
// errors (or missingFields) about exactly this field. "" means that no field is
// named; several fields are joined by "|".
type badInput struct {
	name, method, path, body string
	status                   int
	field                    string
}

// superPaths belong to the superadmin; all else is sent as the administrator of
// the tenant acme.
var superPaths = []string{"/v2/tenants", "/v2/plugins", "/v2/processes", "/v2/orphans", "/v2/leftovers", "/v2/sweeps", "/v2/provisioners", "/v2/queues", "/v2/riverjobs", "/v2/system"}

// runBadInputs sends each request to one world: that of newWorld with the cluster
// 1, which is active, and the cluster 2, which is pending, both of the tenant's
// administrator. What is refused must leave nothing behind.
func runBadInputs(t *testing.T, cases []badInput) {
	t.Helper()
	w := newWorld(t)
	w.finish(w.cluster(w.admin, "calm"))
	w.cluster(w.admin, "busy")
	// The administrator has a password: the superadmin's, which nobody knows here.
	w.exec(`UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE tenant_id = 'superadmin' AND id = 'admin') WHERE id = 'admin'`)
	before := w.rows()
	for _, c := range cases {
		token := w.admin
		if slices.ContainsFunc(superPaths, func(path string) bool { return strings.HasPrefix(c.path, path) }) {
			token = w.super
		}
		a := w.call(token, c.method, c.path, c.body)
		if a.status != c.status {
			t.Errorf("%s: %s %s: status %d, want %d: %s", c.name, c.method, c.path, a.status, c.status, a.body)
			continue
		}
		if media := a.header.Get("Content-Type"); media != "application/problem+json" {
			t.Errorf("%s: answered as %q", c.name, media)
			continue
		}
		p := a.problem()
		if strings.TrimSpace(p.Detail) == "" {
			t.Errorf("%s: no message in %s", c.name, a.body)
		}
		var named []string
		for _, e := range p.Errors {
			named = append(named, e.Field)
			if strings.TrimSpace(e.Message) == "" {
				t.Errorf("%s: no message about %q", c.name, e.Field)
			}
		}
		for _, set := range p.MissingFields {
			for field := range set {
				named = append(named, field)
			}
		}
		var want []string
		if c.field != "" {
			want = strings.Split(c.field, "|")
		}
		slices.Sort(named)
		slices.Sort(want)
		if named = slices.Compact(named); !slices.Equal(named, want) {
			t.Errorf("%s: %s %s names the fields %q, want %q: %s", c.name, c.method, c.path, named, want, a.body)
		}
		if now := w.rows(); now != before {
			t.Errorf("%s: %s %s was refused and changed something", c.name, c.method, c.path)
			before = now
		}
	}
}

// rows counts what a refused request must not add or take away.
func (w *world) rows() [7]int {
	w.t.Helper()
	var n [7]int
	w.must(w.db.QueryRowContext(w.t.Context(), `SELECT (SELECT count(*) FROM catalog_versions), (SELECT count(*) FROM secrets),
		(SELECT count(*) FROM clusters), (SELECT count(*) FROM operations), (SELECT count(*) FROM users), (SELECT count(*) FROM tokens),
		(SELECT count(*) FROM tenants)`).Scan(&n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6]))
	return n
}
