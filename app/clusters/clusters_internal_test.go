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

// What waits to be tried again is waited for; work for all workers goes on meanwhile.
func TestRemainingIncludesThePause(t *testing.T) {
	t.Parallel()
	now := time.Now()
	groups := []TaskGroup{
		{Level: 1, Action: loom.ActionCreate, Status: loom.TaskComplete, Count: 4},
		{Level: 2, Action: loom.ActionConfirm, Status: loom.TaskReady, Count: 2, Again: 1},
		{Level: 3, Action: loom.ActionStart, Status: loom.TaskBlocked, Count: 2},
	}
	usual := func(*TaskGroup) (time.Duration, bool) { return 2 * time.Second, true }
	for _, c := range []struct {
		workers     int
		pause, want time.Duration
	}{{4, 0, 4 * time.Second}, {4, 30 * time.Second, 34 * time.Second}, {4, -time.Minute, 4 * time.Second}, {1, time.Second, 8 * time.Second}} {
		if d, known := remaining(groups, c.workers, now, c.pause, usual); !known || d != c.want {
			t.Errorf("%d workers, pause %s: %s (%v), want %s", c.workers, c.pause, d, known, c.want)
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
