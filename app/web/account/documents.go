package account

import (
	"net/http"
	"net/url"

	"loom/app/web/page"
	"loom/views/route"
)

// Documents enters what the API has for the pages of the area.
func (s *Server) Documents(get func(string, page.Document)) {
	get(route.Account(), page.Document{Path: "/v2/whoami", Calls: []page.DocumentCall{
		page.APICall("Store a free-form object of yours", http.MethodPut, "/v2/profile", `{"desk":"4.17"}`), page.APICall("Read it", http.MethodGet, "/v2/profile", "")}})
	tokens := page.Document{Path: "/v2/tokens", List: true, Fresh: true, Query: page.SameParams("q"), Calls: []page.DocumentCall{
		page.APICall("Make a token", http.MethodPost, "/v2/tokens", `{"name":"nightly build","scopes":["read"]}`)},
		Columns: []string{"name=name", "starts with=prefix", "created=@createTime", "expires=@expires", "last used=@lastUsed", "from=lastAddress"}}
	get(route.AccountTokens(), tokens)
	get(route.AccountTokens()+"/{id}/revoke", page.Document{Path: "/v2/tokens", List: true, Fresh: true, Calls: []page.DocumentCall{page.APICall("Revoke it", http.MethodDelete, "/v2/tokens/{id}", "")}})
	get(route.AccountTokens()+"/{id}/rotate", page.Document{Path: "/v2/tokens", List: true, Fresh: true, Calls: []page.DocumentCall{page.APICall("Give it another secret", http.MethodPost, "/v2/tokens/{id}/rotate", "")}})
	get(route.AccountSignIn(), page.Document{Path: "/v2/whoami"})
	get(route.AccountSessions(), page.Document{Path: "/v2/sessions", List: true, Fresh: true,
		Columns: []string{"signed in=@createTime", "last used=@lastUsed", "address=address", "browser=agent"}})
	get(route.AccountActivity(), page.Document{Path: "/v2/audit", List: true, Fresh: true, Columns: page.AuditColumns, Query: func(view url.Values) url.Values {
		q := page.AuditParams(view)
		q.Set("actor", "{me}")
		return q
	}})
}
