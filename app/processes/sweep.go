package processes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

const (
	// sweptFor is how long after its last operation a provider without live
	// clusters is still swept.
	sweptFor = 7 * 24 * time.Hour
	// requestAge is how long requests are kept that nobody waits for.
	requestAge = 24 * time.Hour
)

// RequestSweeps asks provisioners to look for orphaned machines at every provider
// that may have some, and to try again what deletes left behind. Providers and
// machines of which that is under way are left out.
func (f *Processes) RequestSweeps(ctx context.Context) error {
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		if err := store.TrimRequestsAllTenants(ctx, tx, requestAge); err != nil {
			return err
		}
		if _, err := store.RequestLeftoversAllTenants(ctx, tx); err != nil {
			return err
		}
		targets, err := store.SweepTargetsAllTenants(ctx, tx, sweptFor)
		if err != nil {
			return err
		}
		for _, t := range targets {
			if _, err := store.RequestSweep(ctx, tx, t.Tenant, t.Provider, "system"); err != nil {
				return err
			}
		}
		return nil
	})
}

// Orphans lists the machines that no live node claims; superadmins only.
func (f *Processes) Orphans(ctx context.Context, actor loom.Actor) ([]loom.Orphan, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return nil, err
	}
	return store.OrphansAllTenants(ctx, f.db)
}

// RemoveOrphan removes an orphaned machine at its provider, through a provisioner,
// and waits until it is gone; superadmins only. Errors: NotFound, Conflict when a
// live node has the machine after all, Unavailable when the provider refuses or
// nobody answers in time.
func (f *Processes) RemoveOrphan(ctx context.Context, actor loom.Actor, id int64) error {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return err
	}
	o, err := store.OrphanAllTenants(ctx, f.db, id)
	if errors.Is(err, loom.NotFound) {
		return &loom.Error{Kind: loom.NotFound, Message: "There is no such orphaned machine; it may be gone already.", Err: err}
	}
	if err != nil {
		return err
	}
	request, err := f.insertRequest(ctx, o.Tenant, store.ProviderRequest{Provider: o.Provider, Purpose: store.PurposeRemove, Orphan: o.ID, By: actor.User},
		loom.AuditEntry{Actor: actor, Verb: "delete", Kind: "orphan", Object: auditName(o), Before: map[string]any{
			"tenant": o.TenantName, "name": o.Name, "clusterId": o.Cluster.String(), "nodeId": o.Node, "firstSeen": o.FirstSeen}}, nil)
	if err != nil {
		return err
	}
	r, done, err := f.awaitRequest(ctx, o.Tenant, request, "removing the machine")
	switch {
	case err != nil || !done:
		return err
	case r.Refused:
		return loom.NewError(loom.Conflict, "%s", r.Failure)
	case r.Failure != "":
		return loom.NewError(loom.Unavailable, "The machine %s could not be removed: %s", o.Machine, r.Failure)
	}
	return nil
}

func auditName(o loom.Orphan) string { return o.Provider + "/" + o.Machine }

// machineClass says what a listed machine is.
type machineClass int

const (
	// foreign machines are not of this installation, tenant and provider.
	foreign machineClass = iota
	// claimed ones are the machine of a live node.
	claimed
	// unsure: an operation of the cluster may be making or removing it just now.
	unsure
	// second ones have the key of a living node whose own machine is another: a request
	// whose answer was lost made two. Only they are ours and nobody's.
	second
	// orphaned ones are ours and nobody's, and so is whatever else has their key.
	orphaned
)

// classifyMachine weighs a machine that the provider of a tenant lists against the node
// that its label names, nil when this installation has no such node in the
// tenant. The id of a node is random and never used again, so it tells our
// machines from those of another installation with the same account. own says that the
// list has the machine whose id the node knows: only then is another with its key a
// second one, and not the same under another name.
func classifyMachine(tenant loom.TenantID, provider string, m loom.TaggedMachine, n *store.NodeClaim, own bool) machineClass {
	cluster, ok := loom.ParseClusterID(m.Cluster)
	switch {
	case n == nil, m.ID == "", m.Tenant != tenant, !ok, n.Cluster != cluster, n.Provider != provider:
		return foreign
	case n.Busy:
		return unsure
	case n.Gone:
		return orphaned
	case n.Machine == m.ID, m.Key == "":
		return claimed
	case m.Key != loom.IdempotencyKey(n.Node, n.Incarnation):
		return orphaned
	case own && n.Ready && n.Machine != "":
		return second
	}
	return claimed // a retry of its CREATE may take it
}

