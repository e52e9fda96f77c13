package api

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"loom/app/api/wire"
	"loom/app/lifecycle"
	"loom/app/loom"
)

func (a *api) whoami(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	user, err := a.Accounts.User(r.Context(), actor, actor.User)
	if err != nil {
		return err
	}
	tokens, err := a.Accounts.Tokens(r.Context(), actor)
	if err != nil {
		return err
	}
	live := slices.DeleteFunc(slices.Clone(loom.ClusterStatuses), func(s loom.ClusterStatus) bool { return s == loom.ClusterTerminated })
	clusters, err := a.Clusters.Clusters(r.Context(), actor, lifecycle.ListInput{Page: loom.Page{Limit: 1}, Owner: string(actor.User), Statuses: live})
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewWhoami(actor, wire.NewUser(user, clusters.Total, len(tokens))))
}

func (a *api) listTokens(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	tokens, err := a.Accounts.Tokens(r.Context(), actor)
	if err != nil {
		return err
	}
	id := func(t loom.Token) string { return byNumber(int(t.ID)) }
	return answerList(w, r, true, tokens, wire.NewToken,
		order[loom.Token]{"name", func(t loom.Token) string { return t.Name + "\x00" + id(t) }},
		order[loom.Token]{"-createTime", func(t loom.Token) string { return byNumber(int(t.Created.UnixMilli())) + id(t) }})
}

func (a *api) createToken(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadToken(body)
	if err != nil {
		return err
	}
	token, secret, err := a.Accounts.CreateToken(r.Context(), actor, in)
	if err != nil {
		return err
	}
	out := wire.NewToken(token)
	out.Secret = secret.Reveal()
	return answer(w, r, out)
}

func (a *api) revokeToken(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return loom.NewError(loom.NotFound, "There is no token “%.40s”.", r.PathValue("id"))
	}
	if err := a.Accounts.RevokeToken(r.Context(), actor, id); err != nil {
		return err
	}
	return done(w)
}

func (a *api) listTenants(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	tenants, err := a.Accounts.Tenants(r.Context(), actor)
	if err != nil {
		return err
	}
	slices.SortFunc(tenants, func(x, y loom.Tenant) int { return cmp.Compare(x.Name, y.Name) })
	return answerList(w, r, false, tenants, wire.NewTenant, order[loom.Tenant]{"name", func(t loom.Tenant) string { return t.Name }},
		order[loom.Tenant]{"-createTime", func(t loom.Tenant) string { return byNumber(int(t.Created.UnixMilli())) + t.Name }})
}

// showTenant is for superadmins, as in the predecessor, also for one's own tenant.
func (a *api) showTenant(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if !actor.IsSuperadmin() {
		return loom.NewError(loom.Forbidden, "This needs the role of a superadmin.")
	}
	tenant, err := a.Accounts.Tenant(r.Context(), actor, r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewTenant(tenant))
}

func (a *api) createTenant(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := actor.RequireSuperadmin(); err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadTenant(body)
	if err != nil {
		return err
	}
	if _, err := a.Accounts.CreateTenant(r.Context(), actor, in); err != nil {
		return within("tenant", err)
	}
	return done(w)
}

// putTenant changes a tenant, and makes one that is not there, without bootstrap.
func (a *api) putTenant(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := actor.RequireSuperadmin(); err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadTenant(body)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if in.Name != name {
		return loom.InvalidFields([]loom.FieldError{{Field: "tenant.name", Message: "The name in the body is not the one in the path, “" + name + "”."}})
	}
	in.Bootstrap = false
	_, err = a.Accounts.UpdateTenant(r.Context(), actor, name, in)
	if loom.AsError(err).Kind == loom.NotFound {
		_, err = a.Accounts.CreateTenant(r.Context(), actor, in)
	}
	if err != nil {
		return within("tenant", err)
	}
	return done(w)
}
