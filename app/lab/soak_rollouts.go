package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/failpoint"
	"loom/app/loom"
	"loom/app/store"
)

const (
	// soakFleet is how many clusters a lane has whose changes are rolled out, soakRounds how
	// many rollouts they go through before all are deleted and others made.
	soakFleet  = 8
	soakRounds = 6
	// soakPart is which part of the nodes of other clusters those of a fleet have at most.
	soakPart = 5
	// soakOutage is for how long the database of a lane is away where it cannot restart.
	soakOutage = time.Second
	// soakStandstill is after what time without progress a hasty person stops and resumes a rollout.
	soakStandstill = 2 * time.Second
	// soakOwner is who gets clusters in the middle of a rollout.
	soakOwner loom.UserID = "user"
)

// soakRolloutTargets are the points where processes fail while rollouts run.
var soakRolloutTargets = map[string][]soakPoint{
	loom.ProcessProvisioner: join(around("execution.StartTasks", 20), around("execution.CompleteTasks", 20),
		[]soakPoint{{failpoint.Renewed, 20}, {failpoint.BeforeCall, 20}, {failpoint.AfterCall, 20}, {failpoint.ResultKept, 20}}),
	loom.ProcessScheduler: join(around("clusters.AdvanceRollouts", 6), around("clusters.judgeRollout", 10), around("clusters.takeTurn", 3), around("clusters.takeTurn", 5),
		around("clusters.passTurn", 1), around("clusters.abortOperations", 1), around("execution.EndOperation", 3)),
}

// soakMove is what a person does to a cluster in the middle of a rollout.
type soakMove string

const (
	soakExpand  soakMove = "expand"
	soakDelete  soakMove = "delete"
	soakRestart soakMove = "restart" // the cluster is busy for a while
	soakEdit    soakMove = "edit"
	soakProtect soakMove = "protect"
	soakHand    soakMove = "new owner"
)

var soakMoves = []soakMove{soakExpand, soakDelete, soakRestart, soakEdit, soakProtect, soakHand}

// soakFleetLane is a lane with a fleet, which it changes by rollouts.
type soakFleetLane struct {
	*soakLane
	// ids is the fleet, versions are those that the services of each cluster must have.
	ids      []loom.ClusterID
	versions map[loom.ClusterID]map[string]int
	rounds   int
	// of the present rollout:
	kind     loom.ChangeKind
	settings loom.RolloutSettings
	// target are the versions that it leads to, of an update, and past, of a rollback, those that each
	// cluster had; replaces says that it replaces machines and bad that its versions fail here and there.
	target   map[string]int
	past     map[loom.ClusterID]map[string]int
	replaces bool
	bad      bool
	moves    map[loom.ClusterID]soakMove
	mended   map[loom.ClusterID]bool // failed, and rolled back by hand before the rollout resumed
	// tainted are clusters that took bad versions without failing. They are rolled back next, or deleted.
	tainted map[loom.ClusterID]bool
	// checked is, by cluster, the latest operation that was looked over.
	checked map[loom.ClusterID]int
	// last is the latest rollout of versions that somebody may roll back, with what was before.
	last     int
	lastPast map[loom.ClusterID]map[string]int
}

func newSoakFleetLane(l *soakLane) *soakFleetLane {
	return &soakFleetLane{soakLane: l, versions: map[loom.ClusterID]map[string]int{}, tainted: map[loom.ClusterID]bool{}, checked: map[loom.ClusterID]int{}}
}

// liveRollouts makes fleets and rolls changes out over them until all faults were struck.
func (l *soakLane) liveRollouts(ctx context.Context) error {
	s := newSoakFleetLane(l)
	if err := again(ctx, func() error { return s.openBook(ctx) }); err != nil {
		return err
	}
	for {
		s.life++
		s.books.Forget()
		for range soakRounds {
			if err := s.fill(ctx); err != nil {
				return err
			}
			if s.calm.CompareAndSwap(true, false) {
				s.killAll()
			}
			if err := s.round(ctx); err != nil {
				return fmt.Errorf("round %d: %w", s.rounds, err)
			}
			if s.rounds++; s.soak.enough() {
				break
			}
		}
		if err := s.empty(ctx); err != nil {
			return err
		}
		if s.soak.enough() {
			return again(ctx, func() error { return s.checkNotices(ctx) })
		}
	}
}

