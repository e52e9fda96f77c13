package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

// optionsOf are the choices of a select, by value.
func optionsOf(a clusterAnswer, name string) map[string]string {
	options := map[string]string{}
	_, rest, _ := strings.Cut(a.Body, `name="`+name+`"`)
	rest, _, _ = strings.Cut(rest, "</select>")
	for _, m := range regexp.MustCompile(`<option value="([^"]*)"[^>]*>([^<]*)`).FindAllStringSubmatch(rest, -1) {
		options[m[1]] = strings.TrimSpace(m[2])
	}
	return options
}

// TestClusterFacetsCount: scopes and facets say how many clusters they have, and narrow the list
// by their address.
func TestClusterFacetsCount(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	one, two := w.active("one", 2), w.active("two", 2)
	busy := w.create("busy", 2)
	broken := w.create("broken", 2)
	w.fail(loom.TaskRef{Operation: broken, Number: 1}, "There is no image bookworm.")
	w.db.MustExec(`UPDATE clusters SET labels = '{"team": "web"}' WHERE id IN ($1, $2)`, int64(one), int64(busy.Cluster))
	w.db.MustExec(`UPDATE clusters SET owner_id = 'eve', expires_at = NULL WHERE id = $1`, int64(two))
	w.db.MustExec(`INSERT INTO cluster_health (cluster_id, tenant_id, status, since) SELECT id, tenant_id, 'failing', now() FROM clusters WHERE id = $1 ON CONFLICT (cluster_id) DO UPDATE SET status = 'failing'`, int64(one))

	// Who sees only his own has no scope of them.
	page := w.get("ana", "/clusters").is(200, "one", "busy", "broken").lacks(">two<", "Mine", `name="owner"`)
	all := w.get("admin", "/clusters").is(200, "Mine", "All", "Terminated")
	for _, c := range []struct {
		facet, value, text string
		page               clusterAnswer
	}{
		{"health", "failed", "Failed (1)", page}, {"health", "changing", "Changing (1)", page}, {"health", "failing", "Failing (1)", page}, {"label", "team=web", "team=web (2)", page},
		{"template", "web-cluster", "web-cluster (3)", page}, {"template", "web-cluster", "web-cluster (4)", all}, {"lease", "30d", "Expires in 30 days (3)", page}, {"lease", "none", "No expiry (1)", all},
	} {
		if got := optionsOf(c.page, c.facet)[c.value]; got != c.text {
			t.Errorf("%s %s is offered as %q, want %q", c.facet, c.value, got, c.text)
		}
	}
	for _, c := range []struct{ query, has, lacks string }{
		{"health=failed", "broken", ">one<"}, {"health=changing", "busy", ">one<"}, {"health=failing", "one", ">busy<"}, {"label=" + url.QueryEscape("team=web"), "busy", ">broken<"},
		{"health=failing&label=" + url.QueryEscape("team=web"), "one", ">busy<"}, {"status=attention", "broken", ">one<"}, {"lease=none", "No matches.", ">one<"},
	} {
		w.get("ana", "/clusters?"+c.query).is(200, c.has).lacks(c.lacks)
	}
	// Each facet counts as the others are chosen, and its own choice stays offered.
	chosen := w.get("ana", "/clusters?health=failing").is(200, "Clear filters")
	if got := optionsOf(chosen, "label")["team=web"]; got != "team=web (1)" {
		t.Errorf("of failing ones the label is offered as %q", got)
	}
	if got := optionsOf(chosen, "health"); got["failing"] != "Failing (1)" || got["failed"] != "Failed (1)" {
		t.Errorf("health is offered as %v", got)
	}
	w.get("ana", "/clusters?health=nonsense").is(http.StatusUnprocessableEntity, "A health is")
	w.get("ana", "/clusters?lease=nonsense").is(http.StatusUnprocessableEntity)
	w.get("admin", "/clusters?owner=eve&provider=lab").is(200, "two", "Owner: eve", "Provider: lab").lacks(">one<")
}

// TestClustersRestartTogether: those that can restart do, and the others are named.
func TestClustersRestartTogether(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	one, two := w.active("one", 2), w.active("two", 2)
	busy := w.create("busy", 2)
	at := route.ClustersBulk("restart") + "?all=1"
	page := w.get("ana", at).is(200, "one", "two", "busy", "Restarts 2 services", "is running")
	text := "changed meanwhile"
	w.db.MustExec(`UPDATE clusters SET description = $2, revision = revision + 1 WHERE id = $1`, int64(two), text)
	w.pressOn("ana", page, at, "Restart clusters").is(200, "The restart of 1 cluster has begun.", "1 was left as it is.", "It has changed since it was shown")
	for id, want := range map[loom.ClusterID]int{one: 2, two: 1, busy.Cluster: 1} {
		if v := w.cluster(id); v.LatestOperation != want {
			t.Errorf("%s is at operation %d, want %d", v.Name, v.LatestOperation, want)
		}
	}
}
