//go:build e2e && browser

package cli

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"loom/app/web"
)

// stranger is somebody who is signed in as administrator of another tenant.
type stranger struct {
	w      *pagesWorld
	client *http.Client
}

func (w *pagesWorld) stranger() *stranger {
	w.t.Helper()
	made := w.loom("tenant", "create", "elsewhere")
	password := regexp.MustCompile(`password (\S+)`).FindStringSubmatch(made)
	if password == nil {
		w.t.Fatalf("loom tenant create said %q", made)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &stranger{w, &http.Client{Jar: jar, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	status, body := s.ask(http.MethodPost, "/login", url.Values{"tenant": {"elsewhere"}, "user": {"admin"}, "password": {password[1]}})
	if status != http.StatusSeeOther {
		w.t.Fatalf("sign-in: %d %.300s", status, body)
	}
	const own = "four words in a row"
	if status, body = s.ask(http.MethodPost, "/account/password", url.Values{"oldPassword": {password[1]}, "password": {own}, "repeat": {own}}); status != http.StatusSeeOther {
		w.t.Fatalf("a password of one's own: %d %.300s", status, body)
	}
	return s
}

func (s *stranger) ask(method, path string, form url.Values) (int, string) {
	s.w.t.Helper()
	r, err := http.NewRequest(method, s.w.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.w.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer.StatusCode, string(body)
}

// theirs is a digest of what the tenant has.
func (w *pagesWorld) theirs() string {
	w.t.Helper()
	var all strings.Builder
	for _, table := range []string{"clusters", "operations", "nodes", "users", "hooks", "tokens", "catalog_versions", "resources", "previews"} { // a sweep takes orphans away
		var rows []string
		sum := sha256.New()
		query := `SELECT row_to_json(x)::text FROM ` + table + ` x WHERE x.tenant_id = (SELECT id FROM tenants WHERE name = 'demo') ORDER BY 1`
		if err := w.db.Select(&rows, query); err != nil {
			w.t.Fatalf("%s: %v", table, err)
		}
		for _, row := range rows {
			fmt.Fprintln(sum, used.ReplaceAllString(row, ""))
		}
		fmt.Fprintf(&all, "%s %d %x\n", table, len(rows), sum.Sum(nil))
	}
	return all.String()
}

// used is what changes by itself.
var used = regexp.MustCompile(`"(last_used_at|last_used_from|last_seen_at|updated_at)":("[^"]*"|null),?`)

// leadsOn are the addresses of buttons, which lead to the page that they stand on
// without looking.
var leadsOn = regexp.MustCompile(`/(pause|resume|protect|authorize|key|apply|resubmit|retry-now|stop-retrying)$`)

// TestForeignPages walks all routes of the pages as the administrator of another
// tenant, with the ids and names of this one: nothing of it is in any answer, and
// nothing of it has changed.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	w := newPagesWorld(t)
	s := w.stranger()
	before := w.theirs()
	markers := []string{"waiting-for-long", "Template shop", "A service to look at", "hello.sh", "forgotten", "m-4711", w.names["{node}"]}
	for _, rt := range web.Routes() {
		method, pattern := rt.Method, rt.Pattern()
		if method == "" || rt.Path == "/events" || rt.Path == "/logout" || rt.Path == "/login" {
			continue
		}
		for _, path := range w.samples(rt) {
			status, body := s.ask(method, path, url.Values{"confirm": {"shop"}, "reason": {"because"}})
			for _, marker := range markers {
				if strings.Contains(body, marker) && !strings.Contains(path, marker) {
					t.Errorf("%s %s shows %q", method, path, marker)
				}
			}
			named := strings.Contains(pattern, "{") && !strings.Contains(pattern, "{$}") && !strings.Contains(pattern, "{chapter}")
			good := !named || status == http.StatusNotFound ||
				strings.HasPrefix(path, "/system") && status == http.StatusForbidden ||
				method == http.MethodGet && status == http.StatusSeeOther && leadsOn.MatchString(path) ||
				method == http.MethodPost && status == http.StatusUnprocessableEntity && strings.HasPrefix(path, "/admin/") // the form was read first
			if !good || status >= 500 {
				t.Errorf("%s %s answers %d", method, path, status)
			}
		}
	}
	if after := w.theirs(); after != before {
		t.Errorf("something of the other tenant has changed: from\n%s\nto\n%s", before, after)
	}
}
