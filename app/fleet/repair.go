package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// BeginRepair begins the operation of a repair; the use case of clusters does it. Within the
// transaction that begins it, allow, unless nil, is asked first whether it may begin and begun
// is called last; an error of either ends it and is returned.
type BeginRepair func(ctx context.Context, actor loom.Actor, r loom.Repair, allow func(ctx context.Context, tx *sqlx.Tx) error,
	begun func(ctx context.Context, tx *sqlx.Tx, op loom.OperationRef) error) (loom.OperationRef, error)

// repairBatch is how many incidents are decided about at once.
const repairBatch = 500

// maxGap is the longest pause between two decisions that evidence from before it outlives.
const maxGap = time.Minute

// errDecidedOtherwise ends the beginning of a repair that something speaks against by now.
var errDecidedOtherwise = errors.New("the incident is decided otherwise by now")

// DecideRepairs decides about the incidents that last: whether to ask somebody, or to repair by
// itself what policies let it. It is a duty of one loop: between two calls of one Fleet it
// notices whether this process or the database was away. It returns the incidents about which
// it decided otherwise than before.
func (f *Fleet) DecideRepairs(ctx context.Context, begin BeginRepair) ([]loom.Incident, error) {
	now, err := store.Now(ctx, f.db)
	if err != nil {
		return nil, err
	}
	if now.Sub(f.decidedAt) > maxGap || now.Before(f.decidedAt) {
		f.gap = now
	}
	f.decidedAt = now
	var decided []loom.Incident
	var errs []error
	for after := int64(0); ; {
		cases, err := store.RepairCasesAllTenants(ctx, f.db, after, repairBatch)
		if err != nil {
			return decided, errors.Join(append(errs, err)...)
		}
		for i := range cases {
			c := &cases[i]
			after = c.ID
			now, err := f.decideRepair(ctx, c, begin)
			if err != nil {
				errs = append(errs, fmt.Errorf("decide about incident %d of cluster %s: %w", c.ID, c.Cluster, err))
			} else if now.Decision != c.Decision || now.Reason != c.Reason {
				decided = append(decided, now)
			}
		}
		if len(cases) < repairBatch {
			return decided, errors.Join(errs...)
		}
	}
}

// decideRepair decides about one incident and returns it as it is then. What it finds before it
// begins a repair is looked at once more when no other repair can begin meanwhile.
func (f *Fleet) decideRepair(ctx context.Context, c *store.RepairCase, begin BeginRepair) (loom.Incident, error) {
	decided, how := f.decide(c)
	if decided.Decision != loom.RepairBegun {
		return f.recordDecision(ctx, c, decided)
	}
	decided.DecidedBy = "system"
	_, err := begin(ctx, loom.SystemActor(c.Tenant, string(c.Tenant)), repairOf(&c.Incident, how), func(ctx context.Context, tx *sqlx.Tx) error {
		if err := store.LockRepairs(ctx, tx); err != nil {
			return err
		}
		again, err := store.RepairCaseAllTenants(ctx, tx, c.ID)
		if errors.Is(err, loom.NotFound) {
			return errDecidedOtherwise
		}
		if err != nil {
			return err
		}
		if now, nowHow := f.decide(&again); now.Decision != loom.RepairBegun || nowHow != how || again.Decision != c.Decision {
			return errDecidedOtherwise
		}
		return nil
	}, func(ctx context.Context, tx *sqlx.Tx, op loom.OperationRef) error {
		decided.Operation = op.Number
		return f.record(ctx, tx, c, decided)
	})
	e := loom.AsError(err)
	switch {
	case err == nil:
		return decided, nil
	case errors.Is(err, errDecidedOtherwise):
		return c.Incident, nil // the next call looks again
	case e.Kind == loom.Internal || e.Kind == loom.Unavailable:
		return c.Incident, err
	}
	decided.Decision, decided.Reason, decided.DecidedBy = loom.RepairHeld, "it cannot begin: "+strings.TrimSuffix(e.Message, "."), ""
	return f.recordDecision(ctx, c, decided)
}

// decide returns the incident as it is decided about by what is known, and how it is repaired.
func (f *Fleet) decide(c *store.RepairCase) (loom.Incident, loom.RepairHow) {
	facts := c.Facts
	facts.Gap = f.gap
	decided := c.Incident
	decision, how, reason := loom.DecideRepair(facts)
	decided.Decision, decided.Reason = decision, reason
	return decided, how
}

// repairOf is the repair that an incident calls for.
func repairOf(i *loom.Incident, how loom.RepairHow) loom.Repair {
	r := loom.Repair{Cluster: i.Cluster, Node: i.Node, How: how}
	if how == loom.RepairByRestart {
		r.Service = i.Service
	}
	return r
}

