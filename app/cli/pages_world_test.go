//go:build e2e

package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loom/app/api/wire"
	"loom/app/loom"
	"loom/app/testkit"
)

// pagesWorld is an instance with something on each page: clusters in every state,
// a catalog, hooks with deliveries, orphans.
type pagesWorld struct {
	*mockWorld
	admin *client
	// names fills the parameters of patterns, such as "{cluster}".
	names map[string]string
}

const pagesTemplate = `{"name": %[1]q, "label": "Template %[1]s", "description": "For looking at.", "compatibility": {"hardwaretypes": ["mock", "mock-large"], "imagetypes": ["mock"], "services": [%[2]s]},
	"constraints": {"size": {"min": 1, "max": 50}}, "defaults": {"services": [%[3]s], "provider": "mock", "hardwaretype": "mock", "imagetype": "mock", "config": {"greeting": "hello"}},
	"administration": {"leaseduration": {"initial": 86400000, "max": 864000000, "step": 86400000}}}`

func newPagesWorld(t *testing.T) *pagesWorld {
	t.Helper()
	db := testkit.NewDatabase(t)
	w := &pagesWorld{mockWorld: newMockWorld(t, makeWorld(t, []string{"LOOM_MOCK=true", "LOOM_MAX_ATTEMPTS=1", "LOOM_PROVISIONER_CAPACITY=13", "LOOM_HOOK_NETWORKS=127.0.0.0/8", "LOOM_DATABASE_URL=" + db.DSN}), db.DSN, 0, nil)}
	w.admin = w.client("demo", "admin", "admin")
	w.hook()
	w.catalog()
	w.clusters()
	w.files()
	w.office()
	return w
}

// files says of all nodes that they ran a script, half of them an older version: services
// without machines run none.
func (w *pagesWorld) files() {
	w.t.Helper()
	w.db.MustExec(`UPDATE nodes n SET service_files = jsonb_build_object(n.services[1], jsonb_build_object('install', jsonb_build_object('shell/scripts/hello.sh', r.sha256)))
		FROM resources r WHERE r.tenant_id = n.tenant_id AND r.name = 'hello.sh' AND r.version = 1 + n.number % 2 AND array_length(n.services, 1) > 0`)
}

// service is one whose actions take their time, or fail.
// circle is a picture that services bring as their icon, in base64.
const circle = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA4IDgiPjxjaXJjbGUgY3g9IjQiIGN5PSI0IiByPSIzIi8+PC9zdmc+"

func (w *pagesWorld) service(name string, delay, fail int, requires string) {
	w.t.Helper()
	action := fmt.Sprintf(`{"type": "mock", "fields": {"delay_ms": "%d", "fail_percent": "%d", "output_lines": "5"}}`, delay, fail)
	w.admin.call("POST", "/v2/services", fmt.Sprintf(`{"name": %q, "description": "A service to look at.", "icon": "data:image/svg+xml;base64,%s", "dependencies": {"runtime": {"requires": [%s]}}, "provisioner": {"actions":
		{"install": %[4]s, "configure": %[4]s, "initialize": %[4]s, "start": %[4]s, "stop": %[4]s, "remove": %[4]s}}}`, name, circle, requires, action), nil)
}

func (w *pagesWorld) catalog() {
	w.t.Helper()
	w.admin.call("POST", "/v2/hardwaretypes", `{"name": "mock-large", "description": "More of it.", "providermap": {"mock": {"flavor": "large"}}}`, nil)
	const scripts = "/v2/plugins/automatortypes/shell/scripts/hello.sh"
	for version := 1; version <= 2; version++ {
		w.admin.call("POST", scripts, fmt.Sprintf("#!/bin/sh\necho hello %d\n", version), nil)
	}
	w.admin.call("POST", scripts+"/versions/1/stage", nil, nil)
	w.admin.call("POST", "/v2/plugins/sync", nil, nil)
	w.service("base", 0, 0, "")
	w.service("front", 0, 0, `"base"`)
	w.service("extra", 0, 0, `"base"`)
	w.service("lame", 3_600_000, 0, "")
	w.service("broken", 0, 100, "")
	w.service("haunted", 0, 0, `"ghost"`) // which does not exist: something to fix
	w.admin.call("POST", "/v2/clustertemplates", fmt.Sprintf(pagesTemplate, "shop", `"base", "front", "extra"`, `"base", "front"`), nil)
	w.admin.call("POST", "/v2/clustertemplates", fmt.Sprintf(pagesTemplate, "waiting", `"lame"`, `"lame"`), nil)
	w.admin.call("POST", "/v2/clustertemplates", fmt.Sprintf(pagesTemplate, "failing", `"broken"`, `"broken"`), nil)
	w.admin.call("POST", "/v2/partialtemplates", `{"name": "lease", "description": "How long.", "administration": {"leaseduration": {"initial": 3600000, "max": 0, "step": 0}}}`, nil)
}

