package account

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// TenantInput is a tenant to make or to change. What is nil stays as it is; when
// made, it is no description, no workers and no limits. A zero counts as written.
// Bootstrap copies catalog and plugin resources of the superadmin, when made.
type TenantInput struct {
	Name        string
	Description *string
	Workers     *int
	// WorkersFrom is another tenant by name: what is not free of Workers is taken from it.
	WorkersFrom string
	MaxClusters *int
	MaxNodes    *int
	// PrivateNetworks, InstanceRoles and TypesOff are loom.Permits; when made, those of
	// loom.NewPermits.
	PrivateNetworks *bool
	InstanceRoles   *bool
	TypesOff        *[]string
	Bootstrap       bool
	// Parts limit Bootstrap to some of BootstrapParts; nil means all of them.
	Parts []string
}

// PartResources is the part of a bootstrap that is no kind of the catalog: all versions of
// all plugin resources.
const PartResources = "resources"

// BootstrapParts are what a bootstrap copies: the kinds of the catalog and PartResources.
func BootstrapParts() []string {
	parts := make([]string, 0, len(loom.TenantKinds)+1)
	for _, kind := range loom.TenantKinds {
		parts = append(parts, string(kind))
	}
	return append(parts, PartResources)
}

// copies reports whether a part is copied.
func (in *TenantInput) copies(part string) bool {
	return in.Bootstrap && (in.Parts == nil || slices.Contains(in.Parts, part))
}

// permits gives what the input makes of permits.
func (in *TenantInput) permits(p loom.Permits) loom.Permits {
	p.PrivateNetworks, p.InstanceRoles = or(in.PrivateNetworks, p.PrivateNetworks), or(in.InstanceRoles, p.InstanceRoles)
	if in.TypesOff != nil {
		p.TypesOff = slices.Compact(slices.Sorted(slices.Values(*in.TypesOff)))
	}
	return p
}

func (in *TenantInput) check() []loom.FieldError {
	errs := loom.CheckName("name", in.Name)
	if in.Workers != nil && *in.Workers < 0 {
		errs = append(errs, loom.FieldError{Field: "workers", Message: "The number of workers cannot be negative."})
	}
	if in.MaxClusters != nil && (*in.MaxClusters < 0 || *in.MaxClusters > loom.Unlimited) {
		errs = append(errs, loom.FieldError{Field: "maxClusters", Message: "A quota is a number from 0 up; leave it out for no limit."})
	}
	if in.MaxNodes != nil && (*in.MaxNodes < 0 || *in.MaxNodes > loom.Unlimited) {
		errs = append(errs, loom.FieldError{Field: "maxNodes", Message: "A quota is a number from 0 up; leave it out for no limit."})
	}
	if in.WorkersFrom != "" && in.WorkersFrom == in.Name {
		errs = append(errs, loom.FieldError{Field: "workersFrom", Message: "Workers are taken from another tenant."})
	}
	for _, part := range in.Parts {
		if !slices.Contains(BootstrapParts(), part) {
			errs = append(errs, loom.FieldError{Field: "parts", Message: fmt.Sprintf("“%.40s” is none of %s.", part, strings.Join(BootstrapParts(), ", "))})
		}
	}
	if d := orZero(in.Description); len([]rune(d)) > loom.MaxDescription || strings.ContainsRune(d, 0) {
		errs = append(errs, loom.FieldError{Field: "description", Message: fmt.Sprintf("A description has at most %d characters.", loom.MaxDescription)})
	}
	return errs
}

func orUnlimited(n *int) int { return or(n, loom.Unlimited) }

func orZero[T any](value *T) T { return or(value, *new(T)) }

func or[T any](value *T, absent T) T {
	if value == nil {
		return absent
	}
	return *value
}

// Tenants lists the tenants by name.
func (a *Accounts) Tenants(ctx context.Context, actor loom.Actor) ([]loom.Tenant, error) {
	if err := mayReadTenants(actor); err != nil {
		return nil, err
	}
	return store.TenantsAllTenants(ctx, a.db)
}

// TenantList is a page of tenants. Next and Prev are cursors, "" where there is no
// more.
type TenantList struct {
	Items      []loom.Tenant
	Next, Prev string
}

// OnlyTenant gives the name of the one tenant besides the built-in one, or "". It is for the
// sign-in page: nobody is known there.
func (a *Accounts) OnlyTenant(ctx context.Context) (string, error) {
	return store.OnlyTenantAllTenants(ctx, a.db)
}

// ListTenants lists tenants page by page. Words are words to be found in name or
// description. Sorts: "name" (default) and "createTime", "-" before it for
// descending. Errors: Forbidden, Invalid.
func (a *Accounts) ListTenants(ctx context.Context, actor loom.Actor, words string, page loom.Page) (TenantList, error) {
	if err := mayReadTenants(actor); err != nil {
		return TenantList{}, err
	}
	items, next, prev, err := store.TenantPageAllTenants(ctx, a.db, words, page)
	return TenantList{Items: items, Next: next, Prev: prev}, err
}

