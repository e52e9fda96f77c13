package lab

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"loom/app/loom"
	"loom/solver"
)

// benchSolver prints what a layout costs, by services and machines: a template with
// 12 layout sets and 10 hardware types.
func (e *environment) benchSolver(ctx context.Context) error {
	services, machines := []int{5, 20, 50, 60}, []int{5, 100, 1000, 10_000}
	fmt.Fprintf(e.Out, "\nSolver: 12 layout sets, 10 hardware types; milliseconds (median of 9) and KB allocated\n\n  %-10s", "services")
	for _, m := range machines {
		fmt.Fprintf(e.Out, " %16s", fmt.Sprintf("%d nodes", m))
	}
	fmt.Fprintln(e.Out)
	for _, s := range services {
		fmt.Fprintf(e.Out, "  %-10d", s)
		for _, m := range machines {
			took, bytes, err := timeSolver(ctx, solverInput(s, m))
			if err != nil {
				return err
			}
			fmt.Fprintf(e.Out, " %16s", fmt.Sprintf("%.2f ms %4d KB", float64(took.Microseconds())/1000, bytes/1024))
		}
		fmt.Fprintln(e.Out)
	}
	return nil
}

// timeSolver returns the median time of a solve and what it allocates.
func timeSolver(ctx context.Context, in solver.Input) (time.Duration, uint64, error) {
	var times []time.Duration
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 9 {
		start := time.Now()
		_, _, unsat, err := solver.Create(ctx, in)
		if err != nil {
			return 0, 0, err
		}
		if unsat != nil {
			return 0, 0, fmt.Errorf("%d nodes: %s", in.Machines, unsat.Headline)
		}
		times = append(times, time.Since(start))
	}
	runtime.ReadMemStats(&after)
	slices.Sort(times)
	return times[len(times)/2], (after.TotalAlloc - before.TotalAlloc) / uint64(len(times)), nil
}

// solverInput has masters that are there once, workers that share no node with
// them, and services with other limits; half of what is asked for has none.
func solverInput(services, machines int) solver.Input {
	in := solver.Input{Provider: "bench", Machines: machines, Catalog: map[string]loom.Service{}}
	for i := range 10 {
		name := fmt.Sprintf("type%d", i)
		in.HardwareTypes = append(in.HardwareTypes, loom.HardwareType{Base: loom.Base{Name: name}, ProviderMap: map[string]map[string]string{"bench": {"flavor": name}}})
	}
	in.ImageTypes = []loom.ImageType{{Base: loom.Base{Name: "image"}, ProviderMap: map[string]map[string]string{"bench": {"image": "image"}}}}
	c := loom.Constraints{Services: map[string]loom.ServiceConstraint{}}
	one := 1
	for i := range services {
		name := fmt.Sprintf("s%02d", i)
		in.Services = append(in.Services, name)
		in.Catalog[name] = loom.Service{Base: loom.Base{Name: name}}
		switch i % 5 {
		case 0:
			c.Services[name] = loom.ServiceConstraint{Quantities: &loom.Quantities{Min: &one, Max: &one}}
		case 1:
			c.Services[name] = loom.ServiceConstraint{HardwareTypes: []string{"type1", "type2", "type3"}}
		}
	}
	pick := func(i int) string { return in.Services[i%services] }
	for i := range 4 {
		c.Layout.MustCoexist = append(c.Layout.MustCoexist, []string{pick(10 * i), pick(10*i + 5)})
	}
	for i := range 8 {
		c.Layout.CantCoexist = append(c.Layout.CantCoexist, []string{pick(5 * i), pick(5*i + 3)})
	}
	in.Template.Constraints = c
	return in
}
