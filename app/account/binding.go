package account

import (
	"context"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// maxBindings is how many bindings below the tenant a user, or a group, may have.
const maxBindings = 100

// BindingInput is a role for a user or a group, in all of the tenant unless it names a template
// or a cluster.
type BindingInput struct {
	User     loom.UserID
	Group    int64
	Role     loom.Role
	Template string
	Cluster  loom.ClusterID
}

func (in *BindingInput) check() []loom.FieldError {
	var errs []loom.FieldError
	switch {
	case in.User == "" && in.Group == 0:
		errs = append(errs, loom.FieldError{Field: "user", Message: "Name a user or a group."})
	case in.User != "" && in.Group != 0:
		errs = append(errs, loom.FieldError{Field: "group", Message: "Name a user or a group, not both."})
	case in.User == loom.AdminUser:
		errs = append(errs, loom.FieldError{Field: "user", Message: "The built-in administrator may do everything in the tenant already."})
	}
	if in.Template != "" && in.Cluster != 0 {
		errs = append(errs, loom.FieldError{Field: "cluster", Message: "Name a template or a cluster, not both."})
	}
	if roles := loom.BoundAt(in.grant().Place()); !slices.Contains(roles, in.Role) {
		errs = append(errs, loom.FieldError{Field: "role", Message: "Choose one of these roles: " + roleList(roles) + "."})
	}
	return errs
}

func roleList(roles []loom.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}

func (in *BindingInput) grant() loom.Grant {
	return loom.Grant{Role: in.Role, Template: in.Template, Cluster: in.Cluster}
}

func shownBinding(b loom.Binding) map[string]any {
	shown := map[string]any{"id": b.ID, "role": b.Role}
	for name, value := range map[string]any{"user": string(b.User), "group": b.GroupName, "template": b.Template} {
		if value != "" {
			shown[name] = value
		}
	}
	if b.Cluster != 0 {
		shown["cluster"] = b.Cluster.String()
	}
	return shown
}

// BindingFilter narrows a list of bindings; empty fields do not filter.
type BindingFilter = store.BindingFilter

// BindingList is a page of bindings. Next and Prev are cursors, "" where there is no more.
type BindingList struct {
	Items      []loom.Binding
	Next, Prev string
}

// ListBindings lists the bindings of the actor's tenant, the newest first. Errors: Forbidden,
// Invalid.
func (a *Accounts) ListBindings(ctx context.Context, actor loom.Actor, f BindingFilter, p loom.Page) (BindingList, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return BindingList{}, err
	}
	items, next, prev, err := store.BindingPage(ctx, a.db, actor.Tenant, f, p)
	return BindingList{items, next, prev}, err
}

// Bind gives a role. Errors: Forbidden; Invalid; Conflict where it is given already; Exhausted.
func (a *Accounts) Bind(ctx context.Context, actor loom.Actor, in BindingInput) (loom.Binding, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return loom.Binding{}, err
	}
	return a.bind(ctx, actor, in, func(*sqlx.Tx) error { return nil })
}

// bind stores a binding; may says under lock whether the actor may give it.
func (a *Accounts) bind(ctx context.Context, actor loom.Actor, in BindingInput, may func(tx *sqlx.Tx) error) (loom.Binding, error) {
	if err := loom.InvalidFields(in.check()); err != nil {
		return loom.Binding{}, err
	}
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.Binding, error) {
		if err := store.HoldActor(ctx, tx, actor); err != nil {
			return loom.Binding{}, err
		}
		if err := may(tx); err != nil {
			return loom.Binding{}, err
		}
		if err := in.subject(ctx, tx, actor); err != nil {
			return loom.Binding{}, err
		}
		if err := in.place(ctx, tx, actor.Tenant); err != nil {
			return loom.Binding{}, err
		}
		id, err := store.InsertBinding(ctx, tx, actor.Tenant, loom.Binding{User: in.User, Group: in.Group, Grant: in.grant(), CreatedBy: actor.User})
		if err != nil {
			return loom.Binding{}, err
		}
		b, err := store.Binding(ctx, tx, actor.Tenant, id)
		if err != nil {
			return b, err
		}
		if err := record(ctx, tx, actor, "create", "binding", itoa(int(id)), nil, shownBinding(b)); err != nil {
			return b, err
		}
		return b, store.InsertEvents(ctx, tx, bindingEvents(actor.Tenant, in.grant())...)
	})
}

