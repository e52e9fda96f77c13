package execution_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"loom/app/execution"
	"loom/app/loom"
)

// TestManyLogsAreStoredTogether: logs that end at the same time lose nothing, and one
// that the database refuses takes no other with it.
func TestManyLogsAreStoredTogether(t *testing.T) {
	t.Parallel()
	const n = 30
	w := newWorld(t, n)
	w.ops = execution.New(w.db.DB, w.ring, execution.Options{LogPatience: 300 * time.Millisecond})
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	keys := make([]execution.AttemptKey, n)
	for i := range keys {
		keys[i] = w.deliver(i + 1)
	}
	var ending sync.WaitGroup
	for i, key := range keys {
		ending.Go(func() {
			stream := "stdout"
			if i == 7 {
				stream = "\xff" // no text for a database
			}
			l := w.ops.Log(key)
			for line := range 3 {
				l.Add(stream, fmt.Sprintf("line %d of task %d", line, key.Task))
			}
			l.Close()
		})
	}
	ending.Wait()
	w.expect(fmt.Sprint(3*(n-1)), `SELECT count(*)::text FROM task_logs WHERE text = 'line ' || seq - 1 || ' of task ' || task_id`)
	w.expect("0", `SELECT count(*)::text FROM task_logs WHERE task_id = $1`, int64(keys[7].Task))
	w.expect("true", `SELECT bool_and(l.node_id = t.node_id AND l.operation_id = t.operation_id AND l.day = (a.started_at AT TIME ZONE 'UTC')::date)::text
		FROM task_logs l JOIN tasks t ON t.id = l.task_id JOIN attempts a ON a.task_id = t.id AND a.number = l.attempt`)
}
