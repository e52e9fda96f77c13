package wire

import (
	"strconv"
	"strings"

	"loom/app/loom"
)

// User is a person or program of a tenant. Password is set in
// the answer that made the user only, and there only when it was generated.
type User struct {
	ID          loom.UserID `json:"id"`
	Role        loom.Role   `json:"role"`
	DisplayName string      `json:"displayName,omitempty"`
	Email       string      `json:"email,omitempty"`
	Disabled    bool        `json:"disabled"`
	SSHKeys     []string    `json:"sshKeys"`
	Created     int64       `json:"createTime" description:"Milliseconds since 1970."`
	LastSeen    *int64      `json:"lastSeen,omitempty" description:"Milliseconds since 1970."`
	Clusters    int         `json:"clusters"`
	Tokens      int         `json:"tokens"`
	Password    string      `json:"password,omitempty" description:"Only in the answer that generated it."`
	// MustChangePassword says that a generated password waits for its change.
	MustChangePassword bool `json:"mustChangePassword,omitempty" description:"A generated password waits for its change at the next sign-in."`
}

// NewUser gives the wire form, without a password.
func NewUser(u loom.UserSummary) User {
	return User{
		ID: u.ID, Role: u.Role, DisplayName: u.DisplayName, Email: u.Email, Disabled: u.Disabled, SSHKeys: list(u.SSHKeys),
		Created: Millis(u.Created), LastSeen: MillisOrNil(u.LastSeen), Clusters: u.Clusters, Tokens: u.Tokens,
		MustChangePassword: u.PasswordChange == loom.PasswordRequired,
	}
}

// Whoami says who a request acts as, and through what.
type Whoami struct {
	User   User         `json:"user"`
	Tenant string       `json:"tenant"`
	Via    string       `json:"via" enum:"token,session,headers"`
	Scopes []loom.Scope `json:"scopes"`
	Roles  []Grant      `json:"roles,omitempty" description:"What bindings give, to the user or to groups of his."`
	Groups []Group      `json:"groups,omitempty" description:"Groups of the user."`
}

// NewWhoami gives the wire form. Who is not limited by a token has the scope
// admin, which is the whole role.
func NewWhoami(actor loom.Actor, user User, groups []loom.Group) Whoami {
	via, _, _ := strings.Cut(actor.Via, ":")
	scopes := actor.Scopes
	if scopes == nil {
		scopes = []loom.Scope{loom.ScopeAdmin}
	}
	who := Whoami{User: user, Tenant: actor.TenantName, Via: via, Scopes: scopes}
	for _, g := range actor.Grants {
		who.Roles = append(who.Roles, newGrant(g))
	}
	for _, g := range groups {
		who.Groups = append(who.Groups, NewGroup(g))
	}
	return who
}

// Token is an API token; Secret is set in the answer that made it only. Expires
// is null for a token that lives for ever.
type Token struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	Prefix      string       `json:"prefix"`
	Scopes      []loom.Scope `json:"scopes"`
	Created     int64        `json:"createTime" description:"Milliseconds since 1970."`
	Expires     *int64       `json:"expires" description:"null: never." nullable:"true"`
	LastUsed    *int64       `json:"lastUsed,omitempty" description:"Milliseconds since 1970."`
	LastAddress string       `json:"lastAddress,omitempty"`
	Secret      string       `json:"secret,omitempty" description:"Only in the answer that made it."`
}

// NewToken gives the wire form, without the secret.
func NewToken(t loom.Token) Token {
	return Token{
		ID: strconv.FormatInt(t.ID, 10), Name: t.Name, Prefix: t.Prefix, Scopes: list(t.Scopes), Created: Millis(t.Created),
		Expires: MillisOrNil(t.Expires), LastUsed: MillisOrNil(t.LastUsed), LastAddress: t.LastAddress,
	}
}

// Session is a browser's sign-in. Current marks that of the request.
type Session struct {
	ID       string `json:"id"`
	Created  int64  `json:"createTime" description:"Milliseconds since 1970."`
	LastUsed int64  `json:"lastUsed" description:"Milliseconds since 1970."`
	Address  string `json:"address"`
	Agent    string `json:"agent"`
	Current  bool   `json:"current" description:"The session of this request."`
}

// NewSession gives the wire form; current is the id of the request's own session.
func NewSession(s loom.Session, current string) Session {
	return Session{
		ID: s.ID, Created: Millis(s.Created), LastUsed: Millis(s.LastUsed), Address: s.Address, Agent: s.Agent, Current: s.ID == current,
	}
}

// Tenant is the specification of a tenant.
type Tenant struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Workers     int    `json:"workers"`
	MaxClusters int    `json:"maxClusters"`
	MaxNodes    int    `json:"maxNodes"`
	// What the tenant may do with providers (docs/operations.md).
	PrivateNetworks  bool     `json:"privateNetworks" description:"Providers and their machines may be in private networks."`
	InstanceRoles    bool     `json:"instanceRoles" description:"Providers may use the role of the host of a provisioner."`
	ProviderTypesOff []string `json:"providerTypesOff" description:"Provider types that nothing new is made with."`
}

// NewTenant gives the wire form.
func NewTenant(t loom.Tenant) Tenant {
	return Tenant{Name: t.Name, Description: t.Description, Workers: t.Workers, MaxClusters: t.MaxClusters, MaxNodes: t.MaxNodes,
		PrivateNetworks: t.Permits.PrivateNetworks, InstanceRoles: t.Permits.InstanceRoles, ProviderTypesOff: append([]string{}, t.Permits.TypesOff...)}
}