// Tenant gives a tenant by name: the actor's own, or any for a superadmin.
// NotFound.
func (a *Accounts) Tenant(ctx context.Context, actor loom.Actor, name string) (loom.Tenant, error) {
	if name != actor.TenantName {
		if err := mayReadTenants(actor); err != nil {
			return loom.Tenant{}, err
		}
	}
	tenant, err := store.TenantByNameAllTenants(ctx, a.db, name)
	return tenant, named(err, name)
}

func mayReadTenants(actor loom.Actor) error {
	return actor.May(loom.Install.Reading(), loom.Installation)
}

// Quota says what the actor's tenant uses of its quotas.
func (a *Accounts) Quota(ctx context.Context, actor loom.Actor) (loom.QuotaUse, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return loom.QuotaUse{}, err
	}
	return store.QuotaUse(ctx, a.kept, actor.Tenant)
}

// NodesInUse says how many live nodes the actor's tenant has, and how many it may have.
func (a *Accounts) NodesInUse(ctx context.Context, actor loom.Actor) (nodes, most int, err error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return 0, 0, err
	}
	return store.NodesInUse(ctx, a.kept, actor.Tenant)
}

// CreateTenant makes a tenant, by bootstrap with all that it needs, and its
// built-in administrator, who has no password yet. Errors: Forbidden, Invalid,
// Conflict for a name in use and for more workers than the live provisioners have
// free and in.WorkersFrom can spare.
func (a *Accounts) CreateTenant(ctx context.Context, actor loom.Actor, in TenantInput) (loom.Tenant, error) {
	return a.createTenant(ctx, actor, in, builtInAdmin(), "")
}

// CreateTenantWithSignIn is CreateTenant, and generates the administrator's password,
// which is known only here and to be changed at the first sign-in.
func (a *Accounts) CreateTenantWithSignIn(ctx context.Context, actor loom.Actor, in TenantInput) (loom.Tenant, loom.Secret, error) {
	password := makePassword()
	hash, err := a.passwords.hash(ctx, password)
	if err != nil {
		return loom.Tenant{}, loom.Secret{}, err
	}
	admin := builtInAdmin()
	admin.PasswordChange = loom.PasswordRequired
	tenant, err := a.createTenant(ctx, actor, in, admin, hash)
	if err != nil {
		return loom.Tenant{}, loom.Secret{}, err
	}
	return tenant, password, nil
}

// builtInAdmin is the administrator that every tenant has.
func builtInAdmin() loom.User { return loom.User{ID: loom.AdminUser, Role: loom.RoleAdmin} }

// createTenant gives the administrator the password of a hash, none if it is empty.
func (a *Accounts) createTenant(ctx context.Context, actor loom.Actor, in TenantInput, admin loom.User, hash string) (loom.Tenant, error) {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return loom.Tenant{}, err
	}
	if err := loom.InvalidFields(in.check()); err != nil {
		return loom.Tenant{}, err
	}
	if err := a.checkTypes(ctx, in, loom.NewPermits().TypesOff); err != nil {
		return loom.Tenant{}, err
	}
	if err := nameIsFree(ctx, a.db, in.Name); err != nil { // before anything is copied
		return loom.Tenant{}, err
	}
	return a.makeTenant(ctx, actor, in, []newUser{{admin, hash}}, func(tx *sqlx.Tx) (int, error) {
		if err := store.LockAssignments(ctx, tx); err != nil {
			return 0, err
		}
		if err := nameIsFree(ctx, tx, in.Name); err != nil {
			return 0, err
		}
		return findWorkers(ctx, tx, actor, &in, 0)
	})
}

// nameIsFree returns Conflict when a tenant of that name exists.
func nameIsFree(ctx context.Context, q sqlx.ExtContext, name string) error {
	_, err := store.TenantByNameAllTenants(ctx, q, name)
	if isNotFound(err) {
		return nil
	}
	if err == nil {
		err = conflictAt(loom.NewError(loom.Conflict, "A tenant of the name “%s” exists already.", name), "name")
	}
	return err
}

