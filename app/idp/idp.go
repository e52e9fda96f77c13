// Package idp speaks OpenID Connect with the identity providers of organizations: it finds out
// what a provider offers, sends people there, and verifies what comes back.
//
// It decides nothing about users and knows no database. It must not follow redirects nor call
// addresses that the installation does not allow. A newcomer's usual mistake: taking claims from a
// token before its signature, issuer, audience, nonce and time were checked; Exchange gives them
// only after that. Who a person is comes from the token alone.
package idp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"loom/app/loom"
)

// Limits of calls to providers.
const (
	timeout   = 10 * time.Second
	maxAnswer = 256 << 10
	// leeway is how far clocks may be apart.
	leeway = time.Minute
	// fresh is how long what a provider said of itself is believed, stale how long while it does
	// not answer.
	fresh, stale = time.Hour, 24 * time.Hour
	// keysAgain is how long to wait before its keys are read again for one that is not among them.
	keysAgain = time.Minute
)

// Options say what a client may call.
type Options struct {
	// Reach is where providers may be.
	Reach loom.Reach
	// PlainHTTP allows providers without TLS, for tests.
	PlainHTTP bool
}

// Client calls providers. It is safe for concurrent use.
type Client struct {
	opts Options
	now  func() time.Time
	mu   sync.Mutex
	// known are providers by issuer.
	known map[string]*known
}

// known is what a provider said of itself.
type known struct {
	provider *oidc.Provider
	endpoints
	since time.Time
}

// endpoints is what Loom reads of a provider's configuration besides package oidc.
type endpoints struct {
	EndSession string   `json:"end_session_endpoint"`
	SaysIssuer bool     `json:"authorization_response_iss_parameter_supported"`
	Scopes     []string `json:"scopes_supported"`
	Logout     bool     `json:"backchannel_logout_supported"`
}

// New makes a client.
func New(opts Options) *Client { return &Client{opts: opts, now: time.Now, known: map[string]*known{}} }

// Registration is Loom as a provider knows it.
type Registration struct {
	Issuer, ClientID string
	Secret           loom.Secret
	// RedirectURL is where the provider sends people back to.
	RedirectURL string
	// SubjectClaim is the claim that stands for a person.
	SubjectClaim string
}

// CheckIssuer returns a sentence about what is wrong with the URL of an issuer, "" for nothing.
func (c *Client) CheckIssuer(issuer string) string {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(issuer, " \t\n"):
		return "Enter a URL, such as https://id.example.com, as the provider has it in its tokens."
	case strings.ContainsAny(issuer, "{}"):
		return "This issuer is a pattern for many organizations. Enter that of yours, with the id of its directory in place of the braces."
	case u.Scheme != "https" && (u.Scheme != "http" || !c.opts.PlainHTTP):
		return "Enter a URL that begins with https://."
	}
	return ""
}

// Sent is what Loom sends a person to a provider with, and expects back.
type Sent struct{ State, Nonce, Verifier string }

// NewSent makes up what Loom sends.
func NewSent() Sent {
	return Sent{State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier()}
}

// SignInURL returns the page of the provider where a person signs in. Unavailable.
func (c *Client) SignInURL(ctx context.Context, r Registration, s Sent) (string, error) {
	k, err := c.find(ctx, r.Issuer)
	if err != nil {
		return "", err
	}
	return c.oauth(k, r).AuthCodeURL(s.State, oidc.Nonce(s.Nonce), oauth2.S256ChallengeOption(s.Verifier)), nil
}

func (c *Client) oauth(k *known, r Registration) *oauth2.Config {
	scopes := []string{oidc.ScopeOpenID, "profile", "email"}
	if slices.Contains(k.Scopes, "groups") {
		scopes = append(scopes, "groups")
	}
	return &oauth2.Config{ClientID: r.ClientID, ClientSecret: r.Secret.Reveal(), Endpoint: k.provider.Endpoint(), RedirectURL: r.RedirectURL, Scopes: scopes}
}

// Person is who signed in at a provider.
type Person struct {
	Subject string
	Claims  loom.Claims
	// Session is the provider's name for the sign-in, "" where it has none.
	Session string
	// Token is the ID token, by which the provider knows the sign-in when it is to end.
	Token loom.Secret
}

// Answer is what a provider sends a person back with.
type Answer struct {
	Code string
	// Issuer is who says to have sent it, "" where the answer does not say.
	Issuer string
}

