package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"loom/app/failpoint"
	"loom/app/loom"
	"loom/app/store"
	"loom/app/wiring"
	"loom/app/wiring/devdb"
	"loom/migrations"
)

const (
	// soakChangesEach is how many changes each of them goes through.
	soakChangesEach = 2
	// soakLease is the lease of its processes by default: short, because a
	// killed one is waited for that long, but not so short that a host with something
	// else to do loses leases all the time.
	soakLease = 1500 * time.Millisecond
	// soakPatience is how long an operation may stand still, and its rest take: longer
	// than what a process fetched and never heard of waits for the reconciler.
	soakPatience = 6 * time.Minute
)

// soak kills, freezes and cuts off the processes of small installations while
// clusters of simulated machines come and go, and looks after each operation
// whether anything was lost, doubled or left behind.
type soak struct {
	points, lanes, nodes int
	// changes is how many there are in the life of a cluster, between its growing and its
	// shrinking; 0 counts as 1.
	changes int
	seed    uint64
	lease   time.Duration // 0 means soakLease
	// fault, if not empty, is what every provisioner and scheduler gets, once each,
	// instead of faults drawn by the seed.
	fault string
	// health makes machines fail behind Loom's back, and Loom repairs them by itself. series is
	// the number of clusters at a time in each lane, patience how long an incident may last
	// before a person mends it, and admin the DSN of another database of the server. brakes says that
	// single brakes are tried as well; restart restarts the server, nil where others use it too.
	health   bool
	brakes   bool
	restart  func(ctx context.Context) error
	series   int
	patience time.Duration
	admin    string
	// rollouts says that changes are rolled out over fleets of so many clusters; a hasty person does
	// not wait until another scheduler takes over what a dead one held.
	rollouts bool
	fleet    int
	hasty    bool
	// dsn makes the database of a lane, migrated.
	dsn func(ctx context.Context, lane int) (string, error)
	out io.Writer
	// environ is what processes get beside their own.
	environ []string

	mu        sync.Mutex
	began     time.Time
	struck    map[string]int // faults by point and action
	ended     map[string]int // operations by kind and outcome
	count     int
	lives     int
	repairs   int // begun by Loom itself
	rolledOut int
	tasks     int
	attempts  int
	failures  []string
	// restarted is when the database restarted last.
	restarted time.Time
	// stall is how long this process itself had no processor at most: others of the host
	// fared no better.
	stall time.Duration
}

// Soak is the subcommand soak.
type Soak struct {
	Points   int           `default:"2000" placeholder:"N" help:"Number of faults [2000]."`
	Seed     uint64        `placeholder:"N" help:"Seed of the faults. The one that a run printed repeats its faults [random]."`
	Lanes    int           `default:"3" placeholder:"N" help:"Number of installations that run side by side [3]."`
	Nodes    int           `default:"20" placeholder:"N" help:"Nodes of their clusters [20]."`
	Lease    time.Duration `default:"1.5s" placeholder:"TIME" help:"Lease of their processes, 1s to 1m [1.5s]. Longer on a busy host: a process that stalls for longer counts as dead."`
	Health   bool          `help:"Make simulated machines, lists of providers and processes fail, and check what Loom repairs by itself."`
	Rollouts bool          `help:"Roll changes out over fleets of small clusters while processes fail and people change clusters, and check what becomes of them."`
	Fault    string        `placeholder:"FAULTS" help:"Faults that every provisioner and scheduler gets once instead, such as execution.CompleteTasks.after:3:kill; then there is one cluster."`
}

// Validate checks numbers, lease and faults.
func (c *Soak) Validate() error {
	for name, n := range map[string]int{"points": c.Points, "lanes": c.Lanes, "nodes": c.Nodes} {
		if n < 1 || n > 1_000_000 {
			return fmt.Errorf("--%s takes a number from 1, not %d", name, n)
		}
	}
	if c.Lease < time.Second || c.Lease > time.Minute {
		return fmt.Errorf("--lease takes a time from 1s to 1m, such as 5s, not %s", c.Lease)
	}
	if c.Health && (c.Fault != "" || c.Nodes < soakFewest) {
		return fmt.Errorf("--health takes no --fault, and clusters of %d nodes or more", soakFewest)
	}
	if c.Rollouts && (c.Fault != "" || c.Health) {
		return fmt.Errorf("--rollouts takes neither --fault nor --health")
	}
	if c.Fault == "" {
		return nil
	}
	if err := failpoint.Check(c.Fault); err != nil {
		return fmt.Errorf("--fault: %w", err)
	}
	return nil
}

// Run runs lanes side by side on a private PostgreSQL that does not wait for
// the disk.
func (c *Soak) Run(ctx context.Context, e *wiring.Environment) (err error) {
	s := &soak{points: c.Points, lanes: c.Lanes, nodes: c.Nodes, changes: soakChangesEach, seed: c.Seed, lease: c.Lease, fault: c.Fault, health: c.Health, brakes: c.Health, rollouts: c.Rollouts, fleet: soakFleet, series: soakSeries, patience: soakUnmended, out: e.Out, environ: os.Environ()}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano() % 1_000_000)
	}
	dir, err := os.MkdirTemp("", "loom-soak-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// The database runs as a user of its own and must get through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	pg, err := devdb.New(devdb.Options{Dir: filepath.Join(dir, "pg"), BinDir: e.Values.Text("LOOM_PG_BIN"), Scratch: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.Remove(context.WithoutCancel(ctx))) }()
	if err := pg.Start(ctx); err != nil {
		return err
	}
	s.admin = pg.DSN("postgres")
	var restarting sync.Mutex
	s.restart = func(ctx context.Context) error {
		s.mu.Lock()
		s.restarted = time.Now()
		s.mu.Unlock()
		restarting.Lock()
		defer restarting.Unlock()
		return errors.Join(pg.Stop(ctx), pg.Start(context.WithoutCancel(ctx)))
	}
	s.dsn = func(ctx context.Context, lane int) (string, error) {
		db, err := store.Open(ctx, pg.DSN("postgres"), 1)
		if err != nil {
			return "", err
		}
		defer db.Close()
		name := fmt.Sprintf("lane%d", lane)
		if err := store.CreateDatabase(ctx, db, name); err != nil {
			return "", err
		}
		return pg.DSN(name), migrations.Up(ctx, pg.DSN(name))
	}
	return s.run(ctx)
}

