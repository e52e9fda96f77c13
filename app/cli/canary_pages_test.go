package cli

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/web"
)

// withoutPage are the pages of this instance that answer with something else than a
// page, by their pattern, with the reason; all others must show something to search.
var withoutPage = map[string]string{
	"GET /admin/transfer/resources/export":                              "an archive, which package web looks into",
	"GET /admin/bulk/providers/export":                                  "a file",
	"GET /admin/bulk/hardware-types/export":                             "a file",
	"GET /admin/bulk/image-types/export":                                "a file",
	"GET /admin/bulk/services/export":                                   "a file",
	"GET /admin/bulk/templates/export":                                  "a file",
	"GET /admin/bulk/partials/export":                                   "a file",
	"GET /admin/fix":                                                    "there is nothing to fix in this catalog",
	"GET /icons/{kind}/{name}/{version}":                                "a picture that an entry brings",
	"GET /events":                                                       "a stream; see listen",
	"GET /login":                                                        "leads to the page for who is signed in",
	"GET /login/dialog":                                                 "leads to the sign-in page",
	"GET /clusters/{cluster}/open":                                      "leads elsewhere",
	"GET /clusters/{cluster}/activity":                                  "leads to the history",
	"GET /clusters/{cluster}/protect":                                   "leads back",
	"GET /clusters/{cluster}/key":                                       "leads back",
	"GET /clusters/{cluster}/authorize":                                 "leads back",
	"GET /clusters/{cluster}/operations/{n}/pause":                      "leads back",
	"GET /clusters/{cluster}/operations/{n}/resume":                     "leads back",
	"GET /clusters/{cluster}/operations/{n}/resubmit":                   "leads back",
	"GET /clusters/{cluster}/operations/{n}/tasks/{task}/retry-now":     "leads back",
	"GET /clusters/{cluster}/operations/{n}/tasks/{task}/stop-retrying": "leads back",
	"GET /clusters/{cluster}/nodes/{node}/reveal":                       "leads back",
	"GET /system/tenants/{tenant}/clusters/{cluster}/abandon":           "nothing was left behind",
	"GET /system/plugins/{kind}/{name}/versions/{version}/remove":       "the only version of a type stays",
	"GET /previews/{preview}/apply":                                     "leads back",
	"GET /previews/{preview}":                                           "was applied, which may have been long ago",
	"GET /admin/transfer/preview":                                       "nothing is being imported",
	"GET /clusters/{cluster}/copy":                                      "wants to know what is copied",
	"GET /system/orphans/{id}/remove":                                   "there are no orphans",
	"GET /system/orphans/leftovers":                                     "leads to the list; its files are searched",
	"GET /home/news":                                                    "part of a page; leads home by itself",
	"GET /system/tenants/{tenant}/edit":                                 "leads to the form",
	"GET /admin/hooks/{id}/deliveries":                                  "leads to the hook; its files are searched",
	"GET /account/tokens/{id}/revoke":                                   "is of the one who asks",
	"GET /favicon.ico":                                                  "leads to the picture",
	"GET /admin/clusters":                                               "leads to the list",
	"GET /clusters/{cluster}/ssh-config":                                "leads to the copy",
	"GET /login/{provider}":                                             "leads to the identity provider",
	"GET /login/{provider}/callback":                                    "signs in, or shows the sign-in page with an error",
}

// aboutClusters are the pages that change when a cluster does.
var aboutClusters = regexp.MustCompile(`cluster|activity|audit|usage|search|home|\{\$\}|/operations`)

