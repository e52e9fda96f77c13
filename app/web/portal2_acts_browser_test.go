//go:build browser

package web_test

import (
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestActsStayOnThePage: Pause on the overview stays there, and so does a restart, which its
// dialog shows and does.
func TestActsStayOnThePage(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	busy, id := w.create("busy", 2), w.active("shop", 3)
	for _, width := range []int{1440, 390} {
		b, base := w.browse(t, "ana", browser.Options{Width: width})
		hands := b.PatientKeyboard(80)
		b.Open(base + route.Cluster(busy.Cluster))
		hands.Activate("Pause", `form[action$="/pause"] button`)
		b.WaitFor(`form[action$="/resume"]`)
		if got, want := b.URL(), base+route.Cluster(busy.Cluster); got != want {
			t.Errorf("%d wide: Pause on %s leads to %s", width, want, got)
		}
		hands.Activate("Resume", `form[action$="/resume"] button`)
		b.WaitFor(`form[action$="/pause"]`)

		at := base + route.ClusterTab(id, "services")
		b.Open(at)
		hands.Activate("Restart nginx", `a[href="`+route.ClusterService(id, "nginx", "restart")+`"]`)
		b.WaitFor("#dialog[open]:not(.htmx-settling) form[method=post]")
		b.WaitText("Restart nginx of shop?")
		for _, dark := range []bool{false, true} {
			b.Dark(dark)
			if faults := b.Faults(); len(faults) != 0 {
				t.Errorf("%d wide, dark %v: %q", width, dark, faults)
			}
			look(b, t, width, dark)
		}
		b.Dark(false)
		hands.Activate("Restart", "#dialog .c-dialog-foot button[type=submit]")
		b.WaitText("Restarting services of shop.")
		if b.URL() != at {
			t.Errorf("%d wide: a restart on %s leads to %s", width, at, b.URL())
		}
		w.finish(loom.OperationRef{Cluster: id}, loom.ClusterActive)
	}
}

// TestDialogShowsDifferences: changes between showing and pressing are shown, and a
// second press applies them.
func TestDialogShowsDifferences(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 2)
	b, base := w.browse(t, "ana", browser.Options{})
	b.Open(base + route.ClusterTab(id, "services"))
	hands := b.PatientKeyboard(80)
	hands.Activate("the menu", "button[popovertarget=menu-nginx]")
	hands.Activate("Stop nginx", `a[href="`+route.ClusterService(id, "nginx", "stop")+`"]`)
	b.WaitFor("#dialog[open]:not(.htmx-settling) input[name=apply]")
	w.db.MustExec(`UPDATE clusters SET revision = revision + 1 WHERE id = $1`, int64(id))
	hands.Activate("Stop", "#dialog .c-dialog-foot button[type=submit]")
	b.WaitText("Things changed after this was shown.")
	if v := w.cluster(id); v.LatestOperation != 1 {
		t.Fatalf("operation %d began", v.LatestOperation)
	}
	hands.Activate("Stop", "#dialog .c-dialog-foot button[type=submit]")
	b.WaitText("Stopping services of shop.")
	if v := w.cluster(id); v.LatestOperation != 2 {
		t.Errorf("operation %d is the last", v.LatestOperation)
	}
}

// TestLeaseInOnePress: a chip extends the lease and stays on the page; an earlier time asks first.
func TestLeaseInOnePress(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 2)
	for _, width := range []int{1440, 390} {
		b, base := w.browse(t, "ana", browser.Options{Width: width})
		at := base + route.ClusterTab(id, "config")
		b.Open(at)
		hands := b.PatientKeyboard(80)
		hands.Activate("Change", `a[href="`+route.ClusterLease(id)+`"]`)
		b.WaitFor("#dialog[open]:not(.htmx-settling) .c-chips")
		zone := runOn(b, `Intl.DateTimeFormat().resolvedOptions().timeZone`)
		b.WaitText("Time zone: " + zone)
		for _, dark := range []bool{false, true} {
			b.Dark(dark)
			if faults := b.Faults(); len(faults) != 0 {
				t.Errorf("%d wide, dark %v: %q", width, dark, faults)
			}
			look(b, t, width, dark)
		}
		b.Dark(false)
		before := w.cluster(id).Expires
		hands.Activate("+4 h", "#dialog .c-chips button[value='4h']")
		b.WaitText("shop expires ")
		if got := w.cluster(id).Expires.Sub(before); got != 4*time.Hour || b.URL() != at {
			t.Errorf("%d wide: extended by %s, at %s", width, got, b.URL())
		}
		hands.Activate("Change", `a[href="`+route.ClusterLease(id)+`"]`)
		b.WaitFor("#dialog[open]:not(.htmx-settling) .c-chips")
		soon := time.Now().Add(25 * time.Hour)
		runOn(b, `(() => { document.querySelector("#dialog [name=date]").value = "`+soon.Format(time.DateOnly)+`"; document.querySelector("#dialog [name=time]").value = "09:08"; return "" })()`)
		hands.Activate("Change expiry", "#dialog .c-dialog-foot button[type=submit]")
		b.WaitText("Delete shop earlier?")
		b.WaitText("shop will be deleted on")
		b.WaitText("09:08")
		look(b, t, width, false)
		if got := w.cluster(id).Expires; got.Before(before) {
			t.Errorf("%d wide: the lease ends %s before anybody confirmed", width, got)
		}
		hands.Activate("Shorten lease", "#dialog .c-dialog-foot button[type=submit]")
		b.Wait("the shorter lease", func() bool { return w.cluster(id).Expires.Before(before) })
		w.db.MustExec(`UPDATE clusters SET expires_at = $2 WHERE id = $1`, int64(id), before)
	}
}

