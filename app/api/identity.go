package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
)

// Headers of the predecessor's clients.
const (
	headerUser   = "Coopr-UserID"
	headerTenant = "Coopr-TenantID"
	headerKey    = "Coopr-ApiKey"
)

// identify finds who a request acts as: a token, a session
// cookie, or from a trusted network the headers alone. Errors: Unauthenticated,
// Invalid for both a cookie and a token, NotFound for an unknown tenant,
// Forbidden for identity headers that the token may not act as, Throttled for too many
// requests in flight.
func (a *api) identify(r *http.Request) (loom.Actor, error) {
	for _, name := range []string{headerUser, headerTenant} {
		if !storable(r.Header.Get(name)) {
			return loom.Actor{}, loom.NewError(loom.Invalid, "The header %s is not UTF-8.", name)
		}
	}
	trusted := a.trusts(r)
	token, err := tokenOf(r, trusted)
	if err != nil {
		return loom.Actor{}, err
	}
	hasCookie := a.Sessions.HasCookie(r)
	var actor loom.Actor
	var caller httpx.Caller
	switch {
	case token != "" && !account.IsToken(token) && !hasCookie:
		err = loom.NewError(loom.Unauthenticated, "The key that was sent is no API token of Loom. %s", a.howToBeKnown(r, trusted))
	case hasCookie && token != "":
		return loom.Actor{}, loom.NewError(loom.Invalid, "The request carries both a session cookie and an API token; send one of them.")
	case token != "":
		actor, err = a.Accounts.ActorByToken(r.Context(), account.TokenInput{
			Secret: loom.NewSecret(token), AsUser: r.Header.Get(headerUser), AsTenant: r.Header.Get(headerTenant), Address: httpx.Address(r),
		})
		caller = httpx.TokenCaller(actor)
	case hasCookie:
		// Only browsers send cookies, also for other sites: what changes something
		// must come from our own pages.
		if err := httpx.CheckSite(a.Protection, r); err != nil {
			return loom.Actor{}, loom.NewError(loom.Forbidden, "This request came from another site and was refused.")
		}
		var session loom.Session
		actor, session, err = a.Accounts.ActorBySession(r.Context(), a.Sessions.Cookie(r), httpx.Address(r))
		if err == nil && session.PasswordChange == loom.PasswordRequired {
			return loom.Actor{}, loom.NewError(loom.Forbidden, "An administrator generated your password; choose one of your own at /account/password first.")
		}
		caller = httpx.SessionCaller(actor, session)
	case trusted:
		actor, err = a.byHeaders(r.Context(), r.Header.Get(headerUser), r.Header.Get(headerTenant), httpx.Address(r))
		caller = httpx.HeaderCaller(actor)
	default:
		err = &loom.Error{Kind: loom.Unauthenticated, Message: a.howToBeKnown(r, trusted)}
	}
	if err == nil {
		err = httpx.Claim(r, caller)
	}
	actor.RequestID = httpx.RequestID(r)
	return actor, err
}

// known lets a handler answer; who sends a body is asked again at its end (httpx.Known).
func (a *api) known(w http.ResponseWriter, r *http.Request, actor loom.Actor, handle httpx.ActorHandler) error {
	if actor.User == "" { // an open route
		return handle(w, r, actor)
	}
	return httpx.Known(w, r, actor, func() (loom.Actor, error) { return a.identify(r) }, handle)
}

// howToBeKnown says how a request names who it acts as, to one that did not.
func (a *api) howToBeKnown(r *http.Request, trusted bool) string {
	const token = "Send an API token: “Authorization: Bearer loom_…”, or the same in the header Coopr-ApiKey. Tokens are made on the account page, or by “loom token create”."
	if trusted || r.Header.Get(headerUser) == "" && r.Header.Get(headerTenant) == "" {
		return token
	}
	if httpx.ClientWithin(r, a.TrustedNetworks) {
		return fmt.Sprintf("The headers %s and %s alone are believed only where Loom is called by an IP address, localhost, the name of its host or that of LOOM_PUBLIC_URL, and not from pages of other sites. %s",
			headerUser, headerTenant, token)
	}
	return fmt.Sprintf("The headers %s and %s alone are believed only from networks that the installation names in LOOM_TRUSTED_HEADER_NETWORKS, and not through a proxy of LOOM_TRUSTED_PROXIES for a client elsewhere. %s",
		headerUser, headerTenant, token)
}

// tokenOf finds the token of a request, "" for none. Authorization and
// Coopr-ApiKey carry the same one. The predecessor told everybody to send some key and
// never looked at it: from a network that is believed, one that is no token counts as none.
func tokenOf(r *http.Request, trusted bool) (string, error) {
	key := strings.TrimSpace(r.Header.Get(headerKey))
	if !account.IsToken(key) && trusted {
		key = ""
	}
	header := strings.TrimSpace(r.Header.Get("Authorization"))
	if header == "" {
		return key, nil
	}
	token, ok := bearer(header)
	switch {
	case !ok:
		return "", loom.NewError(loom.Unauthenticated, "Only bearer tokens are accepted: “Authorization: Bearer loom_…”.")
	case account.IsToken(key) && key != token:
		return "", loom.NewError(loom.Invalid, "The headers Authorization and Coopr-ApiKey carry different tokens; send one of them.")
	}
	return token, nil
}

// bearer reads "Bearer <token>" and "Bearer: <token>", which the predecessor's
// Java client sends.
func bearer(header string) (token string, ok bool) {
	const scheme = "bearer"
	if len(header) <= len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", false
	}
	rest := header[len(scheme):]
	if rest[0] != ' ' && rest[0] != ':' {
		return "", false
	}
	token = strings.TrimSpace(strings.TrimPrefix(rest, ":"))
	return token, token != ""
}

// trusts reports whether a request comes from a network whose headers are believed, not
// through a trusted proxy from elsewhere, and is no browser with a page of another site.
func (a *api) trusts(r *http.Request) bool {
	return httpx.ClientWithin(r, a.TrustedNetworks) && a.Hosts.Names(r)
}

// byHeaders gives who the headers name, in the order of checks of the
// predecessor: the user's name, the tenant's, whether there is such a tenant.
func (a *api) byHeaders(ctx context.Context, user, tenantName, address string) (loom.Actor, error) {
	switch {
	case user == "":
		return loom.Actor{}, loom.NewError(loom.Unauthenticated, "Send an API token, or name the user in the header %s.", headerUser)
	case tenantName == "":
		return loom.Actor{}, loom.NewError(loom.Unauthenticated, "Name the tenant in the header %s.", headerTenant)
	}
	return a.Accounts.ActorByHeaders(ctx, account.HeaderInput{User: user, Tenant: tenantName, Address: address})
}
