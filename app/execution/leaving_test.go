package execution_test

import (
	"testing"

	"loom/app/store"
)

// Whom tasks are told of: nodes that are gone are of no use to anybody, and what is
// taken back knows those only that got an address.
func TestNodesThatTasksKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.exec(`UPDATE nodes SET ipaddresses = '{"bind_v4": "192.0.2.1"}' WHERE number < 1002`)
	w.exec(`UPDATE nodes SET leaving = true, state = 'deleted' WHERE number = 1003`)
	w.exec(`UPDATE nodes SET leaving = true WHERE number = 1001`)
	for _, c := range []struct {
		leaving, undo bool
		want          []int
	}{
		{false, false, []int{1000, 1002}}, {true, false, []int{1000, 1001, 1002}}, {false, true, []int{1000}}, {true, true, []int{1000, 1001}},
	} {
		nodes, _, err := store.NodeProperties(ctx, w.db.DB, "t1", w.cluster, c.leaving, c.undo)
		if err != nil {
			t.Fatal(err)
		}
		found := map[int]bool{}
		for _, n := range nodes {
			found[n.Number] = true
		}
		for _, number := range c.want {
			if !found[number] {
				t.Errorf("%+v: node %d is missing", c, number)
			}
		}
		if len(found) != len(c.want) {
			t.Errorf("%+v: %v", c, found)
		}
	}
}
