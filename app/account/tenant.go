package account

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// TenantInput is a tenant to make or to change. A zero quota counts as written;
// nil means unlimited when made and unchanged when changed. Bootstrap copies
// catalog and plugin resources of the superadmin, when made.
type TenantInput struct {
	Name        string
	Description string
	Workers     int
	MaxClusters *int
	MaxNodes    *int
	Bootstrap   bool
}

func (in *TenantInput) check() []loom.FieldError {
	errs := loom.CheckName("name", in.Name)
	if in.Workers < 0 {
		errs = append(errs, loom.FieldError{Field: "workers", Message: "The number of workers cannot be negative."})
	}
	if in.MaxClusters != nil && (*in.MaxClusters < 0 || *in.MaxClusters > loom.Unlimited) {
		errs = append(errs, loom.FieldError{Field: "maxClusters", Message: "A quota is a number from 0 up; leave it out for no limit."})
	}
	if in.MaxNodes != nil && (*in.MaxNodes < 0 || *in.MaxNodes > loom.Unlimited) {
		errs = append(errs, loom.FieldError{Field: "maxNodes", Message: "A quota is a number from 0 up; leave it out for no limit."})
	}
	if len([]rune(in.Description)) > loom.MaxDescription || strings.ContainsRune(in.Description, 0) {
		errs = append(errs, loom.FieldError{Field: "description", Message: fmt.Sprintf("A description has at most %d characters.", loom.MaxDescription)})
	}
	return errs
}

func orUnlimited(n *int) int {
	if n == nil {
		return loom.Unlimited
	}
	return *n
}

// Tenants lists the tenants by name.
func (a *Accounts) Tenants(ctx context.Context, actor loom.Actor) ([]loom.Tenant, error) {
	if err := mayReadTenants(actor); err != nil {
		return nil, err
	}
	return store.TenantsAllTenants(ctx, a.db)
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
	if !actor.IsSuperadmin() {
		return loom.NewError(loom.Forbidden, "This needs the role of a superadmin.")
	}
	return actor.Require(loom.ScopeRead)
}

// Quota says what the actor's tenant uses of its quotas.
func (a *Accounts) Quota(ctx context.Context, actor loom.Actor) (loom.QuotaUse, error) {
	if err := actor.Require(loom.ScopeRead); err != nil {
		return loom.QuotaUse{}, err
	}
	return store.QuotaUse(ctx, a.db, actor.Tenant)
}

// CreateTenant makes a tenant, by bootstrap with all that it needs. Errors:
// Forbidden, Invalid, Conflict for a name in use and for more workers than the
// live provisioners have free.
func (a *Accounts) CreateTenant(ctx context.Context, actor loom.Actor, in TenantInput) (loom.Tenant, error) {
	if err := actor.RequireSuperadmin(); err != nil {
		return loom.Tenant{}, err
	}
	if err := loom.InvalidFields(in.check()); err != nil {
		return loom.Tenant{}, err
	}
	return a.makeTenant(ctx, actor, in, nil, func(tx *sqlx.Tx) error {
		return a.checkWorkers(ctx, tx, "", 0, in.Workers)
	})
}

// UpdateTenant changes description, workers and quotas of a tenant. Errors:
// Forbidden, NotFound, Invalid, Conflict for quotas below what is in use and for
// more workers than are free.
func (a *Accounts) UpdateTenant(ctx context.Context, actor loom.Actor, name string, in TenantInput) (loom.Tenant, error) {
	if err := actor.RequireSuperadmin(); err != nil {
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
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.Tenant, error) {
		tenant, err := store.LockTenant(ctx, tx, found.ID)
		if err != nil {
			return loom.Tenant{}, err
		}
		before := shownTenant(tenant)
		if err := a.checkWorkers(ctx, tx, tenant.ID, tenant.Workers, in.Workers); err != nil {
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
		tenant.Description, tenant.Workers = in.Description, in.Workers
		if in.MaxClusters != nil {
			tenant.MaxClusters = *in.MaxClusters
		}
		if in.MaxNodes != nil {
			tenant.MaxNodes = *in.MaxNodes
		}
		if err := store.UpdateTenant(ctx, tx, tenant.ID, tenant); err != nil {
			return loom.Tenant{}, err
		}
		if err := record(ctx, tx, actor, "update", "tenant", tenant.Name, before, shownTenant(tenant)); err != nil {
			return loom.Tenant{}, err
		}
		return tenant, store.InsertEvents(ctx, tx, systemEvent(tenant.Name))
	})
}

// checkWorkers refuses workers in addition that the live provisioners do not
// have free.
func (a *Accounts) checkWorkers(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, now, wanted int) error {
	if wanted <= now {
		return nil
	}
	capacity, others, err := store.WorkerCapacityAllTenants(ctx, tx, tenant)
	if err != nil {
		return err
	}
	if free := max(capacity-others, 0); wanted > free {
		return loom.NewError(loom.Conflict, "%d workers are wanted, but the running provisioners have %d left for this tenant (capacity %d).", wanted, free, capacity)
	}
	return nil
}

