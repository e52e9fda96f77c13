package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// NewProcess is a process to register; its lease runs for Lease from now on.
type NewProcess struct {
	loom.Process
	// OnlyTenant limits a provisioner to one tenant, "" for none.
	OnlyTenant loom.TenantID
	Lease      time.Duration
	// Local is what a provisioner says of its host.
	Local loom.LocalHost
}

const insertProcess = `
INSERT INTO processes (id, kind, host, port, version, capacity, only_tenant, plugins, plugin_versions, local_host, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, nullif($7, ''), $8, $9, $10, now() + make_interval(secs => $11))`

// InsertProcess registers a process under an id that was never used before.
func InsertProcess(ctx context.Context, tx *sqlx.Tx, p NewProcess) error {
	local, err := json.Marshal(p.Local)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, insertProcess, p.ID, p.Kind, p.Host, p.Port, p.Version, p.Capacity, string(p.OnlyTenant),
		pq.Array(append([]string{}, p.Plugins...)), versionsOf(p.Versions), local, p.Lease.Seconds())
	return wrap(err, "register process %s", p.ID)
}

// versionsOf gives the releases of plugins as JSON.
func versionsOf(versions map[string]string) string {
	body, err := json.Marshal(versions)
	if err != nil || versions == nil {
		return "{}"
	}
	return string(body)
}

const setProcessPlugins = `UPDATE processes SET plugins = $2, plugin_versions = $3 WHERE id = $1`

// SetProcessPlugins changes which plugin types, and which releases of them, a process is
// listed with; NotFound when its row is gone.
func SetProcessPlugins(ctx context.Context, tx *sqlx.Tx, id loom.ProcessID, plugins []string, versions map[string]string) error {
	done, err := tx.ExecContext(ctx, setProcessPlugins, id, pq.Array(append([]string{}, plugins...)), versionsOf(versions))
	if err != nil {
		return wrap(err, "list the plugins of process %s", id)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return loom.NewError(loom.NotFound, "There is no process %s.", id)
	}
	return nil
}

const localHosts = `
SELECT DISTINCT ON (host) host, local_host FROM processes
WHERE expires_at > now() AND local_host <> '{}' ORDER BY host, started_at DESC`

// LocalHostsAllTenants gives what the newest provisioner of each host says of it, by name.
func LocalHostsAllTenants(ctx context.Context, q sqlx.ExtContext) ([]loom.LocalHost, error) {
	var rows []struct {
		Host  string `db:"host"`
		Local []byte `db:"local_host"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, localHosts); err != nil {
		return nil, wrap(err, "list the hosts of local machines")
	}
	hosts := make([]loom.LocalHost, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Local, &hosts[i]); err != nil {
			return nil, wrap(err, "read what is known of host %s", r.Host)
		}
		hosts[i].Host = r.Host
	}
	return hosts, nil
}

// SetProcessTrouble notes what last went wrong in a process. A process that is gone is no
// error.
func SetProcessTrouble(ctx context.Context, q sqlx.ExecerContext, id loom.ProcessID, text string, at time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE processes SET last_error = $2, last_error_at = $3 WHERE id = $1`, id, cleanText(text), at)
	return wrap(err, "note what went wrong in process %s", id)
}

// Renewal is what a process learns each time it renews its lease.
type Renewal struct {
	// Workers by tenant that were assigned to the process.
	Workers map[loom.TenantID]int
	// Stop are running attempts of the process that somebody aborted.
	Stop []AttemptKey
	// Until is when the process must have renewed again, by its own clock; whoever keeps
	// the lease sets it.
	Until time.Time
}

// One statement: it runs every 2 seconds in every process.
const renewProcess = `
WITH alive AS (
	UPDATE processes SET expires_at = now() + make_interval(secs => $2), draining = $3 WHERE id = $1 RETURNING id
)
SELECT
	coalesce((SELECT jsonb_object_agg(w.tenant_id, w.workers) FROM worker_assignments w WHERE w.process_id = $1), '{}') AS workers,
	coalesce((SELECT jsonb_agg(jsonb_build_array(t.id, t.attempt))
	          FROM running_tasks t JOIN operations o ON o.id = t.operation_id
	          WHERE t.process_id = $1 AND o.status = 'failing' AND o.aborted), '[]') AS stop
FROM alive`

// RenewProcess prolongs the lease of a process; NotFound when its row is gone:
// then others have its work already.
func RenewProcess(ctx context.Context, q sqlx.QueryerContext, id loom.ProcessID, lease time.Duration, draining bool) (Renewal, error) {
	var row struct {
		Workers []byte `db:"workers"`
		Stop    []byte `db:"stop"`
	}
	var r Renewal
	if err := sqlx.GetContext(ctx, q, &row, renewProcess, id, lease.Seconds(), draining); err != nil {
		return r, wrap(err, "renew the lease of process %s", id)
	}
	if err := json.Unmarshal(row.Workers, &r.Workers); err != nil {
		return r, wrap(err, "read the assignments of process %s", id)
	}
	var stop [][2]int64
	if err := json.Unmarshal(row.Stop, &stop); err != nil {
		return r, wrap(err, "read what process %s has to stop", id)
	}
	for _, s := range stop {
		r.Stop = append(r.Stop, AttemptKey{loom.TaskID(s[0]), int(s[1])})
	}
	return r, nil
}

