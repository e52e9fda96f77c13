package api

import (
	"net/http"

	"loom/app/account"
	"loom/app/api/wire"
	"loom/app/loom"
)

// cookieOf is the cookie of a request that came by one, zero for all others.
func (a *api) cookieOf(r *http.Request, actor loom.Actor) loom.Secret {
	if actor.Via != "session" {
		return loom.Secret{}
	}
	return a.Sessions.Cookie(r)
}

func (a *api) listSessions(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return a.answerSessions(w, r, actor, actor.User)
}

func (a *api) answerSessions(w http.ResponseWriter, r *http.Request, actor loom.Actor, user loom.UserID) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	list, err := a.Accounts.ListSessions(r.Context(), actor, user, r.URL.Query().Get("q"), page)
	if err != nil {
		return err
	}
	current := account.SessionID(a.cookieOf(r, actor))
	return answerPage(w, r, list.Items, func(s loom.Session) wire.Session { return wire.NewSession(s, current) }, list.Next, list.Prev)
}

// endSessions ends all sessions but that of the request, if it came by one.
func (a *api) endSessions(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := a.Accounts.EndOtherSessions(r.Context(), actor, a.cookieOf(r, actor)); err != nil {
		return err
	}
	return done(w)
}

func (a *api) endSession(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := a.Accounts.EndSession(r.Context(), actor, r.PathValue("id")); err != nil {
		return err
	}
	return done(w)
}
