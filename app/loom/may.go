package loom

import (
	"fmt"
	"slices"
	"strings"
)

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
	// Own is to delete, protect, share and hand over a cluster.
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

// Object is what a verb is about: a tenant, a template in it or one of its clusters, or an
// account. The zero Object is the installation.
type Object struct {
	Tenant TenantID
	// Owner is that of the cluster, or the account itself.
	Owner UserID
	// Template is the name of the template, or of that which the cluster was made from.
	Template string
	Cluster  ClusterID
}

// Installation is the object of what concerns all tenants.
var Installation = Object{}

// Object returns the account as the object of a verb.
func (a Account) Object() Object { return Object{Tenant: a.Tenant, Owner: a.User} }

// Object returns the cluster as the object of a verb.
func (c *ClusterSummary) Object() Object {
	return Object{Tenant: c.Owner.Tenant, Owner: c.Owner.User, Template: c.Template.Name, Cluster: c.ID}
}

// Object returns the cluster as the object of a verb.
func (c *Cluster) Object() Object {
	return Object{Tenant: c.Owner.Tenant, Owner: c.Owner.User, Template: c.Template.Name, Cluster: c.ID}
}

// InTenant is the actor's tenant with all that is in it.
func (a Actor) InTenant() Object { return Object{Tenant: a.Tenant} }

// FromTemplate is a template of the actor's tenant with the clusters made from it.
func (a Actor) FromTemplate(name string) Object { return Object{Tenant: a.Tenant, Template: name} }

// Mine is what the actor owns. Who may not even do something to that need not say to
// what.
func (a Actor) Mine() Object { return a.Account().Object() }

// rule says who may do something.
type rule struct {
	// tenant, template and cluster are the roles that may, by where they hold.
	tenant, template, cluster []Role
	// member says that whoever has a role anywhere in the tenant may.
	member bool
	// owner says that the owner of the object may, whatever his role.
	owner bool
	// everywhere says that the roles may in other tenants too.
	everywhere bool
	// scope is what a token needs.
	scope Scope
}

// MayAtAll asks for the verb of a route, before the object is known: whether the actor may do something to what is
// his own, to his tenant, or where one of his roles holds. Whether one may see a cluster comes before the role that
// Override needs.
func (a Actor) MayAtAll(v Verb) error {
	switch v {
	case Override:
		v = Operate
	case Override.Reading():
		v = Operate.Reading()
	}
	for _, g := range a.Grants {
		if o := (Object{Tenant: a.Tenant, Template: g.Template, Cluster: g.Cluster}); verbs.rule(v).covers(a, o) {
			return a.May(v, o)
		}
	}
	return a.May(v, a.Mine())
}

// table says who may what.
type table map[Verb]rule

// admins are those who administer a tenant.
var (
	admins      = []Role{RoleAdmin, RoleSuperadmin}
	superadmins = []Role{RoleSuperadmin}
)

// seers, creators and operators are the roles of verbs that are held at several places.
var (
	seers     = []Role{RoleReader, RoleOperator, RoleAdmin, RoleSuperadmin}
	creators  = []Role{RoleUser, RoleAdmin, RoleSuperadmin}
	operators = []Role{RoleOperator, RoleAdmin, RoleSuperadmin}
)

// verbs is the table of docs/decisions/0064-one-decision-point.md. docs/security.md explains it.
var verbs = table{
	See:        {tenant: seers, template: seers, cluster: seers, owner: true, scope: ScopeRead},
	Read:       {member: true, scope: ScopeRead},
	Create:     {tenant: creators, template: creators, scope: ScopeClusterWrite},
	Operate:    {tenant: operators, template: operators, cluster: operators, owner: true, scope: ScopeClusterWrite},
	Own:        {tenant: admins, template: admins, cluster: admins, owner: true, scope: ScopeClusterWrite},
	Override:   {tenant: admins, scope: ScopeClusterWrite},
	Publish:    {tenant: []Role{RolePublisher, RoleAdmin, RoleSuperadmin}, scope: ScopeCatalogWrite},
	Administer: {tenant: admins, scope: ScopeAdmin},
	Install:    {tenant: superadmins, everywhere: true, scope: ScopeAdmin},
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
	case !r.covers(a, o):
		return NewError(Forbidden, "%s", r.lacks())
	case !a.has(r.scope):
		return NewError(Forbidden, "This token lacks the scope “%s”. Create one that has it on your account page, or with “loom token create --scope %[1]s”.", r.scope)
	}
	return nil
}