// newUser is a user to be made together with a tenant.
type newUser struct {
	user loom.User
	hash string
}

// makeTenant makes a tenant with users, and by bootstrap with copies of what the
// superadmin has. Objects of the bucket are copied before the transaction; those
// of a tenant that then is not made are swept.
func (a *Accounts) makeTenant(ctx context.Context, actor loom.Actor, in TenantInput, users []newUser, check func(tx *sqlx.Tx) error) (loom.Tenant, error) {
	tenant := loom.Tenant{
		ID: loom.TenantID(uuid.NewString()), Name: in.Name, Description: in.Description,
		Workers: in.Workers, MaxClusters: orUnlimited(in.MaxClusters), MaxNodes: orUnlimited(in.MaxNodes),
	}
	var copies []loom.Resource
	if in.Bootstrap {
		var err error
		if copies, err = a.copyResources(ctx, tenant.ID); err != nil {
			return loom.Tenant{}, err
		}
	}
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.Tenant, error) {
		if err := check(tx); err != nil {
			return loom.Tenant{}, err
		}
		made, err := store.InsertTenantAllTenants(ctx, tx, tenant)
		if err != nil {
			return loom.Tenant{}, err
		}
		for _, u := range users {
			if _, err := store.InsertUser(ctx, tx, tenant.ID, u.user, u.hash); err != nil {
				return loom.Tenant{}, err
			}
		}
		if in.Bootstrap {
			if made.ResourceSet, err = a.bootstrap(ctx, tx, actor, tenant.ID, copies); err != nil {
				return loom.Tenant{}, err
			}
		}
		if err := record(ctx, tx, actor, "create", "tenant", tenant.Name, nil, shownTenant(made)); err != nil {
			return loom.Tenant{}, err
		}
		return made, store.InsertEvents(ctx, tx, systemEvent(tenant.Name))
	})
}

// copyResources copies every version of every plugin resource of the superadmin.
func (a *Accounts) copyResources(ctx context.Context, to loom.TenantID) ([]loom.Resource, error) {
	resources, err := store.Resources(ctx, a.db, loom.SuperTenant, loom.ResourceRef{})
	if err != nil {
		return nil, err
	}
	if len(resources) > 0 && a.Resources == nil {
		return nil, fmt.Errorf("bootstrap of a tenant: there are plugin resources, but no bucket was set up")
	}
	for i := range resources {
		if resources[i].Object, err = a.Resources.CopyObject(ctx, resources[i], to); err != nil {
			return nil, fmt.Errorf("copy resource %s version %d: %w", resources[i].Name, resources[i].Version, err)
		}
	}
	return resources, nil
}

// bootstrap copies the newest catalog entries with their sealed values, sealed
// anew, and the resources with their flags; then it syncs.
func (a *Accounts) bootstrap(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, to loom.TenantID, copies []loom.Resource) (set int, err error) {
	if err := store.CopyCatalogAllTenants(ctx, tx, loom.SuperTenant, to, actor.User, loom.TenantKinds...); err != nil {
		return 0, err
	}
	entities, err := store.SecretEntities(ctx, tx, loom.SuperTenant, store.ProviderSecrets(""))
	if err != nil {
		return 0, err
	}
	for _, entity := range entities {
		if err := a.copySecrets(ctx, tx, actor, to, entity); err != nil {
			return 0, err
		}
	}
	for _, r := range copies {
		if err := store.RaiseResourceNumber(ctx, tx, to, r.ResourceRef, r.Version); err != nil {
			return 0, err
		}
		if _, err := store.InsertResource(ctx, tx, to, r); err != nil {
			return 0, err
		}
	}
	if len(copies) == 0 {
		return 0, nil
	}
	return store.NewResourceSet(ctx, tx, to)
}

func (a *Accounts) copySecrets(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, to loom.TenantID, entity string) error {
	sealed, err := store.Secrets(ctx, tx, loom.SuperTenant, entity)
	if err != nil {
		return err
	}
	anew := make(map[string][]byte, len(sealed))
	for field, value := range sealed {
		plain, err := a.ring.Open(loom.SuperTenant, entity, field, value)
		if err != nil {
			return err
		}
		if anew[field], err = a.ring.Seal(to, entity, field, plain); err != nil {
			return err
		}
	}
	return store.PutSecrets(ctx, tx, to, entity, actor.User, anew)
}

func systemEvent(tenant string) loom.Event {
	return loom.Event{Tenant: loom.SuperTenant, Topic: "system", IDs: []string{"tenants/" + tenant}}
}

// shownTenant is a tenant as the API shows it, for the audit.
func shownTenant(t loom.Tenant) any {
	return map[string]any{
		"name": t.Name, "description": t.Description, "workers": t.Workers, "maxClusters": t.MaxClusters, "maxNodes": t.MaxNodes,
	}
}
