package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// secretMark is in the content of everything that acme has, and in nothing that
// the others send.
const secretMark = "MARKOFACME"

// foreignBodies are good bodies, by schema, of somebody who tries his hand at
// what is acme's. ids name acme's objects.
func foreignBodies(ids map[string]string) map[string]string {
	return map[string]string{
		"ClusterCreate":         `{"name":"x","clusterTemplate":"site","numMachines":3}`,
		"ClusterEdit":           `{"description":"changed"}`,
		"ExpiryChange":          `{"expireTime":4102444800000}`,
		"Configure":             `{"config":{"a":1}}`,
		"Expand":                `{"numMachines":4}`,
		"Shrink":                `{"numMachines":2}`,
		"ServicesAdd":           `{"services":["web"]}`,
		"MaintenanceBegin":      fmt.Sprintf(`{"until":%d,"reason":"new disks"}`, time.Now().Add(time.Hour).UnixMilli()),
		"Repair":                fmt.Sprintf(`{"nodes":[%q]}`, ids["nodeId"]),
		"GroupWrite":            `{"name":"changed"}`,
		"IdentityProviderWrite": `{"name":"changed"}`,
		"IdentityRulesWrite":    fmt.Sprintf(`{"rules":[{"conditions":[{"claim":"groups","op":"is","value":"x"}],"group":%q}],"hash":"x"}`, ids["groups/id"]),
		"BindingWrite":          `{"user":"ben","role":"reader"}`,
		"ShareWrite":            `{"user":"ben","role":"operator"}`,
		"Resize":                `{"hardwaretype":"small"}`,
		"Deprecation":           `{"message":"changed"}`,
		"Skip":                  `{"reason":"because"}`,
		"HookWrite":             `{"name":"mine","url":"https://example.org/hook"}`,
		"NodeWrite":             fmt.Sprintf(`{"id":%q,"clusterId":%q,"properties":{"hostname":"changed"}}`, ids["nodeId"], ids["clusters/id"]),
		"NodeQuery":             fmt.Sprintf(`{"clusterId":%q}`, ids["clusters/id"]),
		"PreviewRequest":        fmt.Sprintf(`{"kind":"delete","clusterId":%q,"request":{}}`, ids["clusters/id"]),
		"FleetRequest":          `{"kind":"update"}`,
		"RolloutRequest":        `{"kind":"update"}`,
		"RolloutStart":          `{"hash":"x"}`,
		"PreviewApply":          fmt.Sprintf(`{"hash":%q}`, ids["hash"]),
		"Provider":              `{"name":"NAME","description":"changed","providertype":"fake"}`,
		"HardwareType":          `{"name":"NAME","providermap":{}}`,
		"ImageType":             `{"name":"NAME","providermap":{}}`,
		"Service":               `{"name":"NAME","description":"changed"}`,
		"Template":              `{"name":"NAME","description":"changed","defaults":{"services":["web"],"provider":"lab"}}`,
		"PartialTemplate":       `{"name":"NAME","description":"changed"}`,
		"PluginType":            `{"name":"NAME","description":"changed"}`,
		"TenantWrite":           `{"tenant":{"name":"NAME","description":"changed"}}`,
		"TokenCreate":           `{"name":"t","scopes":["read"]}`,
		"UserCreate":            `{"id":"somebody"}`,
		"UserEdit":              `{"displayName":"changed"}`,
		"Fix":                   `{"code":"dangling","value":"nothing","fix":"remove"}`,
		"SettingsEdit":          `{"leaseReminderHours":[1]}`,
	}
}

