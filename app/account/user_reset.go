package account

import (
	"context"

	"loom/app/loom"
)

// ResetPassword gives another user of the actor's tenant a generated password,
// shown this once and to be changed at his next sign-in, and ends his sessions; with
// endTokens his API tokens too. Errors: Forbidden, NotFound, Conflict for
// oneself: who knows his password changes it.
func (a *Accounts) ResetPassword(ctx context.Context, actor loom.Actor, id loom.UserID, endTokens bool) (loom.Secret, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return loom.Secret{}, err
	}
	if actor.Is(id) && !actor.ActsAbroad() {
		return loom.Secret{}, loom.NewError(loom.Conflict, "Your own password is changed in your account, with the present one.")
	}
	made := makePassword()
	if _, err := a.UpdateUser(ctx, actor, id, UserChange{Password: &made, EndTokens: endTokens, generated: true}); err != nil {
		return loom.Secret{}, err
	}
	return made, nil
}