// classifyMachines judges all machines of a list. kept are orphaned ones and those of which
// nothing can be said now, by id: an operation is at work, or they do not answer.
func classifyMachines(tenant loom.TenantID, provider string, machines []loom.TaggedMachine, claims map[loom.NodeID]store.NodeClaim) (orphans []loom.Orphan, kept []string) {
	own := map[loom.NodeID]bool{}
	for _, m := range machines {
		if n, ok := claims[nodeOf(m)]; ok && n.Machine == m.ID {
			own[n.Node] = true
		}
	}
	for _, m := range machines {
		if m.OwnerUnknown() {
			kept = append(kept, m.ID)
			continue
		}
		var claim *store.NodeClaim
		if n, ok := claims[nodeOf(m)]; ok {
			claim = &n
		}
		switch classifyMachine(tenant, provider, m, claim, own[nodeOf(m)]) {
		case orphaned, second:
			orphans = append(orphans, loom.Orphan{Tenant: tenant, Provider: provider, Machine: m.ID, Name: m.Name, Key: m.Key, Cluster: claim.Cluster, Node: claim.Node})
			kept = append(kept, m.ID)
		case unsure:
			kept = append(kept, m.ID)
		}
	}
	return orphans, kept
}

// nodeOf reads the label of the node; "" for what is no id.
func nodeOf(m loom.TaggedMachine) loom.NodeID {
	id, err := uuid.Parse(string(m.Node))
	if err != nil {
		return ""
	}
	return loom.NodeID(id.String())
}

