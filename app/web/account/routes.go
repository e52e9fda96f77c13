package account

import (
	"loom/app/loom"
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

		page.Piece("/login/{provider}", page.Open, page.Anybody(s.loginAt), "/login/none"),
		page.Piece("/login/{provider}/callback", page.Open, page.Anybody(s.loginBack), "/login/none/callback"),
		page.Post("/login/{provider}/logout", page.Open, page.Anybody(s.loginEnded), "/login/none/logout"),

		page.Get(route.AccountSignIn(), loom.Self, s.accountSignIn),
		page.Post(route.AccountSignIn(), loom.Self, s.accountConnect),
		page.Post(route.AccountDisconnect(), loom.Self, s.accountDisconnect),
		page.Get(route.Account(), loom.Self, s.accountShow),
		page.Post(route.Account(), loom.Self, s.accountProfileSave),
		page.Post(route.AccountKeys(), loom.Self, s.accountKeysSave),
		page.Get(route.AccountPassword(""), page.Changing, s.accountPassword),
		page.Post(route.AccountPassword(""), page.Changing, s.accountPasswordSave),
		page.Get(route.AccountTokens(), loom.Self, s.accountTokens),
		page.Post(route.AccountTokens(), loom.Self, s.accountTokenCreate),
		page.Get(route.AccountSessions(), loom.Self, s.accountSessions),
		page.Post(route.AccountSessions(), loom.Self, s.accountSessionsEnd),
		page.Get(route.AccountSessionExtend(), loom.Self, s.sessionShow),
		page.Post(route.AccountSessionExtend(), loom.Self, s.sessionExtend),
		page.Get(route.AccountPreferences(), loom.Self, s.preferencesShow),
		page.Post(route.AccountPreferences(), page.Open, page.Anybody(s.preferencesSave)),
		page.Get(route.AccountActivity(), loom.Self, s.accountActivity),
	}
	token := route.AccountTokens() + "/{id}"
	return append(routes, page.Sample("{id}", "{own token}",
		page.Get(token+"/revoke", loom.Self, s.accountTokenAsk),
		page.Post(token+"/revoke", loom.Self, s.accountTokenRevoke),
		page.Get(token+"/rotate", loom.Self, s.accountTokenRotateAsk),
		page.Post(token+"/rotate", loom.Self, s.accountTokenRotate),
	)...)
}
