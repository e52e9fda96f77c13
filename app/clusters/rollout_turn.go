package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

const (
	// rolloutHold is how long a scheduler has a rollout for itself: if it is killed, another
	// takes over after that.
	rolloutHold = 30 * time.Second
	// rolloutPace is how soon after a look a rollout is due again: before a scheduler looks the next
	// time, a second later.
	rolloutPace = 500 * time.Millisecond
	// rolloutsATurn is how many rollouts a call of AdvanceRollouts looks at.
	rolloutsATurn = 50
	// busyFor is how long a rollout waits for a cluster on which another operation runs.
	busyFor = 30 * time.Minute
)

// errNotNow ends the transaction of a turn that must not be taken now.
var errNotNow = errors.New("it is not the turn of the cluster")

// AdvanceRollouts takes the rollouts that are due a step further: it records which operations
// ended, and begins the next. It is a duty of every scheduler; any number may call it at the same
// time.
func (u *Clusters) AdvanceRollouts(ctx context.Context) error {
	var errs []error
	for range rolloutsATurn {
		r, err := store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.Rollout, error) {
			return store.TakeRolloutAllTenants(ctx, tx, rolloutHold)
		})
		if isNotFound(err) {
			break
		}
		if err == nil {
			err = u.advanceRollout(ctx, r.Tenant, r.Number)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("rollout %d of tenant %s: %w", r.Number, r.Tenant, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (u *Clusters) advanceRollout(ctx context.Context, tenant loom.TenantID, number int) error {
	r, err := u.judgeRollout(ctx, tenant, number, rolloutHold)
	if err != nil {
		return err
	}
	var errs []error
	switch r.Status {
	case loom.RolloutAborted:
		errs = append(errs, u.abortOperations(ctx, r))
	case loom.RolloutRunning:
		errs = append(errs, u.beginTurns(ctx, r))
	}
	_, err = u.judgeRollout(ctx, tenant, number, rolloutPace)
	return errors.Join(append(errs, err)...)
}

// judgeRollout records which operations of a rollout ended, and decides what comes next. A
// scheduler looks at it again after a time, if anything is left.
func (u *Clusters) judgeRollout(ctx context.Context, tenant loom.TenantID, number int, next time.Duration) (loom.Rollout, error) {
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.Rollout, error) {
		r, err := store.LockRollout(ctx, tx, tenant, number)
		if err != nil {
			return r, err
		}
		before := r
		ended, err := store.EndRolloutClusters(ctx, tx, tenant, number)
		if err != nil {
			return r, err
		}
		because := r.Status == loom.RolloutStopped && r.Why == tooManyFailed(&r)
		r.Failures += ended[loom.RolloutFailed] + ended[loom.RolloutUndone]
		if because {
			r.Why = tooManyFailed(&r)
		}
		counts, err := store.RolloutCounts(ctx, tx, tenant, number)
		if err != nil {
			return r, err
		}
		if r.Status == loom.RolloutRunning {
			if err := u.decideRollout(ctx, tx, &r, counts); err != nil {
				return r, err
			}
		}
		running := slices.ContainsFunc(counts, func(c store.RolloutCount) bool { return c.Status == loom.RolloutRuns })
		if r.Status != loom.RolloutRunning && !running {
			next = -1 // nothing is left to look at
		}
		if err := store.UpdateRollout(ctx, tx, tenant, r, next); err != nil {
			return r, err
		}
		if len(ended) == 0 && r.Status == before.Status && r.Wave == before.Wave && r.Why == before.Why && r.Failures == before.Failures {
			return r, nil
		}
		return r, store.InsertEvents(ctx, tx, rolloutEvents(r)...)
	})
}

// decideRollout decides what a running rollout does next. The caller holds its row.
func (u *Clusters) decideRollout(ctx context.Context, tx *sqlx.Tx, r *loom.Rollout, counts []store.RolloutCount) error {
	now, err := store.Now(ctx, tx)
	if err != nil {
		return err
	}
	r.Why, r.Until = "", time.Time{}
	waiting, running := 0, 0
	for _, c := range counts {
		if c.Wave > 0 && c.Wave <= r.Wave && c.Status == loom.RolloutWaits {
			waiting += c.Clusters
		}
		if c.Status == loom.RolloutRuns {
			running += c.Clusters
		}
	}
	if waiting+running == 0 {
		if r.WaveEnded.IsZero() {
			r.WaveEnded = now
		}
		if err := u.endWave(ctx, tx, r, now); err != nil {
			return err
		}
	} else {
		r.WaveEnded, r.Continued = time.Time{}, false
	}
	if r.Failures > r.Settings.MaxFailed && r.Status == loom.RolloutRunning {
		r.Status, r.Why, r.Until = loom.RolloutStopped, tooManyFailed(r), time.Time{}
		return nil
	}
	if opens := r.Settings.Opens(now); waiting > 0 && opens.After(now) {
		r.Why, r.Until = "Waits for the next window.", opens
	}
	return nil
}

