package store_test

import (
	"strconv"
	"testing"

	"loom/app/loom"
	"loom/app/store"
)

// TestFacetsCountWhatListsHave: behind each count of a facet is a list of as many clusters,
// whatever else is chosen.
func TestFacetsCountWhatListsHave(t *testing.T) {
	t.Parallel()
	w := newListWorld(t)
	w.db.MustExec(`INSERT INTO cluster_health (cluster_id, tenant_id, status, since) SELECT id, tenant_id, (ARRAY['healthy', 'failing', 'unknown'])[id % 3 + 1], now() FROM clusters WHERE id % 5 > 0`)
	live := []loom.ClusterStatus{loom.ClusterPending, loom.ClusterActive, loom.ClusterIncomplete, loom.ClusterInconsistent}
	leases := map[string]string{"none": store.LeaseNone, "ended": store.LeaseEnded}
	for _, l := range store.LeaseWithin {
		leases[l.Value] = strconv.FormatInt(l.Seconds, 10)
	}
	// list counts what a list with these choices has.
	list := func(f store.ClusterFilter, c store.ClusterFacets) int {
		t.Helper()
		f.Template = c.Template
		switch c.Health {
		case "":
		case store.FacetChanging:
			f.Statuses = []loom.ClusterStatus{loom.ClusterPending}
		case store.FacetFailed:
			f.Statuses = []loom.ClusterStatus{loom.ClusterIncomplete, loom.ClusterInconsistent}
		default:
			f.Statuses, f.Health = []loom.ClusterStatus{loom.ClusterActive}, []loom.HealthStatus{loom.HealthStatus(c.Health)}
		}
		for field, value := range map[string]string{"label": c.Label, "lease": c.Lease} {
			if value != "" {
				f.Terms = append(f.Terms[:len(f.Terms):len(f.Terms)], loom.SearchTerm{Field: field, Values: []string{value}})
			}
		}
		f.CountOnly = true
		got, err := store.ClustersByTenant(t.Context(), w.db.DB, "a", f, loom.Page{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Total
	}
	compared := 0
	for _, f := range []store.ClusterFilter{{Statuses: live}, {Statuses: live, Owner: "ana"}, {Statuses: live, Viewer: store.Viewer{User: "ben"}}, {Statuses: live, Viewer: store.Viewer{User: "ben", Templates: []string{"web"}}}, {Statuses: live, Words: []string{"web"}}, {Statuses: []loom.ClusterStatus{loom.ClusterTerminated}}} {
		for _, c := range []store.ClusterFacets{{}, {Template: "web"}, {Label: "team=web"}, {Lease: "604800"}, {Health: "healthy"}, {Health: store.FacetFailed, Template: "db"}, {Health: store.FacetChanging, Lease: store.LeaseNone, Label: "env=prod"}} {
			got, err := store.CountClusters(t.Context(), w.db.DB, "a", f, c, store.Viewer{User: "ana", Templates: []string{"web"}})
			if err != nil || got.Many {
				t.Fatalf("many %v, %v", got.Many, err)
			}
			for _, facet := range []struct {
				counts []store.FacetCount
				choose func(c *store.ClusterFacets, value string)
			}{
				{got.Health, func(c *store.ClusterFacets, v string) { c.Health = v }}, {got.Template, func(c *store.ClusterFacets, v string) { c.Template = v }},
				{got.Label, func(c *store.ClusterFacets, v string) { c.Label = v }}, {got.Leases, func(c *store.ClusterFacets, v string) { c.Lease = leases[v] }},
			} {
				for _, count := range facet.counts {
					if count.Value == "" {
						continue
					}
					with := c
					facet.choose(&with, count.Value)
					if n := list(f, with); n != count.N {
						t.Errorf("%+v, %+v: %d counted, %d listed", f, with, count.N, n)
					}
					compared++
				}
			}
			if n := list(store.ClusterFilter{Statuses: live, Viewer: f.Viewer}, store.ClusterFacets{}); n != got.All {
				t.Errorf("%+v: %d live ones counted, %d listed", f, got.All, n)
			}
			if n := list(store.ClusterFilter{Statuses: live, Owner: "ana"}, store.ClusterFacets{}); n != got.Mine {
				t.Errorf("%d of the viewer counted, %d listed", got.Mine, n)
			}
			if n := list(store.ClusterFilter{Statuses: live, Shared: store.Viewer{User: "ana", Templates: []string{"web"}}}, store.ClusterFacets{}); n != got.Shared {
				t.Errorf("%d shared with the viewer counted, %d listed", got.Shared, n)
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d counts were compared", compared)
	}
}
