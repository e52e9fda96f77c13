//go:build browser

package web_test

import (
	"fmt"
	"testing"

	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestTasksOfALargePlanByKeyboard goes to tasks of a plan of more than 1,000 without
// pointing: to the group in the picture, to the table of its tasks, to the task; and by the table
// of all.
func TestTasksOfALargePlanByKeyboard(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op, tasks := w.bigPlan()
	b, base := w.browse(t, "ana", browser.Options{})
	hands := b.PatientKeyboard(300)
	at := func(path string) { b.Wait(path, func() bool { return b.URL() == base+path }) }
	for _, number := range []int{7, tasks/2 + 5} {
		var group string
		w.must(w.db.Get(&group, `SELECT 'g' || level || '-' || action FROM tasks WHERE cluster_id = $1 AND number = $2 AND NOT gate`, int64(op.Cluster), number))
		b.Open(base + route.OperationGraph(op))
		hands.Activate("the group "+group, fmt.Sprintf("svg a[data-node='%s']", group))
		b.WaitFor("#tasks")
		task := fmt.Sprintf("%s/tasks/%d", route.Operation(op), number)
		link := fmt.Sprintf("#tasks a[href='%s']", task)
		if !b.Has(link) {
			hands.Activate("the next page", "nav a[rel=next]")
			b.WaitFor(link)
		}
		hands.Activate("the task", link)
		at(task)
		b.WaitText("Depends on")
	}

	b.Open(base + route.Operation(op))
	hands.Activate("the table", fmt.Sprintf("a[href='%s']", route.OperationTasks(op)))
	at(route.OperationTasks(op))
	hands.Activate("the next page", "nav a[rel=next]")
	hands.Activate("a task of it", fmt.Sprintf("a[href='%s/tasks/150']", route.Operation(op)))
	at(route.Operation(op) + "/tasks/150")
}