// walkPages reads every page there is and each of its documents, as the administrator
// of the tenant and of all tenants.
func (c *canary) walkPages(when, cluster string, found map[string]bool) {
	c.t.Helper()
	super := c.signIn("superadmin", "admin")
	documents := web.DocumentPatterns()
	for _, pattern := range web.Patterns() {
		path, isGet := strings.CutPrefix(pattern, "GET ")
		if !isGet || path == "/events" || found[pattern] && !aboutClusters.MatchString(path) {
			continue
		}
		cookie := c.cookie
		if strings.HasPrefix(path, "/system") {
			cookie = super
		}
		for _, at := range c.fillPage(path, cluster) {
			ways := []string{""}
			if documents[pattern] {
				ways = append(ways, "as=json", "as=csv", "as=pane")
			}
			for _, way := range ways {
				full := at
				if way != "" {
					full = at + map[bool]string{true: "&", false: "?"}[strings.Contains(at, "?")] + way
				}
				status, answer := c.send("GET", full, "", "Cookie", "loom-dev="+cookie)
				c.note("page "+full+" "+when, answer)
				if status >= 500 {
					c.t.Errorf("GET %s: %d %.300s", full, status, answer)
				}
				if status == http.StatusOK && way == "" {
					found[pattern] = true
				}
			}
		}
	}
}

// allPages demands that each page was there to be searched.
func (c *canary) allPages(found map[string]bool) {
	c.t.Helper()
	for _, pattern := range web.Patterns() {
		if strings.HasPrefix(pattern, "GET ") && !found[pattern] && withoutPage[pattern] == "" {
			c.t.Errorf("%s was not searched: it never answered with a page", pattern)
		}
	}
}

// fillPage puts names of what is there into the pattern of a page; it may be read for
// several.
func (c *canary) fillPage(pattern, cluster string) []string {
	c.t.Helper()
	text := func(query string, args ...any) string {
		var s string
		_ = c.db.Get(&s, query, args...) //nolint:errcheck // nothing there is fine: the page then answers 404
		return url.PathEscape(s)
	}
	ofDemo := ` WHERE tenant_id = (SELECT id FROM tenants WHERE name = 'demo')`
	values := map[string]string{
		"{cluster}": cluster, "{n}": "1", "{task}": "1", "{service}": "talk", "{template}": "talk", "{tenant}": "demo", "{chapter}": "clusters", "{version}": "1", "{$}": "", "{tab}": "general",
		"{node}": text(`SELECT id::text FROM nodes ORDER BY number LIMIT 1`), "{preview}": text(`SELECT id::text FROM previews ORDER BY created_at DESC LIMIT 1`),
		"{delivery}": text(`SELECT min(id)::text FROM hook_deliveries`), "{kind}": "providertypes", "{verb}": "password",
		"{probe}": text(`SELECT max(id)::text FROM provider_requests` + ofDemo + ` AND purpose = 'draft'`),
		"{token}": text(`SELECT min(id)::text FROM tokens` + ofDemo + ` AND user_id = 'admin'`), "{session}": text(`SELECT encode(id, 'hex') FROM sessions` + ofDemo + ` AND user_id = 'admin' LIMIT 1`),
	}
	switch {
	case strings.HasPrefix(pattern, "/admin/hooks/"):
		values["{id}"] = text(`SELECT min(id)::text FROM hooks` + ofDemo)
	case strings.HasPrefix(pattern, "/admin/groups/{id}"):
		values["{id}"] = text(insertGroup)
	case strings.HasPrefix(pattern, "/admin/identity/{id}"):
		values["{id}"] = text(insertIdentity)
	case strings.HasPrefix(pattern, "/login/{provider}"):
		values["{provider}"] = text(`SELECT id FROM identity_providers WHERE name = 'Canary'`)
	case strings.HasPrefix(pattern, "/admin/rollouts/{id}"):
		values["{id}"], values["{verb}"] = text(insertRollout), "abort"
	case strings.HasPrefix(pattern, "/admin/users/"):
		values["{id}"] = "admin"
	case strings.HasPrefix(pattern, "/account/tokens/"):
		values["{id}"] = values["{token}"]
	case strings.HasPrefix(pattern, "/system/workers/"):
		values["{id}"], values["{verb}"] = text(`SELECT min(id) FROM processes WHERE kind = 'provisioner'`), "drain"
	case strings.HasPrefix(pattern, "/system/queues/jobs/"):
		values["{id}"], values["{verb}"] = text(`SELECT min(id)::text FROM river_job`), "retry"
	case strings.HasPrefix(pattern, "/system/queues/{queue}"):
		values["{queue}"], values["{verb}"] = "hook", "pause"
	case strings.HasPrefix(pattern, "/system/plugins/"):
		values["{name}"] = "vault"
	case strings.HasPrefix(pattern, "/admin/providers/"):
		values["{name}"] = "vault"
	case strings.HasPrefix(pattern, "/admin/partials/"):
		values["{name}"] = "part"
	case strings.HasPrefix(pattern, "/admin/services/"), strings.HasPrefix(pattern, "/admin/templates/"):
		values["{name}"] = "talk"
	case strings.HasPrefix(pattern, "/admin/"):
		values["{name}"] = "plain"
	}
	at := regexp.MustCompile(`\{[a-z$]+\}`).ReplaceAllStringFunc(pattern, func(name string) string { return values[name] })
	all := []string{at}
	switch {
	case pattern == "/admin/providers/{name}/use":
		all = []string{at + "?flavor=small", at + "?image=debian"}
	case strings.HasPrefix(pattern, "/admin/providers/{name}"):
		all = append(all, strings.Replace(at, "/vault", "/later", 1))
	case strings.HasPrefix(pattern, "/admin/resources/") && !strings.HasSuffix(pattern, "/sync"):
		all = []string{at + "?kind=providertypes&plugin=vault&type=ssh_keys&name=mine&version=1"}
	case strings.HasPrefix(pattern, "/clusters/bulk/"):
		all = []string{at + "?id=" + cluster}
	case pattern == "/clusters/{cluster}/copy":
		all = []string{at + "?what=ssh", at + "?what=hosts", at + "?what=csv"}
	case pattern == "/clusters/{cluster}/panel":
		all = nil
		for _, part := range []string{"head", "operation", "services", "nodes", "said"} {
			all = append(all, at+"?part="+part)
		}
	case pattern == "/search" || pattern == "/palette":
		all = []string{at + "?q=talk"}
	case pattern == "/clusters/new":
		all = []string{at, at + "?template=talk", at + "?like=" + cluster}
	case strings.Contains(pattern, "/tasks/{task}"):
		for n := 2; n <= 8; n++ {
			all = append(all, strings.Replace(at, "/tasks/1", fmt.Sprintf("/tasks/%d", n), 1))
		}
	}
	return all
}