// clusters makes one that is active and was changed twice, a paused, a failed and
// a terminated one.
func (w *pagesWorld) clusters() {
	w.t.Helper()
	active := w.user.create("shop", 3, map[string]any{"name": "shop"})
	failed := w.user.create("failing", 2, map[string]any{"name": "failed"})
	gone := w.user.create("shop", 1, map[string]any{"name": "gone"})
	w.user.waitActive(active)
	w.user.change(active, "expand", map[string]any{"numMachines": 4})
	w.user.call("PUT", "/v2/clusters/"+active+"/config", `{"config": {"greeting": "good morning", "colour": "green"}}`, nil)
	w.user.waitActive(active)
	// A newer version of the template and of a service: banner, sync, upgrade.
	w.admin.call("PUT", "/v2/clustertemplates/shop", strings.Replace(fmt.Sprintf(pagesTemplate, "shop", `"base", "front", "extra"`, `"base", "front"`), "looking at", "looking at, again", 1), nil)
	w.user.waitActive(gone)
	w.user.call("DELETE", "/v2/clusters/"+gone, nil, nil)
	w.user.waitStatus(gone, loom.ClusterTerminated)
	w.user.waitStatus(failed, loom.ClusterIncomplete)
	// More nodes than the tenant has workers, so that some tasks wait for one.
	paused := w.user.create("waiting", w.count(`SELECT workers FROM tenants WHERE name = 'demo'`)+2, map[string]any{"name": "waiting-for-long"})
	w.eventually("tasks that take their time and others that wait", func() error {
		if n := w.count(`SELECT count(*) FROM tasks WHERE status = 'running' AND service = 'lame'`) + w.count(`SELECT count(*) FROM tasks WHERE status = 'ready' AND service = 'lame'`); n < 4 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	w.user.call("POST", "/v2/clusters/"+paused+"/pause", nil, nil)
	cluster := w.user.cluster(active)
	var preview wire.Preview
	w.admin.call("POST", "/v2/previews", map[string]any{"kind": "expand", "clusterId": active, "request": map[string]any{"numMachines": 6}}, &preview)
	w.names = map[string]string{"{cluster}": active, "{n}": "1", "{task}": "3", "{node}": string(cluster.Nodes[0].ID), "{service}": "base", "{template}": "shop", "{preview}": fmt.Sprint(preview.ID),
		"paused": paused, "failed": failed, "gone": gone, "{tenant}": "demo", "{chapter}": "clusters", "{version}": "1"}
	var waiting []wire.Task
	w.user.call("GET", "/v2/clusters/"+paused+"/operations/1/tasks?status=ready", nil, &waiting)
	if len(waiting) == 0 {
		w.t.Fatal("no task of the paused operation is ready")
	}
	w.names["ready"] = fmt.Sprint(waiting[0].Number)
	w.changed(cluster)
}

// changed gives the first node of a cluster a day of load, and a file that somebody changed.
func (w *pagesWorld) changed(cluster wire.Cluster) {
	w.t.Helper()
	points := make([]byte, 0, 3*loom.LoadPoints)
	for i := range loom.LoadPoints {
		switch {
		case i/20 == 7:
			points = append(points, 255, 255, 255)
		default:
			points = append(points, byte(15+10*(i/36%3)+i%7), byte(40+i/30), 23)
		}
	}
	w.db.MustExec(`INSERT INTO node_load (node_id, incarnation, slot, points) SELECT id, incarnation, extract(epoch FROM now())::bigint / 300 - 1, $2 FROM nodes WHERE id = $1`, cluster.Nodes[0].ID, points)
	w.db.MustExec(`INSERT INTO node_health (node_id, tenant_id, cluster_id, incarnation, operation, status, drift)
		SELECT n.id, n.tenant_id, n.cluster_id, n.incarnation, c.latest_operation, 'healthy', jsonb_build_array(
			jsonb_build_object('kind', 'file', 'service', 'base', 'file', '/etc/base/greeting.conf', 'since', now(), 'was', repeat('a', 64), 'now', repeat('b', 64)),
			jsonb_build_object('kind', 'file', 'service', 'base', 'file', '/etc/base/removed.conf', 'since', now(), 'was', repeat('a', 64)))
		FROM nodes n JOIN clusters c ON c.id = n.cluster_id WHERE n.id = $1
		ON CONFLICT (node_id) DO UPDATE SET drift = excluded.drift`, cluster.Nodes[0].ID)
}

// hook is one that is told of everything and one that nobody answers for.
func (w *pagesWorld) hook() {
	w.t.Helper()
	listener := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w.t.Cleanup(listener.Close)
	w.admin.call("POST", "/v2/hooks", map[string]any{"name": "tell", "url": listener.URL, "events": []string{"start", "success", "failure"}}, nil)
}

// insertRollout stores a rollout that stopped and has no clusters.
const insertRollout = `
INSERT INTO rollouts (tenant_id, number, kind, request, settings, hash, status, why, wave, waves, unaffected, created_by, started_by, started_at)
	SELECT t.id, (SELECT count(*) + 1 FROM rollouts), 'restart', '{"Change": {"Kind": "restart"}, "Waves": []}', '{"concurrency": 5, "maxFailed": 0, "pause": 600, "changed": "skip", "windows": []}',
		'x', 'stopped', 'Stopped by admin.', 1, 1, 0, 'admin', 'admin', now() FROM tenants t WHERE t.name = 'demo' RETURNING number::text`

// insertGroup stores a group with a member and a role.
const insertGroup = `
WITH made AS (INSERT INTO groups (tenant_id, name) SELECT t.id, 'Team ' || (SELECT count(*) FROM groups) FROM tenants t WHERE t.name = 'demo' RETURNING tenant_id, id),
	member AS (INSERT INTO group_members (tenant_id, group_id, user_id, added_by) SELECT tenant_id, id, 'user', 'admin' FROM made),
	role AS (INSERT INTO role_bindings (tenant_id, group_id, role, created_by) SELECT tenant_id, id, 'reader', 'admin' FROM made)
SELECT id::text FROM made`

// insertIdentity stores an identity provider with a rule, by which the user signs in.
const insertIdentity = `
WITH made AS (INSERT INTO identity_providers (id, tenant_id, name, issuer, client_id, user_claim, subject_claim, max_age_days, enabled)
		SELECT 'idp' || (SELECT count(*) FROM identity_providers), t.id, 'Example ' || (SELECT count(*) FROM identity_providers), 'https://id.example', 'loom', 'preferred_username', 'sub', 30, true
		FROM tenants t WHERE t.name = 'demo' RETURNING id, tenant_id),
	team AS (INSERT INTO groups (tenant_id, name) SELECT tenant_id, 'Staff of ' || id FROM made RETURNING tenant_id, id),
	rule AS (INSERT INTO identity_rules (provider_id, place, conditions, tenant_id, group_id) SELECT made.id, 0, '[{"claim": "groups", "op": "is", "value": "staff"}]', team.tenant_id, team.id FROM made, team),
	person AS (INSERT INTO identities (provider_id, subject, claims) SELECT id, '1', '{"name": "User Example", "groups": ["staff"]}' FROM made RETURNING provider_id, subject),
	link AS (INSERT INTO identity_users (provider_id, subject, tenant_id, user_id) SELECT provider_id, subject, made.tenant_id, 'admin' FROM person, made)
SELECT id FROM made`

// office fills what stands in no cluster.
func (w *pagesWorld) office() {
	w.t.Helper()
	one := func(query string) (text string) {
		w.t.Helper()
		w.eventually(query, func() error { return w.db.Get(&text, query) })
		return text
	}
	w.names["hook"] = one(`SELECT min(id)::text FROM hooks`)
	w.names["rollout"] = one(insertRollout)
	w.names["group"] = one(insertGroup)
	w.names["identity provider"] = one(insertIdentity)
	w.names["{delivery}"] = one(`SELECT id::text FROM hook_deliveries LIMIT 1`)
	w.names["{token}"] = one(`SELECT min(id)::text FROM tokens WHERE tenant_id = (SELECT id FROM tenants WHERE name = 'demo') AND user_id = 'user'`)
	w.names["own token"] = one(`SELECT min(id)::text FROM tokens WHERE tenant_id = (SELECT id FROM tenants WHERE name = 'demo') AND user_id = 'admin'`)
	w.names["{session}"] = one(`INSERT INTO sessions (id, tenant_id, user_id, agent, expires_at)
		SELECT sha256('a session'), id, 'user', 'a browser', now() + interval '1 hour' FROM tenants WHERE name = 'demo' RETURNING encode(id, 'hex')`)
	w.names["{probe}"] = one(`INSERT INTO provider_requests (tenant_id, provider_name, purpose, requested_by, started_at, ended_at, probe)
		SELECT id, '', 'draft', 'admin', now(), now(), '{"ok": true, "checks": [{"name": "sign in", "ok": true, "message": "The cloud takes the credentials.", "ms": 3}]}' FROM tenants WHERE name = 'demo' RETURNING id::text`)
	w.names["job"] = one(`SELECT coalesce(min(id), 1)::text FROM river_job`)
	// A newer version of a plugin type, so that there is one to remove.
	one(`INSERT INTO catalog_versions (tenant_id, kind, name, version, body) SELECT tenant_id, kind, name, version + 1, body
		FROM catalog_versions WHERE kind = 'providertypes' AND name = 'mock' AND version = 1 RETURNING name`)
	w.names["worker"] = one(`SELECT min(id) FROM processes WHERE kind = 'provisioner'`)
	w.names["orphan"] = one(`INSERT INTO orphans (tenant_id, provider_name, machine_id, name, cluster_id, node_id)
		SELECT id, 'mock', 'm-4711', 'forgotten', 4711, gen_random_uuid() FROM tenants WHERE name = 'demo' RETURNING id::text`)
}