// TestFacetsByKeyboard: each facet narrows the list as soon as it is chosen, and its choice is in
// the address.
func TestFacetsByKeyboard(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.active("shop", 2)
	blog := w.active("blog", 2)
	w.db.MustExec(`UPDATE clusters SET labels = '{"team": "web"}', expires_at = NULL, template_name = 'blog' WHERE id = $1`, int64(blog))
	w.db.MustExec(`INSERT INTO cluster_health (cluster_id, tenant_id, status, since) SELECT id, tenant_id, 'failing', now() FROM clusters WHERE id = $1 ON CONFLICT (cluster_id) DO UPDATE SET status = 'failing'`, int64(blog))
	for _, width := range []int{1440, 390} {
		b, base := w.browse(t, "admin", browser.Options{Width: width})
		b.Open(base + "/clusters")
		for _, dark := range []bool{false, true} {
			b.Dark(dark)
			if faults := b.Faults(); len(faults) != 0 {
				t.Errorf("%d wide, dark %v: %q", width, dark, faults)
			}
			look(b, t, width, dark)
		}
		b.Dark(false)
		for name, value := range map[string]string{"health": "failing", "template": "blog", "label": "team=web", "lease": "none"} {
			b.Open(base + "/clusters")
			b.WaitFor("#keys[data-ready]")
			at := "select[name=" + name + "]"
			b.Do("focus "+name, chromedp.Focus(chromedp.CSS(at)))
			for b.Value(at) != value {
				before := b.URL()
				pressKeys(b, kb.ArrowDown)
				b.Wait("the next choice of "+name, func() bool { return b.URL() != before })
			}
			b.Wait("the list of "+name, func() bool { return strings.Contains(b.URL(), name+"="+url.QueryEscape(value)) })
			b.WaitTrue("one row", `document.querySelectorAll("tbody tr").length === 1`)
			if got := b.Value(at); got != value {
				t.Errorf("%d wide: %s shows %q", width, name, got)
			}
		}
		look(b, t, width, false)
	}
}

var lookN int

func look(b *browser.Browser, t *testing.T, width int, dark bool) {
	if dir := os.Getenv("LOOK"); dir != "" {
		lookN++
		name := t.Name()
		if dark {
			name += "-dark"
		}
		b.Picture(dir + "/" + name + "-" + string(rune('a'+lookN%26)) + ".png")
	}
}

// TestNothingMovesWhileAnOperationRuns: an operation that begins and ends takes the place of the
// last change, and the rest of the overview stays where it is.
func TestNothingMovesWhileAnOperationRuns(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 3)
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	b.Open(base + route.Cluster(id))
	b.WaitText("Created in")
	before := placesOf(b)
	b.PatientKeyboard(80).Activate("the menu", "button[popovertarget=cluster-menu]")
	b.PatientKeyboard(80).Activate("Restart services", `#cluster-menu a[href="`+route.ClusterServices(id, "restart")+`"]`)
	b.WaitFor("#dialog[open]:not(.htmx-settling) input[name=apply]")
	b.PatientKeyboard(80).Activate("Restart", "#dialog .c-dialog-foot button[type=submit]")
	b.WaitFor(`#cluster-operation form[action$="/pause"]`)
	if during := placesOf(b); during != before {
		t.Errorf("while it runs the content is at %v, before at %v", during, before)
	}
	w.finish(loom.OperationRef{Cluster: id, Number: 2}, loom.ClusterActive)
	b.WaitText("Restarted")
	b.WaitGone(`#cluster-operation form[action$="/pause"]`)
	if after := placesOf(b); after != before {
		t.Errorf("after it the content is at %v, before at %v", after, before)
	}
}

// placesOf are where the parts of a cluster's overview begin, in pixels.
func placesOf(b *browser.Browser) [3]float64 {
	var tops [3]float64
	for i, selector := range []string{".c-tabs", ".c-nodes", "#connect"} {
		tops[i], _ = boxOf(b, selector)
	}
	return tops
}

// TestMorphedLinksLeadWhereTheySay: a link that opened a dialog and that an update turned into a
// plain one does not open the dialog any more.
func TestMorphedLinksLeadWhereTheySay(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 2)
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	b.Open(base + route.Cluster(op.Cluster))
	b.WaitFor(`#cluster-operation a[hx-get$="/abort"]`)
	got := runOn(b, `(() => {
		const link = document.querySelector('#cluster-operation a[hx-get$="/abort"]');
		Idiomorph.morph(link, '<a href="#there">There</a>');
		link.click();
		return location.hash + " " + link.outerHTML;
	})()`)
	if want := `#there <a href="#there">There</a>`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
