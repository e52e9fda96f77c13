// Package idptest is an identity provider for tests: it signs people in without asking, as whom
// the test says, and can be made to lie.
//
// It is a provider by OpenID Connect over HTTP on loopback, with codes, PKCE and signed tokens.
package idptest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// What Loom is registered as.
const (
	ClientID = "loom"
	Secret   = "secret-of-the-client"
)

const keyID = "first"

// Provider is a running identity provider. Its fields are set before people sign in.
type Provider struct {
	Issuer string
	// Twist, if set, changes the claims of each ID token before it is signed.
	Twist func(claims map[string]any)
	// SignAs, if set, makes the token in place of a signature.
	SignAs func(claims map[string]any) string
	// Thin are claims that it tells on request and leaves out of ID tokens.
	Thin []string
	// Info, if set, changes the claims that it tells on request, or answers.
	Info func(w http.ResponseWriter, claims map[string]any)
	// Answer, if set, changes the address that people are sent back to.
	Answer func(back url.Values)

	key    *rsa.PrivateKey
	server *httptest.Server
	mu     sync.Mutex
	person map[string]any
	codes  map[string]code
	// infos are claims by access token.
	infos map[string]map[string]any
	made  int
	// asked counts requests by path.
	asked map[string]int
}

type code struct {
	nonce, challenge, redirect string
	claims                     map[string]any
}

var key = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// Start begins to serve a provider until the test ends.
func Start(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{key: key(), codes: map[string]code{}, infos: map[string]map[string]any{}, asked: map[string]int{}}
	configuration := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: p.key.Public(), KeyID: keyID, Algorithm: oidc.RS256}}}
	mux := http.NewServeMux()
	mux.Handle("GET /keys", configuration)
	mux.HandleFunc("GET /.well-known/openid-configuration", p.configuration)
	mux.HandleFunc("GET /auth", p.signIn)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /userinfo", p.info)
	mux.HandleFunc("GET /end", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.FormValue("post_logout_redirect_uri"), http.StatusSeeOther)
	})
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked[r.URL.Path]++
		p.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.Issuer = p.server.URL
	configuration.SetIssuer(p.Issuer)
	return p
}

// Stop makes it answer no longer.
func (p *Provider) Stop() { p.server.Close() }

// Asked returns how often a path was asked for.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

// Become says who signs in from now on: claims with a sub.
func (p *Provider) Become(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person = maps.Clone(claims)
}

func (p *Provider) configuration(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"issuer": p.Issuer, "authorization_endpoint": p.Issuer + "/auth", "token_endpoint": p.Issuer + "/token", "jwks_uri": p.Issuer + "/keys",
		"userinfo_endpoint": p.Issuer + "/userinfo", "end_session_endpoint": p.Issuer + "/end", "authorization_response_iss_parameter_supported": true, "backchannel_logout_supported": true,
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}, "scopes_supported": []string{"openid", "groups"},
	})
}

func (p *Provider) signIn(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" || q.Get("nonce") == "" {
		http.Error(w, "this is no request to sign in", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	id := fmt.Sprintf("code-%d", p.made)
	p.codes[id] = code{q.Get("nonce"), q.Get("code_challenge"), q.Get("redirect_uri"), maps.Clone(p.person)}
	back := url.Values{"code": {id}, "state": {q.Get("state")}, "iss": {p.Issuer}}
	if p.Answer != nil {
		p.Answer(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, ok := r.BasicAuth()
	c, there := p.codes[r.FormValue("code")]
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	w.Header().Set("Content-Type", "application/json")
	if !ok || id != ClientID || secret != Secret || !there || c.redirect != r.FormValue("redirect_uri") || base64.RawURLEncoding.EncodeToString(sum[:]) != c.challenge {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant","error_description":"the code is not valid"}`)
		return
	}
	delete(p.codes, r.FormValue("code"))
	p.infos["access-"+r.FormValue("code")] = c.claims
	claims := p.claims(c.claims)
	for _, name := range p.Thin {
		delete(claims, name)
	}
	claims["nonce"] = c.nonce
	if p.Twist != nil {
		p.Twist(claims)
	}
	sign := p.Sign
	if p.SignAs != nil {
		sign = p.SignAs
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "access-" + r.FormValue("code"), "token_type": "Bearer", "id_token": sign(claims)})
}

// info tells the claims of a person.
func (p *Provider) info(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	claims, ok := p.infos[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	claims = maps.Clone(claims)
	p.mu.Unlock()
	if !ok {
		http.Error(w, "this is no access token", http.StatusUnauthorized)
		return
	}
	if p.Info != nil {
		p.Info(w, claims)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(claims)
}

// claims are those of a token.
func (p *Provider) claims(own map[string]any) map[string]any {
	all := map[string]any{"iss": p.Issuer, "aud": ClientID, "iat": time.Now().Unix(), "exp": time.Now().Add(5 * time.Minute).Unix()}
	maps.Copy(all, own)
	return all
}

// Sign makes a token of claims with the provider's key.
func (p *Provider) Sign(claims map[string]any) string { return p.SignWith(p.key, oidc.RS256, claims) }

// SignWith makes a token of claims with another key.
func (p *Provider) SignWith(key crypto.PrivateKey, algorithm string, claims map[string]any) string {
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return oidctest.SignIDToken(key, keyID, algorithm, string(text))
}

// Logout makes a token by which the provider ends a sign-in: of a subject, of a session or both.
func (p *Provider) Logout(id string, more map[string]any) string {
	claims := p.claims(map[string]any{"jti": id, "events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}})
	maps.Copy(claims, more)
	return p.Sign(claims)
}
