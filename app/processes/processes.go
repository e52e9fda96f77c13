// Package processes holds the use cases about running processes: their leases, what
// happens to the work of a lost one, how the workers that tenants want are assigned
// over the provisioners, and what provisioners are asked outside of tasks: probes
// of providers, machines that no node claims.
//
// It knows nothing of tasks beyond giving them back, and must not run any. What
// a newcomer gets wrong: whether a process lives is judged by the database clock
// alone, and a process that could not renew in time gives up its own work before
// anybody else takes it.
package processes

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
)

// Renewal is what a process learns each time it renews its lease: the workers
// assigned to it by tenant, and its attempts that somebody aborted.
type Renewal = store.Renewal

// LiveProcess is a process whose lease runs, with what it was assigned and does.
type LiveProcess = store.LiveProcess

// Lost is a process whose lease was over, with the tasks that went back.
type Lost = store.Lost

// Options are the times of process leases and what asking providers needs; a zero
// value means its default.
type Options struct {
	// Lease is how long a lease runs from each renewal, 10 s.
	Lease time.Duration
	// RenewEvery is how often it is renewed, 2 s.
	RenewEvery time.Duration
	// GiveUpAfter is how long a process works on without a renewal, 8 s; it must
	// be shorter than Lease.
	GiveUpAfter time.Duration
	// Ring opens the sealed fields of providers that are asked something; only
	// provisioners need it.
	Ring *secret.Ring
	// AskTimeout is how long answers of providers are waited for, 60 s.
	AskTimeout time.Duration
}

// Processes knows the processes of an installation.
type Processes struct {
	db   *sqlx.DB
	opts Options
	// lastErrors are the *LastError of the processes that are registered here, by id.
	lastErrors sync.Map
}

// New makes the use cases; what the options leave out has its usual value.
func New(db *sqlx.DB, opts Options) *Processes {
	if opts.Lease <= 0 {
		opts.Lease = 10 * time.Second
	}
	if opts.RenewEvery <= 0 {
		opts.RenewEvery = opts.Lease / 5
	}
	if opts.GiveUpAfter <= 0 {
		opts.GiveUpAfter = opts.Lease * 4 / 5
	}
	if opts.AskTimeout <= 0 {
		opts.AskTimeout = time.Minute
	}
	return &Processes{db: db, opts: opts}
}

// NewProcess describes a process that starts.
type NewProcess struct {
	// Kind is loom.ProcessScheduler, loom.ProcessProvisioner or loom.ProcessWeb.
	Kind string
	// Port of its health address, 0 for none.
	Port    int
	Version string
	// Capacity is how many tasks a provisioner runs at once.
	Capacity int
	// Plugins are the plugin types it carries, Versions the releases of those that are no
	// part of Loom.
	Plugins  []string
	Versions map[string]string
	// LastError is what last went wrong in the process; it is shown in the list of processes.
	// nil shows nothing.
	LastError *LastError
	// Local is what a provisioner says of its host, for machines there.
	Local loom.LocalHost
	// OnlyTenant limits a provisioner to the tenant of this name, "" for none.
	OnlyTenant string
}

// NewID makes an id for one start of a process: short host name and 8 hex digits.
func NewID() (loom.ProcessID, string) {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	short, _, _ := strings.Cut(host, ".")
	var b [4]byte
	rand.Read(b[:]) //nolint:errcheck // never fails (crypto/rand)
	return loom.ProcessID(short + "-" + hex.EncodeToString(b[:])), host
}

// Register begins the lease of a process under a new id and deals workers again
// when it is a provisioner. NotFound when OnlyTenant names no tenant.
func (f *Processes) Register(ctx context.Context, p NewProcess) (loom.ProcessID, error) {
	id, host := NewID()
	if p.LastError != nil {
		p.LastError.markUnwritten()
		f.lastErrors.Store(id, p.LastError)
	}
	return id, store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		row := store.NewProcess{Process: loom.Process{ID: id, Kind: p.Kind, Host: host, Port: p.Port, Version: p.Version,
			Capacity: p.Capacity, Plugins: p.Plugins, Versions: p.Versions}, Lease: f.opts.Lease, Local: p.Local}
		if p.OnlyTenant != "" {
			tenant, err := store.TenantByNameAllTenants(ctx, tx, p.OnlyTenant)
			if errors.Is(err, loom.NotFound) {
				return loom.NewError(loom.NotFound, "There is no tenant “%s” for this provisioner to work for.", p.OnlyTenant)
			}
			if err != nil {
				return err
			}
			row.OnlyTenant = tenant.ID
		}
		if err := store.InsertProcess(ctx, tx, row); err != nil {
			return err
		}
		return reassignAfter(ctx, tx, p.Kind)
	})
}

// SetPlugins says which plugin types, in which releases, a process has from now on.
// NotFound when its row is gone.
func (f *Processes) SetPlugins(ctx context.Context, id loom.ProcessID, plugins []string, versions map[string]string) error {
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error { return store.SetProcessPlugins(ctx, tx, id, plugins, versions) })
}

// Deregister removes a process that ended cleanly; its workers are assigned to
// others.
func (f *Processes) Deregister(ctx context.Context, id loom.ProcessID) error {
	f.lastErrors.Delete(id)
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		// Before the row: its assignments go with it, and whoever deals may wait for them.
		if err := store.LockAssignments(ctx, tx); err != nil {
			return err
		}
		if err := store.DeleteProcess(ctx, tx, id); err != nil {
			return err
		}
		return assignWorkers(ctx, tx)
	})
}

// Reap removes processes whose lease is over, gives their tasks back, ends their probes and
// deals workers again, all in one transaction. One scheduler at a time does so; in the
// others it does nothing.
func (f *Processes) Reap(ctx context.Context) ([]Lost, error) {
	return store.InTx(ctx, f.db, func(tx *sqlx.Tx) ([]Lost, error) {
		mine, err := store.TryReapLock(ctx, tx)
		if err != nil || !mine {
			return nil, err
		}
		if err := store.LockAssignments(ctx, tx); err != nil { // as in Deregister
			return nil, err
		}
		lost, err := store.ReapAllTenants(ctx, tx)
		if err != nil {
			return nil, err
		}
		if err := endLostProbes(ctx, tx); err != nil {
			return nil, err
		}
		// Always: a tenant may want another number of workers since.
		return lost, assignWorkers(ctx, tx)
	})
}

// BusyQueues lists the queues on which River jobs wait for a worker.
func (f *Processes) BusyQueues(ctx context.Context) ([]string, error) {
	return store.BusyQueuesAllTenants(ctx, f.db)
}

// FreeWorkers says how many workers of tenants are free in other processes than
// one. Tenants that have none are left out.
func (f *Processes) FreeWorkers(ctx context.Context, here loom.ProcessID, tenants []loom.TenantID) (map[loom.TenantID]int, error) {
	return store.FreeWorkersAllTenants(ctx, f.db, here, tenants)
}
