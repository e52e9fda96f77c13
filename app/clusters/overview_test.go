package clusters_test

import (
	"slices"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func TestClusterViewSaysWhatIsAllowedAndWhatIsNewer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || v.Allowed[loom.ChangeDelete] != "Operation 1 (create) is running." || v.NewerTemplate != 0 {
		t.Fatalf("%v, %v", v.Allowed, err)
	}
	b.finish(ref.Cluster, loom.ClusterActive)
	b.save(b.tenant, loom.KindTemplate, siteTemplate())
	b.db.MustExec(`UPDATE nodes SET ipaddresses = '{"access_v4": "10.0.0.9"}' WHERE cluster_id = $1`, int64(ref.Cluster))
	v, err = b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || v.Allowed[loom.ChangeDelete] != "" || v.NewerTemplate != 2 || v.Template.Version != 1 {
		t.Fatalf("%v, newer %d, %v", v.Allowed, v.NewerTemplate, err)
	}
	found := false
	for _, links := range v.NodeLinks {
		found = found || slices.Contains(links, loom.Link{Label: "Page", URL: "http://10.0.0.9/"})
	}
	if !found {
		t.Errorf("links %v", v.NodeLinks)
	}
	actions, err := b.clusters.Actions(b.ctx, b.ana(), ref.Cluster)
	if err != nil || actions[loom.ChangeLease] != "" {
		t.Errorf("%v, %v", actions, err)
	}
}

// TestLinksOfServicesThatAreNotThere: a link is there as long as the service that it
// names is on the cluster, of the template as of other services.
func TestLinksOfServicesThatAreNotThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lone := loom.Link{Label: "Lone", URL: "http://%host.service.lone[0]%/"}
	b.save(b.tenant, loom.KindService, service("lone", nil))
	db := service("db", nil)
	db.Links = []loom.Link{lone, {Label: "Self", URL: "http://%host.self%/"}}
	b.save(b.tenant, loom.KindService, db)
	site := siteTemplate()
	site.Links = append(site.Links, lone)
	b.save(b.tenant, loom.KindTemplate, site)
	id := b.made(2)
	check := func(when string, there bool) {
		t.Helper()
		v, err := b.clusters.Cluster(b.ctx, b.ana(), id)
		if err != nil {
			t.Fatal(err)
		}
		has := func(links []loom.Link, label string) bool {
			return slices.ContainsFunc(links, func(l loom.Link) bool { return l.Label == label && l.URL != lone.URL })
		}
		if len(v.Links) < 2 || !has(v.Links, "Web") || !has(v.Links, "Self") || has(v.Links, "Lone") != there || slices.Contains(v.Links, lone) {
			t.Errorf("%s: links %v", when, v.Links)
		}
		for _, n := range v.Nodes {
			if !slices.Contains(n.Services, "db") {
				continue
			}
			for _, links := range [][]loom.Link{v.NodeLinks[n.ID], v.ServiceLinks[n.ID]["db"]} {
				if !has(links, "Self") || has(links, "Lone") != there || slices.Contains(links, lone) {
					t.Errorf("%s: links of node %d %v", when, n.Number, links)
				}
			}
		}
	}
	check("before", false)
	if _, err := b.addServices(b.ana(), id, []string{"lone"}, nil); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	check("with it", true)
	if _, err := b.begin(loom.ChangeRemoveServices, id, clusters.ChangeInput{Services: []string{"lone"}}); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	check("without it", false)
}
