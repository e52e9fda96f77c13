package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/loom"
)

// heldBack sends a request but for the end of its body, runs the function, and sends the end.
// It reports whether the body was asked for at all: not where the headers told enough.
func (w *world) heldBack(method, path, body, header string, between func()) (status int, asked bool) {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	w.must(err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // a test that hangs fails
	cut := len(body) - 1
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n%s\r\n\r\n", method, path, w.server.Listener.Addr(), len(body), header)
	w.must(err)
	read := bufio.NewReader(conn)
	line, err := read.Peek(12) // who asks for the body has looked at the headers
	w.must(err)
	asked = string(line) == "HTTP/1.1 100"
	if asked {
		for range 2 {
			_, err = read.ReadString('\n')
			w.must(err)
		}
		fmt.Fprint(conn, body[:cut]) //nolint:errcheck // the answer tells
	}
	between()
	if asked {
		fmt.Fprint(conn, body[cut:]) //nolint:errcheck // the answer tells
	}
	answer, err := http.ReadResponse(read, nil)
	w.must(err)
	answer.Body.Close()
	return answer.StatusCode, asked
}

// TestHeldBackRequestsEndWithTheirAccess: who holds the end of a body back until the access
// with which the request came has ended changes nothing, whatever ended it and whatever the
// request is.
func TestHeldBackRequestsEndWithTheirAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	accounts := w.deps.Accounts
	system := loom.SystemActor("", "acme")
	w.must(w.db.GetContext(t.Context(), &system.Tenant, `SELECT id FROM tenants WHERE name = 'acme'`))
	const password = "quite-a-long-Pa55phrase"
	yes, user := true, loom.RoleUser
	n := 0
	type way struct{ token, cookie loom.Secret }
	change := func(in account.UserChange) func(loom.UserID, way) error {
		return func(id loom.UserID, _ way) error {
			_, err := accounts.UpdateUser(t.Context(), system, id, in)
			return err
		}
	}
	fresh := loom.NewSecret("quite-another-Pa55phrase")
	both := []string{"token", "cookie"}
	for name, c := range map[string]struct {
		by     []string
		end    func(id loom.UserID, by way) error
		status int
	}{
		"disabled":       {both, change(account.UserChange{Disabled: &yes}), 401},
		"demoted":        {both, change(account.UserChange{Role: &user}), 403},
		"a new password": {both, change(account.UserChange{Password: &fresh, EndTokens: true}), 401},
		"removed":        {both, func(id loom.UserID, _ way) error { return accounts.DeleteUser(t.Context(), system, id) }, 401},
		"revoked": {both[:1], func(_ loom.UserID, by way) error {
			actor, err := accounts.ActorByToken(t.Context(), account.TokenInput{Secret: by.token})
			w.must(err)
			return accounts.RevokeToken(t.Context(), actor, actor.Token)
		}, 401},
		"expired token": {both[:1], func(id loom.UserID, _ way) error {
			w.exec(`UPDATE tokens SET expires_at = now() WHERE user_id = $1`, id)
			return nil
		}, 401},
		"expired session": {both[1:], func(id loom.UserID, _ way) error {
			w.exec(`UPDATE sessions SET expires_at = now() WHERE user_id = $1`, id)
			return nil
		}, 401},
		"signed out": {both[1:], func(_ loom.UserID, by way) error {
			actor, _, err := accounts.ActorBySession(t.Context(), by.cookie, "")
			w.must(err)
			_, err = accounts.SignOut(t.Context(), actor, by.cookie)
			return err
		}, 401},
		"session ended": {both[1:], func(_ loom.UserID, by way) error {
			return accounts.EndSession(t.Context(), system, account.SessionID(by.cookie))
		}, 401},
	} {
		for _, by := range c.by {
			n++
			id := loom.UserID(fmt.Sprintf("chief-%d", n))
			_, _, err := accounts.CreateUser(t.Context(), system, account.UserInput{ID: id, Role: loom.RoleAdmin, Password: loom.NewSecret(password)})
			w.must(err)
			actor, cookie, _, err := accounts.SignIn(t.Context(), account.SignInInput{Tenant: "acme", User: string(id), Password: loom.NewSecret(password), Address: "127.0.0.1"})
			w.must(err)
			_, token, err := accounts.CreateToken(t.Context(), actor, account.NewToken{Name: "ci", Scopes: []loom.Scope{loom.ScopeAdmin}})
			w.must(err)
			header := "Authorization: Bearer " + token.Reveal()
			if by == "cookie" {
				header = "Cookie: loom-dev=" + cookie.Reveal()
			}
			made := fmt.Sprintf("late-%d", n)
			status, _ := w.heldBack(post, "/v2/users", `{"id":"`+made+`","role":"admin","password":"`+password+`"}`, header, func() { w.must(c.end(id, way{token, cookie})) })
			if status != c.status {
				t.Errorf("%s, by %s: %d, want %d", name, by, status, c.status)
			}
			if _, err := accounts.User(t.Context(), system, loom.UserID(made)); err == nil {
				t.Errorf("%s, by %s: a user was made", name, by)
			}
		}
	}
	// Every route that takes a body.
	id := w.cluster(w.user, "held")
	w.finish(id)
	tried := 0
	for _, rt := range w.api.routes() {
		if rt.body == "" {
			continue
		}
		token := w.super
		path := fill(rt.path, id)
		if w.call(token, rt.method, path, "{").status == http.StatusNotFound { // of acme
			token = w.admin
		}
		secret := loom.NewSecret(token)
		actor, err := accounts.ActorByToken(t.Context(), account.TokenInput{Secret: secret})
		w.must(err)
		status, asked := w.heldBack(rt.method, path, "{}", "Authorization: Bearer "+token, func() { w.exec(`UPDATE tokens SET revoked_at = now() WHERE id = $1`, actor.Token) })
		w.exec(`UPDATE tokens SET revoked_at = NULL WHERE id = $1`, actor.Token)
		if asked {
			tried++
		}
		if status < 400 || asked && status != http.StatusUnauthorized {
			t.Errorf("%s %s: %d after the token was revoked", rt.method, path, status)
		}
	}
	if tried < 35 {
		t.Errorf("only %d routes", tried)
	}
}
