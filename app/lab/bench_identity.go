package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

const (
	// benchShared is how many clusters are shared with somebody who owns none.
	benchShared = 100
	// benchRules and benchIdentities are what a preview of rules goes through.
	benchRules, benchIdentities = 200, 10_000
)

// benchBindings are how many bindings users have whose requests are compared.
var benchBindings = []int{0, 20, 1000}

// benchIdentity measures what bindings cost each request, what shared clusters cost a list, and how
// long a preview of rules takes.
func (e *environment) benchIdentity(ctx context.Context, scale benchScale) (err error) {
	b, err := e.startBench(ctx, "LOOM_MOCK=true")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	if _, err := b.System.Load(ctx, b.actor, wiring.Sub(benchCatalog, "benchdata"), nil); err != nil {
		return err
	}
	id, err := b.create(ctx, "mock", 3)
	if err != nil {
		return err
	}
	if err := b.until(ctx, id, 1); err != nil {
		return err
	}
	if err := b.fillClusters(ctx, scale.clusters); err != nil {
		return err
	}
	if err := b.measureBindings(ctx, scale.while); err != nil {
		return err
	}
	if err := b.measureRules(ctx); err != nil {
		return err
	}
	return b.measureRemoved(ctx, scale.removed)
}

// streamsEach is how many streams of events each user has open who loses the last role.
const streamsEach = 5

// measureRemoved takes people out of the group that lets them in, and measures until all of their
// streams have ended and a program with their token is refused.
func (b *benchInstance) measureRemoved(ctx context.Context, people int) error {
	var group int64
	if err := b.System.DB.GetContext(ctx, &group, `WITH team AS (INSERT INTO groups (tenant_id, name) VALUES ($1, 'Leavers') RETURNING tenant_id, id)
		INSERT INTO role_bindings (tenant_id, group_id, role, created_by) SELECT tenant_id, id, 'reader', 'admin' FROM team RETURNING group_id`, b.actor.Tenant); err != nil {
		return err
	}
	const atOnce = 10
	var took []time.Duration
	for first := 0; first < people; first += atOnce {
		found := make([]time.Duration, min(atOnce, people-first))
		work, ctx := errgroup.WithContext(ctx)
		for i := range found {
			work.Go(func() (err error) {
				found[i], err = b.removed(ctx, group, loom.UserID(fmt.Sprintf("leaver-%d", first+i)), time.Duration(i)*400*time.Millisecond)
				return err
			})
		}
		if err := work.Wait(); err != nil {
			return err
		}
		took = append(took, found...)
	}
	slices.Sort(took)
	fmt.Fprintf(b.Out, "\n%d people lose their last role, with %d streams of events each and a program that polls: all out after p50 %.2f s, p99 %.2f s, at most %.2f s\n",
		people, streamsEach, percentile(took, 50).Seconds(), percentile(took, 99).Seconds(), took[len(took)-1].Seconds())
	return nil
}

// removed measures one of them. The streams are open for a while before.
func (b *benchInstance) removed(ctx context.Context, group int64, user loom.UserID, open time.Duration) (time.Duration, error) {
	if _, err := b.System.DB.ExecContext(ctx, `INSERT INTO users (tenant_id, id, role) VALUES ($1, $2, 'none')`, b.actor.Tenant, user); err != nil {
		return 0, err
	}
	if err := b.Accounts.AddMember(ctx, b.actor, group, user); err != nil {
		return 0, err
	}
	_, secret, err := b.Accounts.CreateTokenFor(ctx, wiring.CliActor(), b.actor.TenantName, user, account.NewToken{Name: "bench", Scopes: []loom.Scope{loom.ScopeRead}})
	if err != nil {
		return 0, err
	}
	get := func(path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+secret.Reveal())
		return streamClient.Do(r)
	}
	streams, ended := []*http.Response{}, sync.WaitGroup{}
	for range streamsEach {
		stream, err := get("/v2/events?topics=clusters")
		if err != nil {
			return 0, err
		}
		defer stream.Body.Close()
		if stream.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("a stream of %s: %s", user, stream.Status)
		}
		streams = append(streams, stream)
	}
	if err := settle(ctx, open); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := b.Accounts.RemoveMember(ctx, b.actor, group, user); err != nil {
		return 0, err
	}
	for _, stream := range streams {
		ended.Go(func() { io.Copy(io.Discard, stream.Body) }) //nolint:errcheck // its end counts
	}
	for {
		answer, err := get("/v2/clusters?limit=1")
		if err != nil {
			return 0, err
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusUnauthorized {
			break
		}
	}
	ended.Wait()
	return time.Since(began), ctx.Err()
}

