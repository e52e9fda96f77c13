package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
)

// dummyKey is what the predecessor's scripts send when nobody set a key.
const dummyKey = "1234567890abcdef"

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	who := func(want string, headers ...string) {
		t.Helper()
		a := w.send(get, "/v2/whoami", "", headers...).want(200).object()
		if got := a["tenant"].(string) + "/" + a["user"].(map[string]any)["id"].(string); got != want {
			t.Errorf("%v is %s, want %s", headers, got, want)
		}
	}
	who("acme/ana", "Authorization", "Bearer "+w.user)
	who("acme/ana", "Authorization", "bearer   "+w.user)
	who("acme/ana", "Authorization", "Bearer: "+w.user) // the Java client
	who("acme/ana", "Coopr-ApiKey", w.user)
	who("acme/ana", "Coopr-ApiKey", w.user, "Authorization", "Bearer "+w.user)
	who("acme/ana", "Coopr-ApiKey", dummyKey, "Authorization", "Bearer "+w.user)
	who("acme/ana", "Coopr-ApiKey", w.user, "Coopr-UserID", "ana", "Coopr-TenantID", "acme")
	who("acme/ana", "Coopr-ApiKey", w.admin, "Coopr-UserID", "ana")
	who("other/admin", "Coopr-ApiKey", w.super, "Coopr-UserID", "admin", "Coopr-TenantID", "other")

	for _, c := range []struct {
		status  int
		text    string
		headers []string
	}{
		{401, "Send an API token", nil},
		{401, "no API token of Loom", []string{"Coopr-ApiKey", dummyKey}},
		{401, "no API token of Loom", []string{"Authorization", "Bearer " + dummyKey}},
		{401, "LOOM_TRUSTED_HEADER_NETWORKS", []string{"Coopr-ApiKey", dummyKey, "Coopr-UserID", "ana", "Coopr-TenantID", "acme"}},
		{401, "not valid", []string{"Authorization", "Bearer loom_nonsense"}},
		{401, "Only bearer tokens", []string{"Authorization", "Basic YWRtaW46YWRtaW4="}},
		{401, "Only bearer tokens", []string{"Authorization", "Bearer"}},
		{400, "different tokens", []string{"Authorization", "Bearer " + w.user, "Coopr-ApiKey", w.admin}},
		{400, "both a session cookie", []string{"Authorization", "Bearer " + w.user, "Cookie", "loom-dev=x"}},
		{403, "only an administrator", []string{"Coopr-ApiKey", w.user, "Coopr-UserID", "ben"}},
		{403, "only a superadmin", []string{"Coopr-ApiKey", w.admin, "Coopr-TenantID", "other"}},
		{403, "only a superadmin", []string{"Coopr-ApiKey", w.admin, "Coopr-TenantID", "nowhere"}},
		{404, "no tenant “nowhere”", []string{"Coopr-ApiKey", w.super, "Coopr-TenantID", "nowhere"}},
		// Identity headers alone are nothing worth outside of trusted networks.
		{401, "LOOM_TRUSTED_HEADER_NETWORKS", []string{"Coopr-UserID", "admin", "Coopr-TenantID", "superadmin"}},
		{401, "Send an API token", []string{"Coopr-UserID", "admin"}},
		{401, "not signed in", []string{"Cookie", "loom-dev=x"}},
	} {
		w.send(get, "/v2/whoami", "", c.headers...).fails(c.status, "", c.text)
	}

	expired := w.token("acme", "ana", loom.ScopeRead)
	w.call(expired, get, "/v2/clusters", "").want(200)
	w.exec(`UPDATE tokens SET expires_at = now() - interval '1 second' WHERE scopes = '{read}'`)
	w.call(expired, get, "/v2/clusters", "").fails(401, "", "expired")

	made := w.call(w.user, post, "/v2/tokens", `{"name":"ci","scopes":["read"],"expires":`+millis(time.Now().Add(time.Hour))+`}`).want(200).object()
	secret := made["secret"].(string)
	if !strings.HasPrefix(secret, "loom_") || made["prefix"] != secret[:9] {
		t.Errorf("made %v", made)
	}
	w.call(secret, get, "/v2/clusters", "").want(200)
	all := w.call(w.user, get, "/v2/tokens", "").want(200)
	if strings.Contains(all.body, secret) || len(all.array()) != 2 {
		t.Errorf("tokens: %s", all.body)
	}
	w.call(w.second, del, "/v2/tokens/"+made["id"].(string), "").want(404)
	w.call(w.user, del, "/v2/tokens/"+made["id"].(string), "").want(200)
	w.call(secret, get, "/v2/clusters", "").fails(401, "", "revoked")
	w.call(w.user, del, "/v2/tokens/"+made["id"].(string), "").want(404)
	w.call(w.user, del, "/v2/tokens/nonsense", "").want(404)
	for body, field := range map[string]string{
		`{"scopes":["read"]}`:                             "name",
		`{"name":"x"}`:                                    "scopes",
		`{"name":"x","scopes":["all"]}`:                   "scopes[0]",
		`{"name":"x","scopes":["catalog:write"]}`:         "scopes[0]",
		`{"name":"x","scopes":["read"],"expires":1}`:      "expires",
		`{"name":"x","scopes":"read"}`:                    "scopes",
		`{"name":"x","scopes":["read"],"expires":"soon"}`: "expires",
	} {
		w.call(w.user, post, "/v2/tokens", body).fails(400, field, "")
	}
}