// DeleteProcess removes a process that ended cleanly, its assignments with it.
func DeleteProcess(ctx context.Context, tx *sqlx.Tx, id loom.ProcessID) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM processes WHERE id = $1`, id)
	return wrap(err, "remove process %s", id)
}

// Keys of the advisory locks of processes.
const (
	reapLock = 7081103214
	dealLock = 7081103215
)

// TryReapLock takes the lock under which one scheduler at a time reaps, until the
// transaction ends; false when another holds it.
func TryReapLock(ctx context.Context, tx *sqlx.Tx) (bool, error) {
	var taken bool
	err := tx.GetContext(ctx, &taken, `SELECT pg_try_advisory_xact_lock($1)`, int64(reapLock))
	return taken, wrap(err, "try the lock of reaping")
}

// LockAssignments takes the lock under which workers are assigned, until the transaction
// ends.
func LockAssignments(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(dealLock))
	return wrap(err, "take the lock of dealing")
}

type processRow struct {
	ID         string         `db:"id"`
	Kind       string         `db:"kind"`
	Host       string         `db:"host"`
	Port       int            `db:"port"`
	Version    string         `db:"version"`
	Capacity   int            `db:"capacity"`
	OnlyTenant string         `db:"only_tenant"`
	Plugins    pq.StringArray `db:"plugins"`
	Versions   []byte         `db:"plugin_versions"`
	Trouble    string         `db:"last_error"`
	TroubleAt  sql.NullTime   `db:"last_error_at"`
	Draining   bool           `db:"draining"`
	Ending     bool           `db:"ending"`
	StartedAt  time.Time      `db:"started_at"`
	ExpiresAt  time.Time      `db:"expires_at"`
	Workers    []byte         `db:"workers"`
	Busy       []byte         `db:"busy"`
}

// LiveProcess is a process whose lease runs, with what it was assigned and does.
type LiveProcess struct {
	loom.Process
	OnlyTenant loom.TenantID
	// Draining says that it takes no new work: it is about to end, or was asked to.
	Draining bool
	// Ending says that it drains of its own accord and will not go on.
	Ending bool
	// Workers assigned and tasks running, by tenant.
	Workers, Busy map[loom.TenantID]int
}

const liveProcesses = `
WITH busy AS MATERIALIZED (
	SELECT t.process_id, t.tenant_id, count(*) AS n FROM running_tasks t WHERE $2 GROUP BY t.process_id, t.tenant_id
)
SELECT p.id, p.kind, p.host, p.port, p.version, p.capacity, coalesce(p.only_tenant, '') AS only_tenant, p.plugins, p.plugin_versions, p.last_error, p.last_error_at,
	p.draining OR p.drain_asked AS draining, p.draining AS ending, p.started_at, p.expires_at,
	coalesce((SELECT jsonb_object_agg(w.tenant_id, w.workers) FROM worker_assignments w WHERE w.process_id = p.id), '{}') AS workers,
	coalesce((SELECT jsonb_object_agg(b.tenant_id, b.n) FROM busy b WHERE b.process_id = p.id), '{}') AS busy
