package api

import (
	"net/http"

	"loom/app/api/wire"
	"loom/app/loom"
)

// identityRoutes are about identity providers and their rules. Those of the superadmins' tenant are
// for all tenants.
func (a *api) identityRoutes() []route {
	const (
		all = "/v2/identity-providers"
		one = all + "/{id}"
	)
	return []route{
		{method: get, path: all, verb: loom.Administer, summary: "List the identity providers of the tenant", fresh: true, paged: true, answer: "[]IdentityProvider", handle: a.listIdentityProviders},
		{method: post, path: all, verb: loom.Administer, summary: "Create an identity provider", fresh: true, once: true, body: "IdentityProviderWrite", answer: "IdentityProvider", handle: a.createIdentityProvider},
		{method: get, path: one, verb: loom.Administer, summary: "Read an identity provider", fresh: true, answer: "IdentityProvider", handle: a.showIdentityProvider},
		{method: patch, path: one, verb: loom.Administer, summary: "Change an identity provider", fresh: true, body: "IdentityProviderWrite", answer: "IdentityProvider", handle: a.editIdentityProvider},
		{method: del, path: one, verb: loom.Administer, summary: "Delete an identity provider; its sessions end, and its users lose what its rules gave them", fresh: true, handle: a.deleteIdentityProvider},
		{method: post, path: one + "/check", verb: loom.Administer, summary: "Ask an identity provider what it offers", fresh: true, answer: "IdentityProviderOffers", handle: a.checkIdentityProvider},
		{method: get, path: one + "/rules", verb: loom.Administer, summary: "List the rules of an identity provider", fresh: true, answer: "IdentityRules", handle: a.listIdentityRules},
		{method: post, path: one + "/rules/preview", verb: loom.Administer, summary: "Say what rules would do to everybody the provider knows", fresh: true, body: "IdentityRulesWrite", answer: "RulesPreview", handle: a.previewIdentityRules},
		{method: put, path: one + "/rules", verb: loom.Administer, summary: "Replace the rules, if they do what the preview with this hash said", fresh: true, body: "IdentityRulesWrite", answer: "IdentityRules", handle: a.setIdentityRules},
	}
}

func (a *api) identityProvider(p loom.IdentityProvider) wire.IdentityProvider {
	return wire.NewIdentityProvider(p, a.Accounts.CallbackURL(p.ID), a.Accounts.LogoutURL(p.ID))
}

func (a *api) listIdentityProviders(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	list, err := a.Accounts.IdentityProviders(r.Context(), actor)
	if err != nil {
		return err
	}
	return answerList(w, r, true, list, a.identityProvider, order[loom.IdentityProvider]{"name", func(p loom.IdentityProvider) string { return p.Name }})
}

func (a *api) createIdentityProvider(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadIdentityProvider(body)
	if err != nil {
		return err
	}
	p, err := a.Accounts.CreateIdentityProvider(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answer(w, r, a.identityProvider(p))
}

func (a *api) showIdentityProvider(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := a.Accounts.IdentityProvider(r.Context(), actor, r.PathValue("id"))
	if err != nil {
		return err
	}
	return answer(w, r, a.identityProvider(p))
}

func (a *api) editIdentityProvider(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadIdentityProvider(body)
	if err != nil {
		return err
	}
	p, err := a.Accounts.UpdateIdentityProvider(r.Context(), actor, r.PathValue("id"), in)
	if err != nil {
		return err
	}
	return answer(w, r, a.identityProvider(p))
}

func (a *api) deleteIdentityProvider(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := a.Accounts.DeleteIdentityProvider(r.Context(), actor, r.PathValue("id")); err != nil {
		return err
	}
	return done(w)
}

func (a *api) checkIdentityProvider(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	found, err := a.Accounts.CheckIdentityProvider(r.Context(), actor, r.PathValue("id"))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewIdentityProviderOffers(found))
}

func (a *api) listIdentityRules(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	rules, err := a.Accounts.IdentityRules(r.Context(), actor, r.PathValue("id"))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewIdentityRules(rules))
}

func (a *api) previewIdentityRules(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	rules, _, err := wire.ReadIdentityRules(body)
	if err != nil {
		return err
	}
	preview, err := a.Accounts.PreviewIdentityRules(r.Context(), actor, r.PathValue("id"), rules)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewRulesPreview(preview))
}

func (a *api) setIdentityRules(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	rules, hash, err := wire.ReadIdentityRules(body)
	if err != nil {
		return err
	}
	stored, err := a.Accounts.SetIdentityRules(r.Context(), actor, r.PathValue("id"), rules, hash)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewIdentityRules(stored))
}