// killAll kills the processes, which made the first fleet undisturbed. Those that follow get faults.
func (l *soakLane) killAll() {
	for _, slot := range l.slots {
		slot.mu.Lock()
		if slot.pid > 0 && syscall.Kill(slot.pid, syscall.SIGKILL) == nil {
			l.note(slot.kind, "any hit 1: kill")
		}
		slot.mu.Unlock()
	}
}

// fill makes clusters until the fleet is complete.
func (s *soakFleetLane) fill(ctx context.Context) error {
	for len(s.ids) < s.soak.fleet {
		name := fmt.Sprintf("soak-%d-%d-%d", s.life, s.rounds, len(s.ids))
		in := soakCluster(name, s.url, s.lookup, 1+s.draw.number(max(1, s.soak.nodes/soakPart)))
		var id loom.ClusterID
		err := again(ctx, func() error {
			list, err := s.Clusters.Clusters(ctx, s.actor, clusters.ListInput{Q: name})
			if err != nil {
				return err
			}
			if len(list.Items) > 0 { // it was made although its answer was lost
				id = list.Items[0].ID
				return nil
			}
			ref, err := s.Clusters.Create(ctx, s.actor, in)
			id = ref.Cluster
			return err
		})
		if err != nil {
			return err
		}
		s.ids, s.made = append(s.ids, id), append(s.made, id)
		s.soak.mu.Lock()
		s.soak.lives++
		s.soak.mu.Unlock()
	}
	for _, id := range s.ids {
		if _, err := s.rest(ctx, id); err != nil {
			return err
		}
		if s.versions[id] == nil {
			shape, _, err := s.readAgain(ctx, id)
			if err != nil {
				return err
			}
			s.versions[id] = shape.versions
		}
	}
	return s.lookAtAll(ctx)
}

// empty deletes the fleet.
func (s *soakFleetLane) empty(ctx context.Context) error {
	for _, id := range s.ids {
		if err := s.delete(ctx, id); err != nil {
			return err
		}
	}
	for _, id := range s.ids {
		if _, err := s.rest(ctx, id); err != nil {
			return err
		}
	}
	for _, m := range s.books.Report().Live {
		s.soak.fail(s.soakLane, fmt.Sprintf("machine %s of cluster %s is left", m.ID, m.Cluster))
	}
	s.ids, s.last = nil, 0
	clear(s.tainted)
	return nil
}

func (s *soakFleetLane) delete(ctx context.Context, id loom.ClusterID) error {
	err := again(ctx, func() error {
		_, err := s.Clusters.Delete(ctx, s.actor, id, clusters.DeleteInput{})
		return err
	})
	if errors.Is(err, loom.Conflict) { // it began although its answer was lost
		return nil
	}
	return err
}

// rest waits until no operation of a cluster runs, and returns the latest.
func (s *soakFleetLane) rest(ctx context.Context, id loom.ClusterID) (op *loom.Operation, err error) {
	for deadline, done := time.Now().Add(soakPatience), -1; ; {
		err := again(ctx, func() error {
			view, err := s.Clusters.Cluster(ctx, s.actor, id)
			op = view.Latest
			return err
		})
		switch {
		case err != nil:
			return op, err
		case op == nil || op.Status.Final():
			return op, nil
		case op.Tasks[loom.TaskComplete] != done:
			deadline, done = time.Now().Add(soakPatience), op.Tasks[loom.TaskComplete]
		case s.dead() != nil:
			return op, s.dead()
		case time.Now().After(deadline):
			s.soak.fail(s.soakLane, fmt.Sprintf("operation %s (%s) is still %s and got no further for %s", op.Ref, op.Action, op.Status, soakPatience))
			return op, fmt.Errorf("operation %s does not end", op.Ref)
		}
		if !pause(ctx, 50*time.Millisecond) {
			return op, context.Cause(ctx)
		}
	}
}