// tokenOf makes a user with bindings on clusters, and a token.
func (b *benchInstance) tokenOf(ctx context.Context, user loom.UserID, bindings int) (string, error) {
	if _, err := b.System.DB.ExecContext(ctx, `INSERT INTO users (tenant_id, id, role) VALUES ($1, $2, 'user')`, b.actor.Tenant, user); err != nil {
		return "", err
	}
	if _, err := b.System.DB.ExecContext(ctx, `INSERT INTO role_bindings (tenant_id, user_id, role, cluster_id, created_by)
		SELECT tenant_id, $2, 'reader', id, 'admin' FROM clusters WHERE tenant_id = $1 ORDER BY id DESC LIMIT $3`, b.actor.Tenant, user, bindings); err != nil {
		return "", err
	}
	_, secret, err := b.Accounts.CreateTokenFor(ctx, wiring.CliActor(), b.actor.TenantName, user, account.NewToken{Name: "bench", Scopes: []loom.Scope{loom.ScopeRead}})
	return secret.Reveal(), err
}

// measureBindings compares requests of users by how many bindings they have, in turns.
func (b *benchInstance) measureBindings(ctx context.Context, while time.Duration) error {
	own := b.token
	defer func() { b.token = own }()
	tokens := map[string]string{}
	var err error
	for _, n := range append([]int{benchShared}, benchBindings...) {
		name := fmt.Sprintf("bindings-%d", n)
		if tokens[name], err = b.tokenOf(ctx, loom.UserID(name), n); err != nil {
			return err
		}
	}
	const inGroups = "in-500-groups"
	if tokens[inGroups], err = b.tokenOf(ctx, inGroups, 0); err != nil {
		return err
	}
	if _, err := b.System.DB.ExecContext(ctx, `WITH teams AS (INSERT INTO groups (tenant_id, name) SELECT $1, 'many ' || n FROM generate_series(1, 500) n RETURNING tenant_id, id),
		member AS (INSERT INTO group_members (tenant_id, group_id, user_id, added_by) SELECT tenant_id, id, $2, 'admin' FROM teams)
		INSERT INTO role_bindings (tenant_id, group_id, role, cluster_id, created_by)
		SELECT t.tenant_id, t.id, 'reader', c.id, 'admin' FROM (SELECT *, row_number() OVER () AS n FROM teams) t
		JOIN (SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM clusters WHERE tenant_id = $1) c ON c.n = 1 + t.n % 100`, b.actor.Tenant, inGroups); err != nil {
		return err
	}
	if _, err := b.System.DB.ExecContext(ctx, `UPDATE clusters SET owner_id = 'bindings-0' WHERE id IN (SELECT id FROM clusters WHERE tenant_id = $1 ORDER BY id LIMIT $2)`, b.actor.Tenant, benchShared); err != nil {
		return err
	}
	cases := []struct {
		title, path string
		users       []string
	}{
		{"settings with 0, 20, 1,000 bindings", "/v2/settings", []string{"bindings-0", "bindings-20", "bindings-1000", inGroups}},
		{"list 50 clusters: 100 own, 100 shared", "/v2/clusters?limit=50", []string{"bindings-0", "bindings-100", inGroups}},
	}
	fmt.Fprintf(b.Out, "\nIdentity: %d callers, %s each in turns\n\n  %-40s %-14s %8s %8s %8s\n", httpCallers, while, "", "user", "p50 ms", "p99 ms", "ratio")
	for _, c := range cases {
		var first time.Duration
		for _, user := range c.users {
			b.token = tokens[user]
			found, err := b.load(ctx, httpCase{c.title, http.MethodGet, func(int64) string { return c.path }, func(int64) string { return "" }}, while)
			if err != nil {
				return fmt.Errorf("%s as %s: %w", c.title, user, err)
			}
			if first == 0 {
				first = found.p50
			}
			fmt.Fprintf(b.Out, "  %-40s %-14s %8.2f %8.2f %8.2f\n", c.title, user, milliseconds(found.p50), milliseconds(found.p99), float64(found.p50)/float64(first))
		}
	}
	return nil
}

