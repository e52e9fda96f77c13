package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/config"
	"loom/app/idp"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
	"loom/app/testkit/idptest"
	"loom/app/wiring"
	"loom/jobs/work"
	"loom/provisioner/automator"
	"loom/provisioner/provider"
)

// TestNoSecretComesToLight plants a secret in every place that takes one, works
// with all of them, and then looks for them in every row of the database, in
// every answer and in the log.
func TestNoSecretComesToLight(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	c.plant()
	ofAPI, ofPages := c.listen("/v2/events?topics=user:me,tenant,clusters", "Authorization", "Bearer "+c.token), c.listen("/events?topics=user:me,tenant,clusters", "Cookie", "loom-dev="+c.cookie)
	id := c.cluster()
	c.refused()
	c.walk(id)
	pages := map[string]bool{}
	c.walkPages("with a cluster that runs", id, pages)
	c.search("with a cluster that runs")
	c.reveal(id)
	ofCluster := c.listen("/events?topics=cluster:"+id, "Cookie", "loom-dev="+c.cookie)
	c.call("DELETE", "/v2/clusters/"+id, `{"providerFields":{"user_pin":"`+c.text("cluster field at the end")+`"}}`)
	c.until(id, "terminated")
	c.walk(id)
	c.walkPages("with a cluster that is gone", id, pages)
	c.allPages(pages)
	for _, stop := range []func(){ofAPI, ofPages, ofCluster} {
		stop()
	}
	c.search("with a cluster that is gone")
	c.chain()
	var left int
	if err := c.db.Get(&left, `SELECT count(*) FROM secrets WHERE entity LIKE 'cluster:%' OR entity LIKE 'node:%'`); err != nil || left != 0 {
		t.Errorf("%d secrets of the deleted cluster are left, %v", left, err)
	}
}

// openly is the value of a field that is no secret.
const openly = "zone-that-all-may-see"

// TestDatabasePasswordStaysOutOfErrors: whatever is wrong with the URL.
func TestDatabasePasswordStaysOutOfErrors(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://loom:canary-9%zz@localhost/loom", "postgres://loom:canary-9/x@localhost/loom", "postgres://loom:canary-9#x@localhost/loom", "postgres://loom:canary-9@local host/loom", "postgres://loom:canary-9@localhost:port/loom",
		"postgres://loom:canary-9@127.0.0.1:1/loom?sslmode=disable", "host=/nowhere user=loom password=canary-9 dbname=loom",
		"host=/nowhere password='canary-9", "postgres://loom:canary-9@127.0.0.1:1/loom?sslmode=never",
	} {
		for _, args := range [][]string{{"migrate"}, {"keys", "list"}, {"config"}} {
			var out strings.Builder
			code := run(args, []string{"LOOM_DATA_DIR=" + t.TempDir(), "LOOM_DATABASE_URL=" + dsn}, nil, &out, &out)
			if (code == 0) != (args[0] == "config") || strings.Contains(out.String(), "canary-9") {
				t.Errorf("loom %s with %s: exit status %d: %s", strings.Join(args, " "), dsn, code, out.String())
			}
		}
	}
}

// canary is an instance in this process, and what was planted in it.
type canary struct {
	t   *testing.T
	db  *testkit.Database
	sys *wiring.System
	url string
	// token is the one that requests are made with; cookie is of a session.
	token, cookie string

	log *keep
	// answers are what was answered, by request.
	mu      sync.Mutex
	answers map[string]string
	// secrets by what they are.
	secrets map[string]string
}

// keep is a log that can be searched.
type keep struct {
	mu   sync.Mutex
	text strings.Builder
}

func (k *keep) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(p)
}

func (k *keep) read() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

// text makes a secret that looks like nothing else, with characters that are
// written differently in JSON, in URLs and in base64.
func (c *canary) text(what string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.secrets[what] == "" {
		c.secrets[what] = fmt.Sprintf("canary/%02d+%s", len(c.secrets), strings.ReplaceAll(secret.GenerateKey()[:20], "/", "x"))
	}
	return c.secrets[what]
}

