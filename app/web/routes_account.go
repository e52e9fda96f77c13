package web

import (
	"loom/views/route"
)

// accountRoutes is the table of contents of sign-in and account.
func (s *Server) accountRoutes(mux router) {
	mux.Handle("GET /login", s.open(s.loginForm))
	mux.Handle("POST /login", s.open(s.login))
	mux.Handle("POST "+route.Logout(), s.open(s.logout))

	mux.Handle("GET "+route.Account(), s.page(s.accountShow))
	mux.Handle("POST "+route.Account(), s.page(s.accountProfileSave))
	mux.Handle("POST "+route.AccountKeys(), s.page(s.accountKeysSave))
	mux.Handle("GET "+route.AccountPassword(""), s.changing(s.accountPassword))
	mux.Handle("POST "+route.AccountPassword(""), s.changing(s.accountPasswordSave))
	mux.Handle("GET "+route.AccountTokens(), s.page(s.accountTokens))
	mux.Handle("POST "+route.AccountTokens(), s.page(s.accountTokenCreate))
	mux.Handle("GET "+route.AccountTokens()+"/{id}/revoke", s.page(s.accountTokenAsk))
	mux.Handle("POST "+route.AccountTokens()+"/{id}/revoke", s.page(s.accountTokenRevoke))
	mux.Handle("GET "+route.AccountSessions(), s.page(s.accountSessions))
	mux.Handle("POST "+route.AccountSessions(), s.page(s.accountSessionsEnd))

	mux.Handle("GET "+route.Catalog(), s.page(s.catalogGallery))
	mux.Handle("GET "+route.Catalog()+"/{template}", s.page(s.catalogTemplate))
	mux.Handle("GET "+route.Catalog()+"/services/{service}", s.page(s.catalogService))
}
