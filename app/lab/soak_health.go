package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/failpoint"
	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/store"
	"loom/provisioner/simcloud"
)

const (
	// soakSeries is how many clusters a lane has at a time whose machines fail by default, soakPlaces how many
	// providers each series takes in turn: incidents at a provider count for ten minutes.
	soakSeries = 6
	soakPlaces = 3
	// soakFewest nodes are in such a cluster.
	soakFewest = 3
	// soakUnmended is for how long an incident may last before a person mends it.
	soakUnmended = 4 * time.Minute
	// soakExhausted is how long a tenant has no repairs left before it may have more.
	soakExhausted = 30 * time.Second
	// soakOverdue is how long after a mending incidents may last.
	soakOverdue = 6 * time.Minute
)

// soakHealthTargets are the points where processes fail while machines do.
var soakHealthTargets = map[string][]soakPoint{
	loom.ProcessProvisioner: join(around("fleet.Record", 100), around("processes.sweep", 3), around("execution.CompleteTasks", 10),
		[]soakPoint{{failpoint.Renewed, 200}, {failpoint.AfterCall, 10}}),
	loom.ProcessScheduler: join(around("clusters.execute", 1), around("clusters.execute", 2), around("fleet.recordDecision", 3), around("fleet.askProviders", 5),
		around("fleet.judgeStale", 5), []soakPoint{{failpoint.Renewed, 200}}),
}

// prepareClouds makes the providers, whose clouds are in this process.
func (l *soakLane) prepareClouds(ctx context.Context) error {
	l.clouds, l.cut = map[loom.ClusterID]*soakCloud{}, map[int]time.Time{}
	names := make([]string, 0, l.soak.series*soakPlaces+1)
	for i := range cap(names) {
		names = append(names, placeName(i))
	}
	few := soakFewRepairs
	if _, err := l.Accounts.UpdateSettings(ctx, l.actor, account.SettingsChange{RepairsPerDay: &few}); err != nil {
		return err
	}
	types, err := l.Catalog.Newest(ctx, l.actor, loom.KindHardwareType, loom.KindImageType)
	if err != nil {
		return err
	}
	for kind, entries := range types {
		for _, entry := range entries {
			var places map[string]map[string]string
			switch e := entry.(type) {
			case *loom.HardwareType:
				places = e.ProviderMap
			case *loom.ImageType:
				places = e.ProviderMap
			}
			for _, name := range names {
				places[name] = places["mock"]
			}
			if _, _, err := l.Catalog.Save(ctx, l.actor, kind, catalog.SaveInput{Entry: entry}); err != nil {
				return err
			}
		}
	}
	for i, name := range names {
		entry := &loom.Provider{Base: loom.Base{Name: name}, Type: "mock", Fields: map[string]any{"addresses": fmt.Sprintf("198.18.%d.0/24", i), "simulator": l.url + "/" + name, "delay_ms": 5, "boot_ms": 50}}
		if _, _, err := l.Catalog.Save(ctx, l.actor, loom.KindProvider, catalog.SaveInput{Entry: entry}); err != nil {
			return err
		}
	}
	return nil
}

func placeName(i int) string { return fmt.Sprintf("soak-place-%d", i) }

// liveFailing has machines of clusters fail until all faults were struck, and judges what Loom
// repairs by itself.
func (l *soakLane) liveFailing(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var background, running sync.WaitGroup
	over, end := context.WithCancel(ctx)
	background.Go(func() { l.disturb(over) })
	referee := &soakReferee{lane: l, nodes: map[loom.NodeID][]store.AutomaticRepair{}, replaced: map[loom.ClusterID]int{}}
	background.Go(func() {
		if err := referee.watch(over); err != nil {
			cancel(err)
		}
	})
	run := func(i, places int, live func(*soakSerial, context.Context) error) {
		s := &soakSerial{lane: l, draw: newSoakDraw(l.soak.seed, uint64(1000*(l.number+1)+i), true)}
		for k := range places {
			name := placeName(i + k*l.soak.series)
			cloud := &soakCloud{Books: simcloud.NewBooks(), provider: name, cut: l.isCut}
			l.mux.Handle("/"+name+"/", http.StripPrefix("/"+name, simcloud.Handler(cloud)))
			s.clouds = append(s.clouds, cloud)
		}
		running.Go(func() {
			if err := live(s, ctx); err != nil {
				cancel(fmt.Errorf("series %d: %w", i, err))
			}
		})
	}
	for i := range l.soak.series {
		run(i, soakPlaces, (*soakSerial).live)
	}
	if l.soak.brakes {
		run(l.soak.series*soakPlaces, 1, (*soakSerial).tryBrakes)
	}
	running.Wait()
	end()
	background.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return referee.look(ctx)
}

