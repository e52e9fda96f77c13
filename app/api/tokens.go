package api

import (
	"net/http"
	"strconv"

	"loom/app/api/wire"
	"loom/app/loom"
)

func (a *api) listTokens(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return a.answerTokens(w, r, actor, actor.User)
}

func (a *api) answerTokens(w http.ResponseWriter, r *http.Request, actor loom.Actor, user loom.UserID) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	list, err := a.Accounts.ListTokens(r.Context(), actor, user, r.URL.Query().Get("q"), page)
	if err != nil {
		return err
	}
	return answerPage(w, r, list.Items, wire.NewToken, list.Next, list.Prev)
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
	return answerSecret(w, r, token, secret)
}

// answerSecret shows the secret of a token, this once.
func answerSecret(w http.ResponseWriter, r *http.Request, token loom.Token, secret loom.Secret) error {
	out := wire.NewToken(token)
	out.Secret = secret.Reveal()
	return answer(w, r, out)
}

func (a *api) rotateToken(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := pathToken(r)
	if err != nil {
		return err
	}
	token, secret, err := a.Accounts.RotateToken(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return answerSecret(w, r, token, secret)
}

func (a *api) revokeToken(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := pathToken(r)
	if err != nil {
		return err
	}
	if err := a.Accounts.RevokeToken(r.Context(), actor, id); err != nil {
		return err
	}
	return done(w)
}

// pathToken reads the id of a token. An id that none can have is NotFound.
func pathToken(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err == nil {
		return id, nil
	}
	return 0, loom.NewError(loom.NotFound, "There is no token “%.40s”.", r.PathValue("id"))
}
