package wiring

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/api/wire"
	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/diskspace"
	"loom/app/execution"
	"loom/app/fleet"
	"loom/app/hook"
	"loom/app/idp"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/secret"
	"loom/app/telemetry"
	"loom/provisioner"
	"loom/provisioner/automator"
	mockautomator "loom/provisioner/automator/mock"
	"loom/provisioner/automator/shell"
	"loom/provisioner/external"
	"loom/provisioner/provider"
	"loom/provisioner/provider/local"
	mockprovider "loom/provisioner/provider/mock"
	"loom/provisioner/remote"
	"loom/provisioner/simcloud"
)

// System is every use case on one database, wired once.
type System struct {
	dsn        string
	DB         *sqlx.DB
	Ring       *secret.Ring
	Accounts   *account.Accounts
	Catalog    *catalog.Catalog
	Clusters   *clusters.Clusters
	operations *execution.Operations
	Processes  *processes.Processes
	Fleet      *fleet.Fleet
	Hooks      *hook.Hooks
	metrics    *telemetry.Metrics
	Health     *health
}

// System opens what the options name and wires the use cases.
func (e *Environment) System(ctx context.Context) (*System, error) {
	db, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	ring, err := e.keys()
	if err != nil {
		return nil, err
	}
	bucket, err := e.bucketURL()
	if err != nil {
		return nil, err
	}
	c, err := catalog.New(db, ring, bucket)
	if err != nil {
		return nil, err
	}
	c.PlainHTTP, c.MaxBytes = e.Values.Switch("LOOM_ALLOW_INSECURE_ENDPOINTS"), int64(e.Values.Number("LOOM_RESOURCE_BYTES"))
	if c.Reserve, err = e.diskReserve(); err != nil {
		return nil, err
	}
	e.closers = append(e.closers, func() { c.Close() })
	hooks, err := e.privateReach("LOOM_HOOK_NETWORKS")
	if err != nil {
		return nil, err
	}
	metrics := telemetry.NewMetrics()
	metrics.Database(db.DB)
	running, err := e.execution()
	if err != nil {
		return nil, err
	}
	running.Ended, running.Logged = metrics.OperationEnded, metrics.Logged
	accounts := account.New(db, ring)
	accounts.Resources, accounts.SignedIn = c, e.ForgetSignIn
	identity, err := e.privateReach("LOOM_IDENTITY_NETWORKS")
	if err != nil {
		return nil, err
	}
	accounts.Identity = idp.New(idp.Options{Reach: identity, PlainHTTP: e.Values.Switch("LOOM_ALLOW_INSECURE_ENDPOINTS")})
	accounts.PublicURL = strings.TrimSuffix(e.publicURL(), "/")
	return &System{
		dsn: e.dsn, DB: db, Ring: ring, Catalog: c, Accounts: accounts,
		Clusters:   clusters.New(db, ring, clusters.Options{MaxMachines: e.Values.Number("LOOM_MAX_CLUSTER_SIZE"), SearchDone: metrics.Solved}),
		operations: execution.New(db, ring, running),
		Processes:  processes.New(db, processes.Options{Ring: ring, Lease: e.Lease}),
		Fleet:      fleet.New(db),
		metrics:    metrics,
		Health:     newHealth(e.dsn),
		Hooks:      hook.New(db, ring, hook.Options{Reach: hooks, PublicURL: e.publicURL(), Body: wire.HookBody}),
	}, nil
}

// storeLimit is how long the file store may take to answer at start.
const storeLimit = 5 * time.Second

// CheckStore says in the log what is wrong with the file store. It stops no process: the
// store may come back, and most of Loom works without it.
func (e *Environment) CheckStore(ctx context.Context, s *System) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if err := s.Catalog.CheckBucket(ctx); err != nil {
		e.Log.Error("files can be neither stored nor fetched", "error", err.Error())
	}
}

// Reach returns the networks that the option adds to what providers reach, or takes away.
func (e *Environment) Reach() ([]loom.ReachNetwork, error) {
	networks, err := loom.ParseReach(e.Values.Text("LOOM_PROVIDER_NETWORKS"))
	if err != nil {
		return nil, fmt.Errorf("LOOM_PROVIDER_NETWORKS: %w", err)
	}
	return networks, nil
}

