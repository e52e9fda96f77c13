package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

// soakBook has the database of a lane write down, in the transaction that begins an operation of
// a rollout, how the rollout was at that moment: no look from outside is early enough.
const soakBook = `
CREATE TABLE soak_turns (rollout int NOT NULL, cluster_id bigint NOT NULL, operation int, wave int NOT NULL, status text NOT NULL, at_wave int NOT NULL,
	running int NOT NULL, concurrency int NOT NULL, failed int NOT NULL, may_fail int NOT NULL);
CREATE FUNCTION soak_turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO soak_turns
	SELECT r.number, NEW.cluster_id, NEW.operation, NEW.wave, r.status, r.wave, x.running, (r.settings->>'concurrency')::int, x.failed, (r.settings->>'maxFailed')::int
	FROM rollouts r CROSS JOIN LATERAL (
		SELECT count(*) FILTER (WHERE rc.status = 'running' OR o.status NOT IN ('complete', 'failed', 'aborted', 'rolled_back')) AS running,
			count(*) FILTER (WHERE rc.status IN ('failed', 'undone')) AS failed
		FROM rollout_clusters rc LEFT JOIN operations o ON o.cluster_id = rc.cluster_id AND o.number = rc.operation WHERE rc.rollout_id = r.id
	) x WHERE r.id = NEW.rollout_id;
	RETURN NULL;
END $$;
CREATE TRIGGER soak_turn AFTER UPDATE ON rollout_clusters FOR EACH ROW WHEN (NEW.status = 'running' AND OLD.status <> 'running') EXECUTE FUNCTION soak_turn()`

// soakTurn is an entry of the book.
type soakTurn struct {
	Cluster     int64  `db:"cluster_id"`
	Operation   int    `db:"operation"`
	Wave        int    `db:"wave"`
	Status      string `db:"status"`
	AtWave      int    `db:"at_wave"`
	Running     int    `db:"running"`
	Concurrency int    `db:"concurrency"`
	Failed      int    `db:"failed"`
	MayFail     int    `db:"may_fail"`
}

func (s *soakFleetLane) openBook(ctx context.Context) error {
	return store.Exec(ctx, s.System.DB, func(tx *sqlx.Tx) error {
		var there bool
		if err := tx.GetContext(ctx, &there, `SELECT to_regclass('soak_turns') IS NOT NULL`); err != nil || there {
			return err
		}
		_, err := tx.ExecContext(ctx, soakBook)
		return err
	})
}

// wrong says what was wrong when an operation began.
func (t *soakTurn) wrong() []string {
	var wrong []string
	if t.Running > t.Concurrency {
		wrong = append(wrong, fmt.Sprintf("%d clusters were changed at the same time, and %d may be", t.Running, t.Concurrency))
	}
	if t.Failed > t.MayFail {
		wrong = append(wrong, fmt.Sprintf("operation %d of cluster %s began after %d clusters had failed, and %d may", t.Operation, loom.ClusterID(t.Cluster), t.Failed, t.MayFail))
	}
	if t.Status != string(loom.RolloutRunning) || t.Wave > t.AtWave || t.Wave == 0 {
		wrong = append(wrong, fmt.Sprintf("operation %d of cluster %s of wave %d began while the rollout was %s in wave %d", t.Operation, loom.ClusterID(t.Cluster), t.Wave, t.Status, t.AtWave))
	}
	return wrong
}

// soakDeed is what somebody did to a cluster since a rollout started.
type soakDeed struct {
	Object    string `db:"object"`
	Via       string `db:"via"`
	Operation string `db:"operation"`
}

const soakDeeds = `
SELECT object, via, coalesce(after->>'operationId', '') AS operation FROM audit
WHERE tenant_id = $1 AND kind = 'cluster' AND actor = $2 AND result = 'ok' AND id > (SELECT max(id) FROM audit WHERE tenant_id = $1 AND kind = 'rollout' AND verb = 'start' AND object = $3)
ORDER BY id`

// soakCourse is what a rollout did.
type soakCourse struct {
	loom.Rollout
	members map[loom.ClusterID]loom.RolloutCluster
	turns   map[loom.ClusterID][]soakTurn
	// began are the operations that act for the rollout, by cluster; first says whether a move came before.
	began map[loom.ClusterID][]loom.Operation
	first map[loom.ClusterID]bool
	tasks map[loom.ClusterID]map[loom.TaskAction]int // of the last of them
}