// signIn returns the cookie of a new session of a user with a generated password.
func (c *canary) signIn(tenant, user string) string {
	c.t.Helper()
	password := c.secrets["made-up password of "+tenant+"/"+user]
	_, cookie, _, err := c.sys.Accounts.SignIn(context.Background(), account.SignInInput{Tenant: tenant, User: user, Password: loom.NewSecret(password), Address: "192.0.2.1"})
	c.must(err)
	c.secrets["session cookie of "+tenant+"/"+user+cookie.Reveal()[:4]] = cookie.Reveal()
	return cookie.Reveal()
}

// listen reads a stream of events in the background until the test ends or stop is
// called, which keeps what came for the search.
func (c *canary) listen(path string, headers ...string) (stop func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", c.url+path, nil)
	c.must(err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	c.must(err)
	if answer.StatusCode != http.StatusOK {
		c.t.Fatalf("GET %s: %s", path, answer.Status)
	}
	var heard strings.Builder
	ended, came := make(chan struct{}), make(chan struct{}, 1)
	go func() {
		defer close(ended)
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		for lines.Scan() {
			heard.WriteString(lines.Text() + "\n")
			if strings.HasPrefix(lines.Text(), "data:") {
				select {
				case came <- struct{}{}:
				default:
				}
			}
		}
	}()
	return func() {
		c.t.Helper()
		select {
		case <-came:
		case <-time.After(time.Minute):
			c.t.Errorf("GET %s: no event came", path)
		}
		cancel()
		<-ended
		c.note("stream "+path, heard.String())
	}
}

// refused sends secrets in forms and requests that are refused: they are not told back.
func (c *canary) refused() {
	c.t.Helper()
	pin := c.text("field of a refused form")
	for path, form := range map[string]url.Values{
		"/previews": {"kind": {"create"}, "clusterTemplate": {"talk"}, "for": {"talk"}, "forProvider": {"vault"}, "provider": {"vault"}, "name": {"not a name"},
			"numMachines": {"2"}, "servicesShown": {"1"}, "services": {"talk"}, "providerFields.user_pin": {pin}},
		"/clusters/new/check": {"kind": {"create"}, "clusterTemplate": {"talk"}, "for": {"talk"}, "forProvider": {"vault"}, "provider": {"vault"}, "name": {"not a name"},
			"numMachines": {"2"}, "servicesShown": {"1"}, "services": {"talk"}, "providerFields.user_pin": {pin}},
		"/admin/providers":        {"form": {"1"}, "name": {"not a name"}, "providertype": {"vault"}, "provisioner.zone": {"x"}, "provisioner.api_password": {pin}},
		"/admin/providers/vault":  {"form": {"1"}, "name": {"vault"}, "providertype": {"vault"}, "provisioner.zone": {""}, "provisioner.api_password": {pin}, "version": {"99"}},
		"/account/password":       {"old": {pin}, "new": {pin}, "repeat": {"x"}},
		"/admin/hooks":            {"name": {"mine"}, "url": {"no address"}, "secret": {pin}},
		"/admin/users/admin":      {"role": {pin}},
		"/login":                  {"tenant": {"demo"}, "user": {"admin"}, "password": {pin}},
		"/admin/templates/talk":   {"body": {"{" + pin}},
		"/admin/providers/new":    {"name": {"fresh"}, "providertype": {"vault"}, "provisioner.zone": {"x"}, "provisioner.api_password": {pin}, "do": {"check"}},
		"/admin/validate/nothing": {"x": {pin}},
	} {
		status, answer := c.send("POST", path, form.Encode(), "Cookie", "loom-dev="+c.cookie, "Content-Type", "application/x-www-form-urlencoded")
		if status >= 500 {
			c.t.Errorf("POST %s: %d %.300s", path, status, answer)
		}
		// A text that is shown to be corrected is one that its writer typed in the open.
		if path != "/admin/templates/talk" && path != "/admin/users/admin" {
			c.note("form "+path, answer)
		}
	}
	for path, body := range map[string]string{
		"/v2/providers":         `{"name":"not a name","providertype":"vault","provisioner":{"api_password":"` + pin + `"}}`,
		"/v2/clusters":          `{"name":"not a name","clusterTemplate":"talk","numMachines":2,"providerFields":{"user_pin":"` + pin + `"}}`,
		"/v2/previews":          `{"kind":"create","request":{"name":"not a name","clusterTemplate":"talk","providerFields":{"user_pin":"` + pin + `"}}}`,
		"/v2/users":             `{"id":"vic","role":"king","password":"` + pin + `"}`,
		"/v2/hooks":             `{"name":"x","url":"no address","secret":"` + pin + `"}`,
		"/v2/clusters/99999999": `{"providerFields":{"user_pin":"` + pin + `"}}`,
	} {
		status, answer := c.send("POST", path, body, "Authorization", "Bearer "+c.token)
		if status < 400 || status >= 500 {
			c.t.Errorf("POST %s: %d %.300s", path, status, answer)
		}
		c.note("POST "+path+" that is refused", answer)
	}
}

// The list of what is no page names pages that are there.
func TestWithoutPageIsTrue(t *testing.T) {
	t.Parallel()
	for pattern := range withoutPage {
		if !slices.Contains(web.Patterns(), pattern) {
			t.Errorf("%s is no page any more", pattern)
		}
	}
}