func nodesOf(machines []loom.TaggedMachine) []loom.NodeID {
	var nodes []loom.NodeID
	for _, m := range machines {
		if id := nodeOf(m); id != "" {
			nodes = append(nodes, id)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// listedMachine is a machine with the call that listed it.
type listedMachine struct {
	loom.TaggedMachine
	call *loom.ProviderCall
}

// listMachines lists the machines of a provider: those at the place that it names now, and
// those wherever its clusters were made before. listed is as Asker.Machines says.
func (f *Processes) listMachines(ctx context.Context, tenant loom.TenantID, name string, asker Asker) (found []listedMachine, listed bool, err error) {
	present, _, err := f.providerCall(ctx, tenant, name)
	if err != nil {
		return nil, false, err
	}
	places, err := store.Places(ctx, f.db, tenant, name, sweptFor)
	if err != nil {
		return nil, false, err
	}
	calls := []*loom.ProviderCall{present}
	for _, place := range places {
		there := *present
		there.Provider = present.Provider.AtPlace(place)
		if !slices.ContainsFunc(calls, func(c *loom.ProviderCall) bool { return reflect.DeepEqual(c.Provider.Fields, there.Provider.Fields) }) {
			calls = append(calls, &there)
		}
	}
	seen := map[string]bool{}
	for _, call := range calls {
		machines, listed, err := asker.Machines(ctx, call)
		if err != nil || !listed {
			return nil, false, err
		}
		for _, m := range machines {
			if name := m.ID + " " + m.Key; !seen[name] {
				seen[name] = true
				found = append(found, listedMachine{m, call})
			}
		}
	}
	return found, true, nil
}

// sweep compares the machines that a provider lists with the nodes that are to
// have one. What it finds out is stored; what it cannot find out changes nothing.
func (f *Processes) sweep(ctx context.Context, process loom.ProcessID, r store.ProviderRequest, asker Asker) error {
	var known *loom.Error
	found, listed, err := f.listMachines(ctx, r.Tenant, r.Provider, asker)
	machines := make([]loom.TaggedMachine, len(found))
	for i := range found {
		machines[i] = found[i].TaggedMachine
	}
	if ctx.Err() != nil {
		return err
	}
	failure := ""
	switch {
	case errors.As(err, &known):
		failure = known.Message
	case err != nil:
		failure = err.Error()
	}
	shown := failure
	if !listed && err == nil {
		shown = "The machines of this provider cannot be listed: its plugin cannot, or no provisioner that answers carries it."
	}
	ended := store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		ofNodes, doubt, err := weighList(ctx, tx, process, r, machines, listed)
		if err != nil {
			return err
		}
		held, err := store.EndRequest(ctx, tx, r.Tenant, r.ID, process, nil, cmp.Or(shown, doubt), false)
		if err != nil || !held {
			return err
		}
		if doubt == "" && len(ofNodes) > 0 {
			if err := store.RecordListed(ctx, tx, ofNodes, r.Started); err != nil {
				return err
			}
		}
		if r.By != "system" { // somebody waits for it
			if err := store.InsertEvents(ctx, tx, orphansChanged, loom.Event{Tenant: r.Tenant, Topic: "tenant", IDs: []string{"providers/" + r.Provider}}); err != nil {
				return err
			}
		}
		if !listed {
			return nil
		}
		claims, err := store.NodeClaims(ctx, tx, r.Tenant, nodesOf(machines), r.Started)
		if err != nil {
			return err
		}
		orphans, kept := classifyMachines(r.Tenant, r.Provider, machines, claims)
		gone, err := store.DeleteOrphansBut(ctx, tx, r.Tenant, r.Provider, kept)
		if err != nil {
			return err
		}
		put, err := store.PutOrphans(ctx, tx, r.Tenant, r.Provider, orphans)
		if err != nil || gone+put == 0 {
			return err
		}
		return store.InsertEvents(ctx, tx, orphansChanged)
	})
	if ended == nil && failure != "" {
		return fmt.Errorf("%w: list the machines of tenant %s, provider %s: %s", ErrRecorded, r.Tenant, r.Provider, failure)
	}
	return ended
}

// weighList finds the machines that a list should hold, by node, and why it is
// not believed, "" where it is.
func weighList(ctx context.Context, tx *sqlx.Tx, process loom.ProcessID, r store.ProviderRequest, machines []loom.TaggedMachine, listed bool) (found map[loom.NodeID]loom.TaggedMachine, doubt string, err error) {
	if !listed {
		return nil, "", nil
	}
	expected, err := store.ExpectedMachines(ctx, tx, r.Tenant, r.Provider, r.Started, process)
	if err != nil {
		return nil, "", err
	}
	found, believed := loom.JudgeList(expected, machines)
	if !believed {
		down := 0
		for _, m := range found {
			if m.State == loom.StateMissing || m.State == loom.StateStopped {
				down++
			}
		}
		doubt = fmt.Sprintf("By its list, %d of %d machines are stopped or gone. Loom does not believe that: check the credentials and the region or project of the provider.", down, len(expected))
	}
	return found, doubt, nil
}

var orphansChanged = loom.Event{Tenant: loom.SuperTenant, Topic: "system", IDs: []string{"orphans"}}

// remove carries out a removal. The machine is looked up again at the provider,
// and weighed again, right before it is removed.
func (f *Processes) remove(ctx context.Context, process loom.ProcessID, r store.ProviderRequest, asker Asker) error {
	o, err := store.OrphanAllTenants(ctx, f.db, r.Orphan)
	if errors.Is(err, loom.NotFound) {
		return f.endRemoval(ctx, process, r, nil, nil) // somebody else removed it
	}
	if err != nil {
		return err
	}
	err = f.removeMachine(ctx, r, o, asker)
	if ctx.Err() != nil {
		return err
	}
	return f.endRemoval(ctx, process, r, &o, err)
}

func (f *Processes) removeMachine(ctx context.Context, r store.ProviderRequest, o loom.Orphan, asker Asker) error {
	machines, listed, err := f.listMachines(ctx, r.Tenant, r.Provider, asker)
	if err != nil {
		return err
	}
	if !listed {
		return loom.NewError(loom.Unavailable, "No provisioner that answers carries a plugin that lists the machines of “%s”; start one and try again.", r.Provider)
	}
	i := slices.IndexFunc(machines, func(m listedMachine) bool {
		return m.ID == o.Machine && m.Key == o.Key && nodeOf(m.TaggedMachine) == o.Node
	})
	if i < 0 {
		if slices.ContainsFunc(machines, func(m listedMachine) bool { return m.ID == o.Machine && m.OwnerUnknown() }) {
			return errSilent(o.Machine)
		}
		return nil // it is gone
	}
	claims, err := store.NodeClaims(ctx, f.db, r.Tenant, []loom.NodeID{o.Node}, r.Started)
	if err != nil {
		return err
	}
	var claim *store.NodeClaim
	if n, ok := claims[o.Node]; ok {
		claim = &n
	}
	own := claim != nil && slices.ContainsFunc(machines, func(m listedMachine) bool { return m.ID == claim.Machine && nodeOf(m.TaggedMachine) == o.Node })
	switch v := classifyMachine(r.Tenant, r.Provider, machines[i].TaggedMachine, claim, own); v {
	case orphaned, second:
		return asker.Remove(ctx, machines[i].call, machines[i].TaggedMachine, v == second)
	case unsure:
		return loom.NewError(loom.Conflict, "An operation of cluster %s is running and may need the machine. Try again when it has ended.", o.Cluster)
	}
	return loom.NewError(loom.Conflict, "The machine %s belongs to a live node of cluster %s now, or may come to, so it stays.", o.Machine, o.Cluster)
}

// errSilent is the error of a machine that is there and does not say whose it is.
func errSilent(machine string) error {
	return loom.NewError(loom.Unavailable, "The machine %s does not answer, so Loom can't identify and clean it. Start it, or remove it from the provider’s hosts.", machine)
}

// endRemoval records what came of a removal; o is nil when there was nothing to
// remove.
func (f *Processes) endRemoval(ctx context.Context, process loom.ProcessID, r store.ProviderRequest, o *loom.Orphan, failure error) error {
	message, refused := "", false
	if failure != nil {
		e := loom.AsError(failure)
		message, refused = e.Message, e.Kind == loom.Conflict
	}
	ended := store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		held, err := store.EndRequest(ctx, tx, r.Tenant, r.ID, process, nil, message, refused)
		if err != nil || !held || o == nil {
			return err
		}
		audit := loom.AuditEntry{Actor: loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant)), Verb: "remove", Kind: "orphan", Object: auditName(*o),
			After: map[string]any{"tenant": o.TenantName, "requestedBy": r.By}}
		if failure != nil {
			audit.Result, audit.After = "failed", map[string]any{"tenant": o.TenantName, "requestedBy": r.By, "message": message}
			return store.InsertAudit(ctx, tx, audit)
		}
		if err := store.InsertAudit(ctx, tx, audit); err != nil {
			return err
		}
		if err := store.DeleteOrphan(ctx, tx, o.Tenant, o.ID); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, orphansChanged)
	})
	if ended == nil && failure != nil && loom.AsError(failure).Kind == loom.Internal {
		return fmt.Errorf("%w: remove machine %s of tenant %s: %w", ErrRecorded, o.Machine, r.Tenant, failure)
	}
	return ended
}