// isCut reports whether a process reaches no machine.
func (l *soakLane) isCut(process int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.cut[process])
}

// wasAway reports whether the database is or just was away, so that processes which start end.
func (l *soakLane) wasAway() bool {
	l.soak.mu.Lock()
	away := l.soak.restarted
	l.soak.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away.After(away) {
		away = l.away
	}
	return time.Since(away) < 10*time.Second
}

// pause waits; false says that the lane ends.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// disturb cuts provisioners off from all machines, takes the database away or restarts it, and
// stops all processes for a while as a paused host does, now and then.
func (l *soakLane) disturb(ctx context.Context) {
	seconds := func(from, to int) time.Duration { return time.Duration(from+l.draw.number(to-from)) * time.Second }
	for pause(ctx, seconds(60, 150)) && !l.soak.enough() {
		switch n := l.draw.number(11); {
		case n < 3:
			l.cutOff(l.slots[n%2:n%2+1], seconds(15, 60))
			l.note(loom.ProcessProvisioner, "cut off from all machines")
		case n == 3:
			l.cutOff(l.slots[:2], seconds(15, 90))
			l.note(loom.ProcessProvisioner, "cut off from all machines, as is the other one")
		case n < 6 && l.soak.restart != nil:
			l.note("database", "restarted")
			if err := l.soak.restart(ctx); err != nil {
				l.soak.fail(l, "the database does not restart: "+err.Error())
			}
		case n < 8:
			d := seconds(5, 90)
			l.note("host", fmt.Sprintf("paused for %d minutes", int(d.Minutes())))
			l.pauseHost(ctx, d)
		default:
			d := seconds(1, 15)
			if n == 10 {
				d = seconds(62, 80)
			}
			l.note("database", fmt.Sprintf("away for %d minutes", int(d.Minutes())))
			if err := l.takeDatabase(ctx, d); err != nil {
				l.soak.fail(l, "the database does not come back: "+err.Error())
			}
		}
	}
}

// cutOff keeps processes from all machines for a time.
func (l *soakLane) cutOff(slots []*soakSlot, d time.Duration) {
	for _, slot := range slots {
		slot.mu.Lock()
		pid := slot.pid
		slot.mu.Unlock()
		l.mu.Lock()
		l.cut[pid] = time.Now().Add(d)
		l.mu.Unlock()
	}
}

// pauseHost stops all processes of the lane for a time and lets them go on.
func (l *soakLane) pauseHost(ctx context.Context, d time.Duration) {
	l.mu.Lock()
	l.away = time.Now().Add(d)
	l.mu.Unlock()
	var paused []int
	for _, slot := range l.slots {
		slot.mu.Lock()
		if slot.pid > 0 && syscall.Kill(slot.pid, syscall.SIGSTOP) == nil {
			paused = append(paused, slot.pid)
		}
		slot.mu.Unlock()
	}
	pause(ctx, d)
	for _, pid := range paused {
		syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it may have ended
	}
}

