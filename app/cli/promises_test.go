//go:build e2e && browser

package cli

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loom/app/web"
)

// TestPagesKeepTheirPromises: what an attack of the pages tried and did not get
// (docs/security.md).
func TestPagesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	w := newPagesWorld(t)
	t.Run("the process list holds no secret", w.processListHoldsNoSecret)
	t.Run("a sign-in starts a new session", w.signInStartsANewSession)
	t.Run("nothing is done for other sites", w.nothingIsDoneForOtherSites)
	t.Run("nothing written becomes markup", w.nothingWrittenBecomesMarkup)
}

// processListHoldsNoSecret looks through what everybody on the host sees of processes.
func (w *pagesWorld) processListHoldsNoSecret(t *testing.T) {
	secrets := map[string]string{"the password of demo/admin": w.password("demo", "admin"), "the password of superadmin/admin": w.password("superadmin", "admin"), "a token": w.admin.token}
	if key, err := os.ReadFile(filepath.Join(w.dir, "secret.key")); err == nil {
		secrets["the sealing key"] = strings.TrimSpace(string(key))
	}
	ours := 0
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if strings.Contains(string(line), "provisioner") {
			ours++
		}
		for what, secret := range secrets {
			if len(secret) < 8 {
				t.Fatalf("%s is %q, which is nothing to look for", what, secret)
			}
			if strings.Contains(string(line), secret) {
				t.Errorf("%s holds %s: %q", file, what, line)
			}
		}
	}
	if ours == 0 {
		t.Error("no process of Loom was seen")
	}
}

