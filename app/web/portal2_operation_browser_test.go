//go:build browser

package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestOperationFitsTheWindow: 21 tasks and more are seen at once, as a timeline; once complete
// nothing counts them.
func TestOperationFitsTheWindow(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := loom.OperationRef{Cluster: w.active("shop", 4), Number: 1}
	for _, width := range []int{390, 1440} {
		b, base := w.browse(t, "ana", browser.Options{Width: width})
		b.Open(base + route.Operation(op))
		if n := runOn(b, `document.querySelectorAll(".gantt-bar").length`); n < "21" {
			t.Errorf("%d wide: %s bars", width, n)
		}
		if _, bottom := boxOf(b, "#main"); width == 1440 && bottom > 900 {
			t.Errorf("the page is %.0f px high", bottom)
		}
		if b.Has(".c-segments") || b.Has("#operation-head dl") {
			t.Error("a complete operation is counted")
		}
		if clipped := runOn(b, `[...document.querySelectorAll(".gantt-text > span")].filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth && getComputedStyle(e).textOverflow !== "ellipsis").length`); clipped != "0" {
			t.Errorf("%d wide: %s labels are cut off", width, clipped)
		}
		if p := b.Page(); p.Overflow > 0 {
			t.Errorf("%d wide: the page is wider by %d", width, p.Overflow)
		}
		if faults := b.Faults(); len(faults) != 0 {
			t.Errorf("%d wide: %q", width, faults)
		}
	}
}

// TestGraphFitsItsBox: the graph is never wider than its box nor too small to read, and begins
// where something failed.
func TestGraphFitsItsBox(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.db.MustExec(`UPDATE tenants SET max_nodes = 100 WHERE id = $1`, w.tenant.ID)
	for _, nodes := range []int{3, 7, 30} {
		op := w.create(fmt.Sprintf("shop%d", nodes), nodes)
		for _, width := range []int{390, 800, 1440} {
			b, base := w.browse(t, "ana", browser.Options{Width: width})
			b.Open(base + route.OperationGraph(op))
			what := fmt.Sprintf("%d nodes, %d wide", nodes, width)
			seen := runOn(b, `[...document.querySelectorAll(".c-dag")].filter((e) => e.checkVisibility()).map((e) => [e.scrollWidth <= e.clientWidth, e.querySelector("svg").getBoundingClientRect().width / e.querySelector("svg").viewBox.baseVal.width >= .59].join()).join(" ")`)
			if seen != "true,true" {
				t.Errorf("%s: a picture that fits, and is not too small: %q", what, seen)
			}
			if tools := runOn(b, `document.querySelector(".c-graph-tools").checkVisibility()`); tools != fmt.Sprint(width > 640) {
				t.Errorf("%s: tools are shown: %s", what, tools)
			}
		}
	}
	op := w.create("deep", 3)
	w.finishAllBut(op, 1)
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	b.Open(base + route.OperationGraph(op))
	b.WaitFor(".c-dag[data-ready]")
	b.WaitTrue("the failed box", `(() => { const dag = document.querySelector(".c-dag").getBoundingClientRect(), box = document.querySelector(".dag-node.is-failed").getBoundingClientRect(); return box.top >= dag.top && box.bottom <= dag.bottom })()`)
}

// finishAllBut completes the tasks of an operation but for the last ones, of which the first fails.
func (w *clusterWorld) finishAllBut(op loom.OperationRef, last int) {
	w.t.Helper()
	var total int
	w.must(w.db.Get(&total, `SELECT count(*) FROM tasks WHERE cluster_id = $1 AND NOT gate`, int64(op.Cluster)))
	w.runSome(op, total-last, 0)
	w.fail(loom.TaskRef{Operation: op, Number: total - last + 1}, "exited with 1")
}

// TestFailedOnlyLeavesNoCompleteTask: all views keep to the filters, also from one to the next.
func TestFailedOnlyLeavesNoCompleteTask(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 3)
	w.log(loom.TaskRef{Operation: op, Number: 1}, "stdout", "alpha")
	w.finishAllBut(op, 4)
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	b.Open(base + route.Operation(op))
	b.Do("failed only", chromedp.Click(chromedp.CSS("#task-filters > summary")), chromedp.SetValue(chromedp.CSS("#f-status"), "failed"), chromedp.Click(chromedp.CSS(".c-toolbar [type=submit]")))
	// Links lead to filtered views once the page around them is the filtered one.
	const tab = `[...document.querySelectorAll(".c-tabs a")].find((a) => a.textContent.trim() === `
	b.WaitTrue("the filter", `location.search.includes("status=failed") && `+tab+`"Log").search.includes("status=failed")`)
	for view, selectors := range map[string][2]string{
		"Timeline": {".gantt-bar.is-failed .gantt-failed", ".gantt-bar.is-complete"}, "Graph": {".dag-node.is-failed", ".dag-node.is-complete"},
		"Tasks": {"#tasks tbody [data-tone=bad]", "#tasks tbody [data-tone=ok]"}, "Log": {"#log", ".c-log-line"},
	} {
		b.Open(runOn(b, tab+jsText(view)+`).href`))
		b.WaitLoaded()
		b.WaitFor(selectors[0])
		if complete := runOn(b, `document.querySelectorAll(`+jsText(selectors[1])+`).length`); complete != "0" {
			t.Errorf("%s: %s complete tasks", view, complete)
		}
		if got := runOn(b, `document.querySelector("#f-status").value`); got != "failed" {
			t.Errorf("%s: the filter is %q", view, got)
		}
	}
}

// TestRetriesAreNumbered: a retry says which of how many it is, and leads to what it continues;
// that leads to it. Each attempt is a bar.
func TestRetriesAreNumbered(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	var first loom.OperationRef
	again := func() loom.OperationRef {
		ref, err := w.clusters.Begin(w.ctx, w.actor("ana"), clusters.PreviewInput{Kind: loom.ChangeRetry, Cluster: first.Cluster})
		w.must(err)
		return ref
	}
	first = w.create("shop", 2)
	w.fail(loom.TaskRef{Operation: first, Number: 1}, "exited with 1")
	second := again()
	w.fail(loom.TaskRef{Operation: second, Number: 1}, "exited with 1")
	third := again()
	w.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, started_at, ended_at) SELECT t.id, 2, 'host-1a2b3c4d', 'failed', now(), now() + interval '1 s'
		FROM operations o JOIN tasks t ON t.operation_id = o.id WHERE o.cluster_id = $1 AND o.number = 1 AND t.number = 1 AND NOT t.gate`, int64(first.Cluster))
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	for op, want := range map[loom.OperationRef]string{first: "Create shop", second: "Create shop, retry 1 of 2", third: "Create shop, retry 2 of 2"} {
		b.Open(base + route.Operation(op))
		if got := strings.TrimSpace(b.TextOf("h1")); got != want {
			t.Errorf("operation %d is called %q, want %q", op.Number, got, want)
		}
		for other, linked := range map[loom.OperationRef]bool{first: op == second, second: op != second, third: op == second} {
			if b.Has(`.c-factline a[href="`+route.Operation(other)+`"]`) != linked {
				t.Errorf("operation %d and %d are linked: %v", op.Number, other.Number, !linked)
			}
		}
	}
	b.Open(base + route.Operation(first))
	if !b.Has(`.gantt-bar.is-failed[href="` + route.TaskAttempt(loom.TaskRef{Operation: first, Number: 1}, 2) + `"]`) {
		t.Error("the second attempt has no bar")
	}
}
