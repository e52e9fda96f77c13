package web

import (
	"loom/views/route"
)

// accountRoutes are the pages of sign-in, account and preferences.
func (s *Server) accountRoutes() []Route {
	routes := []Route{
		Get("/login", Open, Anybody(s.loginForm)),
		Post("/login", Open, Anybody(s.login)),
		Post(route.Logout(), Open, Anybody(s.logout)),
		Get(route.SignIn(), Open, Anybody(s.signInDialog)),
		Post(route.SignIn(), Open, Anybody(s.signInAgain)),

		Get(route.Account(), SignedIn, s.accountShow),
		Post(route.Account(), SignedIn, s.accountProfileSave),
		Post(route.AccountKeys(), SignedIn, s.accountKeysSave),
		Get(route.AccountPassword(""), Changing, s.accountPassword),
		Post(route.AccountPassword(""), Changing, s.accountPasswordSave),
		Get(route.AccountTokens(), SignedIn, s.accountTokens),
		Post(route.AccountTokens(), SignedIn, s.accountTokenCreate),
		Get(route.AccountSessions(), SignedIn, s.accountSessions),
		Post(route.AccountSessions(), SignedIn, s.accountSessionsEnd),
		Get(route.AccountSessionExtend(), SignedIn, s.sessionShow),
		Post(route.AccountSessionExtend(), SignedIn, s.sessionExtend),
		Get(route.AccountPreferences(), SignedIn, s.preferencesShow),
		Post(route.AccountPreferences(), Open, Anybody(s.preferencesSave)),
		Get(route.AccountActivity(), SignedIn, s.accountActivity),
		Get(route.Gallery(), Admin, s.gallery),
	}
	token := route.AccountTokens() + "/{id}"
	return append(routes, Sample("{id}", "{own token}",
		Get(token+"/revoke", SignedIn, s.accountTokenAsk),
		Post(token+"/revoke", SignedIn, s.accountTokenRevoke),
		Get(token+"/rotate", SignedIn, s.accountTokenRotateAsk),
		Post(token+"/rotate", SignedIn, s.accountTokenRotate),
	)...)
}
