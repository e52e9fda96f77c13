package account

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// SelfInput is what users change of themselves; nil stays as it is.
type SelfInput struct {
	DisplayName *string
	Email       *string
	// SSHKeys are all keys; AddSSHKeys are added to those that are there, and RemoveSSHKey is the
	// fingerprint of one to remove.
	SSHKeys      []string
	AddSSHKeys   []string
	RemoveSSHKey string
}

func (in SelfInput) apply(u *loom.User) {
	if in.DisplayName != nil {
		u.DisplayName = *in.DisplayName
	}
	if in.Email != nil {
		u.Email = *in.Email
	}
	if in.SSHKeys != nil {
		u.SSHKeys = in.SSHKeys
	}
	if len(in.AddSSHKeys) > 0 || in.RemoveSSHKey != "" {
		u.SSHKeys = changeSSHKeys(u.SSHKeys, in.AddSSHKeys, in.RemoveSSHKey)
	}
}

// UpdateSelf changes the actor's own record. Errors: Forbidden, Invalid.
func (a *Accounts) UpdateSelf(ctx context.Context, actor loom.Actor, in SelfInput) (loom.User, error) {
	return a.UpdateUser(ctx, actor, actor.User, UserChange{SelfInput: in})
}

// UserChange is what may be changed of a user; nil stays as it is. Who changes his
// own password gives OldPassword too if he has one, and Keep, the cookie of the session that
// goes on; all other sessions end.
type UserChange struct {
	SelfInput
	Role        *loom.Role
	Disabled    *bool
	Password    *loom.Secret
	OldPassword *loom.Secret
	Keep        loom.Secret
	// EndTokens revokes the user's API tokens with the old password.
	EndTokens bool
	// generated says that Password was, for somebody else, who has to change it.
	generated bool
}

// check finds what is wrong before the user is read.
func (in *UserChange) check(id loom.UserID, tenant string) []loom.FieldError {
	user := loom.User{ID: "any"}
	in.apply(&user)
	errs := checkUser(&user)
	if in.Role != nil {
		errs = append(errs, checkRole(*in.Role)...)
	}
	if in.Password != nil && !in.generated {
		errs = append(errs, checkPassword("password", *in.Password, id, tenant)...)
	}
	if in.Password != nil && in.OldPassword != nil && *in.Password == *in.OldPassword {
		errs = append(errs, loom.FieldError{Field: "password", Message: "This is your current password. Choose another one."})
	}
	if in.EndTokens && in.Password == nil {
		errs = append(errs, loom.FieldError{Field: "endTokens", Message: "API tokens end here with a new password only; revoke them one by one, or give “password” too."})
	}
	if in.OldPassword != nil && in.Password == nil {
		errs = append(errs, loom.FieldError{Field: "password", Message: "Enter a new password too."})
	}
	return errs
}

// UpdateUser changes a user of the actor's tenant: himself, but not his role and
// whether he is disabled; or anyone for an administrator. Disabling a user, and
// giving a new password, ends his sessions; disabling also revokes his tokens. The
// built-in administrator is neither disabled nor demoted. Errors: Forbidden,
// NotFound, Invalid, Conflict, Throttled after too many wrong old passwords.
func (a *Accounts) UpdateUser(ctx context.Context, actor loom.Actor, id loom.UserID, in UserChange) (loom.User, error) {
	if err := mayChangeUser(actor, id, in); err != nil {
		return loom.User{}, err
	}
	if err := loom.InvalidFields(in.check(id, actor.TenantName)); err != nil {
		return loom.User{}, err
	}
	hash, checked, err := a.newHash(ctx, actor, id, in)
	if err != nil {
		return loom.User{}, err
	}
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.User, error) {
		user, err := store.LockUser(ctx, tx, actor.Tenant, id)
		if err != nil {
			return loom.User{}, err
		}
		if err := store.StillActs(ctx, tx, actor); err != nil { // hashing takes its time
			return loom.User{}, err
		}
		before := shownUser(user)
		in.apply(&user)
		if in.Disabled != nil {
			user.Disabled = *in.Disabled
		}
		if in.Role != nil {
			user.Role = *in.Role
		}
		if err := loom.InvalidFields(checkUser(&user)); err != nil {
			return loom.User{}, err
		}
		if err := store.UpdateUser(ctx, tx, actor.Tenant, user); err != nil {
			return loom.User{}, err
		}
		if hash != "" {
			user.PasswordChange = ""
			if in.generated {
				user.PasswordChange = loom.PasswordRequired
			}
		}
		if err := a.endAccess(ctx, tx, actor, user, hash, checked, in); err != nil {
			return loom.User{}, err
		}
		user.Role = loom.RoleIn(actor.Tenant, user.Role)
		after := shownUser(user)
		if hash != "" {
			after["changed"] = "password"
		}
		if in.EndTokens {
			after["changed"] = "password and API tokens"
		}
		keepChanges(before, after)
		if err := record(ctx, tx, actor, "update", "user", string(id), before, after); err != nil {
			return loom.User{}, err
		}
		return user, store.InsertEvents(ctx, tx, userEvent(actor.Tenant))
	})
}

