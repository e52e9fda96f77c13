package fleet_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
)

var (
	faultsFlag = flag.Int("faults", 120, "faults of TestRepairsUnderFaults")
	seedFlag   = flag.Uint64("seed", 0, "seed of TestRepairsUnderFaults; 0 draws one")
)

// tick is how far time goes in a step: that between two judgments.
const tick = 15 * time.Second

// wellFor is how long something must have been well before its repair counts as one of what
// was well: longer than it takes to notice.
const wellFor = 5 * tick

// simMachine is a machine as it is, whatever Loom knows of it.
type simMachine struct {
	node        loom.NodeID
	cluster     int
	incarnation int
	state       loom.MachineState // running, stopped or missing
	paused      bool              // it runs and does not answer
	broken      [2]bool           // its services fail
	wellSince   time.Duration
	restored    time.Duration // when a fault that passes by itself does, or somebody else mends it; 0 for none
	repairs     []time.Duration
	replaced    []time.Duration
}

func (m *simMachine) id() string { return fmt.Sprintf("m-%s-%d", m.node[:8], m.incarnation) }

func (m *simMachine) well() bool {
	return m.state == loom.StateRunning && !m.paused && m.broken == [2]bool{}
}

// simServices run on every machine.
var simServices = [2]string{"nginx", "redis"}

// simRepairs is how many repairs the tenant has in a day.
const simRepairs = 40

// simCluster is a cluster with the operation that is at work on it.
type simCluster struct {
	id       loom.ClusterID
	provider string
	machines []*simMachine
	latest   int
	running  *loom.Repair
	ends     time.Duration
}

// simFleet is an installation in which only machines, networks, lists, operations and time are simulated:
// recording, judging and deciding are Loom's own, on a real database. It is the referee as well.
type simFleet struct {
	t        *testing.T
	db       *testkit.Database
	fleet    *fleet.Fleet
	random   *rand.Rand
	now      time.Duration
	clusters []*simCluster
	machines map[loom.NodeID]*simMachine
	// cut are processes that reach no machine, dead those that look at nothing, until when.
	cut, dead map[int]time.Duration
	// lists is what is wrong with the lists of a provider, until when.
	lists    map[string]string
	listsEnd map[string]time.Duration
	old      []map[loom.NodeID]loom.MachineState // how machines were, the newest last
	tenant   []time.Duration                     // automatic repairs
	struck   map[string]int
	begun    map[loom.RepairHow]int
	wrong    []string
}

const simProcesses = 3

