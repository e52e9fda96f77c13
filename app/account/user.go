package account

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// UserInput is a user to make. Without a role he is a user, the id admin an
// administrator; without a password one is generated, to be changed at the first
// sign-in.
type UserInput struct {
	ID          loom.UserID
	Role        loom.Role
	DisplayName string
	Email       string
	Password    loom.Secret
	SSHKeys     []string
}

// CreateUser makes a user in the actor's tenant. The secret is the password that
// was generated, zero when one was given. Errors: Forbidden, Invalid, Conflict.
func (a *Accounts) CreateUser(ctx context.Context, actor loom.Actor, in UserInput) (loom.User, loom.Secret, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return loom.User{}, loom.Secret{}, err
	}
	if in.Role == "" {
		in.Role = usualRole(in.ID)
	}
	user := loom.User{ID: in.ID, Role: in.Role, DisplayName: in.DisplayName, Email: in.Email, SSHKeys: in.SSHKeys}
	errs := append(checkUser(&user), checkNewRole(user.ID, in.Role)...)
	errs = append(errs, checkNewID(user.ID)...)
	made := loom.Secret{}
	if in.Password.IsZero() {
		made = makePassword()
		in.Password, user.PasswordChange = made, loom.PasswordRequired
	} else {
		errs = append(errs, checkPassword("password", in.Password, in.ID, actor.TenantName)...)
	}
	if err := loom.InvalidFields(errs); err != nil {
		return loom.User{}, loom.Secret{}, err
	}
	hash, err := a.passwords.hash(ctx, in.Password)
	if err != nil {
		return loom.User{}, loom.Secret{}, err
	}
	user, err = a.insertUser(ctx, actor, user, hash)
	if err != nil {
		return loom.User{}, loom.Secret{}, err
	}
	return user, made, nil
}

func usualRole(id loom.UserID) loom.Role {
	if id == loom.AdminUser {
		return loom.RoleAdmin
	}
	return loom.RoleUser
}

// conflictAt puts a Conflict at the field that it is about.
func conflictAt(err error, field string) error {
	e := loom.AsError(err)
	if e.Kind != loom.Conflict {
		return err
	}
	placed := *e
	placed.Fields = []loom.FieldError{{Field: field, Message: e.Message}}
	return &placed
}

// insertUser stores a checked user; an empty hash allows no sign-in by password.
func (a *Accounts) insertUser(ctx context.Context, actor loom.Actor, user loom.User, hash string) (loom.User, error) {
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.User, error) {
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return loom.User{}, err
		}
		if err := store.StillActs(ctx, tx, actor); err != nil { // hashing takes its time
			return loom.User{}, err
		}
		alike, err := store.UserAlike(ctx, tx, actor.Tenant, user.ID)
		if err != nil {
			return loom.User{}, err
		}
		if alike != "" {
			return loom.User{}, conflictAt(loom.NewError(loom.Conflict, "There is a user “%s”, whose id differs only in upper and lower case; choose another one.", alike), "id")
		}
		if _, err := store.InsertUser(ctx, tx, actor.Tenant, user, hash); err != nil {
			return loom.User{}, conflictAt(err, "id")
		}
		stored, err := store.User(ctx, tx, actor.Tenant, user.ID)
		if err != nil {
			return loom.User{}, err
		}
		if err := record(ctx, tx, actor, "create", "user", string(user.ID), nil, shownUser(stored)); err != nil {
			return loom.User{}, err
		}
		return stored, store.InsertEvents(ctx, tx, userEvent(actor.Tenant))
	})
}

// UserListInput says which users to list. Sorts: "id" (default) and "createTime",
// "-" before it for descending.
type UserListInput struct {
	loom.Page
	Q        string
	Roles    []loom.Role
	Disabled *bool
}

// UserList is a page of users. Next and Prev are cursors, "" where there is no more.
type UserList struct {
	Items      []loom.UserSummary
	Next, Prev string
}

