// Package account holds the use cases around who acts: tenants with quotas and
// bootstrap, users, sign-in with sessions, API tokens, and answers kept for
// repeated requests.
//
// It makes the loom.Actor that every other use case takes. It renders nothing,
// sets no cookie and reads no header: surfaces hand in what they were given. A
// newcomer's usual mistake: looking up a role by user name; roles are stored, and
// an administrator of loom.SuperTenant is a superadmin.
package account

import (
	"context"
	"errors"
	"net/mail"
	"strings"

	"github.com/jmoiron/sqlx"
	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
)

// Accounts is the way in to the use cases; make it with New.
type Accounts struct {
	db   *sqlx.DB
	ring *secret.Ring
	// Resources copies plugin resources when a tenant is made by bootstrap; nil is
	// refused once there are any.
	Resources ResourceCopier
	passwords *passwords
}

// ResourceCopier copies the content of a plugin resource for another tenant and
// gives the key of the copy in the bucket. The catalog is one.
type ResourceCopier interface {
	CopyObject(ctx context.Context, r loom.Resource, to loom.TenantID) (object string, err error)
}

// New makes the use cases; set Resources where tenants are bootstrapped.
func New(db *sqlx.DB, ring *secret.Ring) *Accounts {
	return &Accounts{db: db, ring: ring, passwords: newPasswords()}
}

// UserInput is a user to make. Role is user when empty; without a password one
// is made up.
type UserInput struct {
	ID          loom.UserID
	Role        loom.Role
	DisplayName string
	Email       string
	Password    loom.Secret
	SSHKeys     []string
}

// CreateUser makes a user in the actor's tenant. The secret is the password that
// was made up, zero when one was given. Errors: Forbidden, Invalid, Conflict.
func (a *Accounts) CreateUser(ctx context.Context, actor loom.Actor, in UserInput) (loom.User, loom.Secret, error) {
	if err := actor.RequireAdmin(loom.ScopeAdmin); err != nil {
		return loom.User{}, loom.Secret{}, err
	}
	if in.Role == "" {
		in.Role = loom.RoleUser
	}
	user := loom.User{ID: in.ID, Role: in.Role, DisplayName: in.DisplayName, Email: in.Email, SSHKeys: in.SSHKeys}
	errs := checkUser(&user)
	errs = append(errs, checkRole(in.Role)...)
	made := loom.Secret{}
	if in.Password.IsZero() {
		made = makePassword()
		in.Password = made
	}
	errs = append(errs, checkPassword("password", in.Password)...)
	if err := loom.InvalidFields(errs); err != nil {
		return loom.User{}, loom.Secret{}, err
	}
	hash, err := a.passwords.hash(ctx, in.Password)
	if err != nil {
		return loom.User{}, loom.Secret{}, err
	}
	user, err = store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.User, error) {
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return loom.User{}, err
		}
		if _, err := store.InsertUser(ctx, tx, actor.Tenant, user, hash); err != nil {
			return loom.User{}, err
		}
		stored, err := store.User(ctx, tx, actor.Tenant, user.ID)
		if err != nil {
			return loom.User{}, err
		}
		return stored, record(ctx, tx, actor, "create", "user", string(user.ID), nil, shownUser(stored))
	})
	if err != nil {
		return loom.User{}, loom.Secret{}, err
	}
	return user, made, nil
}

// Users lists the users of the actor's tenant by id.
func (a *Accounts) Users(ctx context.Context, actor loom.Actor) ([]loom.User, error) {
	if err := actor.RequireAdmin(loom.ScopeRead); err != nil {
		return nil, err
	}
	return store.Users(ctx, a.db, actor.Tenant)
}

// User gives a user of the actor's tenant: himself, or anyone for an
// administrator. NotFound.
func (a *Accounts) User(ctx context.Context, actor loom.Actor, id loom.UserID) (loom.User, error) {
	if err := a.maySeeUser(actor, id); err != nil {
		return loom.User{}, err
	}
	return store.User(ctx, a.db, actor.Tenant, id)
}

func (a *Accounts) maySeeUser(actor loom.Actor, id loom.UserID) error {
	if err := actor.Require(loom.ScopeRead); err != nil {
		return err
	}
	if id != actor.User && !actor.IsAdmin() {
		return loom.NewError(loom.NotFound, "There is no user “%s” in this tenant.", id)
	}
	return nil
}

// SelfInput is what a user changes of himself; nil stays as it is.
type SelfInput struct {
	DisplayName *string
	Email       *string
	SSHKeys     []string
}

