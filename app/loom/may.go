package loom

import "slices"

// Verb is what somebody wants to do; verbs says who may. Every route names one, and
// every use case asks Actor.May about the object.
type Verb string

// The verbs. What a verb covers, its Reading covers for those who look or preview.
const (
	// See is to know of a cluster and all below it.
	See Verb = "see"
	// Read is to read what every member of a tenant may: the catalog, the settings, the
	// figures and activity that concern him.
	Read Verb = "read"
	// Create is to create clusters from templates.
	Create Verb = "create"
	// Operate is to change a cluster, to reveal its sign-in, and to read journals of its services.
	Operate Verb = "operate"
	// Own is to delete, protect and hand over a cluster.
	Own Verb = "own"
	// Override is to skip tasks and to abandon machines.
	Override Verb = "override"
	// Publish is to change the catalog and plugin resources, and to probe providers.
	Publish Verb = "publish"
	// Administer is to change users, hooks and settings, and to see all of a tenant.
	Administer Verb = "administer"
	// Install is to run the installation.
	Install Verb = "install"
	// Self is to change one's own account, tokens and sessions.
	Self Verb = "self"
	// Profile is Self for the free-form object that programs store for their user.
	Profile Verb = "profile"
)

// reading ends the verb of those who only look.
const reading = ":read"

// Reading is the verb for those who look at what v is about, or preview it: the roles
// are those of v, the scope is ScopeRead.
func (v Verb) Reading() Verb { return v + reading }

// Object is what a verb is about: a tenant, or with an owner a cluster or an account
// in it. The zero Object is the installation.
type Object struct {
	Tenant TenantID
	Owner  UserID
}

// Installation is the object of what concerns all tenants.
var Installation = Object{}

// OwnedBy is a cluster of an account, or the account itself.
func OwnedBy(owner Account) Object { return Object{Tenant: owner.Tenant, Owner: owner.User} }

// InTenant is the actor's tenant with all that is in it.
func (a Actor) InTenant() Object { return Object{Tenant: a.Tenant} }

// Mine is what the actor owns. Who may not even do something to that need not say to
// what.
func (a Actor) Mine() Object { return OwnedBy(a.Account()) }

// rule says who may do something.
type rule struct {
	// roles may in all of their tenant.
	roles []Role
	// owner says that the owner of the object may, whatever his role.
	owner bool
	// everywhere says that the roles may in other tenants too.
	everywhere bool
	// scope is what a token needs.
	scope Scope
}

// MayAtAll asks for the verb of a route, before the object is known: whether the actor may do something to what is
// his own, or to his tenant. Whether one may see a cluster comes before the role that
// Override needs.
func (a Actor) MayAtAll(v Verb) error {
	switch v {
	case Override:
		v = Operate
	case Override.Reading():
		v = Operate.Reading()
	}
	return a.May(v, a.Mine())
}

// table says who may what.
type table map[Verb]rule

// members is everybody in a tenant, admins are those who administer it.
var (
	members     = []Role{RoleUser, RoleAdmin, RoleSuperadmin}
	admins      = []Role{RoleAdmin, RoleSuperadmin}
	superadmins = []Role{RoleSuperadmin}
)

// verbs is the table of docs/decisions/0064-one-decision-point.md with the roles that there are.
// docs/security.md explains it.
var verbs = table{
	See:        {roles: admins, owner: true, scope: ScopeRead},
	Read:       {roles: members, scope: ScopeRead},
	Create:     {roles: members, scope: ScopeClusterWrite},
	Operate:    {roles: admins, owner: true, scope: ScopeClusterWrite},
	Own:        {roles: admins, owner: true, scope: ScopeClusterWrite},
	Override:   {roles: admins, scope: ScopeClusterWrite},
	Publish:    {roles: admins, scope: ScopeCatalogWrite},
	Administer: {roles: admins, scope: ScopeAdmin},
	Install:    {roles: superadmins, everywhere: true, scope: ScopeAdmin},
	Self:       {owner: true, scope: ScopeAdmin},
	Profile:    {owner: true, scope: ScopeClusterWrite},
}

