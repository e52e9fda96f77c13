package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
)

func TestNoTenantReadsOrChangesRowsOfAnother(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	ctx := context.Background()
	fill(t, ctx, db)
	before := rowsOf(t, ctx, db, own)
	if !strings.Contains(before, mark) || strings.Contains(rowsOf(t, ctx, db, other), mark) {
		t.Fatal("the rows are not as this test needs them")
	}
	for _, name := range tenantFunctions(t) {
		trespass, ok := trespassers[name]
		if !ok {
			t.Errorf("store.%s takes a tenant but is not in this test", name)
			continue
		}
		// Each in a transaction of its own, undone afterwards, so that they do not
		// prepare the way for each other.
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := trespass(ctx, tx, other)
		if err == nil {
			text, jsonErr := json.Marshal(got)
			if jsonErr != nil {
				t.Fatal(jsonErr)
			}
			if strings.Contains(string(text), mark) {
				t.Errorf("store.%s gives a tenant what belongs to another: %s", name, text)
			}
			if after := rowsOf(t, ctx, tx, own); after != before {
				t.Errorf("store.%s changes rows of another tenant: from\n%s\nto\n%s", name, before, after)
			}
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		// The same call by the owner works: a function that always fails shows nothing.
		tx, err = db.BeginTxx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := trespass(ctx, tx, own); err != nil && !strings.HasPrefix(name, "Insert") && name != "BeginIdempotent" {
			t.Errorf("store.%s fails for the owner of the rows: %v", name, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

// tenantFunctions finds the exported functions that take a tenant, do not cross tenants by
// their name and are not in untried.
func tenantFunctions(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Recv != nil || strings.HasSuffix(f.Name.Name, "AllTenants") || slices.Contains(untried, f.Name.Name) {
				continue
			}
			for _, p := range f.Type.Params.List {
				if s, ok := p.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "TenantID" {
					names = append(names, f.Name.Name)
					break
				}
			}
		}
	}
	if len(names) < 40 {
		t.Fatalf("only %d functions were found", len(names))
	}
	slices.Sort(names)
	return names
}

func ownService() *loom.Service {
	return &loom.Service{Base: loom.Base{Name: mark, Description: mark, Version: 1}}
}

func fill(t *testing.T, ctx context.Context, db *testkit.Database) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO tenants (id, name, description, resource_set) VALUES ('t-own', 'MARKED', 'MARKED', 7), ('t-other', 'other', '', 0)`,
		`INSERT INTO users (tenant_id, id, display_name, password_hash, ssh_keys, profile) VALUES ('t-own', 'MARKED-user', 'MARKED', 'MARKED', '{MARKED}', '{"x": "MARKED"}')`,
		`INSERT INTO sessions (id, tenant_id, user_id, address, expires_at) VALUES ('MARKED-hash', 't-own', 'MARKED-user', 'MARKED', now() + interval '1 h')`,
		`INSERT INTO tokens (id, tenant_id, user_id, name, prefix, hash, scopes) OVERRIDING SYSTEM VALUE VALUES (1, 't-own', 'MARKED-user', 'MARKED', 'MARKED', 'MARKED', '{read}')`,
		`INSERT INTO token_old_secrets (hash, tenant_id, token_id, ends_at) VALUES ('MARKED-old', 't-own', 1, now() + interval '1 h')`,
		`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ('t-own', 'provider:MARKED', 'pin', 'MARKED')`,
		`INSERT INTO idempotency_keys (tenant_id, user_id, key, path, body_hash, status, response) VALUES ('t-own', 'MARKED-user', 'MARKED', '/', 'x', 200, 'MARKED')`,
		`INSERT INTO resources (tenant_id, kind, plugin, type, name, version, live, size_bytes, sha256, format, object) VALUES ('t-own', 'automatortypes', 'shell', 'scripts', 'MARKED.sh', 1, true, 1, '', 'file', 'MARKED')`,
		`INSERT INTO resource_numbers (tenant_id, kind, plugin, type, name, highest) VALUES ('t-own', 'automatortypes', 'shell', 'scripts', 'MARKED.sh', 3)`,
		`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result, after) VALUES ('t-own', 'MARKED-user', 'session', 'create', 'service', 'MARKED', 'ok', '{"x": "MARKED"}')`,
		`INSERT INTO audit (id, tenant_id, actor, via, verb, kind, object, result, before) OVERRIDING SYSTEM VALUE
			VALUES (998, 't-own', 'MARKED-user', 'session', 'delete', 'service', 'MARKED-gone', 'ok', '{"name": "MARKED-gone"}')`,
		`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services) VALUES (1, 't-own', 'MARKED-user', 'MARKED', 'active', 'x', 1, '{}', 'x', '{}', '{}')`,
		`INSERT INTO config_revisions (tenant_id, cluster_id, revision, config, author, operation) VALUES ('t-own', 1, 1, '{"x": "MARKED"}', 'MARKED-user', 1)`,
		`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by) OVERRIDING SYSTEM VALUE VALUES (1, 't-own', 1, 1, 'cluster_create', 'complete', 'MARKED-user')`,
		`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, service_files) VALUES ('00000000-0000-4000-8000-000000000001', 1, 't-own', 1000, 'MARKED', 'MARKED', 'x', 'x', 'x', 'x', '{MARKED}', '{}', '{"MARKED": {"start": {"shell/scripts/MARKED.sh": "old"}}}')`,
		`INSERT INTO node_health (node_id, tenant_id, cluster_id, incarnation, operation, status, message) VALUES ('00000000-0000-4000-8000-000000000001', 't-own', 1, 1, 1, 'failing', 'MARKED')`,
		`INSERT INTO node_load (node_id, incarnation, slot, points) VALUES ('00000000-0000-4000-8000-000000000001', 1, extract(epoch FROM now())::bigint / 300, '\x010203')`,
		`INSERT INTO cluster_health (cluster_id, tenant_id, status) VALUES (1, 't-own', 'failing')`,
		`INSERT INTO incidents (tenant_id, cluster_id, node_id, kind, message) VALUES ('t-own', 1, '00000000-0000-4000-8000-000000000001', 'disk', 'MARKED')`,
		`INSERT INTO groups (id, tenant_id, name) OVERRIDING SYSTEM VALUE VALUES (7, 't-own', 'MARKED')`,
		`INSERT INTO group_members (tenant_id, group_id, user_id, added_by) VALUES ('t-own', 7, 'MARKED-user', 'MARKED')`,
		`INSERT INTO groups (id, tenant_id, name) OVERRIDING SYSTEM VALUE VALUES (8, 't-own', 'MARKED too')`,
		`INSERT INTO identity_providers (id, tenant_id, name, issuer, client_id, user_claim, subject_claim, max_age_days, enabled) VALUES ('idp', 't-own', 'MARKED', 'https://MARKED.example', 'MARKED', 'name', 'sub', 30, true)`,
		`INSERT INTO identity_rules (provider_id, place, conditions, tenant_id, group_id) VALUES ('idp', 0, '[]', 't-own', 8)`,
		`INSERT INTO identities (provider_id, subject, claims) VALUES ('idp', '1', '{"name":"MARKED"}')`,
		`INSERT INTO identity_users (provider_id, subject, tenant_id, user_id) VALUES ('idp', '1', 't-own', 'MARKED-user')`,
		`INSERT INTO role_bindings (id, tenant_id, user_id, role, cluster_id, created_by) OVERRIDING SYSTEM VALUE VALUES (8, 't-own', 'MARKED-user', 'operator', 1, 'MARKED')`,
		`INSERT INTO role_bindings (tenant_id, group_id, role, template, created_by) VALUES ('t-own', 7, 'operator', 'x', 'MARKED')`,
		`INSERT INTO rollouts (tenant_id, number, kind, request, settings, hash, status, why, wave, waves, unaffected, created_by) VALUES ('t-own', 7, 'MARKED', '{}', '{}', 'MARKED', 'running', 'MARKED', 1, 1, 0, 'MARKED-user')`,
		`INSERT INTO rollout_clusters (rollout_id, tenant_id, cluster_id, wave, place, effect, nodes, replaced, tasks, digest, status, note, operation) SELECT id, 't-own', 1, 1, 1, 'MARKED', 1, 0, '{}', 'MARKED', 'running', 'MARKED', 1 FROM rollouts`,
		`INSERT INTO maintenance (tenant_id, cluster_id, until, reason, by_user) VALUES ('t-own', 1, now() + interval '1 h', 'MARKED', 'MARKED-user')`,
		`INSERT INTO journals (id, tenant_id, cluster_id, node_id, service, user_id, lines, follow, wanted_until, process_id, message) VALUES ('00000000-0000-4000-8000-000000000002', 't-own', 1, '00000000-0000-4000-8000-000000000001', 'MARKED', 'MARKED-user', 10, true, now() + interval '1 h', 'p-own', 'MARKED')`,
		`INSERT INTO journal_lines (journal_id, seq, at, text) VALUES ('00000000-0000-4000-8000-000000000002', 1, now(), 'MARKED')`,
		`INSERT INTO tasks (id, operation_id, tenant_id, cluster_id, number, node_id, service, action, status, message) OVERRIDING SYSTEM VALUE VALUES (1, 1, 't-own', 1, 1, '00000000-0000-4000-8000-000000000001', 'MARKED', 'start', 'ready', 'MARKED')`,
		`INSERT INTO attempts (task_id, number, process_id, status, message, stdout) VALUES (1, 1, 'p', 'failed', 'MARKED', 'MARKED')`,
		`INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, text) VALUES (1, 1, 1, 1, '00000000-0000-4000-8000-000000000001', now(), 'stdout', 'MARKED')`,
		`INSERT INTO hooks (id, tenant_id, name, url, events) OVERRIDING SYSTEM VALUE VALUES (1, 't-own', 'MARKED', 'https://MARKED/', '{start}')`,
		`INSERT INTO hook_deliveries (id, hook_id, tenant_id, operation_id, event, notice, error) OVERRIDING SYSTEM VALUE VALUES (999, 1, 't-own', 1, 'start', '{"x": "MARKED"}', 'MARKED')`,
		`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ('t-own', 'hook:1', 'secret', 'MARKED')`,
		`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ('t-own', 'node:00000000-0000-4000-8000-000000000001', 'ssh-auth', 'MARKED')`,
		`INSERT INTO provider_requests (id, tenant_id, provider_name, purpose, requested_by, ended_at, probe) OVERRIDING SYSTEM VALUE VALUES (997, 't-own', 'MARKED', 'probe', 'MARKED', now(), '{"Images": [{"id": "MARKED"}]}')`,
		`INSERT INTO provider_requests (id, tenant_id, provider_name, purpose, requested_by, ended_at, digest, probe) OVERRIDING SYSTEM VALUE VALUES (994, 't-own', 'MARKED', 'draft', 'MARKED', now(), 'MARKED', '{"Images": [{"id": "MARKED"}]}')`,
		`INSERT INTO provider_requests (id, tenant_id, provider_name, purpose, requested_by, ended_at, offer_kind, offer_id, probe) OVERRIDING SYSTEM VALUE VALUES (996, 't-own', 'MARKED', 'verify', 'MARKED', now(), 'image', 'MARKED', '{"Images": [{"id": "MARKED"}]}')`,
		`INSERT INTO provider_requests (id, tenant_id, provider_name, purpose, requested_by, sealed) OVERRIDING SYSTEM VALUE VALUES (995, 't-own', 'MARKED', 'draft', 'MARKED', 'MARKED')`,
		`INSERT INTO provider_requests (id, tenant_id, provider_name, purpose, requested_by) OVERRIDING SYSTEM VALUE VALUES (998, 't-own', 'MARKED', 'sweep', 'MARKED')`,
		`INSERT INTO orphans (id, tenant_id, provider_name, machine_id, name, cluster_id, node_id) OVERRIDING SYSTEM VALUE VALUES (999, 't-own', 'MARKED', 'MARKED', 'MARKED', 1, '00000000-0000-4000-8000-000000000001')`,
		`UPDATE clusters SET expires_at = '2030-01-01T00:00:00Z'`,
		`INSERT INTO lease_ends (cluster_id, tenant_id, expires_at, problem) VALUES (1, 't-own', '2030-01-01T00:00:00Z', 'MARKED')`,
		`INSERT INTO leftovers (id, tenant_id, cluster_id, node_id, incarnation, provider_name, machine_id) OVERRIDING SYSTEM VALUE VALUES (996, 't-own', 1, '00000000-0000-4000-8000-000000000001', 1, 'MARKED', 'MARKED')`,
		`INSERT INTO processes (id, kind, host, only_tenant, plugins, expires_at) VALUES ('p-own', 'provisioner', 'h', 't-own', '{MARKED}', now() + interval '1 h')`,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	err := store.Exec(ctx, db.DB, func(tx *sqlx.Tx) error {
		for _, kind := range loom.EntityKinds {
			entry := loom.NewEntry(kind)
			*entry.Meta() = loom.Base{Name: mark, Description: mark, Version: 1}
			if kind == loom.KindService {
				entry = ownService()
			}
			if _, err := store.InsertCatalogVersion(ctx, tx, own, kind, entry, ownUser); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rowsOf gives all rows of a tenant in the tables that are filled, as text.
func rowsOf(t *testing.T, ctx context.Context, q sqlx.QueryerContext, tenant loom.TenantID) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{"users", "sessions", "tokens", "token_old_secrets", "secrets", "idempotency_keys", "catalog_versions", "resources", "resource_numbers", "audit", "hooks", "hook_deliveries", "clusters", "config_revisions", "nodes", "journals", "tasks", "provider_requests", "orphans", "leftovers", "lease_ends", "rollouts", "rollout_clusters"} {
		query := fmt.Sprintf(`SELECT coalesce(string_agg(r::text, E'\n' ORDER BY r::text), '') FROM %s r WHERE tenant_id = $1`, table)
		var rows string
		if err := sqlx.GetContext(context.Background(), q, &rows, query, tenant); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s: %s\n", table, rows)
	}
	var row string
	if err := sqlx.GetContext(ctx, q, &row, `SELECT r::text FROM tenants r WHERE id = $1`, tenant); err != nil {
		t.Fatal(err)
	}
	return all.String() + row
}

func nothing(f func(context.Context, *sqlx.Tx, loom.TenantID) error) trespasser {
	return func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) { return nil, f(ctx, tx, t) }
}

func reads[T any](f func(context.Context, sqlx.ExtContext, loom.TenantID) (T, error)) trespasser {
	return func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) { return f(ctx, tx, t) }
}

// leak turns "there was something" into the mark.
func leak(found bool) string {
	if found {
		return mark
	}
	return ""
}
