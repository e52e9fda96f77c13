package web

import (
	"context"
	"errors"
	"strconv"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/ui"
)

// scaleWithin offers the greatest number of nodes that the quota, this installation and
// the rules of the cluster allow, where more were asked for than the first two do.
// Clashes of rules bring suggestions of their own.
func (s *Server) scaleWithin(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, f changeForm, err error, m *clusterview.ChangePanel) error {
	asked, wrong := strconv.Atoi(f.Machines)
	have := len(placedNodes(v))
	if f.Kind != kindScale || wrong != nil || asked <= have || !errors.Is(err, loom.Exhausted) && !errors.Is(err, loom.Invalid) {
		return nil
	}
	sizes, failed := s.Clusters.Sizes(ctx, actor, v.ID)
	switch {
	case refused(failed):
		return nil // the panel says what is the matter
	case failed != nil:
		return failed
	case sizes.Max > have && sizes.Max < asked:
		n := strconv.Itoa(sizes.Max)
		m.Check.Suggestions = append(m.Check.Suggestions, ui.Suggestion{Label: "Use " + ui.Count(sizes.Max, "node", "nodes"), Name: "numMachines", Value: n})
	case sizes.Max <= have && errors.Is(err, loom.Exhausted):
		m.Check.Head.Note = "No further node can be had now."
	}
	return nil
}