// privateReach says what hooks, or calls to identity providers, may reach: public addresses and what
// an option names, whatever tenants may reach with providers; not what is taken away for all.
func (e *Environment) privateReach(option string) (loom.Reach, error) {
	named, err := ParseNetworks(option, e.Values.Text(option))
	if err != nil {
		return loom.Reach{}, err
	}
	all, err := e.Reach()
	if err != nil {
		return loom.Reach{}, err
	}
	reach := loom.Reach{Networks: loom.Named(named...)}
	for _, n := range all {
		if n.Refuse {
			reach.Networks = append(reach.Networks, n)
		}
	}
	return reach, nil
}

// execution returns the limits of running tasks and of what they leave.
func (e *Environment) execution() (execution.Options, error) {
	limits, err := loom.ParseTaskLimits(e.Values.Text("LOOM_TASK_LIMITS"))
	if err != nil {
		return execution.Options{}, fmt.Errorf("LOOM_TASK_LIMITS: %w", err)
	}
	opts := execution.Options{MaxAttempts: e.Values.Number("LOOM_MAX_ATTEMPTS"), Limits: limits, Logger: e.Log,
		LogAge: time.Duration(e.Values.Number("LOOM_LOG_DAYS")) * 24 * time.Hour, LogBytes: int64(e.Values.Number("LOOM_LOG_BYTES"))}
	if opts.LogAge == 0 {
		opts.LogAge = -1 // for ever
	}
	return opts, nil
}

// publicURL is where clients reach Loom, as far as this process can know.
func (e *Environment) publicURL() string {
	switch {
	case e.Values.Text("LOOM_PUBLIC_URL") != "":
		return e.Values.Text("LOOM_PUBLIC_URL")
	case e.listener != nil:
		return "http://" + e.listener.Addr().String()
	}
	return "http://" + e.Values.Text("LOOM_LISTEN_ADDR")
}

// LocalProvider returns the machines of this host that belong to this instance.
func (e *Environment) LocalProvider() (*local.Local, error) {
	dir, err := e.DataDir()
	if err != nil {
		return nil, err
	}
	reserve, err := e.diskReserve()
	if err != nil {
		return nil, err
	}
	networks, err := ParseNetworks("LOOM_LOCAL_NETWORKS", e.Values.Text("LOOM_LOCAL_NETWORKS"))
	if err != nil {
		return nil, err
	}
	return local.New(local.Options{DataDir: filepath.Join(dir, "local"), BaseDir: e.BaseDir, Reserve: reserve,
		MachineMax: e.Values.Text("LOOM_LOCAL_MACHINE_MAX"), TenantMax: e.Values.Text("LOOM_LOCAL_TENANT_MAX"),
		NoInternet: !e.Values.Switch("LOOM_LOCAL_INTERNET"), Networks: networks})
}

// diskReserve returns what stays free of disks.
func (e *Environment) diskReserve() (diskspace.Reserve, error) {
	return diskspace.Parse(e.Values.Text("LOOM_DISK_RESERVE"))
}

// Plugins are the providers and automators of this binary.
type Plugins struct {
	Local      *local.Local
	Providers  *provider.Registry
	Automators *automator.Registry
	// External are those in other languages.
	External *external.Found
	// releases are those of the external ones, by type; they change when plugins are read
	// again.
	releases atomic.Pointer[map[string]string]
}

// versions returns the releases of the plugins that are no part of Loom, by type.
func (p *Plugins) versions() map[string]string {
	if found := p.releases.Load(); found != nil {
		return *found
	}
	return nil
}

// noteReleases remembers them.
func (p *Plugins) noteReleases(found *external.Found) {
	releases := map[string]string{}
	for _, one := range found.Plugins {
		for name, t := range one.Manifest.Types {
			if found.Plugin(t.Kind, name) == one { // else a built-in one stays
				releases[name] = one.Manifest.Version
			}
		}
	}
	p.releases.Store(&releases)
}

