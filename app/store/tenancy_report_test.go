package store_test

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// What pages tell of the past, and acting in another tenant.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"Activity": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			list, err := store.Activity(ctx, tx, t, store.ActivityFilter{Kinds: []string{"cluster", "operation", "service", "resource", "node", "user", "task"}}, loom.Page{Limit: 100})
			return list, err
		},
		"ActivityNames": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			names, err := store.ActivityNames(ctx, tx, t, store.Viewer{})
			return names.Clusters, err
		},
		"LiveClusters": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			counts, err := store.LiveClusters(ctx, tx, t)
			return leak(len(counts) > 0), err
		},
		"BeginActing": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, err := store.BeginActing(ctx, tx, t, ownHash, t, time.Hour)
			return nil, err
		},
		"EndActing": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.EndActing(ctx, tx, t, ownHash)
		}),
		"NoteResourceFetch": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.NoteResourceFetch(ctx, tx, t, mark, 3)
		}),
		"ChecksOfCluster": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.ChecksOfCluster(ctx, tx, t, 1)
		},
		"HealthOfCluster": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			health, err := store.HealthOfCluster(ctx, tx, t, 1)
			return leak(health.Status != "" || len(health.Nodes) > 0), err
		},
		"LoadsOfNodes": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			loads, err := store.LoadsOfNodes(ctx, tx, t, 1, []loom.NodeID{"00000000-0000-4000-8000-000000000001"})
			return leak(len(loads) > 0), err
		},
		"Incidents": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			list, err := store.Incidents(ctx, tx, t, store.IncidentFilter{Cluster: 1}, loom.Page{Limit: 10})
			return leak(len(list.Items) > 0), err
		},
		"IncidentByID": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			i, err := store.IncidentByID(ctx, tx, t, 1)
			if errors.Is(err, loom.NotFound) {
				err = nil
			}
			return leak(i.ID != 0), err
		},
		"DecideIncident": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			changed, err := store.DecideIncident(ctx, tx, t, &loom.Incident{ID: 1, Decision: loom.RepairDeclined})
			return leak(changed), err
		},
		"PutMaintenance": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.PutMaintenance(ctx, tx, t, 1, nil, loom.Maintenance{Until: time.Now().Add(time.Hour), Reason: "x", By: "x"})
		}),
		"DeleteMaintenance": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			n, err := store.DeleteMaintenance(ctx, tx, t, 1, nil)
			return leak(n > 0), err
		},
		"OpenJournals": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			ofUser, ofNode, err := store.OpenJournals(ctx, tx, t, "MARKED-user", ownJournal.Node)
			return leak(ofUser+ofNode > 0), err
		},
		"SameJournal": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			id, err := store.SameJournal(ctx, tx, t, "MARKED-user", ownJournal)
			return leak(id != ""), err
		},
		"InsertJournal": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, err := store.InsertJournal(ctx, tx, t, "MARKED-user", ownJournal)
			return nil, err
		},
		"JournalByID": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.JournalByID(ctx, tx, t, "MARKED-user", ownJournal.ID)
		},
		"WantJournal": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.WantJournal(ctx, tx, t, ownJournal.ID)
		}),
		"JournalLines": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.JournalLines(ctx, tx, t, ownJournal.ID, 0, 10)
		},
		"AppendJournal": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			open, err := store.AppendJournal(ctx, tx, t, ownJournal.ID, "p-own", []loom.JournalLine{{Seq: 7, Time: time.Now(), Text: "x"}})
			return leak(open), err
		},
		"EndJournal": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.EndJournal(ctx, tx, t, ownJournal.ID, "p-own", "over")
		}),
		"ExpectedMachines": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			expected, err := store.ExpectedMachines(ctx, tx, t, "x", time.Unix(0, 0), "p-own")
			return leak(len(expected) > 0), err
		},
		"WantChecks": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			n, err := store.WantChecks(ctx, tx, t, 1, nil, time.Second)
			return leak(n > 0), err
		},
		"ResourceFetches": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			fetches, err := store.ResourceFetches(ctx, tx, t)
			return leak(len(fetches) > 0), err
		},
	})
}

// ownJournal is the journal that the tenant has.
var ownJournal = loom.Journal{ID: "00000000-0000-4000-8000-000000000002", Cluster: 1, Node: "00000000-0000-4000-8000-000000000001", Service: "MARKED", Lines: 10, Follow: true}
