package account

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/accountview"
	"loom/views/route"
	"loom/views/ui"
)

// tokenDays are the offered lives of a token, in days.
var tokenDays = []int{30, 90, 365}

// Further values of the life of a token: until a day that is named, and without an end.
const (
	tokenUntil = "date"
	tokenNever = "never"
)

// tokenLives are the lives that the tenant permits; chosen is one of them where it can be.
func (s *Server) tokenLives(r *http.Request, actor loom.Actor, chosen string) ([]ui.Option, error) {
	set, err := s.Accounts.Settings(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	var pairs []string
	longest := ""
	for _, n := range tokenDays {
		if set.MaxTokenDays == nil || n <= *set.MaxTokenDays {
			longest = strconv.Itoa(n)
			pairs = append(pairs, longest, ui.Count(n, "day", "days"))
		}
	}
	if set.MaxTokenDays != nil && !slices.Contains(tokenDays, *set.MaxTokenDays) {
		longest = strconv.Itoa(*set.MaxTokenDays)
		pairs = append(pairs, longest, ui.Count(*set.MaxTokenDays, "day", "days")+", the longest here")
	}
	pairs = append(pairs, tokenUntil, "Until a date")
	if set.MaxTokenDays == nil {
		pairs = append(pairs, tokenNever, "No expiry")
	}
	if !slices.Contains(pairs, chosen) {
		chosen = longest
	}
	return page.Options(chosen, pairs...), nil
}

var scopeTexts = map[loom.Scope]string{
	loom.ScopeRead:         "Reads everything you may see, and creates previews.",
	loom.ScopeClusterWrite: "Also creates, changes and deletes clusters.",
	loom.ScopeCatalogWrite: "Also changes the catalog: providers, types, services, templates, files.",
	loom.ScopeAdmin:        "Everything you may do yourself, tokens included.",
}

func (s *Server) accountTokens(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.tokensPage(w, r, actor, http.StatusOK, accountview.TokensModel{}, loom.ScopeRead, "90")
}

// tokensPage completes the page with what is stored and the choices of the form.
func (s *Server) tokensPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m accountview.TokensModel, scope loom.Scope, days string) error {
	tokens, err := s.Accounts.Tokens(r.Context(), actor)
	if err != nil {
		return err
	}
	m.Now, m.Tokens = s.Now(), tokens
	for _, sc := range loom.Scopes {
		if sc == loom.ScopeCatalogWrite && actor.May(loom.Publish, actor.InTenant()) != nil {
			continue
		}
		m.Scopes = append(m.Scopes, ui.Choice{Value: string(sc), Label: string(sc), Description: scopeTexts[sc], Checked: sc == scope})
	}
	if m.Expires, err = s.tokenLives(r, actor, days); err != nil {
		return err
	}
	if len(m.Tokens) > 0 {
		m.CSV, m.JSON = s.ExportsAt(route.AccountTokens(), nil)
	}
	return s.Render(w, r, actor, status, page.AccountFrame("API tokens", route.AccountTokens()), accountview.TokensPage(m))
}

// accountTokenCreate makes a token and answers with its secret in the page: it is
// not kept for a redirect.
func (s *Server) accountTokenCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	name, scope, days := f.Get(accountview.FieldName), loom.Scope(f.Get(accountview.FieldScope)), f.Get(accountview.FieldExpires)
	until := strings.TrimSpace(f.Get(accountview.FieldUntil))
	token, secret, err := s.makeToken(r, actor, name, scope, days, until)
	if errs, status, ok := page.FormErrors(err, "The token was not created."); ok {
		for i := range errs.Items { // scopes[0] is the one choice of the form
			if strings.HasPrefix(errs.Items[i].Field, accountview.FieldScope) {
				errs.Items[i].Field, errs.Items[i].FieldID = accountview.FieldScope, ui.FieldID("", accountview.FieldScope)
			}
		}
		return s.tokensPage(w, r, actor, status, accountview.TokensModel{Name: name, Until: until, Errors: errs}, scope, days)
	}
	if err != nil {
		return err
	}
	return s.showToken(w, r, actor, token, secret, "")
}

