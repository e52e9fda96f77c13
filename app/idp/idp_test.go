package idp_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"loom/app/idp"
	"loom/app/loom"
	"loom/app/testkit/idptest"
)

const back = "http://loom.example/login/x/callback"

func client() *idp.Client { return idp.New(idp.Options{Reach: loom.Anywhere(), PlainHTTP: true}) }

func registration(p *idptest.Provider) idp.Registration {
	return idp.Registration{Issuer: p.Issuer, ClientID: idptest.ClientID, Secret: loom.NewSecret(idptest.Secret), RedirectURL: back, SubjectClaim: "sub"}
}

// visit signs in at a provider and returns what it sends the person back with.
func visit(t *testing.T, c *idp.Client, r idp.Registration, s idp.Sent) url.Values {
	t.Helper()
	at, err := c.SignInURL(context.Background(), r, s)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	u, err := answer.Location()
	if err != nil {
		t.Fatalf("%s: %v", answer.Status, err)
	}
	if got := u.Query().Get("state"); got != s.State {
		t.Fatalf("state %q, sent %q", got, s.State)
	}
	return u.Query()
}

func exchange(t *testing.T, c *idp.Client, r idp.Registration, s idp.Sent) (idp.Person, error) {
	t.Helper()
	q := visit(t, c, r, s)
	return c.Exchange(context.Background(), r, s, idp.Answer{Code: q.Get("code"), Issuer: q.Get("iss")})
}

func TestExchange(t *testing.T) {
	t.Parallel()
	p, c := idptest.Start(t), client()
	p.Become(map[string]any{"sub": "eve-1", "preferred_username": "eve", "groups": []string{"dev"}, "sid": "s1"})
	person, err := exchange(t, c, registration(p), idp.NewSent())
	if err != nil {
		t.Fatal(err)
	}
	if person.Subject != "eve-1" || person.Session != "s1" || person.Token.IsZero() || person.Claims.Text("preferred_username") != "eve" {
		t.Errorf("got %+v", person)
	}
	for _, name := range []string{"nonce", "exp", "iss", "sid"} {
		if _, there := person.Claims[name]; there {
			t.Errorf("the claim %s, which is about the token, was kept", name)
		}
	}
}

// TestClaimsOnRequest: claims come from the provider's answer too, who somebody is does not.
func TestClaimsOnRequest(t *testing.T) {
	t.Parallel()
	p, c := idptest.Start(t), client()
	p.Become(map[string]any{"sub": "eve-1", "oid": "o1", "preferred_username": "eve", "groups": []string{"dev"}, "sid": "s1"})
	p.Thin = []string{"groups", "oid"}
	p.Info = func(_ http.ResponseWriter, claims map[string]any) {
		claims["preferred_username"], claims["sid"], claims["nonce"] = "mallory", "s2", "x"
	}
	person, err := exchange(t, c, registration(p), idp.NewSent())
	if err != nil {
		t.Fatal(err)
	}
	if groups := person.Claims.Values("groups"); len(groups) != 1 || groups[0] != "dev" {
		t.Errorf("groups %v", groups)
	}
	if person.Subject != "eve-1" || person.Session != "s1" || person.Claims.Text("preferred_username") != "eve" || person.Claims["nonce"] != nil {
		t.Errorf("got %+v", person)
	}
	r := registration(p)
	r.SubjectClaim = "oid"
	if person, err := exchange(t, c, r, idp.NewSent()); loom.AsError(err).Kind != loom.Invalid {
		t.Errorf("the token does not say who it is: %+v, %v", person, err)
	}
	for name, wrong := range map[string]struct {
		info func(w http.ResponseWriter, claims map[string]any)
		kind loom.Kind
	}{
		"of another":      {func(_ http.ResponseWriter, claims map[string]any) { claims["sub"] = "mallory-1" }, loom.Invalid},
		"of nobody":       {func(_ http.ResponseWriter, claims map[string]any) { delete(claims, "sub") }, loom.Invalid},
		"refused":         {func(w http.ResponseWriter, _ map[string]any) { w.WriteHeader(http.StatusForbidden) }, loom.Unavailable},
		"of 1 MB":         {func(_ http.ResponseWriter, claims map[string]any) { claims["x"] = strings.Repeat("x", 1<<20) }, loom.Unavailable},
		"of 100 kB":       {func(_ http.ResponseWriter, claims map[string]any) { claims["x"] = strings.Repeat("x", 100<<10) }, loom.Invalid},
		"that is no JSON": {func(w http.ResponseWriter, _ map[string]any) { w.Write([]byte("<html>")) }, loom.Unavailable},
	} {
		p.Info = wrong.info
		if person, err := exchange(t, c, registration(p), idp.NewSent()); loom.AsError(err).Kind != wrong.kind {
			t.Errorf("information %s: %+v, %v", name, person, err)
		}
	}
}

