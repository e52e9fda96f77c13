package clusters

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"loom/app/loom"
	"loom/app/store"
	"loom/solver"
)

// Try works out what Preview would show and keeps nothing of it: the answer has no
// id and cannot be applied. Forms ask it while they are filled in. Errors: as Preview.
func (u *Clusters) Try(ctx context.Context, actor loom.Actor, in PreviewInput) (PreviewView, error) {
	if err := actor.May(loom.Operate.Reading(), actor.Mine()); err != nil {
		return PreviewView{}, err
	}
	p, body, plan, err := u.draft(ctx, actor, in)
	if err != nil {
		return PreviewView{}, err
	}
	p.ID = ""
	return u.view(ctx, actor, p, body, plan)
}

// draft works out a preview, which has no hash yet.
func (u *Clusters) draft(ctx context.Context, actor loom.Actor, in PreviewInput) (loom.Preview, *previewBody, loom.Plan, error) {
	body := &previewBody{}
	p := loom.Preview{ID: loom.PreviewID(uuid.NewString()), Kind: in.Kind, Owner: actor.Account()}
	switch in.Kind {
	case loom.PreviewCreate:
		d, _, err := u.draftCreate(ctx, actor, in.Create, true)
		if err != nil {
			return p, nil, loom.Plan{}, err
		}
		body.Create, p.Cluster = d, d.Cluster
	case loom.PreviewConfigure, loom.PreviewAddServices, loom.PreviewStart, loom.PreviewStop, loom.PreviewRestart, loom.PreviewDelete,
		loom.PreviewExpand, loom.PreviewShrink, loom.PreviewRemoveServices, loom.PreviewUpgrade, loom.PreviewResize, loom.PreviewRepair,
		loom.PreviewRetry, loom.PreviewRollback, loom.PreviewAuthorize:
		d, cluster, err := u.draftLive(ctx, actor, in)
		if in.Abort && cluster.Status == loom.ClusterPending && errors.Is(err, loom.Conflict) {
			err = asConflict(err, "%s A delete that aborts it has no preview; delete at once instead.", loom.AsError(err).Message)
		}
		if err != nil {
			return p, nil, loom.Plan{}, err
		}
		body.Live, p.Cluster, p.Revision = d, cluster.ID, cluster.Revision
	case loom.PreviewSync:
		if err := loom.InvalidFields(CheckPolicy("", in.Change.OnFailure)); err != nil {
			return p, nil, loom.Plan{}, err
		}
		d, cluster, err := u.draftSync(ctx, actor, in.Cluster)
		if err != nil {
			return p, nil, loom.Plan{}, err
		}
		body.Sync, p.Cluster, p.Revision = d, cluster.ID, cluster.Revision
	default:
		return p, nil, loom.Plan{}, loom.InvalidFields([]loom.FieldError{{Field: "kind", Message: noKind()}})
	}
	plan, err := body.plan()
	if err == nil && body.Live != nil && makesMachines(plan) {
		if err = permitted(ctx, u.db, actor.Tenant, body.Live.Provider, plan); err == nil {
			var b building
			b, _, err = buildingOf(ctx, u.db, body.Live.Provider)
			body.Live.Building = &b
		}
	}
	return p, body, plan, err
}

// asked is the request that a preview was made from, without provider fields.
func (b *previewBody) asked(p loom.Preview) PreviewInput {
	in := PreviewInput{Kind: p.Kind, Cluster: p.Cluster}
	if d := b.Create; d != nil {
		in.Create = d.Input
	}
	d := b.Live
	if d == nil {
		return in
	}
	in.Service, in.Configure = d.Service, d.Configure
	in.Change.OnFailure = d.AskedPolicy
	if d.Added != nil {
		in.Services = d.Added.Asked
	}
	if d.Altered != nil {
		in.Change = d.Altered.Asked
	}
	if d.Followed != nil {
		in.Change = d.Followed.Asked
	}
	return in
}

// Sizes gives the numbers of machines that a cluster could be brought to, as far as
// its rules, the quota of its tenant and this installation allow; within the range
// there may be gaps. The present number always counts. Errors: NotFound, Conflict.
func (u *Clusters) Sizes(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.SizeRange, error) {
	var none loom.SizeRange
	if err := actor.May(loom.Operate.Reading(), actor.Mine()); err != nil {
		return none, err
	}
	cluster, nodes, err := u.atOneMoment(ctx, actor, PreviewInput{Kind: loom.PreviewExpand, Cluster: id})
	if err != nil {
		return none, err
	}
	quota, err := store.QuotaUse(ctx, u.db, cluster.Owner.Tenant)
	if err != nil {
		return none, err
	}
	high := min(u.opts.MaxMachines, len(nodes)+max(0, quota.MaxNodes-quota.Nodes))
	w, err := u.readTypes(ctx, cluster.Owner.Tenant)
	if err != nil {
		return none, err
	}
	sizes := loom.SizeRange{Min: len(nodes), Max: len(nodes)}
	if high > len(nodes) {
		_, err := u.grow(ctx, cluster, nodes, w, high)
		sizes.Max = max(len(nodes), best(err, high, func(r *loom.SizeRange) int { return min(r.Max, high) }))
	}
	if len(nodes) > 1 {
		solving, stop := u.solving(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
		defer stop()
		_, unsat, err := solver.Shrink(solving, question(cluster, nodes, cluster.Services), 1)
		switch {
		case err == nil && unsat == nil:
			sizes.Min = 1
		case unsat != nil && unsat.Sizes != nil:
			sizes.Min = min(len(nodes), unsat.Sizes.Min)
		}
	}
	return sizes, nil
}

// best is the figure that an attempt at the highest one leads to; 0 for none.
func best(err error, high int, of func(r *loom.SizeRange) int) int {
	if err == nil {
		return high
	}
	if e := loom.AsError(err); e.Unsat != nil && e.Unsat.Sizes != nil {
		return of(e.Unsat.Sizes)
	}
	return 0
}