// bindingEvents tell pages that roles changed.
func bindingEvents(tenant loom.TenantID, g loom.Grant) []loom.Event {
	events := []loom.Event{groupEvent(tenant)}
	if g.Cluster != 0 {
		events = append(events, loom.Event{Tenant: tenant, Topic: "cluster:" + g.Cluster.String()})
	}
	return events
}

// subject returns an error about the field user or group where the role cannot be given to it.
func (in *BindingInput) subject(ctx context.Context, tx *sqlx.Tx, actor loom.Actor) error {
	field := "user"
	if in.User != "" {
		if err := knownUser(ctx, tx, actor.Tenant, field, in.User); err != nil {
			return err
		}
	} else {
		field = "group"
		none := loom.InvalidFields([]loom.FieldError{{Field: field, Message: "There is no such group that you may give a role."}})
		if _, err := store.LockGroup(ctx, tx, actor.Tenant, in.Group); isNotFound(err) {
			return none
		} else if err != nil {
			return err
		}
		if actor.May(loom.Administer, actor.InTenant()) != nil {
			own, err := store.GroupsOf(ctx, tx, actor.Tenant, actor.User)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(own, func(g loom.Group) bool { return g.ID == in.Group }) {
				return none
			}
		}
	}
	if in.grant().Place() == loom.PlaceTenant {
		return nil
	}
	n, err := store.CountBindings(ctx, tx, actor.Tenant, in.User, in.Group)
	if err == nil && n >= maxBindings {
		err = loom.NewError(loom.Exhausted, "This %s has %d roles on templates and clusters, the most there are; take some back, or bind one to the tenant.", field, n)
	}
	return err
}

// place returns an error about the field template or cluster where there is no such thing.
func (in *BindingInput) place(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) error {
	switch in.grant().Place() {
	case loom.PlaceTemplate:
		if err := store.LockCatalogName(ctx, tx, tenant, loom.KindTemplate, in.Template); err != nil { // its bindings go with its last version
			return err
		}
		_, err := store.CatalogEntry(ctx, tx, tenant, loom.KindTemplate, in.Template, 0)
		if isNotFound(err) {
			return loom.InvalidFields([]loom.FieldError{{Field: "template", Message: "There is no such template."}})
		}
		return err
	case loom.PlaceCluster:
		c, err := store.ClusterByID(ctx, tx, tenant, in.Cluster)
		if isNotFound(err) || err == nil && c.Status == loom.ClusterTerminated {
			return loom.InvalidFields([]loom.FieldError{{Field: "cluster", Message: "There is no such cluster, or it was deleted."}})
		}
		return err
	}
	return nil
}

// Unbind takes a role back. Errors: Forbidden, NotFound.
func (a *Accounts) Unbind(ctx context.Context, actor loom.Actor, id int64) error {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if err := store.HoldActor(ctx, tx, actor); err != nil {
			return err
		}
		b, err := store.Binding(ctx, tx, actor.Tenant, id)
		if err != nil {
			return err
		}
		return a.unbind(ctx, tx, actor, b)
	})
}

func (a *Accounts) unbind(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, b loom.Binding) error {
	there, err := store.DeleteBinding(ctx, tx, actor.Tenant, b.ID)
	if err == nil && !there {
		err = loom.NewError(loom.NotFound, "There is no binding %d.", b.ID)
	}
	if err != nil {
		return err
	}
	if err := record(ctx, tx, actor, "delete", "binding", itoa(int(b.ID)), shownBinding(b), nil); err != nil {
		return err
	}
	return store.InsertEvents(ctx, tx, bindingEvents(actor.Tenant, b.Grant)...)
}

