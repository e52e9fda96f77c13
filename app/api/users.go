package api

import (
	"net/http"

	"loom/app/account"
	"loom/app/api/wire"
	"loom/app/loom"
)

var roles = []loom.Role{loom.RoleUser, loom.RoleAdmin, loom.RoleSuperadmin, loom.RoleNone}

func (a *api) listUsers(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	in := account.UserListInput{Page: page, Q: r.URL.Query().Get("q")}
	if in.Roles, err = oneOf(r, "role", roles); err != nil {
		return err
	}
	if in.Disabled, err = queryBool(r, "disabled"); err != nil {
		return err
	}
	list, err := a.Accounts.ListUsers(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answerPage(w, r, list.Items, wire.NewUser, list.Next, list.Prev)
}

// answerPage answers a page of a list with its neighbours.
func answerPage[T, W any](w http.ResponseWriter, r *http.Request, items []T, shown func(T) W, next, prev string) error {
	linkPages(w, r, next, prev)
	out := make([]W, len(items))
	for i, item := range items {
		out[i] = shown(item)
	}
	return answer(w, r, out)
}

func (a *api) createUser(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadUser(body)
	if err != nil {
		return err
	}
	user, password, err := a.Accounts.CreateUser(r.Context(), actor, in)
	if err != nil {
		return err
	}
	out := wire.NewUser(loom.UserSummary{User: user})
	out.Password = password.Reveal()
	return answer(w, r, out)
}

func (a *api) showUser(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return a.answerUser(w, r, actor, pathUser(r))
}

func (a *api) answerUser(w http.ResponseWriter, r *http.Request, actor loom.Actor, id loom.UserID) error {
	user, err := a.Accounts.UserSummary(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewUser(user))
}

func pathUser(r *http.Request) loom.UserID { return loom.UserID(r.PathValue("id")) }

// editUser changes what the body names. The session that changes its own password
// goes on.
func (a *api) editUser(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id := pathUser(r)
	if id != actor.User { // said before what is wrong with the body
		if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
			return err
		}
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadUserChange(body)
	if err != nil {
		return err
	}
	in.Keep = a.cookieOf(r, actor)
	if _, err := a.Accounts.UpdateUser(r.Context(), actor, id, in); err != nil {
		return err
	}
	return a.answerUser(w, r, actor, id)
}

func (a *api) deleteUser(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := a.Accounts.DeleteUser(r.Context(), actor, pathUser(r)); err != nil {
		return err
	}
	return done(w)
}

func (a *api) userTokens(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return a.answerTokens(w, r, actor, pathUser(r))
}

func (a *api) userSessions(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return a.answerSessions(w, r, actor, pathUser(r))
}