func tooManyFailed(r *loom.Rollout) string {
	if r.Settings.MaxFailed == 0 {
		return count(r.Failures, "cluster") + " failed."
	}
	return fmt.Sprintf("%s failed, and %d may.", count(r.Failures, "cluster"), r.Settings.MaxFailed)
}

// endWave decides about a rollout of whose present wave nothing waits or runs: the next wave begins
// after the pause, if the clusters are well.
func (u *Clusters) endWave(ctx context.Context, tx *sqlx.Tx, r *loom.Rollout, now time.Time) error {
	health, err := store.HealthOfWave(ctx, tx, r.Tenant, r.Number, r.Wave)
	if err != nil {
		return err
	}
	var unknown []string
	for _, h := range health {
		switch {
		case failsGate(h):
			r.Failures++
			note := fmt.Sprintf("Its health became %s after the change.", h.Now)
			if err := store.SetRolloutCluster(ctx, tx, r.Tenant, r.Number, loom.RolloutCluster{Cluster: h.Cluster, Status: loom.RolloutFailed, Note: note}); err != nil {
				return err
			}
		case h.Now == loom.HealthUnknown:
			unknown = append(unknown, h.Name)
		}
	}
	begins := r.WaveEnded.Add(time.Duration(r.Settings.Pause) * time.Second)
	switch {
	case r.Failures > r.Settings.MaxFailed:
	case r.Wave >= r.Waves:
		r.Status = loom.RolloutComplete
	case r.Continued:
		nextWave(r)
	case r.Settings.Confirm:
		r.Why = fmt.Sprintf("Wave %d waits until somebody continues.", r.Wave+1)
	case now.Before(begins):
		r.Why, r.Until = fmt.Sprintf("Wave %d begins after the pause.", r.Wave+1), begins
	case len(unknown) > 0:
		r.Why = fmt.Sprintf("Wave %d waits until the health of %s is known.", r.Wave+1, loom.And(unknown[:min(len(unknown), namedClusters)]))
	default:
		nextWave(r)
	}
	return nil
}

// failsGate reports whether a cluster is failing, or worse than before its change.
func failsGate(h store.WaveHealth) bool {
	return h.Now == loom.HealthFailing || h.Now == loom.HealthDegraded && h.Before != loom.HealthDegraded && h.Before != loom.HealthFailing
}

// rolloutActor is as whom operations of a rollout act: the user who started it, as he is now.
// False where he may not change the clusters of the tenant any more.
func (u *Clusters) rolloutActor(ctx context.Context, r loom.Rollout) (loom.Actor, bool, error) {
	tenant, err := store.Tenant(ctx, u.q, r.Tenant)
	if err != nil {
		return loom.Actor{}, false, err
	}
	actor := loom.Actor{Tenant: r.Tenant, TenantName: tenant.Name, User: r.StartedBy, Via: fmt.Sprintf("rollout %d", r.Number)}
	user, err := store.User(ctx, u.q, r.Tenant, r.StartedBy)
	if isNotFound(err) || user.Disabled {
		return actor, false, nil
	}
	if err != nil {
		return actor, false, err
	}
	actor.Role, actor.Grants = user.Role, user.Grants
	return actor, actor.May(loom.Operate, actor.InTenant()) == nil, nil
}

