//go:build browser

package web_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// lostCells names the cells of tables that cannot be seen: hidden, or beside the window. What
// is in a closed fold comes with it.
const lostCells = `JSON.stringify([...document.querySelectorAll("main table")].filter(t => t.checkVisibility()).flatMap(t =>
	[...t.querySelectorAll("tbody tr:not(.c-table-message) > *")].filter(c => c.textContent.trim() && (!c.checkVisibility() || c.getBoundingClientRect().right > innerWidth)).map(c =>
		(t.caption?.textContent || "a table") + ": " + (c.dataset.label || t.querySelectorAll("thead th")[c.cellIndex]?.textContent.trim() || c.textContent.trim()))))`

// TestSystemKeepsToItself: no page of the installation leads to one's own tenant, and a narrow window
// hides no column of its tables.
func TestSystemKeepsToItself(t *testing.T) {
	t.Parallel()
	w := newWalkerOf(t, browser.Options{Width: 390}, "superadmin")
	_, err := w.processes.Register(w.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 100})
	check(t, err)
	w.v.post(route.SystemTenants(), "name", "lab", "workers", "0").shows(t, http.StatusOK, "Tenant lab was created")
	for _, tenant := range []string{"demo", "superadmin"} {
		w.past(w.tenantID(tenant), "ana", "web", "small", 1, time.Hour, time.Minute)
	}
	own := regexp.MustCompile(`^/(system|static|docs|api|icons)\b`)
	waiting, seen := []string{route.System()}, map[string]bool{}
	for len(waiting) > 0 {
		at := waiting[0]
		waiting = waiting[1:]
		if path, _, _ := strings.Cut(at, "#"); seen[path] {
			continue
		}
		seen[at] = true
		w.b.Open(w.server.URL + at)
		var cells, links []string
		check(t, json.Unmarshal([]byte(runOn(w.b, lostCells)), &cells))
		slices.Sort(cells)
		if cells = slices.Compact(cells); len(cells) > 0 {
			t.Errorf("%s hides %q", at, cells)
		}
		if p := w.b.Page(); p.Overflow > 0 {
			t.Errorf("%s is wider than the window by %d", at, p.Overflow)
		}
		check(t, json.Unmarshal([]byte(runOn(w.b, `JSON.stringify([...document.querySelectorAll("main a[href^='/'], nav a[href^='/system']")].map(a => a.getAttribute("href")))`)), &links))
		for _, link := range links {
			if !own.MatchString(link) {
				t.Errorf("%s leads to %s", at, link)
			}
			if strings.HasPrefix(link, route.System()) && !strings.Contains(link, "?") {
				waiting = append(waiting, link)
			}
		}
	}
	for _, page := range []string{route.SystemStatus(), route.SystemTenants(), route.SystemTenantTab("lab", "users"), route.SystemWorkers(), route.SystemQueues(), route.SystemJobs(), route.SystemPlugins(), route.SystemOrphans(), route.SystemClusters()} {
		if !seen[page] {
			t.Errorf("no link leads to %s", page)
		}
	}
	t.Logf("%d pages", len(seen))
}
