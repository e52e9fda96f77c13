package api

import (
	"net/http"

	"loom/app/api/wire"
	"loom/app/loom"
)

func (a *api) showSettings(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	settings, err := a.Accounts.Settings(r.Context(), actor)
	if err != nil {
		return err
	}
	return answer(w, r, settings)
}

func (a *api) editSettings(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadSettings(body)
	if err != nil {
		return err
	}
	settings, err := a.Accounts.UpdateSettings(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answer(w, r, settings)
}
