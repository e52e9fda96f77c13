package dependencies

import (
	"fmt"
	"testing"

	"loom/app/loom"
)

// BenchmarkAround draws what is around a service of catalogs in which everything is near
// everything: four times the services are to cost about four times as much.
func BenchmarkAround(b *testing.B) {
	for _, n := range []int{1000, 4000, 16000} {
		services := map[string]loom.Service{}
		for i := range n {
			name := fmt.Sprint("s", i)
			services[name] = loom.Service{Base: loom.Base{Name: name}, Dependencies: loom.Dependencies{
				Provides: []string{fmt.Sprint("c", i%50)}, Conflicts: []string{fmt.Sprint("s", (i*7+1)%n)},
				Install: loom.PhaseDependency{Uses: []string{fmt.Sprint("c", (i+1)%50)}}, Runtime: loom.PhaseDependency{Requires: []string{fmt.Sprint("c", (i+2)%50)}}}}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Around(services, "s1", 2)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/service")
		})
	}
}
