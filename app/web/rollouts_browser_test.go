//go:build browser

package web_test

import (
	"context"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/adminview"
	"loom/views/route"
)

// TestRolloutByKeyboard: an administrator edits a service, previews the effect, saves, rolls the
// new version out, stops and resumes it, by keyboard. The page follows what schedulers do.
func TestRolloutByKeyboard(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	for _, name := range []string{"shop", "blog", "wiki"} {
		w.active(name, 2)
	}
	ctx, stop := context.WithCancel(w.ctx)
	hub := make(chan error, 1)
	go func() { hub <- w.hub.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-hub
	})
	b, url := w.browse(t, "admin", browser.Options{Width: 1440})
	hands := b.PatientKeyboard(200)

	b.Open(url + route.AdminEntryEdit(loom.KindService, "nginx"))
	b.WaitFor("#editor")
	hands.Fill("the description", "#editor [name=description]", "Serves other pages.")
	hands.Activate("preview the effect", "button[hx-target='#"+adminview.FleetID+"']")
	b.WaitText("3 in place")
	hands.Activate("save", "#editor .c-form-bar button[data-kind=primary]")
	b.WaitText("version 2")
	hands.Activate("the menu", "button[popovertarget=entry-menu]")
	hands.Activate("roll out", "#entry-menu a[href*='"+route.AdminRolloutNew()+"']")
	b.WaitText("Updates clusters to version 2 of the service nginx.")
	b.Inspect("the form of a rollout", 390, 320)
	hands.Activate("preview the rollout", "form[action^='"+route.AdminRollouts()+"'] button[type=submit][data-kind=primary]")
	b.WaitText("Start rollout")
	at := route.AdminRollout(1)
	verb := func(word string) string {
		return "form[action='" + route.AdminRolloutVerb(1, word) + "'] button[type=submit]"
	}
	b.Inspect("a rollout that is ready", 390, 320)
	turn := func() {
		w.db.MustExec(`UPDATE rollouts SET next_at = now() WHERE next_at IS NOT NULL`) // not a second later
		w.must(w.clusters.AdvanceRollouts(w.ctx))
	}
	change := func() {
		turn()
		var running []loom.ClusterID
		w.must(w.db.Select(&running, `SELECT cluster_id FROM operations WHERE ended_at IS NULL`))
		for _, id := range running {
			w.finish(loom.OperationRef{Cluster: id}, loom.ClusterActive)
		}
		turn()
	}
	hands.Activate("start", verb("start"))
	b.WaitText("Started rollout 1.")
	change()
	b.WaitText("Wave 2 begins after the pause,")
	b.Inspect("a rollout that runs", 390, 320)
	hands.Activate("stop", verb("stop"))
	b.WaitText("Stopped by admin.")
	b.Inspect("a rollout that stopped", 390, 320)
	hands.Activate("resume", verb("resume"))
	b.WaitFor(verb("stop"))
	turn()
	for _, waits := range []string{"Wave 2 begins after the pause,", "Wave 3 begins after the pause,"} {
		b.WaitText(waits)
		hands.Activate("begin the wave", verb("continue"))
		b.Wait("the press", func() (pressed bool) {
			w.must(w.db.Get(&pressed, `SELECT continued FROM rollouts`))
			return pressed
		})
		change()
	}
	b.WaitText("Complete")
	if b.URL() != url+at {
		t.Errorf("the rollout is at %s", b.URL())
	}
}
