package web

import (
	"strconv"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

// leftoversPart lists what a delete left behind, for administrators.
func (s *Server) leftoversPart(v lifecycle.ClusterView) clusterview.LeftoversModel {
	m := clusterview.LeftoversModel{ID: v.ID, Delete: route.ClusterDelete(v.ID), Now: s.now()}
	for _, l := range v.Leftovers {
		m.Rows = append(m.Rows, clusterview.LeftoverRow{
			Hostname: l.Hostname, Provider: l.Provider, Machine: l.Machine, Error: l.Error, Tries: strconv.Itoa(l.Tries), Last: l.Last,
		})
	}
	return m
}

// leftoverText is a machine that was left behind, in words.
func leftoverText(l loom.Leftover) string {
	if l.Machine == "" {
		return "the machine of " + l.Hostname + " at " + l.Provider
	}
	return l.Machine + " at " + l.Provider
}