func newSimFleet(t *testing.T, seed uint64) *simFleet {
	t.Helper()
	db := testkit.NewDatabase(t)
	s := &simFleet{t: t, db: db, fleet: fleet.New(db.DB), random: rand.New(rand.NewPCG(seed, 1)), machines: map[loom.NodeID]*simMachine{}, cut: map[int]time.Duration{}, dead: map[int]time.Duration{},
		lists: map[string]string{}, listsEnd: map[string]time.Duration{}, struck: map[string]int{}, begun: map[loom.RepairHow]int{}}
	s.exec(`INSERT INTO tenants (id, name) VALUES ('t1', 'demo'), ('superadmin', 'superadmin')`)
	s.exec(`UPDATE tenants SET settings = jsonb_build_object('repairsPerDay', $1::int) WHERE id = 't1'`, simRepairs)
	for p := range simProcesses {
		s.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ($1, 'provisioner', 'h', now() + interval '10 hours')`, simProcess(p))
	}
	for c := range 12 {
		cluster := &simCluster{provider: fmt.Sprintf("p%d", c%2), latest: 1}
		s.must(db.Get(&cluster.id, `INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services, latest_operation, repair)
			VALUES ('t1', 'ana', $1, 'active', 't', 1, '{}', $2, '{}', '{}', 1, '{"service": "do", "stopped": "do", "gone": "do"}') RETURNING id`, fmt.Sprintf("c%d", c), cluster.provider))
		var nodes []loom.NodeID
		s.must(db.Select(&nodes, `INSERT INTO nodes (id, cluster_id, tenant_id, number, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, incarnation)
			SELECT gen_random_uuid(), $1, 't1', 999 + i, 'ready', 'n' || i, 'h', 'i', 'f', 'm', 'root', '{nginx,redis}', '{}', 1 FROM generate_series(1, $2) AS i RETURNING id`, int64(cluster.id), 3+c))
		for _, n := range nodes {
			m := &simMachine{node: n, cluster: c, incarnation: 1, state: loom.StateRunning}
			cluster.machines = append(cluster.machines, m)
			s.machines[n] = m
		}
		s.clusters = append(s.clusters, cluster)
	}
	s.name()
	return s
}

func simProcess(p int) loom.ProcessID { return loom.ProcessID(fmt.Sprintf("p%d", p)) }

func (s *simFleet) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *simFleet) exec(query string, args ...any) {
	s.t.Helper()
	_, err := s.db.Exec(query, args...)
	s.must(err)
}

// name writes what the provider calls the machines.
func (s *simFleet) name() {
	var nodes, ids []string
	for n, m := range s.machines {
		nodes, ids = append(nodes, string(n)), append(ids, m.id())
	}
	s.exec(`UPDATE nodes n SET results = jsonb_build_object('providerid', x.id) FROM unnest($1::uuid[], $2::text[]) AS x (node, id) WHERE n.id = x.node`, textArray(nodes), textArray(ids))
}

func textArray(items []string) string { return "{" + strings.Join(items, ",") + "}" }

// pass lets time pass: what the database holds becomes older.
func (s *simFleet) pass(by time.Duration) {
	s.now += by
	s.fleet.Shift(by)
	for table, columns := range map[string]string{
		"node_health": "since seen_at checked_at wanted_at changed_at down_since listed_at missing_since", "cluster_health": "since", "incidents": "since ended_at decided_at",
		"operations": "created_at started_at ended_at", "provider_requests": "created_at started_at ended_at",
	} {
		var sets []string
		for _, c := range strings.Fields(columns) {
			sets = append(sets, c+" = "+c+" - make_interval(secs => $1)")
		}
		s.exec(`UPDATE `+table+` SET `+strings.Join(sets, ", "), by.Seconds())
	}
}

// step is 15 seconds of the installation.
func (s *simFleet) step() {
	ctx := context.Background()
	s.pass(tick)
	for _, m := range s.machines {
		if m.restored > 0 && s.now >= m.restored {
			m.state, m.paused, m.broken, m.restored, m.wellSince = loom.StateRunning, false, [2]bool{}, 0, s.now
		}
	}
	state := map[loom.NodeID]loom.MachineState{}
	for n, m := range s.machines {
		state[n] = m.state
	}
	s.old = append(s.old, state)
	if len(s.old) > 20 {
		s.old = s.old[1:]
	}
	s.end()
	for p := range simProcesses {
		if s.now >= s.dead[p] {
			s.look(ctx, p)
		}
	}
	if _, err := s.fleet.Judge(ctx); err != nil {
		s.t.Fatal(err)
	}
	s.list(ctx)
	if _, err := s.fleet.DecideRepairs(ctx, s.begin); err != nil {
		s.t.Fatal(err)
	}
}

// watcher is the process that watches a machine: that of a dead one are watched by the others.
func (s *simFleet) watcher(m *simMachine) int {
	first := int(m.node[0]) % simProcesses
	for i := range simProcesses {
		if p := (first + i) % simProcesses; s.now >= s.dead[p] {
			return p
		}
	}
	return -1
}

// look records what a process sees of its machines.
func (s *simFleet) look(ctx context.Context, p int) {
	var seen []loom.HealthSeen
	suspects, reached := 0, 0
	for _, c := range s.clusters {
		if c.running != nil {
			continue // its nodes are changing
		}
		for _, m := range c.machines {
			if s.watcher(m) != p {
				continue
			}
			h := loom.HealthSeen{HealthNode: loom.HealthNode{Node: m.node, Tenant: "t1", Cluster: c.id, Incarnation: m.incarnation, Operation: c.latest}, At: time.Now(), Interval: time.Minute, Load: loom.Load{CPU: 1, Memory: 2, Disk: 3}}
			if m.state != loom.StateRunning || m.paused || s.now < s.cut[p] {
				h.Unreachable = true
				suspects++
			} else {
				reached++
				check := loom.ServiceCheck{Command: "x", Failures: 1, Passes: 1, Grace: 1}
				h.Services = map[string]loom.ServiceSeen{}
				for i, name := range simServices {
					h.Services[name] = loom.ServiceSeen{Check: check, Checked: true, Passed: !m.broken[i], Message: "exit status 7"}
				}
			}
			seen = append(seen, h)
		}
	}
	for i := range seen {
		seen[i].Doubted = suspects > max(3, reached/5)
	}
	if _, err := s.fleet.Record(ctx, simProcess(p), seen); err != nil {
		s.t.Fatal(err)
	}
}

// list answers the lists that Loom asks for, as they are or as something is wrong with them.
func (s *simFleet) list(ctx context.Context) {
	var asked []struct {
		ID       int64  `db:"id"`
		Provider string `db:"provider_name"`
	}
	s.must(s.db.Select(&asked, `SELECT id, provider_name FROM provider_requests WHERE purpose = 'sweep' AND ended_at IS NULL`))
	for _, r := range asked {
		fault := ""
		if s.now < s.listsEnd[r.Provider] {
			fault = s.lists[r.Provider]
		}
		ago, states := 0, s.old[len(s.old)-1]
		switch {
		case fault == "fails":
			s.exec(`UPDATE provider_requests SET started_at = now(), ended_at = now(), failure = 'no' WHERE id = $1`, r.ID)
			continue
		case fault == "late":
			ago = min(len(s.old)-1, 1+s.random.IntN(8))
			states = s.old[len(s.old)-1-ago]
		}
		s.must(store.Exec(ctx, s.db.DB, func(tx *sqlx.Tx) error {
			began := time.Now().Add(-time.Duration(ago) * tick)
			expected, err := store.ExpectedMachines(ctx, tx, "t1", r.Provider, began, "p0")
			if err != nil {
				return err
			}
			var listed []loom.TaggedMachine
			for _, c := range s.clusters {
				for i, m := range c.machines {
					if c.provider == r.Provider && states[m.node] != loom.StateMissing && fault != "empty" && !(fault == "half" && i%2 == 0) {
						listed = append(listed, loom.TaggedMachine{ID: m.id(), Key: loom.IdempotencyKey(m.node, m.incarnation), State: states[m.node]})
					}
				}
			}
			of, believed := loom.JudgeList(expected, listed)
			failure := "doubted"
			if believed {
				failure = ""
				if err := store.RecordListed(ctx, tx, of, began); err != nil {
					return err
				}
			}
			_, err = tx.Exec(`UPDATE provider_requests SET started_at = $2, ended_at = now(), failure = $3 WHERE id = $1`, r.ID, began, failure)
			return err
		}))
	}
}

func (s *simFleet) violate(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf("%s: ", s.now)+fmt.Sprintf(format, args...))
}

// recent counts what happened within a day.
func (s *simFleet) recent(times []time.Duration) int {
	n := 0
	for _, at := range times {
		if s.now-at < 24*time.Hour {
			n++
		}
	}
	return n
}

// judge is the referee: what a repair that Loom begins must not be.
func (s *simFleet) judge(c *simCluster, m *simMachine, how loom.RepairHow) {
	switch how {
	case loom.RepairByRestart:
		if m.well() && s.now-m.wellSince > wellFor {
			s.violate("restarted a service that was well")
		}
	case loom.RepairByReboot:
		if m.state == loom.StateRunning {
			s.violate("rebooted a machine that runs")
		}
	case loom.RepairByReplacement:
		if m.state != loom.StateMissing {
			s.violate("replaced a machine that is %s", m.state)
		}
		replaced := 0
		for _, other := range c.machines {
			replaced += s.recent(other.replaced)
		}
		if s.recent(m.replaced) > 0 || replaced >= max(2, len(c.machines)/10) {
			s.violate("replaced too much in a day")
		}
		m.replaced = append(m.replaced, s.now)
	case loom.RepairByConfigure:
		s.violate("configured by itself")
	}
	bad := 0
	for _, other := range c.machines {
		if !other.well() || s.now-other.wellSince <= wellFor && other.wellSince > 0 {
			bad++
		}
	}
	if bad == 0 {
		s.violate("repaired a cluster in which everything is well")
	}
	if s.recent(m.repairs) >= 2 || s.recent(s.tenant) >= simRepairs {
		s.violate("repaired too often in a day")
	}
	m.repairs, s.tenant = append(m.repairs, s.now), append(s.tenant, s.now)
	s.begun[how]++
}

// begin begins an operation as the use case of clusters does.
func (s *simFleet) begin(ctx context.Context, actor loom.Actor, r loom.Repair, allow func(context.Context, *sqlx.Tx) error, begun func(context.Context, *sqlx.Tx, loom.OperationRef) error) (loom.OperationRef, error) {
	m := s.machines[r.Node]
	c := s.clusters[m.cluster]
	if c.running != nil {
		return loom.OperationRef{}, loom.NewError(loom.Conflict, "busy")
	}
	ref := loom.OperationRef{Cluster: r.Cluster, Number: c.latest + 1}
	err := store.Exec(ctx, s.db.DB, func(tx *sqlx.Tx) error {
		if err := allow(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(`WITH c AS (UPDATE clusters SET latest_operation = $2, status = 'pending' WHERE id = $1)
			INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) VALUES ('t1', $1, $2, $3, 'running', $4)`, int64(r.Cluster), ref.Number, string(r.How.Action()), string(actor.User))
		return errors.Join(err, begun(ctx, tx, ref))
	})
	if err != nil {
		return ref, err
	}
	if actor.User == "system" {
		s.judge(c, m, r.How)
	}
	c.latest, c.running, c.ends = ref.Number, &r, s.now+time.Duration(1+s.random.IntN(4))*tick
	return ref, nil
}

// end ends operations that are over: they mend what they are for, or fail.
func (s *simFleet) end() {
	for _, c := range s.clusters {
		if c.running == nil || s.now < c.ends {
			continue
		}
		m, how := s.machines[c.running.Node], c.running.How
		repair := *c.running
		fails := s.random.IntN(8) == 0
		c.running = nil
		status, cluster := "complete", "active"
		switch {
		case fails && how != loom.RepairByReplacement:
			status = "failed"
		case how == loom.RepairByReplacement:
			m.incarnation++
			*m = simMachine{node: m.node, cluster: m.cluster, incarnation: m.incarnation, state: loom.StateRunning, wellSince: s.now, repairs: m.repairs, replaced: m.replaced}
		case m.state == loom.StateMissing:
			status = "failed"
		case how == loom.RepairByReboot:
			m.state, m.paused, m.broken, m.restored, m.wellSince = loom.StateRunning, false, [2]bool{}, 0, s.now
		default:
			m.broken[slices.Index(simServices[:], repair.Service)] = false
			m.wellSince = s.now
		}
		s.exec(`WITH o AS (UPDATE operations SET status = $3, ended_at = now() WHERE cluster_id = $1 AND number = $2), n AS (UPDATE nodes SET incarnation = $5 WHERE id = $6) UPDATE clusters SET status = $4 WHERE id = $1`,
			int64(c.id), c.latest, status, cluster, m.incarnation, m.node)
		s.exec(`UPDATE nodes SET results = jsonb_build_object('providerid', $2::text) WHERE id = $1`, m.node, m.id())
	}
}

// strike is one fault. Most hit the same few machines again and again.
func (s *simFleet) strike() {
	c := s.clusters[s.random.IntN(len(s.clusters))]
	m := c.machines[s.random.IntN(len(c.machines))]
	if s.random.IntN(2) == 0 {
		c = s.clusters[len(s.clusters)-1-s.random.IntN(2)]
		m = c.machines[s.random.IntN(4)]
	}
	provider := fmt.Sprintf("p%d", s.random.IntN(2))
	later := s.now + time.Duration(2+s.random.IntN(40))*tick
	p := s.random.IntN(simProcesses)
	all := func(until map[int]time.Duration) func() {
		return func() {
			for p := range simProcesses {
				until[p] = later
			}
		}
	}
	list := func(what string) func() {
		return func() { s.lists[provider], s.listsEnd[provider] = what, later }
	}
	faults := []struct {
		name  string
		often int
		does  func()
	}{
		{"service", 8, func() { m.broken[s.random.IntN(2)] = true }},
		{"service, for a while", 2, func() { m.broken[0], m.restored = true, later }},
		{"machine stopped", 5, func() { m.state = loom.StateStopped }},
		{"machine gone", 5, func() { m.state = loom.StateMissing }},
		{"machine stopped, and started by somebody", 3, func() { m.state, m.restored = loom.StateStopped, later }},
		{"machine gone, and back", 3, func() { m.state, m.restored = loom.StateMissing, later }},
		{"machine paused", 2, func() { m.paused, m.restored = true, later }},
		{"zone gone", 1, func() {
			for _, c := range s.clusters {
				for i, m := range c.machines {
					if c.provider == provider && i%3 == 0 {
						m.state, m.restored = loom.StateMissing, later
					}
				}
			}
		}},
		{"provisioner cut off", 2, func() { s.cut[p] = later }}, {"every provisioner cut off", 1, all(s.cut)},
		{"provisioner dead", 2, func() { s.dead[p] = later }}, {"every provisioner dead", 2, all(s.dead)},
		{"scheduler restarted", 1, func() { s.fleet = fleet.New(s.db.DB) }},
		{"database away", 1, func() { s.pass(time.Duration(1+s.random.IntN(10)) * time.Minute) }},
		{"list empty", 1, list("empty")}, {"list half", 1, list("half")}, {"list late", 4, list("late")}, {"list fails", 1, list("fails")},
	}
	at := 0
	for _, f := range faults {
		at += f.often
	}
	at = s.random.IntN(at)
	for _, f := range faults {
		if at -= f.often; at < 0 {
			f.does()
			s.struck[f.name]++
			return
		}
	}
}

// mend is a person who repairs what Loom left, and everything else that is wrong.
func (s *simFleet) mend() {
	for _, c := range s.clusters {
		if c.running != nil {
			continue
		}
		changed := false
		for _, m := range c.machines {
			if !m.well() {
				changed = true
				if m.state == loom.StateMissing {
					m.incarnation++
				}
				m.state, m.paused, m.broken, m.restored, m.wellSince = loom.StateRunning, false, [2]bool{}, 0, s.now
			}
		}
		if !changed {
			continue
		}
		c.latest++
		s.exec(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by, ended_at) VALUES ('t1', $1, $2, 'cluster_repair', 'complete', 'ana', now())`, int64(c.id), c.latest)
		s.exec(`UPDATE clusters SET latest_operation = $2, status = 'active' WHERE id = $1`, int64(c.id), c.latest)
		for _, m := range c.machines {
			s.exec(`UPDATE nodes SET incarnation = $2 WHERE id = $1`, m.node, m.incarnation)
		}
	}
	s.name()
}

