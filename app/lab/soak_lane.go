package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"loom/app/config"
	"loom/app/hook"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/wiring"
	"loom/provisioner/simcloud"
)

// soakLane is one installation: a database, two provisioners and two schedulers,
// and a cloud in this process, where no kill reaches it.
type soakLane struct {
	*environment
	*wiring.System
	soak   *soak
	number int
	// life counts the clusters, made are those that are known to be there.
	life int
	made []loom.ClusterID
	// latest is the number of the newest operation of the cluster and ended how it did,
	// past what the cluster was before each, back that which a rollback takes back.
	// releases counts the versions of services.
	latest, back, releases int
	ended                  loom.OperationStatus
	past                   map[int]soakShape
	// lookup is how CREATE finds machines. Where it looks for itself and then asks for
	// one, a frozen process may have looked before another made one, as with clouds
	// that know no tokens: there is no freezing then.
	lookup  string
	draw    *soakDraw
	dir     string
	actor   loom.Actor
	books   *simcloud.Books
	url     string
	server  *http.Server
	environ []string // of its processes, but for data directory and faults
	stop    context.CancelFunc
	running sync.WaitGroup
	slots   []*soakSlot
	// calm says that processes that start get no faults yet.
	calm atomic.Bool

	mux *http.ServeMux
	// clouds are those of clusters whose machines fail, cut the processes that reach none until
	// a time; away is when the database was last away.
	clouds map[loom.ClusterID]*soakCloud
	cut    map[int]time.Time
	away   time.Time

	mu      sync.Mutex
	recent  []string       // faults since the cluster began, the latest ones
	notices map[string]int // by delivery
	died    error
}

// soakWorkers is how many tasks a provisioner of a lane runs at once: few, so that
// a kill does not interrupt the same task again and again.
const soakWorkers = 4

// soakApplication is the name of the sessions of its processes.
const soakApplication = "loom-soak"

// soakCatalog is the folder with the template and the services of its clusters.
const soakCatalog = "benchdata/soak"

// newLane makes the installation and starts its processes. The caller ends it,
// also after an error.
func (s *soak) newLane(ctx context.Context, number int) (*soakLane, error) {
	l := &soakLane{soak: s, number: number, lookup: "token", books: simcloud.NewBooks(), notices: map[string]int{}}
	if number%2 == 1 {
		l.lookup = "list"
	}
	if s.health {
		l.lookup = "token"
	}
	l.draw = newSoakDraw(s.seed, uint64(number), l.lookup == "token")
	if s.health {
		l.draw.targets, l.draw.least, l.draw.rare = soakHealthTargets, 800, 3
	}
	if s.rollouts {
		l.draw.targets = soakRolloutTargets
		l.calm.Store(true)
	}
	dsn, err := s.dsn(ctx, number)
	if err != nil {
		return l, err
	}
	if l.dir, err = os.MkdirTemp("", "loom-lane-"); err != nil {
		return l, err
	}
	if err := l.serve(); err != nil {
		return l, err
	}
	l.environ = append(slicesWithout(s.environ, "LOOM_", "PORT=", "DATABASE_URL="),
		"LOOM_DATABASE_URL="+store.WithSetting(store.WithSetting(dsn, "application_name", soakApplication), store.StandstillSetting, fmt.Sprint(s.leased().Milliseconds())), "LOOM_DATABASE_CONNS=6", "LOOM_SECRET_KEY="+secret.GenerateKey(),
		"LOOM_RESOURCES_URL=file://"+l.dir+"?no_tmp_dir=true&metadata=skip",
		"LOOM_MOCK=true", fmt.Sprintf("LOOM_PROVISIONER_CAPACITY=%d", soakWorkers), "LOOM_HEALTH_ADDR=", "LOOM_HOOK_NETWORKS=127.0.0.0/8",
		"LOOM_LOG_LEVEL=warn", "LOOM_LOG_FORMAT=text", wiring.TestLease+"="+s.leased().String())
	for _, pair := range s.environ {
		if strings.HasPrefix(pair, "LOOM_TEST_") && !strings.HasPrefix(pair, wiring.TestLease+"=") {
			l.environ = append(l.environ, pair)
		}
	}
	environ := append([]string{"LOOM_DATABASE_URL=" + dsn, "LOOM_DATA_DIR=" + filepath.Join(l.dir, "web")}, l.environ...)
	values, err := config.Load(nil, environ)
	if err != nil {
		return l, err
	}
	l.environment = &environment{&wiring.Environment{Values: values, Log: slog.New(slog.DiscardHandler), Out: s.out, ErrOut: s.out, Lease: s.leased()}}
	if err := l.prepare(ctx); err != nil {
		return l, err
	}
	l.start(ctx)
	return l, nil
}

