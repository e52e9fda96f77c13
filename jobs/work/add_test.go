package work_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

// shellService is a service that is installed and started by a script.
func shellService(name string) *loom.Service {
	action := loom.ServiceAction{Type: "shell", Fields: map[string]string{"script": name + ".sh"}}
	return &loom.Service{Base: loom.Base{Name: name, Version: 1}, Provisioner: loom.ServiceProvisioner{Actions: map[loom.TaskAction]loom.ServiceAction{
		loom.ActionInstall: action, loom.ActionStart: action,
	}}}
}

// Services that are added reach the workers: the copies of the cluster, its config,
// and what a provisioner remembers of the nodes.
func TestAddedServicesRun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, 5)
	id, nodes := w.cluster(w.tenant, 3)
	w.exec(`UPDATE clusters SET status = 'active', services = $1, config = '{"old": "stays", "hosts": "%host.service.cache%"}'`,
		`{"web": {"name": "web", "provisioner": {"actions": {"start": {"type": "shell", "fields": {}}}}}}`)
	w.exec(`UPDATE nodes SET state = 'ready', services = '{web}', automators = '{shell}', hostname = 'n' || number`)
	cache := shellService("cache")
	cache.DefaultConfig = map[string]any{"cache": map[string]any{"mb": 64}, "old": "goes"}
	cache.Dependencies.Runtime.Requires = []string{"web"}
	_, err := store.InTx(ctx, w.db.DB, func(tx *sqlx.Tx) (bool, error) {
		if err := store.EnsureSuperTenant(ctx, tx); err != nil {
			return false, err
		}
		if _, err := store.InsertCatalogVersion(ctx, tx, loom.SuperTenant, loom.KindProviderType, &loom.PluginType{Base: loom.Base{Name: "mock", Version: 1}}, "admin"); err != nil {
			return false, err
		}
		_, err := store.InsertCatalogVersion(ctx, tx, w.tenant, loom.KindService, cache, "admin")
		return false, err
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen, faults []string
	w.scheduler()
	w.provisioner(newRunner(func(_ context.Context, spec *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		mu.Lock()
		defer mu.Unlock()
		if spec.Service == nil {
			seen = append(seen, string(spec.Action))
			return loom.TaskResult{}
		}
		seen = append(seen, string(spec.Action)+" "+spec.Service.Name)
		if spec.Service.Name != "cache" {
			return loom.TaskResult{}
		}
		config, with := fmt.Sprint(spec.Config), 0
		for _, n := range spec.Nodes {
			if slices.Contains(n.Services, "cache") {
				with++
			}
		}
		if spec.Service.Action.Fields["script"] != "cache.sh" || !slices.Equal(spec.Services, []string{"cache", "web"}) || with != 3 ||
			!strings.Contains(config, "mb:64") || !strings.Contains(config, "old:stays") || !strings.Contains(config, "hosts:n1000,n1001,n1002") {
			faults = append(faults, fmt.Sprintf("%s of %v on node %d among %v, with %s", spec.Action, spec.Service, spec.NodeNumber, spec.Nodes, config))
		}
		return loom.TaskResult{}
	}), 5)
	uc := clusters.New(w.db.DB, w.ring, clusters.Options{})
	ana := loom.Actor{Tenant: w.tenant, TenantName: "t1", User: "ana", Role: loom.RoleUser, Via: "session"}
	end := func(ref loom.OperationRef, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		op, err := store.OperationByRef(ctx, w.db, w.tenant, ref)
		if err != nil {
			t.Fatal(err)
		}
		w.ends(op, 30*time.Second, loom.OperationComplete)
	}
	// The provisioner has read the nodes without the new service.
	end(uc.Begin(ctx, ana, clusters.PreviewInput{Cluster: id, Kind: loom.ChangeStart}))
	mu.Lock()
	seen = nil
	mu.Unlock()
	end(uc.Begin(ctx, ana, clusters.PreviewInput{Kind: loom.ChangeAddServices, Cluster: id, Services: []string{"cache"}}))
	mu.Lock()
	defer mu.Unlock()
	counts := map[string]int{}
	for _, s := range seen {
		counts[s]++
	}
	if want := map[string]int{"bootstrap": 3, "install cache": 3, "start web": 3, "start cache": 3}; fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("ran %v, want %v", counts, want)
	}
	for _, f := range faults {
		t.Error(f)
	}
	if s := w.text(`SELECT status FROM clusters`); s != "active" {
		t.Errorf("the cluster is %s", s)
	}
	if n := w.count(`SELECT count(*) FROM nodes WHERE service_states->>'cache' = 'started' AND services = '{cache,web}' AND task_id IS NULL`); n != len(nodes) {
		t.Errorf("%d nodes run the new service", n)
	}
}
