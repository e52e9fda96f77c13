package web

import (
	"slices"
)

// Routes are all of the pages, area by area.
func Routes() []Route { return new(Server).routes() }

func (s *Server) routes() []Route {
	return slices.Concat(s.clusterRoutes(), s.catalogRoutes(), s.accountRoutes(), s.adminRoutes(), s.reportRoutes(), s.systemRoutes(), s.docsRoutes(), s.sharedRoutes())
}

// Patterns are those of all routes, like "GET /clusters/{cluster}".
func Patterns() []string {
	var patterns []string
	for _, rt := range Routes() {
		patterns = append(patterns, rt.Pattern())
	}
	return patterns
}
