package httpx

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/sessions"

	"loom/app/account"
	"loom/app/loom"
)

// sessionKey is the name under which gorilla/sessions keeps our one session.
const sessionKey = "session"

// Sessions is a gorilla/sessions store on the table of sessions: the cookie
// carries 32 random bytes, the database their hash. Signing out, a changed
// password or a removed user take effect at once.
type Sessions struct {
	accounts *account.Accounts
	cookie   string
	device   string
	secure   bool
}

// NewSessions makes the store. secure says that browsers reach Loom over TLS;
// without it the cookie lacks Secure, which is for loopback only.
func NewSessions(accounts *account.Accounts, secure bool) *Sessions {
	s := &Sessions{accounts: accounts, cookie: "loom-dev", device: "loom-dev-device", secure: secure}
	if secure {
		s.cookie, s.device = "__Host-loom", "__Host-loom-device"
	}
	return s
}

// Get returns the request's session, read once per request.
func (s *Sessions) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New reads the session that the cookie names; without a valid one it is new
// and empty.
func (s *Sessions) New(r *http.Request, name string) (*sessions.Session, error) {
	session := sessions.NewSession(s, name)
	session.IsNew = true
	session.Options = s.options(0)
	cookie, err := r.Cookie(s.cookie)
	if err != nil || cookie.Value == "" {
		return session, nil
	}
	actor, info, err := s.accounts.ActorBySession(r.Context(), loom.NewSecret(cookie.Value), Address(r))
	if err != nil {
		if loom.AsError(err).Kind == loom.Unauthenticated {
			return session, nil
		}
		return session, err
	}
	session.ID, session.IsNew = cookie.Value, false
	session.Values["actor"], session.Values["info"] = actor, info
	return session, nil
}

// Save stores the flash messages; a negative MaxAge removes the cookie.
func (s *Sessions) Save(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	if session.Options.MaxAge < 0 {
		http.SetCookie(w, sessions.NewCookie(s.cookie, "", session.Options))
		return nil
	}
	if session.ID == "" {
		return nil // nobody is signed in: nothing to keep
	}
	data := map[string]string{}
	if flashes, ok := session.Values["flashes"].([]Flash); ok && len(flashes) > 0 {
		text, err := json.Marshal(flashes)
		if err != nil {
			return err
		}
		data["flashes"] = string(text)
	}
	return s.accounts.SetSessionData(r.Context(), loom.NewSecret(session.ID), data)
}