// mayChangeUser says who may change what of whom.
func mayChangeUser(actor loom.Actor, id loom.UserID, in UserChange) error {
	verb, object := loom.Self, actor.Mine()
	if id != actor.User {
		verb, object = loom.Administer, actor.InTenant()
	}
	if err := actor.May(verb, object); err != nil {
		return err
	}
	if id == loom.AdminUser && in.Disabled != nil && *in.Disabled || in.Role != nil && demotes(id, *in.Role) {
		return loom.NewError(loom.Conflict, "The built-in administrator cannot be disabled or demoted.")
	}
	if !actor.Is(id) {
		return nil
	}
	var fields []loom.FieldError
	if in.Role != nil {
		fields = append(fields, loom.FieldError{Field: "role", Message: "You can't change your own role."})
	}
	if in.Disabled != nil {
		fields = append(fields, loom.FieldError{Field: "disabled", Message: "You can't disable or enable yourself."})
	}
	if len(fields) > 0 {
		return &loom.Error{Kind: loom.Forbidden, Message: "Role and “disabled” of a user are changed by another administrator.", Fields: fields}
	}
	return nil
}

// newHash gives the hash of the new password, "" without one, and whether the
// present one was asked for. Who changes his own must know it, unless he has none
// yet or is a superadmin from another tenant who acts as him. Who signs in with an identity
// provider sets no first one: it would outlive his account there.
func (a *Accounts) newHash(ctx context.Context, actor loom.Actor, id loom.UserID, in UserChange) (hash string, checked bool, err error) {
	if in.Password == nil {
		return "", false, nil
	}
	if actor.Is(id) && !actor.ActsAbroad() {
		present, err := store.PasswordHash(ctx, a.db, actor.Tenant, id)
		if err != nil {
			return "", false, err
		}
		checked = present != ""
		if !checked && actor.Token != 0 {
			return "", false, loom.NewError(loom.Forbidden, "A token sets no first password of its owner; an administrator, or “loom user password”, does.")
		}
		if !checked {
			identities, err := store.IdentitiesOf(ctx, a.db, actor.Tenant, id)
			if err == nil && len(identities) > 0 {
				err = loom.NewError(loom.Forbidden, "You sign in with “%s” and have no password. Only an administrator can give you one.", identities[0].ProviderName)
			}
			if err != nil {
				return "", false, err
			}
		}
		if checked {
			if err := a.checkOld(ctx, actor, id, in); err != nil {
				return "", false, err
			}
		}
	}
	hash, err = a.passwords.hash(ctx, *in.Password)
	return hash, checked, err
}

// checkOld returns Invalid unless a password is the present one of a user who changes
// his own.
func (a *Accounts) checkOld(ctx context.Context, actor loom.Actor, id loom.UserID, in UserChange) error {
	old := in.OldPassword
	if old == nil || old.IsZero() {
		return loom.InvalidFields([]loom.FieldError{{Field: "oldPassword", Message: "Enter your current password too."}})
	}
	// Guesses through this door wait as those at sign-in do.
	if err := a.beginSignIn(ctx, ownCounts(actor, id, in.Keep)); err != nil {
		return err
	}
	right, err := a.passwordIs(ctx, actor.Tenant, id, *old)
	if err != nil {
		return err
	}
	if !right {
		return loom.InvalidFields([]loom.FieldError{{Field: "oldPassword", Message: "This is not your current password."}})
	}
	return nil
}

// endAccess stores a new password and ends what a changed user must not go on with.
func (a *Accounts) endAccess(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, user loom.User, hash string, checked bool, in UserChange) error {
	keep := loom.Secret{}
	if hash != "" {
		if user.ID == actor.User {
			keep = in.Keep
		}
		if checked {
			if err := store.SignInSucceeded(ctx, tx, ownCounts(actor, user.ID, in.Keep)); err != nil {
				return err
			}
		}
		if err := store.SetPasswordHash(ctx, tx, actor.Tenant, user.ID, hash, user.PasswordChange); err != nil {
			return err
		}
	}
	if user.Disabled || hash != "" && in.EndTokens {
		if err := store.RevokeTokensOf(ctx, tx, actor.Tenant, user.ID); err != nil {
			return err
		}
	}
	if user.Disabled || hash != "" {
		if err := store.EndAccess(ctx, tx, actor.Tenant, user.ID); err != nil {
			return err
		}
		_, err := store.DeleteSessionsOf(ctx, tx, actor.Tenant, user.ID, hashOf(keep))
		return err
	}
	return nil
}

// ChangePassword gives the actor a new password and ends his other sessions, all but the
// one of keep, and with endTokens his API tokens too. Errors: Invalid, at field
// oldPassword when that is wrong; Throttled.
func (a *Accounts) ChangePassword(ctx context.Context, actor loom.Actor, old, new, keep loom.Secret, endTokens bool) error {
	_, err := a.UpdateUser(ctx, actor, actor.User, UserChange{Password: &new, OldPassword: &old, Keep: keep, EndTokens: endTokens})
	return err
}
