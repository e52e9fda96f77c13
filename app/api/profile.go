package api

import (
	"net/http"

	"loom/app/api/wire"
	"loom/app/loom"
)

func (a *api) showProfile(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	profile, err := a.Accounts.Profile(r.Context(), actor)
	if err != nil {
		return err
	}
	return answer(w, r, profile)
}

func (a *api) putProfile(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	profile, err := wire.ReadProfile(body)
	if err != nil {
		return err
	}
	if err := a.Accounts.SetProfile(r.Context(), actor, profile); err != nil {
		return err
	}
	return done(w)
}

func (a *api) deleteProfile(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := a.Accounts.SetProfile(r.Context(), actor, nil); err != nil {
		return err
	}
	return done(w)
}