// Access is who may do what with a cluster, besides the administrators of its tenant.
type Access struct {
	Cluster loom.ClusterID
	Owner   loom.UserID
	// Bindings are those of the cluster, then those of its template, then those of the tenant.
	Bindings []loom.Binding
	// MayShare says that the actor may share the cluster, with Groups too.
	MayShare bool
	Groups   []loom.Group
}

// Access returns who may do what with a cluster. NotFound for one that the actor may not see.
func (a *Accounts) Access(ctx context.Context, actor loom.Actor, id loom.ClusterID) (Access, error) {
	o, err := a.clusterFor(ctx, a.db, actor, loom.See, id)
	if err != nil {
		return Access{}, err
	}
	access := Access{Cluster: id, Owner: o.Owner, MayShare: actor.May(loom.Own, o) == nil}
	for _, f := range []store.BindingFilter{{Cluster: id}, {Template: o.Template}, {Place: loom.PlaceTenant}} {
		bindings, err := store.Bindings(ctx, a.db, actor.Tenant, f)
		if err != nil {
			return Access{}, err
		}
		for _, b := range bindings {
			if loom.SeesClusters(b.Role) {
				access.Bindings = append(access.Bindings, b)
			}
		}
	}
	if !access.MayShare {
		return access, nil
	}
	if access.Groups, err = store.GroupsOf(ctx, a.db, actor.Tenant, actor.User); err != nil || actor.May(loom.Administer, actor.InTenant()) != nil {
		return access, err
	}
	all, _, _, err := store.GroupPage(ctx, a.db, actor.Tenant, "", loom.Page{Limit: maxOffered})
	access.Groups = all
	return access, err
}

// maxOffered is how many groups are offered to an administrator who shares a cluster.
const maxOffered = 500

// clusterFor reads what a check of rights needs of a cluster, if the actor may do something with it.
func (a *Accounts) clusterFor(ctx context.Context, q sqlx.ExtContext, actor loom.Actor, verb loom.Verb, id loom.ClusterID) (loom.Object, error) {
	o, err := store.ClusterObject(ctx, q, actor.Tenant, id)
	if err == nil {
		err = actor.May(verb, o)
	}
	if isNotFound(err) {
		err = loom.NewError(loom.NotFound, "There is no cluster %s.", id)
	}
	return o, err
}

// Share gives a user, or a group, a role on a cluster. Errors: NotFound, Forbidden, Invalid,
// Conflict where it is given already, Exhausted.
func (a *Accounts) Share(ctx context.Context, actor loom.Actor, in BindingInput) (loom.Binding, error) {
	if _, err := a.clusterFor(ctx, a.db, actor, loom.Own, in.Cluster); err != nil {
		return loom.Binding{}, err
	}
	in.Template = ""
	return a.bind(ctx, actor, in, func(tx *sqlx.Tx) error {
		_, err := a.clusterFor(ctx, tx, actor, loom.Own, in.Cluster)
		return err
	})
}

// Unshare takes back a role on a cluster, and returns the names of the nodes whose sign-in was
// revealed to those who lose it: they keep that. Errors: NotFound, Forbidden.
func (a *Accounts) Unshare(ctx context.Context, actor loom.Actor, cluster loom.ClusterID, id int64) (revealed []string, err error) {
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) ([]string, error) {
		if err := store.HoldActor(ctx, tx, actor); err != nil {
			return nil, err
		}
		if _, err := a.clusterFor(ctx, tx, actor, loom.Own, cluster); err != nil {
			return nil, err
		}
		b, err := store.Binding(ctx, tx, actor.Tenant, id)
		if err == nil && b.Cluster != cluster {
			err = loom.NewError(loom.NotFound, "There is no binding %d of this cluster.", id)
		}
		if err != nil {
			return nil, err
		}
		revealed, err := store.RevealedNodes(ctx, tx, actor.Tenant, cluster, b.User, b.Group)
		if err != nil {
			return nil, err
		}
		return revealed, a.unbind(ctx, tx, actor, b)
	})
}
