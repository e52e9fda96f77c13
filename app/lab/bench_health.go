package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"syscall"
	"time"

	"loom/app/loom"
	"loom/app/wiring"
)

// How much it costs to watch the health of machines, and how soon trouble is known.
const (
	// watchedPorts are the ports of the machines. There are several, since Loom has few
	// handshakes with one port at once.
	watchedPorts = 50
	// watchedLimit is how long a killed machine or service may go unnoticed before the
	// measurement goes on without it.
	watchedLimit = 400 * time.Second
	// listRounds is how often the list of clusters is measured with health and without.
	listRounds = 3
)

// Clusters, operations, nodes and tasks that made them are copies of a cluster that really
// ran; the machines are those of the second process.
const (
	watchedClusters = `
INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields,
    services, type_settings, config, labels, dns_suffix, latest_operation)
SELECT c.tenant_id, c.owner_id, 'watched-' || i, c.status, c.template_name, c.template_version, c.template, 'watched', '{}',
    jsonb_set(c.services, '{watched,check,interval}', to_jsonb($3::int)), c.type_settings, c.config, c.labels, c.dns_suffix, c.latest_operation
FROM clusters c, generate_series(1, $2::int) i WHERE c.id = $1`
	watchedOperations = `
INSERT INTO operations (tenant_id, cluster_id, number, action, status, message, requested_by, levels, started_at, ended_at)
SELECT o.tenant_id, c.id, o.number, o.action, o.status, o.message, o.requested_by, o.levels, now(), now()
FROM operations o, clusters c WHERE o.cluster_id = $1 AND c.name LIKE 'watched-%'`
	watchedNodes = `
INSERT INTO nodes (id, cluster_id, tenant_id, number, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, ipaddresses, results, service_states)
SELECT gen_random_uuid(), x.id, n.tenant_id, 999 + i, 'ready', x.name || '-' || i, n.hardwaretype, n.imagetype, n.flavor, n.image, n.sshuser, n.services, n.automators,
    '{"access_v4": "127.0.0.1"}', $3::jsonb || jsonb_build_object('providerid', x.name || '-' || i, 'ssh-auth', jsonb_build_object('user', x.name || '-' || i),
        'ssh_port', $4::jsonb -> ((x.id + i) % jsonb_array_length($4::jsonb))::int), n.service_states
FROM nodes n, clusters x, generate_series(1, $2::int) i WHERE n.cluster_id = $1 AND x.name LIKE 'watched-%'`
	watchedTasks = `
INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status, started_at, ended_at)
SELECT o.id, n.tenant_id, n.cluster_id, n.number - 999, n.id, 'create', 'complete', now(), now()
FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id JOIN clusters c ON c.id = n.cluster_id WHERE c.name LIKE 'watched-%'`
)

// watchedBench is the measurement under way.
type watchedBench struct {
	*benchInstance
	machines *benchMachines
	scale    benchScale
	// pattern is the cluster whose copies run empty tasks.
	pattern loom.ClusterID
}