FROM processes p
WHERE p.expires_at > now() AND ($1 = '' OR p.kind = $1)
ORDER BY p.started_at, p.id`

// LiveProcessesAllTenants lists processes of a kind ("" for all) whose lease
// runs, oldest first.
func LiveProcessesAllTenants(ctx context.Context, q sqlx.ExtContext, kind string) ([]LiveProcess, error) {
	return liveProcessesOf(ctx, q, kind, true)
}

// LiveProvisionersAllTenants lists provisioners whose lease runs, oldest first, but not
// what they do: that has to be looked up in the nodes at work, which may be many.
func LiveProvisionersAllTenants(ctx context.Context, q sqlx.ExtContext) ([]LiveProcess, error) {
	return liveProcessesOf(ctx, q, loom.ProcessProvisioner, false)
}

func liveProcessesOf(ctx context.Context, q sqlx.ExtContext, kind string, busy bool) ([]LiveProcess, error) {
	var rows []processRow
	if err := sqlx.SelectContext(ctx, q, &rows, liveProcesses, kind, busy); err != nil {
		return nil, wrap(err, "list live processes")
	}
	live := make([]LiveProcess, len(rows))
	for i, r := range rows {
		live[i] = LiveProcess{
			Process: loom.Process{ID: loom.ProcessID(r.ID), Kind: r.Kind, Host: r.Host, Port: r.Port, Version: r.Version,
				Capacity: r.Capacity, Plugins: r.Plugins, Trouble: r.Trouble, TroubleAt: r.TroubleAt.Time, Started: r.StartedAt, Expires: r.ExpiresAt},
			OnlyTenant: loom.TenantID(r.OnlyTenant), Draining: r.Draining, Ending: r.Ending,
		}
		if err := json.Unmarshal(r.Workers, &live[i].Workers); err != nil {
			return nil, wrap(err, "read the assignments of process %s", r.ID)
		}
		if err := json.Unmarshal(r.Busy, &live[i].Busy); err != nil {
			return nil, wrap(err, "read the load of process %s", r.ID)
		}
		if err := json.Unmarshal(r.Versions, &live[i].Versions); err != nil {
			return nil, wrap(err, "read the plugins of process %s", r.ID)
		}
	}
	return live, nil
}

const askToDrain = `
UPDATE processes SET drain_asked = $2 WHERE id = $1 AND expires_at > now()`

// AskToDrain tells a process to take no new work, or to go on, until it is told
// otherwise, and wakes provisioners to look. NotFound when it does not live.
func AskToDrain(ctx context.Context, tx *sqlx.Tx, id loom.ProcessID, drain bool) error {
	result, err := tx.ExecContext(ctx, askToDrain, id, drain)
	if err != nil {
		return wrap(err, "ask process %s to drain", id)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return wrap(cmp.Or(err, sql.ErrNoRows), "ask process %s to drain", id)
	}
	return WakeProvisioners(ctx, tx)
}

// WakeProvisioners lets provisioners renew their leases at once, and so learn of other
// workers and of what they are to stop.
func WakeProvisioners(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_notify($1, '')`, StopChannel)
	return wrap(err, "wake provisioners")
}

// WantedWorkersAllTenants gives the workers each tenant wants, by tenant.
func WantedWorkersAllTenants(ctx context.Context, q sqlx.ExtContext) (map[loom.TenantID]int, error) {
	var rows []struct {
		ID      string `db:"id"`
		Workers int    `db:"workers"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, `SELECT id, workers FROM tenants WHERE deleted_at IS NULL AND workers > 0 ORDER BY id`); err != nil {
		return nil, wrap(err, "read the workers that tenants want")
	}
	wanted := make(map[loom.TenantID]int, len(rows))
	for _, r := range rows {
		wanted[loom.TenantID(r.ID)] = r.Workers
	}
	return wanted, nil
}

const assign = `
INSERT INTO worker_assignments (tenant_id, process_id, workers)
SELECT x.tenant, x.process, x.workers FROM unnest($1::text[], $2::text[], $3::int[]) AS x (tenant, process, workers)
ON CONFLICT (tenant_id, process_id) DO UPDATE SET workers = excluded.workers WHERE worker_assignments.workers <> excluded.workers`

const unassign = `
DELETE FROM worker_assignments w
WHERE NOT EXISTS (SELECT FROM unnest($1::text[], $2::text[]) AS x (tenant, process) WHERE x.tenant = w.tenant_id AND x.process = w.process_id)`

// ReplaceAssignmentsAllTenants makes assignments all there is.
func ReplaceAssignmentsAllTenants(ctx context.Context, tx *sqlx.Tx, assignments []loom.Assignment) error {
	tenants, processes, workers := []string{}, []string{}, []int64{}
	for _, a := range assignments {
		tenants, processes, workers = append(tenants, string(a.Tenant)), append(processes, string(a.Process)), append(workers, int64(a.Workers))
	}
	if _, err := tx.ExecContext(ctx, unassign, pq.Array(tenants), pq.Array(processes)); err != nil {
		return wrap(err, "take workers away")
	}
	_, err := tx.ExecContext(ctx, assign, pq.Array(tenants), pq.Array(processes), pq.Array(workers))
	return wrap(err, "deal %d assignments", len(assignments))
}

const freeWorkers = `
SELECT w.tenant_id, sum(w.workers - coalesce(b.n, 0)) AS free
FROM worker_assignments w
LEFT JOIN (SELECT tenant_id, process_id, count(*) AS n FROM running_tasks GROUP BY tenant_id, process_id) b USING (tenant_id, process_id)
WHERE w.process_id <> $1 AND w.tenant_id = ANY($2) AND w.workers > coalesce(b.n, 0)
GROUP BY w.tenant_id`

// FreeWorkersAllTenants counts the workers of some tenants that have no task, in
// all processes but one. Tenants without any are left out.
func FreeWorkersAllTenants(ctx context.Context, q sqlx.ExtContext, but loom.ProcessID, tenants []loom.TenantID) (map[loom.TenantID]int, error) {
	var rows []struct {
		Tenant loom.TenantID `db:"tenant_id"`
		Free   int           `db:"free"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, freeWorkers, but, pq.Array(tenants)); err != nil {
		return nil, wrap(err, "count free workers")
	}
	free := make(map[loom.TenantID]int, len(rows))
	for _, r := range rows {
		free[r.Tenant] = r.Free
	}
	return free, nil
}
