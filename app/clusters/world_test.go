package clusters_test

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// bundle is a test's own world: a database with a tenant, a small catalog and
// the use cases on it.
type bundle struct {
	t        *testing.T
	ctx      context.Context
	db       *testkit.Database
	ring     *secret.Ring
	clusters *clusters.Clusters
	tenant   loom.TenantID
}

func setup(t *testing.T) *bundle {
	return setupWith(t, clusters.Options{})
}

func setupWith(t *testing.T, opts clusters.Options) *bundle {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	ring, err := secret.ParseKeys(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	db := worldTemplate.NewDatabase(t, func(db *testkit.Database) {
		(&bundle{t: t, ctx: context.Background(), db: db, tenant: worldTenant}).fillWorld()
	})
	b := &bundle{t: t, ctx: ctx, db: db, ring: ring, tenant: worldTenant}
	b.clusters = clusters.New(b.db.DB, ring, opts)
	return b
}

// worldTemplate is the database that these worlds begin with.
var worldTemplate testkit.Template

const worldTenant loom.TenantID = "t1"

// fillWorld stores two tenants with their users and the catalog of one.
func (b *bundle) fillWorld() {
	ctx := b.ctx
	b.exec(func(tx *sqlx.Tx) error {
		if err := store.EnsureSuperTenant(ctx, tx); err != nil {
			return err
		}
		_, err := store.InsertTenantAllTenants(ctx, tx, loom.Tenant{ID: "t2", Name: "other", Workers: 1, MaxClusters: 100, MaxNodes: 100})
		if err != nil {
			return err
		}
		_, err = store.InsertTenantAllTenants(ctx, tx, loom.Tenant{ID: b.tenant, Name: "acme", Workers: 5, MaxClusters: 1000, MaxNodes: 1000})
		return err
	})
	b.db.MustExec(`INSERT INTO users (tenant_id, id, role) VALUES ('t1', 'ana', 'user'), ('t1', 'bob', 'user'), ('t1', 'admin', 'admin'), ('t2', 'ana', 'admin'), ('t2', 'admin', 'admin')`)
	b.save(loom.SuperTenant, loom.KindProviderType, labType())
	b.save(b.tenant, loom.KindProvider, &loom.Provider{Base: loom.Base{Name: "lab", Label: "The lab"}, Type: "lab", Fields: map[string]any{"region": "north"}})
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "small"}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "s1", "cost": "0.5"}}})
	b.save(b.tenant, loom.KindImageType, &loom.ImageType{Base: loom.Base{Name: "deb"}, ProviderMap: map[string]map[string]string{"lab": {"image": "deb12", "sshuser": "ops"}}})
	b.save(b.tenant, loom.KindService, service("base", nil))
	b.save(b.tenant, loom.KindService, service("db", []string{"base"}))
	web := service("web", []string{"base"})
	web.Dependencies.Runtime = loom.PhaseDependency{Requires: []string{"db"}, Uses: []string{"cache"}}
	web.Links = []loom.Link{{Label: "Page", URL: "http://%ip.access_v4.self%/"}}
	web.DefaultConfig = map[string]any{"web": map[string]any{"port": 80, "threads": 4}}
	b.save(b.tenant, loom.KindService, web)
	b.save(b.tenant, loom.KindTemplate, siteTemplate())
}

// labType wants a zone and a token from users.
func labType() *loom.PluginType {
	return &loom.PluginType{
		Base: loom.Base{Name: "lab"},
		Parameters: map[string]loom.FieldGroup{
			"admin": {Fields: map[string]loom.FieldSchema{"region": {Label: "Region", Type: "text"}}},
			"user": {Fields: map[string]loom.FieldSchema{
				"zone":  {Label: "Zone", Type: "select", Options: []string{"a", "b"}},
				"token": {Label: "Token", Type: "password"},
			}},
		},
		ResourceTypes: map[string]loom.ResourceType{},
	}
}