// benchHealth measures what it costs to watch machines and how soon trouble is known.
func (e *environment) benchHealth(ctx context.Context, scale benchScale) (err error) {
	b, err := e.startBenchOn(ctx, true, []string{"LOOM_MOCK=true", "LOOM_PROVIDER_NETWORKS=127.0.0.0/8", fmt.Sprintf("LOOM_PROVISIONER_CAPACITY=%d", graphWorkers)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	machines, err := startMachines(watchedPorts)
	if err != nil {
		return err
	}
	defer machines.end()
	for _, folder := range []string{"benchdata", "benchdata/health"} {
		if _, err := b.System.Load(ctx, b.actor, wiring.Sub(benchCatalog, folder), nil); err != nil {
			return err
		}
	}
	w := &watchedBench{benchInstance: b, machines: machines, scale: scale}
	return w.measure(ctx)
}

func (w *watchedBench) measure(ctx context.Context) error {
	var err error
	if w.pattern, err = w.create(ctx, "mock", 1); err != nil {
		return err
	}
	if err := w.until(ctx, w.pattern, 1); err != nil {
		return err
	}
	before, err := w.tasks(ctx)
	if err != nil {
		return err
	}
	if err := w.fill(ctx); err != nil {
		return fmt.Errorf("store %d nodes: %w", w.scale.watched, err)
	}
	fmt.Fprintf(w.Out, "\nHealth: %d nodes in %d clusters watched by one provisioner, their machines an SSH server in a second process; %s\n\n",
		w.scale.watched, w.scale.watched/w.scale.perCluster, openFiles())
	fmt.Fprintf(w.Out, "  %-42s %-38s %s\n", "", "measured", "aim")
	if err := w.measureWatching(ctx); err != nil {
		return err
	}
	if err := w.measureChecks(ctx); err != nil {
		return fmt.Errorf("check now: %w", err)
	}
	if err := w.measureKilled(ctx, w.scale.watched, "p99 100 s", "p99 300 s"); err != nil {
		return err
	}
	with, err := w.tasks(ctx)
	if err != nil {
		return err
	}
	if few := w.scale.watchedFew; few > 0 {
		if err := w.retire(ctx, few); err != nil {
			return err
		}
		if err := w.measureKilled(ctx, few, "p99 60 s", "p99 100 s"); err != nil {
			return err
		}
	}
	if err := w.retire(ctx, 0); err != nil {
		return err
	}
	after, err := w.tasks(ctx)
	if err != nil {
		return err
	}
	without := (before + after) / 2
	w.row("empty tasks a second", fmt.Sprintf("%.0f; without health %.0f and %.0f: %+.1f %%", with, before, after, 100*(with/without-1)), "-2 %")
	return w.measureList(ctx)
}

// row prints a figure beside its aim.
func (w *watchedBench) row(name, measured, aim string) {
	fmt.Fprintf(w.Out, "  %-42s %-38s %s\n", name, measured, aim)
}

// openFiles says how many files a process may open. Go raises the soft limit by itself.
func openFiles() string {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return "the limit of open files is unknown"
	}
	return fmt.Sprintf("%d open files allowed", limit.Max)
}

// fill makes the nodes.
func (w *watchedBench) fill(ctx context.Context) error {
	id, err := w.create(ctx, "watched", 1)
	if err != nil {
		return err
	}
	if err := w.until(ctx, id, 1); err != nil {
		return err
	}
	results, err := json.Marshal(map[string]any{"ssh_host_keys": map[string]string{"ed25519": w.machines.at.HostKey}})
	if err != nil {
		return err
	}
	ports, err := json.Marshal(w.machines.at.Ports)
	if err != nil {
		return err
	}
	db := w.System.DB
	if _, err := db.ExecContext(ctx, watchedClusters, int64(id), w.scale.watched/w.scale.perCluster, w.scale.interval); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, watchedOperations, int64(id)); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, watchedNodes, int64(id), w.scale.perCluster, results, ports); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, watchedTasks); err != nil {
		return err
	}
	// The pattern is of another provider and would be watched, too.
	_, err = db.ExecContext(ctx, `UPDATE clusters SET status = 'terminated' WHERE id = $1`, int64(id))
	if err == nil {
		_, err = db.ExecContext(ctx, `ANALYZE clusters, nodes, operations, tasks`)
	}
	return err
}

// nodesThat counts the watched nodes for which a condition holds.
func (w *watchedBench) nodesThat(ctx context.Context, condition string, args ...any) (n int, err error) {
	err = w.System.DB.GetContext(ctx, &n, `SELECT count(*) FROM node_health h JOIN clusters c ON c.id = h.cluster_id
WHERE c.name LIKE 'watched-%' AND c.status = 'active' AND `+condition, args...)
	return n, err
}

// measureWatching waits until all nodes were looked at, and measures what it costs to go on.
func (w *watchedBench) measureWatching(ctx context.Context) error {
	began := time.Now()
	if err := w.wait(ctx, "the first look at every node", func() (bool, error) {
		n, err := w.nodesThat(ctx, `h.checked_at IS NOT NULL`)
		return n == w.scale.watched, err
	}); err != nil {
		return err
	}
	w.row("every node looked at once", seconds(time.Since(began)), "")
	quiet := 3 * w.scale.idle
	used, err := w.used(ctx, quiet)
	if err != nil {
		return err
	}
	w.row("provisioner, share of a core", fmt.Sprintf("%.1f %%", share(used.provisioner, quiet)), "15 %")
	w.row("PostgreSQL, share of a core", fmt.Sprintf("%.1f %%", share(used.postgres, quiet)), "2 %")
	now, peak := memoryOf(w.provisioners()[0])
	w.row("memory of the provisioner", fmt.Sprintf("%s MB, at most %s MB", now, peak), "600 MB")
	var bytes struct {
		Row, All float64
		Age      float64
	}
	if err := w.System.DB.GetContext(ctx, &bytes, `SELECT avg(pg_column_size(h)) AS row, (pg_total_relation_size('node_health') + pg_total_relation_size('node_load')
    + pg_total_relation_size('node_files'))::float8 / count(*) AS all, percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM now() - checked_at)) AS age FROM node_health h`); err != nil {
		return err
	}
	w.row("stored for a node", fmt.Sprintf("%.1f KB; its row %.1f KB", bytes.All/1000, bytes.Row/1000), "3 KB")
	healthy, err := w.nodesThat(ctx, `h.status = 'healthy'`)
	if err != nil {
		return err
	}
	w.row("healthy; age of their checks, p99", fmt.Sprintf("%d; %.0f s", healthy, bytes.Age), "all")
	return nil
}

