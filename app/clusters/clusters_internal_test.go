package clusters

import (
	"context"
	"fmt"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/places"
)

// TestSearchEndsWithoutAPlace: a search that gets no place begins with its time over,
// and gives none back.
func TestSearchEndsWithoutAPlace(t *testing.T) {
	t.Parallel()
	u := &Clusters{opts: Options{SearchDone: func(took time.Duration) {}}, searching: places.New(2)}
	first, over := u.startSearch(t.Context(), "a", time.Hour)
	if first.Err() != nil {
		t.Fatal(first.Err())
	}
	second, end := u.startSearch(t.Context(), "a", time.Nanosecond)
	if second.Err() == nil {
		t.Error("a search began without a place")
	}
	end()
	end()
	if free := freePlaces(t, u); free != 1 {
		t.Errorf("%d places of two are free, want all but that of the first", free)
	}
	over()
	over()
	if free := freePlaces(t, u); free != 2 {
		t.Errorf("%d places of two are free once the searches are over", free)
	}
}

// freePlaces counts the places that tenants who have none could take.
func freePlaces(t *testing.T, u *Clusters) (free int) {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tenant := range []loom.TenantID{"x", "y", "z"} {
		if u.searching.Take(over, tenant) {
			free++
			defer u.searching.Give(tenant)
		}
	}
	return free
}

// The slowest of each stage or the work of all counts, and a task that takes much longer than
// usual leaves nothing to tell.
func TestRemaining(t *testing.T) {
	t.Parallel()
	now := time.Now()
	usual := func(*TaskGroup) (time.Duration, bool) { return 2 * time.Second, true }
	for _, c := range []struct {
		workers int
		runs    time.Duration
		want    time.Duration
		late    bool
	}{{4, 0, 4 * time.Second, false}, {1, 0, 8 * time.Second, false}, {4, time.Second, 3 * time.Second, false}, {4, 3 * time.Second, 2 * time.Second, false}, {4, time.Minute, 2 * time.Second, true}} {
		groups := []TaskGroup{
			{Level: 1, Action: loom.ActionCreate, Status: loom.TaskComplete, Count: 4},
			{Level: 2, Action: loom.ActionConfirm, Status: loom.TaskRunning, Started: now.Add(-c.runs), Count: 2},
			{Level: 3, Action: loom.ActionStart, Status: loom.TaskBlocked, Count: 2},
		}
		if d, known, late := remaining(groups, c.workers, now, usual); !known || d != c.want || late != c.late {
			t.Errorf("%d workers, running for %s: %s (%v, late %v), want %s, late %v", c.workers, c.runs, d, known, late, c.want, c.late)
		}
	}
}

// A name leads to the service that has it, else to the first that provides it.
func TestServiceForAName(t *testing.T) {
	t.Parallel()
	service := func(name string, provides ...string) loom.Service {
		return loom.Service{Base: loom.Base{Name: name}, Dependencies: loom.Dependencies{Provides: provides}}
	}
	cv := &catalogView{services: map[string]loom.Service{"b": service("b", "db", "c"), "a": service("a", "db"), "c": service("c")}}
	for name, want := range map[string]string{"a": "a", "c": "c", "db": "a", "none": ""} {
		if got := cv.serviceFor()[name]; got != want {
			t.Errorf("%s is offered by %q, want %q", name, got, want)
		}
	}
}

// BenchmarkMissingRequirements looks for what services require that nobody offers: the time
// grows with their number, not with its square.
func BenchmarkMissingRequirements(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			cv := &catalogView{services: map[string]loom.Service{}}
			var names []string
			for i := range n {
				s := loom.Service{Base: loom.Base{Name: fmt.Sprintf("s%04d", i)}}
				for k := range 100 {
					s.Dependencies.Provides = append(s.Dependencies.Provides, fmt.Sprintf("p%04d-%d", i, k))
					s.Dependencies.Runtime.Requires = append(s.Dependencies.Runtime.Requires, fmt.Sprintf("p%04d-%d", n-1-i, k))
				}
				cv.services[s.Name] = s
				names = append(names, s.Name)
			}
			for b.Loop() {
				if lost := cv.missingRequirements(names); len(lost) > 0 {
					b.Fatal(lost)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/service")
		})
	}
}
