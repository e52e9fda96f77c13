package loom

import "time"

// Tenant is an organisation with data and capacity of its own.
type Tenant struct {
	ID          TenantID
	Name        string
	Description string
	// Workers is the number wanted; what was assigned may be less when capacity is short.
	Workers     int
	MaxClusters int
	MaxNodes    int
	// ResourceSet is the number of the last sync of plugin resources.
	ResourceSet int
	Permits     Permits
	Created     time.Time
}

// QuotaUse is what a tenant uses of its quotas.
type QuotaUse struct {
	Clusters, MaxClusters int
	Nodes, MaxNodes       int
}

// Check returns Exhausted when clusters and nodes more would exceed a quota,
// naming the quota.
func (q QuotaUse) Check(clusters, nodes int) error {
	if q.Clusters+clusters > q.MaxClusters {
		return NewError(Exhausted, "The tenant may have %d clusters and has %d; delete one or ask for a larger quota.", q.MaxClusters, q.Clusters)
	}
	if q.Nodes+nodes > q.MaxNodes {
		return NewError(Exhausted, "The tenant may have %d nodes; %d are in use and %d more are asked for.", q.MaxNodes, q.Nodes, nodes)
	}
	return nil
}

// User is a person or program that signs in to a tenant.
type User struct {
	ID     UserID
	Tenant TenantID
	Role   Role
	// Grants are the roles that bindings give the user, and groups of his, always in the same order.
	Grants      []Grant
	DisplayName string
	Email       string
	Disabled    bool
	// SSHKeys are public keys in authorized_keys form, put on the machines of the
	// user's clusters.
	SSHKeys  []string
	Created  time.Time
	LastSeen time.Time
	// PasswordChange says whether a generated password is to be changed.
	PasswordChange PasswordChange
	// AccessEpoch is another number each time the user's sessions or tokens end.
	AccessEpoch int64
}

// PasswordChange says whether the user of a generated password is to change it; ""
// where the password was chosen, and without one.
type PasswordChange string

// Passwords of the first start may stay, those that an administrator generated for
// somebody else may not.
const (
	PasswordAsked    PasswordChange = "asked"
	PasswordRequired PasswordChange = "required"
)

// UserSummary is a user with the numbers of his live clusters and valid tokens.
type UserSummary struct {
	User
	Clusters, Tokens int
}

// Token is an API token; its secret is shown once and stored hashed.
type Token struct {
	ID          int64
	Account     Account
	Name        string
	Prefix      string
	Scopes      []Scope
	Created     time.Time
	Expires     time.Time
	LastUsed    time.Time
	LastAddress string
	// Parent is the token that created it, 0 for none.
	Parent int64
}

// Session is a browser's sign-in.
type Session struct {
	// ID is the hash of the cookie, in hex; it reveals nothing of it.
	ID       string
	Account  Account
	Created  time.Time
	LastUsed time.Time
	Address  string
	Agent    string
	Expires  time.Time
	// ActingUntil is when the session stops acting as the administrator of another
	// tenant; zero where it does not, or was not found by its cookie.
	ActingUntil time.Time
	// Preferences are those of the user, where a session was found by its cookie.
	Preferences ViewPreferences
	// PasswordChange is that of the user, where a session was found by its cookie.
	PasswordChange PasswordChange
}