// measureChecks asks for checks of clusters, one after the other.
func (w *watchedBench) measureChecks(ctx context.Context) error {
	var ids []int64
	if err := w.System.DB.SelectContext(ctx, &ids, `SELECT id FROM clusters WHERE name LIKE 'watched-%' AND status = 'active' ORDER BY id LIMIT 3`); err != nil {
		return err
	}
	var took []time.Duration
	for _, id := range ids {
		var asked time.Time
		if err := w.System.DB.GetContext(ctx, &asked, `SELECT clock_timestamp()`); err != nil {
			return err
		}
		began, shown := time.Now(), 0
		if _, err := w.request(ctx, http.MethodPost, "/v2/clusters/"+loom.ClusterID(id).String()+"/check", `{}`); err != nil {
			return err
		}
		if err := w.wait(ctx, "checks", func() (bool, error) {
			n, err := w.nodesThat(ctx, `h.cluster_id = $1 AND h.checked_at >= $2`, id, asked)
			for ; shown < n; shown++ {
				took = append(took, time.Since(began))
			}
			return n == w.scale.perCluster, err
		}); err != nil {
			return err
		}
	}
	slices.Sort(took)
	w.row(fmt.Sprintf("Check now of %d nodes, p50 and p95", w.scale.perCluster), seconds(percentile(took, 50))+", "+seconds(percentile(took, 95)), "p95 3 s")
	return nil
}