func newCanary(t *testing.T) *canary {
	c := &canary{t: t, db: testkit.NewDatabase(t), log: &keep{}, answers: map[string]string{}, secrets: map[string]string{}}
	dsn := c.db.DSN + " password=" + c.text("password of the database")
	if strings.Contains(c.db.DSN, "://") {
		u, err := url.Parse(c.db.DSN)
		c.must(err)
		u.User = url.UserPassword(u.User.Username(), c.text("password of the database"))
		dsn = u.String()
	}
	key := secret.GenerateKey()
	c.secrets["sealing key"] = strings.TrimRight(key, "=")
	values, err := config.Load(nil, []string{
		"LOOM_DATA_DIR=" + t.TempDir(), "LOOM_DATABASE_URL=" + dsn, "LOOM_SECRET_KEY=" + key, "LOOM_LISTEN_ADDR=127.0.0.1:0",
		"LOOM_HOOK_NETWORKS=127.0.0.0/8", "LOOM_DATABASE_CONNS=8",
	})
	c.must(err)
	ctx, stop := context.WithCancel(context.Background())
	e := &wiring.Environment{Values: values, Log: slog.New(slog.NewJSONHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Out: c.log, ErrOut: c.log}
	var parts sync.WaitGroup
	t.Cleanup(func() {
		stop()
		parts.Wait()
		e.Close()
	})
	fmt.Fprintln(c.log, values.Print()) // as `loom config` prints it
	c.sys, err = e.System(ctx)
	c.must(err)
	p := &wiring.Plugins{}
	p.Providers, err = provider.NewRegistry(leakyProvider{c: c})
	c.must(err)
	p.Automators, err = automator.NewRegistry(leakyAutomator{})
	c.must(err)
	c.must(c.sys.Catalog.RegisterTypes(ctx, p.Providers.Types(), p.Automators.Types()))
	made, err := c.sys.Accounts.EnsureSuperadmin(ctx)
	c.must(err)
	more, err := c.sys.Accounts.EnsureDemo(ctx, 20)
	c.must(err)
	for _, m := range append(made, more...) {
		c.secrets["made-up password of "+m.Tenant+"/"+string(m.User)] = m.Password.Reveal()
	}
	runner, pool, err := e.Runner(p, c.sys.Catalog)
	c.must(err)
	t.Cleanup(func() { pool.Close() })
	common := e.Common(c.sys, 0)
	common.Test = true
	site, err := e.Listen(ctx, c.sys)
	c.must(err)
	c.url = site.URL
	for _, part := range []func(context.Context) error{
		site.Serve, (&work.Scheduler{Common: common}).Run,
		(&work.Provisioner{Common: common, Runner: runner, Capacity: 20, Plugins: p.Names, DataDir: t.TempDir(), DrainTimeout: -1}).Run,
	} {
		parts.Go(func() {
			if err := part(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	c.awaitProvisioner(ctx)
	_, token, err := c.sys.Accounts.CreateTokenFor(ctx, wiring.CliActor(), "demo", "admin", account.NewToken{Name: "canary", Scopes: []loom.Scope{loom.ScopeAdmin}})
	c.must(err)
	c.token = token.Reveal()
	c.secrets["secret of a token"] = c.token
	return c
}

// awaitProvisioner returns when the provisioner is there; until then every test of a
// provider is refused.
func (c *canary) awaitProvisioner(ctx context.Context) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		found, err := store.AnyProvisioner(ctx, c.db, "demo")
		c.must(err)
		if found {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("no provisioner after a minute: %s", c.log.read())
		}
	}
}

func (c *canary) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// send makes a request and keeps the answer for the search, unless it is one that
// may show a secret.
func (c *canary) send(method, path, body string, headers ...string) (int, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	if slices.Contains(headers, "text/event-stream") {
		ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	c.must(err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		if ctx.Err() == nil {
			c.t.Fatalf("%s %s: %v", method, path, err)
		}
		return 0, ""
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil && ctx.Err() == nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer.StatusCode, string(data)
}

// call is a request of the administrator that must succeed.
func (c *canary) call(method, path, body string, headers ...string) string {
	c.t.Helper()
	status, answer := c.send(method, path, body, append(headers, "Authorization", "Bearer "+c.token)...)
	if status != http.StatusOK {
		c.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	c.note(method+" "+path, answer)
	return answer
}

func (c *canary) note(what, answer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[fmt.Sprintf("%s #%d", what, len(c.answers))] = answer
}

// once is call for an answer that shows a secret this once: the text at a member,
// which is looked for from then on.
func (c *canary) once(what, path, body, member string) {
	c.t.Helper()
	for _, headers := range [][]string{{"Idempotency-Key", what}, {"Idempotency-Key", what}} {
		status, answer := c.send("POST", path, body, append(headers, "Authorization", "Bearer "+c.token)...)
		var members map[string]any
		if err := json.Unmarshal([]byte(answer), &members); status != http.StatusOK || err != nil {
			c.t.Fatalf("POST %s: %d %s", path, status, answer)
		}
		text, _ := members[member].(string)
		if c.secrets[what] == "" && text != "" {
			c.secrets[what] = text
			continue
		}
		c.note("POST "+path+" again", answer)
	}
	if c.secrets[what] == "" {
		c.t.Fatalf("POST %s shows no %s", path, member)
	}
}

// plant puts a secret into everything but a cluster.
func (c *canary) plant() {
	c.call("PUT", "/v2/providers/vault", `{"name":"vault","providertype":"vault","provisioner":{"zone":"`+openly+`","api_password":"`+c.text("field of type password")+
		`","sensitive_text":"`+c.text("field marked as sensitive")+`","other_token":"`+c.text("unknown field that looks secret")+`"}}`)
	status, begun := c.send("POST", "/v2/providers/probe", `{"providertype":"vault","provisioner":{"zone":"`+openly+`","api_password":"`+c.text("password of a draft that is tested")+`"}}`, "Authorization", "Bearer "+c.token)
	if c.note("POST /v2/providers/probe", begun); status != http.StatusAccepted {
		c.t.Fatalf("a test of a draft: %d %s", status, begun)
	}
	c.call("PUT", "/v2/providers/later", `{"name":"later","providertype":"unheard","provisioner":{"api_secret":"`+c.text("field of an unknown type")+`"}}`)
	for _, kind := range []string{"hardwaretypes", "imagetypes"} {
		word := map[string]string{"hardwaretypes": "flavor", "imagetypes": "image"}[kind]
		c.call("PUT", "/v2/"+kind+"/plain", `{"name":"plain","providermap":{"vault":{"`+word+`":"x"}}}`)
	}
	c.call("PUT", "/v2/services/talk", `{"name":"talk","provisioner":{"actions":{"install":{"type":"leaky","fields":{}},"start":{"type":"leaky","fields":{}}}}}`)
	c.call("PUT", "/v2/clustertemplates/talk", `{"name":"talk","defaults":{"services":["talk"],"provider":"vault","hardwaretype":"plain","imagetype":"plain"}}`)
	c.call("PUT", "/v2/partialtemplates/part", `{"name":"part","constraints":{"size":{"min":1,"max":5}}}`)
	key := "-----BEGIN OPENSSH PRIVATE KEY-----\n" + c.text("first line of a key resource") + "\n" + c.text("second line of a key resource") + "\n-----END OPENSSH PRIVATE KEY-----\n"
	const resource = "/v2/plugins/providertypes/vault/ssh_keys/mine"
	c.call("POST", resource, key)
	c.call("POST", resource+"/versions/1/stage", "")
	c.call("POST", "/v2/plugins/sync", "")
	c.once("secret of another token", "/v2/tokens", `{"name":"other","scopes":["read"]}`, "secret")
	if c.has("post", "/v2/users") {
		c.call("POST", "/v2/users", `{"id":"una","password":"`+c.text("password of a user")+`"}`)
		c.once("made-up password of a user", "/v2/users", `{"id":"mia"}`, "password")
	}
	if c.has("post", "/v2/hooks") {
		hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) //nolint:errcheck // what came counts
			c.note("hook", fmt.Sprint(r.Header)+string(body))
		}))
		c.t.Cleanup(hook.Close)
		c.call("POST", "/v2/hooks", `{"name":"mine","url":"`+hook.URL+`/","secret":"`+c.text("secret of a hook")+`"}`)
	}
	c.signInByProvider()
	password := c.secrets["made-up password of demo/admin"]
	for _, p := range []string{password, c.text("wrong password")} {
		_, cookie, _, err := c.sys.Accounts.SignIn(context.Background(), account.SignInInput{Tenant: "demo", User: "admin", Password: loom.NewSecret(p), Address: "192.0.2.1"})
		if (err == nil) != (p == password) {
			c.t.Fatalf("sign in: %v", err)
		}
		if err == nil {
			c.cookie = cookie.Reveal()
			c.secrets["session cookie"] = c.cookie
		}
	}
}

// signInByProvider plants the secrets of an identity provider: Loom's own and an ID token.
func (c *canary) signInByProvider() {
	p := idptest.Start(c.t)
	c.sys.Accounts.Identity = idp.New(idp.Options{Reach: loom.Anywhere(), PlainHTTP: true})
	made := c.call("POST", "/v2/identity-providers", `{"name":"Canary","issuer":"`+p.Issuer+`","clientId":"`+idptest.ClientID+`","clientSecret":"`+idptest.Secret+`"}`)
	var provider struct{ ID string }
	c.must(json.Unmarshal([]byte(made), &provider))
	_, err := c.db.Exec(`WITH team AS (INSERT INTO groups (tenant_id, name) SELECT id, 'Canaries' FROM tenants WHERE name = 'demo' RETURNING tenant_id, id),
		role AS (INSERT INTO role_bindings (tenant_id, group_id, role, created_by) SELECT tenant_id, id, 'reader', 'x' FROM team)
		INSERT INTO identity_rules (provider_id, place, conditions, tenant_id, group_id) SELECT $1, 0, '[{"claim":"sub","op":"is","value":"1"}]', tenant_id, id FROM team`, provider.ID)
	c.must(err)
	p.Become(map[string]any{"sub": "1", "preferred_username": "canary"})
	p.SignAs = func(claims map[string]any) string {
		token := p.Sign(claims)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.secrets["client secret of an identity provider"], c.secrets["ID token"] = idptest.Secret, token
		return token
	}
	at, attempt, err := c.sys.Accounts.BeginAttempt(context.Background(), provider.ID, account.Attempt{})
	c.must(err)
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(at)
	c.must(err)
	answer.Body.Close()
	back, err := answer.Location()
	c.must(err)
	q := back.Query()
	done, err := c.sys.Accounts.FinishAttempt(context.Background(), account.ProviderAnswer{Provider: provider.ID, State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"),
		Attempts: []loom.Secret{attempt.Value}, Address: "192.0.2.1"})
	c.must(err)
	c.secrets["cookie of a session by an identity provider"], c.secrets["cookie of an attempt"] = done.Cookie.Reveal(), attempt.Value.Reveal()
}

// cluster makes one through a preview, with a secret of its own, and waits until
// it runs.
func (c *canary) cluster() string {
	c.t.Helper()
	request := `{"name":"talk","clusterTemplate":"talk","numMachines":2,"config":{"talk":{"db_password":"` + c.text("config") + `"}},` +
		`"providerFields":{"user_pin":"` + c.text("cluster field") + `"}}`
	var preview struct{ ID, Hash string }
	c.must(json.Unmarshal([]byte(c.call("POST", "/v2/previews", `{"kind":"create","request":`+request+`}`)), &preview))
	c.call("GET", "/v2/previews/"+preview.ID, "")
	var applied struct{ ID string }
	c.must(json.Unmarshal([]byte(c.call("POST", "/v2/previews/"+preview.ID+"/apply",
		`{"hash":"`+preview.Hash+`","providerFields":{"user_pin":"`+c.text("cluster field")+`"}}`, "Idempotency-Key", "apply")), &applied))
	c.until(applied.ID, "active")
	return applied.ID
}

// until waits for a status of the cluster.
func (c *canary) until(id, want string) {
	c.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var status struct{ Status string }
		_, answer := c.send("GET", "/v2/clusters/"+id+"/status", "", "Authorization", "Bearer "+c.token)
		c.must(json.Unmarshal([]byte(answer), &status))
		if status.Status == want {
			return
		}
		if time.Now().After(deadline) || status.Status != "pending" {
			c.t.Fatalf("the cluster is %s: %s\n%s", status.Status, answer, c.call("GET", "/v2/clusters/"+id+"/plans", ""))
		}
	}
}

// reveal is the one way to a machine's password, and to the key of its cluster.
func (c *canary) reveal(id string) {
	c.t.Helper()
	var nodes []string
	c.must(c.db.Select(&nodes, `SELECT id FROM nodes ORDER BY number`))
	status, answer := c.send("POST", "/v2/clusters/"+id+"/nodes/"+nodes[0]+"/reveal", "", "Authorization", "Bearer "+c.token)
	var shown struct{ User, Password, PrivateKey string }
	if err := json.Unmarshal([]byte(answer), &shown); err != nil || status != http.StatusOK || shown.Password != c.text("password of a machine") {
		c.t.Fatalf("reveal: %d %s", status, answer)
	}
	lines := strings.Split(strings.TrimSpace(shown.PrivateKey), "\n")
	if len(lines) < 3 {
		c.t.Fatalf("no key of the cluster: %s", shown.PrivateKey)
	}
	c.secrets["private key of the cluster"] = lines[len(lines)/2]
}

// chain waits until the scheduler has linked the audit, and verifies it.
func (c *canary) chain() {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		r, err := c.sys.Accounts.VerifyAudit(context.Background(), account.AuditMark{})
		if err != nil || r.Broken != "" {
			c.t.Fatalf("the audit: %s, %v", r.Broken, err)
		}
		if r.Waiting == 0 && r.Entries > 15 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the scheduler does not link the audit: %+v", r)
		}
	}
}
