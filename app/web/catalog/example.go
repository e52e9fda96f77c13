package catalog

import (
	"context"

	"loom/app/loom"
	"loom/views/catalogview"
	"loom/views/ui"
)

// exampleLayout puts the layout of the smallest cluster that a template makes on its
// page. Where nothing of the kind can be had, the page goes without.
func (s *Server) exampleLayout(ctx context.Context, actor loom.Actor, t loom.Template, m *catalogview.TemplateModel) error {
	in := loom.CreateInput{Name: "example", Template: t.Name, Machines: max(t.Constraints.Size.Min, 1), LeaseMillis: loom.TemplateLease}
	for range 2 {
		result, err := s.Clusters.Check(ctx, actor, in)
		if err != nil {
			return err
		}
		if len(result.Layout) > 0 {
			m.Example = ui.NewLayoutPicture("example", result.Layout)
			m.ExampleTitle = "Example with " + ui.Count(result.Layout.Machines(), "node", "nodes") + ", the fewest that work"
			return nil
		}
		if result.Unsat == nil || result.Unsat.Sizes == nil || result.Unsat.Sizes.Min <= in.Machines {
			return nil
		}
		in.Machines = result.Unsat.Sizes.Min
	}
	return nil
}
