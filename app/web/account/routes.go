package account

import (
	"loom/app/web/page"
	"loom/views/route"
)

// Routes are the pages of sign-in, account and preferences.
func (s *Server) Routes() []page.Route {
	routes := []page.Route{
		page.Get("/login", page.Open, page.Anybody(s.loginForm)),
		page.Post("/login", page.Open, page.Anybody(s.login)),
		page.Post(route.Logout(), page.Open, page.Anybody(s.logout)),
		page.Get(route.SignIn(), page.Open, page.Anybody(s.signInDialog)),
		page.Post(route.SignIn(), page.Open, page.Anybody(s.signInAgain)),

		page.Get(route.Account(), page.SignedIn, s.accountShow),
		page.Post(route.Account(), page.SignedIn, s.accountProfileSave),
		page.Post(route.AccountKeys(), page.SignedIn, s.accountKeysSave),
		page.Get(route.AccountPassword(""), page.Changing, s.accountPassword),
		page.Post(route.AccountPassword(""), page.Changing, s.accountPasswordSave),
		page.Get(route.AccountTokens(), page.SignedIn, s.accountTokens),
		page.Post(route.AccountTokens(), page.SignedIn, s.accountTokenCreate),
		page.Get(route.AccountSessions(), page.SignedIn, s.accountSessions),
		page.Post(route.AccountSessions(), page.SignedIn, s.accountSessionsEnd),
		page.Get(route.AccountSessionExtend(), page.SignedIn, s.sessionShow),
		page.Post(route.AccountSessionExtend(), page.SignedIn, s.sessionExtend),
		page.Get(route.AccountPreferences(), page.SignedIn, s.preferencesShow),
		page.Post(route.AccountPreferences(), page.Open, page.Anybody(s.preferencesSave)),
		page.Get(route.AccountActivity(), page.SignedIn, s.accountActivity),
	}
	token := route.AccountTokens() + "/{id}"
	return append(routes, page.Sample("{id}", "{own token}",
		page.Get(token+"/revoke", page.SignedIn, s.accountTokenAsk),
		page.Post(token+"/revoke", page.SignedIn, s.accountTokenRevoke),
		page.Get(token+"/rotate", page.SignedIn, s.accountTokenRotateAsk),
		page.Post(token+"/rotate", page.SignedIn, s.accountTokenRotate),
	)...)
}