// recordDecision records a decision unless it is the one that was made before.
func (f *Fleet) recordDecision(ctx context.Context, c *store.RepairCase, decided loom.Incident) (loom.Incident, error) {
	if decided.Decision == c.Decision && decided.Reason == c.Reason {
		return decided, nil
	}
	err := store.Exec(ctx, f.db, func(tx *sqlx.Tx) error { return f.record(ctx, tx, c, decided) })
	if errors.Is(err, errDecidedOtherwise) {
		return c.Incident, nil
	}
	return decided, err
}

// record records a decision and wakes the pages of the cluster; its owner hears of it when
// he is asked for the first time, and when Loom begins. errDecidedOtherwise where somebody else
// was faster.
func (f *Fleet) record(ctx context.Context, tx *sqlx.Tx, c *store.RepairCase, decided loom.Incident) error {
	open, err := store.DecideIncident(ctx, tx, c.Tenant, &decided)
	if err != nil {
		return err
	}
	if !open {
		return errDecidedOtherwise
	}
	if decided.Asks() && !c.Asks() {
		if err := store.TellOwner(ctx, tx, c.Tenant, c.Cluster, "", loom.NewsOfIncident+strconv.FormatInt(c.ID, 10)); err != nil {
			return err
		}
	}
	id := c.Cluster.String()
	return store.InsertEvents(ctx, tx, loom.Event{Tenant: c.Tenant, Topic: "clusters", IDs: []string{id}}, loom.Event{Tenant: c.Tenant, Topic: "cluster:" + id})
}

// Accept has an incident repaired as it calls for. NotFound; Forbidden; Conflict where the
// incident is over, decided or calls for nothing, and as beginning the repair.
func (f *Fleet) Accept(ctx context.Context, actor loom.Actor, id int64, begin BeginRepair) (loom.OperationRef, error) {
	i, err := f.undecided(ctx, actor, id)
	if err != nil {
		return loom.OperationRef{}, err
	}
	how := i.Kind.Repair()
	if how == "" {
		return loom.OperationRef{}, loom.NewError(loom.Conflict, "No repair of Loom’s mends this; look at the machine itself.")
	}
	return begin(ctx, actor, repairOf(&i, how), nil, func(ctx context.Context, tx *sqlx.Tx, op loom.OperationRef) error {
		return f.decideFor(ctx, tx, actor, i, loom.RepairAccepted, op.Number)
	})
}

// Decline has nothing done about an incident, and nobody asked again. NotFound; Forbidden;
// Conflict where the incident is over or decided.
func (f *Fleet) Decline(ctx context.Context, actor loom.Actor, id int64) error {
	i, err := f.undecided(ctx, actor, id)
	if err != nil {
		return err
	}
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		if err := f.decideFor(ctx, tx, actor, i, loom.RepairDeclined, 0); err != nil {
			return err
		}
		return store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "decline repair", Kind: "cluster", Object: i.Cluster.String(), Result: "ok",
			After: map[string]any{"incident": i.ID, "node": i.Hostname, "kind": i.Kind}})
	})
}

// Incident reads an incident of a cluster that the actor may see. NotFound.
func (f *Fleet) Incident(ctx context.Context, actor loom.Actor, id int64) (loom.Incident, error) {
	return f.incident(ctx, actor, loom.See, id)
}

func (f *Fleet) incident(ctx context.Context, actor loom.Actor, verb loom.Verb, id int64) (loom.Incident, error) {
	i, err := store.IncidentByID(ctx, f.db, actor.Tenant, id)
	if err == nil {
		err = f.may(ctx, actor, verb, i.Cluster)
	}
	if errors.Is(err, loom.NotFound) {
		return i, loom.NewError(loom.NotFound, "There is no incident %d.", id)
	}
	return i, err
}

// undecided reads an incident of a cluster that the actor may operate, and which lasts.
func (f *Fleet) undecided(ctx context.Context, actor loom.Actor, id int64) (loom.Incident, error) {
	i, err := f.incident(ctx, actor, loom.Operate, id)
	if err != nil {
		return i, err
	}
	return i, decidable(&i)
}

// decidable returns Conflict for an incident that nobody can decide about now.
func decidable(i *loom.Incident) error {
	switch {
	case !i.Ended.IsZero():
		return loom.NewError(loom.Conflict, "The incident is over; there is nothing left to repair.")
	case i.Operation != 0:
		return loom.NewError(loom.Conflict, "Operation %d repairs this already.", i.Operation)
	case i.Decision == loom.RepairDeclined:
		return loom.NewError(loom.Conflict, "%s declined this repair; begin one on the page of the node.", i.DecidedBy)
	}
	return nil
}

// decideFor records the decision of a person.
func (f *Fleet) decideFor(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, i loom.Incident, decision loom.RepairDecision, operation int) error {
	c := store.RepairCase{Incident: i, Tenant: actor.Tenant}
	i.Decision, i.Reason, i.DecidedBy, i.Operation = decision, "", actor.User, operation
	err := f.record(ctx, tx, &c, i)
	if !errors.Is(err, errDecidedOtherwise) {
		return err
	}
	now, err := store.IncidentByID(ctx, tx, actor.Tenant, i.ID)
	if err == nil {
		err = decidable(&now)
	}
	return err
}
