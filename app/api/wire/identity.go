package wire

import (
	"strconv"

	"loom/app/account"
	"loom/app/lenient"
	"loom/app/loom"
)

// IdentityProvider is a service of an organization that people sign in with.
type IdentityProvider struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Issuer       string `json:"issuer"`
	ClientID     string `json:"clientId"`
	UserClaim    string `json:"userClaim" description:"The claim that names new users."`
	SubjectClaim string `json:"subjectClaim" description:"The claim that identifies a person."`
	MaxAgeDays   int    `json:"maxAgeDays" description:"How many days API tokens of users without a password work after a sign-in."`
	Enabled      bool   `json:"enabled"`
	Global       bool   `json:"global" description:"People of all tenants sign in with it."`
	Users        int    `json:"users" description:"How many users are connected with it."`
	Rules        int    `json:"rules" description:"How many rules it has."`
	CallbackURL  string `json:"callbackUrl" description:"The redirect URI to enter at the provider."`
	LogoutURL    string `json:"logoutUrl" description:"The back-channel logout URI to enter at the provider."`
	Created      int64  `json:"createTime" description:"Milliseconds since 1970."`
}

// NewIdentityProvider gives the wire form; the addresses are those to enter at the provider.
func NewIdentityProvider(p loom.IdentityProvider, callback, logout string) IdentityProvider {
	return IdentityProvider{ID: p.ID, Name: p.Name, Issuer: p.Issuer, ClientID: p.ClientID, UserClaim: p.UserClaim, SubjectClaim: p.SubjectClaim, MaxAgeDays: p.MaxAgeDays,
		Enabled: p.Enabled, Global: p.Global(), Users: p.Users, Rules: p.Rules, CallbackURL: callback, LogoutURL: logout, Created: Millis(p.Created)}
}

// ReadIdentityProvider reads a new identity provider, or what to change of one. Invalid.
func ReadIdentityProvider(body []byte) (account.IdentityProviderInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return account.IdentityProviderInput{}, err
	}
	o.Only(lenient.Names[IdentityProviderWrite]()...)
	for _, name := range []string{"maxAgeDays", "enabled"} {
		if o.Null(name) {
			o.Fail(name, "This is null. Omit the field to keep its value.")
		}
	}
	return account.IdentityProviderInput{
		Name: needed(o, "name"), Issuer: needed(o, "issuer"), ClientID: needed(o, "clientId"), Secret: secretText(o, "clientSecret"),
		UserClaim: needed(o, "userClaim"), SubjectClaim: needed(o, "subjectClaim"), MaxAgeDays: o.IntPtr("maxAgeDays"), Enabled: o.BoolPtr("enabled"),
	}, o.Err()
}

// IdentityProviderOffers is what an identity provider offers.
type IdentityProviderOffers struct {
	SignIn  string   `json:"signInUrl"`
	SignOut string   `json:"signOutUrl" description:"Empty where it has none."`
	Logout  bool     `json:"backchannelLogout" description:"It says that it tells Loom of sign-ins that ended."`
	Scopes  []string `json:"scopes"`
}

// NewIdentityProviderOffers gives the wire form.
func NewIdentityProviderOffers(f account.IdentityOffers) IdentityProviderOffers {
	return IdentityProviderOffers{SignIn: f.SignIn, SignOut: f.SignOut, Logout: f.Logout, Scopes: append([]string{}, f.Scopes...)}
}

// IdentityRule makes people members of a group.
type IdentityRule struct {
	Conditions []loom.Condition `json:"conditions" required:"true" description:"All must hold."`
	Group      string           `json:"group" required:"true" description:"Id of the group."`
	GroupName  string           `json:"groupName,omitempty" description:"Ignored in requests."`
}

// IdentityRules are the rules of a provider, in order.
type IdentityRules struct {
	Rules []IdentityRule `json:"rules"`
}

// NewIdentityRules gives the wire form.
func NewIdentityRules(rules []loom.IdentityRule) IdentityRules {
	out := IdentityRules{Rules: make([]IdentityRule, len(rules))}
	for i, r := range rules {
		out.Rules[i] = IdentityRule{Conditions: r.Conditions, Group: strconv.FormatInt(r.Group, 10), GroupName: r.GroupName}
	}
	return out
}

// ReadIdentityRules reads rules, and the hash of their preview. Invalid.
func ReadIdentityRules(body []byte) (rules []loom.IdentityRule, hash string, err error) {
	o, err := lenient.Read(body)
	if err != nil {
		return nil, "", err
	}
	o.Only("rules", "hash")
	if !o.Has("rules") {
		o.Fail("rules", "This is missing. An empty list means no rules.")
	}
	o.EachOf("rules", func(_ int, one *lenient.Object) {
		one.Only("conditions", "group", "groupName")
		var rule loom.IdentityRule
		one.EachOf("conditions", func(_ int, c *lenient.Object) {
			c.Only("claim", "op", "value")
			rule.Conditions = append(rule.Conditions, loom.Condition{Claim: c.Text("claim"), Op: loom.ConditionOp(c.Text("op")), Value: c.Text("value")})
		})
		var bad error
		if rule.Group, bad = strconv.ParseInt(one.Text("group"), 10, 64); bad != nil {
			one.Fail("group", "This is not the id of a group.")
		}
		rules = append(rules, rule)
	})
	return rules, o.Text("hash"), o.Err()
}

// RoleChange is a role that users gain or lose.
type RoleChange struct {
	Grant
	Gained bool          `json:"gained" description:"Whether the users gain the role, or lose it."`
	Users  []loom.UserID `json:"users"`
}

// RulesPreview is what a change of rules does.
type RulesPreview struct {
	Hash    string        `json:"hash" description:"PUT the rules with it."`
	Known   int           `json:"known" description:"How many people signed in with the provider so far."`
	Matched int           `json:"matched" description:"How many of them some rule matches."`
	Roles   []RoleChange  `json:"roles"`
	Nowhere []loom.UserID `json:"nowhere" description:"Users who lose their last role: they cannot sign in any longer."`
}

// NewRulesPreview gives the wire form.
func NewRulesPreview(p account.RulesPreview) RulesPreview {
	out := RulesPreview{Hash: p.Hash, Known: p.Known, Matched: p.Matched, Roles: make([]RoleChange, len(p.Roles)), Nowhere: []loom.UserID{}}
	for i, c := range p.Roles {
		out.Roles[i] = RoleChange{Grant: newGrant(c.Grant), Gained: c.Gained, Users: c.Users}
	}
	for _, a := range p.Nowhere {
		out.Nowhere = append(out.Nowhere, a.User)
	}
	return out
}