// TestNoRouteLeadsIntoAnotherTenant walks all routes with the ids and names of
// one tenant's objects, as administrator and user of another tenant and as
// superadmin: nothing of the tenant is in an answer, nothing of it changes, and
// what is addressed by an id is not there.
func TestNoRouteLeadsIntoAnotherTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.markedTenant()
	foreignUser := w.token("other", "ana", loom.ScopeAdmin)
	before := w.rowsOf("acme")
	bodies := foreignBodies(ids)
	walked := 0
	for _, rt := range w.api.routes() {
		if rt.open || rt.path == "/v2/events" {
			continue
		}
		path, byID := w.foreignPath(rt.path, ids)
		for who, token := range map[string]string{"administrator of another tenant": w.foreign, "user of another tenant": foreignUser, "superadmin": w.super} {
			if who == "superadmin" && superadminsOwn(rt) {
				continue
			}
			body := w.foreignBody(rt, path, bodies)
			at := strings.SplitN(path, "/v2", 2)[1]
			for _, url := range append([]string{path}, filtered(rt, path, ids)...) {
				if who == "superadmin" && url == "/v2/audit?tenant=acme" {
					continue // theirs to read
				}
				answer := w.call(token, rt.method, url, body)
				walked++
				if strings.Contains(answer.body, secretMark) {
					t.Errorf("%s: %s %s gives away %.300s", who, rt.method, at, answer.body)
				}
				for _, name := range []string{"nodeId", "previews/id", "sessions/id"} {
					// The audit of the foreigners names what they tried.
					if rt.path != "/v2/audit" && strings.Contains(answer.body, ids[name]) && !strings.Contains(url+body, ids[name]) {
						t.Errorf("%s: %s %s tells the id of acme's %s", who, rt.method, at, name)
					}
				}
				if byID && !refusedAs404(rt, answer) {
					t.Errorf("%s: %s %s answers %d: %.200s", who, rt.method, at, answer.status, answer.body)
				}
			}
		}
		if after := w.rowsOf("acme"); !maps.Equal(after, before) {
			for table := range after {
				if after[table] != before[table] {
					t.Errorf("%s %s changed acme's %s", rt.method, rt.path, table)
				}
			}
			before = after
		}
	}
	if walked < 500 {
		t.Errorf("only %d requests were sent", walked)
	}
}

// superadminsOwn are calls that are about all tenants.
func superadminsOwn(rt route) bool {
	for _, start := range []string{"/v2/tenants", "/v2/provisioners", "/v2/processes", "/v2/orphans", "/v2/leftovers", "/v2/sweeps", "/v2/plugins", "/v2/queues", "/v2/riverjobs", "/v2/system"} {
		if strings.HasPrefix(rt.path, start) {
			return true
		}
	}
	return false
}

// refusedAs404: a role that is missing may be said first, since it says nothing of
// the object; deleting a node that is not there succeeds, as it did of old.
func refusedAs404(rt route, a reply) bool {
	switch {
	case a.status == http.StatusNotFound:
		return true
	case a.status == http.StatusForbidden:
		return !strings.Contains(rt.path, "/clusters/")
	case rt.path == "/v2/nodes/{id}" && rt.method == del:
		return a.status == http.StatusNoContent
	case rt.path == "/v2/nodes/{id}" && rt.method == put: // would make one, in a cluster that is not there
		return a.status == http.StatusBadRequest && strings.Contains(a.body, "There is no cluster")
	}
	return false
}

// foreignPath fills a path with what acme has. byID says that its last variable
// place is an id rather than a name that every tenant may have.
func (w *world) foreignPath(pattern string, ids map[string]string) (path string, byID bool) {
	w.t.Helper()
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, "{") {
			continue
		}
		name := strings.Trim(part, "{}")
		value, found := ids[parts[i-1]+"/"+name]
		if !found {
			value, found = ids[name]
		}
		if !found {
			for segment, v := range ids { // clusters/{id}/… with the id filled in already
				if strings.HasSuffix(segment, "/"+name) && strings.HasPrefix(pattern, "/v2/"+strings.TrimSuffix(segment, name)) {
					value, found = v, true
				}
			}
		}
		if !found {
			w.t.Errorf("say what acme's {%s} of %s is", name, pattern)
		}
		parts[i] = value
		byID = byID || slices.Contains([]string{"id", "n", "t", "nodeId", "planId", "d", "r"}, name)
	}
	return strings.Join(parts, "/"), byID
}

func (w *world) foreignBody(rt route, path string, bodies map[string]string) string {
	w.t.Helper()
	name, optional := strings.CutSuffix(rt.body, "?")
	switch {
	case rt.body == "" || name == "bytes" || name == "object" || name == "CatalogDocument":
		return "{}"
	case bodies[name] != "":
		return strings.ReplaceAll(bodies[name], "NAME", path[strings.LastIndexByte(path, '/')+1:])
	case optional:
		return ""
	case name == "Upgrade" || name == "Retry" || name == "ClusterDelete" || name == "OperationRequest":
		return "{}"
	}
	w.t.Errorf("say what a good %s is", name)
	return "{}"
}