// takeDatabase keeps the processes of the lane from their database for a time.
func (l *soakLane) takeDatabase(ctx context.Context, d time.Duration) error {
	admin, err := store.Open(ctx, l.soak.admin, 1)
	if err != nil {
		return err
	}
	defer admin.Close()
	l.mu.Lock()
	l.away = time.Now().Add(d)
	l.mu.Unlock()
	name, err := store.DatabaseName(ctx, l.System.DB)
	if err != nil {
		return err
	}
	err = store.AllowConnections(ctx, admin, name, soakApplication, false)
	pause(ctx, d)
	return errors.Join(err, store.AllowConnections(context.WithoutCancel(ctx), admin, name, soakApplication, true))
}

// soakSerial is one cluster after another whose machines fail.
type soakSerial struct {
	lane   *soakLane
	draw   *soakDraw
	clouds []*soakCloud
	// of the present one:
	cloud   *soakCloud
	cluster loom.ClusterID
	lives   int // before
}

// live makes clusters, has their machines fail and deletes them.
func (s *soakSerial) live(ctx context.Context) error {
	for ; !s.lane.soak.enough(); s.lives++ {
		s.cloud = s.clouds[s.lives%len(s.clouds)]
		if err := s.life(ctx, fmt.Sprintf("%s-%d", s.cloud.provider, s.lives)); err != nil {
			return err
		}
		s.lane.soak.mu.Lock()
		s.lane.soak.lives++
		s.lane.soak.mu.Unlock()
	}
	return nil
}

func (s *soakSerial) life(ctx context.Context, name string) error {
	l := s.lane
	if err := s.create(ctx, name, soakFewest+s.draw.number(l.soak.nodes-soakFewest+1)); err != nil {
		return err
	}
	protected := s.draw.number(8) == 0
	err := again(ctx, func() error {
		_, err := l.Clusters.Edit(ctx, l.actor, s.cluster, clusters.EditInput{Protected: &protected})
		return err
	})
	if err == nil {
		err = s.allow(ctx, loom.RepairDo)
	}
	if err != nil {
		return err
	}
	for i := range 3 + s.draw.number(4) {
		if l.soak.enough() {
			break
		}
		if err := s.strike(ctx, i == 0 && s.lives == 0); err != nil {
			return err
		}
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := s.compare(ctx); err != nil {
		return err
	}
	return s.delete(ctx)
}

// create makes a cluster and waits until it is well.
func (s *soakSerial) create(ctx context.Context, name string, nodes int) error {
	l := s.lane
	var ref loom.OperationRef
	err := again(ctx, func() (err error) {
		ref, err = l.Clusters.Create(ctx, l.actor, loom.CreateInput{Name: name, Template: "soak", Provider: s.cloud.provider, Machines: nodes, LeaseMillis: -1})
		return err
	})
	if err != nil {
		return err
	}
	s.cluster = ref.Cluster
	l.mu.Lock()
	l.clouds[ref.Cluster] = s.cloud
	l.mu.Unlock()
	return s.settle(ctx)
}

// again does something until it works or Loom refuses it.
func again(ctx context.Context, do func() error) error {
	for deadline := time.Now().Add(soakOverdue); ; {
		err := do()
		kind := loom.AsError(err).Kind
		if err == nil || kind != loom.Internal && kind != loom.Unavailable || time.Now().After(deadline) || !pause(ctx, time.Second) {
			return err
		}
	}
}

// strike has something fail, the first of the list if simple, and waits until Loom mended it,
// for some time at most.
func (s *soakSerial) strike(ctx context.Context, simple bool) error {
	all := s.machines()
	m := all[s.draw.number(len(all))]
	if s.draw.number(2) == 0 {
		m = all[0] // it fails again and again
	}
	at, n := 0, s.draw.number(soakOften)
	for ; !simple && n >= soakFaults[at].often; at++ {
		n -= soakFaults[at].often
	}
	fault := soakFaults[at]
	s.struck(m, fault.name)
	fault.does(s, m)
	if s.draw.number(4) == 0 {
		pause(ctx, time.Duration(s.draw.number(20))*time.Second)
		return ctx.Err()
	}
	_, err := s.until(ctx, s.lane.soak.patience/2+time.Duration(s.draw.number(int(s.lane.soak.patience/2))), true)
	return err
}

// machines are those of the nodes of the cluster.
func (s *soakSerial) machines() []*soakMachine {
	s.cloud.mu.Lock()
	defer s.cloud.mu.Unlock()
	return s.cloud.of(s.cluster)
}

// change changes a machine, and with back changes it back some time later.
func (s *soakSerial) change(m *soakMachine, back bool, do func(is *soakState)) {
	s.cloud.mu.Lock()
	defer s.cloud.mu.Unlock()
	m.change(do)
	if back {
		time.AfterFunc(time.Duration(10+s.draw.number(170))*time.Second, func() {
			s.cloud.mu.Lock()
			defer s.cloud.mu.Unlock()
			m.change(func(is *soakState) { is.state, is.hung, is.failing = loom.StateRunning, false, nil })
		})
	}
}

// list makes lists of the provider wrong for some time.
func (s *soakSerial) list(what string) {
	s.cloud.mu.Lock()
	defer s.cloud.mu.Unlock()
	s.cloud.list, s.cloud.until = what, time.Now().Add(time.Duration(60+s.draw.number(180))*time.Second)
}

func stopped(is *soakState) { is.state = loom.StateStopped }

func missing(is *soakState) { is.state = loom.StateMissing }

func hung(is *soakState) { is.hung = true }

// fails has services fail.
func fails(services ...string) func(is *soakState) {
	return func(is *soakState) {
		is.failing = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(is.failing), services...))))
	}
}