// measureRules times a preview of many rules over many identities.
func (b *benchInstance) measureRules(ctx context.Context) error {
	for _, statement := range []string{
		`INSERT INTO identity_providers (id, tenant_id, name, issuer, client_id, user_claim, subject_claim, max_age_days, enabled) VALUES ('bench', $1, 'Bench', 'https://id.example', 'loom', 'name', 'sub', 30, true)`,
		fmt.Sprintf(`INSERT INTO users (tenant_id, id, role) SELECT $1, 'person-' || n, 'none' FROM generate_series(1, %d) n`, benchIdentities),
		fmt.Sprintf(`INSERT INTO groups (tenant_id, name) SELECT $1, 'team ' || n FROM generate_series(1, %d) n`, benchRules),
		`INSERT INTO role_bindings (tenant_id, group_id, role, created_by) SELECT tenant_id, id, 'operator', 'admin' FROM groups WHERE tenant_id = $1`,
	} {
		if _, err := b.System.DB.ExecContext(ctx, statement, b.actor.Tenant); err != nil {
			return err
		}
	}
	if _, err := b.System.DB.ExecContext(ctx, `INSERT INTO identities (provider_id, subject, claims)
		SELECT 'bench', n, jsonb_build_object('name', 'person-' || n, 'groups', jsonb_build_array('g' || n % 200, 'g' || n % 7, 'all')) FROM generate_series(1, $1) n`, benchIdentities); err != nil {
		return err
	}
	if _, err := b.System.DB.ExecContext(ctx, `INSERT INTO identity_users (provider_id, subject, tenant_id, user_id) SELECT 'bench', n, $1, 'person-' || n FROM generate_series(1, $2) n`, b.actor.Tenant, benchIdentities); err != nil {
		return err
	}
	var groups []int64
	if err := b.System.DB.SelectContext(ctx, &groups, `SELECT id FROM groups WHERE tenant_id = $1 ORDER BY id`, b.actor.Tenant); err != nil {
		return err
	}
	rules := make([]loom.IdentityRule, benchRules)
	for i := range rules {
		rules[i] = loom.IdentityRule{Group: groups[i], Conditions: []loom.Condition{{Claim: "groups", Op: loom.ConditionIs, Value: fmt.Sprintf("g%d", i)}}}
		if i%10 == 0 {
			rules[i].Conditions[0] = loom.Condition{Claim: "groups", Op: loom.ConditionMatches, Value: fmt.Sprintf("g%d|h.*", i)}
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	preview, err := b.Accounts.PreviewIdentityRules(ctx, b.actor, "bench", rules)
	if err != nil {
		return err
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	fmt.Fprintf(b.Out, "\nPreview of %d rules over %d identities: %.2f s, %.0f MB allocated in all, %d of them get a group\n", benchRules, preview.Known, took.Seconds(), float64(after.TotalAlloc-before.TotalAlloc)/1e6, preview.Matched)
	return nil
}