// protocol are claims that are about the token, and not about the person.
var protocol = []string{"iss", "aud", "exp", "iat", "nbf", "jti", "nonce", "azp", "at_hash", "c_hash", "s_hash", "auth_time", "sid", "rat"}

// Exchange trades a code for who signed in. Errors: Invalid, for a code or a token that is not as
// it must be; Unavailable.
func (c *Client) Exchange(ctx context.Context, r Registration, s Sent, a Answer) (Person, error) {
	k, err := c.find(ctx, r.Issuer)
	if err != nil {
		return Person{}, err
	}
	if a.Issuer != r.Issuer && (a.Issuer != "" || k.SaysIssuer) {
		return Person{}, refused(fmt.Errorf("the answer is from the issuer %q", a.Issuer))
	}
	ctx = oidc.ClientContext(ctx, c.http())
	tokens, err := c.oauth(k, r).Exchange(ctx, a.Code, oauth2.VerifierOption(s.Verifier))
	if err != nil {
		var said *oauth2.RetrieveError
		if errors.As(err, &said) && said.Response != nil && said.Response.StatusCode < 500 {
			return Person{}, refused(fmt.Errorf("the provider refused the code: %s %.200s", said.ErrorCode, said.ErrorDescription))
		}
		return Person{}, c.away(r.Issuer, err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := k.provider.Verifier(&oidc.Config{ClientID: r.ClientID, SupportedSigningAlgs: algorithms, Now: func() time.Time { return c.now().Add(-leeway) }}).Verify(ctx, raw)
	if err != nil {
		return Person{}, refused(err)
	}
	all, err := c.checked(r, s, token)
	if err != nil {
		return Person{}, err
	}
	p := Person{Subject: textOf(all, r.SubjectClaim), Session: textOf(all, "sid"), Token: loom.NewSecret(raw)}
	if err := c.addInfo(ctx, k, r, tokens, all); err != nil {
		return Person{}, err
	}
	for _, name := range protocol {
		delete(all, name)
	}
	own, err := json.Marshal(all)
	if err != nil {
		return Person{}, err
	}
	p.Claims, err = loom.ParseClaims(own)
	return p, err
}

// algorithms are those by which nobody but the provider can sign.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// textOf returns a claim that is a text, "" for others.
func textOf(claims map[string]json.RawMessage, name string) string {
	var value string
	_ = json.Unmarshal(claims[name], &value) // what is no text counts as missing
	return value
}

// checked returns the claims of a token whose signature, issuer, audience and end were verified,
// if it is for this attempt.
func (c *Client) checked(r Registration, s Sent, token *oidc.IDToken) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := token.Claims(&all); err != nil {
		return nil, refused(err)
	}
	azp, hasParty := all["azp"]
	subject := textOf(all, r.SubjectClaim)
	switch {
	case token.Nonce != s.Nonce:
		return nil, refused(errors.New("the nonce is another one"))
	case hasParty && textOf(all, "azp") != r.ClientID:
		return nil, refused(fmt.Errorf("the token was made for %.100s", azp))
	case !hasParty && len(token.Audience) > 1:
		return nil, refused(errors.New("the token is for several clients and does not say for which it was made"))
	case token.IssuedAt.After(c.now().Add(leeway)):
		return nil, refused(errors.New("the token is from the future"))
	case subject == "" || len(subject) > 255 || strings.ContainsRune(subject, 0):
		return nil, refused(fmt.Errorf("the claim %q, which identifies the person, is missing or too long", r.SubjectClaim))
	}
	return all, nil
}

// addInfo adds the claims that the provider tells on request. Some have groups nowhere else: Okta
// leaves them out of tokens that come with an access token. Those of the token, which is signed,
// win. A provider that does not answer signs nobody in: without their groups people would lose
// roles.
func (c *Client) addInfo(ctx context.Context, k *known, r Registration, tokens *oauth2.Token, all map[string]json.RawMessage) error {
	if k.provider.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := k.provider.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return c.away(r.Issuer, err)
	}
	var more map[string]json.RawMessage
	if err := info.Claims(&more); err != nil {
		return c.away(r.Issuer, err)
	}
	if info.Subject != textOf(all, "sub") {
		return refused(errors.New("the information is about another person"))
	}
	for name, value := range more {
		if _, there := all[name]; !there {
			all[name] = value
		}
	}
	return nil
}

