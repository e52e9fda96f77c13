package clusters_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// bundle is what a test works on: a database with a tenant, a small catalog and
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
	db := setupTemplate.NewDatabase(t, func(db *testkit.Database) {
		(&bundle{t: t, ctx: context.Background(), db: db, tenant: testTenant}).fillTenants()
	})
	b := &bundle{t: t, ctx: ctx, db: db, ring: ring, tenant: testTenant}
	b.clusters = clusters.New(b.db.DB, ring, opts)
	return b
}

// setupTemplate is the database that tests begin with.
var setupTemplate testkit.Template

const testTenant loom.TenantID = "t1"

// fillTenants stores two tenants with their users and the catalog of one.
func (b *bundle) fillTenants() {
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

func (b *bundle) ana() loom.Actor { return b.actor("ana", loom.RoleUser) }

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

func (b *bundle) configure(actor loom.Actor, id loom.ClusterID, in clusters.ConfigureInput, fields map[string]any) (loom.OperationRef, error) {
	return b.clusters.Begin(b.ctx, actor, clusters.PreviewInput{Kind: loom.ChangeConfigure, Cluster: id, Configure: &in, ProviderFields: fields})
}

func (b *bundle) authorize(actor loom.Actor, id loom.ClusterID, fields map[string]any) (loom.OperationRef, error) {
	return b.clusters.Begin(b.ctx, actor, clusters.PreviewInput{Kind: loom.ChangeAuthorize, Cluster: id, ProviderFields: fields})
}

func (b *bundle) retryOf(actor loom.Actor, of loom.OperationRef, in clusters.ChangeInput) (loom.OperationRef, error) {
	in.Operation = of.Number
	return b.clusters.Begin(b.ctx, actor, clusters.PreviewInput{Kind: loom.ChangeRetry, Cluster: of.Cluster, Change: in})
}

func (b *bundle) rollbackOf(actor loom.Actor, of loom.OperationRef) (loom.OperationRef, error) {
	return b.clusters.Begin(b.ctx, actor, clusters.PreviewInput{Kind: loom.ChangeRollback, Cluster: of.Cluster, Change: clusters.ChangeInput{Operation: of.Number}})
}

// active makes a cluster of ana with all its operations ended.
func (b *bundle) active(machines int) loom.ClusterID {
	b.t.Helper()
	id := b.create(b.ana(), machines).Cluster
	b.finish(id, loom.ClusterActive)
	return id
}

func (b *bundle) cluster(id loom.ClusterID) clusters.ClusterView {
	b.t.Helper()
	v, err := b.clusters.Cluster(b.ctx, b.admin(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// withRoles returns the services of the bundle what changes of a layout look at: db
// follows web, all can be stopped and only web be removed; there is a larger type.
func (b *bundle) withRoles() {
	b.t.Helper()
	for _, name := range []string{"db", "web"} {
		b.save(b.tenant, loom.KindService, role(name))
	}
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "xlarge"}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "l1"}}})
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "alien"}, ProviderMap: map[string]map[string]string{"moon": {"flavor": "m1"}}})
}

// renew stores a version of a role that means other work than the one before.
func (b *bundle) renew(name string) {
	b.t.Helper()
	s := role(name)
	s.Provisioner.Actions[loom.ActionInstall].Fields["args"] = fmt.Sprint("newer than ", b.count(`SELECT max(version) FROM catalog_versions WHERE tenant_id = $1 AND name = $2`, b.tenant, name))
	b.save(b.tenant, loom.KindService, s)
}

func role(name string) *loom.Service {
	s := service(name, []string{"base"})
	for _, action := range []loom.TaskAction{loom.ActionConfigure, loom.ActionStop} {
		s.Provisioner.Actions[action] = s.Provisioner.Actions[loom.ActionStart]
	}
	if name == "db" {
		s.Follows = []string{"web"}
		return s
	}
	s.Provisioner.Actions[loom.ActionRemove] = s.Provisioner.Actions[loom.ActionStart]
	return s
}

func (b *bundle) previewOf(kind loom.ChangeKind, id loom.ClusterID, in clusters.ChangeInput) clusters.PreviewView {
	b.t.Helper()
	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: kind, Cluster: id, Change: in})
	if err != nil {
		b.t.Fatalf("preview of %s: %v", kind, err)
	}
	again, err := b.clusters.PreviewByID(b.ctx, b.ana(), v.ID)
	if err != nil || again.Hash != v.Hash || again.Summary() != v.Summary() || len(again.Plan.Tasks) != len(v.Plan.Tasks) {
		b.t.Errorf("%s read again: %q, %v", kind, again.Summary(), err)
	}
	return v
}

func (b *bundle) begin(kind loom.ChangeKind, id loom.ClusterID, in clusters.ChangeInput) (loom.OperationRef, error) {
	return b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Kind: kind, Cluster: id, Change: in})
}

// alter begins a change and carries it out.
func (b *bundle) alter(kind loom.ChangeKind, id loom.ClusterID, in clusters.ChangeInput) loom.OperationRef {
	b.t.Helper()
	ref, err := b.begin(kind, id, in)
	if err != nil {
		b.t.Fatalf("%s: %v", kind, err)
	}
	b.runTasks("")
	if c := b.cluster(id); c.Status != loom.ClusterActive || c.Latest.Status != loom.OperationComplete {
		b.t.Fatalf("%s left the cluster %s, the operation %s: %s", kind, c.Status, c.Latest.Status, c.Latest.Message)
	}
	return ref
}

// node is the id of the node of a number.
func (b *bundle) node(id loom.ClusterID, number int) loom.NodeID {
	b.t.Helper()
	v := b.cluster(id)
	for _, n := range slices.Concat(v.Nodes, v.FormerNodes) {
		if n.Number == number {
			return n.ID
		}
	}
	b.t.Fatalf("no node %d", number)
	return ""
}

// members are "number incarnation hardware services" of the nodes that a cluster
// shows; the state is added where it is not ready, and "leaving".
func (b *bundle) members(id loom.ClusterID) []string {
	b.t.Helper()
	var out []string
	for _, n := range b.cluster(id).Nodes {
		text := fmt.Sprintf("%d %d %s %s", n.Number, n.Incarnation, n.HardwareType, strings.Join(n.Services, "+"))
		if n.State != loom.NodeReady {
			text += " " + string(n.State)
		}
		if n.Leaving {
			text += " leaving"
		}
		out = append(out, text)
	}
	return out
}

// steps counts the tasks of a plan by "action service@node".
func steps(plan loom.Plan) []string {
	var out []string
	for _, t := range plan.Tasks {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s", t.Action, t.Service))+fmt.Sprintf("@%d", t.NodeNumber))
	}
	slices.Sort(out)
	return out
}

func (b *bundle) before(ref loom.OperationRef) *loom.Snapshot {
	b.t.Helper()
	s, err := store.SnapshotBefore(b.ctx, b.db, b.tenant, ref)
	if err != nil || s == nil {
		b.t.Fatalf("no layout before %s: %v", ref, err)
	}
	return s
}

// says looks for texts in the message, reasons and fields of an error.
func says(err error, texts ...string) error {
	e := loom.AsError(err)
	all := e.Message
	if e.Unsat != nil {
		for _, r := range e.Unsat.Reasons {
			all += "\n" + r.Message
		}
	}
	for _, f := range e.Fields {
		all += "\n" + f.Field + ": " + f.Message
	}
	for _, text := range texts {
		if !strings.Contains(all, text) {
			return fmt.Errorf("%q is not said in: %s", text, all)
		}
	}
	return nil
}
