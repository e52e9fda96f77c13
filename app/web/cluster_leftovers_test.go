package web_test

import (
	"net/url"
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

// What a delete left behind is on the page of administrators, who can give it up in
// the dialog of the delete.
func TestLeftoversOnTheClusterPage(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop-front", 2)
	w.finish(op, loom.ClusterIncomplete)
	w.db.MustExec(`INSERT INTO leftovers (tenant_id, cluster_id, node_id, incarnation, provider_name, machine_id, tries, last_error)
		SELECT tenant_id, cluster_id, id, 1, 'lab', 'i-0d1c2b', 3, 'the machine is locked' FROM nodes WHERE cluster_id = $1 LIMIT 1`, int64(op.Cluster))
	w.db.MustExec(`UPDATE clusters SET expires_at = now() + interval '10 minutes' WHERE id = $1`, int64(op.Cluster))
	page, at := route.Cluster(op.Cluster), route.ClusterDelete(op.Cluster)
	w.get("admin", page).is(200, "Leftover machines", "i-0d1c2b", "the machine is locked", "stop tracking them", "The lease ends on ")
	w.get("ana", page).is(200, "The lease ends on ").lacks("Leftover machines")
	w.get("admin", at).is(200, `name="abandon"`, "i-0d1c2b at lab")
	w.get("ana", at).is(200).lacks(`name="abandon"`)
	give := url.Values{"confirm": {"shop-front"}, "abandon": {"on"}}
	w.post("ana", at, give).is(403)
	w.post("admin", at, give).goesTo(page)
	w.get("admin", page).is(200, "Terminated").lacks("Leftover machines", "The lease ends on ")
}