// Logout is a sign-in that ended at the provider.
type Logout struct {
	// Session is the provider's name for it, "" for all of the person.
	Session, Subject string
	// ID is used once, until Ends.
	ID   string
	Ends time.Time
}

// maxLogoutLife is how long a logout token may live, draftLogoutLife how long one without an end
// lives, as the drafts of the specification had it and providers still send it.
const (
	maxLogoutLife   = time.Hour
	draftLogoutLife = 2 * time.Minute
)

// VerifyLogout reads a token by which a provider says that a sign-in ended. Errors: Invalid;
// Unavailable.
func (c *Client) VerifyLogout(ctx context.Context, r Registration, raw string) (Logout, error) {
	k, err := c.find(ctx, r.Issuer)
	if err != nil {
		return Logout{}, err
	}
	// VerifyLogout of package oidc refuses tokens without an end.
	token, err := k.provider.Verifier(&oidc.Config{ClientID: r.ClientID, SupportedSigningAlgs: algorithms, SkipExpiryCheck: true}).Verify(ctx, raw)
	if err != nil {
		return Logout{}, refused(err)
	}
	var own struct {
		ID      string                     `json:"jti"`
		Session string                     `json:"sid"`
		Nonce   json.RawMessage            `json:"nonce"`
		Events  map[string]json.RawMessage `json:"events"`
	}
	var all map[string]any
	if err := errors.Join(token.Claims(&own), token.Claims(&all)); err != nil {
		return Logout{}, refused(err)
	}
	subject, _ := all[r.SubjectClaim].(string)
	ends := token.Expiry
	if ends.IsZero() {
		ends = token.IssuedAt.Add(draftLogoutLife)
	}
	switch {
	case own.Events[logoutEvent] == nil || own.Nonce != nil: // an ID token has a nonce
		return Logout{}, refused(errors.New("the token is none about the end of a sign-in"))
	case own.ID == "" || len(own.ID) > 255:
		return Logout{}, refused(errors.New("the token has no id, or a long one"))
	case subject == "" && own.Session == "":
		return Logout{}, refused(errors.New("the token names nobody that Loom knows"))
	case token.IssuedAt.After(c.now().Add(leeway)):
		return Logout{}, refused(errors.New("the token is from the future"))
	case ends.Before(c.now().Add(-leeway)):
		return Logout{}, refused(errors.New("the token is over"))
	case ends.After(c.now().Add(maxLogoutLife)):
		return Logout{}, refused(errors.New("the token lives too long"))
	}
	return Logout{Session: own.Session, Subject: subject, ID: own.ID, Ends: ends.Add(leeway)}, nil
}

