package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

var aRollout = regexp.MustCompile(`^/admin/rollouts/\d+$`)

// TestRolloutByForms: an administrator saves a service, rolls its new version out from its page,
// sees what happens, starts, stops, resumes, continues and aborts it, by forms and without scripts.
func TestRolloutByForms(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	var shop string
	for _, name := range []string{"wiki", "blog", "shop"} { // of which the last one gets the last turn
		op := w.create(name, 2)
		w.finish(op, loom.ClusterActive)
		shop = route.Cluster(op.Cluster)
	}
	w.get("ana", shop).is(http.StatusOK).lacks("Rollout")
	w.get("ana", route.AdminRollouts()).is(http.StatusForbidden)
	w.get("admin", route.AdminRollouts()).is(http.StatusOK, "There are no rollouts yet")
	nginx, _, err := w.catalog.Entry(w.ctx, w.actor("admin"), loom.KindService, "nginx", 0)
	w.must(err)
	service := *nginx.(*loom.Service)
	service.Description = "Another description."
	w.save(loom.KindService, &service)
	w.get("admin", route.AdminEntry(loom.KindService, "nginx")).is(http.StatusOK, "Roll out")
	form := route.AdminRolloutNew("entry", string(loom.KindService), "name", "nginx", "version", "2")
	w.get("admin", form).is(http.StatusOK, "Updates clusters to version 2 of the service nginx.")
	w.press("admin", form, "Preview rollout", "waves", "some").is(http.StatusUnprocessableEntity, "“some” is no wave")
	w.press("admin", form, "Preview rollout", "from", "9").is(http.StatusUnprocessableEntity, "Give a time of day")
	w.press("admin", form, "Preview rollout", "q", "colour:red").is(http.StatusUnprocessableEntity)
	made := w.press("admin", form, "Preview rollout", "waves", "1, rest").is(http.StatusSeeOther)
	at := made.Header.Get("Location")
	if u, _ := url.Parse(at); !aRollout.MatchString(u.Path) {
		t.Fatalf("the rollout is at %q", at)
	}
	w.get("admin", at).is(http.StatusOK, "Update nginx to version 2", "Wave 1", "Wave 2", "3 in place", "Ready")
	w.press("admin", at, "Start rollout").goesTo(at)
	w.get("admin", at).is(http.StatusOK, "Running").lacks("Start rollout")
	w.press("admin", at, "Stop").goesTo(at)
	w.get("ana", shop).is(http.StatusOK, "Rollout 1", "will change this cluster in wave 2, once it is resumed.").lacks(at)
	w.get("admin", shop).is(http.StatusOK, `<a href="/admin/rollouts/1">Rollout 1</a>`)
	w.get("admin", at).is(http.StatusOK, "Stopped by admin.")
	w.press("admin", at, "Resume").goesTo(at)
	w.db.MustExec(`UPDATE rollout_clusters SET status = 'done' WHERE wave = 1`)
	w.must(w.clusters.AdvanceRollouts(w.ctx))
	w.get("admin", at).is(http.StatusOK, "Wave 2 begins after the pause,", "1 done", "10 min").lacks("1 complete")
	w.press("admin", at, "Begin wave 2 now").goesTo(at)
	w.get("admin", route.AdminRolloutClusters(1)+"?wave=1&status=done").is(http.StatusOK, "Done").lacks("Waiting</span>")
	w.press("admin", at+"/abort", "Abort rollout").goesTo(at)
	w.get("admin", at).is(http.StatusOK, "Aborted by admin.").lacks("Abort rollout")
	w.get("admin", route.AdminRollouts()).is(http.StatusOK, "Update nginx to version 2", "1 of 3")
	w.get("admin", route.AdminRollouts()+"?status=running").is(http.StatusOK).lacks("Update nginx")
	for _, path := range []string{"/admin/rollouts/9", "/admin/rollouts/x", at + "/start", at + "/nothing"} {
		w.get("admin", path).is(http.StatusNotFound)
	}
}

// TestRolloutOfOtherChanges: services are restarted and the config is changed from the form too;
// whoever replaces machines types how many.
func TestRolloutOfOtherChanges(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.finish(w.create("shop", 2), loom.ClusterActive)
	form := route.AdminRolloutNew()
	w.press("admin", form, "Preview rollout").is(http.StatusConflict, "affects no cluster")
	w.press("admin", form, "Preview rollout", "kind", "configure", "configPatch", "{").is(http.StatusUnprocessableEntity, "Write an object in JSON")
	w.press("admin", form, "Preview rollout", "kind", "restart").is(http.StatusSeeOther)
	w.get("admin", route.AdminRollout(1)).is(http.StatusOK, "Restart services")
	w.press("admin", form, "Preview rollout", "kind", "configure", "configPatch", `{"nginx":{"port":8081}}`).is(http.StatusConflict, "Rollout 1 has shop.")
	w.press("admin", route.AdminRolloutVerb(1, "abort"), "Abort rollout").goesTo(route.AdminRollout(1))
	var name string
	w.must(w.db.Get(&name, `SELECT hardwaretype FROM nodes LIMIT 1`))
	w.save(loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: name}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "9 GiB"}}})
	w.press("admin", form, "Preview rollout").is(http.StatusSeeOther)
	w.get("admin", route.AdminRollout(2)).is(http.StatusOK, "Type 2 to replace")
	w.press("admin", route.AdminRollout(2), "Start rollout", "confirm", "3").is(http.StatusBadRequest, "Type “2” exactly")
	w.press("admin", route.AdminRollout(2), "Start rollout", "confirm", "2").goesTo(route.AdminRollout(2))
}