// Sweeps tells of the looks for forgotten machines at the providers of all tenants;
// superadmins only.
func (f *Processes) Sweeps(ctx context.Context, actor loom.Actor) ([]loom.Sweep, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return nil, err
	}
	return store.SweepsAllTenants(ctx, f.db, sweptFor)
}

// Sweep tells of the looks at a provider of the actor's tenant, and which machines
// there nobody uses; administrators only. NotFound for the provider.
func (f *Processes) Sweep(ctx context.Context, actor loom.Actor, provider string) (loom.Sweep, []loom.Orphan, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return loom.Sweep{}, nil, err
	}
	if _, err := store.Provider(ctx, f.db, actor.Tenant, provider); err != nil {
		return loom.Sweep{}, nil, err
	}
	sweep, err := store.SweepOf(ctx, f.db, actor.Tenant, provider)
	if err != nil {
		return loom.Sweep{}, nil, err
	}
	orphans, err := store.Orphans(ctx, f.db, actor.Tenant, provider)
	return sweep, orphans, err
}

// BeginSweep asks provisioners to look now for forgotten machines at a provider of the
// actor's tenant and does not wait: Sweep tells how far that is. Errors: Forbidden,
// NotFound for the provider, Conflict while a look is under way.
func (f *Processes) BeginSweep(ctx context.Context, actor loom.Actor, provider string) error {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return err
	}
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		if _, err := store.Provider(ctx, tx, actor.Tenant, provider); err != nil {
			return err
		}
		begun, err := store.RequestSweep(ctx, tx, actor.Tenant, provider, actor.User)
		if err != nil {
			return err
		}
		if !begun {
			return loom.NewError(loom.Conflict, "A look at “%s” is under way; its result comes here.", provider)
		}
		return store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "sweep", Kind: loom.KindProvider.Word(), Object: provider})
	})
}

// BeginSweeps asks for a look at every provider of every tenant that may have machines,
// and says at how many; superadmins only. Conflict where all of that is under way.
func (f *Processes) BeginSweeps(ctx context.Context, actor loom.Actor) (int, error) {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return 0, err
	}
	return store.InTx(ctx, f.db, func(tx *sqlx.Tx) (int, error) {
		targets, err := store.SweepTargetsAllTenants(ctx, tx, sweptFor)
		if err != nil {
			return 0, err
		}
		n := 0
		for _, t := range targets {
			begun, err := store.RequestSweep(ctx, tx, t.Tenant, t.Provider, actor.User)
			if err != nil {
				return 0, err
			}
			if begun {
				n++
			}
		}
		if n == 0 {
			return 0, f.noSweeps(ctx, tx)
		}
		return n, store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "sweep", Kind: loom.KindProvider.Word(), Object: "all", After: map[string]any{"providers": n}})
	})
}

// noSweeps says why no look begins.
func (f *Processes) noSweeps(ctx context.Context, tx *sqlx.Tx) error {
	all, err := store.SweepsAllTenants(ctx, tx, sweptFor)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Asked != nil {
			return loom.NewError(loom.Conflict, "A look at all providers that may have machines is under way; its result comes here.")
		}
	}
	return loom.NewError(loom.Conflict, "No provider may have machines: there are no clusters, and none ended within a week.")
}
