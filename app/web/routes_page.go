package web

import (
	"loom/views/route"
)

// sharedRoutes are what all pages have in common.
func (s *Server) sharedRoutes() []Route {
	return []Route{
		Piece("/events", SignedIn, s.events),
		Post(route.CSPReports(), Open, Anybody(s.cspReport)),
		Get(route.Keys(), Open, Anybody(s.keys)),
		Post(route.BannerHide(), SignedIn, s.bannerHide),
		Piece("/favicon.ico", Open, Anybody(s.favicon)),
		{Path: "/", Role: Open, Handle: Anybody(s.noSuchPage), Samples: []string{"/"}, Piece: true},
	}
}