// soakFaults are what may go wrong behind the back of Loom. A list is asked for when a machine
// does not answer.
var soakFaults = []struct {
	name  string
	often int
	does  func(s *soakSerial, m *soakMachine)
}{
	{"service fails", 6, func(s *soakSerial, m *soakMachine) { s.change(m, false, fails("soak-app")) }},
	{"service fails for a while", 2, func(s *soakSerial, m *soakMachine) { s.change(m, true, fails("soak-base")) }},
	{"services of all machines fail", 1, func(s *soakSerial, _ *soakMachine) {
		for _, m := range s.machines() {
			s.change(m, true, fails("soak-base"))
		}
	}},
	{"machine stopped", 5, func(s *soakSerial, m *soakMachine) { s.change(m, false, stopped) }},
	{"machine stopped, and started by somebody", 2, func(s *soakSerial, m *soakMachine) { s.change(m, true, stopped) }},
	{"machine gone", 4, func(s *soakSerial, m *soakMachine) {
		_, _ = s.cloud.Delete(context.Background(), m.ID, 0) // books in memory fail never
	}},
	{"machine gone, and back", 2, func(s *soakSerial, m *soakMachine) { s.change(m, true, missing) }},
	{"machine hangs", 2, func(s *soakSerial, m *soakMachine) { s.change(m, true, hung) }},
	{"zone gone, and back", 1, func(s *soakSerial, _ *soakMachine) {
		for i, m := range s.machines() {
			if i%3 == 0 {
				s.change(m, true, missing)
			}
		}
	}},
	{"machine hangs, list is empty", 2, func(s *soakSerial, m *soakMachine) { s.list(listEmpty); s.change(m, false, hung) }},
	{"machine hangs, list is half", 2, func(s *soakSerial, m *soakMachine) { s.list(listHalf); s.change(m, false, hung) }},
	{"machine stopped and started, list is late", 2, func(s *soakSerial, m *soakMachine) { s.list(listLate); s.change(m, true, stopped) }},
	{"machine gone, list fails", 1, func(s *soakSerial, m *soakMachine) { s.list(listFails); s.change(m, true, missing) }},
}

// soakOften is how often they happen together.
var soakOften = func() (n int) {
	for _, f := range soakFaults {
		n += f.often
	}
	return n
}()

// settle mends everything as a person would, and waits until nothing is wrong any longer.
func (s *soakSerial) settle(ctx context.Context) error {
	wrong, err := s.until(ctx, soakOverdue, false)
	if err != nil || wrong == "" {
		return err
	}
	s.lane.soak.fail(s.lane, fmt.Sprintf("cluster %s is not well %s after all of it was mended: %s", s.cluster, soakOverdue, wrong))
	return fmt.Errorf("cluster %s does not become well", s.cluster)
}

