package store_test

import (
	"context"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
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

// trespassers has an entry for every function that takes a tenant, but those in untried.
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
	"ReleasedCatalogEntry": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.ReleasedCatalogEntry(ctx, tx, t, loom.KindService, mark, 0)
	},
	"ReleasedCatalogEntries": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.ReleasedCatalogEntries(ctx, tx, t, loom.EntityKinds...)
	},
	"SetReleased": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		changed, err := store.SetReleased(ctx, tx, t, loom.KindService, mark, 1, false)
		return leak(changed), err
	},
	"SetDeprecation": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		changed, err := store.SetDeprecation(ctx, tx, t, loom.KindService, mark, 1, "old")
		return leak(changed), err
	},
	"NewestCatalogEntries": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.NewestCatalogEntries(ctx, tx, t, loom.EntityKinds...)
	},
	"ClustersMadeFrom": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		var all []loom.ClusterID
		for _, kind := range loom.EntityKinds {
			ids, err := store.ClustersMadeFrom(ctx, tx, t, store.Viewer{}, kind, mark)
			if err != nil {
				return nil, err
			}
			all = append(all, ids...)
		}
		return leak(len(all) > 0), nil
	},
	"CatalogVersions": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		infos, err := store.CatalogVersions(ctx, tx, t, loom.KindService, mark, false)
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
	"DeleteCatalogBut": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.DeleteCatalogBut(ctx, tx, t, nil)
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
	"Provider": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.Provider(ctx, tx, t, mark)
	},
	"Services": reads(store.Services),
	"Secrets": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		sealed, err := store.Secrets(ctx, tx, t, "provider:"+mark)
		return leak(len(sealed) > 0), err
	},
	"SignInSecrets": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		found, err := store.SignInSecrets(ctx, tx, t, 1)
		return leak(found.Public != nil || found.Private || len(found.Nodes) > 0), err
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
	"CountIdempotent": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		n, err := store.CountIdempotent(ctx, tx, t, ownUser, "")
		return leak(n > 0), err
	},
	"FinishIdempotent": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.FinishIdempotent(ctx, tx, t, ownUser, mark, store.KeptAnswer{Status: 500}, nil, 0)
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
		_, changed, err := store.SyncResources(ctx, tx, t, loom.ResourceRef{}, 0)
		return leak(changed > 0), err
	},
	"NewResourceSet": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.NewResourceSet(ctx, tx, t)
	},
	"Hooks": reads(store.Hooks),
	"HookOutcomes": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		outcomes, err := store.HookOutcomes(ctx, tx, t)
		if len(outcomes) > 0 {
			return mark, err // those of another tenant
		}
		return nil, err
	},
	"AuditValuesOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.AuditValuesOf(ctx, tx, t, "")
	},
	"FileNodes": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		nodes, err := store.FileNodes(ctx, tx, t, []loom.ResourceRef{{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "scripts", Name: mark}})
		if len(nodes) > 0 {
			return mark, err
		}
		return nil, err
	},
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
	"WaitingDeliveries": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.WaitingDeliveries(ctx, tx, t, 1)
	},
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
			Types: loom.TypeSettings{Hardware: map[string]map[string]string{"changed": {}}},
		})
	}),
	"SnapshotStart": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.SnapshotStart(ctx, tx, t, loom.OperationRef{Cluster: 1, Number: 1})
	},
	"SnapshotBefore": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.SnapshotBefore(ctx, tx, t, loom.OperationRef{Cluster: 1, Number: 1})
	},
	"CountClusters": reads(func(ctx context.Context, q sqlx.ExtContext, t loom.TenantID) (string, error) {
		c, err := store.CountClusters(ctx, q, t, store.ClusterFilter{}, store.ClusterFacets{}, store.Viewer{})
		return leak(c.All+c.Terminated > 0), err
	}),
	"ClusterNotices": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		states, rollout, err := store.ClusterNotices(ctx, tx, t, 1, []store.EntryVersion{{Kind: loom.KindService, Name: mark, Version: 1}})
		return leak(err == nil && (states[0].Newest > 0 || states[0].Deprecation != "" || rollout.Number > 0)), err
	},
	"ClusterIDs": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		ids, err := store.ClusterIDs(ctx, tx, t, store.ClusterFilter{})
		return leak(len(ids) > 0), err
	},
	"ClustersByIDs": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.ClustersByIDs(ctx, tx, t, []loom.ClusterID{1})
	},
	"NodesByClusters": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		return store.NodesByClusters(ctx, tx, t, []loom.ClusterID{1})
	},
	"MissingVersions": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		missing, err := store.MissingVersions(ctx, tx, t, []store.EntryVersion{{Kind: loom.KindService, Name: mark, Version: 1}})
		if err == nil && len(missing) == 0 {
			return mark, nil // it is another tenant's
		}
		return nil, err
	},
	"SetClusterTemplate": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.SetClusterTemplate(ctx, tx, t, 1, loom.Template{Base: loom.Base{Name: "changed", Version: 9}}, map[string]loom.Service{})
	}),
	"SetDeleteWanted": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
		return store.SetDeleteWanted(ctx, tx, t, 1, "changed")
	}),
	"TypicalDurations": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
		byKind, byAction, err := store.TypicalDurations(ctx, tx, t, mark)
		return leak(len(byKind)+len(byAction) > 0), err
	},
}

// untried are functions that this test does not try. TestForeignersSeeAndDoNothing of
// app/clusters asks the use cases of most of them for clusters of others.
var untried = strings.Fields(`
AddFacts AddProviderFields AttemptsByTask ClusterByID ClusterObject ClustersByTenant DeletePreview InsertCluster InsertNodes InsertPreview
LiveNodesOfTenant LockCluster LockOperation LockPreview LogLines MarkPreviewApplied NeighboursOfTask NewestVersions NodeActions NodeByID
NodeProperties NodesByCluster OperationByRef OperationRequest OperationsByCluster PlanByOperation PreviewByID ResourceBytes SetClusterStatus
TaskByRef TasksByOperation TellOwner UpdateCluster`)
