package solver

import (
	"context"

	"loom/app/loom"
)

// growth is a search for layouts of further machines beside those that exist.
type growth struct {
	rest   *search
	broken bool
	have   int64
	err    error
}

func newGrowth(ctx context.Context, p Problem) (*growth, error) {
	st, err := newClusterModel(p, true)
	if err != nil {
		return nil, err
	}
	m, err := reduce(p.residual())
	if err != nil {
		return nil, err
	}
	g := &growth{rest: newSearch(ctx, m), broken: st.broken}
	for _, c := range p.Nodes {
		g.have += int64(c.Count)
	}
	return g, nil
}

// span is the range of totals, present machines included; empty when none works.
func (g *growth) span() (low, high int64) {
	if g.rest.check(); g.broken || g.rest.m.impossible {
		g.err = g.rest.err
		return 1, 0
	}
	low, high = g.rest.least(g.rest.m.demand), g.rest.m.room(g.rest.m.most)
	g.err = g.rest.err
	return g.have + low, min(g.have+high, loom.Unlimited)
}

// residual is what further machines must and may hold.
func (p Problem) residual() Problem {
	on := map[string]int{}
	for _, c := range p.Nodes {
		for _, s := range c.Services {
			on[s] += c.Count
		}
	}
	services := make([]Service, len(p.Services))
	for i, s := range p.Services {
		s.Min = max(s.Min-on[s.Name], 0)
		if s.Max < loom.Unlimited {
			s.Max = max(s.Max-on[s.Name], 0)
		}
		services[i] = s
	}
	p.Services, p.Nodes, p.New = services, nil, nil
	return p
}