// showToken answers with a token's secret in the page, this once.
func (s *Server) showToken(w http.ResponseWriter, r *http.Request, actor loom.Actor, token loom.Token, secret loom.Secret, note string) error {
	shown := &accountview.NewTokenModel{Name: token.Name, Secret: secret.Reveal(), Note: note,
		Curl: `curl -H "Authorization: Bearer ` + secret.Reveal() + `" ` + origin(r) + "/v2/whoami"}
	return s.tokensPage(w, r, actor, http.StatusOK, accountview.TokensModel{New: shown}, loom.ScopeRead, "90")
}

func (s *Server) accountTokenRotateAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.askOfToken(w, r, actor, "Rotate", accountview.RotateForm)
}

// accountTokenRotate gives a token another secret; the old one works on for a day.
func (s *Server) accountTokenRotate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	token, err := s.ownToken(r, actor)
	if err != nil {
		return err
	}
	token, secret, err := s.Accounts.RotateToken(r.Context(), actor, token.ID)
	if err != nil {
		return err
	}
	note := "The old secret works until " + ui.ViewerOf(r.Context()).Moment(s.Now().Add(account.RotationOverlap)) + ", so that programs can be changed without haste."
	return s.showToken(w, r, actor, token, secret, note)
}

func (s *Server) makeToken(r *http.Request, actor loom.Actor, name string, scope loom.Scope, days, until string) (loom.Token, loom.Secret, error) {
	lives, err := s.tokenLives(r, actor, days)
	if err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	if !slices.ContainsFunc(lives, func(o ui.Option) bool { return o.Value == days }) {
		return loom.Token{}, loom.Secret{}, loom.InvalidFields([]loom.FieldError{{Field: accountview.FieldExpires, Message: "Choose one of the lives that are offered."}})
	}
	in := account.NewToken{Name: name}
	if n, err := strconv.Atoi(days); err == nil {
		expires := s.Now().AddDate(0, 0, n)
		in.Expires = &expires
	} else if days == tokenUntil {
		day, err := ui.ViewerOf(r.Context()).ParseDay(until)
		if err != nil {
			return loom.Token{}, loom.Secret{}, loom.InvalidFields([]loom.FieldError{{Field: accountview.FieldUntil, Message: "Enter the last day as year-month-day, such as 2026-06-09."}})
		}
		expires := day.AddDate(0, 0, 1)
		in.Expires = &expires
	}
	if scope != "" {
		in.Scopes = []loom.Scope{scope}
	}
	return s.Accounts.CreateToken(r.Context(), actor, in)
}

// origin is how the browser reached Loom. It says so itself in a POST, also where
// a proxy ends TLS.
func origin(r *http.Request) string {
	if o := r.Header.Get("Origin"); strings.HasPrefix(o, "http") {
		return o
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// ownToken finds one of the actor's tokens by the id in the path.
func (s *Server) ownToken(r *http.Request, actor loom.Actor) (loom.Token, error) {
	tokens, err := s.Accounts.Tokens(r.Context(), actor)
	if err != nil {
		return loom.Token{}, err
	}
	for _, t := range tokens {
		if strconv.FormatInt(t.ID, 10) == r.PathValue("id") {
			return t, nil
		}
	}
	return loom.Token{}, loom.NewError(loom.NotFound, "There is no such token; it may have been revoked.")
}

func (s *Server) accountTokenAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.askOfToken(w, r, actor, "Revoke", accountview.RevokeForm)
}

// askOfToken asks before something is done to a token.
func (s *Server) askOfToken(w http.ResponseWriter, r *http.Request, actor loom.Actor, verb string, form func(loom.Token) templ.Component) error {
	token, err := s.ownToken(r, actor)
	if err != nil {
		return err
	}
	page := page.AccountFrame(verb+" token "+token.Name, route.AccountTokens())
	page.Crumbs = []ui.Crumb{{Label: "Account", Href: route.Account()}, {Label: "API tokens", Href: route.AccountTokens()}, {Label: verb}}
	return s.Confirm(w, r, actor, page, form(token))
}

func (s *Server) accountTokenRevoke(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	token, err := s.ownToken(r, actor)
	if err != nil {
		return err
	}
	if err := s.Accounts.RevokeToken(r.Context(), actor, token.ID); err != nil {
		return err
	}
	return s.Say(w, r, route.AccountTokens(), httpx.Flash{Tone: "ok", Text: "Revoked the token " + token.Name + "."})
}