// UpdateTenant changes description, workers, quotas and permits of a tenant, and makes the
// built-in administrator if an older release left the tenant without. Errors:
// Forbidden, NotFound, Invalid, Conflict for quotas below what is in use and for
// more workers than are free and in.WorkersFrom can spare.
func (a *Accounts) UpdateTenant(ctx context.Context, actor loom.Actor, name string, in TenantInput) (loom.Tenant, error) {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return loom.Tenant{}, err
	}
	if in.Name == "" {
		in.Name = name
	}
	errs := in.check()
	if in.Name != name {
		errs = append(errs, loom.FieldError{Field: "name", Message: "The name of a tenant cannot be changed."})
	}
	if err := loom.InvalidFields(errs); err != nil {
		return loom.Tenant{}, err
	}
	found, err := store.TenantByNameAllTenants(ctx, a.db, name)
	if err != nil {
		return loom.Tenant{}, named(err, name)
	}
	if err := a.checkTypes(ctx, in, found.Permits.TypesOff); err != nil {
		return loom.Tenant{}, err
	}
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.Tenant, error) {
		// Who raises workers at the same moment takes turns, before any row is locked.
		if err := store.LockAssignments(ctx, tx); err != nil {
			return loom.Tenant{}, err
		}
		tenant, err := store.LockTenant(ctx, tx, found.ID)
		if err != nil {
			return loom.Tenant{}, named(err, name)
		}
		before := tenant
		taken, err := findWorkers(ctx, tx, actor, &in, tenant.Workers)
		if err != nil {
			return loom.Tenant{}, err
		}
		if err := ensureAdmin(ctx, tx, actor, tenant); err != nil {
			return loom.Tenant{}, err
		}
		use, err := store.QuotaUse(ctx, tx, tenant.ID)
		if err != nil {
			return loom.Tenant{}, err
		}
		if in.MaxClusters != nil && *in.MaxClusters < use.Clusters {
			return loom.Tenant{}, loom.NewError(loom.Conflict, "The tenant has %d clusters; the quota cannot be below that.", use.Clusters)
		}
		if in.MaxNodes != nil && *in.MaxNodes < use.Nodes {
			return loom.Tenant{}, loom.NewError(loom.Conflict, "The tenant has %d nodes; the quota cannot be below that.", use.Nodes)
		}
		tenant.Description, tenant.Workers = or(in.Description, tenant.Description), or(in.Workers, tenant.Workers)
		tenant.MaxClusters, tenant.MaxNodes = or(in.MaxClusters, tenant.MaxClusters), or(in.MaxNodes, tenant.MaxNodes)
		tenant.Permits = in.permits(tenant.Permits)
		if err := store.UpdateTenant(ctx, tx, tenant.ID, tenant); err != nil {
			return loom.Tenant{}, err
		}
		if err := record(ctx, tx, actor, "update", "tenant", tenant.Name, shownTenant(before), shownTenant(tenant)); err != nil {
			return loom.Tenant{}, err
		}
		if taken > 0 {
			if err := recordMoved(ctx, tx, actor, before, tenant); err != nil {
				return loom.Tenant{}, err
			}
		}
		return tenant, store.InsertEvents(ctx, tx, systemEvent(tenant.Name))
	})
}

// DeleteTenant deletes a tenant; its sessions and tokens end at once, its name is
// free again. A name that is not in use is no error. Errors: Forbidden, also for
// the built-in tenant; Conflict while it has clusters that are not terminated or
// workers.
func (a *Accounts) DeleteTenant(ctx context.Context, actor loom.Actor, name string) error {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return err
	}
	if name == string(loom.SuperTenant) {
		return loom.NewError(loom.Forbidden, "The tenant “%s” is the installation itself and cannot be deleted.", name)
	}
	found, err := store.TenantByNameAllTenants(ctx, a.db, name)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if err := store.LockAssignments(ctx, tx); err != nil {
			return err
		}
		tenant, err := store.LockTenant(ctx, tx, found.ID)
		if isNotFound(err) {
			return nil // somebody else was quicker
		}
		if err != nil {
			return err
		}
		if err := mayDelete(ctx, tx, tenant); err != nil {
			return err
		}
		if err := store.DeleteTenant(ctx, tx, tenant.ID); err != nil {
			return err
		}
		if err := record(ctx, tx, actor, "delete", "tenant", name, shownTenant(tenant), nil); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, systemEvent(name))
	})
}

func mayDelete(ctx context.Context, tx *sqlx.Tx, tenant loom.Tenant) error {
	use, err := store.QuotaUse(ctx, tx, tenant.ID)
	if err != nil {
		return err
	}
	if use.Clusters > 0 {
		return loom.NewError(loom.Conflict, "The tenant “%s” has %d clusters that are not terminated; delete them first.", tenant.Name, use.Clusters)
	}
	assigned, err := store.AssignedWorkers(ctx, tx, tenant.ID)
	switch {
	case err != nil || assigned == 0:
		return err
	case tenant.Workers > 0:
		return loom.NewError(loom.Conflict, "The tenant “%s” has %d workers; set “workers” to 0 first and wait until they are given back.", tenant.Name, assigned)
	}
	return &loom.Error{Kind: loom.Conflict, RetryAfter: time.Second,
		Message: fmt.Sprintf("The tenant “%s” still has %d workers, which are being given back; try again in a moment.", tenant.Name, assigned)}
}

func systemEvent(tenant string) loom.Event {
	return loom.Event{Tenant: loom.SuperTenant, Topic: "system", IDs: []string{"tenants/" + tenant}}
}

// shownTenant is a tenant as the API shows it, for the audit.
func shownTenant(t loom.Tenant) any {
	return map[string]any{
		"name": t.Name, "description": t.Description, "workers": t.Workers, "maxClusters": t.MaxClusters, "maxNodes": t.MaxNodes,
		"privateNetworks": t.Permits.PrivateNetworks, "instanceRoles": t.Permits.InstanceRoles, "providerTypesOff": append([]string{}, t.Permits.TypesOff...),
	}
}