// TestRepairsUnderFaults: while machines, networks, lists, provisioners, the scheduler and the
// database fail, Loom repairs nothing that is well, replaces nothing that exists and keeps every limit;
// in the end every incident is over. Only time, machines and operations are simulated.
func TestRepairsUnderFaults(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64N(1_000_000)
	}
	s := newSimFleet(t, seed)
	for range 4 {
		s.step()
	}
	for struck := 0; struck < *faultsFlag; struck++ {
		s.strike()
		for range 2 + s.random.IntN(12) {
			s.step()
		}
		if struck%6 == 5 {
			s.mend()
		}
		if struck%100 == 99 {
			s.pass(25 * time.Hour)
		}
		if len(s.wrong) > 10 {
			break
		}
	}
	clear(s.cut)
	clear(s.dead)
	clear(s.listsEnd)
	for range 30 {
		s.mend()
		s.step()
	}
	var open, held, begun int
	s.must(s.db.Get(&open, `SELECT count(*) FROM incidents WHERE ended_at IS NULL`))
	s.must(s.db.Get(&held, `SELECT count(*) FROM incidents WHERE decision = 'held'`))
	s.must(s.db.Get(&begun, `SELECT count(*) FROM incidents WHERE decision = 'begun'`))
	if open > 0 {
		s.wrong = append(s.wrong, fmt.Sprintf("%d incidents last although everything is well", open))
	}
	total := 0
	for _, n := range s.begun {
		total += n
	}
	if begun != total {
		s.wrong = append(s.wrong, fmt.Sprintf("%d incidents are recorded as repaired, %d repairs began", begun, total))
	}
	if total == 0 || held == 0 {
		s.wrong = append(s.wrong, fmt.Sprintf("%d repairs began and %d are held: the faults prove nothing", total, held))
	}
	for _, name := range slices.Sorted(maps.Keys(s.struck)) {
		t.Logf("%4d %s", s.struck[name], name)
	}
	t.Logf("seed %d, %s: repairs %v, incidents held %d", seed, s.now, s.begun, held)
	for _, w := range s.wrong {
		t.Errorf("seed %d: %s", seed, w)
	}
}
