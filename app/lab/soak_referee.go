package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/store"
)

// soakNotice is how long something may have been well before its repair counts as one of what
// is well: as old as evidence may be, and what deciding and a busy host take.
const soakNotice = loom.FreshList + 30*time.Second

// soakReferee judges each repair that Loom begins by itself by how machines really were.
type soakReferee struct {
	lane  *soakLane
	after int64
	// nodes, replaced and begun are the repairs of nodes, of machines of clusters, and all.
	nodes    map[loom.NodeID][]store.AutomaticRepair
	replaced map[loom.ClusterID]int
	begun    int
	// exhausted is when the tenant had no repairs left.
	exhausted time.Time
}

// watch judges until ctx ends.
func (r *soakReferee) watch(ctx context.Context) error {
	for pause(ctx, time.Second) {
		if err := again(ctx, func() error { return r.look(ctx) }); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// look judges what began since the last look, and lets the tenant have more repairs some time
// after the last one.
func (r *soakReferee) look(ctx context.Context) error {
	l := r.lane
	repairs, err := store.AutomaticRepairsAllTenants(ctx, l.System.DB, r.after)
	if err != nil {
		return err
	}
	set, err := l.Accounts.Settings(ctx, l.actor)
	if err != nil {
		return err
	}
	now, err := store.Now(ctx, l.System.DB)
	if err != nil {
		return err
	}
	ahead := time.Until(now) // somebody may have set the clock of the database
	for i := range repairs {
		r.after, repairs[i].Created = repairs[i].ID, repairs[i].Created.Add(-ahead)
		l.mu.Lock()
		cloud := l.clouds[repairs[i].Cluster]
		l.mu.Unlock()
		if wrong := r.judge(cloud, &repairs[i], set.RepairsPerDay); wrong != "" {
			l.soak.fail(l, fmt.Sprintf("operation %d of cluster %s (%s, node %s) %s", repairs[i].Number, repairs[i].Cluster, repairs[i].Action, repairs[i].Node, wrong))
		}
	}
	switch {
	case r.begun < set.RepairsPerDay:
		r.exhausted = time.Time{}
	case r.exhausted.IsZero():
		r.exhausted = time.Now()
	case time.Since(r.exhausted) > soakExhausted:
		more := set.RepairsPerDay + 20
		_, err = l.Accounts.UpdateSettings(ctx, l.actor, account.SettingsChange{RepairsPerDay: &more})
	}
	return err
}

// judge says what is wrong with a repair, "" for nothing, and counts it.
func (r *soakReferee) judge(cloud *soakCloud, op *store.AutomaticRepair, most int) string {
	r.lane.soak.repair(op.Action)
	r.begun++
	if op.Node == "" {
		return "began without an incident that says so"
	}
	cloud.mu.Lock()
	defer cloud.mu.Unlock()
	m := cloud.at(op.Node, op.Created)
	if m == nil {
		return "is for a node that has no machine"
	}
	before := r.nodes[op.Node]
	var how loom.RepairHow
	for _, h := range loom.RepairHows {
		if h.Action() == op.Action {
			how = h
		}
	}
	r.nodes[op.Node] = append(before, *op)
	wrong := r.judgeLimits(op, before, most)
	bad := 0
	for _, other := range cloud.of(op.Cluster) {
		if other.held(op.Created, func(s soakState) bool { return !s.well() }) > soakNotice {
			bad++
		}
	}
	if bad > max(1, op.Members/5) {
		wrong = fmt.Sprintf("began while %d of %d machines of the cluster were bad", bad, op.Members)
	}
	var well time.Duration
	switch how {
	case loom.RepairByRestart:
		well = m.held(op.Created, func(s soakState) bool { return s.answers() && !slices.Contains(s.failing, op.Service) })
	case loom.RepairByReboot:
		well = m.held(op.Created, func(s soakState) bool { return s.state == loom.StateRunning })
	case loom.RepairByReplacement:
		r.replaced[op.Cluster]++
		well = m.held(op.Created, func(s soakState) bool { return s.state != loom.StateMissing })
	case loom.RepairByConfigure:
		return "configures by itself"
	}
	if well > soakNotice {
		wrong = fmt.Sprintf("repairs what had been well for %s (%s)", well.Round(time.Second), op.Service)
	}
	return wrong
}

// judgeLimits says which limit a repair passes; before are those of the node.
func (r *soakReferee) judgeLimits(op *store.AutomaticRepair, before []store.AutomaticRepair, most int) string {
	did := func(action loom.ClusterAction, service string) bool {
		return slices.ContainsFunc(before, func(b store.AutomaticRepair) bool { return b.Action == action && b.Service == service })
	}
	replacement := op.Action == loom.RepairByReplacement.Action()
	switch {
	case r.begun > most:
		return fmt.Sprintf("is number %d of a tenant that may have %d in a day", r.begun, most)
	case len(before) >= loom.NodeRepairsADay:
		return fmt.Sprintf("is number %d of its node in a day", len(before)+1)
	case did(op.Action, op.Service):
		return "does the same as a repair of the same day"
	case replacement && r.replaced[op.Cluster] >= max(2, op.Members/10):
		return fmt.Sprintf("is replacement %d in a cluster of %d nodes", r.replaced[op.Cluster]+1, op.Members)
	case op.Incidents > max(2, op.Nodes/20):
		return fmt.Sprintf("began although %d of %d nodes of the provider had incidents in the last ten minutes", op.Incidents, op.Nodes)
	}
	return ""
}
