package cli

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/api/wire"
	"loom/app/catalog"
	"loom/app/execution"
	"loom/app/fleet"
	"loom/app/hook"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/app/secret"
	"loom/provisioner"
	"loom/provisioner/automator"
	mockautomator "loom/provisioner/automator/mock"
	"loom/provisioner/automator/shell"
	"loom/provisioner/provider"
	"loom/provisioner/provider/local"
	mockprovider "loom/provisioner/provider/mock"
	"loom/provisioner/remote"
)

// system is every use case on one database, wired once.
type system struct {
	dsn        string
	db         *sqlx.DB
	ring       *secret.Ring
	accounts   *account.Accounts
	catalog    *catalog.Catalog
	clusters   *lifecycle.Clusters
	operations *execution.Operations
	fleet      *fleet.Fleet
	hooks      *hook.Hooks
}

// system opens what the options name and wires the use cases.
func (e *environment) system(ctx context.Context) (*system, error) {
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
	e.closers = append(e.closers, func() { c.Close() })
	networks, err := parseNetworks("LOOM_HOOK_NETWORKS", e.values.Text("LOOM_HOOK_NETWORKS"))
	if err != nil {
		return nil, err
	}
	accounts := account.New(db, ring)
	accounts.Resources = c
	return &system{
		dsn: e.dsn, db: db, ring: ring, catalog: c, accounts: accounts,
		clusters:   lifecycle.New(db, ring, lifecycle.Options{MaxMachines: e.values.Number("LOOM_MAX_CLUSTER_SIZE")}),
		operations: execution.New(db, ring, execution.Options{MaxAttempts: e.values.Number("LOOM_MAX_ATTEMPTS"), Logger: e.log}),
		fleet:      fleet.NewWithOptions(db, fleet.Options{Ring: ring}),
		hooks:      hook.New(db, ring, hook.Options{Networks: networks, PublicURL: e.publicURL(), Body: wire.HookBody}),
	}, nil
}

// publicURL is where clients reach Loom, as far as this process can know.
func (e *environment) publicURL() string {
	switch {
	case e.values.Text("LOOM_PUBLIC_URL") != "":
		return e.values.Text("LOOM_PUBLIC_URL")
	case e.listener != nil:
		return "http://" + e.listener.Addr().String()
	}
	return "http://" + e.values.Text("LOOM_LISTEN_ADDR")
}

// localProvider gives the machines of this host that belong to this instance.
func (e *environment) localProvider() (*local.Local, error) {
	dir, err := e.dataDir()
	if err != nil {
		return nil, err
	}
	return local.New(local.Options{DataDir: filepath.Join(dir, "local"), BaseDir: e.baseDir})
}

// plugins are the providers and automators of this binary.
type plugins struct {
	local      *local.Local
	providers  *provider.Registry
	automators *automator.Registry
}

func (e *environment) plugins() (*plugins, error) {
	machines, err := e.localProvider()
	if err != nil {
		return nil, err
	}
	providers := []provider.Provider{machines}
	automators := []automator.Automator{shell.New()}
	if e.values.Switch("LOOM_MOCK") {
		providers = append(providers, mockprovider.New())
		automators = append(automators, mockautomator.New())
	}
	p := &plugins{local: machines}
	if p.providers, err = provider.NewRegistry(providers...); err != nil {
		return nil, err
	}
	if p.automators, err = automator.NewRegistry(automators...); err != nil {
		return nil, err
	}
	return p, errors.Join(p.providers.Declare(shippedProviders()...), p.automators.Declare(shippedAutomators()...))
}

// names lists the plugin types that this process can run, for the list of
// processes.
func (p *plugins) names() []string {
	return append(p.providers.Carried(), p.automators.Carried()...)
}

// runner carries out tasks with the plugins; close it with the pool.
func (e *environment) runner(p *plugins, source provisioner.Source) (*provisioner.Runner, *remote.Pool, error) {
	dir, err := e.dataDir()
	if err != nil {
		return nil, nil, err
	}
	pool := remote.NewPool()
	return &provisioner.Runner{
		Providers: p.providers, Automators: p.automators, Pool: pool, Log: e.log,
		Cache: &provisioner.Cache{Dir: filepath.Join(dir, "provisioner"), Source: source},
	}, pool, nil
}

// cliActor acts for who may use the command line: whoever can reach database and
// keys can do everything anyway.
func cliActor() loom.Actor {
	actor := loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant))
	actor.Role, actor.Via = loom.RoleSuperadmin, "cli"
	return actor
}

// starterImages are the images of the local provider that templates use unless
// told otherwise.
func (s *system) starterImages(ctx context.Context) ([]string, error) {
	actor := loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant))
	templates, err := s.catalog.Entries(ctx, actor, loom.KindTemplate, catalog.ListInput{})
	if err != nil {
		return nil, err
	}
	images := map[string]bool{}
	for _, item := range templates.Items {
		t, ok := item.Entry.(*loom.Template)
		if !ok || t.Defaults.ImageType == "" {
			continue
		}
		entry, _, err := s.catalog.Entry(ctx, actor, loom.KindImageType, t.Defaults.ImageType, 0)
		if err != nil {
			continue // dangling: the checks of the catalog say so
		}
		if image := entry.(*loom.ImageType).ProviderMap[t.Defaults.Provider]["image"]; image != "" {
			images[image] = true
		}
	}
	return slices.Sorted(maps.Keys(images)), nil
}