// beginTurns begins operations on the clusters whose turn it is, as many as may run.
func (u *Clusters) beginTurns(ctx context.Context, r loom.Rollout) error {
	waiting, err := u.waitingTurns(ctx, r)
	if err != nil || len(waiting) == 0 {
		return err
	}
	actor, may, err := u.rolloutActor(ctx, r)
	if err != nil {
		return err
	}
	if !may {
		return u.stopRunning(ctx, r, fmt.Sprintf("%s, who started it, is no longer an administrator.", r.StartedBy))
	}
	asked, err := readRolloutRequest(r)
	if err != nil {
		return err
	}
	f, err := u.readTurns(ctx, actor, r, asked, waiting)
	if gone := loom.AsError(err); err != nil && gone.Kind == loom.NotFound {
		return u.stopRunning(ctx, r, gone.Message)
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range waiting {
		err := u.takeTurn(ctx, actor, r, asked.Change, f, c)
		if errors.Is(err, errNotNow) {
			break
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", c.Cluster, err))
		}
	}
	return errors.Join(errs...)
}

// waitingTurns are the clusters whose turn it is: as many as may run beside those that do.
func (u *Clusters) waitingTurns(ctx context.Context, r loom.Rollout) ([]loom.RolloutCluster, error) {
	running, err := store.RolloutRunning(ctx, u.q, r.Tenant, r.Number)
	if err != nil || running >= r.Settings.Concurrency || !r.Until.IsZero() {
		return nil, err
	}
	return store.RolloutClustersWith(ctx, u.q, r.Tenant, r.Number, loom.RolloutWaits, r.Wave, r.Settings.Concurrency-running)
}

// readTurns reads what the turns of a rollout need of the catalog, of another rollout, and of what
// it did itself on clusters that get another turn.
func (u *Clusters) readTurns(ctx context.Context, actor loom.Actor, r loom.Rollout, asked RolloutRequest, waiting []loom.RolloutCluster) (f *fleet, err error) {
	f = &fleet{}
	if slices.ContainsFunc(waiting, func(c loom.RolloutCluster) bool { return c.Operation > 0 }) {
		if f.done, err = store.ChangedByRollout(ctx, u.q, actor.Tenant, r.Number); err != nil {
			return nil, err
		}
	}
	switch asked.Change.Kind {
	case loom.ChangeRollback:
		f.operations, err = store.ChangedByRollout(ctx, u.q, actor.Tenant, asked.Rollout)
	case loom.ChangeUpdate:
		if f.world, err = u.readWorld(ctx, actor.Tenant, loom.TenantKinds...); err == nil {
			err = u.readVersions(ctx, actor.Tenant, f.world, asked.Change.Change.Entries)
		}
	}
	return f, err
}

// takeTurn begins the operation on a cluster whose turn it is, or records why not. errNotNow where
// the rollout does not go on by now.
func (u *Clusters) takeTurn(ctx context.Context, actor loom.Actor, r loom.Rollout, in PreviewInput, f *fleet, c loom.RolloutCluster) error {
	cluster, err := store.ClusterByID(ctx, u.q, r.Tenant, c.Cluster)
	if err != nil {
		return err
	}
	latest, err := lastBegun(ctx, u.q, cluster)
	if err != nil {
		return err
	}
	if latest != nil && latest.Ref.Number == f.done[c.Cluster] && latest.Status == loom.OperationComplete {
		return u.passTurn(ctx, r, c, upToDate, "") // somebody retried what had failed
	}
	nodes, err := u.members(ctx, cluster, in.Kind)
	if err != nil {
		return err
	}
	made, code, why, err := u.changeOfMember(ctx, actor, f, in, cluster, nodes, latest)
	if err != nil {
		return err
	}
	if code != "" {
		return u.passTurn(ctx, r, c, code, why)
	}
	if why := made.differsFrom(c, r.Settings.Changed); why != "" {
		return u.passTurn(ctx, r, c, "differs", why)
	}
	err = store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		if err := u.holdTurn(ctx, tx, r, c.Cluster, true); err != nil {
			return err
		}
		if err := made.lockQuota(ctx, tx, r.Tenant); err != nil {
			return err
		}
		ref, err := u.begin(ctx, tx, actor, cluster, made, nil, "update")
		if err != nil {
			return err
		}
		c.Status, c.Operation, c.Note = loom.RolloutRuns, ref.Number, ""
		if err := store.SetRolloutCluster(ctx, tx, r.Tenant, r.Number, c); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, rolloutEvents(r)...)
	})
	var old *stale
	if errors.Is(err, errClusterChanged) || errors.As(err, &old) {
		return nil // it is looked at again
	}
	if err == nil || errors.Is(err, errNotNow) {
		return err
	}
	if code, why = refusal(cluster, err); code == "" {
		return err
	}
	if now, err := store.ClusterByID(ctx, u.q, r.Tenant, c.Cluster); err != nil || now.Revision != cluster.Revision {
		return err // it is another by now, busy for instance: it is looked at again
	}
	return u.passTurn(ctx, r, c, code, why)
}

// nextWave lets the next wave of a rollout begin.
func nextWave(r *loom.Rollout) {
	r.Wave, r.WaveEnded, r.Continued = r.Wave+1, time.Time{}, false
}