// logoutEvent is what a logout token is about.
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// SignOutURL returns the page of the provider that ends a sign-in there and leads back, "" where
// it has none. Unavailable.
func (c *Client) SignOutURL(ctx context.Context, r Registration, token loom.Secret, back string) (string, error) {
	k, err := c.find(ctx, r.Issuer)
	if err != nil || k.EndSession == "" {
		return "", err
	}
	u, err := url.Parse(k.EndSession)
	if err != nil || c.CheckIssuer((&url.URL{Scheme: u.Scheme, Host: u.Host}).String()) != "" {
		return "", nil //nolint:nilerr // a page that cannot be shown is none
	}
	q := u.Query()
	q.Set("client_id", r.ClientID)
	q.Set("post_logout_redirect_uri", back)
	if !token.IsZero() {
		q.Set("id_token_hint", token.Reveal())
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Found is what a provider offers, for those who set it up.
type Found struct {
	// Pages are where people sign in and, if it has that, out.
	SignIn, SignOut string
	// Logout says that it announces to tell Loom of sign-ins that ended.
	Logout bool
	Scopes []string
}

// Check asks a provider again what it offers. Errors: Invalid for a malformed issuer;
// Unavailable, which says why.
func (c *Client) Check(ctx context.Context, issuer string) (Found, error) {
	if wrong := c.CheckIssuer(issuer); wrong != "" {
		return Found{}, loom.InvalidFields([]loom.FieldError{{Field: "issuer", Message: wrong}})
	}
	k, err := c.read(ctx, issuer)
	if err != nil {
		return Found{}, err
	}
	return Found{SignIn: k.provider.Endpoint().AuthURL, SignOut: k.EndSession, Logout: k.Logout, Scopes: k.Scopes}, nil
}

// find returns what a provider said of itself, not long ago. Unavailable.
func (c *Client) find(ctx context.Context, issuer string) (*known, error) {
	if c.CheckIssuer(issuer) != "" {
		return nil, loom.NewError(loom.Unavailable, "The issuer of this provider is none that Loom calls.")
	}
	c.mu.Lock()
	k := c.known[issuer]
	c.mu.Unlock()
	if k != nil && c.now().Sub(k.since) < fresh {
		return k, nil
	}
	read, err := c.read(ctx, issuer)
	if err != nil && k != nil && c.now().Sub(k.since) < stale {
		return k, nil
	}
	return read, err
}

// read asks a provider what it offers, and remembers it.
func (c *Client) read(ctx context.Context, issuer string) (*known, error) {
	// Its keys are asked for later on, by this client too.
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, c.http()), issuer)
	if err != nil {
		return nil, c.away(issuer, err)
	}
	k := &known{provider: provider, since: c.now()}
	var keys struct {
		URL string `json:"jwks_uri"`
	}
	if err := errors.Join(provider.Claims(&k.endpoints), provider.Claims(&keys)); err != nil {
		return nil, c.away(issuer, err)
	}
	endpoint := provider.Endpoint()
	for _, text := range []string{endpoint.AuthURL, endpoint.TokenURL, keys.URL, cmp.Or(provider.UserInfoEndpoint(), endpoint.TokenURL)} {
		u, err := url.Parse(text)
		if err != nil || c.CheckIssuer((&url.URL{Scheme: u.Scheme, Host: u.Host}).String()) != "" {
			return nil, c.away(issuer, fmt.Errorf("its configuration names the address %.100q", text))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) > 10*loom.MaxIdentityProviders {
		clear(c.known) // of providers that are gone
	}
	c.known[issuer] = k
	return k, nil
}

// http makes a client that looks at the address of each connection, follows no redirect, uses no
// proxy, which would connect in its place, and reads little.
func (c *Client) http() *http.Client {
	dialer := &net.Dialer{Timeout: timeout, ControlContext: c.opts.Reach.Control}
	return &http.Client{
		Timeout: timeout,
		Transport: &bounded{last: map[string]time.Time{}, now: c.now, next: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: timeout, MaxResponseHeaderBytes: maxAnswer, ForceAttemptHTTP2: true,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded reads no long answers, and gets the same address once a minute: package oidc reads the
// keys of a provider again for each that it does not know, and anybody can make up one.
type bounded struct {
	next http.RoundTripper
	now  func() time.Time
	mu   sync.Mutex
	last map[string]time.Time
}

// RoundTrip calls a provider.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		b.mu.Lock()
		last, asked := b.last[r.URL.String()]
		if asked && b.now().Sub(last) < keysAgain {
			b.mu.Unlock()
			return nil, errors.New("this was read less than a minute ago")
		}
		b.last[r.URL.String()] = b.now()
		b.mu.Unlock()
	}
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		b.mu.Lock()
		delete(b.last, r.URL.String())
		b.mu.Unlock()
		return nil, err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{http.MaxBytesReader(nil, answer.Body, maxAnswer), answer.Body}
	return answer, nil
}

// refused is the error for what came back and is not as it must be. People get one sentence, the
// audit the cause.
func refused(cause error) error {
	return &loom.Error{Kind: loom.Invalid, Message: "The answer of the identity provider could not be verified. Sign in again.", Err: cause}
}

// away is the error for a provider that does not answer as it should.
func (c *Client) away(issuer string, cause error) error {
	why := "does not answer as an OpenID Connect provider should"
	var refused *loom.RefusedAddress
	var mismatch *oidc.IssuerMismatchError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(cause, &refused):
		why = "is at an address that Loom does not call; whoever runs Loom can name its network in LOOM_IDENTITY_NETWORKS"
	case errors.As(cause, &mismatch):
		why = fmt.Sprintf("calls itself %.200s; enter that as its issuer", mismatch.Discovered)
	case errors.As(cause, &dns):
		why = "has a host name that could not be resolved"
	case errors.As(cause, &timeout) && timeout.Timeout():
		why = "did not answer in time"
	}
	return &loom.Error{Kind: loom.Unavailable, Message: fmt.Sprintf("The identity provider %s %s.", issuer, why), Err: cause}
}
