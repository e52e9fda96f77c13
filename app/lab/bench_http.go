package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"loom/app/wiring"
)

const (
	// httpCallers send requests side by side, as browsers and scripts do.
	httpCallers = 8
	// benchServices are written and read.
	benchServices = 50
	// fewClusters is the size of a new installation.
	fewClusters = 10
)

// httpCase is a kind of request; n counts up over all callers.
type httpCase struct {
	name, method string
	path         func(n int64) string
	body         func(n int64) string
}

// httpFigures are the answers of one case.
type httpFigures struct {
	perSecond float64
	p50, p99  time.Duration
}

// benchHTTP measures reads and writes over HTTP with few and with many clusters
// stored. A page of a list must cost the same with both.
func (e *environment) benchHTTP(ctx context.Context, scale benchScale) (err error) {
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
	cases := httpCases(id.String())
	for n := range int64(benchServices) { // what is read is there, however few were written
		if _, err := b.request(ctx, cases[0].method, cases[0].path(n), cases[0].body(n)); err != nil {
			return err
		}
	}
	var results [2][]httpFigures
	for i, stored := range []int{fewClusters, scale.clusters} {
		if err := b.fillClusters(ctx, stored); err != nil {
			return fmt.Errorf("store %d clusters: %w", stored, err)
		}
		for _, c := range cases {
			found, err := b.load(ctx, c, scale.while)
			if err != nil {
				return fmt.Errorf("%s with %d clusters: %w", c.name, stored, err)
			}
			results[i] = append(results[i], found)
		}
	}
	fmt.Fprintf(e.Out, "\nREST API: %d callers, %s each, beside a scheduler and a provisioner on the same host\n\n", httpCallers, scale.while)
	fmt.Fprintf(e.Out, "  %-34s %22s  %25s  %s\n", "", fmt.Sprintf("with %d clusters", fewClusters), fmt.Sprintf("with %d clusters", scale.clusters), "p50")
	fmt.Fprintf(e.Out, "  %-34s %6s %7s %7s  %9s %7s %7s  %s\n", "", "per s", "p50 ms", "p99 ms", "per s", "p50 ms", "p99 ms", "ratio")
	for i, c := range cases {
		few, many := results[0][i], results[1][i]
		fmt.Fprintf(e.Out, "  %-34s %6.0f %7.1f %7.1f  %9.0f %7.1f %7.1f  %.2f\n", c.name,
			few.perSecond, milliseconds(few.p50), milliseconds(few.p99), many.perSecond, milliseconds(many.p50), milliseconds(many.p99),
			float64(many.p50)/float64(few.p50))
	}
	return nil
}

func httpCases(cluster string) []httpCase {
	fixed := func(path string) func(int64) string { return func(int64) string { return path } }
	none := func(int64) string { return "" }
	service := func(n int64) string { return fmt.Sprintf("bench-%d", n%benchServices) }
	return []httpCase{
		{"write a service (PUT)", http.MethodPut, func(n int64) string { return "/v2/services/" + service(n) },
			func(n int64) string {
				return fmt.Sprintf(`{"name": %q, "description": "version %d", "provisioner": {"actions": {"start": {"type": "mock", "fields": {}}}}}`, service(n), n)
			}},
		{"read a service", http.MethodGet, func(n int64) string { return "/v2/services/" + service(n) }, none},
		{"list services, 50 of them", http.MethodGet, fixed("/v2/services?limit=50"), none},
		{"list clusters, newest 10", http.MethodGet, fixed("/v2/clusters?limit=10"), none},
		{"list active clusters by name, 10", http.MethodGet, fixed("/v2/clusters?limit=10&sort=name&status=active"), none},
		{"read a cluster of 3 nodes", http.MethodGet, fixed("/v2/clusters/" + cluster), none},
		{"read a cluster's status", http.MethodGet, fixed("/v2/clusters/" + cluster + "/status"), none},
	}
}

// load sends requests of one kind for a while and measures each.
func (b *benchInstance) load(ctx context.Context, c httpCase, while time.Duration) (httpFigures, error) {
	return measureCalls(ctx, httpCallers, while, func(ctx context.Context, n int64) error {
		_, err := b.request(ctx, c.method, c.path(n), c.body(n))
		return err
	})
}

// measureCalls calls for a while, from several sides at once, and measures each
// call; n counts up over all of them.
func measureCalls(ctx context.Context, callers int, while time.Duration, call func(ctx context.Context, n int64) error) (httpFigures, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var count atomic.Int64
	took := make([][]time.Duration, callers)
	failed := make([]error, callers)
	began := time.Now()
	var lanes sync.WaitGroup
	for i := range callers {
		lanes.Go(func() {
			for time.Since(began) < while {
				n := count.Add(1)
				sent := time.Now()
				if err := call(ctx, n); err != nil {
					failed[i] = err
					cancel()
					return
				}
				took[i] = append(took[i], time.Since(sent))
			}
		})
	}
	lanes.Wait()
	whole := time.Since(began)
	if err := errors.Join(failed...); err != nil {
		return httpFigures{}, err
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	return httpFigures{perSecond: float64(len(all)) / whole.Seconds(), p50: percentile(all, 50), p99: percentile(all, 99)}, nil
}

// The stored clusters are copies of one that really ran, with its nodes and its
// operation, spread over the last year.
const (
	copyClusters = `
INSERT INTO clusters (tenant_id, owner_id, name, description, status, template_name, template_version, template, provider_name, provider_fields,
    services, type_settings, config, labels, dns_suffix, latest_operation, created_at)
SELECT c.tenant_id, c.owner_id, 'stored-' || n, c.description, c.status, c.template_name, c.template_version, c.template, c.provider_name, c.provider_fields,
    c.services, c.type_settings, c.config, c.labels, c.dns_suffix, c.latest_operation, now() - n * interval '1 hour'
FROM (SELECT * FROM clusters ORDER BY id LIMIT 1) c, generate_series(1, $1) n`
	copyNodes = `
INSERT INTO nodes (id, cluster_id, tenant_id, number, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators,
    ipaddresses, service_states)
SELECT gen_random_uuid(), c.id, d.tenant_id, d.number, d.state, d.hostname, d.hardwaretype, d.imagetype, d.flavor, d.image, d.sshuser, d.services,
    d.automators, d.ipaddresses, d.service_states
FROM clusters c, nodes d WHERE d.cluster_id = (SELECT min(id) FROM clusters) AND NOT EXISTS (SELECT FROM nodes x WHERE x.cluster_id = c.id)`
	copyOperations = `
INSERT INTO operations (tenant_id, cluster_id, number, action, status, message, requested_by, levels, created_at, started_at, ended_at)
SELECT o.tenant_id, c.id, o.number, o.action, o.status, o.message, o.requested_by, o.levels, c.created_at, c.created_at, c.created_at
FROM clusters c, operations o WHERE o.cluster_id = (SELECT min(id) FROM clusters) AND NOT EXISTS (SELECT FROM operations x WHERE x.cluster_id = c.id)`
)

// fillClusters brings the number of stored clusters up to n.
func (b *benchInstance) fillClusters(ctx context.Context, n int) error {
	var have int
	if err := b.System.DB.GetContext(ctx, &have, `SELECT count(*) FROM clusters`); err != nil {
		return err
	}
	if _, err := b.System.DB.ExecContext(ctx, copyClusters, n-have); err != nil {
		return err
	}
	for _, statement := range []string{copyNodes, copyOperations, `ANALYZE clusters, nodes, operations`} {
		if _, err := b.System.DB.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