// until waits until nothing is wrong with the cluster, for a time at most, and returns what is.
// Unless alone, a person mends what is left to mend.
func (s *soakSerial) until(ctx context.Context, limit time.Duration, alone bool) (wrong string, err error) {
	l := s.lane
	deadline, asked := time.Now().Add(limit), time.Time{}
	for {
		var trouble error
		if !alone {
			trouble = s.mend(ctx)
		}
		if time.Since(asked) > 12*time.Second {
			asked = time.Now()
			_, _ = l.Fleet.Check(ctx, l.actor, s.cluster, nil) // looks come anyway
		}
		wrong, err := s.wrong(ctx)
		if wrong == "" && err == nil && trouble == nil {
			return "", nil
		}
		l.mu.Lock()
		died := l.died
		l.mu.Unlock()
		switch {
		case died != nil:
			return wrong, died
		case len(l.failed()) > 0:
			return "", errors.New("something else is wrong")
		case time.Now().After(deadline):
			return fmt.Sprint(wrong, errors.Join(trouble, err)), nil
		case !pause(ctx, time.Second):
			return wrong, context.Cause(ctx)
		}
	}
}

// failed returns what is not as it must be.
func (l *soakLane) failed() []string {
	l.soak.mu.Lock()
	defer l.soak.mu.Unlock()
	return slices.Clone(l.soak.failures)
}

// wrong says what is wrong with the cluster by what Loom knows, and by what is.
func (s *soakSerial) wrong(ctx context.Context) (string, error) {
	l := s.lane
	cluster, op, err := l.Clusters.Latest(ctx, l.actor, s.cluster)
	if err != nil {
		return "", err
	}
	if cluster.Status != loom.ClusterActive || op != nil && !op.Status.Final() {
		text := fmt.Sprintf("it is %s", cluster.Status)
		if op != nil {
			text += fmt.Sprintf(", operation %d (%s) is %s, tasks %v, %s %s", op.Ref.Number, op.Action, op.Status, op.Tasks, op.Waiting, op.Message)
		}
		return text, nil
	}
	open := true
	incidents, err := l.Fleet.Incidents(ctx, l.actor, fleet.IncidentsInput{Cluster: s.cluster, Open: &open, Page: loom.Page{Limit: 100}})
	if err != nil {
		return "", err
	}
	health, err := l.Fleet.Health(ctx, l.actor, s.cluster)
	if err != nil {
		return "", err
	}
	var wrong []string
	for _, i := range incidents.Items {
		wrong = append(wrong, fmt.Sprintf("incident %d (%s %s on %s) lasts: %s, %s", i.ID, i.Kind, i.Service, i.Hostname, i.Decision, i.Reason))
	}
	machines := s.machines()
	if len(health.Nodes) != len(machines) {
		wrong = append(wrong, fmt.Sprintf("of %d nodes %d are watched", len(machines), len(health.Nodes)))
	}
	for _, n := range health.Nodes {
		if n.Status != loom.HealthHealthy {
			wrong = append(wrong, fmt.Sprintf("node %s is %s: %s", n.Node, n.Status, n.Message))
		}
		for name, service := range n.Services {
			if !service.PassedAt.After(n.ChangedAt) { // nothing would be repaired yet
				wrong = append(wrong, fmt.Sprintf("%s has not passed on node %s", name, n.Node))
			}
		}
	}
	s.cloud.mu.Lock()
	defer s.cloud.mu.Unlock()
	for _, m := range machines {
		if !m.now().well() {
			wrong = append(wrong, fmt.Sprintf("machine %s is %+v", m.ID, m.now()))
		}
	}
	return strings.Join(wrong, "; "), nil
}

