package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// incidents collects nodes whose incidents may change with what is known of them.
type incidents struct {
	nodes []store.HeldHealth
}

// add adds a node that is bad or has drifted, or that was something else before.
func (i *incidents) add(before, now store.HeldHealth) {
	if _, known := now.Troubles(); known && (now.Status.Bad() || now.Status != before.Status || len(now.Drift)+len(before.Drift) > 0) {
		i.nodes = append(i.nodes, now)
	}
}

// record begins, changes and ends the incidents of the nodes. None begins while an operation
// waits for somebody; during maintenance there are none.
func (i *incidents) record(ctx context.Context, tx *sqlx.Tx, n *changes) error {
	if len(i.nodes) == 0 {
		return nil
	}
	ids := make([]loom.NodeID, len(i.nodes))
	for at := range i.nodes {
		ids[at] = i.nodes[at].Node
	}
	open, err := store.OpenIncidents(ctx, tx, ids)
	if err != nil {
		return err
	}
	var ended, changed []loom.Incident
	var begun []store.NewIncident
	n.begin()
	for at := range i.nodes {
		h := &i.nodes[at]
		troubles, _ := h.Troubles()
		if h.Maintained {
			troubles = nil
		}
		goingOn, over, fresh := loom.SettleIncidents(open[h.Node], troubles)
		if h.Waiting {
			fresh = nil
		}
		for _, t := range fresh {
			begun = append(begun, store.NewIncident{Tenant: h.Tenant, Cluster: h.Cluster, Node: h.Node, Trouble: t})
		}
		ended = append(ended, over...)
		if len(over)+len(fresh) > 0 {
			n.shown[h.Cluster], n.listed[h.Cluster] = h.Tenant, h.Tenant
		}
		for _, now := range goingOn {
			if !slices.Contains(open[h.Node], now) {
				changed = append(changed, now)
				n.shown[h.Cluster] = h.Tenant
			}
		}
	}
	if len(begun) > 0 {
		if err := store.InsertIncidents(ctx, tx, begun); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		if err := store.UpdateIncidents(ctx, tx, changed); err != nil {
			return err
		}
	}
	if len(ended) > 0 {
		return store.EndIncidents(ctx, tx, ended)
	}
	return nil
}

// IncidentsInput says which incidents are listed.
type IncidentsInput struct {
	loom.Page
	Cluster   loom.ClusterID
	Kinds     []loom.IncidentKind
	Decisions []loom.RepairDecision
	// Open limits the list to those that last, or with false to those that are over.
	Open  *bool
	Since time.Time
}

// Incidents lists the incidents of the clusters that the actor may see, the newest first.
// NotFound for a cluster that he may not; Invalid.
func (f *Fleet) Incidents(ctx context.Context, actor loom.Actor, in IncidentsInput) (store.IncidentList, error) {
	filter := store.IncidentFilter{Cluster: in.Cluster, Open: in.Open, Since: in.Since}
	switch {
	case in.Cluster != 0:
		if err := f.may(ctx, actor, loom.See, in.Cluster); err != nil {
			return store.IncidentList{}, err
		}
	case actor.May(loom.See, actor.InTenant()) != nil:
		if err := actor.May(loom.See, actor.Mine()); err != nil {
			return store.IncidentList{}, err
		}
		filter.Owner = actor.User
	}
	for _, kind := range in.Kinds {
		filter.Kinds = append(filter.Kinds, string(kind))
	}
	for _, decision := range in.Decisions {
		filter.Decisions = append(filter.Decisions, string(decision))
	}
	return store.Incidents(ctx, f.db, actor.Tenant, filter, in.Page)
}

// MaintenanceInput announces maintenance.
type MaintenanceInput struct {
	Until  time.Time
	Reason string
	// Nodes are all of the cluster if none are named.
	Nodes []loom.NodeID
}

// maxReason is how long the reason of maintenance may be, in characters.
const maxReason = 400