// Whatever is wrong with a token, nobody signs in by it.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	unsigned := func(claims map[string]any) string {
		head, body := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)), must(json.Marshal(claims))
		return head + "." + base64.RawURLEncoding.EncodeToString(body) + "."
	}
	groups := make([]string, 5000)
	for i := range groups {
		groups[i] = strings.Repeat("g", 20)
	}
	set := func(name string, value any) func(p *idptest.Provider) {
		return func(p *idptest.Provider) { p.Twist = func(claims map[string]any) { claims[name] = value } }
	}
	for name, twist := range map[string]func(p *idptest.Provider){
		"unsigned": func(p *idptest.Provider) { p.SignAs = unsigned },
		"signed with the client's secret": func(p *idptest.Provider) {
			p.SignAs = func(claims map[string]any) string {
				return p.SignWith([]byte(strings.Repeat(idptest.Secret, 4)), "HS256", claims)
			}
		},
		"signed by a stranger": func(p *idptest.Provider) {
			p.SignAs = func(claims map[string]any) string { return p.SignWith(stranger, "RS256", claims) }
		},
		"none at all":             func(p *idptest.Provider) { p.SignAs = func(map[string]any) string { return "" } },
		"for another client":      set("aud", "other"),
		"for several clients":     set("aud", []string{idptest.ClientID, "other"}),
		"made for another client": set("azp", "other"),
		"of another issuer":       set("iss", "https://other.example"),
		"of another nonce":        set("nonce", "other"),
		"without a nonce":         func(p *idptest.Provider) { p.Twist = func(claims map[string]any) { delete(claims, "nonce") } },
		"expired":                 set("exp", time.Now().Add(-2*time.Minute).Unix()),
		"of the future":           set("iat", time.Now().Add(10*time.Minute).Unix()),
		"without a subject":       func(p *idptest.Provider) { p.Twist = func(claims map[string]any) { delete(claims, "sub") } },
		"with a number":           set("sub", 7),
		"with 5,000 groups":       set("groups", groups),
		"of 1 MB":                 set("x", strings.Repeat("x", 1<<20)),
		"answer of another": func(p *idptest.Provider) {
			p.Answer = func(back url.Values) { back.Set("iss", "https://other.example") }
		},
		"answer of nobody": func(p *idptest.Provider) { p.Answer = func(back url.Values) { back.Del("iss") } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, c := idptest.Start(t), client()
			p.Become(map[string]any{"sub": "eve-1"})
			twist(p)
			if person, err := exchange(t, c, registration(p), idp.NewSent()); err == nil {
				t.Errorf("signed in as %+v", person)
			}
		})
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestCodesWorkOnceAndForTheirBrowser(t *testing.T) {
	t.Parallel()
	p, c, s := idptest.Start(t), client(), idp.NewSent()
	r := registration(p)
	p.Become(map[string]any{"sub": "eve-1"})
	q := visit(t, c, r, s)
	answer := idp.Answer{Code: q.Get("code"), Issuer: q.Get("iss")}
	if _, err := c.Exchange(context.Background(), r, idp.NewSent(), answer); loom.AsError(err).Kind != loom.Invalid {
		t.Errorf("the verifier of another browser: %v", err)
	}
	if _, err := c.Exchange(context.Background(), r, s, answer); err != nil {
		t.Errorf("its own browser: %v", err)
	}
	if _, err := c.Exchange(context.Background(), r, s, answer); loom.AsError(err).Kind != loom.Invalid {
		t.Errorf("the code once more: %v", err)
	}
}

