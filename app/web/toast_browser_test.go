//go:build browser

package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit/browser"
	"loom/static"
	"loom/views/route"
	"loom/views/ui"
)

// runOn runs a script on the page and gives what it comes to as text.
func runOn(b *browser.Browser, script string) string {
	return browser.Get(b, script, chromedp.Evaluate[string]("String("+script+")"))
}

// raiseToast shows a toast as an answer of the server does.
func raiseToast(b *browser.Browser, tone, text string) {
	runOn(b, fmt.Sprintf(`document.dispatchEvent(new CustomEvent("loom:toast", {detail: {text: %q, tone: %q, request: %q}}))`, text, tone, map[string]string{"bad": "r-4711"}[tone]))
}

// TestToastsComeAndGo: what was done is said once and goes by itself, what failed stays
// until it is closed, and neither is lost behind a dialog.
func TestToastsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ctx, stop := context.WithCancel(w.ctx)
	t.Cleanup(stop)
	go w.hub.Run(ctx) //nolint:errcheck // the page would not hear
	shop := w.create("shop", 2)
	b, base := w.browse(t, "ana", browser.Options{})
	toasts := func() string {
		return runOn(b, `[...document.querySelectorAll(".c-toast")].map(t => t.querySelector("p").textContent).join("|")`)
	}
	shows := func(want string) {
		t.Helper()
		b.Wait("the toasts "+want, func() bool { return toasts() == want })
	}
	b.Open(base + "/clusters")
	b.WaitFor("#toasts[data-ready]")

	raiseToast(b, "ok", "Stored.")
	raiseToast(b, "bad", "Not stored.")
	shows("Stored.|Not stored. Request r-4711")
	raiseToast(b, "ok", "Stored.")
	shows("Not stored. Request r-4711|Stored.") // the same is there once
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("toasts: %q", faults)
	}
	shows("Not stored. Request r-4711") // what was done goes by itself
	raiseToast(b, "ok", "Pointed at.")
	shows("Not stored. Request r-4711|Pointed at.")
	b.Do("point at it", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		at := strings.Split(runOn(b, `(r => r.x + 20 + " " + (r.y + r.height / 2))(document.querySelector(".c-toast:last-child").getBoundingClientRect())`), " ")
		x, _ := strconv.ParseFloat(at[0], 64)
		y, _ := strconv.ParseFloat(at[1], 64)
		_, err := chromedp.Call(ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: x, Y: y})
		return err
	}))
	b.Wait("it is pointed at", func() bool { return b.Has(".c-toast:hover") })

	// Into an open dialog and out of it again; closed by keyboard, which gives the focus back.
	runOn(b, `document.querySelector("#keys").focus()`)
	pressKeys(b, "?")
	b.WaitFor("#dialog[open] h2")
	raiseToast(b, "bad", "In the dialog.")
	b.WaitFor("#dialog #toasts:popover-open .c-toast")
	pressKeys(b, kb.Escape)
	b.WaitFor("body > #toasts")
	runOn(b, `document.querySelector(".c-toast .c-close").focus()`)
	for range 3 { // from one to the next
		if b.Has(".c-toast .c-close:focus") {
			pressKeys(b, kb.Escape)
		}
	}
	b.WaitGone(".c-toast")
	b.Wait("the focus comes back", focused(b, "#keys"))

	// What ends while somebody looks at another page.
	b.WaitFor("#live[data-state=live]")
	// That it began is no news any more once it has ended, unless it is pointed at.
	b.Do("point elsewhere", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: 5, Y: 5})
		return err
	}))
	runOn(b, fmt.Sprintf(`document.dispatchEvent(new CustomEvent("loom:toast", { detail: { text: "Creating shop.", action: "View the plan", href: %q } })) ? "" : ""`, route.Operation(shop)))
	b.WaitFor(".c-toast a[href='" + route.Operation(shop) + "']")
	w.must(store.Exec(ctx, w.db.DB, func(tx *sqlx.Tx) error {
		op, err := store.LockOperation(ctx, tx, w.tenant.ID, shop)
		if err != nil {
			return err
		}
		return store.EndOperation(ctx, tx, &op, loom.OperationComplete, loom.ClusterActive, "", false)
	}))
	b.Wait("the news", func() bool { return strings.Contains(toasts(), "Create of shop is complete. View operation") })
	if got := toasts(); strings.Contains(got, "Creating shop.") {
		t.Errorf("told: %q", got)
	}
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}

// TestTimesGoOn: relative times move on by themselves, in words that are those of the
// server, also in rows that come later.
func TestTimesGoOn(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.finish(w.create("shop", 2), loom.ClusterActive)
	w.db.MustExec(`UPDATE operations SET ended_at = now() - interval '25 seconds'`)
	b, base := w.browse(t, "ana", browser.Options{})
	b.Open(base + "/clusters")
	b.WaitLoaded()
	words := func() string {
		return runOn(b, `document.querySelector("#clusters tbody td[data-label='Last change'] time").textContent`)
	}
	first := words()
	b.Wait("the time to move on from "+first, func() bool { return words() != first && strings.HasSuffix(words(), "s ago") })
	b.Do("a row that comes later", chromedp.Evaluate[chromedp.Void](`document.querySelector("#clusters").insertAdjacentHTML("beforeend", '<time id="late" data-age="-59.5">in 59 s</time><time id="hour" data-age="3599">59 min ago</time>')`))
	b.WaitTrue("an hour", `document.querySelector("#hour").textContent === "1 h ago"`)
	b.WaitTrue("less than a minute", `document.querySelector("#late").textContent !== "in 59 s"`)

	now := time.Date(2026, 6, 9, 12, 0, 0, 0, time.UTC)
	var script, want strings.Builder
	for _, seconds := range []int{0, 9, 10, 59, 60, 119, 120, 3599, 3600, 7200, 172799, 172800, 59 * 86400, 60 * 86400, 75 * 86400, 400 * 86400, 729 * 86400, 730 * 86400, 2000 * 86400} {
		for _, age := range []int{seconds, -seconds} {
			fmt.Fprintf(&script, "%d,", age)
			want.WriteString(ui.Relative(now.Add(-time.Duration(age)*time.Second), now) + "|")
		}
	}
	runOn(b, fmt.Sprintf(`import(%q).then(m => { document.body.dataset.words = [%s].map(m.relative).join("|") + "|"; })`, static.URL("js/tick.js"), script.String()))
	b.WaitFor("body[data-words]")
	if got := runOn(b, `document.body.dataset.words`); got != want.String() {
		t.Errorf("scripts say\n%s\nthe server says\n%s", got, want.String())
	}
	if a := w.get("ana", "/clusters"); a.Code != http.StatusOK || !strings.Contains(a.Body, "data-age=") {
		t.Error("the list has no times that go on")
	}
}