// Plugins makes those of this binary and finds the external ones.
func (e *Environment) Plugins() (*Plugins, error) {
	machines, err := e.LocalProvider()
	if err != nil {
		return nil, err
	}
	providers := append([]provider.Provider{machines}, e.builtInProviders()...)
	automators := append([]automator.Automator{shell.New()}, builtInAutomators()...)
	if e.Values.Switch("LOOM_MOCK") {
		cloud, err := e.inventedMachines()
		if err != nil {
			return nil, err
		}
		providers = append(providers, mockprovider.NewOn(cloud))
		automators = append(automators, mockautomator.New())
	}
	p := &Plugins{Local: machines}
	if p.Providers, err = provider.NewRegistry(providers...); err != nil {
		return nil, err
	}
	if p.Automators, err = automator.NewRegistry(automators...); err != nil {
		return nil, err
	}
	return p, e.addExternal(p)
}

// InventedFile keeps which machines the mock provider has invented, for all
// processes of the data directory.
const InventedFile = "invented.jsonl"

func (e *Environment) inventedMachines() (*simcloud.Books, error) {
	dir, err := e.DataDir()
	if err != nil {
		return nil, err
	}
	cloud, err := simcloud.Open(filepath.Join(dir, InventedFile))
	if err == nil {
		e.closers = append(e.closers, func() { cloud.Close() })
	}
	return cloud, err
}

// Names lists the plugin types that this process can run, for the list of
// processes.
func (p *Plugins) Names() []string {
	return append(p.Providers.Carried(), p.Automators.Carried()...)
}

// Runner carries out tasks with the plugins; close it with the pool.
func (e *Environment) Runner(p *Plugins, source provisioner.Source) (*provisioner.Runner, *remote.Pool, error) {
	dir, err := e.DataDir()
	if err != nil {
		return nil, nil, err
	}
	user, err := e.confinedUser()
	if err != nil {
		return nil, nil, err
	}
	cache := &provisioner.Cache{Dir: filepath.Join(dir, "provisioner"), Source: source, User: user, Linger: setLinger}
	if c, ok := source.(*catalog.Catalog); ok {
		cache.Laid = e.noteFetched(c)
	}
	networks, err := e.Reach()
	if err != nil {
		return nil, nil, err
	}
	pool := remote.NewPool()
	return &provisioner.Runner{Providers: p.Providers, Automators: p.Automators, Pool: pool, Log: e.Log, Cache: cache, Networks: networks}, pool, nil
}

// setLinger is for how long a set of plugin resources stays at hand after its last use.
const setLinger = 50 * time.Millisecond

// noteFetched tells the catalog which sets of plugin resources this host has. That
// it cannot be told stops no task.
func (e *Environment) noteFetched(c *catalog.Catalog) func(ctx context.Context, tenant loom.TenantID, set int) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return func(ctx context.Context, tenant loom.TenantID, set int) {
		if err := c.NoteFetched(ctx, tenant, host, set); err != nil {
			e.Log.Warn("which plugin resources were fetched could not be noted", "error", err.Error())
		}
	}
}

// CliActor acts for who may use the command line: whoever can reach database and
// keys can do everything anyway.
func CliActor() loom.Actor {
	actor := loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant))
	actor.Role, actor.Via = loom.RoleSuperadmin, "cli"
	return actor
}

// StarterImages are the images of the local provider that templates use unless
// told otherwise.
func (s *System) StarterImages(ctx context.Context) ([]string, error) {
	actor := loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant))
	templates, err := s.Catalog.Entries(ctx, actor, loom.KindTemplate, catalog.ListInput{})
	if err != nil {
		return nil, err
	}
	images := map[string]bool{}
	for _, item := range templates.Items {
		t, ok := item.Entry.(*loom.Template)
		if !ok || t.Defaults.ImageType == "" {
			continue
		}
		entry, _, err := s.Catalog.Entry(ctx, actor, loom.KindImageType, t.Defaults.ImageType, 0)
		if err != nil {
			continue // dangling: the checks of the catalog say so
		}
		if image := entry.(*loom.ImageType).ProviderMap[t.Defaults.Provider]["image"]; image != "" {
			images[image] = true
		}
	}
	return slices.Sorted(maps.Keys(images)), nil
}
