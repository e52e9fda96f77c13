package web

import (
	"net/http"
	"time"

	"github.com/a-h/templ"

	"loom/app/fleet"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/ui"
)

// nodeUse is a picture of for how long a node had a machine, nil when it never had one.
func (s *Server) nodeUse(r *http.Request, actor loom.Actor, v lifecycle.ClusterView, n loom.Node) (templ.Component, error) {
	see := ui.ViewerOf(r.Context())
	in := fleet.NodeUseInput{Cluster: v.ID, Node: n.ID, Until: goneAt(n), Zone: see.In(s.now()).Location()}
	use, ok, err := s.Fleet.NodeUse(r.Context(), actor, in)
	if err != nil || !ok {
		return nil, err
	}
	chart := ui.ChartModel{ID: "node-use", Title: "Use", Unit: "node-hours", PlaceWord: groupWord(use.GroupBy), Decimals: 1,
		Series: []ui.ChartSeries{{Name: "node-hours", Values: use.Hours}}}
	for i := range use.Hours {
		chart.Places = append(chart.Places, placeOf(use.Marks[i], use.GroupBy))
	}
	m := clusterview.NodeUseModel{Chart: chart, Facts: []ui.Def{
		{Term: "In use", Text: ui.Duration(time.Duration(use.Total * float64(time.Hour)))},
		{Term: "First machine", Value: ui.Time(use.First, s.now())},
	}}
	if n.Incarnation > 1 {
		m.Facts = append(m.Facts, ui.Def{Term: "Machines so far", Text: ui.Figure(float64(n.Incarnation), 0)})
	}
	return clusterview.NodeUse(m), nil
}

// goneAt is when the machine of a node that is deleted went, the zero time while it is
// there.
func goneAt(n loom.Node) (at time.Time) {
	if n.State != loom.NodeDeleted {
		return at
	}
	for _, a := range n.Actions {
		if a.Action == loom.ActionDelete && a.Ended.After(at) {
			at = a.Ended
		}
	}
	return at
}
