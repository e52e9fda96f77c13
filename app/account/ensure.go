package account

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// DemoTenant is the name of the tenant that the first start makes.
const DemoTenant = "demo"

// MadeUser is a user that the first start made, with the password generated for it.
type MadeUser struct {
	Tenant   string
	User     loom.UserID
	Role     loom.Role
	Password loom.Secret
}

// EnsureSuperadmin makes the built-in tenant and its user admin where they are
// not there, and gives the users that it made. Seeds are loaded after it, and
// before EnsureDemo copies them. Any number of processes may call it at once.
func (a *Accounts) EnsureSuperadmin(ctx context.Context) ([]MadeUser, error) {
	made := MadeUser{Tenant: string(loom.SuperTenant), User: loom.AdminUser, Role: loom.RoleSuperadmin, Password: makePassword()}
	if _, err := store.User(ctx, a.db, loom.SuperTenant, loom.AdminUser); err == nil || !isNotFound(err) {
		return nil, err
	}
	hash, err := a.passwords.hash(ctx, made.Password)
	if err != nil {
		return nil, err
	}
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) ([]MadeUser, error) {
		if err := store.EnsureSuperTenant(ctx, tx); err != nil {
			return nil, err
		}
		// The lock makes processes that start together take turns.
		if _, err := store.LockTenant(ctx, tx, loom.SuperTenant); err != nil {
			return nil, err
		}
		if _, err := store.User(ctx, tx, loom.SuperTenant, loom.AdminUser); err == nil || !isNotFound(err) {
			return nil, err
		}
		admin := loom.User{ID: loom.AdminUser, Role: loom.RoleAdmin, PasswordChange: loom.PasswordAsked}
		if _, err := store.InsertUser(ctx, tx, loom.SuperTenant, admin, hash); err != nil {
			return nil, err
		}
		actor := loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant))
		return []MadeUser{made}, record(ctx, tx, actor, "create", "user", string(loom.AdminUser), nil,
			shownUser(loom.User{ID: loom.AdminUser, Role: loom.RoleAdmin}))
	})
}

// EnsureDemo makes the tenant demo by bootstrap, with the users admin and user,
// unless a tenant of that name ever existed, and gives the users that it made.
// It wants the given number of workers, whatever is free.
func (a *Accounts) EnsureDemo(ctx context.Context, workers int) ([]MadeUser, error) {
	if there, err := store.TenantEverExistedAllTenants(ctx, a.db, DemoTenant); err != nil || there {
		return nil, err
	}
	made := []MadeUser{
		{Tenant: DemoTenant, User: loom.AdminUser, Role: loom.RoleAdmin, Password: makePassword()},
		{Tenant: DemoTenant, User: "user", Role: loom.RoleUser, Password: makePassword()},
	}
	var users []newUser
	for _, m := range made {
		hash, err := a.passwords.hash(ctx, m.Password)
		if err != nil {
			return nil, err
		}
		users = append(users, newUser{user: loom.User{ID: m.User, Role: m.Role, PasswordChange: loom.PasswordAsked}, hash: hash})
	}
	existed := false
	actor := loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant))
	description, all := "A place to try Loom", loom.AllPermits()
	_, err := a.makeTenant(ctx, actor, TenantInput{
		Name: DemoTenant, Description: &description, Workers: &workers, Bootstrap: true,
		PrivateNetworks: &all.PrivateNetworks, InstanceRoles: &all.InstanceRoles, TypesOff: &all.TypesOff,
	}, users, func(tx *sqlx.Tx) (int, error) {
		if _, err := store.LockTenant(ctx, tx, loom.SuperTenant); err != nil {
			return 0, err
		}
		there, err := store.TenantEverExistedAllTenants(ctx, tx, DemoTenant)
		if err == nil && there {
			existed = true
			return 0, loom.NewError(loom.Conflict, "The tenant demo was made by another process at the same moment.")
		}
		return 0, err
	})
	if existed {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return made, nil
}

// SetPassword gives a user of a tenant by name a new password, generated when it is
// zero and then to be changed at his next sign-in, and ends his sessions; for the
// command line. Errors: NotFound, Invalid.
func (a *Accounts) SetPassword(ctx context.Context, tenant string, user loom.UserID, password loom.Secret) (loom.Secret, error) {
	generated := password.IsZero()
	if generated {
		password = makePassword()
	}
	t, err := store.TenantByNameAllTenants(ctx, a.db, tenant)
	if err != nil {
		return loom.Secret{}, named(err, tenant)
	}
	actor := loom.SystemActor(t.ID, t.Name)
	actor.Via = "cli"
	if _, err := a.UpdateUser(ctx, actor, user, UserChange{Password: &password, generated: generated}); err != nil {
		return loom.Secret{}, noUserOf(err, user, t.Name)
	}
	return password, nil
}

// CreateUserIn makes a user of a tenant by name, with a generated password;
// for the command line. Errors: NotFound, Invalid, Conflict.
func (a *Accounts) CreateUserIn(ctx context.Context, tenant string, user loom.UserID, role loom.Role) (loom.Secret, error) {
	t, err := store.TenantByNameAllTenants(ctx, a.db, tenant)
	if err != nil {
		return loom.Secret{}, named(err, tenant)
	}
	actor := loom.SystemActor(t.ID, t.Name)
	actor.Via = "cli"
	_, password, err := a.CreateUser(ctx, actor, UserInput{ID: user, Role: role})
	if errors.Is(err, loom.Conflict) {
		err = &loom.Error{Kind: loom.Conflict, Err: err,
			Message: fmt.Sprintf("The tenant “%s” has a user “%s” already; “loom user password %[2]s --tenant %[1]s” makes a new password.", t.Name, user)}
	}
	return password, err
}

// noUserOf names the remedy where a user of another tenant is not there; for the
// command line.
func noUserOf(err error, user loom.UserID, tenant string) error {
	if !isNotFound(err) {
		return err
	}
	return &loom.Error{Kind: loom.NotFound, Err: err,
		Message: fmt.Sprintf("There is no user “%s” in the tenant “%s”; “loom user create %[1]s --tenant %[2]s” makes one.", user, tenant)}
}

// PasswordUnused reports whether a password is still that of a user and nobody has
// signed in with it; for the command line, which keeps generated ones until then.
func (a *Accounts) PasswordUnused(ctx context.Context, tenant string, user loom.UserID, password loom.Secret) (bool, error) {
	t, err := store.TenantByNameAllTenants(ctx, a.db, tenant)
	if isNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	used, err := store.PasswordUsed(ctx, a.db, t.ID, user)
	if err != nil || used {
		return false, err
	}
	return a.passwordIs(ctx, t.ID, user, password)
}
