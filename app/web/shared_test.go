package web_test

import (
	"net/http"
	"sync"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
)

// TestViewersShareALivePart lets many fetch the same part at once: it is rendered few
// times, shows what was so when it was asked for, and is not given to who may not see it.
func TestViewersShareALivePart(t *testing.T) {
	t.Parallel()
	db := clusterDatabase(t)
	statements := testkit.CountStatements(t, db)
	w := clusterWorldOn(t, db)
	ref := w.create("seen-by-many", 3)
	path := "/clusters/" + ref.Cluster.String() + "/panel?part=operation"
	const viewers = 30
	fetch := func() int {
		before := statements.Count()
		var all sync.WaitGroup
		answers := make([]clusterAnswer, viewers)
		for i := range viewers {
			all.Go(func() { answers[i] = w.part("ana", path, "operation") })
		}
		all.Wait()
		for _, a := range answers {
			a.is(http.StatusOK, "<h2>Create</h2>")
		}
		return statements.Count() - before
	}
	if n := fetch(); n > viewers*5 {
		t.Errorf("%d viewers of one part made %d statements", viewers, n)
	}
	w.part("eve", path, "operation").is(http.StatusNotFound)
	w.part("admin", path, "operation").is(http.StatusOK, "<h2>Create</h2>")
	w.runSome(ref, 2, 1)
	w.fail(loom.TaskRef{Operation: ref, Number: 1}, "no capacity left")
	for range 3 {
		w.part("ana", path, "operation").is(http.StatusOK, "no capacity left")
	}
}