// measureKilled kills machines, and services of other machines, and says how long that went
// unnoticed.
func (w *watchedBench) measureKilled(ctx context.Context, nodes int, machineAim, serviceAim string) error {
	var all []string
	if err := w.System.DB.SelectContext(ctx, &all, `SELECT n.hostname FROM nodes n JOIN clusters c ON c.id = n.cluster_id JOIN node_health h ON h.node_id = n.id
WHERE c.name LIKE 'watched-%' AND c.status = 'active' AND h.status = 'healthy'`); err != nil {
		return err
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := w.scale.killed
	machines, services := all[:n], all[n:2*n]
	var began time.Time
	if err := w.System.DB.GetContext(ctx, &began, `SELECT clock_timestamp()`); err != nil {
		return err
	}
	if err := errors.Join(w.machines.become("silent", machines), w.machines.become("failing", services)); err != nil {
		return err
	}
	var dead, failing []time.Duration
	if err := w.wait(ctx, "killed machines to be noticed", func() (bool, error) {
		var err error
		if dead, err = w.noticed(ctx, machines, loom.HealthUnreachable, began); err != nil {
			return false, err
		}
		failing, err = w.noticed(ctx, services, loom.HealthFailing, began)
		return len(dead) == n && len(failing) == n || time.Since(began) > watchedLimit, err
	}); err != nil {
		return err
	}
	w.row(fmt.Sprintf("%d of %d machines killed, known after", n, nodes), noticedText(dead, n), machineAim)
	w.row(fmt.Sprintf("%d of %d services killed, known after", n, nodes), noticedText(failing, n), serviceAim)
	return w.machines.become("well", all[:2*n])
}

// noticed returns after which times nodes got a status, sorted.
func (w *watchedBench) noticed(ctx context.Context, names []string, status loom.HealthStatus, began time.Time) ([]time.Duration, error) {
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	var after []float64
	if err := w.System.DB.SelectContext(ctx, &after, `SELECT extract(epoch FROM h.since - $3)::float8 FROM node_health h JOIN nodes n ON n.id = h.node_id
WHERE n.hostname IN (SELECT jsonb_array_elements_text($1::jsonb)) AND h.status = $2 AND h.since > $3 ORDER BY 1`, list, status, began); err != nil {
		return nil, err
	}
	times := make([]time.Duration, len(after))
	for i, s := range after {
		times[i] = time.Duration(s * float64(time.Second))
	}
	return times, nil
}

// noticedText writes percentiles of the times after which something was known.
func noticedText(times []time.Duration, of int) string {
	text := fmt.Sprintf("p50 %s, p99 %s", seconds(percentile(times, 50)), seconds(percentile(times, 99)))
	if len(times) < of {
		text += fmt.Sprintf("; %d not after %s", of-len(times), watchedLimit)
	}
	return text
}

// retire ends clusters until a number of nodes is left, and waits for a look at each of these:
// from then on looks come at the pace of that number.
func (w *watchedBench) retire(ctx context.Context, nodes int) error {
	var asked time.Time
	if err := w.System.DB.GetContext(ctx, &asked, `SELECT clock_timestamp()`); err != nil {
		return err
	}
	if _, err := w.System.DB.ExecContext(ctx, `UPDATE clusters SET status = 'terminated' WHERE name LIKE 'watched-%' AND id NOT IN
    (SELECT id FROM clusters WHERE name LIKE 'watched-%' ORDER BY id LIMIT $1)`, nodes/w.scale.perCluster); err != nil {
		return err
	}
	if err := settle(ctx, w.scale.idle); err != nil {
		return err
	}
	return w.wait(ctx, "a look at each node that is left", func() (bool, error) {
		n, err := w.nodesThat(ctx, `h.checked_at > $1`, asked)
		return n == nodes, err
	})
}

// tasks returns how many empty tasks a second go through, in the best of some rounds.
func (w *watchedBench) tasks(ctx context.Context) (float64, error) {
	best := 0.0
	for range w.scale.rounds {
		cluster, nodes, err := w.graphCluster(ctx, w.pattern, w.scale.perCluster*graphLayers, 0)
		if err != nil {
			return 0, err
		}
		plan := layeredPlan(nodes, graphLayers)
		f, _, err := w.runGraph(ctx, cluster, plan)
		if err != nil {
			return 0, err
		}
		best = max(best, float64(len(plan.Tasks))/f.took.Seconds())
		if _, err := w.System.DB.ExecContext(ctx, `UPDATE clusters SET status = 'terminated' WHERE id = $1`, int64(cluster)); err != nil {
			return 0, err
		}
	}
	return best, nil
}

// measureList compares the list of clusters with health and without, in turns. It comes last:
// the provisioner is gone then.
func (w *watchedBench) measureList(ctx context.Context) error {
	for _, p := range slices.Clone(w.processes) {
		if p.name != "web" {
			if err := w.endProcess(p); err != nil {
				return err
			}
		}
	}
	list := httpCase{"", http.MethodGet, func(int64) string { return "/v2/clusters?limit=50" }, func(int64) string { return "" }}
	hidden := `TRUNCATE node_health, cluster_health;`
	shown := hidden + `
INSERT INTO node_health (node_id, tenant_id, cluster_id, incarnation, operation, status, checked_at, seen_at, services)
SELECT n.id, n.tenant_id, n.cluster_id, 1, 1, 'healthy', now(), now(), '{"watched": {"status": "passing"}}' FROM nodes n JOIN clusters c ON c.id = n.cluster_id WHERE c.name LIKE 'watched-%';
INSERT INTO cluster_health (cluster_id, tenant_id, status) SELECT id, tenant_id, 'healthy' FROM clusters WHERE name LIKE 'watched-%';
ANALYZE node_health, cluster_health`
	if _, err := w.System.DB.ExecContext(ctx, `UPDATE clusters SET status = 'active' WHERE name LIKE 'watched-%'`); err != nil {
		return err
	}
	var best [2]time.Duration
	for range listRounds {
		for i, statements := range []string{hidden, shown} {
			if _, err := w.System.DB.ExecContext(ctx, statements); err != nil {
				return err
			}
			f, err := w.load(ctx, list, w.scale.while)
			if err != nil {
				return err
			}
			if best[i] == 0 || f.p50 < best[i] {
				best[i] = f.p50
			}
		}
	}
	w.row("list of 50 clusters over REST, p50", fmt.Sprintf("%.1f ms; without health %.1f ms: %+.0f %%", milliseconds(best[1]), milliseconds(best[0]), 100*(best[1].Seconds()/best[0].Seconds()-1)), "+10 %")
	return nil
}