func (s *soakFleetLane) readAgain(ctx context.Context, id loom.ClusterID) (shape soakShape, nodes []loom.Node, err error) {
	err = again(ctx, func() (err error) {
		shape, nodes, err = s.read(ctx, id)
		return err
	})
	return shape, nodes, err
}

// round is a rollout from its request to its end, and what people do afterwards.
func (s *soakFleetLane) round(ctx context.Context) error {
	in, err := s.plan(ctx)
	if err != nil {
		return err
	}
	number, err := s.make(ctx, in)
	if err != nil || number == 0 {
		return err
	}
	if s.bad { // what is made or updated later is to get versions that work
		err := again(ctx, func() error {
			_, err := s.release(ctx, slices.Collect(maps.Keys(s.target)), "")
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := s.drive(ctx, number); err != nil {
		return err
	}
	if err := s.judge(ctx, number); err != nil {
		return err
	}
	if err := s.heal(ctx); err != nil {
		return err
	}
	return s.lookAtAll(ctx)
}

// plan draws what is rolled out, and how.
func (s *soakFleetLane) plan(ctx context.Context) (in clusters.RolloutInput, err error) {
	s.settings = loom.DefaultRolloutSettings()
	s.settings.Concurrency, s.settings.MaxFailed, s.settings.Pause = 1+s.draw.number(4), s.draw.number(3), s.draw.number(2)
	s.settings.Confirm = s.draw.number(4) == 0
	if s.draw.number(2) == 0 {
		s.settings.Changed = loom.RolloutReplan
	}
	s.kind, s.target, s.past, s.replaces, s.bad = loom.ChangeUpdate, nil, nil, false, false
	s.moves, s.mended = map[loom.ClusterID]soakMove{}, map[loom.ClusterID]bool{}
	in.Settings = s.settings
	if s.draw.number(2) == 0 {
		two := 2
		in.Waves = []loom.Wave{{Count: &two}, {Rest: true}}
	}
	change := &in.Fleet.Change
	what := s.draw.number(8)
	if s.last > 0 && (what > 4 || len(s.tainted) > 0) {
		s.kind, s.past, in.Fleet.Rollout, s.last = loom.ChangeRollback, s.lastPast, s.last, 0
		change.Change.MinHealthy = new(int)
		change.Kind = s.kind
		return in, nil
	}
	switch what {
	case 5:
		s.kind = loom.ChangeRestart
	case 6:
		s.replaces = true
		change.Change.Entries, err = s.otherFlavor(ctx)
	default:
		s.bad = what == 7 || what == 4
		err = again(ctx, func() error { return s.newVersions(ctx) })
		for name, version := range s.target {
			change.Change.Entries = append(change.Change.Entries, store.EntryVersion{Kind: loom.KindService, Name: name, Version: version})
		}
	}
	if s.kind != loom.ChangeRestart {
		change.Change.MinHealthy = new(int)
	}
	change.Kind = s.kind
	return in, err
}

// newVersions stores versions of some services, which fail on some nodes if they are bad.
func (s *soakFleetLane) newVersions(ctx context.Context) (err error) {
	fails := loom.TaskAction("")
	if s.bad {
		fails = []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionStart}[s.draw.number(3)]
	}
	s.target, err = s.release(ctx, s.draw.some(soakServices), fails)
	return err
}

// otherFlavor gives the hardware of all clusters another flavor, which replaces their machines.
func (s *soakFleetLane) otherFlavor(ctx context.Context) (entries []store.EntryVersion, err error) {
	const name = "soak-small"
	flavor := fmt.Sprintf("small-%d", s.rounds)
	err = again(ctx, func() error {
		hardware := &loom.HardwareType{Base: loom.Base{Name: name}, ProviderMap: map[string]map[string]string{"mock": {"flavor": flavor}}}
		saved, _, err := s.Catalog.Save(ctx, s.actor, loom.KindHardwareType, catalog.SaveInput{Entry: hardware})
		if err == nil {
			entries = []store.EntryVersion{{Kind: loom.KindHardwareType, Name: name, Version: saved.Meta().Version}}
		}
		return err
	})
	return entries, err
}

// soakAsk is a request about a rollout.
type soakAsk struct {
	Verb   string
	Number int
	Hash   string
	Make   clusters.RolloutInput
}

// soakAskKind is the word of such a request for a process of its own.
const soakAskKind loom.ChangeKind = "rollout"

func (a soakAsk) send(ctx context.Context, uc *clusters.Clusters, actor loom.Actor) (err error) {
	switch a.Verb {
	case "create":
		_, err = uc.MakeRollout(ctx, actor, a.Make)
	case "start":
		_, err = uc.StartRollout(ctx, actor, a.Number, clusters.StartInput{Hash: a.Hash, Replace: true})
	case "stop":
		_, err = uc.StopRollout(ctx, actor, a.Number)
	case "resume":
		_, err = uc.ResumeRollout(ctx, actor, a.Number)
	case "continue":
		_, err = uc.ContinueRollout(ctx, actor, a.Number)
	case "abort":
		_, err = uc.AbortRollout(ctx, actor, a.Number)
	default:
		err = fmt.Errorf("no verb %q", a.Verb)
	}
	return err
}

// ask sends a request, now and then through a process that is killed right before or after the
// commit. done says whether it took effect; one that Loom refuses did not.
func (s *soakFleetLane) ask(ctx context.Context, a soakAsk) (done bool, err error) {
	before, err := s.asked(ctx, a.Verb)
	if err != nil {
		return false, err
	}
	owner := "clusters.steer"
	if a.Verb == "create" {
		owner = "clusters.keepRollout"
	}
	if faults := s.draw.request(owner); faults != "" && !s.soak.enough() {
		text, err := json.Marshal(a)
		if err != nil {
			return false, err
		}
		committed, died := s.request(ctx, faults, string(soakAskKind), string(text))
		after, err := s.asked(ctx, a.Verb)
		if err != nil {
			return false, err
		}
		// One that was not killed was refused, or found no database.
		if died == nil && committed != (after > before) {
			s.soak.fail(s.soakLane, fmt.Sprintf("the request to %s rollout %d was killed (%s) and left %d entries in the audit log instead of %d", a.Verb, a.Number, faults, after, before))
		}
		if after > before {
			return true, nil
		}
	}
	err = again(ctx, func() error { return a.send(ctx, s.Clusters, s.actor) })
	if err != nil && !errors.Is(err, loom.Conflict) {
		return false, err
	}
	after, err := s.asked(ctx, a.Verb)
	return after > before, err
}

// asked counts how often somebody did something to a rollout.
func (s *soakFleetLane) asked(ctx context.Context, verb string) (n int, err error) {
	err = again(ctx, func() error {
		return s.System.DB.GetContext(ctx, &n, `SELECT count(*) FROM audit WHERE tenant_id = $1 AND kind = 'rollout' AND verb = $2 AND actor = $3`, s.actor.Tenant, verb, string(s.actor.User))
	})
	return n, err
}

// make makes a rollout and starts it; 0 where nothing is to be done.
func (s *soakFleetLane) make(ctx context.Context, in clusters.RolloutInput) (int, error) {
	made, err := s.ask(ctx, soakAsk{Verb: "create", Make: in})
	if err != nil || !made {
		return 0, err
	}
	var views []clusters.RolloutView
	err = again(ctx, func() (err error) {
		views, _, _, err = s.Clusters.Rollouts(ctx, s.actor, nil, loom.Page{Limit: 1})
		return err
	})
	if err != nil {
		return 0, err
	}
	v := views[0]
	if v.Status != loom.RolloutReady {
		s.soak.fail(s.soakLane, fmt.Sprintf("rollout %d is %s before its start", v.Number, v.Status))
	}
	if started, err := s.ask(ctx, soakAsk{Verb: "start", Number: v.Number, Hash: v.Hash}); err != nil || !started {
		return 0, errors.Join(err, fmt.Errorf("rollout %d does not start", v.Number))
	}
	return v.Number, nil
}

// drive goes along with a rollout until it is over: people move clusters meanwhile, stop and
// resume it, and the database restarts.
func (s *soakFleetLane) drive(ctx context.Context, number int) error {
	stops, seen := 0, ""
	moved, nudged := time.Now(), time.Now()
	for {
		var v clusters.RolloutView
		err := again(ctx, func() (err error) {
			v, err = s.Clusters.Rollout(ctx, s.actor, number)
			return err
		})
		if err != nil {
			return err
		}
		if is := fmt.Sprint(v.Status, v.Wave, v.Failures, v.Counts); is != seen {
			seen, moved, nudged = is, time.Now(), time.Now()
		}
		ask := ""
		switch {
		case v.Status.Final() && v.Clusters(loom.RolloutRuns) == 0:
			s.soak.endRollout(s.kind, v.Status)
			return nil
		case s.dead() != nil:
			return s.dead()
		case time.Since(moved) > soakPatience:
			s.soak.fail(s.soakLane, fmt.Sprintf("rollout %d is still %s in wave %d and got no further for %s: %s", number, v.Status, v.Wave, soakPatience, v.Why))
			return fmt.Errorf("rollout %d does not end", number)
		case v.Status == loom.RolloutStopped:
			s.judgeStop(&v)
			if v.Clusters(loom.RolloutRuns) > 0 {
				break // what runs may still fail
			}
			if err := s.mendSome(ctx, number); err != nil {
				return err
			}
			ask = "resume"
			if !s.stoppedByHand(&v) {
				s.soak.stopRollout(s.kind)
				if stops++; stops == 5 || s.draw.number(8) == 0 {
					ask = "abort"
				}
			}
		case v.Status == loom.RolloutRunning && !v.WaveEnded.IsZero() && (s.settings.Confirm || strings.Contains(v.Why, "health")):
			ask = "continue"
		case v.Status == loom.RolloutRunning && s.soak.hasty && time.Since(nudged) > soakStandstill:
			nudged = time.Now()
			ask = "stop"
		default:
			if ask, err = s.disturbRollout(ctx, &v); err != nil {
				return err
			}
		}
		if ask != "" {
			if _, err := s.ask(ctx, soakAsk{Verb: ask, Number: number}); err != nil {
				return err
			}
		}
		if !pause(ctx, 150*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// disturbRollout does something to a rollout that runs, its clusters or the database now and then,
// and returns the verb of a request.
func (s *soakFleetLane) disturbRollout(ctx context.Context, v *clusters.RolloutView) (verb string, err error) {
	if v.Status != loom.RolloutRunning || s.calm.Load() {
		return "", nil
	}
	switch n := s.draw.number(200); {
	case n < 10:
		return "", s.move(ctx, s.ids[s.draw.number(len(s.ids))], soakMoves[s.draw.number(len(soakMoves))])
	case n < 12:
		return "stop", nil
	case n < 14:
		return "continue", nil
	case n == 14 && s.draw.number(4) == 0:
		return "abort", nil
	case n == 15 && !s.soak.enough() && s.soak.restart != nil:
		s.note("database", "restarted")
		return "", s.soak.restart(ctx)
	case n == 15 && !s.soak.enough():
		s.note("database", "away")
		return "", s.takeDatabase(ctx, soakOutage)
	}
	return "", nil
}

// move does something to a cluster. What Loom refuses, for instance while an operation runs, is no
// move.
func (s *soakFleetLane) move(ctx context.Context, id loom.ClusterID, how soakMove) error {
	if s.moves[id] != "" || s.mended[id] || s.tainted[id] && (how == soakExpand || how == soakRestart) {
		return nil // those would fail
	}
	edit := func(in clusters.EditInput) func() error {
		return func() error {
			_, err := s.Clusters.Edit(ctx, s.actor, id, in)
			return err
		}
	}
	begin := func(in clusters.PreviewInput) func() error {
		in.Cluster = id
		return func() error {
			_, err := s.Clusters.Begin(ctx, s.actor, in)
			return err
		}
	}
	yes, owner := true, soakOwner
	do := map[soakMove]func() error{
		soakEdit: edit(clusters.EditInput{Labels: map[string]string{"round": fmt.Sprint(s.rounds)}}), soakProtect: edit(clusters.EditInput{Protected: &yes}), soakHand: edit(clusters.EditInput{Owner: &owner}),
		soakRestart: begin(clusters.PreviewInput{Kind: loom.ChangeRestart}),
		soakDelete: func() error {
			_, err := s.Clusters.Delete(ctx, s.actor, id, clusters.DeleteInput{})
			return err
		},
	}
	if how == soakExpand {
		shape, _, err := s.readAgain(ctx, id)
		if err != nil {
			return err
		}
		do[how] = begin(clusters.PreviewInput{Kind: loom.ChangeExpand, Change: clusters.ChangeInput{Machines: len(shape.hardware) + 1}})
	}
	err := do[how]()
	switch kind := loom.AsError(err).Kind; {
	case err == nil:
		s.moves[id] = how
		s.soak.moved(how)
	case kind == loom.Internal || kind == loom.Unavailable:
		s.moves[id] = how // it may be done although its answer was lost
	}
	return nil
}

// mendSome rolls back, before a rollout resumes, the failed operations of some of its clusters.
func (s *soakFleetLane) mendSome(ctx context.Context, number int) error {
	list, err := s.rolloutClusters(ctx, number)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Status != loom.RolloutFailed || s.mended[c.Cluster] || s.draw.number(2) == 0 {
			continue
		}
		op, err := s.rest(ctx, c.Cluster)
		if err != nil {
			return err
		}
		if op.Ref.Number == c.Operation && (op.Status == loom.OperationFailed || op.Status == loom.OperationAborted) {
			s.mended[c.Cluster] = true
			if err := s.rollBack(ctx, op.Ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// rollBack rolls a failed operation back and waits for the end.
func (s *soakFleetLane) rollBack(ctx context.Context, of loom.OperationRef) error {
	err := again(ctx, func() error {
		_, err := s.Clusters.Begin(ctx, s.actor, clusters.PreviewInput{Kind: loom.ChangeRollback, Cluster: of.Cluster, Change: clusters.ChangeInput{Operation: of.Number}})
		return err
	})
	if err != nil && !errors.Is(err, loom.Conflict) {
		return fmt.Errorf("roll back operation %s: %w", of, err)
	}
	_, err = s.rest(ctx, of.Cluster)
	return err
}

// heal leaves a fleet of clusters that are well: what failed is rolled back, what is protected or
// given away is not any longer, and clusters that are gone or cannot be healed are replaced.
func (s *soakFleetLane) heal(ctx context.Context) error {
	no, admin := false, s.actor.User
	var left []loom.ClusterID
	for _, id := range s.ids {
		op, err := s.rest(ctx, id)
		if err != nil {
			return err
		}
		if op.Status == loom.OperationFailed || op.Status == loom.OperationAborted {
			if err := s.rollBack(ctx, op.Ref); err != nil {
				return err
			}
		}
		var view clusters.ClusterView
		err = again(ctx, func() (err error) {
			view, err = s.Clusters.Cluster(ctx, s.actor, id)
			if err == nil && view.Status != loom.ClusterTerminated {
				_, err = s.Clusters.Edit(ctx, s.actor, id, clusters.EditInput{Protected: &no, Owner: &admin})
			}
			return err
		})
		if err != nil {
			return err
		}
		switch {
		case s.tainted[id] && s.last == 0 && view.Status != loom.ClusterTerminated:
			if err := s.delete(ctx, id); err != nil {
				return err
			}
			fallthrough
		case view.Status == loom.ClusterTerminated:
			delete(s.versions, id)
			delete(s.tainted, id)
		case view.Status == loom.ClusterActive:
			left = append(left, id)
		default:
			s.soak.fail(s.soakLane, fmt.Sprintf("cluster %s is %s after all of it was mended", id, view.Status))
		}
	}
	s.ids = left
	return nil
}

// rolloutClusters reads the clusters of a rollout.
func (s *soakFleetLane) rolloutClusters(ctx context.Context, number int) (all []loom.RolloutCluster, err error) {
	err = again(ctx, func() error {
		list, err := s.Clusters.RolloutClusters(ctx, s.actor, number, clusters.RolloutFilter{}, loom.Page{Limit: 100})
		all = list.Items
		return err
	})
	return all, err
}
