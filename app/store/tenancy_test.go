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
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
)

// The tenant whose rows are to stay its own, and the one that tries. Every text
// of the first holds its mark.
const (
	own   = loom.TenantID("t-own")
	other = loom.TenantID("t-other")
	mark  = "MARKED"
)

var (
	ownRef  = loom.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: mark + ".sh"}
	ownHash = []byte(mark + "-hash")
	ownUser = loom.UserID(mark + "-user")
)

// trespasser calls a store function as the other tenant, with everything else
// naming rows of the first. What it gives back must not hold the mark, and the
// rows must stay as they are.
type trespasser func(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) (any, error)

// trespassers has an entry for every function that takes a tenant, of the files
// in walked.
var trespassers = map[string]trespasser{
	"LockCatalogName": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.LockCatalogName(ctx, tx, t, loom.KindService, mark)
	}),
	"ShareCatalogName": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.ShareCatalogName(ctx, tx, t, loom.KindService, mark)
	}),
	"LockCatalog": nothing(store.LockCatalog),
	"PauseTenant": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.PauseTenant(ctx, tx, t, "other")
	},
	"ResumeTenant": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.ResumeTenant(ctx, tx, t)
	},
	"CatalogEntry": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.CatalogEntry(ctx, tx, t, loom.KindService, mark, 0)
	},
	"NewestCatalogEntries": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.NewestCatalogEntries(ctx, tx, t, loom.EntityKinds...)
	},
	"ClustersMadeFrom": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		var all []loom.ClusterID
		for _, kind := range loom.EntityKinds {
			ids, err := store.ClustersMadeFrom(ctx, tx, t, "", kind, mark)
			if err != nil {
				return nil, err
			}
			all = append(all, ids...)
		}
		return leak(len(all) > 0), nil
	},
	"CatalogEntriesByName": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.CatalogEntriesByName(ctx, tx, t, loom.KindService, []string{mark})
	},
	"CatalogVersions": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		infos, err := store.CatalogVersions(ctx, tx, t, loom.KindService, mark)
		return leak(len(infos) > 0), err
	},
	"CatalogVersionNumber": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		n, err := store.CatalogVersionNumber(ctx, tx, t, loom.KindService, mark)
		return leak(n > 0), err
	},
	"CatalogUnchanged": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		same, err := store.CatalogUnchanged(ctx, tx, t, loom.KindService, ownService())
		return leak(same), err
	},
	"InsertCatalogVersion": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		_, err := store.InsertCatalogVersion(ctx, tx, t, loom.KindService, ownService(), "x")
		return nil, err
	},
	"DeleteCatalogVersions": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		n, err := store.DeleteCatalogVersions(ctx, tx, t, loom.KindService, mark, 0)
		return leak(n > 0), err
	},
	"DeleteCatalogKinds": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.DeleteCatalogKinds(ctx, tx, t, loom.EntityKinds...)
	}),
	"ReplaceProviderVersion": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.ReplaceProviderVersion(ctx, tx, t, loom.Provider{Base: loom.Base{Name: mark, Version: 1}})
	}),
	"CatalogPage": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		page, _, total, err := store.CatalogPage(ctx, tx, t, loom.KindService, store.CatalogFilter{}, store.CatalogByName, time.Time{}, "", true, -1)
		return []any{page, leak(total > 0)}, err
	},
	"TemplateLookup": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.TemplateLookup(ctx, tx, t).Template(mark)
	},
	"MergedTemplate": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.MergedTemplate(ctx, tx, t, mark)
	},
	"Provider": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.Provider(ctx, tx, t, mark)
	},
	"Services":      reads(store.Services),
	"HardwareTypes": reads(store.HardwareTypes),
	"ImageTypes":    reads(store.ImageTypes),
	"LockTenant": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.LockTenant(ctx, tx, t)
	},
	"Tenant":   reads(store.Tenant),
	"QuotaUse": reads(store.QuotaUse),
	"UpdateTenant": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.UpdateTenant(ctx, tx, t, loom.Tenant{ID: own, Description: "changed"})
	}),
	"MaxTokenDays": reads(store.MaxTokenDays),
	"Settings":     reads(store.Settings),
	"SetSettings": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.SetSettings(ctx, tx, t, loom.Settings{RequireLease: true})
	}),
	"AssignedWorkers": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		n, err := store.AssignedWorkers(ctx, tx, t)
		return leak(n > 0), err
	},
	"DeleteTenant": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.DeleteTenant(ctx, tx, t)
	}),
	"User": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.User(ctx, tx, t, ownUser)
	},
	"LockUser": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.LockUser(ctx, tx, t, ownUser)
	},
	"Users": reads(store.Users),
	"InsertUser": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		_, err := store.InsertUser(ctx, tx, t, loom.User{ID: ownUser, Tenant: own, Role: loom.RoleUser}, "")
		return nil, err
	},
	"UpdateUser": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.UpdateUser(ctx, tx, t, loom.User{ID: ownUser, Tenant: own, Role: loom.RoleAdmin})
	}),
	"PasswordHash": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.PasswordHash(ctx, tx, t, ownUser)
	},
	"SetPasswordHash": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.SetPasswordHash(ctx, tx, t, ownUser, "changed")
	}),
	"SSHKeysOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.SSHKeysOf(ctx, tx, t, ownUser)
	},
	"RoleIn": func(_ context.Context, _ *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.RoleIn(t, "admin"), nil
	},
	"InsertSession": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		_, err := store.InsertSession(ctx, tx, t, []byte("new"), ownUser, "", "", time.Hour)
		return nil, err
	},
	"TouchSession": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.TouchSession(ctx, tx, t, ownHash, "changed")
	}),
	"SessionsOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.SessionsOf(ctx, tx, t, ownUser)
	},
	"LiveSession": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.LiveSession(ctx, tx, t, ownHash)
	},
	"SessionPage": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		items, next, prev, err := store.SessionPage(ctx, tx, t, ownUser, "", loom.Page{})
		return []any{items, next, prev}, err
	},
	"UserPage": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		items, next, prev, err := store.UserPage(ctx, tx, t, store.UserFilter{}, loom.Page{})
		return []any{items, next, prev}, err
	},
	"UserSummary": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.UserSummary(ctx, tx, t, ownUser)
	},
	"TouchUser": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.TouchUser(ctx, tx, t, ownUser)
	}),
	"LiveClustersOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		n, err := store.LiveClustersOf(ctx, tx, t, ownUser)
		return leak(n > 0), err
	},
	"DeleteUser": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.DeleteUser(ctx, tx, t, ownUser)
	}),
	"Profile": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		profile, err := store.Profile(ctx, tx, t, ownUser)
		return leak(profile != nil), err
	},
	"SetProfile": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.SetProfile(ctx, tx, t, ownUser, []byte("{}"))
	}),
	"DeleteSession": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.DeleteSession(ctx, tx, t, ownHash)
	}),
	"DeleteSessionsOf": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.DeleteSessionsOf(ctx, tx, t, ownUser, nil)
	}),
	"InsertToken": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		_, err := store.InsertToken(ctx, tx, t, loom.Token{Account: loom.Account{User: ownUser, Tenant: own}, Name: "x", Prefix: "x"}, []byte("new"))
		return nil, err
	},
	"TouchToken": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.TouchToken(ctx, tx, t, 1, "changed")
	}),
	"TokensOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.TokensOf(ctx, tx, t, ownUser)
	},
	"TokenPage": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		items, next, prev, err := store.TokenPage(ctx, tx, t, ownUser, "", loom.Page{})
		return []any{items, next, prev}, err
	},
	"RotateToken": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.RotateToken(ctx, tx, t, 1, []byte("other"), "x", time.Hour)
	}),
	"LockToken": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.LockToken(ctx, tx, t, 1)
	},
	"RevokeToken": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.RevokeToken(ctx, tx, t, 1)
	}),
	"RevokeTokensOf": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.RevokeTokensOf(ctx, tx, t, ownUser)
	}),
	"Secrets": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		sealed, err := store.Secrets(ctx, tx, t, "provider:"+mark)
		return leak(len(sealed) > 0), err
	},
	"PutSecrets": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.PutSecrets(ctx, tx, t, "provider:"+mark, "x", map[string][]byte{"pin": []byte("changed")})
	}),
	"DeleteSecrets": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.DeleteSecrets(ctx, tx, t, "provider:"+mark)
	}),
	"SecretEntities": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.SecretEntities(ctx, tx, t, "provider:")
	},
	"DeleteNodeSecrets": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.DeleteNodeSecrets(ctx, tx, t, 1)
	}),
	"LockNodeFacts": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.LockNodeFacts(ctx, tx, t, "00000000-0000-4000-8000-000000000001")
	},
	"ReplaceNodeFacts": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.ReplaceNodeFacts(ctx, tx, t, "00000000-0000-4000-8000-000000000001", map[string]any{"changed": true})
	}),
	"Audit": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.Audit(ctx, tx, t, store.AuditFilter{}, loom.Page{})
	},
	"BeginIdempotent": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		kept, err := store.BeginIdempotent(ctx, tx, t, ownUser, mark, "/", []byte("x"))
		return leak(kept != nil), err
	},
	"FinishIdempotent": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.FinishIdempotent(ctx, tx, t, ownUser, mark, store.KeptAnswer{Status: 500})
	}),
	"ForgetIdempotent": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.ForgetIdempotent(ctx, tx, t, ownUser, mark)
	}),
	"NextResourceNumber": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		n, err := store.NextResourceNumber(ctx, tx, t, ownRef)
		return leak(n > 1), err
	},
	"RaiseResourceNumber": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.RaiseResourceNumber(ctx, tx, t, ownRef, 99)
	}),
	"InsertResource": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		_, err := store.InsertResource(ctx, tx, t, loom.Resource{ResourceRef: ownRef, Version: 1, Format: "file"})
		return nil, err
	},
	"Resources": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.Resources(ctx, tx, t, loom.ResourceRef{})
	},
	"ResourcePage": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		items, next, prev, err := store.ResourcePage(ctx, tx, t, store.ResourceNameFilter{}, loom.Page{})
		return []any{items, next, prev}, err
	},
	"ResourcesWaiting": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		in, out, err := store.ResourcesWaiting(ctx, tx, t)
		return leak(in+out > 0), err
	},
	"LockResources": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.LockResources(ctx, tx, t, ownRef)
	},
	"LiveResources": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		set, live, err := store.LiveResources(ctx, tx, t)
		return []any{live, leak(set != 0)}, err
	},
	"SlateResource": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.SlateResource(ctx, tx, t, ownRef, 1, false)
	}),
	"DeleteResources": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.DeleteResources(ctx, tx, t, ownRef, 0)
	}),
	"SyncResources": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		_, changed, err := store.SyncResources(ctx, tx, t)
		return leak(changed > 0), err
	},
	"NewResourceSet": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.NewResourceSet(ctx, tx, t)
	},
	"Hooks": reads(store.Hooks),
	"HookByID": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.HookByID(ctx, tx, t, 1)
	},
	"LockHook": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.LockHook(ctx, tx, t, 1)
	},
	"InsertHook": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.InsertHook(ctx, tx, t, loom.Hook{ID: 1, Tenant: own, OnTimeout: loom.OnTimeoutGo})
	},
	"UpdateHook": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.UpdateHook(ctx, tx, t, loom.Hook{ID: 1, Tenant: own, OnTimeout: loom.OnTimeoutGo})
	}),
	"DeleteHook": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.DeleteHook(ctx, tx, t, 1)
	}),
	"Deliveries": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.Deliveries(ctx, tx, t, 1, store.DeliveryFilter{}, loom.Page{})
	},
	"SentDelivery": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		d, n, err := store.SentDelivery(ctx, tx, t, 1, 999)
		return []any{d, n}, err
	},
	"ReplayDelivery": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.ReplayDelivery(ctx, tx, t, 1, 999)
	},
	"InsertConfigRevision": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.InsertConfigRevision(ctx, tx, t, loom.OperationRef{Cluster: 1, Number: 1}, "x")
	}),
	"ConfigRevisions": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		all, err := store.ConfigRevisions(ctx, tx, t, 1)
		return leak(len(all) > 0), err
	},
	"ConfigOfRevision": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.ConfigOfRevision(ctx, tx, t, 1, 1)
	},
	"SetClusterConfig": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.SetClusterConfig(ctx, tx, t, 1, map[string]any{"changed": true})
	}),
	"SetLayout": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.SetLayout(ctx, tx, t, 1, store.NewLayout{
			Changed: []loom.Node{{ID: "00000000-0000-4000-8000-000000000001", Services: []string{"changed"}}},
			Leaving: []loom.NodeID{"00000000-0000-4000-8000-000000000001"}, Services: map[string]loom.Service{"changed": {Base: loom.Base{Name: "changed"}}},
			TypeSettings: store.TypeSettings{Hardware: map[string]map[string]string{"changed": {}}},
		})
	}),
	"SnapshotBefore": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.SnapshotBefore(ctx, tx, t, loom.OperationRef{Cluster: 1, Number: 1})
	},
	"SetClusterTemplate": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.SetClusterTemplate(ctx, tx, t, 1, loom.Template{Base: loom.Base{Name: "changed", Version: 9}})
	}),
	"SetDeleteWanted": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.SetDeleteWanted(ctx, tx, t, 1, "changed")
	}),
	"TypicalDurations": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		byKind, byAction, err := store.TypicalDurations(ctx, tx, t, mark)
		return leak(len(byKind)+len(byAction) > 0), err
	},
}

