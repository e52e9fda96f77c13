package web

import (
	"loom/views/route"
)

// sharedRoutes is the table of contents of what belongs to all pages: search and
// palette, preferences, notices, the sign-in of an open page, several clusters at once.
func (s *Server) sharedRoutes(mux router) {
	mux.Handle("GET "+route.Search(), s.page(s.search))
	mux.Handle("GET "+route.Palette(), s.page(s.palette))
	mux.Handle("GET "+route.News(), s.page(s.news))
	mux.Handle("GET "+route.Keys(), s.open(s.keys))
	mux.Handle("POST "+route.BannerHide(), s.page(s.bannerHide))

	mux.Handle("GET "+route.AccountPreferences(), s.page(s.preferencesShow))
	mux.Handle("POST "+route.AccountPreferences(), s.open(s.preferencesSave))
	mux.Handle("GET "+route.AccountActivity(), s.page(s.accountActivity))
	mux.Handle("GET "+route.AccountSessionExtend(), s.page(s.sessionShow))
	mux.Handle("POST "+route.AccountSessionExtend(), s.page(s.sessionExtend))
	mux.Handle("GET "+route.SignIn(), s.open(s.signInDialog))
	mux.Handle("POST "+route.SignIn(), s.open(s.signInAgain))
	mux.Handle("GET "+route.AccountTokens()+"/{id}/rotate", s.page(s.accountTokenRotateAsk))
	mux.Handle("POST "+route.AccountTokens()+"/{id}/rotate", s.page(s.accountTokenRotate))

	mux.Handle("GET "+route.ClustersBulk("delete"), s.page(s.bulkDelete))
	mux.Handle("POST "+route.ClustersBulk("delete"), s.page(s.bulkDeleteDo))
	mux.Handle("GET "+route.ClustersBulk("lease"), s.page(s.bulkLease))
	mux.Handle("POST "+route.ClustersBulk("lease"), s.page(s.bulkLeaseDo))
	mux.Handle("GET "+route.ClustersBulk("owner"), s.admin(s.bulkOwner))
	mux.Handle("POST "+route.ClustersBulk("owner"), s.admin(s.bulkOwnerDo))
}