// lacks names the weakest role that would do, and who gives it.
func (r rule) lacks() string {
	switch {
	case r.everywhere:
		return "This needs the role of a superadmin; ask whoever runs Loom."
	case r.owner && len(r.cluster) > 0:
		return fmt.Sprintf("This needs the role “%s” for the cluster; ask its owner or an administrator of your tenant.", r.cluster[0])
	case len(r.tenant) > 0 && r.tenant[0] != RoleAdmin:
		return fmt.Sprintf("This needs the role “%s”; ask an administrator of your tenant.", r.tenant[0])
	}
	return "This needs the role of a tenant administrator; ask one of your tenant."
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
		return a.holds(r.tenant)
	}
	if o.Tenant != a.Tenant || a.Tenant == "" {
		return false
	}
	if r.owner && o.Owner != "" && o.Owner == a.User || r.member && a.IsMember() || a.holds(r.tenant) {
		return true
	}
	return slices.ContainsFunc(a.Grants, func(g Grant) bool {
		return g.Cluster != 0 && g.Cluster == o.Cluster && slices.Contains(r.cluster, g.Role) ||
			g.Template != "" && g.Template == o.Template && slices.Contains(r.template, g.Role)
	})
}

// holds reports whether the actor has one of some roles in all of his tenant.
func (a Actor) holds(roles []Role) bool {
	return slices.Contains(roles, a.Role) || slices.ContainsFunc(a.Grants, func(g Grant) bool {
		return g.Place() == PlaceTenant && slices.Contains(roles, RoleIn(a.Tenant, g.Role))
	})
}

// IsMember reports whether the actor has a role anywhere in his tenant: who has none signs in no
// longer.
func (a Actor) IsMember() bool { return isMember(a.Role, a.Grants) }

// IsMember reports whether the user has a role anywhere in his tenant.
func (u *User) IsMember() bool { return isMember(u.Role, u.Grants) }

func isMember(role Role, grants []Grant) bool {
	return role != "" && role != RoleNone || len(grants) > 0
}

// shows reports whether the actor may know of an object: everybody knows that there is
// an installation, his tenant and its templates, and administrators which accounts there are.
func (t table) shows(a Actor, o Object) bool {
	switch {
	case o == Installation || o.Tenant == a.Tenant && o.Owner == "" && o.Cluster == 0:
		return true
	case o.Cluster == 0:
		return t[Self].covers(a, o) || t[Administer].covers(a, o)
	}
	return t[See].covers(a, o)
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

// May reports whether the user may do something in all of his tenant, by session.
func (u *User) May(v Verb) bool {
	a := Actor{Tenant: u.Tenant, User: u.ID, Role: u.Role, Grants: u.Grants}
	return a.May(v, a.InTenant()) == nil
}

// MayCreate reports whether the user may create clusters from a template.
func (u *User) MayCreate(template string) bool {
	a := Actor{Tenant: u.Tenant, User: u.ID, Role: u.Role, Grants: u.Grants}
	return a.May(Create, a.FromTemplate(template)) == nil
}

// SeesClusters reports whether a role shows the clusters of the place where it holds.
func SeesClusters(r Role) bool { return slices.Contains(verbs[See].cluster, r) }

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

// RoleWords name the roles of the actor: his own, without one those that bindings give him.
func (a Actor) RoleWords() string {
	if len(a.Grants) == 0 || a.Role != RoleNone {
		return string(a.Role)
	}
	var words []string
	for _, g := range a.Grants {
		if !slices.Contains(words, string(g.Role)) {
			words = append(words, string(g.Role))
		}
	}
	return strings.Join(words, ", ")
}

// OwnGrant returns a user's own role as a grant; ok is false for none.
func OwnGrant(role Role) (g Grant, ok bool) {
	return Grant{Role: role.Stored()}, role != RoleNone && role != ""
}

// ActsAbroad reports whether the actor is a superadmin who acts in a tenant that
// is not his own.
func (a Actor) ActsAbroad() bool { return a.ByRole == RoleSuperadmin && a.By.Tenant != a.Tenant }

// ActingRole is the role by which the actor may act as others: of those that administer the
// strongest, "" for none. Scopes of a token do not matter.
func (a Actor) ActingRole() Role { return actingRole(a.Tenant, a.Role, a.Grants) }

func actingRole(tenant TenantID, role Role, grants []Grant) Role {
	a := Actor{Tenant: tenant, Role: role, Grants: grants}
	switch {
	case verbs[Install].covers(a, Installation):
		return RoleSuperadmin
	case verbs[Administer].covers(a, a.InTenant()):
		return RoleAdmin
	}
	return ""
}

// SameAccess reports whether an actor recognized before may do what it may now, by
// the same access.
func (a Actor) SameAccess(before Actor) bool {
	return a.Account() == before.Account() && a.Role == before.Role && slices.Equal(a.Grants, before.Grants) && a.By == before.By && a.ByRole == before.ByRole &&
		a.Token == before.Token && slices.Equal(a.Scopes, before.Scopes) && a.AccessEpoch == before.AccessEpoch
}

// StillHolds reports whether a user is there with the rights that were seen before.
func (u User) StillHolds(role Role, grants []Grant) bool {
	return !u.Disabled && u.Role == role && slices.Equal(u.Grants, grants)
}

// StillActs reports whether a user is there who may act as others by a role.
func (u User) StillActs(role Role) bool {
	return !u.Disabled && actingRole(u.Tenant, u.Role, u.Grants) == role
}