// differsFrom returns how a change differs from the one that was shown, "" if it may begin.
func (c *change) differsFrom(shown loom.RolloutCluster, changed loom.RolloutChanged) string {
	if c.digest() == shown.Digest {
		return ""
	}
	effect, _ := c.effect()
	replaced, was := len(c.replaced()), Effect(shown.Effect)
	switch {
	case slices.Index(Effects, effect) <= slices.Index(Effects, was) && replaced <= shown.Replaced && changed == loom.RolloutReplan:
		return ""
	case effect != was:
		return fmt.Sprintf("The change would be “%s” now, not “%s”.", effect.Word(), was.Word())
	case replaced != shown.Replaced:
		return fmt.Sprintf("The change would replace %s now, not %d.", count(replaced, "machine"), shown.Replaced)
	}
	tasks := 0
	for _, n := range shown.Tasks {
		tasks += n
	}
	if tasks != len(c.plan.Tasks) {
		return fmt.Sprintf("The change would take %s now, not %d.", count(len(c.plan.Tasks), "task"), tasks)
	}
	return "The change would start from other versions, or run other tasks, than shown."
}

// holdTurn holds a rollout and a cluster of it. errNotNow unless the cluster still waits for its
// turn and, where an operation begins, that may begin.
func (u *Clusters) holdTurn(ctx context.Context, tx *sqlx.Tx, seen loom.Rollout, id loom.ClusterID, begins bool) error {
	r, err := store.LockRollout(ctx, tx, seen.Tenant, seen.Number)
	if err != nil {
		return err
	}
	c, err := store.LockRolloutCluster(ctx, tx, seen.Tenant, seen.Number, id)
	if err != nil {
		return err
	}
	if r.Status != loom.RolloutRunning || r.StartedBy != seen.StartedBy || r.Wave != seen.Wave || c.Status != loom.RolloutWaits {
		return errNotNow
	}
	if !begins {
		return nil
	}
	running, err := store.RolloutRunning(ctx, tx, seen.Tenant, seen.Number)
	if err != nil {
		return err
	}
	now, err := store.Now(ctx, tx)
	if err == nil && (running >= r.Settings.Concurrency || r.Settings.Opens(now).After(now)) {
		return errNotNow
	}
	return err
}

// passTurn records why no operation begins on a cluster whose turn it is: it is there already, it
// is busy and gets another turn, or it is skipped.
func (u *Clusters) passTurn(ctx context.Context, r loom.Rollout, c loom.RolloutCluster, code, why string) error {
	return store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		if err := u.holdTurn(ctx, tx, r, c.Cluster, false); err != nil {
			return err
		}
		now, err := store.Now(ctx, tx)
		if err != nil {
			return err
		}
		c.Status, c.Note = loom.RolloutSkipped, why
		switch {
		case code == upToDate:
			c.Status, c.Note = loom.RolloutDone, ""
		case code == "busy" && (c.Tried.IsZero() || now.Sub(c.Tried) < busyFor):
			c.Status = loom.RolloutWaits
		}
		if err := store.SetRolloutCluster(ctx, tx, r.Tenant, r.Number, c); err != nil || c.Status == loom.RolloutWaits && !c.Tried.IsZero() {
			return err
		}
		return store.InsertEvents(ctx, tx, rolloutEvents(r)...)
	})
}

// stopRunning stops a rollout for Loom itself, unless it does not run by now.
func (u *Clusters) stopRunning(ctx context.Context, seen loom.Rollout, why string) error {
	return store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		r, err := store.LockRollout(ctx, tx, seen.Tenant, seen.Number)
		if err != nil || r.Status != loom.RolloutRunning || r.StartedBy != seen.StartedBy {
			return err
		}
		r.Status, r.Why, r.Until = loom.RolloutStopped, why, time.Time{}
		if err := store.UpdateRollout(ctx, tx, r.Tenant, r, 0); err != nil {
			return err
		}
		return u.noteRollout(ctx, tx, loom.SystemActor(r.Tenant, string(r.Tenant)), r, "stop", loom.RolloutRunning)
	})
}

// abortOperations aborts the operations of an aborted rollout that run.
func (u *Clusters) abortOperations(ctx context.Context, r loom.Rollout) error {
	running, err := store.RolloutClustersWith(ctx, u.q, r.Tenant, r.Number, loom.RolloutRuns, 0, loom.MaxRolloutConcurrency)
	errs := []error{err}
	actor := loom.SystemActor(r.Tenant, string(r.Tenant))
	for _, c := range running {
		errs = append(errs, store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
			op, err := store.LockOperation(ctx, tx, r.Tenant, loom.OperationRef{Cluster: c.Cluster, Number: c.Operation})
			if err != nil || op.Status == loom.OperationRollingBack {
				return err // what is undone already goes on
			}
			return u.abort(ctx, tx, actor, &op, fmt.Sprintf("Aborted with rollout %d.", r.Number))
		}))
	}
	return errors.Join(errs...)
}