func service(name string, requires []string) *loom.Service {
	action := func(verb string) loom.ServiceAction {
		return loom.ServiceAction{Type: "shell", Fields: map[string]string{"script": name + ".sh", "args": verb}}
	}
	return &loom.Service{
		Base:         loom.Base{Name: name},
		Dependencies: loom.Dependencies{Install: loom.PhaseDependency{Requires: requires}},
		Provisioner: loom.ServiceProvisioner{Actions: map[loom.TaskAction]loom.ServiceAction{
			loom.ActionInstall: action("install"), loom.ActionStart: action("start"),
		}},
	}
}

func siteTemplate() *loom.Template {
	one := 1
	return &loom.Template{
		Base: loom.Base{Name: "site"},
		Defaults: loom.Defaults{
			Services: []string{"base", "db", "web"}, Provider: "lab", DNSSuffix: "lab.example",
			Config: map[string]any{"web": map[string]any{"peers": "%host.service.web%", "port": 8080}},
		},
		Constraints: loom.Constraints{
			Layout:   loom.LayoutConstraints{CantCoexist: [][]string{{"db", "web"}}},
			Services: map[string]loom.ServiceConstraint{"db": {Quantities: &loom.Quantities{Min: &one, Max: &one}}},
			Size:     loom.SizeConstraint{Min: 2, Max: 20},
		},
		Links: []loom.Link{{Label: "Web", URL: "http://%host.service.web[0]%/"}, {Label: "Self", URL: "http://%host.self%/"}},
	}
}

func (b *bundle) exec(fn func(tx *sqlx.Tx) error) {
	b.t.Helper()
	if err := store.Exec(b.ctx, b.db.DB, fn); err != nil {
		b.t.Fatal(err)
	}
}

// save stores the next version of a catalog entry.
func (b *bundle) save(tenant loom.TenantID, kind loom.EntityKind, e loom.Entry) {
	b.t.Helper()
	b.exec(func(tx *sqlx.Tx) error {
		n, err := store.CatalogVersionNumber(b.ctx, tx, tenant, kind, e.Meta().Name)
		if err != nil {
			return err
		}
		e.Meta().Version = n + 1
		_, err = store.InsertCatalogVersion(b.ctx, tx, tenant, kind, e, "admin")
		return err
	})
}

func (b *bundle) actor(user loom.UserID, role loom.Role) loom.Actor {
	return loom.Actor{Tenant: b.tenant, TenantName: "acme", User: user, Role: role, Via: "session"}
}

func (b *bundle) ana() loom.Actor   { return b.actor("ana", loom.RoleUser) }
func (b *bundle) admin() loom.Actor { return b.actor("admin", loom.RoleAdmin) }

func request(machines int) loom.CreateInput {
	return loom.CreateInput{Name: "9Web_tier", Template: "site", Machines: machines, LeaseMillis: loom.TemplateLease}
}

func (b *bundle) create(actor loom.Actor, machines int) loom.OperationRef {
	b.t.Helper()
	ref, err := b.clusters.Create(b.ctx, actor, request(machines))
	if err != nil {
		b.t.Fatal(err)
	}
	return ref
}

func (b *bundle) preview(actor loom.Actor, in loom.CreateInput) clusters.PreviewView {
	b.t.Helper()
	v, err := b.clusters.Preview(b.ctx, actor, clusters.PreviewInput{Kind: loom.ChangeCreate, Create: in})
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// finish ends the latest operation as a provisioner would have.
func (b *bundle) finish(id loom.ClusterID, status loom.ClusterStatus) {
	b.t.Helper()
	b.db.MustExec(`UPDATE tasks SET status = 'complete' WHERE cluster_id = $1`, int64(id))
	b.db.MustExec(`UPDATE operations SET status = 'complete', ended_at = now() WHERE cluster_id = $1 AND ended_at IS NULL`, int64(id))
	b.db.MustExec(`UPDATE clusters SET status = $2, revision = revision + 1 WHERE id = $1`, int64(id), status)
}

func (b *bundle) count(query string, args ...any) int {
	b.t.Helper()
	var n int
	if err := b.db.GetContext(b.ctx, &n, query, args...); err != nil {
		b.t.Fatal(err)
	}
	return n
}

func wantKind(t *testing.T, err error, kind loom.Kind) *loom.Error {
	t.Helper()
	e := loom.AsError(err)
	if err == nil || e.Kind != kind {
		t.Fatalf("error %v, want kind %s", err, kind)
	}
	return e
}
