//go:build browser

package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestTaskOpensBesideItsPlan opens a task of a plan by keyboard and goes back: the panel
// has the address of the task's page, which a reload and a narrow window show instead.
func TestTaskOpensBesideItsPlan(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop-front", 3)
	w.runSome(op, 2, 2)
	task, other := loom.TaskRef{Operation: op, Number: 3}, loom.TaskRef{Operation: op, Number: 4}
	w.log(task, "stderr", "E: no such package")
	b, base := w.browse(t, "ana", browser.Options{})
	hands := b.PatientKeyboard(300)
	at := func(path string) { t.Helper(); b.Wait(path, func() bool { return b.URL() == base+path }) }
	goes := func(way string) {
		t.Helper()
		browser.Get(b, way, chromedp.Evaluate[bool]("history."+way+"(), true"))
	}
	plan := route.OperationGraph(op)
	link := func(ref loom.TaskRef) string { return fmt.Sprintf("svg a[href='%s']", route.Task(ref)) }
	const panel = "#task-side:not([hidden]) #task-side-title"

	b.Open(base + plan)
	b.WaitFor("#task-side[data-ready]")
	hands.Activate("a task of the graph", link(task))
	b.WaitFor(panel + ":focus")
	at(route.Task(task))
	b.WaitText("E: no such package")
	b.WaitFor(link(task) + "[data-chosen]")
	if !b.Has("#operation-view svg") {
		t.Error("the plan is gone")
	}
	b.Inspect("a task beside its plan")
	// Another one takes its place; Escape leads back to the plan, and the focus to the task.
	hands.Activate("what waits for it, or what it waits for", fmt.Sprintf("#task-side a[href^='%s/tasks/']:not([data-side-page])", route.Operation(op)))
	b.Wait("another task", func() bool { return b.URL() != base+route.Task(task) })
	b.WaitFor(panel + ":focus")
	pressKeys(b, kb.Escape)
	at(plan)
	b.WaitFor("#task-side[hidden]")
	b.WaitFor(link(task) + ":focus")

	// Back and Forward do what they say.
	hands.Activate("another task of the graph", link(other))
	b.WaitFor(panel + ":focus")
	goes("back")
	at(plan)
	b.WaitFor("#task-side[hidden]")
	goes("forward")
	b.WaitFor(panel)
	at(route.Task(other))

	// A reload shows the page, from which Back leads to the plan.
	b.Reload()
	b.WaitFor("h1")
	b.WaitLoaded()
	if b.Has("#task-side") {
		t.Error("the page of the task is not its own")
	}
	goes("back")
	b.WaitFor("#operation-view svg")
	at(plan)

	// There is no room beside in a narrow window.
	b.Size(390)
	b.Open(base + route.OperationTasks(op))
	hands.Activate("a task of the list", fmt.Sprintf("#operation-view a[href='%s']", route.Task(task)))
	b.WaitFor("h1")
	at(route.Task(task))
	if b.Has("#task-side") {
		t.Error("a narrow window does not show the page")
	}
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