// May returns nil where the actor may do something to an object, NotFound where he may
// not see the object, and else Forbidden, which names the role or scope that is missing.
func (a Actor) May(v Verb, o Object) error { return verbs.may(a, v, o) }

func (t table) may(a Actor, v Verb, o Object) error {
	r := t.rule(v)
	switch {
	case !r.covers(a, o) && !t.shows(a, o):
		return NewError(NotFound, "There is nothing here that you may see.")
	case !r.covers(a, o) && r.everywhere:
		return NewError(Forbidden, "This needs the role of a superadmin; ask whoever runs Loom.")
	case !r.covers(a, o):
		return NewError(Forbidden, "This needs the role of a tenant administrator; ask one of your tenant.")
	case !a.has(r.scope):
		return NewError(Forbidden, "This token lacks the scope “%s”. Create one that has it on your account page, or with “loom token create --scope %[1]s”.", r.scope)
	}
	return nil
}

// rule is that of a verb. Nobody may do what has none.
func (t table) rule(v Verb) rule {
	if n := len(v) - len(reading); n > 0 && v[n:] == reading {
		r := t[v[:n]]
		r.scope = ScopeRead
		return r
	}
	return t[v]
}

// covers reports whether role or ownership let the actor do to an object what the rule
// is about.
func (r rule) covers(a Actor, o Object) bool {
	if r.everywhere {
		return slices.Contains(r.roles, a.Role)
	}
	if o.Tenant != a.Tenant || a.Tenant == "" {
		return false
	}
	return slices.Contains(r.roles, a.Role) || r.owner && o.Owner != "" && o.Owner == a.User
}

// shows reports whether the actor may know of an object: everybody knows that there is
// an installation and his tenant.
func (t table) shows(a Actor, o Object) bool {
	return o == Installation || o == a.InTenant() || t[See].covers(a, o)
}

// has reports whether the actor's token, if any, includes the scope. Every scope
// includes ScopeRead.
func (a Actor) has(scope Scope) bool {
	return a.Scopes == nil || slices.Contains(a.Scopes, scope) || slices.Contains(a.Scopes, ScopeAdmin) || scope == ScopeRead && len(a.Scopes) > 0
}

// May reports whether users of a role may do something in their tenant.
func (r Role) May(v Verb) bool {
	const tenant TenantID = "theirs"
	return Actor{Tenant: tenant, Role: r}.May(v, Object{Tenant: tenant}) == nil
}

// RoleIn turns a stored role into what it means in a tenant: administrators of
// SuperTenant are superadmins.
func RoleIn(tenant TenantID, stored Role) Role {
	if tenant == SuperTenant && stored == RoleAdmin {
		return RoleSuperadmin
	}
	return stored
}

// Stored is the role as it is stored, and chosen in forms; see RoleIn.
func (r Role) Stored() Role {
	if r == RoleSuperadmin {
		return RoleAdmin
	}
	return r
}

// ActsAbroad reports whether the actor is a superadmin who acts in a tenant that
// is not his own.
func (a Actor) ActsAbroad() bool { return a.ByRole.May(Install) && a.By.Tenant != a.Tenant }

// SameAccess reports whether an actor recognized before may do what it may now, by
// the same access.
func (a Actor) SameAccess(before Actor) bool {
	return a.Account() == before.Account() && a.Role == before.Role && a.By == before.By && a.ByRole == before.ByRole &&
		a.Token == before.Token && slices.Equal(a.Scopes, before.Scopes) && a.AccessEpoch == before.AccessEpoch
}

// StillHolds reports whether a user is there with the role that was seen before.
func (u User) StillHolds(role Role) bool { return !u.Disabled && u.Role == role }
