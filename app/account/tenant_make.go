package account

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// newUser is a user to be made together with a tenant.
type newUser struct {
	user loom.User
	hash string
}

// makeTenant makes a tenant with users, and by bootstrap with copies of what the
// superadmin has. check returns how many workers it took from another tenant. Objects of the bucket are copied before the transaction; those
// of a tenant that then is not made are swept.
func (a *Accounts) makeTenant(ctx context.Context, actor loom.Actor, in TenantInput, users []newUser, check func(tx *sqlx.Tx) (taken int, err error)) (loom.Tenant, error) {
	tenant := loom.Tenant{
		ID: loom.TenantID(uuid.NewString()), Name: in.Name, Description: orZero(in.Description),
		Workers: orZero(in.Workers), MaxClusters: orUnlimited(in.MaxClusters), MaxNodes: orUnlimited(in.MaxNodes),
		Permits: in.permits(loom.NewPermits()),
	}
	objects := map[string]string{}
	for {
		if in.copies(PartResources) {
			if err := a.copyResources(ctx, tenant.ID, objects); err != nil {
				return loom.Tenant{}, err
			}
		}
		made, err := a.insertTenant(ctx, actor, in, tenant, users, objects, check)
		// Somebody uploaded a resource meanwhile: it is copied too.
		if !errors.Is(err, errNotCopied) {
			return made, err
		}
	}
}

// errNotCopied says that a resource appeared after the objects were copied.
var errNotCopied = errors.New("a resource was not copied yet")

// insertTenant is the transaction of makeTenant.
func (a *Accounts) insertTenant(ctx context.Context, actor loom.Actor, in TenantInput, tenant loom.Tenant, users []newUser, objects map[string]string, check func(tx *sqlx.Tx) (taken int, err error)) (loom.Tenant, error) {
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.Tenant, error) {
		taken, err := check(tx)
		if err != nil {
			return loom.Tenant{}, err
		}
		made, err := store.InsertTenantAllTenants(ctx, tx, tenant)
		if err != nil {
			return loom.Tenant{}, err
		}
		for _, u := range users {
			if err := insertFirstUser(ctx, tx, actor, tenant, u); err != nil {
				return loom.Tenant{}, err
			}
		}
		if in.Bootstrap {
			if made.ResourceSet, err = a.bootstrap(ctx, tx, actor, &in, tenant.ID, objects); err != nil {
				return loom.Tenant{}, err
			}
		}
		if err := record(ctx, tx, actor, "create", "tenant", tenant.Name, nil, shownTenant(made)); err != nil {
			return loom.Tenant{}, err
		}
		if taken > 0 {
			if err := recordMoved(ctx, tx, actor, loom.Tenant{}, made); err != nil {
				return loom.Tenant{}, err
			}
		}
		return made, store.InsertEvents(ctx, tx, systemEvent(tenant.Name))
	})
}

// insertFirstUser makes a user of a tenant that the actor is not in.
func insertFirstUser(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, tenant loom.Tenant, u newUser) error {
	if _, err := store.InsertUser(ctx, tx, tenant.ID, u.user, u.hash); err != nil {
		return err
	}
	// What is done to a tenant is in the audit of that tenant.
	actor.Tenant, actor.TenantName = tenant.ID, tenant.Name
	return record(ctx, tx, actor, "create", "user", string(u.user.ID), nil, shownUser(u.user))
}

// ensureAdmin makes the built-in administrator of a locked tenant, without a
// password, unless there is one.
func ensureAdmin(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, tenant loom.Tenant) error {
	if _, err := store.User(ctx, tx, tenant.ID, loom.AdminUser); !isNotFound(err) {
		return err
	}
	return insertFirstUser(ctx, tx, actor, tenant, newUser{user: builtInAdmin()})
}

// copyResources copies the objects of every version of every plugin resource of
// the superadmin that are not in objects yet: key of the object to key of the copy.
func (a *Accounts) copyResources(ctx context.Context, to loom.TenantID, objects map[string]string) error {
	resources, err := store.Resources(ctx, a.db, loom.SuperTenant, loom.ResourceRef{})
	if err != nil {
		return err
	}
	if len(resources) > 0 && a.Resources == nil {
		return fmt.Errorf("bootstrap of a tenant: there are plugin resources, but no bucket was set up")
	}
	for _, r := range resources {
		if objects[r.Object] != "" {
			continue
		}
		if objects[r.Object], err = a.Resources.CopyObject(ctx, r, to); err != nil {
			return fmt.Errorf("copy resource %s version %d: %w", r.Name, r.Version, err)
		}
	}
	return nil
}

// bootstrap copies, of the parts that are wanted, the newest catalog entries with their
// sealed values, sealed anew, and the resources with the flags that they have now; then
// it syncs. errNotCopied when the object of one was not copied.
func (a *Accounts) bootstrap(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, in *TenantInput, to loom.TenantID, objects map[string]string) (set int, err error) {
	var kinds []loom.EntityKind
	for _, kind := range loom.TenantKinds {
		if in.copies(string(kind)) {
			kinds = append(kinds, kind)
		}
	}
	if err := store.CopyCatalogAllTenants(ctx, tx, loom.SuperTenant, to, actor.User, kinds...); err != nil {
		return 0, err
	}
	if in.copies(string(loom.KindProvider)) {
		if err := a.copyProviderSecrets(ctx, tx, actor, to); err != nil {
			return 0, err
		}
	}
	if !in.copies(PartResources) {
		return 0, nil
	}
	return copyResourceRows(ctx, tx, to, objects)
}

// copyProviderSecrets copies the sealed fields of all providers.
func (a *Accounts) copyProviderSecrets(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, to loom.TenantID) error {
	entities, err := store.SecretEntities(ctx, tx, loom.SuperTenant, store.ProviderSecrets(""))
	if err != nil {
		return err
	}
	for _, entity := range entities {
		if err := a.copySecrets(ctx, tx, actor, to, entity); err != nil {
			return err
		}
	}
	return nil
}

// copyResourceRows copies all versions of all plugin resources and syncs them.
func copyResourceRows(ctx context.Context, tx *sqlx.Tx, to loom.TenantID, objects map[string]string) (set int, err error) {
	resources, err := store.Resources(ctx, tx, loom.SuperTenant, loom.ResourceRef{})
	if err != nil {
		return 0, err
	}
	for _, r := range resources {
		if r.Object = objects[r.Object]; r.Object == "" {
			return 0, errNotCopied
		}
		if err := store.RaiseResourceNumber(ctx, tx, to, r.ResourceRef, r.Version); err != nil {
			return 0, err
		}
		if _, err := store.InsertResource(ctx, tx, to, r); err != nil {
			return 0, err
		}
	}
	if len(resources) == 0 {
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
