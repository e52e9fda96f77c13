package web_test

import (
	"net/url"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/route"
)

// Previews that were made over the API have a page as well, on which they can be
// applied or discarded.
func TestPreviewsOfEveryKindHaveAPage(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ref := w.create("shop-front", 3)
	w.finish(ref, loom.ClusterActive)
	for _, c := range []struct {
		in    clusters.PreviewInput
		texts []string
		done  string
	}{
		{clusters.PreviewInput{Kind: loom.ChangeConfigure, Configure: &clusters.ConfigureInput{Config: map[string]any{"port": 81, "api_key": "hush"}, Restart: true}},
			[]string{"Change config of shop-front?", "Changes the config", "/port", "81", "[redacted]"}, "Changing shop-front."},
		{clusters.PreviewInput{Kind: loom.ChangeRestart}, []string{"Restart services of shop-front?", "Restarts 2 services"}, "Restarting services of shop-front."},
		{clusters.PreviewInput{Kind: loom.ChangeAddServices, Services: []string{"cache"}},
			[]string{"Add services to shop-front?", "Adds 1 service to ", "cache", "The template"}, "Changing shop-front."},
		{clusters.PreviewInput{Kind: loom.ChangeExpand, Change: clusters.ChangeInput{Machines: 4}},
			[]string{"Scale shop-front?", "Adds 1 node", "node 1003", "3 → 4 of"}, "Changing shop-front."},
		{clusters.PreviewInput{Kind: loom.ChangeShrink, Change: clusters.ChangeInput{Machines: 3}},
			[]string{"Scale shop-front?", "Removes 1 node with all that is on it", "1003", "what is on the disks"}, "Changing shop-front."},
		{clusters.PreviewInput{Kind: loom.ChangeRemoveServices, Change: clusters.ChangeInput{Services: []string{"cache"}}},
			[]string{"Remove services from shop-front?", "Removes 1 service from the cluster"}, "Changing shop-front."},
		{clusters.PreviewInput{Kind: loom.ChangeSync}, []string{"Update template of shop-front?", "Replaces the cluster’s copy"}, "newest version of its template"},
	} {
		c.in.Cluster = ref.Cluster
		v, err := w.clusters.Preview(w.ctx, w.actor("ana"), c.in)
		w.must(err)
		at := route.Preview(v.ID)
		page := w.get("ana", at).is(200, append(c.texts, " shop-front</span>")...).lacks("Create shop-front", "hush")
		if c.in.Kind == loom.ChangeSync { // without tasks
			w.get("ana", at+"/graph.svg").is(404, "nothing to draw")
		} else {
			w.get("ana", at+"/graph.svg").is(200, "<svg")
		}
		to := w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}, "confirm": {"shop-front"}}).goesTo(route.Cluster(ref.Cluster))
		w.get("ana", to).is(200, c.done)
		w.get("ana", at).is(200, "This preview was applied.")
		w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}}).is(409, "This preview was applied.")
		w.finish(ref, loom.ClusterActive)
	}
	v, err := w.clusters.Preview(w.ctx, w.actor("ana"), clusters.PreviewInput{Kind: loom.ChangeStop, Cluster: ref.Cluster})
	w.must(err)
	w.post("ana", route.Preview(v.ID)+"/discard", nil).goesTo(route.Cluster(ref.Cluster))
}
