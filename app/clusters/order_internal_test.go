package clusters

import (
	"fmt"
	"testing"

	"loom/app/loom"
)

// A name leads to the service that has it, else to the first that provides it.
func TestOfferedNames(t *testing.T) {
	t.Parallel()
	service := func(name string, provides ...string) loom.Service {
		return loom.Service{Base: loom.Base{Name: name}, Dependencies: loom.Dependencies{Provides: provides}}
	}
	w := &world{services: map[string]loom.Service{"b": service("b", "db", "c"), "a": service("a", "db"), "c": service("c")}}
	for name, want := range map[string]string{"a": "a", "c": "c", "db": "a", "none": ""} {
		if got := w.offered()[name]; got != want {
			t.Errorf("%s is offered by %q, want %q", name, got, want)
		}
	}
}

// BenchmarkLostRequirements looks for what services require that nobody offers: the time
// grows with their number, not with its square.
func BenchmarkLostRequirements(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := &world{services: map[string]loom.Service{}}
			var names []string
			for i := range n {
				s := loom.Service{Base: loom.Base{Name: fmt.Sprintf("s%04d", i)}}
				for k := range 100 {
					s.Dependencies.Provides = append(s.Dependencies.Provides, fmt.Sprintf("p%04d-%d", i, k))
					s.Dependencies.Runtime.Requires = append(s.Dependencies.Runtime.Requires, fmt.Sprintf("p%04d-%d", n-1-i, k))
				}
				w.services[s.Name] = s
				names = append(names, s.Name)
			}
			for b.Loop() {
				if lost := w.lostRequirements(names); len(lost) > 0 {
					b.Fatal(lost)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/service")
		})
	}
}
