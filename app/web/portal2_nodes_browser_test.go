//go:build browser

package web_test

import (
	"fmt"
	"strings"
	"testing"

	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestNodesAreGroupedByServices: a row says what a node is called, how it is, how to get in, and
// what can be done; a phone has the command on a line of its own.
func TestNodesAreGroupedByServices(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 3)
	v := w.cluster(id)
	w.db.MustExec(`INSERT INTO node_load (node_id, incarnation, slot, points) SELECT id, incarnation, floor(extract(epoch FROM now()) / 300)::bigint - 1, decode(repeat('0c2030', 12), 'hex') FROM nodes WHERE cluster_id = $1`, int64(id))
	w.db.MustExec(`UPDATE nodes SET ipaddresses = '{"access_v4": "10.134.100.122"}' WHERE id = $1::uuid`, v.Nodes[2].ID) // which makes the columns of its set wider
	for _, width := range []int{390, 1440} {
		b, base := w.browse(t, "ana", browser.Options{Width: width})
		b.Open(base + route.ClusterNodes(id))
		if text := b.TextOf("#cluster-nodes"); !strings.Contains(text, "nginx (2)") || !strings.Contains(text, "haproxy (1)") {
			t.Errorf("%d wide: the groups are %q", width, text)
		}
		row := "#node-" + string(v.Nodes[0].ID)
		for _, part := range []string{"th a", ".c-badge", "code", ".c-copytext button", "[popovertarget]"} {
			if seen := runOn(b, fmt.Sprintf(`document.querySelector(%s)?.checkVisibility() ?? false`, jsText("[id='"+row[1:]+"'] "+part))); seen != "true" {
				t.Errorf("%d wide: %s of a row is not seen", width, part)
			}
		}
		if width == 1440 {
			if columns := runOn(b, `new Set([...document.querySelectorAll(".c-set table")].map((t) => [...t.querySelectorAll("th[scope=col]")].map((h) => Math.round(h.getBoundingClientRect().left)).join())).size`); columns != "1" {
				t.Errorf("the sets have %s kinds of columns", columns)
			}
			if text := runOn(b, `document.querySelector("[data-nodes] .c-spark").textContent.trim()`); text != "12 %" {
				t.Errorf("the CPU is %q", text)
			}
		} else if own := runOn(b, `(() => { const r = document.querySelector("[data-nodes] tbody tr"), a = r.querySelector("th").getBoundingClientRect(), c = r.querySelector("code").getBoundingClientRect(); return c.top >= a.bottom - 4 })()`); own != "true" {
			t.Error("the command is not on a line of its own")
		}
		if p := b.Page(); p.Overflow > 0 || runOn(b, `[...document.querySelectorAll("[data-nodes]")].some((e) => e.scrollWidth > e.clientWidth)`) == "true" {
			t.Errorf("%d wide: the page or a table scrolls sideways", width)
		}
		if faults := b.Faults(); len(faults) != 0 {
			t.Errorf("%d wide: %q", width, faults)
		}
	}
}

// TestNodePage: SSH and services come first, ids last and folded, and a journal opens beside.
func TestNodePage(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 3)
	n := w.cluster(id).Nodes[0]
	w.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, started_at, ended_at) SELECT t.id, g, 'host-1a2b3c4d', 'failed', now(), now()
		FROM (SELECT id FROM tasks WHERE node_id = $1::uuid AND NOT gate ORDER BY number LIMIT 1) t, generate_series(2, 9) AS g`, n.ID)
	for _, width := range []int{390, 1440} {
		b, base := w.browse(t, "ana", browser.Options{Width: width})
		b.Open(base + route.Node(id, n.ID))
		if got := strings.TrimSpace(b.TextOf("h1")); got != fmt.Sprintf("Node %d", n.Number) {
			t.Errorf("the heading is %q", got)
		}
		order := runOn(b, `[...document.querySelectorAll("#main h2, #technical > summary")].map((e) => e.textContent.trim()).join()`)
		if order != "SSH,Services,Load,History,Technical details" {
			t.Errorf("%d wide: the parts are %s", width, order)
		}
		if seen := runOn(b, `[...document.querySelectorAll("#main *")].some((e) => e.children.length === 0 && e.textContent.includes(`+jsText(string(n.ID))+`) && e.checkVisibility())`); seen != "false" {
			t.Errorf("%d wide: the id is in view", width)
		}
		if n := runOn(b, `document.querySelectorAll("#history tbody tr").length`); n != "10" {
			t.Errorf("%s rows of history", n)
		}
		if p := b.Page(); p.Overflow > 0 {
			t.Errorf("%d wide: the page is wider by %d", width, p.Overflow)
		}
		if faults := b.Faults(); len(faults) != 0 {
			t.Errorf("%d wide: %q", width, faults)
		}
	}
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	b.Open(base + route.Node(id, n.ID))
	b.WaitFor("#task-side[data-ready]")
	hands := b.Keyboard()
	hands.Activate("the journal", fmt.Sprintf("a[href='%s']", route.ServiceJournal(id, n.ID, n.Services[0])))
	b.WaitFor("#task-side:not([hidden]) #task-side-title")
	pressKeys(b, "\x1b")
	b.WaitGone("#task-side:not([hidden])")
	if b.URL() != base+route.Node(id, n.ID) {
		t.Errorf("Esc leads to %s", b.URL())
	}
}

// TestKeyDownloads: the key comes as a file that nothing keeps, with an entry in the audit log
// for each download and none for a look.
func TestKeyDownloads(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 2)
	at := route.ClusterVerb(id, "key")
	entries := func() (n int) {
		w.must(w.db.Get(&n, `SELECT count(*) FROM audit WHERE verb = 'reveal' AND object = $1`, id.String()))
		return n
	}
	w.get("ana", at)
	before := entries()
	for range 2 {
		answer := w.post("ana", at, nil).is(200, "PRIVATE KEY")
		if got := answer.Header.Get("Content-Disposition"); got != fmt.Sprintf(`attachment; filename="loom-%s.pem"`, id) {
			t.Errorf("it is sent as %q", got)
		}
		if got := answer.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("caches are told %q", got)
		}
	}
	if n := entries() - before; before != 0 || n != 2 {
		t.Errorf("%d entries before, %d of two downloads", before, n)
	}
	w.post("eve", at, nil).is(404)
}