// UpdateSelf changes the actor's own record. Errors: Forbidden, Invalid.
func (a *Accounts) UpdateSelf(ctx context.Context, actor loom.Actor, in SelfInput) (loom.User, error) {
	if err := actor.Require(loom.ScopeAdmin); err != nil {
		return loom.User{}, err
	}
	return a.changeUser(ctx, actor, actor.User, func(u *loom.User) []loom.FieldError {
		if in.DisplayName != nil {
			u.DisplayName = *in.DisplayName
		}
		if in.Email != nil {
			u.Email = *in.Email
		}
		if in.SSHKeys != nil {
			u.SSHKeys = in.SSHKeys
		}
		return nil
	})
}

// UserChange is what an administrator changes of a user; nil stays as it is.
type UserChange struct {
	SelfInput
	Role     *loom.Role
	Disabled *bool
	Password *loom.Secret
}

// UpdateUser changes a user of the actor's tenant. Disabling a user, and giving a
// new password, ends his sessions; disabling also revokes his tokens. The
// built-in administrator is neither disabled nor demoted. Errors: Forbidden,
// NotFound, Invalid, Conflict.
func (a *Accounts) UpdateUser(ctx context.Context, actor loom.Actor, id loom.UserID, in UserChange) (loom.User, error) {
	if err := actor.RequireAdmin(loom.ScopeAdmin); err != nil {
		return loom.User{}, err
	}
	var hash string
	if in.Password != nil {
		if err := loom.InvalidFields(checkPassword("password", *in.Password)); err != nil {
			return loom.User{}, err
		}
		var err error
		if hash, err = a.passwords.hash(ctx, *in.Password); err != nil {
			return loom.User{}, err
		}
	}
	if id == loom.AdminUser && (in.Disabled != nil && *in.Disabled || in.Role != nil && *in.Role == loom.RoleUser) {
		return loom.User{}, loom.NewError(loom.Conflict, "The built-in administrator cannot be disabled or demoted.")
	}
	return a.changeUserTx(ctx, actor, id, func(u *loom.User) []loom.FieldError {
		if in.DisplayName != nil {
			u.DisplayName = *in.DisplayName
		}
		if in.Email != nil {
			u.Email = *in.Email
		}
		if in.SSHKeys != nil {
			u.SSHKeys = in.SSHKeys
		}
		if in.Disabled != nil {
			u.Disabled = *in.Disabled
		}
		if in.Role != nil {
			u.Role = *in.Role
			return checkRole(*in.Role)
		}
		return nil
	}, func(tx *sqlx.Tx, u loom.User) error {
		if hash != "" {
			if err := store.SetPasswordHash(ctx, tx, actor.Tenant, id, hash); err != nil {
				return err
			}
		}
		if u.Disabled {
			if err := store.RevokeTokensOf(ctx, tx, actor.Tenant, id); err != nil {
				return err
			}
		}
		if u.Disabled || hash != "" {
			return store.DeleteSessionsOf(ctx, tx, actor.Tenant, id, nil)
		}
		return nil
	})
}

func (a *Accounts) changeUser(ctx context.Context, actor loom.Actor, id loom.UserID, change func(*loom.User) []loom.FieldError) (loom.User, error) {
	return a.changeUserTx(ctx, actor, id, change, func(*sqlx.Tx, loom.User) error { return nil })
}

func (a *Accounts) changeUserTx(ctx context.Context, actor loom.Actor, id loom.UserID, change func(*loom.User) []loom.FieldError, also func(*sqlx.Tx, loom.User) error) (loom.User, error) {
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.User, error) {
		user, err := store.LockUser(ctx, tx, actor.Tenant, id)
		if err != nil {
			return loom.User{}, err
		}
		before := shownUser(user)
		errs := change(&user)
		if err := loom.InvalidFields(append(errs, checkUser(&user)...)); err != nil {
			return loom.User{}, err
		}
		if err := store.UpdateUser(ctx, tx, actor.Tenant, user); err != nil {
			return loom.User{}, err
		}
		if err := also(tx, user); err != nil {
			return loom.User{}, err
		}
		user.Role = store.RoleIn(actor.Tenant, string(user.Role))
		return user, record(ctx, tx, actor, "update", "user", string(id), before, shownUser(user))
	})
}

