package loom

import "time"

// Scope limits what a token may do.
type Scope string

// The scopes; every scope includes ScopeRead, ScopeAdmin is the owner's whole role.
const (
	ScopeRead         Scope = "read"
	ScopeClusterWrite Scope = "clusters:write"
	ScopeCatalogWrite Scope = "catalog:write"
	ScopeAdmin        Scope = "admin"
)

// Scopes lists every scope, weakest first.
var Scopes = []Scope{ScopeRead, ScopeClusterWrite, ScopeCatalogWrite, ScopeAdmin}

// Account is the pair of tenant and user that owns a cluster.
type Account struct {
	User   UserID   `json:"userId"`
	Tenant TenantID `json:"tenantId"`
}

// Actor is who acts, and through what. It is an explicit argument of every use
// case; contexts never carry it.
type Actor struct {
	Tenant     TenantID
	TenantName string
	User       UserID
	Role       Role
	// Grants are the roles that bindings give the user, and groups of his, always in the same order.
	Grants []Grant
	// Via is "session", "token:<name>", "headers", "cli" or "system". Who acts as
	// another with a token of his own is named too: "token:<name> by <user>", of
	// another tenant "token:<name> by <tenant>/<user>".
	Via string
	// By is who really acts, and ByRole his ActingRole, where User is acted as with a
	// token of another; else both are zero.
	By     Account
	ByRole Role
	// Token is the token through which the actor acts, 0 without one, and TokenEnds when
	// it expires, zero for never. OldSecret says that its secret was replaced; TokenEnds is
	// when that ends.
	Token     int64
	TokenEnds time.Time
	OldSecret bool
	// Scopes is nil for a session and for the system: no limit beyond the role.
	Scopes []Scope
	// AccessEpoch is that of the user when the actor was recognized, 0 where it does not
	// matter; see User.
	AccessEpoch int64
	Address     string
	RequestID   string
}

// SystemUser acts where Loom does so by itself.
const SystemUser UserID = "system"

// SystemActor acts for Loom itself in a tenant: the scheduler's duties, seeding.
func SystemActor(tenant TenantID, tenantName string) Actor {
	return Actor{Tenant: tenant, TenantName: tenantName, User: SystemUser, Role: RoleAdmin, Via: string(SystemUser)}
}

// Account gives the account the actor acts for.
func (a Actor) Account() Account { return Account{User: a.User, Tenant: a.Tenant} }

// Is reports whether a user of the actor's tenant is the one that the actor acts for,
// or the one who really acts.
func (a Actor) Is(user UserID) bool {
	return user == a.User || Account{User: user, Tenant: a.Tenant} == a.By
}

// ActsAsAnother reports whether the one who really acts is not the one acted for.
func (a Actor) ActsAsAnother() bool { return a.By != Account{} }