func millis(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }

// TestScopes looks at rights that belong together; TestScopeOfEveryRoute walks all
// routes.
func TestScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.admin, "scoped")
	reader := w.token("acme", "admin", loom.ScopeRead)
	w.call(reader, post, "/v2/previews", `{"kind":"create","request":{"name":"p","clusterTemplate":"site","numMachines":2}}`).want(200)
	// The scopes of writing are apart from each other.
	clusters, catalog := w.token("acme", "admin", loom.ScopeClusterWrite), w.token("acme", "admin", loom.ScopeCatalogWrite)
	w.call(clusters, put, "/v2/hardwaretypes/small", `{"name":"small"}`).fails(403, "", "catalog:write")
	w.call(catalog, put, "/v2/hardwaretypes/small", `{"name":"small"}`).want(200)
	w.call(catalog, post, "/v2/clusters", `{"name":"x","clusterTemplate":"site","numMachines":2}`).fails(403, "", "clusters:write")
	w.call(clusters, del, "/v2/clusters/"+id, "").want(409)
	// A user's admin token is no administrator.
	w.call(w.user, put, "/v2/hardwaretypes/small", `nonsense`).fails(403, "", "administrator")
	w.call(w.admin, put, "/v2/plugins/providertypes/x", `nonsense`).fails(403, "", "superadmin")
}

