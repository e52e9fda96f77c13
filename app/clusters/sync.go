package clusters

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/solver"
)

// syncDraft replaces a cluster's copy of its template by the template as it is in
// the catalog: the body of a preview.
type syncDraft struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Provider    string        `json:"provider"`
	Services    []string      `json:"services"`
	Nodes       []loom.Node   `json:"nodes"`
	Before      loom.Template `json:"before"`
	// After is resolved.
	After loom.Template `json:"after"`
	// Versions are the templates that must still be the newest ones.
	Versions []store.EntryVersion `json:"versions"`
	Warnings []string             `json:"warnings"`
}

// draftSync reads a cluster and the newest version of its template, and checks
// that what is there satisfies it (lifecycle.md 11). Errors: NotFound, also when
// the template was deleted or the cluster has no nodes; Conflict; Unsolvable.
func (u *Clusters) draftSync(ctx context.Context, actor loom.Actor, id loom.ClusterID) (*syncDraft, loom.Cluster, error) {
	cluster, err := store.ClusterByID(ctx, u.db, actor.Tenant, id)
	if err := allowed(actor, loom.Operate.Reading(), id, cluster.Owner, err); err != nil {
		return nil, cluster, err
	}
	if err := u.mayBegin(ctx, u.db, cluster, loom.VerbSync); err != nil {
		return nil, cluster, err
	}
	w, err := u.readWorld(ctx, actor.Tenant, cluster.Template.Name, "")
	switch {
	case w == nil && isNotFound(err):
		e := loom.AsError(err)
		return nil, cluster, &loom.Error{Kind: loom.NotFound, Message: e.Message, Err: err}
	case w == nil, err != nil && !isNotFound(err): // the provider does not matter, the cluster has its own
		return nil, cluster, err
	}
	nodes, err := u.members(ctx, cluster, loom.PreviewSync)
	if err != nil {
		return nil, cluster, err
	}
	if len(nodes) == 0 {
		return nil, cluster, loom.NewError(loom.NotFound, "Cluster %s has no nodes to hold against the template.", id)
	}
	d := &syncDraft{
		Name: cluster.Name, Description: cluster.Description, Provider: cluster.Provider.Name, Services: sortedNames(cluster.Services),
		Nodes: nodes, Before: cluster.Template, After: w.template, Warnings: []string{},
	}
	for _, v := range w.used {
		if v.Kind == loom.KindTemplate || v.Kind == loom.KindPartialTemplate {
			d.Versions = append(d.Versions, v)
		}
	}
	if err := stillFits(cluster, w.template, nodes); err != nil {
		return nil, cluster, err
	}
	d.Warnings = append(d.Warnings, "Config, services, nodes and lease stay as they are; only what the template allows from now on changes.")
	if sameJSON(document(d.Before), document(d.After)) {
		d.Warnings = append(d.Warnings, "The template says the same as the cluster's copy of it.")
	}
	return d, cluster, nil
}

// stillFits returns Unsolvable, with every constraint that breaks, unless the
// present layout of a cluster satisfies a template.
func stillFits(c loom.Cluster, t loom.Template, nodes []loom.Node) error {
	layout := layoutOf(nodes)
	problem, unsat := solver.NewProblem(present(c, t, nodes, sortedNames(c.Services), c.Services))
	if unsat == nil {
		reasons := solver.Valid(problem, layout)
		if len(reasons) == 0 {
			return nil
		}
		unsat = &loom.Unsat{Code: solver.CodeUnsat, Reasons: reasons}
	}
	unsat.Headline = fmt.Sprintf("The cluster does not satisfy version %d of the template “%s”.", t.Version, t.Name)
	return &loom.Error{Kind: loom.Unsolvable, Message: unsat.Headline, Unsat: unsat}
}

// Sync replaces the cluster's copy of its template by the newest version, with
// all that it extends and includes, at once and without an operation. Nothing
// else of the cluster changes. Errors as a preview of the kind sync.
func (u *Clusters) Sync(ctx context.Context, actor loom.Actor, id loom.ClusterID) error {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return err
	}
	for try := 0; ; try++ {
		d, cluster, err := u.draftSync(ctx, actor, id)
		if err != nil {
			return err
		}
		err = store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
			return u.sync(ctx, tx, actor, cluster, d, "sync")
		})
		var old *stale
		if errors.Is(err, errMoved) || errors.As(err, &old) {
			if try < maxTries {
				continue
			}
			return keepsChanging()
		}
		return err
	}
}

// sync stores the template, under the lock of the cluster. The error is errMoved
// or *stale where cluster or template are not as they were seen.
func (u *Clusters) sync(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, seen loom.Cluster, d *syncDraft, verb string) error {
	cluster, err := store.LockCluster(ctx, tx, actor.Tenant, seen.ID)
	if err := allowed(actor, loom.Operate, seen.ID, cluster.Owner, err); err != nil {
		return err
	}
	if err := u.mayBegin(ctx, tx, cluster, loom.VerbSync); err != nil {
		return err
	}
	if cluster.Revision != seen.Revision {
		return errMoved
	}
	now, err := store.NewestVersions(ctx, tx, actor.Tenant, d.Versions)
	if err != nil {
		return err
	}
	if differs := compareVersions(d.Versions, now); len(differs) > 0 {
		return &stale{differs}
	}
	if err := store.SetClusterTemplate(ctx, tx, actor.Tenant, cluster.ID, d.After); err != nil {
		return err
	}
	err = store.InsertAudit(ctx, tx, loom.AuditEntry{
		Actor: actor, Verb: verb, Kind: "cluster", Object: cluster.ID.String(), Result: "ok",
		Before: map[string]any{"clusterTemplate": cluster.Template.Name, "version": cluster.Template.Version},
		After:  map[string]any{"clusterTemplate": d.After.Name, "version": d.After.Version, "changed": paths(document(cluster.Template), document(d.After))},
	})
	if err != nil {
		return err
	}
	return store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, cluster.ID)...)
}