func TestExpiryHasALeeway(t *testing.T) {
	t.Parallel()
	p, c := idptest.Start(t), client()
	p.Become(map[string]any{"sub": "eve-1"})
	p.Twist = func(claims map[string]any) { claims["exp"] = time.Now().Add(-30 * time.Second).Unix() }
	if _, err := exchange(t, c, registration(p), idp.NewSent()); err != nil {
		t.Error(err)
	}
}

func TestLogoutTokens(t *testing.T) {
	t.Parallel()
	p, c := idptest.Start(t), client()
	r := registration(p)
	good, err := c.VerifyLogout(context.Background(), r, p.Logout("1", map[string]any{"sub": "eve-1", "sid": "s1"}))
	if err != nil || good.Session != "s1" || good.Subject != "eve-1" || good.ID != "1" || time.Until(good.Ends) < 5*time.Minute {
		t.Errorf("got %+v, %v", good, err)
	}
	// The drafts of the specification knew no exp, and providers still send tokens without.
	draft := func(issued time.Duration) string {
		return p.Sign(map[string]any{"iss": p.Issuer, "aud": idptest.ClientID, "sub": "eve-1", "jti": "2", "iat": time.Now().Add(issued).Unix(),
			"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}})
	}
	old, err := c.VerifyLogout(context.Background(), r, draft(0))
	if err != nil || old.Subject != "eve-1" || old.ID != "2" || time.Until(old.Ends) < 2*time.Minute {
		t.Errorf("got %+v, %v", old, err)
	}
	for name, raw := range map[string]string{
		"without an end, old": draft(-10 * time.Minute),
		"from the future":     draft(10 * time.Minute),
		"without times":       draft(-time.Since(time.Unix(0, 0))),
		"of no event":         p.Logout("1", map[string]any{"sub": "eve-1", "events": map[string]any{"other": map[string]any{}}}),
		"an ID token":         p.Sign(map[string]any{"iss": p.Issuer, "aud": idptest.ClientID, "sub": "eve-1", "exp": time.Now().Add(time.Minute).Unix(), "jti": "1"}),
		"with a nonce":        p.Logout("1", map[string]any{"sub": "eve-1", "nonce": "x"}),
		"of another client":   p.Logout("1", map[string]any{"sub": "eve-1", "aud": "other"}),
		"of another issuer":   p.Logout("1", map[string]any{"sub": "eve-1", "iss": "https://other.example"}),
		"that is over":        p.Logout("1", map[string]any{"sub": "eve-1", "exp": time.Now().Add(-time.Hour).Unix()}),
		"that is for ever":    p.Logout("1", map[string]any{"sub": "eve-1", "exp": time.Now().Add(100 * time.Hour).Unix()}),
		"that names nobody":   p.Logout("1", nil),
		"that has no id":      p.Logout("", map[string]any{"sub": "eve-1"}),
		"that is no token":    "x",
		"that is not its own": "",
	} {
		if _, err := c.VerifyLogout(context.Background(), r, raw); err == nil {
			t.Errorf("a token %s was taken", name)
		}
	}
}

// Tokens of unknown keys do not make Loom ask for keys again and again.
func TestKeysAreAskedForOnceAMinute(t *testing.T) {
	t.Parallel()
	p, c := idptest.Start(t), client()
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		raw := p.SignWith(stranger, "RS256", map[string]any{"iss": p.Issuer, "aud": idptest.ClientID})
		if _, err := c.VerifyLogout(context.Background(), registration(p), raw); err == nil {
			t.Fatal("the token of a stranger was taken")
		}
	}
	if n := p.Asked("/keys"); n != 1 {
		t.Errorf("the keys were asked for %d times", n)
	}
	if n := p.Asked("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("the configuration was asked for %d times", n)
	}
}

func TestWhereProvidersMayBe(t *testing.T) {
	t.Parallel()
	strict := idp.New(idp.Options{Reach: loom.Reach{}})
	for _, issuer := range []string{"http://id.example", "https://id.example?x=1", "https://eve:pw@id.example", "id.example", "https://login.example/{tenantid}/v2.0", "https://", "ftp://id.example", ""} {
		if _, err := strict.Check(context.Background(), issuer); loom.AsError(err).Kind != loom.Invalid {
			t.Errorf("issuer %q: %v", issuer, err)
		}
	}
	for _, issuer := range []string{"https://169.254.169.254", "https://127.0.0.1:1", "https://10.0.0.1", "https://[::1]"} {
		_, err := strict.Check(context.Background(), issuer)
		if e := loom.AsError(err); e.Kind != loom.Unavailable || !strings.Contains(e.Message, "LOOM_IDENTITY_NETWORKS") {
			t.Errorf("issuer %q: %v", issuer, err)
		}
	}
}

// Redirects lead nowhere, and a configuration that lies is refused.
func TestLyingConfigurations(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		},
		"no JSON":        func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
		"another issuer": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"issuer":"https://other.example"}`)) },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(`{"issuer":"` + strings.Repeat("x", 1<<20)))
		},
		"information nowhere": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			at := `"http://` + r.Host
			w.Write([]byte(`{"issuer":` + at + `","authorization_endpoint":` + at + `/a","token_endpoint":` + at + `/t","jwks_uri":` + at + `/k","userinfo_endpoint":"file:///etc/passwd"}`))
		},
		"no addresses": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"issuer":"http://` + r.Host + `","authorization_endpoint":"javascript:alert(1)","token_endpoint":"/x","jwks_uri":"file:///etc/passwd"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(answer))
			t.Cleanup(server.Close)
			if _, err := client().Check(context.Background(), server.URL); loom.AsError(err).Kind != loom.Unavailable {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A provider that is away is believed for a day, and then no longer.
func TestAwayProvider(t *testing.T) {
	t.Parallel()
	p, c := idptest.Start(t), client()
	r := registration(p)
	at := time.Now()
	idp.SetClock(c, func() time.Time { return at })
	if _, err := c.SignInURL(context.Background(), r, idp.NewSent()); err != nil {
		t.Fatal(err)
	}
	p.Stop()
	at = at.Add(23 * time.Hour)
	if _, err := c.SignInURL(context.Background(), r, idp.NewSent()); err != nil {
		t.Errorf("after 23 hours: %v", err)
	}
	at = at.Add(2 * time.Hour)
	if _, err := c.SignInURL(context.Background(), r, idp.NewSent()); loom.AsError(err).Kind != loom.Unavailable {
		t.Errorf("after 25 hours: %v", err)
	}
}

func TestSignOutURL(t *testing.T) {
	t.Parallel()
	p, c := idptest.Start(t), client()
	at, err := c.SignOutURL(context.Background(), registration(p), loom.NewSecret("token"), "http://loom.example/login")
	if err != nil {
		t.Fatal(err)
	}
	u := must(url.Parse(at))
	if q := u.Query(); u.Path != "/end" || q.Get("id_token_hint") != "token" || q.Get("post_logout_redirect_uri") != "http://loom.example/login" || q.Get("client_id") != idptest.ClientID {
		t.Errorf("got %s", at)
	}
}