// ListUsers lists the users of the actor's tenant page by page. Errors: Forbidden,
// Invalid.
func (a *Accounts) ListUsers(ctx context.Context, actor loom.Actor, in UserListInput) (UserList, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return UserList{}, err
	}
	items, next, prev, err := store.UserPage(ctx, a.db, actor.Tenant, store.UserFilter{Q: in.Q, Roles: in.Roles, Disabled: in.Disabled}, in.Page)
	return UserList{Items: items, Next: next, Prev: prev}, err
}

// UsersOfTenant is ListUsers of any tenant, for superadmins. Errors: Forbidden, NotFound for an
// unknown tenant.
func (a *Accounts) UsersOfTenant(ctx context.Context, actor loom.Actor, tenant string, p loom.Page) (UserList, error) {
	if err := mayReadTenants(actor); err != nil {
		return UserList{}, err
	}
	found, err := store.TenantByNameAllTenants(ctx, a.db, tenant)
	if err != nil {
		return UserList{}, named(err, tenant)
	}
	items, next, prev, err := store.UserPage(ctx, a.db, found.ID, store.UserFilter{}, p)
	return UserList{Items: items, Next: next, Prev: prev}, err
}

// User gives a user of the actor's tenant: himself, or anyone for an
// administrator. NotFound.
func (a *Accounts) User(ctx context.Context, actor loom.Actor, id loom.UserID) (loom.User, error) {
	if err := a.maySeeUser(actor, id); err != nil {
		return loom.User{}, err
	}
	return store.User(ctx, a.db, actor.Tenant, id)
}

// UserSummary is User with the numbers of his live clusters and valid tokens.
func (a *Accounts) UserSummary(ctx context.Context, actor loom.Actor, id loom.UserID) (loom.UserSummary, error) {
	if err := a.maySeeUser(actor, id); err != nil {
		return loom.UserSummary{}, err
	}
	return store.UserSummary(ctx, a.db, actor.Tenant, id)
}

func (a *Accounts) maySeeUser(actor loom.Actor, id loom.UserID) error {
	verb := loom.Administer.Reading()
	if id == actor.User {
		verb = loom.Self.Reading()
	}
	err := actor.May(verb, loom.Account{User: id, Tenant: actor.Tenant}.Object())
	if isNotFound(err) {
		return loom.NewError(loom.NotFound, "There is no user “%s” in this tenant.", id)
	}
	return err
}

// DeleteUser removes a user of the actor's tenant for good: sessions and tokens
// end, what he did stays in the audit, and his clusters, all of them terminated,
// keep his name. Errors: Forbidden; NotFound; Conflict for the built-in
// administrator, for oneself, and while he owns clusters that are not terminated.
func (a *Accounts) DeleteUser(ctx context.Context, actor loom.Actor, id loom.UserID) error {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		// Creates of clusters queue behind this lock.
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return err
		}
		user, err := store.LockUser(ctx, tx, actor.Tenant, id)
		if err != nil {
			return err
		}
		switch {
		case id == loom.AdminUser:
			return loom.NewError(loom.Conflict, "The built-in administrator “%s” cannot be removed.", id)
		case actor.Is(id):
			return loom.NewError(loom.Conflict, "You can't remove yourself. Ask another administrator.")
		}
		n, err := store.LiveClustersOf(ctx, tx, actor.Tenant, id)
		if err != nil {
			return err
		}
		if n > 0 {
			return loom.NewError(loom.Conflict, "“%s” owns %d clusters that are not terminated; delete them or give them to another owner first.", id, n)
		}
		if err := store.DeleteUser(ctx, tx, actor.Tenant, id); err != nil {
			return err
		}
		if err := record(ctx, tx, actor, "delete", "user", string(id), shownUser(user), nil); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, userEvent(actor.Tenant))
	})
}

// userEvent tells pages of the tenant that its users changed. It names none: all
// of the tenant may follow, and only administrators may know who there is.
func userEvent(tenant loom.TenantID) loom.Event {
	return loom.Event{Tenant: tenant, Topic: "tenant", IDs: []string{"users"}}
}