// filtered asks lists for what belongs to acme by their filters.
func filtered(rt route, path string, ids map[string]string) []string {
	var out []string
	for _, p := range rt.query {
		value := map[string]string{
			"tenant": "acme", "cluster": ids["clusters/id"], "owner": "admin", "user": "carol", "q": secretMark, "actor": "carol", "object": ids["clusters/id"],
		}[p.name]
		if value != "" {
			out = append(out, path+"?"+p.name+"="+value)
		}
	}
	return out
}

// markedTenant gives acme one of everything, marked, and the ids and names of it.
func (w *world) markedTenant() map[string]string {
	w.t.Helper()
	ctx := w.t.Context()
	ids := map[string]string{"n": "1", "t": "1", "r": "1", "v": "1", "version": "1", "action": "start", "service": "web", "tenants/name": "acme", "queue": "tenant_acme", "riverjobs/id": "999999"}
	for kind, body := range map[string]string{
		"providers":        `{"name":"own","description":"MARK","providertype":"fake","provisioner":{"zone":"MARK"}}`,
		"hardwaretypes":    `{"name":"own","description":"MARK","providermap":{"lab":{"flavor":"s"}}}`,
		"imagetypes":       `{"name":"own","description":"MARK","providermap":{"lab":{"image":"i"}}}`,
		"services":         `{"name":"own","description":"MARK"}`,
		"partialtemplates": `{"name":"own","description":"MARK"}`,
		"clustertemplates": `{"name":"own","description":"MARK","defaults":{"services":["web"],"provider":"lab"}}`,
	} {
		w.call(w.admin, put, "/v2/"+kind+"/own", strings.ReplaceAll(body, "MARK", secretMark)).want(200)
		ids[kind+"/name"] = "own"
	}
	ids["automatortypes/name"], ids["providertypes/name"] = "shell", "fake"
	w.call(w.admin, post, "/v2/plugins/automatortypes/shell/scripts/own.sh", secretMark).want(200)
	ids["resource"] = "own.sh"
	w.call(w.admin, patch, "/v2/settings", `{"leaseReminderHours":[5]}`).want(200)
	w.call(w.admin, put, "/v2/profile", fmt.Sprintf(`{"note":%q}`, secretMark)).want(200)
	w.call(w.admin, post, "/v2/users", fmt.Sprintf(`{"id":"carol","displayName":%q,"password":"a long password"}`, secretMark)).want(200)
	ids["users/id"] = "carol"
	ids["hooks/id"] = fmt.Sprint(w.call(w.admin, post, "/v2/hooks", fmt.Sprintf(`{"name":%q,"url":"https://example.org/%[1]s"}`, secretMark)).want(200).object()["id"])
	ids["tokens/id"] = fmt.Sprint(w.call(w.admin, post, "/v2/tokens", fmt.Sprintf(`{"name":%q,"scopes":["read"]}`, secretMark)).want(200).object()["id"])
	acme, err := w.deps.Accounts.Tenant(ctx, superActor, "acme")
	w.must(err)
	hash := []byte("0123456789abcdef0123456789abcdef")
	w.tx(func(tx *sqlx.Tx) error {
		_, err := store.InsertSession(ctx, tx, acme.ID, hash, "carol", "10.1.1.1", secretMark, 3600e9)
		return err
	})
	ids["sessions/id"] = w.call(w.admin, get, "/v2/users/carol/sessions", "").want(200).array()[0]["id"].(string)
	id := w.call(w.admin, post, "/v2/clusters", fmt.Sprintf(`{"name":"own","description":%q,"clusterTemplate":"site","numMachines":3,
		"config":{"note":%[1]q},"labels":{"note":%[1]q}}`, secretMark)).want(200).object()["id"].(string)
	w.finish(id)
	ids["clusters/id"], ids["planId"] = id, id+"-001"
	node := w.call(w.admin, get, "/v2/clusters/"+id, "").want(200).object()["nodes"].([]any)[0].(map[string]any)
	ids["nodeId"], ids["nodes/id"] = node["id"].(string), node["id"].(string)
	w.exec(`INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, text)
		SELECT id, 1, 1, operation_id, node_id, now(), 'stdout', $1 FROM tasks WHERE NOT gate`, secretMark)
	preview := w.call(w.admin, post, "/v2/previews", fmt.Sprintf(`{"kind":"delete","clusterId":%q,"request":{}}`, id)).want(200).object()
	ids["previews/id"], ids["hash"] = preview["id"].(string), preview["hash"].(string)
	rollout := w.call(w.admin, post, "/v2/rollouts", fmt.Sprintf(`{"kind":"restart","q":"name:own","waves":[{"q":%q},{"rest":true}]}`, secretMark)).want(200).object()
	ids["rollouts/id"] = fmt.Sprint(rollout["number"])
	ids["groups/id"] = fmt.Sprint(w.call(w.admin, post, "/v2/groups", fmt.Sprintf(`{"name":"own","description":%q}`, secretMark)).want(200).object()["id"])
	w.call(w.admin, put, "/v2/groups/"+ids["groups/id"]+"/members/carol", "").want(200)
	ids["user"] = "carol"
	ids["identity-providers/id"] = w.call(w.admin, post, "/v2/identity-providers", fmt.Sprintf(`{"name":%q,"issuer":"https://id.example","clientId":"loom","clientSecret":"x"}`, secretMark)).want(200).object()["id"].(string)
	ids["bindings/id"] = fmt.Sprint(w.call(w.admin, post, "/v2/bindings", fmt.Sprintf(`{"group":%q,"role":"operator","template":"site"}`, ids["groups/id"])).want(200).object()["id"])
	ids["binding"] = fmt.Sprint(w.call(w.admin, post, "/v2/clusters/"+id+"/access", `{"user":"carol","role":"operator"}`).want(200).object()["id"])
	deliveries := w.call(w.admin, get, "/v2/hooks/"+ids["hooks/id"]+"/deliveries", "").want(200).array()
	if len(deliveries) == 0 {
		w.t.Fatal("the hook heard nothing")
	}
	ids["d"] = fmt.Sprint(deliveries[0]["id"])
	var probe int64
	w.must(w.db.Get(&probe, `INSERT INTO provider_requests (tenant_id, provider_name, purpose, requested_by, probe)
		SELECT id, '', 'draft', 'admin', jsonb_build_object('checks', jsonb_build_array(jsonb_build_object('name', 'sign in', 'message', $1::text))) FROM tenants WHERE name = 'acme' RETURNING id`, secretMark))
	ids["probe"] = fmt.Sprint(probe)
	var incident int64
	w.must(w.db.Get(&incident, `INSERT INTO incidents (tenant_id, cluster_id, node_id, kind, service, message) SELECT tenant_id, cluster_id, id, 'service', 'web', $2 FROM nodes WHERE id = $1::uuid RETURNING id`, ids["nodeId"], secretMark))
	ids["incidents/id"] = fmt.Sprint(incident)
	ids["orphans/id"], ids["processes/id"], ids["provisioners/id"] = "1", "none-00000001", "none-00000001"
	return ids
}

// rowsOf gives a digest of the rows of a tenant in every table that has a column
// for it, and of all tables that hang on clusters.
func (w *world) rowsOf(tenant string) map[string]string {
	w.t.Helper()
	var tables []string
	w.must(w.db.SelectContext(w.t.Context(), &tables, `SELECT table_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND column_name = 'tenant_id' ORDER BY 1`))
	if len(tables) < 12 {
		w.t.Fatalf("only the tables %v", tables)
	}
	digests := map[string]string{}
	for _, table := range tables {
		var digest string
		w.must(w.db.GetContext(w.t.Context(), &digest, fmt.Sprintf(`SELECT coalesce(md5(string_agg(r::text, ';' ORDER BY r::text)), '')
			FROM %s r WHERE r.tenant_id = (SELECT id FROM tenants WHERE name = $1)`, table), tenant))
		digests[table] = digest
	}
	for _, table := range []string{"attempts", "task_logs", "task_edges"} { // acme's alone in this world
		var digest string
		w.must(w.db.GetContext(w.t.Context(), &digest, fmt.Sprintf(`SELECT coalesce(md5(string_agg(r::text, ';' ORDER BY r::text)), '') FROM %s r`, table)))
		digests[table] = digest
	}
	return digests
}