// signedIn is a browser without scripts, signed in as the administrator of a tenant.
func (w *pagesWorld) signedIn(tenant string) *http.Client {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	c := &http.Client{Jar: jar, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := c.PostForm(w.url+"/login", url.Values{"tenant": {tenant}, "user": {"admin"}, "password": {w.password(tenant, "admin")}})
	if err != nil {
		w.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther {
		w.t.Fatalf("sign-in: %d", answer.StatusCode)
	}
	return c
}

// hostile is text that becomes an element or an attribute where somebody forgets to
// escape it.
const hostile = `x"'></textarea></script><xss-mark onload="x">&lt;`

// plant puts the hostile text wherever people write what others read.
func (w *pagesWorld) plant() {
	w.t.Helper()
	quoted, err := json.Marshal(hostile)
	if err != nil {
		w.t.Fatal(err)
	}
	q := string(quoted)
	w.admin.call("PATCH", "/v2/clusters/"+w.names["{cluster}"], `{"description": `+q+`, "labels": {"team": "a"}}`, nil)
	w.user.call("PUT", "/v2/clusters/"+w.names["{cluster}"]+"/config", `{"config": {"greeting": `+q+`}}`, nil)
	w.admin.call("PUT", "/v2/services/extra", `{"name": "extra", "label": `+q+`, "description": `+q+`, "dependencies": {"runtime": {"requires": ["base"]}}, "links": [{"label": `+q+`, "url": "https://example.org/%host.self%"}],
		"provisioner": {"actions": {"install": {"type": "mock", "fields": {"delay_ms": "0", "note": `+q+`}}}}}`, nil)
	w.admin.call("PUT", "/v2/hardwaretypes/mock-large", `{"name": "mock-large", "label": `+q+`, "description": `+q+`, "providermap": {"mock": {"flavor": "large"}}}`, nil)
	w.admin.call("PUT", "/v2/partialtemplates/lease", `{"name": "lease", "label": `+q+`, "description": `+q+`, "administration": {"leaseduration": {"initial": 3600000, "max": 0, "step": 0}}}`, nil)
	w.admin.call("POST", "/v2/plugins/automatortypes/shell/scripts/evil.sh", "#!/bin/sh\n# "+hostile+"\n", nil)
	w.admin.call("POST", "/v2/hooks", map[string]any{"name": hostile, "url": "http://127.0.0.1:1/?x=" + url.QueryEscape(hostile), "events": []string{"start"}}, nil)
	w.admin.call("POST", "/v2/tokens", map[string]any{"name": hostile, "scopes": []string{"read"}}, nil)
	// What machines, plugins and browsers say is not asked to be plain either.
	for _, query := range []string{
		`UPDATE attempts SET message = $1`, `UPDATE operations SET message = $1`, `UPDATE users SET display_name = $1`, `UPDATE sessions SET agent = $1`,
		`UPDATE hook_deliveries SET error = $1`, `UPDATE orphans SET name = $1`, `UPDATE tenants SET description = $1`,
	} {
		if _, err := w.db.Exec(query, hostile); err != nil {
			w.t.Fatalf("%s: %v", query, err)
		}
	}
}

var (
	hrefs     = regexp.MustCompile(`(?:href|hx-get|src|action)="([^"]*)"`)
	dangerous = regexp.MustCompile(`(?i)(href|src|action|hx-get|hx-post)="\s*(javascript|vbscript|data:text)`)
)

// crawlMost is how many pages the crawl visits at most, for each who crawls, and crawlLeast
// how many at least.
const crawlMost, crawlLeast = 900, 800

// nothingWrittenBecomesMarkup plants text that would become markup wherever people,
// plugins and machines write, and crawls the pages by their own links: no page holds it
// unescaped, and no link of a page runs a script.
func (w *pagesWorld) nothingWrittenBecomesMarkup(t *testing.T) {
	w.plant()
	planted := 0
	for _, who := range []string{"demo", "superadmin"} {
		client := w.signedIn(who)
		var queue []string
		seen := map[string]bool{}
		add := func(path string) {
			path, _, _ = strings.Cut(path, "#")
			if path == "" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.HasPrefix(path, "/static/") ||
				path == "/logout" || strings.HasPrefix(path, "/login/") || strings.HasPrefix(path, "/events") || strings.Contains(path, "/stream") || strings.Contains(path, "after=") || seen[path] {
				return
			}
			seen[path] = true
			queue = append(queue, path)
		}
		for _, rt := range web.Routes() {
			if rt.Method == http.MethodGet {
				for _, sample := range w.samples(rt) {
					add(sample)
				}
			}
		}
		visited := 0
		for ; len(queue) > 0 && visited < crawlMost; visited++ {
			path := queue[0]
			queue = queue[1:]
			answer, err := client.Get(w.url + path)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			content, _ := io.ReadAll(io.LimitReader(answer.Body, 8<<20))
			answer.Body.Close()
			if answer.StatusCode >= 500 {
				t.Errorf("%s answers %d", path, answer.StatusCode)
			}
			if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
				continue
			}
			body := string(content)
			if at := strings.Index(body, "<xss-mark"); at >= 0 {
				t.Errorf("%s holds the planted text as markup: …%s…", path, body[max(0, at-120):at+60])
			}
			if found := dangerous.FindString(body); found != "" {
				t.Errorf("%s has a link that runs something: %s", path, found)
			}
			if strings.Contains(body, "&lt;xss-mark") {
				planted++
			}
			for _, found := range hrefs.FindAllStringSubmatch(body, -1) {
				add(html.UnescapeString(found[1]))
			}
		}
		if visited < crawlLeast {
			t.Errorf("%s: only %d pages were crawled, want %d", who, visited, crawlLeast)
		}
		t.Logf("%s: %d pages", who, visited)
	}
	if planted < 30 {
		t.Errorf("the planted text is on %d pages only: the test no longer tests much", planted)
	}
}

// nothingIsDoneForOtherSites sends every changing request of pages and REST API with
// the cookie of an administrator, as another site would make a browser send it: all are
// refused, and nothing changes.
func (w *pagesWorld) nothingIsDoneForOtherSites(t *testing.T) {
	client := w.signedIn("demo")
	before := w.theirs()
	var all []string
	for _, rt := range web.Routes() {
		if rt.Method != http.MethodPost || rt.Path == "/csp-reports" { // which browsers send by themselves, and which changes nothing
			continue
		}
		for _, sample := range w.samples(rt) {
			all = append(all, rt.Method+" "+sample)
		}
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	w.admin.call("GET", "/v2/openapi.json", nil, &document)
	placeholder := regexp.MustCompile(`\{[^}]*\}`)
	for path, methods := range document.Paths {
		for method := range methods {
			if method := strings.ToUpper(method); slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, method) {
				all = append(all, method+" "+placeholder.ReplaceAllString(path, w.names["{cluster}"]))
			}
		}
	}
	if len(all) < 150 {
		t.Errorf("only %d requests were found", len(all))
	}
	slices.Sort(all)
	for _, one := range all {
		method, path, _ := strings.Cut(one, " ")
		for _, headers := range []map[string]string{{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"}} {
			r, err := http.NewRequest(method, w.url+path, strings.NewReader("confirm=shop"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for name, value := range headers {
				r.Header.Set(name, value)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatalf("%s: %v", one, err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %s answers %d", one, fmt.Sprint(headers), answer.StatusCode)
			}
		}
	}
	if after := w.theirs(); after != before {
		t.Errorf("something has changed: from\n%s\nto\n%s", before, after)
	}
}

// signInStartsANewSession: a cookie that somebody planted in the browser is not the
// session after the sign-in, and opens nothing.
func (w *pagesWorld) signInStartsANewSession(t *testing.T) {
	client := w.signedIn("demo")
	at, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	for _, cookie := range client.Jar.Cookies(at) {
		if strings.HasPrefix(cookie.Name, "loom") || strings.Contains(cookie.Name, "Host-loom") {
			name = cookie.Name
			break
		}
	}
	if name == "" {
		t.Fatalf("there is no session cookie in %v", client.Jar.Cookies(at))
	}
	const planted = "cGxhbnRlZC1ieS1zb21lYm9keS1lbHNlLTAwMDAwMDA"
	form := url.Values{"tenant": {"demo"}, "user": {"admin"}, "password": {w.password("demo", "admin")}}
	r, err := http.NewRequest(http.MethodPost, w.url+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(&http.Cookie{Name: name, Value: planted})
	answer, err := (&http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	given := ""
	for _, cookie := range answer.Cookies() {
		if cookie.Name == name {
			given = cookie.Value
		}
	}
	if answer.StatusCode != http.StatusSeeOther || given == "" || given == planted {
		t.Errorf("the sign-in answers %d and gives the cookie %q", answer.StatusCode, given)
	}
	again, err := http.NewRequest(http.MethodGet, w.url+"/v2/whoami", nil)
	if err != nil {
		t.Fatal(err)
	}
	again.AddCookie(&http.Cookie{Name: name, Value: planted})
	if answer, err = http.DefaultClient.Do(again); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("the planted cookie answers %d", answer.StatusCode)
	}
}
