package clusters

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// noWorkers is the warning that nothing would run.
const noWorkers = "The tenant has no workers, so nothing would run; ask an administrator to give it some."

// draftCreate does everything for a create that needs no transaction: checks,
// layout, nodes. With lenient, absent provider fields are no error, because they
// may still come. Errors: Invalid with fields or missing provider fields,
// NotFound for template and provider, Exhausted, Unsolvable, Unavailable when
// the search ran out of time.
func (u *Clusters) draftCreate(ctx context.Context, actor loom.Actor, in loom.CreateInput, lenient bool) (*draft, *prepared, error) {
	quota, err := u.quotaUse(ctx, actor.Tenant)
	if err != nil {
		return nil, nil, err
	}
	// What is wrong with the request itself comes before what the tenant may
	// have, and that before what the catalog holds (rest-api.md 4.2).
	if len(in.Validate(u.opts.MaxMachines)) == 0 {
		if err := quota.Check(1, in.Machines); err != nil {
			return nil, nil, err
		}
	}
	p, err := u.prepare(ctx, actor, in)
	if err != nil {
		if isNotFound(err) && len(p.errs) > 0 {
			err = loom.InvalidFields(append(p.errs, loom.AsError(err).Fields...))
		}
		return nil, p, err
	}
	if err := loom.InvalidFields(p.errs); err != nil {
		return nil, p, err
	}
	if err := missingError(p.fields.missing); err != nil && !lenient {
		return nil, p, err
	}
	solving, stop := u.solving(ctx, actor.Tenant, u.opts.SolveTime)
	problem, layout, unsat, err := u.fit(solving, p, quota)
	stop()
	if err != nil {
		return nil, p, err
	}
	if unsat != nil {
		return nil, p, &loom.Error{Kind: loom.Unsolvable, Message: unsat.Headline, Unsat: unsat}
	}
	id, err := store.ReserveClusterID(ctx, u.db)
	if err != nil {
		return nil, p, err
	}
	d, err := p.draft(actor, id, problem.Hash(), layout)
	if err != nil {
		return nil, p, err
	}
	tenant, err := store.Tenant(ctx, u.db, actor.Tenant)
	if err != nil {
		return nil, p, err
	}
	if tenant.Workers == 0 {
		d.Warnings = append(d.Warnings, noWorkers)
	}
	if err := u.warnOfPlugins(ctx, actor.Tenant, d); err != nil {
		return nil, p, err
	}
	return d, p, nil
}

// Create makes a cluster at once, as a preview that is applied would. It gives
// the operation, which is running when Create returns. Errors: those of Preview,
// and Invalid with the missing provider fields.
func (u *Clusters) Create(ctx context.Context, actor loom.Actor, in loom.CreateInput) (loom.OperationRef, error) {
	if err := actor.May(loom.Create, actor.InTenant()); err != nil {
		return loom.OperationRef{}, err
	}
	d, p, err := u.draftCreate(ctx, actor, in, false)
	if err != nil {
		return loom.OperationRef{}, err
	}
	plan, err := d.plan()
	if err != nil {
		return loom.OperationRef{}, err
	}
	secrets, err := u.sealCluster(actor.Tenant, d.Cluster, d.Provider, p.fields.sealed)
	if err != nil {
		return loom.OperationRef{}, err
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.OperationRef, error) {
		if err := lockQuota(ctx, tx, actor.Tenant, len(d.Nodes)); err != nil {
			return loom.OperationRef{}, err
		}
		return u.insert(ctx, tx, actor, d, plan, secrets, "create")
	})
}

// lockQuota queues the creates of a tenant and checks its quotas for one more
// cluster of so many nodes.
func lockQuota(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, nodes int) error {
	if _, err := store.LockTenant(ctx, tx, tenant); err != nil {
		return err
	}
	// A statement of its own: it sees what was committed while the lock was awaited.
	quota, err := store.QuotaUse(ctx, tx, tenant)
	if err != nil {
		return err
	}
	return quota.Check(1, nodes)
}

// insert stores a drafted cluster with its nodes, secrets and running plan.
func (u *Clusters) insert(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, d *draft, plan loom.Plan, secrets map[string][]byte, verb string) (loom.OperationRef, error) {
	var none loom.OperationRef
	if err := store.HoldActor(ctx, tx, actor); err != nil {
		return none, err
	}
	// A preview may be older than the setting.
	settings, err := store.Settings(ctx, tx, actor.Tenant)
	if err != nil {
		return none, err
	}
	if err := loom.InvalidFields(settings.CheckLease("initialLeaseDuration", d.Lease == 0)); err != nil {
		return none, err
	}
	// Nobody deletes it in between.
	if err := store.ShareCatalogName(ctx, tx, actor.Tenant, loom.KindProvider, d.Provider.Name); err != nil {
		return none, err
	}
	present, err := presentProvider(ctx, tx, actor.Tenant, d.Provider.Name)
	if err != nil {
		return none, err
	}
	present = withFields(present, d.Input.ProviderFields)
	if err := d.Building.stillBuilds(ctx, tx, present); err != nil {
		return none, err
	}
	if err := permitted(ctx, tx, actor.Tenant, present, plan); err != nil {
		return none, err
	}
	cluster, err := store.InsertCluster(ctx, tx, actor.Tenant, store.NewCluster{
		Cluster: loom.Cluster{
			ID: d.Cluster, Name: d.Input.Name, Description: d.Input.Description, Owner: actor.Account(), Status: loom.ClusterPending,
			Provider: present, ProviderFields: d.Input.ProviderFields, Template: d.Template, Services: d.Services, Config: d.Config, Labels: d.Input.Labels, DNSSuffix: d.Suffix,
		},
		TypeSettings: d.Types, LeaseMillis: d.Lease,
	})
	if err != nil {
		return none, err
	}
	if err := store.InsertNodes(ctx, tx, actor.Tenant, cluster.ID, d.Nodes); err != nil {
		return none, err
	}
	if err := store.PutSecrets(ctx, tx, actor.Tenant, store.ClusterSecrets(cluster.ID), actor.User, secrets); err != nil {
		return none, err
	}
	request, err := keptRequest(PreviewInput{Kind: loom.PreviewCreate, Create: d.Input})
	if err != nil {
		return none, err
	}
	op, err := store.InsertPlan(ctx, tx, store.NewOperation{
		Tenant: actor.Tenant, Cluster: cluster.ID, Action: loom.ClusterCreate, RequestedBy: actor.User,
		OnFailure: d.policy(), Request: request,
	}, plan)
	if err != nil {
		return none, err
	}
	if err := store.InsertConfigRevision(ctx, tx, actor.Tenant, op.Ref, actor.User); err != nil {
		return none, err
	}
	err = store.InsertAudit(ctx, tx, loom.AuditEntry{
		Actor: actor, Verb: verb, Kind: "cluster", Object: cluster.ID.String(), Result: "ok",
		After: map[string]any{
			"name": cluster.Name, "clusterTemplate": d.Template.Name, "provider": d.Provider.Name, "numMachines": len(d.Nodes),
			"operationId": op.Ref.String(), "config": d.Config,
		},
	})
	if err != nil {
		return none, err
	}
	return op.Ref, store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, cluster.ID)...)
}

// asConflict turns an error that a changed world causes into Conflict, so that a
// caller who did nothing wrong is told that something moved.
func asConflict(err error, format string, args ...any) error {
	if e := loom.AsError(err); e.Kind == loom.Internal || errors.Is(err, loom.Unavailable) {
		return err
	}
	conflict := loom.NewError(loom.Conflict, format, args...)
	conflict.Err = err
	return conflict
}
