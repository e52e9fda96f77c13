package loom

import (
	"slices"
	"time"
)

// Role is what somebody may do: in all of a tenant, with the clusters of a template, or with one
// cluster. Roles add up; none takes anything away. What each may is said in one place, see Verb.
type Role string

// The roles. RoleSuperadmin is never stored: it is RoleAdmin in SuperTenant.
const (
	// RoleNone is that of users who have what their groups and bindings give, and no more.
	RoleNone Role = "none"
	// RoleReader sees.
	RoleReader Role = "reader"
	// RoleUser creates clusters.
	RoleUser Role = "user"
	// RoleOperator sees and changes clusters, but deletes none.
	RoleOperator Role = "operator"
	// RolePublisher writes the catalog.
	RolePublisher Role = "publisher"
	// RoleAdmin does all of that, and administers a tenant where it holds for all of it.
	RoleAdmin      Role = "admin"
	RoleSuperadmin Role = "superadmin"
)

// Roles lists every role that somebody can have, weakest first.
var Roles = []Role{RoleNone, RoleReader, RoleUser, RoleOperator, RolePublisher, RoleAdmin, RoleSuperadmin}

// StoredRoles lists the roles that users have themselves, and that forms offer.
var StoredRoles = []Role{RoleUser, RoleAdmin, RoleNone}

// Place is where a role holds.
type Place string

// The places.
const (
	PlaceTenant   Place = "tenant"
	PlaceTemplate Place = "template"
	PlaceCluster  Place = "cluster"
)

// Grant is a role of a user that a binding gives, to him or to a group of his, where it holds.
type Grant struct {
	Role Role
	// Template is the name of the template whose clusters it is about, "" for any.
	Template string
	// Cluster is the one that it is about, 0 for any.
	Cluster ClusterID
}

// Shares reports whether the role shows clusters of others, though not all of the tenant.
func (g Grant) Shares() bool { return g.Place() != PlaceTenant && SeesClusters(g.Role) }

// Place returns where the role holds.
func (g Grant) Place() Place {
	switch {
	case g.Cluster != 0:
		return PlaceCluster
	case g.Template != "":
		return PlaceTemplate
	}
	return PlaceTenant
}

// bound are the roles that can be bound at each place, weakest first: those that a rule names
// there.
var bound = map[Place][]Role{
	PlaceTenant:   {RoleReader, RoleUser, RoleOperator, RolePublisher, RoleAdmin},
	PlaceTemplate: {RoleReader, RoleUser, RoleOperator, RoleAdmin},
	PlaceCluster:  {RoleReader, RoleOperator, RoleAdmin},
}

// BoundAt returns the roles that can be bound at a place, weakest first.
func BoundAt(p Place) []Role { return slices.Clone(bound[p]) }

// Group is a set of users of a tenant that roles are bound to.
type Group struct {
	ID          int64
	Tenant      TenantID
	Name        string
	Description string
	Created     time.Time
	// Members and Bindings count both.
	Members, Bindings int
}

// MemberSource says how somebody became a member of a group.
type MemberSource string

// MemberByHand is the source of members that somebody added.
const MemberByHand MemberSource = "hand"

// Member is a user in a group.
type Member struct {
	User        UserID
	DisplayName string
	Source      MemberSource
	Added       time.Time
	AddedBy     UserID
}

// Binding gives a user, or a group, a role at a place.
type Binding struct {
	ID     int64
	Tenant TenantID
	// User is whom it is given to, "" for a group; Group is the group, 0 for a user, and GroupName its name.
	User      UserID
	Group     int64
	GroupName string
	Grant
	// ClusterName is that of the cluster.
	ClusterName string
	Created     time.Time
	CreatedBy   UserID
}
