//go:build browser

package web_test

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestActivityByKeyboard: an operation is one line with its present state and a way on, and each
// filter narrows the list as soon as it is chosen, with its choice in the address.
func TestActivityByKeyboard(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.active("shop", 2)
	broken := w.create("broken", 2)
	w.fail(loom.TaskRef{Operation: broken, Number: 1}, "There is no image bookworm.")
	running := w.create("blog", 2)
	w.runSome(running, 2, 2)
	for _, width := range []int{1440, 390, 320} {
		b, base := w.browse(t, "ana", browser.Options{Width: width})
		b.Open(base + route.Activity())
		lines := func(selector string) string {
			return runOn(b, `document.querySelectorAll(".c-feed-list > li`+selector+`").length`)
		}
		if got := lines(":has([data-fact^=operation])"); got != "3" {
			t.Errorf("%d wide: %s lines of operations, want 3", width, got)
		}
		for _, line := range []struct{ cluster, state, button string }{{"shop", "Complete in", ""}, {"broken", "Failed", "Change and retry"}, {"blog", "%", ""}} {
			text := runOn(b, `[...document.querySelectorAll(".c-feed-list > li")].find((e) => e.querySelector("p > a")?.textContent == "`+line.cluster+`")?.textContent ?? ""`)
			if text = strings.Join(strings.Fields(text), " "); !strings.HasPrefix(text, "You ") || !strings.Contains(text, line.cluster+" with 2 nodes ") || !strings.Contains(text, line.state) || !strings.Contains(text, line.button) {
				t.Errorf("%d wide: the line of %s is %q", width, line.cluster, text)
			}
		}
		atEase(t, b, width)
		for name, value := range map[string]string{"user": "ana", "cluster": "blog", "action": "create", "about": "clusters", "result": loom.ActivityFailed} {
			b.Open(base + route.Activity())
			chooseByKeys(b, name, value)
		}
		b.Open(base + route.Query(route.Activity(), "cluster", "blog", "result", loom.ActivityRunning))
		if got := lines(""); got != "1" {
			t.Errorf("%d wide: %s lines of what runs on blog", width, got)
		}
		b.Open(base + route.Query(route.Activity(), "cluster", "shop", "result", loom.ActivityFailed))
		b.Mouse().Activate("Clear filters", ".c-empty a, .c-empty .c-button")
		b.Wait("all lines", func() bool { return lines("") != "0" && !strings.Contains(b.URL(), "cluster=") })
		b.Do("the range", chromedp.Focus(chromedp.CSS(`.c-choices a[href*="period=24h"]`)))
		pressKeys(b, kb.Enter)
		b.Wait("the range in the address", func() bool { return strings.Contains(b.URL(), "period=24h") })
	}
}

// TestActivityIsLive: the line of an operation follows it, and a new one comes without a reload.
func TestActivityIsLive(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	go w.hub.Run(ctx) //nolint:errcheck // the page would not hear
	running := w.create("blog", 2)
	w.runSome(running, 2, 2)
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	b.Open(base + route.Activity())
	b.WaitText("Running")
	_, err := w.ops.Pause(w.ctx, w.actor("ana"), running)
	w.must(err)
	b.WaitText("Paused")
	b.WaitText("paused operation 1 of")
	w.create("shop", 2)
	b.WaitText("shop")
}

// TestUsageByKeyboard: the total is the largest text, the table of the chart is folded, and range,
// group and split are in the address.
func TestUsageByKeyboard(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.active("shop", 2)
	w.db.MustExec(`UPDATE tasks SET ended_at = ended_at - interval '5 hours' WHERE action = 'create'`)
	for _, width := range []int{1440, 390, 320} {
		b, base := w.browse(t, "ana", browser.Options{Width: width})
		b.Open(base + route.Usage())
		if got := runOn(b, `parseFloat(getComputedStyle(document.querySelector("[data-fact='usage total']")).fontSize) >= Math.max(...[...document.querySelectorAll("#main *")].map((e) => parseFloat(getComputedStyle(e).fontSize)))`); got != "true" {
			t.Errorf("%d wide: something is larger than the total", width)
		}
		if got := runOn(b, `document.querySelector(".c-chart details").open`); got != "false" {
			t.Errorf("%d wide: the table of the chart is open: %s", width, got)
		}
		if got := runOn(b, `document.querySelectorAll("#parts-rows tr").length`); got != "1" {
			t.Errorf("%d wide: %s rows of usage, want that of the one template", width, got)
		}
		atEase(t, b, width)
		for name, value := range map[string]string{"group": "hour", "split": "cluster", "unit": "days"} {
			b.Open(base + route.Usage())
			chooseByKeys(b, name, value)
		}
		b.Do("the range", chromedp.Focus(chromedp.CSS(`.c-choices a[href*="period=24h"]`)))
		pressKeys(b, kb.Enter)
		b.Wait("the range in the address", func() bool { return strings.Contains(b.URL(), "period=24h") })
	}
}

// TestReportsWithoutScripts: choices have a button, and what was chosen is listed.
func TestReportsWithoutScripts(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.active("shop", 2)
	w.create("blog", 2)
	b, base := w.browse(t, "ana", browser.Options{Width: 390, NoScript: true})
	for _, page := range []struct{ at, field, value, found string }{
		{route.Activity(), "cluster", "shop", ".c-feed-list"}, {route.Usage(), "split", "cluster", "#parts-rows"},
	} {
		b.Open(base + page.at)
		b.Do("choose "+page.value, chromedp.SetValue(chromedp.CSS("select[name="+page.field+"]"), page.value))
		b.Mouse().Activate("Apply", ".c-toolbar button[type=submit]")
		b.Wait("the choice in the address", func() bool { return strings.Contains(b.URL(), page.field+"="+page.value) })
		b.WaitFor(page.found)
	}
}

// atEase reports faults of accessibility, and what is wider than the window.
func atEase(t *testing.T, b *browser.Browser, width int) {
	t.Helper()
	for _, dark := range []bool{false, true} {
		b.Dark(dark)
		if faults := b.Faults(); len(faults) != 0 {
			t.Errorf("%d wide, dark %v: %q", width, dark, faults)
		}
		look(b, t, width, dark)
	}
	b.Dark(false)
	if wide := runOn(b, `document.documentElement.scrollWidth`); wide > strconv.Itoa(width) && len(wide) >= len(strconv.Itoa(width)) {
		t.Errorf("the page is %s wide in a window of %d", wide, width)
	}
}

// chooseByKeys chooses a value of a filter with the arrow keys.
func chooseByKeys(b *browser.Browser, name, value string) {
	b.WaitFor("#keys[data-ready]")
	at := "select[name=" + name + "]"
	b.Do("focus "+name, chromedp.Focus(chromedp.CSS(at)))
	key := kb.ArrowDown
	if runOn(b, `(() => { const s = document.querySelector(`+jsText(at)+`); return [...s.options].findIndex((o) => o.value == `+jsText(value)+`) < s.selectedIndex })()`) == "true" {
		key = kb.ArrowUp
	}
	for b.Value(at) != value {
		before := b.URL()
		pressKeys(b, key)
		b.Wait("the next choice of "+name, func() bool { return b.URL() != before })
	}
	b.Wait(name+" in the address", func() bool { return strings.Contains(b.URL(), name+"="+url.QueryEscape(value)) })
}
