package api

import (
	"net/http"

	"loom/app/api/wire"
	"loom/app/loom"
)

func (a *api) whoami(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	user, err := a.Accounts.UserSummary(r.Context(), actor, actor.User)
	if err != nil {
		return err
	}
	groups, err := a.Accounts.GroupsOf(r.Context(), actor, actor.User)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewWhoami(actor, wire.NewUser(user), groups))
}