// serve begins to answer for the cloud and as the endpoint of hooks.
func (l *soakLane) serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	l.url = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	l.mux = mux
	mux.Handle("/", simcloud.Handler(l.books))
	mux.HandleFunc("/hook", func(_ http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.notices[r.Header.Get("X-Loom-Event")+" "+r.Header.Get("X-Loom-Delivery")]++
	})
	l.server = &http.Server{Handler: mux}
	go l.server.Serve(listener) //nolint:errcheck // ends with Close
	return nil
}

// prepare makes catalog, tenant and hook.
func (l *soakLane) prepare(ctx context.Context) error {
	var err error
	if l.System, err = l.environment.System(ctx); err != nil {
		return err
	}
	p, err := l.Plugins()
	if err != nil {
		return err
	}
	if err := l.Catalog.RegisterTypes(ctx, p.Providers.Types(), p.Automators.Types()); err != nil {
		return err
	}
	if _, err := l.Accounts.EnsureSuperadmin(ctx); err != nil {
		return err
	}
	if _, err := l.Accounts.EnsureDemo(ctx, 2*soakWorkers-1); err != nil {
		return err
	}
	demo, err := l.Accounts.Tenant(ctx, wiring.CliActor(), "demo")
	if err != nil {
		return err
	}
	l.actor = loom.SystemActor(demo.ID, demo.Name)
	l.actor.User, l.actor.Role = loom.AdminUser, loom.RoleAdmin
	for _, folder := range []string{"benchdata", soakCatalog} {
		if _, err := l.Load(ctx, l.actor, wiring.Sub(benchCatalog, folder), nil); err != nil {
			return err
		}
	}
	if l.soak.health {
		return l.prepareClouds(ctx)
	}
	_, _, err = l.Hooks.Create(ctx, l.actor, hook.Input{Name: "soak", URL: l.url + "/hook", Enabled: true})
	return err
}

// start starts the processes and keeps them running.
func (l *soakLane) start(ctx context.Context) {
	ctx, l.stop = context.WithCancel(ctx)
	for i, kind := range []string{loom.ProcessProvisioner, loom.ProcessProvisioner, loom.ProcessScheduler, loom.ProcessScheduler} {
		slot := &soakSlot{lane: l, kind: kind, dir: filepath.Join(l.dir, fmt.Sprintf("process%d", i))}
		l.slots = append(l.slots, slot)
		l.running.Go(func() {
			if err := slot.run(ctx); err != nil {
				l.mu.Lock()
				l.died = errors.Join(l.died, err)
				l.mu.Unlock()
			}
		})
	}
}

// note counts a fault that struck.
func (l *soakLane) note(kind, what string) {
	point, rest, _ := strings.Cut(what, " hit ")
	_, action, _ := strings.Cut(rest, ": ")
	l.soak.strike(strings.TrimSpace(fmt.Sprintf("%s %s %s", kind, point, action)))
	l.remember(kind + " " + what)
}

// remember keeps a fault for a failure.
func (l *soakLane) remember(fault string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recent = append(l.recent, fault); len(l.recent) > keptLines {
		l.recent = l.recent[1:]
	}
}

// end ends the processes and removes what the lane made, but for its database.
func (l *soakLane) end() error {
	if l.stop != nil {
		l.stop()
	}
	l.running.Wait()
	if l.environment != nil {
		l.environment.Close()
	}
	if l.server != nil {
		l.server.Close()
	}
	if l.dir == "" {
		return nil
	}
	return os.RemoveAll(l.dir)
}