// Maintain announces maintenance of a cluster or of nodes of it: until it is over, nothing
// that goes wrong there is an incident. NotFound, Forbidden, Invalid.
func (f *Fleet) Maintain(ctx context.Context, actor loom.Actor, id loom.ClusterID, in MaintenanceInput) error {
	if err := f.may(ctx, actor, loom.Operate, id); err != nil {
		return err
	}
	var errs []loom.FieldError
	now := time.Now()
	switch {
	case in.Until.IsZero():
		errs = append(errs, loom.FieldError{Field: "until", Message: "Say when the maintenance ends."})
	case !in.Until.After(now):
		errs = append(errs, loom.FieldError{Field: "until", Message: "This time is over; name one to come."})
	case in.Until.Sub(now) > loom.MaxMaintenance:
		errs = append(errs, loom.FieldError{Field: "until", Message: "Maintenance lasts 30 days at most; announce it again then."})
	}
	switch n := len([]rune(in.Reason)); {
	case n == 0:
		errs = append(errs, loom.FieldError{Field: "reason", Message: "Say why, for others who see it."})
	case n > maxReason:
		errs = append(errs, loom.FieldError{Field: "reason", Message: "At most 400 characters."})
	}
	if err := loom.InvalidFields(errs); err != nil {
		return err
	}
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		health, err := store.HealthOfCluster(ctx, tx, actor.Tenant, id)
		if err != nil {
			return err
		}
		if err := checkNodes(&health, id, in.Nodes); err != nil {
			return err
		}
		if err := store.PutMaintenance(ctx, tx, actor.Tenant, id, in.Nodes, loom.Maintenance{Until: in.Until, Reason: in.Reason, By: actor.User}); err != nil {
			return err
		}
		after := map[string]any{"until": in.Until.UTC(), "reason": in.Reason}
		if len(in.Nodes) > 0 {
			after["nodes"] = in.Nodes
		}
		return f.maintained(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "maintain", Kind: "cluster", Object: id.String(), After: after}, id)
	})
}

// EndMaintenance ends maintenance of nodes of a cluster, all that there is if none are named.
// NotFound, Forbidden, Invalid.
func (f *Fleet) EndMaintenance(ctx context.Context, actor loom.Actor, id loom.ClusterID, nodes []loom.NodeID) error {
	if err := f.may(ctx, actor, loom.Operate, id); err != nil {
		return err
	}
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		health, err := store.HealthOfCluster(ctx, tx, actor.Tenant, id)
		if err != nil {
			return err
		}
		if err := checkNodes(&health, id, nodes); err != nil {
			return err
		}
		ended, err := store.DeleteMaintenance(ctx, tx, actor.Tenant, id, nodes)
		if err != nil || ended == 0 {
			return err // it is over already
		}
		return f.maintained(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "end maintenance", Kind: "cluster", Object: id.String()}, id)
	})
}

// maintained writes the audit, and has the nodes looked at, which settles their incidents.
func (f *Fleet) maintained(ctx context.Context, tx *sqlx.Tx, entry loom.AuditEntry, id loom.ClusterID) error {
	if err := store.InsertAudit(ctx, tx, entry); err != nil {
		return err
	}
	if _, err := store.WantChecks(ctx, tx, entry.Actor.Tenant, id, nil, 0); err != nil {
		return err
	}
	return store.InsertEvents(ctx, tx, loom.Event{Tenant: entry.Actor.Tenant, Topic: "cluster:" + id.String()})
}

// checkNodes returns Invalid for nodes whose health is not known in a cluster.
func checkNodes(health *loom.ClusterHealth, id loom.ClusterID, nodes []loom.NodeID) error {
	for _, n := range nodes {
		if !health.Has(n) {
			return loom.InvalidFields([]loom.FieldError{{Field: "nodes", Message: "Cluster " + id.String() + " has no node “" + loom.Short(string(n)) + "” with a machine that is checked."}})
		}
	}
	return nil
}

// Pauses between lists of providers that machines which do not answer are looked for in: not
// again within listPause, and again after relistAfter.
const (
	listPause   = time.Minute
	relistAfter = 10 * time.Minute
)

// askProviders asks provisioners for lists of the providers whose machines do not answer.
func (f *Fleet) askProviders(ctx context.Context) error {
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		refs, err := store.SuspectedProvidersAllTenants(ctx, tx, relistAfter, listPause)
		if err != nil {
			return err
		}
		var errs []error
		for _, r := range refs {
			_, err := store.RequestSweep(ctx, tx, r.Tenant, r.Provider, "system")
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}