// course reads what a rollout did.
func (s *soakFleetLane) course(ctx context.Context, q sqlx.ExtContext, number int) (*soakCourse, error) {
	c := &soakCourse{members: map[loom.ClusterID]loom.RolloutCluster{}, turns: map[loom.ClusterID][]soakTurn{}, began: map[loom.ClusterID][]loom.Operation{},
		first: map[loom.ClusterID]bool{}, tasks: map[loom.ClusterID]map[loom.TaskAction]int{}}
	var err error
	if c.Rollout, err = store.RolloutByNumber(ctx, q, s.actor.Tenant, number); err != nil {
		return nil, err
	}
	list, err := store.RolloutClusters(ctx, q, s.actor.Tenant, number, clusters.RolloutFilter{}, loom.Page{Limit: 100})
	if err != nil {
		return nil, err
	}
	for _, m := range list.Items {
		c.members[m.Cluster] = m
	}
	var turns []soakTurn
	if err := sqlx.SelectContext(ctx, q, &turns, `SELECT cluster_id, coalesce(operation, 0) AS operation, wave, status, at_wave, running, concurrency, failed, may_fail FROM soak_turns WHERE rollout = $1`, number); err != nil {
		return nil, err
	}
	for _, t := range turns {
		c.turns[loom.ClusterID(t.Cluster)] = append(c.turns[loom.ClusterID(t.Cluster)], t)
	}
	var deeds []soakDeed
	if err := sqlx.SelectContext(ctx, q, &deeds, soakDeeds, s.actor.Tenant, string(s.actor.User), strconv.Itoa(number)); err != nil {
		return nil, err
	}
	for _, d := range deeds {
		id, _ := loom.ParseClusterID(d.Object)
		if d.Via != fmt.Sprint("rollout ", number) {
			c.first[id] = c.first[id] || len(c.began[id]) == 0
			continue
		}
		ref, ok := loom.ParseOperationRef(d.Operation)
		if !ok {
			return nil, fmt.Errorf("the audit log names operation %q", d.Operation)
		}
		op, err := store.OperationByRef(ctx, q, s.actor.Tenant, ref)
		if err != nil {
			return nil, err
		}
		c.began[id] = append(c.began[id], op)
		tries, err := store.TaskTriesAllTenants(ctx, q, op.Row)
		if err != nil {
			return nil, err
		}
		c.tasks[id] = map[loom.TaskAction]int{}
		for _, t := range tries {
			c.tasks[id][loom.TaskAction(t.Action)]++
		}
	}
	return c, nil
}

// stoppedByHand reports whether a person stopped a rollout, who lets it go on.
func (s *soakFleetLane) stoppedByHand(v *clusters.RolloutView) bool {
	return v.Why == fmt.Sprintf("Stopped by %s.", s.actor.User)
}

// judgeStop says what is wrong with a rollout that stopped.
func (s *soakFleetLane) judgeStop(v *clusters.RolloutView) {
	failed := v.Clusters(loom.RolloutFailed, loom.RolloutUndone)
	switch {
	case v.Clusters(loom.RolloutRuns) > 0: // not all is counted yet
	case s.stoppedByHand(v):
	case !strings.Contains(v.Why, "failed") || v.Failures <= v.Settings.MaxFailed || failed <= v.Settings.MaxFailed:
		s.soak.fail(s.soakLane, fmt.Sprintf("rollout %d stopped after %d failures; %d clusters are failed now, and %d may be: %s", v.Number, v.Failures, failed, v.Settings.MaxFailed, v.Why))
	}
}

// judge says what is wrong with a rollout that is over, and remembers what its clusters are to be.
func (s *soakFleetLane) judge(ctx context.Context, number int) error {
	var c *soakCourse
	err := again(ctx, func() (err error) {
		c, err = s.course(ctx, s.System.DB, number)
		return err
	})
	if err != nil {
		return err
	}
	if wrong := s.lookAtRollout(c); len(wrong) > 0 {
		s.soak.fail(s.soakLane, wrong...)
	}
	before := map[loom.ClusterID]map[string]int{}
	done := 0
	for id, versions := range s.versions {
		before[id] = versions
		if c.members[id].Status != loom.RolloutDone {
			continue
		}
		done++
		s.versions[id] = maps.Clone(versions)
		if s.kind == loom.ChangeRollback {
			s.versions[id] = maps.Clone(s.past[id])
			delete(s.tainted, id)
		}
		if s.bad {
			s.tainted[id] = true
		}
		maps.Copy(s.versions[id], s.target)
	}
	if s.target != nil && done > 0 {
		s.last, s.lastPast = number, before
	}
	return nil
}