func TestTrustedNetworks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(d *Deps) { d.TrustedNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	as := func(user, tenant string, more ...string) []string {
		return append([]string{"Coopr-UserID", user, "Coopr-TenantID", tenant}, more...)
	}
	w.send(get, "/v2/clusters", "", as("ana", "acme")...).want(200)
	w.send(get, "/v2/clusters", "", as("ana", "acme", "Coopr-ApiKey", dummyKey)...).want(200)
	w.send(get, "/v2/clusters", "", "Coopr-TenantID", "acme").fails(401, "", headerUser)
	w.send(get, "/v2/clusters", "", "Coopr-UserID", "ana").fails(401, "", headerTenant)
	w.send(get, "/v2/clusters", "", as("ana", "nowhere")...).fails(404, "", "nowhere")
	// A token counts for what it is, also here.
	w.send(get, "/v2/clusters", "", as("ana", "acme", "Coopr-ApiKey", "loom_bad")...).want(401)

	a := w.send(get, "/v2/whoami", "", as("newcomer", "acme")...).want(200).object()
	if a["via"] != "headers" || a["user"].(map[string]any)["role"] != "user" {
		t.Errorf("a newcomer is %v", a)
	}
	a = w.send(get, "/v2/whoami", "", as("admin", "superadmin")...).want(200).object()
	if a["user"].(map[string]any)["role"] != "superadmin" {
		t.Errorf("the superadmin is %v", a)
	}
	w.send(get, "/v2/whoami", "", as("a/b", "acme")...).fails(400, "id", "slashes")
	disabled := true
	tenant, err := w.deps.Accounts.Tenant(t.Context(), superActor, "acme")
	w.must(err)
	_, err = w.deps.Accounts.UpdateUser(t.Context(), loom.SystemActor(tenant.ID, "acme"), "newcomer", account.UserChange{Disabled: &disabled})
	w.must(err)
	w.send(get, "/v2/whoami", "", as("newcomer", "acme")...).fails(401, "", "disabled")

	w.api.TrustedNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	w.send(get, "/v2/clusters", "", as("ana", "acme")...).want(401)
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.deps.Accounts.SetPassword(t.Context(), "acme", "ana", loom.NewSecret("correct horse battery"))
	w.must(err)
	_, cookie, _, err := w.deps.Accounts.SignIn(t.Context(), account.SignInInput{Tenant: "acme", User: "ana", Password: loom.NewSecret("correct horse battery")})
	w.must(err)
	sent := (&http.Cookie{Name: "loom-dev", Value: cookie.Reveal()}).String()
	a := w.send(get, "/v2/whoami", "", "Cookie", sent).want(200).object()
	if a["via"] != "session" || a["tenant"] != "acme" {
		t.Errorf("a session is %v", a)
	}
	body := `{"name":"x","clusterTemplate":"site","numMachines":2}`
	w.send(post, "/v2/clusters", body, "Cookie", sent, "Sec-Fetch-Site", "cross-site").fails(403, "", "another site")
	w.send(post, "/v2/clusters", body, "Cookie", sent, "Sec-Fetch-Site", "same-origin").want(200)
}

// TestNamesOfOthersGiveNoRights: a name that somebody else gave to Loom's address, as a page
// does that rebinds its name, is neither a user by headers nor a collector of metrics.
func TestNamesOfOthersGiveNoRights(t *testing.T) {
	t.Parallel()
	here := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w := newWorld(t, someMetrics, func(d *Deps) {
		d.TrustedNetworks, d.MetricsNetworks, d.Hosts = here, here, httpx.OwnHosts("https://loom.example")
	})
	as := []string{"Coopr-UserID", "admin", "Coopr-TenantID", "superadmin"}
	for _, own := range [][]string{nil, {"Host", "localhost"}, {"Host", "loom.example"}, {"Sec-Fetch-Site", "same-origin", "Origin", w.server.URL}} {
		w.send(get, "/v2/whoami", "", slices.Concat(as, own)...).want(200)
		w.send(get, "/metrics", "", own...).want(200)
	}
	const hardware = `{"name":"front"}`
	front := slices.Concat(as, []string{"Origin", "https://front.example", "X-Forwarded-Host", "front.example"}) // behind a proxy that rewrites Host
	w.send(get, "/v2/whoami", "", front...).want(200)
	w.send(put, "/v2/hardwaretypes/front", hardware, front...).want(200)
	for _, evil := range [][]string{
		{"Origin", "http://rebind.evil.example", "X-Forwarded-Host", "rebind.evil.example"},
		{"X-Forwarded-Host", "rebind.evil.example"},
		{"Origin", "https://evil.example", "X-Forwarded-Host", "front.example"},
		{"Origin", "https://front.example", "X-Forwarded-Host", "front.example", "Sec-Fetch-Site", "cross-site"},
		{"Origin", "https://front.example", "X-Forwarded-Host", "front.example", "Host", "rebind.evil.example"},
	} {
		if a := w.send(put, "/v2/hardwaretypes/front", hardware, slices.Concat(as, evil)...); a.status != 401 && a.status != 403 {
			t.Errorf("%v: %d %s", evil, a.status, a.body)
		}
		w.send(get, "/v2/whoami", "", slices.Concat(as, evil)...).fails(401, "", "by an IP address")
	}
	for _, foreign := range [][]string{{"Host", "rebind.evil.example:8080"}, {"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.example"}, {"Origin", "null"}} {
		w.send(get, "/v2/whoami", "", slices.Concat(as, foreign)...).fails(401, "", "by an IP address")
		w.send(get, "/metrics", "", foreign...).fails(401, "", "token")
		w.call(w.super, get, "/v2/whoami", "", foreign...).want(200)
	}
}
