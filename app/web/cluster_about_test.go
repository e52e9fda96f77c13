package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/testkit"
	"loom/views/clusterview"
	"loom/views/route"
)

// TestTextsOfAClusterAreEditedInPlace sends the form as a page without scripts does, and
// as one with scripts, which gets the texts back in place of the form.
func TestTextsOfAClusterAreEditedInPlace(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	at, part := route.ClusterEdit(id), clusterview.PartAbout.ID()
	send := func(form url.Values) clusterAnswer {
		t.Helper()
		return w.send("ana", http.MethodPost, at, form, "HX-Request", "true", "HX-Target", part)
	}
	write := func(description string, labels map[string]string) {
		t.Helper()
		_, err := w.clusters.Edit(w.ctx, w.actor("admin"), id, clusters.EditInput{Description: &description, Labels: labels})
		w.must(err)
	}

	form := w.part("ana", at, part).is(200, `id="cluster-about"`, "js/inline.js", "autofocus", "data-cancel").lacks("<h1>", "data-live")
	values := testkit.FormValues(t, form.Body, "cluster-about")
	values.Set("description", "for the fair\r\nin May")
	values.Set("labels", "team=web")
	a := send(values).is(200, `class="c-written">for the fair`, "team=web", "/clusters?label=team%3Dweb", "autofocus", "data-live").lacks("<form")
	if !strings.Contains(a.Header.Get("HX-Trigger"), "Saved description and labels of shop-front.") {
		t.Errorf("said: %q", a.Header.Get("HX-Trigger"))
	}
	w.get("ana", route.Cluster(id)).is(200, "for the fair\nin May").lacks(" autofocus")
	w.part("ana", clusterview.PartURL(id, clusterview.PartAbout)+"&back=1", part).is(200, "for the fair", "autofocus")
	send(url.Values{"description": {strings.Repeat("x", 1001)}, "labels": {"team"}}).is(422, "write key=value", "Nothing was saved.", `id="cluster-about"`).lacks("<h1>")

	// Sent as it came, it changes nothing.
	values = testkit.FormValues(t, w.part("ana", at, part).Body, "cluster-about")
	before := w.cluster(id).Revision
	send(values).is(200, "for the fair")
	if now := w.cluster(id).Revision; now != before {
		t.Errorf("the revision rose from %d to %d though nothing was changed", before, now)
	}

	// Somebody else changes the labels: what is written now stands beside that.
	values.Set("description", "for the fair in June")
	write("for the fair\nin May", map[string]string{"team": "shop"})
	send(values).is(200, "for the fair in June", "team=shop")

	// He changes the description as well: both are shown, and one is chosen.
	values = testkit.FormValues(t, w.part("ana", at, part).Body, "cluster-about")
	values.Set("description", "mine")
	write("theirs", map[string]string{"team": "shop", "tier": "front"})
	clash := send(values).is(409, "Somebody else saved a change", "Keep mine", "Take theirs", "Your changes to theirs", "<del>&#34;theirs&#34;</del>", "<ins>&#34;mine&#34;</ins>", "tier=front", `id="cluster-about"`)
	if now := w.cluster(id); now.Description != "theirs" {
		t.Errorf("a conflict wrote %q", now.Description)
	}
	send(testkit.FormValues(t, clash.Body, "cluster-about")).is(200, ">mine<", "team=shop", "tier=front")
	values.Set("description", "mine, of an older page")
	w.post("ana", at, values).is(409, "<h1>Edit shop-front</h1>", "Keep mine") // without scripts: stale again
	w.send("eve", http.MethodPost, at, values, "HX-Request", "true", "HX-Target", part).is(404)
	w.part("ana", clusterview.PartURL(id, clusterview.PartHead), clusterview.PartHead.ID()).lacks("team=shop")
	w.get("ana", route.ClusterNodes(id)).is(200, "team=shop, tier=front")
}
