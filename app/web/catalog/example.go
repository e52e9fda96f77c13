package catalog

import (
	"context"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/catalogview"
	"loom/views/route"
	"loom/views/ui"
)

// exampleLayout puts on the page of a template how its services share nodes: of as many as are
// asked for, or else of the fewest that work.
func (s *Server) exampleLayout(ctx context.Context, actor loom.Actor, t loom.Template, asked string) (*catalogview.ExampleModel, error) {
	low, high := t.Constraints.Size.Bounds()
	m := &catalogview.ExampleModel{Self: route.CatalogTemplate(t.Name), Nodes: asked}
	in := loom.CreateInput{Name: "example", Template: t.Name, Machines: max(low, 1), LeaseMillis: loom.TemplateLease}
	if asked != "" {
		n, err := strconv.Atoi(strings.TrimSpace(asked))
		if err != nil || n < low || high != loom.Unlimited && n > high {
			m.Error = "Enter " + page.NodesRange(t.Constraints.Size.Bounds()) + "."
			return m, nil
		}
		in.Machines = n
	}
	for range 2 {
		result, err := s.Clusters.Check(ctx, actor, in)
		if err != nil {
			return m, err
		}
		if len(result.Layout) > 0 {
			m.Nodes, m.Layout = strconv.Itoa(result.Layout.Machines()), ui.NewLayoutPicture("example-layout", result.Layout)
			m.Layout.Folded = true
			return m, nil
		}
		if result.Unsat == nil {
			m.None = "There is no layout to show now."
			for _, f := range result.Fields {
				m.None = f.Message
			}
			return m, nil
		}
		m.None = result.Unsat.Headline
		if result.Unsat.Sizes == nil || result.Unsat.Sizes.Min <= in.Machines || asked != "" {
			return m, nil
		}
		in.Machines = result.Unsat.Sizes.Min
	}
	return m, nil
}
