package clusters

import (
	"strconv"

	"loom/app/clusters"
	"loom/views/clusterview"
	"loom/views/route"
)

// leftoversPart lists what a delete left behind, for administrators.
func (s *Server) leftoversPart(v clusters.ClusterView) clusterview.LeftoversModel {
	m := clusterview.LeftoversModel{ID: v.ID, Delete: route.ClusterDelete(v.ID), Now: s.Now()}
	for _, l := range v.Leftovers {
		m.Rows = append(m.Rows, clusterview.LeftoverRow{
			Hostname: l.Hostname, Provider: l.Provider, Machine: l.Machine, Error: l.Error, Tries: strconv.Itoa(l.Tries), Last: l.Last,
		})
	}
	return m
}
