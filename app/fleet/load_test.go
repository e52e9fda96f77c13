package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"loom/app/loom"
)

// TestLoad: points follow each other, with gaps where nothing was recorded, for a day, and
// are fenced as other results are.
func TestLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	ctx := context.Background()
	slot := func() int {
		return w.count(`SELECT round(extract(epoch FROM now()) / 300)`)
	}
	for tries := 0; ; tries++ {
		began := slot()
		trouble := w.loads(ctx)
		if slot() == began || tries == 3 { // else a step ended by itself somewhere between
			for _, text := range trouble {
				t.Error(text)
			}
			break
		}
		w.exec(`DELETE FROM node_load; UPDATE nodes SET incarnation = 1`)
	}

	stranger := ana
	stranger.User = "ben"
	if _, err := w.fleet.Load(ctx, stranger, w.cluster, w.nodes[0]); !errors.Is(err, loom.NotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	for _, node := range []loom.NodeID{"7c0a3a1e-0000-4000-8000-000000000000", "x'; --", ""} {
		if _, err := w.fleet.Load(ctx, ana, w.cluster, node); !errors.Is(err, loom.NotFound) {
			t.Errorf("node %q: %v", node, err)
		}
	}
	w.exec(`UPDATE nodes SET state = 'deleted' WHERE id = $1`, w.nodes[0])
	if _, err := w.fleet.Judge(ctx); err != nil {
		t.Fatal(err)
	}
	if left := fmt.Sprint(w.count(`SELECT count(*) FROM node_load WHERE node_id = $1`, w.nodes[0]), w.count(`SELECT count(*) FROM node_load`)); left != "0 1" {
		t.Errorf("left of the deleted machine and in all: %s", left)
	}
}

// loads records and reads loads within one step of the database's clock, and says what went
// wrong.
func (w *world) loads(ctx context.Context) (trouble []string) {
	wrong := func(format string, args ...any) { trouble = append(trouble, fmt.Sprintf(format, args...)) }
	read := func(node int) []int {
		load, err := w.fleet.Load(ctx, ana, w.cluster, w.nodes[node])
		if err != nil {
			w.t.Fatal(err)
		}
		return load.CPU
	}
	expect := func(what string, want ...int) {
		if got := read(0); !slices.Equal(got, want) {
			wrong("%s: %v, want %v", what, got, want)
		}
	}
	record := func(process loom.ProcessID, cpu, incarnation int) {
		var points []loom.LoadPoint
		for _, n := range w.nodes {
			points = append(points, loom.LoadPoint{Node: n, Incarnation: incarnation, Load: loom.Load{CPU: cpu, Memory: -1, Disk: 3}})
		}
		if err := w.fleet.RecordLoad(ctx, process, points); err != nil {
			w.t.Fatal(err)
		}
	}
	// later moves the time on by a number of steps.
	later := func(steps int) { w.exec(`UPDATE node_load SET slot = slot - $1`, steps) }
	expect("nothing")
	record("p1", 1, 1)
	record("p1", 2, 1)
	expect("a second point of the same step", 1)
	later(1)
	record("p1", 3, 1)
	later(3)
	record("p1", 4, 1)
	expect("a gap", 1, 3, -1, -1, 4)
	later(1)
	record("late", 5, 1)
	record("nobody", 5, 1)
	record("p1", 5, 2)
	w.exec(`UPDATE nodes SET state = 'failed' WHERE id = $1`, w.nodes[0])
	record("p1", 5, 1)
	w.exec(`UPDATE nodes SET state = 'ready'`)
	if got := read(0); !slices.Equal(got[:5], []int{1, 3, -1, -1, 4}) || slices.Contains(got, 5) {
		wrong("behind the fences: %v", got)
	}
	if got := read(1); !slices.Contains(got, 5) {
		wrong("the other node: %v", got)
	}
	// A day and no more.
	for i := range loom.LoadPoints {
		later(1)
		record("p1", 10+i%10, 1)
	}
	day := read(0)
	if len(day) != loom.LoadPoints || day[0] != 10 || day[len(day)-1] != 17 {
		wrong("a day has %d points: %v", len(day), day)
	}
	if size := w.count(`SELECT max(octet_length(points)) FROM node_load`); size != 3*loom.LoadPoints {
		wrong("%d bytes are stored", size)
	}
	later(200)
	record("p1", 99, 1)
	day = read(0)
	if at := slices.Index(day, -1); len(day) != loom.LoadPoints || at != 88 || day[286] != -1 || day[287] != 99 {
		wrong("a long gap begins at %d of %d", at, len(day))
	}
	later(1000)
	expect("of another day")
	record("p1", 50, 1)
	expect("after a day", 50)
	// Another machine has no past.
	w.exec(`UPDATE nodes SET incarnation = 2`)
	expect("another machine")
	later(1)
	record("p1", 60, 2)
	expect("another machine", 60)
	return trouble
}
