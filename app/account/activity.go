package account

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/store"
)

// ActivityInput asks for a part of what happened; empty parts mean any.
type ActivityInput struct {
	Page loom.Page
	// All is over all tenants, or the one named Tenant, for superadmins.
	All    bool
	Tenant string
	// About is one of ActivityKinds, "" for all.
	About string
	// Cluster is an id as people see it.
	Cluster string
	ActivityFilter
}

// ActivityFilter limits a list of what happened; its Viewer and Kinds are filled in.
type ActivityFilter = store.ActivityFilter

// ActivityList is a page of what happened, the newest first.
type ActivityList = store.ActivityList

// ActivityKinds are what a feed can be limited to.
var ActivityKinds = []string{"clusters", "catalog", "resources", "credentials"}

var activityWords = map[string][]string{
	"clusters": {"cluster", "operation", "task"}, "catalog": store.CatalogWords(), "resources": {"resource"}, "credentials": {"node"},
}

// Activity lists what happened to clusters, leases, credentials and the catalog.
// Users see what they did, what happened to their own clusters and what changed in
// the catalog; administrators all of their tenant. Errors: Forbidden for all tenants
// without the role, NotFound for an unknown tenant, Invalid for words that there are
// not and for a cursor of another list.
func (a *Accounts) Activity(ctx context.Context, actor loom.Actor, in ActivityInput) (ActivityList, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return ActivityList{}, err
	}
	if in.All {
		if err := mayReadTenants(actor); err != nil {
			return ActivityList{}, err
		}
	}
	if err := in.check(); err != nil {
		return ActivityList{}, err
	}
	switch {
	case in.All && in.Tenant == "":
		return store.ActivityAllTenants(ctx, a.db, in.ActivityFilter, in.Page)
	case in.All:
		tenant, err := store.TenantByNameAllTenants(ctx, a.db, in.Tenant)
		if err != nil {
			return ActivityList{}, named(err, in.Tenant)
		}
		return store.Activity(ctx, a.db, tenant.ID, in.ActivityFilter, in.Page)
	}
	if in.Viewer = store.SeenBy(actor); in.Viewer != "" {
		self, err := store.User(ctx, a.kept, actor.Tenant, actor.User)
		if err != nil {
			return ActivityList{}, err
		}
		in.ViewerSince = self.Created
	}
	return store.Activity(ctx, a.kept, actor.Tenant, in.ActivityFilter, in.Page)
}

// check makes kinds of About and the number of the cluster.
func (in *ActivityInput) check() error {
	var errs []loom.FieldError
	in.Kinds = nil
	for _, about := range ActivityKinds {
		if in.About == "" || in.About == about {
			in.Kinds = append(in.Kinds, activityWords[about]...)
		}
	}
	if in.About != "" && !slices.Contains(ActivityKinds, in.About) {
		errs = append(errs, loom.FieldError{Field: "about", Message: fmt.Sprintf("“%.40s” is none of %s.", in.About, strings.Join(ActivityKinds, ", "))})
	}
	if in.Result != "" && !slices.Contains([]string{"ok", "refused", "failed"}, in.Result) {
		errs = append(errs, loom.FieldError{Field: "result", Message: "A result is ok, refused or failed."})
	}
	in.ActivityFilter.Cluster, in.ClusterName = 0, in.Cluster
	if id, ok := loom.ParseClusterID(in.Cluster); ok {
		in.ActivityFilter.Cluster, in.ClusterName = id, ""
	} else if in.Cluster != "" && len(loom.CheckName("cluster", in.Cluster)) > 0 {
		errs = append(errs, loom.FieldError{Field: "cluster", Message: fmt.Sprintf("“%.40s” is neither a name nor an id of a cluster, such as 00000042.", in.Cluster)})
	}
	return loom.InvalidFields(errs)
}