// lookAtRollout says what is wrong with what a rollout did.
func (s *soakFleetLane) lookAtRollout(c *soakCourse) []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("rollout %d (%s): ", c.Number, c.Kind)+fmt.Sprintf(format, args...))
	}
	failed := 0
	for id, m := range c.members {
		if m.Status == loom.RolloutFailed || m.Status == loom.RolloutUndone {
			failed++
		}
		for _, text := range s.lookAtMember(c, m) {
			say("cluster %s, which is %s (%s), %s", id, m.Status, m.Note, text)
		}
	}
	for id, turns := range c.turns {
		for _, t := range turns {
			for _, text := range t.wrong() {
				say("%s", text)
			}
		}
		if len(c.began[id]) != len(turns) {
			say("cluster %s had %d turns and %d operations", id, len(turns), len(c.began[id]))
		}
	}
	for id, ops := range c.began {
		if m, in := c.members[id]; !in || m.Wave == 0 || len(c.turns[id]) == 0 {
			say("%d operations began on cluster %s, whose turn it never was", len(ops), id)
		}
	}
	if c.Status == loom.RolloutComplete && failed > c.Settings.MaxFailed {
		say("it is complete although %d clusters failed, and %d may", failed, c.Settings.MaxFailed)
	}
	slices.Sort(wrong)
	return wrong
}

// lookAtMember says what is wrong with a cluster of a rollout that is over.
func (s *soakFleetLane) lookAtMember(c *soakCourse, m loom.RolloutCluster) []string {
	if m.Wave == 0 {
		return nil
	}
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	ops := c.began[m.Cluster]
	var last loom.Operation
	for i, op := range ops {
		last = op
		if i < len(ops)-1 && op.Status == loom.OperationComplete {
			say("got another operation after operation %d was complete", op.Ref.Number)
		}
	}
	if last.Ref.Number != m.Operation {
		say("names operation %d, and the last one was %d", m.Operation, last.Ref.Number)
	}
	want := map[loom.RolloutClusterStatus][]loom.OperationStatus{
		loom.RolloutDone: {loom.OperationComplete}, loom.RolloutUndone: {loom.OperationRolledBack}, loom.RolloutFailed: {loom.OperationFailed, loom.OperationAborted},
		loom.RolloutSkipped: {"", loom.OperationFailed, loom.OperationAborted, loom.OperationRolledBack},
	}[m.Status]
	if !slices.Contains(want, last.Status) {
		say("has operation %d, which is “%s”", last.Ref.Number, last.Status)
	}
	moved := c.first[m.Cluster]
	move := s.moves[m.Cluster]
	if !moved {
		move = ""
	}
	mustSkip := move == soakDelete || move == soakProtect && s.replaces || c.Kind == loom.ChangeRollback && (move == soakExpand || move == soakRestart)
	// An expand may leave the tasks of a plan as they are. Then the change begins.
	same := c.Settings.Changed == loom.RolloutSkip || move != soakExpand
	switch {
	case mustSkip && m.Status != loom.RolloutSkipped:
		say("must be skipped after its %s", move)
	case !mustSkip && m.Status == loom.RolloutSkipped && len(ops) == 0 && move != soakExpand && c.Status != loom.RolloutAborted:
		say("was skipped after its %q", move)
	}
	if m.Status == loom.RolloutDone && same && !maps.Equal(c.tasks[m.Cluster], m.Tasks) {
		say("ran %v, and %v was shown", c.tasks[m.Cluster], m.Tasks)
	}
	return wrong
}

// lookAtAll looks over the clusters of a fleet that had an operation since the last look.
func (s *soakFleetLane) lookAtAll(ctx context.Context) error {
	for _, id := range s.ids {
		op, err := s.rest(ctx, id)
		if err != nil {
			return err
		}
		if op.Ref.Number == s.checked[id] {
			continue
		}
		shape, nodes, err := s.readAgain(ctx, id)
		if err != nil {
			return err
		}
		step := soakStep{kind: loom.ChangeKind(op.Action), nodes: len(nodes), shape: soakShape{hardware: shape.hardware, versions: s.versions[id]}}
		step.before = step.shape
		var wrong []string
		err = again(ctx, func() (err error) {
			wrong, err = s.check(ctx, *op, step)
			return err
		})
		if err != nil {
			return err
		}
		if len(wrong) > 0 {
			s.soak.fail(s.soakLane, wrong...)
		}
		s.soak.end(step.kind, op.Status)
		s.checked[id] = op.Ref.Number
	}
	return nil
}
