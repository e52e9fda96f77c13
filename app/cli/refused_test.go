//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// problem is the body of an error.
type problem struct {
	Type, Title, Detail, Instance string
	Status                        int
	Errors                        []struct{ Field, Message string }
	raw                           string
}

// refused sends a request that must be refused with a status, and checks the form
// of the answer.
func (c *client) refused(status int, method, path string, body any) problem {
	c.t.Helper()
	got, data, err := c.try(method, path, body)
	if err != nil || got != status {
		c.t.Fatalf("%s %s: %d %v, want %d: %s", method, path, got, err, status, data)
	}
	p := problem{raw: string(data)}
	if err := json.Unmarshal(data, &p); err != nil {
		c.t.Fatalf("%s %s: %v: %s", method, path, err, data)
	}
	if p.Status != status || !strings.HasPrefix(p.Type, "urn:loom:error:") || p.Title == "" || p.Detail == "" || p.Instance == "" {
		c.t.Errorf("%s %s: incomplete problem %s", method, path, data)
	}
	return p
}

// TestRefusedRequests sends what must not be accepted to the real server. No
// provisioner runs: nothing of this may need one.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loom("seed")
	w.web()
	user := w.user()
	id := user.create("web-cluster", 2, nil)

	for _, c := range []struct {
		name, body string
		status     int
		field      string   // a field error that must be there
		words      []string // in the answer
	}{
		{"unknown template", `{"name":"a","clusterTemplate":"hadoop","numMachines":3}`, 404, "clusterTemplate", []string{"hadoop"}},
		{"too few machines", `{"name":"a","clusterTemplate":"web-cluster","numMachines":1}`, 400, "", []string{"at least 2 nodes", "Use 2 nodes"}},
		{"too many machines", `{"name":"a","clusterTemplate":"web-cluster","numMachines":501}`, 400, "", []string{"At most 500 nodes", "Use 500 nodes"}},
		{"no machines", `{"name":"a","clusterTemplate":"web-cluster"}`, 400, "numMachines", nil},
		{"no name", `{"clusterTemplate":"web-cluster","numMachines":3}`, 400, "name", nil},
		{"unknown service", `{"name":"a","clusterTemplate":"web-cluster","numMachines":3,"services":["nginx","mysql"]}`, 400, "", []string{"compatibility list does not allow", "mysql"}},
		{"unknown hardware type", `{"name":"a","clusterTemplate":"web-cluster","numMachines":3,"hardwaretype":"huge"}`, 400, "", []string{"There is no hardware type named huge"}},
		{"unknown provider", `{"name":"a","clusterTemplate":"web-cluster","numMachines":3,"provider":"moon"}`, 404, "provider", []string{"moon"}},
		{"unsolvable", `{"name":"a","clusterTemplate":"web-cluster","numMachines":3,"services":["haproxy"]}`, 400, "", []string{"haproxy", "reasons"}},
		{"text instead of a number", `{"name":"a","clusterTemplate":"web-cluster","numMachines":"many"}`, 400, "numMachines", nil},
		{"half an object", `{"name":"a","clusterTemplate"`, 400, "", []string{"JSON"}},
		{"an array", `[1,2]`, 400, "", []string{"object"}},
		{"nothing", ``, 400, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := &client{t: t, url: user.url, token: user.token}
			p := one.refused(c.status, "POST", "/v2/clusters", c.body)
			found := c.field == ""
			for _, e := range p.Errors {
				found = found || e.Field == c.field && e.Message != ""
			}
			if !found {
				t.Errorf("no error at the field %s: %s", c.field, p.raw)
			}
			for _, word := range c.words {
				if !strings.Contains(p.raw, word) {
					t.Errorf("the answer does not say %q: %s", word, p.raw)
				}
			}
		})
	}

	// An impossible request says why, and which sizes would do.
	p := user.refused(400, "POST", "/v2/clusters", `{"name":"a","clusterTemplate":"web-cluster","numMachines":3,"services":["haproxy"]}`)
	if p.Type != "urn:loom:error:unsolvable" || !strings.Contains(p.raw, "reasons") {
		t.Errorf("no reasons in %s", p.raw)
	}

	w.refusedSignIns(t, id)
	w.refusedStrangers(t, id)
	if status := user.cluster(id).Status; status != "pending" {
		t.Errorf("after all refusals the cluster is %s", status)
	}
}

// refusedSignIns tries requests without a right to be here.
func (w *world) refusedSignIns(t *testing.T, id string) {
	t.Helper()
	for name, token := range map[string]string{"none": "", "wrong": "loom_" + strings.Repeat("x", 40)} {
		c := &client{t: t, url: w.url, token: token}
		if p := c.refused(401, "GET", "/v2/clusters/"+id, nil); strings.Contains(p.raw, "shop") {
			t.Errorf("token %s: the answer tells of the cluster: %s", name, p.raw)
		}
	}
	brief := strings.TrimSpace(w.loom("token", "create", "user", "--tenant", "demo", "--scope", "read", "--expires", "2s"))
	expired := &client{t: t, url: w.url, token: brief}
	w.eventually("the token to expire", func() error {
		status, data, err := expired.try("GET", "/v2/clusters", nil)
		if err == nil && status != http.StatusUnauthorized {
			err = fmt.Errorf("status %d: %.100s", status, data)
		}
		return err
	})
	if p := expired.refused(401, "GET", "/v2/clusters", nil); !strings.Contains(p.Detail, "expired") {
		t.Errorf("nothing says that the token has expired: %s", p.Detail)
	}
	reader := w.client("demo", "user", "read")
	if p := reader.refused(403, "DELETE", "/v2/clusters/"+id, nil); !strings.Contains(p.Detail, "clusters:write") {
		t.Errorf("nothing names the missing scope: %s", p.Detail)
	}
}

// refusedStrangers tries the cluster from another tenant, whose administrator
// must not even learn that it exists.
func (w *world) refusedStrangers(t *testing.T, id string) {
	t.Helper()
	w.loom("tenant", "create", "acme")
	stranger := w.client("acme", "admin", "admin")
	unknown := stranger.refused(404, "GET", "/v2/clusters/00009999", nil)
	for _, r := range []struct{ method, path string }{
		{"GET", ""}, {"DELETE", ""}, {"GET", "/status"}, {"GET", "/operations"}, {"GET", "/operations/1/tasks"}, {"GET", "/config"}, {"GET", "/plans"},
		{"GET", "/operations/1/tasks/1/log"},
	} {
		p := stranger.refused(404, r.method, "/v2/clusters/"+id+r.path, nil)
		if strings.ReplaceAll(p.Detail, id, "00009999") != unknown.Detail {
			t.Errorf("%s %s: a foreign cluster is told from an unknown one: %q and %q", r.method, r.path, p.Detail, unknown.Detail)
		}
	}
	var list []any
	stranger.call("GET", "/v2/clusters", nil, &list)
	if len(list) != 0 {
		t.Errorf("a stranger sees %v", list)
	}
}