// ChangePassword gives the actor a new password and ends his other sessions: all
// but the one of keep. Errors: Invalid, at field oldPassword when that is wrong.
func (a *Accounts) ChangePassword(ctx context.Context, actor loom.Actor, old, new, keep loom.Secret) error {
	if err := actor.Require(loom.ScopeAdmin); err != nil {
		return err
	}
	if err := loom.InvalidFields(checkPassword("password", new)); err != nil {
		return err
	}
	// Guesses through this door are counted as those at sign-in are.
	subject := throttleSubject(actor.TenantName, string(actor.User))
	if err := a.beginSignIn(ctx, subject, actor.Address); err != nil {
		return err
	}
	right, err := a.passwordIs(ctx, actor.Tenant, actor.User, old)
	if err != nil {
		return err
	}
	if !right {
		return loom.InvalidFields([]loom.FieldError{{Field: "oldPassword", Message: "This is not your present password."}})
	}
	hash, err := a.passwords.hash(ctx, new)
	if err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if err := store.SignInSucceeded(ctx, tx, subject, actor.Address); err != nil {
			return err
		}
		if err := store.SetPasswordHash(ctx, tx, actor.Tenant, actor.User, hash); err != nil {
			return err
		}
		if err := store.DeleteSessionsOf(ctx, tx, actor.Tenant, actor.User, hashOf(keep)); err != nil {
			return err
		}
		return record(ctx, tx, actor, "update", "user", string(actor.User), nil, map[string]any{"changed": "password"})
	})
}

// Limits of a user's texts, in characters.
const maxUserText = 200

// checkUser checks shape and puts the SSH keys into their plain form.
func checkUser(u *loom.User) []loom.FieldError {
	var errs []loom.FieldError
	id := string(u.ID)
	switch {
	case strings.TrimSpace(id) == "" || strings.TrimSpace(id) != id:
		errs = append(errs, loom.FieldError{Field: "id", Message: "A user id is a text without blanks at its ends."})
	case len(id) > loom.MaxNameLength:
		errs = append(errs, loom.FieldError{Field: "id", Message: "A user id has at most 255 characters."})
	case strings.ContainsAny(id, "/\\\x00\n\r\t"):
		errs = append(errs, loom.FieldError{Field: "id", Message: "A user id holds no slashes and no control characters."})
	case id == "system":
		errs = append(errs, loom.FieldError{Field: "id", Message: "This id stands for Loom itself; choose another one."})
	}
	if len([]rune(u.DisplayName)) > maxUserText || strings.ContainsRune(u.DisplayName, 0) {
		errs = append(errs, loom.FieldError{Field: "displayName", Message: "A name has at most 200 characters."})
	}
	if u.Email != "" {
		if address, err := mail.ParseAddress(u.Email); err != nil || address.Address != u.Email || len(u.Email) > maxUserText {
			errs = append(errs, loom.FieldError{Field: "email", Message: "This is no e-mail address."})
		}
	}
	keys, keyErrs := cleanSSHKeys(u.SSHKeys)
	u.SSHKeys = keys
	return append(errs, keyErrs...)
}

func checkRole(role loom.Role) []loom.FieldError {
	if role == loom.RoleUser || role == loom.RoleAdmin {
		return nil
	}
	return []loom.FieldError{{Field: "role", Message: "The role is “user” or “admin”."}}
}

// cleanSSHKeys keeps type, key and comment of each public key. Options are
// refused: on a machine they would decide what its other users may do.
func cleanSSHKeys(keys []string) ([]string, []loom.FieldError) {
	clean := []string{}
	var errs []loom.FieldError
	for i, text := range keys {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		at := "sshKeys[" + itoa(i) + "]"
		key, comment, options, rest, err := ssh.ParseAuthorizedKey([]byte(text))
		switch {
		case err != nil && strings.Contains(text, "PRIVATE KEY"):
			errs = append(errs, loom.FieldError{Field: at, Message: "This is a private key. Never give it away; paste the public one, from the file ending in .pub."})
		case err != nil:
			errs = append(errs, loom.FieldError{Field: at, Message: "This is no SSH public key; paste one line such as “ssh-ed25519 AAAA… you@host”."})
		case len(strings.TrimSpace(string(rest))) > 0:
			errs = append(errs, loom.FieldError{Field: at, Message: "Give one public key per entry."})
		case len(options) > 0:
			errs = append(errs, loom.FieldError{Field: at, Message: "Options before the key are not taken; leave them out."})
		default:
			line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
			if comment = strings.TrimSpace(comment); comment != "" {
				line += " " + comment
			}
			clean = append(clean, line)
		}
	}
	return clean, errs
}

// record writes the audit row of a change; changes of users and tenants are not
// on live pages, so there is no event.
func record(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, verb, kind, object string, before, after any) error {
	return store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: verb, Kind: kind, Object: object, Before: before, After: after})
}

// shownUser is a user as the API shows him, for the audit.
func shownUser(u loom.User) any {
	return map[string]any{
		"id": u.ID, "role": u.Role, "displayName": u.DisplayName, "email": u.Email, "disabled": u.Disabled, "sshKeys": u.SSHKeys,
	}
}

// isNotFound is how "no such secret" becomes "who are you".
func isNotFound(err error) bool { return errors.Is(err, loom.NotFound) }