// mend is a person who mends machines, replaces what is gone and retries what failed.
func (s *soakSerial) mend(ctx context.Context) error {
	l := s.lane
	gone, err := s.cloud.mend(ctx, s.cluster)
	if err != nil {
		return err
	}
	cluster, op, err := l.Clusters.Latest(ctx, l.actor, s.cluster)
	switch {
	case err != nil:
		return err
	case op != nil && !op.Status.Final():
		return nil
	case len(gone) > 0: // whatever failed, what is to run on these machines cannot
		_, err = beginChange(ctx, l.Clusters, l.actor, s.cluster, loom.ChangeRepair, clusters.ChangeInput{Nodes: gone})
	case cluster.Status != loom.ClusterActive:
		_, err = beginChange(ctx, l.Clusters, l.actor, s.cluster, loom.ChangeRetry, clusters.ChangeInput{})
	}
	return err
}

// compare compares the nodes of the cluster with its machines, and what Loom says that it began
// with what it did.
func (s *soakSerial) compare(ctx context.Context) error {
	l := s.lane
	var cluster loom.Cluster
	var nodes []loom.Node
	var incidents []loom.Incident
	err := again(ctx, func() (err error) {
		if cluster, err = store.ClusterByID(ctx, l.System.DB, l.actor.Tenant, s.cluster); err == nil {
			nodes, err = store.NodesByCluster(ctx, l.System.DB, l.actor.Tenant, s.cluster)
		}
		if err == nil {
			var list store.IncidentList
			list, err = l.Fleet.Incidents(ctx, l.actor, fleet.IncidentsInput{Cluster: s.cluster, Page: loom.Page{Limit: 200}})
			incidents = list.Items
		}
		return err
	})
	if err != nil {
		return err
	}
	machines := map[loom.NodeID]simcloud.Machine{}
	var wrong []string
	for _, m := range s.cloud.Report().Live {
		if m.Cluster != s.cluster.String() {
			continue
		}
		if _, twice := machines[m.Node]; twice {
			wrong = append(wrong, fmt.Sprintf("node %s has two machines", m.Node))
		}
		machines[m.Node] = m
	}
	for _, n := range nodes {
		m, lives := machines[n.ID]
		wrong = append(wrong, compareNode(n, m, lives, false)...)
		wrong = append(wrong, compareServices(cluster, n, s.cloud.On(m.Key))...)
	}
	counts := map[string]int{}
	for _, i := range incidents {
		text := fmt.Sprintf("incident %s %s", i.Kind, i.Decision)
		if i.Reason != "" {
			text += ": " + i.Reason
		}
		counts[text]++
	}
	l.soak.mu.Lock()
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		l.soak.ended[text] += counts[text]
	}
	l.soak.mu.Unlock()
	if len(wrong) > 0 {
		l.soak.fail(l, fmt.Sprintf("cluster %s: %s", s.cluster, strings.Join(wrong, "; ")))
	}
	return nil
}

// delete deletes the cluster.
func (s *soakSerial) delete(ctx context.Context) error {
	l := s.lane
	off := false
	err := again(ctx, func() error {
		_, err := l.Clusters.Edit(ctx, l.actor, s.cluster, clusters.EditInput{Protected: &off})
		if err == nil {
			_, err = l.Clusters.Delete(ctx, l.actor, s.cluster, clusters.DeleteInput{})
		}
		return err
	})
	for deadline := time.Now().Add(soakOverdue); ; {
		if err != nil && time.Now().After(deadline) {
			return err
		}
		cluster, op, err := l.Clusters.Latest(ctx, l.actor, s.cluster)
		if err == nil && cluster.Status == loom.ClusterTerminated {
			return nil
		}
		if err == nil && (op == nil || op.Status.Final()) {
			_, _ = beginChange(ctx, l.Clusters, l.actor, s.cluster, loom.ChangeDelete, clusters.ChangeInput{}) // it is over or failed; tried again
		}
		if time.Now().After(deadline) {
			l.soak.fail(l, fmt.Sprintf("cluster %s is not deleted", s.cluster))
			return nil
		}
		if !pause(ctx, time.Second) {
			return context.Cause(ctx)
		}
	}
}
