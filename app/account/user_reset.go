package account

import (
	"context"

	"loom/app/loom"
)

// ResetPassword gives another user of the actor's tenant a password that is made up,
// shown this once, and ends his sessions. Errors: Forbidden, NotFound, Conflict for
// oneself: who knows his password changes it.
func (a *Accounts) ResetPassword(ctx context.Context, actor loom.Actor, id loom.UserID) (loom.Secret, error) {
	if err := actor.RequireAdmin(loom.ScopeAdmin); err != nil {
		return loom.Secret{}, err
	}
	if id == actor.User && !actor.ActsAbroad() {
		return loom.Secret{}, loom.NewError(loom.Conflict, "Your own password is changed in your account, with the present one.")
	}
	made := makePassword()
	if _, err := a.UpdateUser(ctx, actor, id, UserChange{Password: &made}); err != nil {
		return loom.Secret{}, err
	}
	return made, nil
}
