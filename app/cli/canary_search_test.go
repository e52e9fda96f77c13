package cli

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// document is the OpenAPI document: the table of all routes.
func (c *canary) document() map[string]map[string]struct {
	Responses map[string]struct {
		Content map[string]any `json:"content"`
	} `json:"responses"`
} {
	c.t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]any `json:"content"`
			} `json:"responses"`
		} `json:"paths"`
	}
	_, answer := c.send("GET", "/v2/openapi.json", "")
	c.must(json.Unmarshal([]byte(answer), &doc))
	return doc.Paths
}

func (c *canary) has(method, path string) bool {
	_, ok := c.document()[path][method]
	return ok
}

// walk reads every route of the table, with ids of what is there.
func (c *canary) walk(cluster string) {
	c.t.Helper()
	found, asked := 0, 0
	for path, methods := range c.document() {
		get, ok := methods["get"]
		if !ok {
			continue
		}
		for _, p := range c.fill(path, cluster) {
			for media := range get.Responses["200"].Content {
				asked++
				status, answer := c.send("GET", p, "", "Authorization", "Bearer "+c.token, "Accept", media)
				c.note("GET "+p+" as "+media, answer)
				if status == http.StatusOK {
					found++
				} else if status >= 500 {
					c.t.Errorf("GET %s: %d %s", p, status, answer)
				}
			}
		}
	}
	if found < 40 || found < asked/2 {
		c.t.Errorf("only %d of %d reads found something", found, asked)
	}
}

// fill puts ids into the places of a path; a path may be read for several.
func (c *canary) fill(path, cluster string) []string {
	c.t.Helper()
	text := func(query string) string {
		var s string
		_ = c.db.Get(&s, query) //nolint:errcheck // nothing there is fine: the route then answers 404
		return s
	}
	names := map[string]string{
		"clusters/{id}": cluster, "{nodeId}": text(`SELECT id::text FROM nodes ORDER BY number LIMIT 1`), "nodes/{id}": text(`SELECT id::text FROM nodes ORDER BY number LIMIT 1`),
		"previews/{id}": text(`SELECT id::text FROM previews LIMIT 1`), "tokens/{id}": "1", "users/{id}": "admin", "hooks/{id}": text(`SELECT min(id)::text FROM hooks`), "groups/{id}": text(insertGroup), "identity-providers/{id}": text(insertIdentity), "members/{user}": "user",
		"sessions/{id}": text(`SELECT encode(id, 'hex') FROM sessions LIMIT 1`), "processes/{id}": text(`SELECT id FROM processes LIMIT 1`),
		"{n}": "1", "{t}": "1", "{r}": "1", "{v}": "1", "{planId}": cluster + "-001", "{service}": "talk", "providers/{name}": "vault", "tenants/{name}": "demo",
		"providertypes/{name}": "vault", "automatortypes/{name}": "leaky", "hardwaretypes/{name}": "plain", "imagetypes/{name}": "plain",
		"services/{name}": "talk", "clustertemplates/{name}": "talk", "{resource}": "mine", "{version}": "1",
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if !strings.HasPrefix(s, "{") {
			continue
		}
		value := names[segments[i-1]+"/"+s]
		if value == "" {
			value = names[s]
		}
		if s == "{version}" && slices.Contains(segments, "plugins") && i+1 < len(segments) {
			value = "ssh_keys" // the resource type stands in this place
		}
		segments[i] = url.PathEscape(value)
	}
	all := []string{strings.Join(segments, "/")}
	if strings.HasPrefix(path, "/v2/providers/{name}") {
		all = append(all, strings.Replace(all[0], "/vault", "/later", 1))
	}
	if strings.HasPrefix(path, "/v2/plugins/providertypes/{name}/{version}") && !strings.Contains(path, "{resource}") {
		all = append(all, strings.TrimSuffix(all[0], "/1")+"/ssh_keys")
	}
	if strings.Contains(path, "/tasks/{t}") {
		for t := 2; t <= 8; t++ {
			all = append(all, strings.Replace(all[0], "/tasks/1", fmt.Sprintf("/tasks/%d", t), 1))
		}
	}
	return all
}

// forms are how a secret may be written down.
func forms(text string) []string {
	quoted, _ := json.Marshal(text) //nolint:errcheck // a text
	return []string{
		text, strings.Trim(string(quoted), `"`), url.QueryEscape(text), url.PathEscape(text), hex.EncodeToString([]byte(text)),
		strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(text)), "="), strings.TrimRight(base64.URLEncoding.EncodeToString([]byte(text)), "="),
	}
}

// inClear says where a secret may stand: a cluster's config is given back as it
// was given, also in the JSON that its pages offer, but not in what is
// written about it.
func inClear(what, where string) bool {
	if what != "config" {
		return false
	}
	if strings.HasPrefix(where, "page /clusters/") && (strings.Contains(where, "as=json") || strings.Contains(where, "as=pane")) {
		return true
	}
	return where == "table clusters" || where == "table config_revisions" || where == "table previews" ||
		strings.Contains(where, "/config") || strings.HasPrefix(where, "GET /v2/clusters/") && !strings.Contains(where, "/operations") && !strings.Contains(where, "/plans")
}

// search looks for every secret in every place.
func (c *canary) search(when string) {
	c.t.Helper()
	places := map[string]string{}
	var tables []string
	c.must(c.db.Select(&tables, `SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`))
	if len(tables) < 25 {
		c.t.Fatalf("only %d tables", len(tables))
	}
	for _, table := range tables {
		var rows []string
		c.must(c.db.Select(&rows, `SELECT to_jsonb(x)::text FROM `+table+` x`)) // bytes in hexadecimal digits
		places["table "+table] = strings.Join(rows, "\n")
	}
	places["log"] = c.log.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, answer := range c.answers {
		places[what] = answer
	}
	// The search finds what is there.
	for _, where := range []string{"table catalog_versions", "table task_logs", "table attempts"} {
		if !strings.Contains(places[where], openly) {
			c.t.Errorf("%s: the %s holds nothing of what was planted", when, where)
		}
	}
	if !strings.Contains(strings.Join(slices.Collect(maps.Values(c.answers)), ""), openly) || !strings.Contains(places["log"], "scheduler started") {
		c.t.Errorf("%s: answers or log were not kept", when)
	}
	for what, text := range c.secrets {
		for where, content := range places {
			if inClear(what, where) {
				continue
			}
			for _, form := range forms(text) {
				if at := strings.Index(content, form); at >= 0 {
					c.t.Errorf("%s: the %s is in %s: …%s…", when, what, where, content[max(0, at-120):min(len(content), at+60)])
					break
				}
			}
		}
	}
}
