package api

import (
	"net/http"

	"loom/app/account"
	"loom/app/api/wire"
	"loom/app/loom"
)

func (a *api) listTenants(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, false)
	if err != nil {
		return err
	}
	list, err := a.Accounts.ListTenants(r.Context(), actor, r.URL.Query().Get("q"), page)
	if err != nil {
		return err
	}
	return answerPage(w, r, list.Items, wire.NewTenant, list.Next, list.Prev)
}

// showTenant is for superadmins, as in the predecessor, also for one's own tenant.
func (a *api) showTenant(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	tenant, err := a.Accounts.Tenant(r.Context(), actor, r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewTenant(tenant))
}

func readTenant(w http.ResponseWriter, r *http.Request) (account.TenantInput, error) {
	body, err := readBody(w, r)
	if err != nil {
		return account.TenantInput{}, err
	}
	return wire.ReadTenant(body)
}

func (a *api) createTenant(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	in, err := readTenant(w, r)
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
	in, err := readTenant(w, r)
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

func (a *api) deleteTenant(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := a.Accounts.DeleteTenant(r.Context(), actor, r.PathValue("name")); err != nil {
		return err
	}
	return done(w)
}