func (s *Sessions) options(maxAge int) *sessions.Options {
	return &sessions.Options{Path: "/", MaxAge: maxAge, Secure: s.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// SignedIn sets the cookie of a fresh session. keep makes it outlive the browser.
func (s *Sessions) SignedIn(w http.ResponseWriter, cookie loom.Secret, expires time.Time, keep bool) {
	maxAge := 0
	if keep {
		maxAge = int(time.Until(expires).Seconds())
	}
	http.SetCookie(w, sessions.NewCookie(s.cookie, cookie.Reveal(), s.options(maxAge)))
}

// Device returns the cookie of Know, zero without one.
func (s *Sessions) Device(r *http.Request) loom.Secret {
	c, err := r.Cookie(s.device)
	if err != nil {
		return loom.Secret{}
	}
	return loom.NewSecret(c.Value)
}

// KnownBrowser returns the id of a browser that signed in before, "" for others.
func (s *Sessions) KnownBrowser(r *http.Request) string {
	if s == nil {
		return ""
	}
	if device := s.Device(r); !device.IsZero() {
		return s.accounts.Browser(device)
	}
	return ""
}

// Know lets the browser of somebody who just gave the right password be known later on.
// That it cannot be stops nobody.
func (s *Sessions) Know(w http.ResponseWriter, r *http.Request, actor loom.Actor) {
	cookie, err := s.accounts.Device(r.Context(), actor)
	if err == nil && !cookie.IsZero() {
		http.SetCookie(w, sessions.NewCookie(s.device, cookie.Reveal(), s.options(int(account.DeviceLife.Seconds()))))
	}
}

// SignOut ends the session and removes the cookie. Where the identity provider by which it began
// ends its own session too, it returns the page that does so.
func (s *Sessions) SignOut(w http.ResponseWriter, r *http.Request) (leave string, err error) {
	session, err := s.Get(r, sessionKey)
	if err != nil {
		return "", err
	}
	if actor, ok := session.Values["actor"].(loom.Actor); ok {
		if leave, err = s.accounts.SignOut(r.Context(), actor, loom.NewSecret(session.ID)); err != nil {
			return "", err
		}
	}
	session.Options = s.options(-1)
	return leave, s.Save(r, w, session)
}

// maxAttempts is how many attempts to sign in at identity providers a browser has at once.
const maxAttempts = 5

// Attempts returns the cookies of attempts to sign in at identity providers, with their names, the
// oldest first.
func (s *Sessions) Attempts(r *http.Request) (names []string, values []loom.Secret) {
	for _, c := range r.Cookies() {
		if strings.HasPrefix(c.Name, s.cookie+"-attempt-") {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		value := ""
		if c, err := r.Cookie(name); err == nil {
			value = c.Value
		}
		values = append(values, loom.NewSecret(value))
	}
	return names, values
}

// Attempt keeps the cookie of an attempt; the oldest of too many go.
func (s *Sessions) Attempt(w http.ResponseWriter, r *http.Request, cookie account.AttemptCookie) {
	names, _ := s.Attempts(r)
	for len(names) >= maxAttempts {
		s.EndAttempt(w, names[0])
		names = names[1:]
	}
	http.SetCookie(w, sessions.NewCookie(s.cookie+"-attempt-"+cookie.Name, cookie.Value.Reveal(), s.options(int(account.AttemptLife.Seconds()))))
}

// EndAttempt removes the cookie of an attempt.
func (s *Sessions) EndAttempt(w http.ResponseWriter, name string) {
	http.SetCookie(w, sessions.NewCookie(name, "", s.options(-1)))
}

// HasCookie reports whether the request carries a session cookie, valid or not.
func (s *Sessions) HasCookie(r *http.Request) bool {
	c, err := r.Cookie(s.cookie)
	return err == nil && c.Value != ""
}

// errChangePassword is the cause of what Actor returns for somebody who has to change the
// password first.
var errChangePassword = errors.New("the password was generated by an administrator")

// MustChangePassword reports whether an error of Actor says that somebody is signed in
// who has to change the password before anything else.
func MustChangePassword(err error) bool { return errors.Is(err, errChangePassword) }

// Actor returns who is signed in, or Unauthenticated; also of somebody who has to change
// the password first (MustChangePassword).
func (s *Sessions) Actor(r *http.Request) (loom.Actor, loom.Session, error) {
	actor, session, err := s.ActorChanging(r)
	if err == nil && session.PasswordChange == loom.PasswordRequired {
		return loom.Actor{}, loom.Session{}, &loom.Error{Kind: loom.Unauthenticated, Message: "Choose a new password to go on.", Err: errChangePassword}
	}
	return actor, session, err
}

// ActorChanging is Actor for the page on which the password is changed.
func (s *Sessions) ActorChanging(r *http.Request) (loom.Actor, loom.Session, error) {
	session, err := s.Get(r, sessionKey)
	if err != nil {
		return loom.Actor{}, loom.Session{}, err
	}
	actor, ok := session.Values["actor"].(loom.Actor)
	if !ok {
		return loom.Actor{}, loom.Session{}, loom.NewError(loom.Unauthenticated, "Sign in to continue.")
	}
	actor.RequestID = RequestID(r)
	info, _ := session.Values["info"].(loom.Session)
	return actor, info, nil
}

// Cookie returns the raw cookie, for use cases that must spare the present session.
func (s *Sessions) Cookie(r *http.Request) loom.Secret {
	c, err := r.Cookie(s.cookie)
	if err != nil {
		return loom.Secret{}
	}
	return loom.NewSecret(c.Value)
}

// Flash is what is to be said after a redirect, once. Tone is ok, warn or bad.
type Flash struct {
	Tone string `json:"tone"`
	Text string `json:"text"`
	URL  string `json:"url,omitempty"`
	Link string `json:"link,omitempty"`
}

// maxFlashes are kept of a session, the newest: programs that ask for no page take none.
const maxFlashes = 10

// AddFlash keeps a message for the next page of this browser.
func (s *Sessions) AddFlash(w http.ResponseWriter, r *http.Request, flash Flash) error {
	session, err := s.Get(r, sessionKey)
	if err != nil || session.ID == "" {
		return err
	}
	flashes, err := s.flashes(r.Context(), session)
	if err != nil {
		return err
	}
	flashes = append(flashes, flash)
	session.Values["flashes"] = flashes[max(0, len(flashes)-maxFlashes):]
	return s.Save(r, w, session)
}

// TakeFlashes returns the kept messages and forgets them.
func (s *Sessions) TakeFlashes(w http.ResponseWriter, r *http.Request) ([]Flash, error) {
	session, err := s.Get(r, sessionKey)
	if err != nil || session.ID == "" {
		return nil, err
	}
	flashes, err := s.flashes(r.Context(), session)
	if err != nil || len(flashes) == 0 {
		return nil, err
	}
	session.Values["flashes"] = []Flash(nil)
	return flashes, s.Save(r, w, session)
}

func (s *Sessions) flashes(ctx context.Context, session *sessions.Session) ([]Flash, error) {
	data, err := s.accounts.SessionData(ctx, loom.NewSecret(session.ID))
	if err != nil {
		return nil, err
	}
	var flashes []Flash
	if text := data["flashes"]; text != "" {
		if err := json.Unmarshal([]byte(text), &flashes); err != nil {
			return nil, nil // an older form: not worth failing a page
		}
	}
	return flashes, nil
}
