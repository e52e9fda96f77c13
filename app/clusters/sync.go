package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/solver"
)

func checkSync(in PreviewInput) []loom.FieldError { return CheckPolicy("", in.Change.OnFailure) }

// draftSync reads the newest version of a cluster's template, with how the newest versions of
// its services are checked, and checks that what is there satisfies the template. Errors: NotFound, also when the template was
// deleted or the cluster has no nodes; Unsolvable.
func draftSync(ctx context.Context, u *Clusters, r request, c *change) error {
	cluster := r.cluster
	cv, err := u.readCatalog(ctx, r.actor.Tenant, cluster.Template.Name, "")
	switch {
	case cv == nil && isNotFound(err):
		e := loom.AsError(err)
		return &loom.Error{Kind: loom.NotFound, Message: e.Message, Err: err}
	case cv == nil, err != nil && !isNotFound(err): // the provider does not matter, the cluster has its own
		return err
	}
	if len(c.Before.Nodes) == 0 {
		return loom.NewError(loom.NotFound, "Cluster %s has no nodes to hold against the template.", cluster.ID)
	}
	c.Before.Template, c.After.Template, c.Template = &cluster.Template, &cv.template, cv.template.Base
	for _, v := range cv.used {
		if v.Kind == loom.KindTemplate || v.Kind == loom.KindPartialTemplate {
			c.Versions = append(c.Versions, v)
		}
	}
	if err := checkTemplate(cluster, cv.template, c.Before.Nodes); err != nil {
		return err
	}
	if err := u.draftChecks(ctx, r.actor.Tenant, c); err != nil {
		return err
	}
	c.warn("Config, services, nodes and lease stay as they are. Only what the template allows and how Loom checks services changes.")
	if sameJSON(document(c.Before.Template), document(c.After.Template)) {
		c.warn("The template says the same as the cluster's copy of it.")
	}
	return nil
}

// draftChecks takes check, files and logs of services from their newest versions, and nothing
// else of these.
func (u *Clusters) draftChecks(ctx context.Context, tenant loom.TenantID, c *change) error {
	newest, err := store.Services(ctx, u.q, tenant)
	if err != nil {
		return err
	}
	c.After.Services = maps.Clone(c.After.Services)
	for _, name := range sortedNames(c.Before.Services) { // the hash of the preview depends on the order
		if of, there := newest[name]; there {
			c.After.Services[name] = c.Before.Services[name].WatchedAs(&of)
			c.Versions = append(c.Versions, store.EntryVersion{Kind: loom.KindService, Name: name, Version: of.Version})
		}
	}
	return nil
}

// checksOf is how services are checked, by name, as JSON.
func checksOf(services map[string]loom.Service) map[string]any {
	checks := map[string]any{}
	for name := range services {
		of := services[name]
		checks[name] = document(struct {
			Check *loom.ServiceCheck `json:"check,omitempty"`
			Files []string           `json:"files,omitempty"`
			Logs  *loom.ServiceLogs  `json:"logs,omitempty"`
		}{of.Check, of.Files, of.Logs})
	}
	return checks
}

func showTemplate(v *PreviewView, c *change, list *changeList) error {
	v.Layout, v.Provider = layoutOf(c.After.Nodes), loom.Base{Name: c.Provider.Name}
	list.documents("template", "", document(c.Before.Template), document(c.After.Template), nil)
	list.documents("service", "", checksOf(c.Before.Services), checksOf(c.After.Services), nil)
	return nil
}

func summarizeSync(*PreviewView) string {
	return "Replaces the cluster’s copy of its template and of the checks of its services"
}

// checkTemplate returns Unsolvable, with every constraint that breaks, unless the
// present layout of a cluster satisfies a template.
func checkTemplate(c loom.Cluster, t loom.Template, nodes []loom.Node) error {
	layout := layoutOf(nodes)
	problem, unsat := solver.NewProblem(solverInput(c, t, nodes, sortedNames(c.Services), c.Services))
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
// all that it extends and includes, and takes the checks, files and logs of the newest versions
// of its services, at once and without an operation. Nothing else of the cluster changes. Errors as a preview of the kind sync.
func (u *Clusters) Sync(ctx context.Context, actor loom.Actor, id loom.ClusterID) error {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return err
	}
	for try := 0; ; try++ {
		c, cluster, err := u.changeOf(ctx, actor, PreviewInput{Kind: loom.ChangeSync, Cluster: id})
		if err != nil {
			return err
		}
		err = store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
			return u.sync(ctx, tx, actor, cluster, c, "sync")
		})
		var old *stale
		if errors.Is(err, errClusterChanged) || errors.As(err, &old) {
			if try < maxReads {
				continue
			}
			return keepsChanging()
		}
		return err
	}
}

// sync stores the template, under the lock of the cluster. The error is errClusterChanged
// or *stale where cluster or template are not as they were seen.
func (u *Clusters) sync(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, seen loom.Cluster, c *change, verb string) error {
	cluster, err := store.LockCluster(ctx, tx, actor.Tenant, seen.ID)
	if err := allowed(actor, loom.Operate, seen.ID, cluster.Object(), err); err != nil {
		return err
	}
	if err := u.checkAllowed(ctx, tx, cluster, loom.ChangeSync); err != nil {
		return err
	}
	if cluster.Revision != seen.Revision {
		return errClusterChanged
	}
	if err := c.checkVersions(ctx, tx, actor.Tenant); err != nil {
		return err
	}
	services := c.After.Services
	if sameJSON(checksOf(c.Before.Services), checksOf(services)) {
		services = nil
	}
	if err := store.SetClusterTemplate(ctx, tx, actor.Tenant, cluster.ID, *c.After.Template, services); err != nil {
		return err
	}
	err = store.InsertAudit(ctx, tx, loom.AuditEntry{
		Actor: actor, Verb: verb, Kind: "cluster", Object: cluster.ID.String(), Result: "ok",
		Before: map[string]any{"clusterTemplate": cluster.Template.Name, "version": cluster.Template.Version},
		After:  map[string]any{"clusterTemplate": c.After.Template.Name, "version": c.After.Template.Version, "changed": paths(document(cluster.Template), document(c.After.Template))},
	})
	if err != nil {
		return err
	}
	return store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, cluster.ID)...)
}