// run runs all lanes and sums up. Each failure is printed when it is found, with
// the command that repeats it as far as several processes can be repeated.
func (s *soak) run(ctx context.Context) error {
	s.began, s.struck, s.ended = time.Now(), map[string]int{}, map[string]int{}
	fmt.Fprintf(s.out, "Soak: %d faults, clusters of %d nodes, %d lanes, seed %d\n", s.points, s.nodes, s.lanes, s.seed)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lanes sync.WaitGroup
	errs := make([]error, s.lanes)
	for i := range s.lanes {
		lanes.Go(func() {
			lane, err := s.newLane(ctx, i)
			switch {
			case err != nil:
			case s.health:
				err = lane.liveFailing(ctx)
			case s.rollouts:
				err = lane.liveRollouts(ctx)
			default:
				err = lane.live(ctx)
			}
			if err = errors.Join(err, lane.end()); err != nil {
				errs[i] = fmt.Errorf("lane %d: %w", i, err)
				cancel() // what is found is to be looked at, not buried
			}
		})
	}
	stop := make(chan struct{})
	go s.tell(stop)
	go s.watchHost(stop)
	lanes.Wait()
	close(stop)
	s.summary()
	if len(s.failures) > 0 {
		return fmt.Errorf("%d things are not as they must be; repeat with: %s", len(s.failures), s.command())
	}
	return errors.Join(errs...)
}

// leased is the lease of its processes.
func (s *soak) leased() time.Duration { return cmp.Or(s.lease, soakLease) }

// command repeats the run.
func (s *soak) command() string {
	text := fmt.Sprintf("loom soak --seed %d --points %d --lanes %d --nodes %d", s.seed, s.points, s.lanes, s.nodes)
	if s.health {
		text += " --health"
	}
	if s.rollouts {
		text += " --rollouts"
	}
	if s.lease != 0 {
		text += " --lease " + s.lease.String()
	}
	if s.fault != "" {
		text += " --fault " + s.fault
	}
	return text
}

// tell says now and then how far it is.
func (s *soak) tell(stop <-chan struct{}) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			s.mu.Lock()
			fmt.Fprintf(s.out, "  %s: %d faults, %d clusters, %d failures\n", time.Since(s.began).Round(time.Second), s.count, s.lives, len(s.failures))
			s.mu.Unlock()
		}
	}
}

// watchHost measures how long the host lets its processes stand still. What happens on
// one that does so for about as long as a lease takes says little.
func (s *soak) watchHost(stop <-chan struct{}) {
	const step = 20 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		s.mu.Lock()
		s.stall = max(s.stall, time.Since(last)-step)
		s.mu.Unlock()
		last = time.Now()
	}
}

// enough reports whether all faults were struck.
func (s *soak) enough() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count >= s.points || len(s.failures) > 0
}

// strike counts a fault.
func (s *soak) strike(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.struck[what]++
	s.count++
}

// end counts an operation that was looked over.
func (s *soak) end(kind loom.ChangeKind, status loom.OperationStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[fmt.Sprintf("%s %s", kind, status)]++
}

// endRollout counts a rollout that is over.
func (s *soak) endRollout(kind loom.ChangeKind, status loom.RolloutStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[fmt.Sprintf("rollout (%s) %s", kind, status)]++
	s.rolledOut++
}

// stopRollout counts a stop after failures.
func (s *soak) stopRollout(kind loom.ChangeKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[fmt.Sprintf("rollout (%s) stopped after failures", kind)]++
}

// moved counts what a person did to a cluster of a rollout.
func (s *soak) moved(how soakMove) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[fmt.Sprintf("%s in the middle of a rollout", how)]++
}

// repair counts one that Loom began by itself.
func (s *soak) repair(action loom.ClusterAction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[fmt.Sprintf("%s begun by Loom", action)]++
	s.repairs++
}

// fail notes and prints what is not as it must be.
func (s *soak) fail(lane *soakLane, texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range texts {
		where := fmt.Sprintf("lane %d", lane.number)
		if lane.life > 0 {
			where += fmt.Sprintf(", cluster %d", lane.life)
		}
		text = where + ": " + text
		if slices.Contains(s.failures, text) { // what is wrong stays so until the cluster is gone
			continue
		}
		s.failures = append(s.failures, text)
		fmt.Fprintln(s.out, "FAILURE", text)
	}
	fmt.Fprintf(s.out, "  latest faults: %s\n  without a processor for up to %s, leases of %s\n  repeat with: %s\n",
		strings.Join(lane.recent, ", "), s.stall.Round(time.Millisecond), s.leased(), s.command())
}

func (s *soak) summary() {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := time.Since(s.began)
	fmt.Fprintf(s.out, "%d faults in %s (%.1f a minute), %d clusters, %d tasks in %d attempts, without a processor for up to %s, %d failures\n",
		s.count, took.Round(time.Second), float64(s.count)/took.Minutes(), s.lives, s.tasks, s.attempts, s.stall.Round(time.Millisecond), len(s.failures))
	for _, counts := range []map[string]int{s.ended, s.struck} {
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(s.out, "  %5d  %s\n", counts[what], what)
		}
	}
}
