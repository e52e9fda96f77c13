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
	// Cluster is a name, or an id as people see it.
	Cluster string
	// Action is the name of one of ActivityActions, "" for any.
	Action string
	ActivityFilter
}

// ActivityFilter limits a list of what happened; its Viewer, Kinds, Actions and Verbs are filled in.
type ActivityFilter = store.ActivityFilter

// ActivityList is a page of what happened, the newest first.
type ActivityList = store.ActivityList

// ActivityKinds are what a feed can be limited to.
var ActivityKinds = []string{"clusters", "catalog", "resources", "credentials"}

var activityWords = map[string][]string{
	"clusters": {"cluster", "operation", "task"}, "catalog": store.CatalogWords(), "resources": {"resource"}, "credentials": {"node"},
}

// ActivityAction is something that people do. Name is its word in addresses, Label what it is
// called; Actions are those of the operations that do it, Verbs those of the audit log.
type ActivityAction struct {
	Name, Label string
	Actions     []loom.ClusterAction
	Verbs       []string
}

// ActivityActions are what a feed can be limited to, in the order of filters. Actions of
// operations that are called the same are one.
var ActivityActions = activityActions()

func activityActions() []ActivityAction {
	var all []ActivityAction
	add := func(label, name string, action loom.ClusterAction, verb string) {
		at := slices.IndexFunc(all, func(a ActivityAction) bool { return a.Label == label })
		if at < 0 {
			at, all = len(all), append(all, ActivityAction{Name: name, Label: label})
		}
		if action != "" {
			all[at].Actions = append(all[at].Actions, action)
		}
		if verb != "" {
			all[at].Verbs = append(all[at].Verbs, verb)
		}
	}
	for _, action := range loom.ClusterActions {
		add(action.Done(), strings.TrimPrefix(string(action), "cluster_"), action, "")
	}
	for _, verb := range []struct{ label, verb string }{
		{"Created", "create"}, {"Deleted", "delete"}, {"Changed", "update"}, {"Changed", "apply"}, {"Aborted", "abort"}, {"Paused", "pause"}, {"Resumed", "resume"}, {"Skipped", "skip"},
		{"Downloaded keys", "reveal"}, {"Imported", "import"}, {"Staged", "stage"}, {"Withdrew", "recall"}, {"Withdrew", "withdraw"}, {"Released", "sync"}, {"Released", "release"},
	} {
		add(verb.label, verb.verb, "", verb.verb)
	}
	return all
}

// Activity lists what happened to clusters, leases, credentials and the catalog.
// Users see what they did, what happened to their own clusters and what changed in
// the catalog; administrators all of their tenant. Errors: Forbidden for all tenants
// without the role, NotFound for an unknown tenant, Invalid for words that there are
// not and for a cursor of another list.
func (a *Accounts) Activity(ctx context.Context, actor loom.Actor, in ActivityInput) (ActivityList, error) {
	tenant, viewer, err := a.activityScope(ctx, actor, in)
	if err != nil {
		return ActivityList{}, err
	}
	if err := in.check(); err != nil {
		return ActivityList{}, err
	}
	if tenant == "" {
		return store.ActivityAllTenants(ctx, a.db, in.ActivityFilter, in.Page)
	}
	if in.Viewer = viewer; !viewer.SeesAll() {
		self, err := store.User(ctx, a.kept, actor.Tenant, actor.User)
		if err != nil {
			return ActivityList{}, err
		}
		in.ViewerSince = self.Created
	}
	return store.Activity(ctx, a.kept, tenant, in.ActivityFilter, in.Page)
}

// activityScope gives the tenant of the feed, "" for all, and its viewer.
func (a *Accounts) activityScope(ctx context.Context, actor loom.Actor, in ActivityInput) (tenant loom.TenantID, viewer store.Viewer, err error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return "", viewer, err
	}
	if !in.All {
		return actor.Tenant, store.SeenBy(actor), nil
	}
	if err := mayReadTenants(actor); err != nil || in.Tenant == "" {
		return "", viewer, err
	}
	of, err := store.TenantByNameAllTenants(ctx, a.db, in.Tenant)
	return of.ID, viewer, named(err, in.Tenant)
}

// ActivityNames are the names by which a feed can be limited.
type ActivityNames = store.Names

// ActivityNames reads the users and the newest clusters of what Activity would list. Errors:
// Forbidden, NotFound for an unknown tenant.
func (a *Accounts) ActivityNames(ctx context.Context, actor loom.Actor, in ActivityInput) (ActivityNames, error) {
	tenant, viewer, err := a.activityScope(ctx, actor, in)
	if err != nil {
		return ActivityNames{}, err
	}
	if tenant == "" {
		return store.ActivityNamesAllTenants(ctx, a.db)
	}
	return store.ActivityNames(ctx, a.db, tenant, viewer)
}

// check makes kinds of About, actions of Action and the number of the cluster.
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
	if in.Result != "" && !slices.Contains([]string{loom.ActivityRunning, loom.ActivityDone, loom.ActivityRefused, loom.ActivityFailed}, in.Result) {
		errs = append(errs, loom.FieldError{Field: "result", Message: "A result is running, ok, refused or failed."})
	}
	if at := slices.IndexFunc(ActivityActions, func(a ActivityAction) bool { return a.Name == in.Action }); at >= 0 {
		in.Actions, in.Verbs = ActivityActions[at].Actions, ActivityActions[at].Verbs
	} else if in.Action != "" {
		errs = append(errs, loom.FieldError{Field: "action", Message: fmt.Sprintf("There is no action “%.40s”; choose one of the list.", in.Action)})
	}
	in.ActivityFilter.Cluster, in.ClusterName = 0, in.Cluster
	if id, ok := loom.ParseClusterID(in.Cluster); ok {
		in.ActivityFilter.Cluster, in.ClusterName = id, ""
	} else if in.Cluster != "" && len(loom.CheckName("cluster", in.Cluster)) > 0 {
		errs = append(errs, loom.FieldError{Field: "cluster", Message: fmt.Sprintf("“%.40s” is neither a name nor an id of a cluster, such as 00000042.", in.Cluster)})
	}
	return loom.InvalidFields(errs)
}