// walked are the files whose functions must all be in trespassers.
var walked = []string{
	"tenant.go", "user.go", "user_list.go", "session.go", "signin.go", "token.go", "secret.go", "node_secret.go", "catalog.go", "catalog_list.go", "catalog_uses.go",
	"template.go", "resource.go", "audit.go", "idempotency.go", "hook.go", "hook_delivery.go", "overview.go",
	"cluster_change.go", "layout.go", "queue_pause.go",
}

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

// tenantFunctions finds the exported functions of the walked files that take a
// tenant and do not cross tenants by their name.
func tenantFunctions(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, file := range walked {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(".", file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Recv != nil || strings.HasSuffix(f.Name.Name, "AllTenants") {
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
		`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider, services) VALUES (1, 't-own', 'MARKED-user', 'MARKED', 'active', 'x', 1, '{}', 'x', '{}', '{}')`,
		`INSERT INTO config_revisions (tenant_id, cluster_id, revision, config, author, operation) VALUES ('t-own', 1, 1, '{"x": "MARKED"}', 'MARKED-user', 1)`,
		`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by) OVERRIDING SYSTEM VALUE VALUES (1, 't-own', 1, 1, 'cluster_create', 'complete', 'MARKED-user')`,
		`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators) VALUES ('00000000-0000-4000-8000-000000000001', 1, 't-own', 1000, 'MARKED', 'MARKED', 'x', 'x', 'x', 'x', '{MARKED}', '{}')`,
		`INSERT INTO tasks (id, operation_id, tenant_id, cluster_id, number, node_id, service, action, status, message) OVERRIDING SYSTEM VALUE VALUES (1, 1, 't-own', 1, 1, '00000000-0000-4000-8000-000000000001', 'MARKED', 'start', 'ready', 'MARKED')`,
		`INSERT INTO attempts (task_id, number, process_id, status, message, stdout) VALUES (1, 1, 'p', 'failed', 'MARKED', 'MARKED')`,
		`INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, text) VALUES (1, 1, 1, 1, '00000000-0000-4000-8000-000000000001', now(), 'stdout', 'MARKED')`,
		`INSERT INTO hooks (id, tenant_id, name, url, events) OVERRIDING SYSTEM VALUE VALUES (1, 't-own', 'MARKED', 'https://MARKED/', '{start}')`,
		`INSERT INTO hook_deliveries (id, hook_id, tenant_id, operation_id, event, notice, error) OVERRIDING SYSTEM VALUE VALUES (999, 1, 't-own', 1, 'start', '{"x": "MARKED"}', 'MARKED')`,
		`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ('t-own', 'hook:1', 'secret', 'MARKED')`,
		`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ('t-own', 'node:00000000-0000-4000-8000-000000000001', 'ssh-auth', 'MARKED')`,
		`INSERT INTO provider_requests (id, tenant_id, provider_name, purpose, requested_by, ended_at, probe) OVERRIDING SYSTEM VALUE VALUES (997, 't-own', 'MARKED', 'probe', 'MARKED', now(), '{"Images": [{"id": "MARKED"}]}')`,
		`INSERT INTO provider_requests (id, tenant_id, provider_name, purpose, requested_by, ended_at, offer_kind, offer_id, probe) OVERRIDING SYSTEM VALUE VALUES (996, 't-own', 'MARKED', 'verify', 'MARKED', now(), 'image', 'MARKED', '{"Images": [{"id": "MARKED"}]}')`,
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

// rowsOf gives all rows of a tenant in the tables of the walked files, as text.
func rowsOf(t *testing.T, ctx context.Context, q sqlx.QueryerContext, tenant loom.TenantID) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{"users", "sessions", "tokens", "token_old_secrets", "secrets", "idempotency_keys", "catalog_versions", "resources", "resource_numbers", "audit", "hooks", "hook_deliveries", "clusters", "config_revisions", "nodes", "tasks", "provider_requests", "orphans", "leftovers", "lease_ends"} {
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
