package loom

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// documented is the table of docs/decisions/0064-one-decision-point.md, typed from the document
// and not from may.go: for each role where it holds (T: in all of a tenant, t: for a template, c:
// for a cluster), whether the owner may, whether every member may, and the scope that a token needs.
var documented = map[Verb]struct {
	reader, user, operator, publisher, admin string
	owner, member                            bool
	scope                                    Scope
}{
	"see":        {reader: "Ttc", operator: "Ttc", admin: "Ttc", owner: true, scope: "read"},
	"read":       {member: true, scope: "read"}, // "every member reads the catalog"
	"create":     {user: "Tt", admin: "Tt", scope: "clusters:write"},
	"operate":    {operator: "Ttc", admin: "Ttc", owner: true, scope: "clusters:write"},
	"own":        {admin: "Ttc", owner: true, scope: "clusters:write"},
	"override":   {admin: "T", scope: "clusters:write"},
	"publish":    {publisher: "T", admin: "T", scope: "catalog:write"},
	"administer": {admin: "T", scope: "admin"},
	"install":    {scope: "admin"},
	"self":       {owner: true, scope: "admin"},
	"profile":    {owner: true, scope: "clusters:write"},
}

// holding is one way to have a role: directly, or where (T, t, c; x: another template, y: another
// cluster) a binding gives it.
type holding struct {
	role  Role
	where string
}

// actor is somebody in the tenant “here” with the role.
func (h holding) actor(scopes []Scope) Actor {
	a := Actor{Tenant: "here", User: "me", Role: RoleNone, Scopes: scopes}
	switch h.where {
	case "":
		a.Role = h.role
	case "T":
		a.Grants = []Grant{{Role: h.role}}
	case "t":
		a.Grants = []Grant{{Role: h.role, Template: "web"}}
	case "c":
		a.Grants = []Grant{{Role: h.role, Cluster: 7}}
	case "x":
		a.Grants = []Grant{{Role: h.role, Template: "other"}}
	case "y":
		a.Grants = []Grant{{Role: h.role, Cluster: 8}}
	}
	return a
}

// holdings are all of them; bindings at places where none can be made give nothing.
func holdings() []holding {
	var all []holding
	for _, role := range []Role{RoleNone, RoleUser, RoleAdmin, RoleSuperadmin} {
		all = append(all, holding{role, ""})
	}
	for _, role := range []Role{RoleReader, RoleUser, RoleOperator, RolePublisher, RoleAdmin} {
		for _, where := range []string{"T", "t", "c", "x", "y"} {
			all = append(all, holding{role, where})
		}
	}
	return all
}

// surprises lists where a table decides otherwise than the document: all verbs, to do and
// to look, of all roles at all places, by session and by tokens with one scope each, on what is one's
// own, another's, another tenant's, the tenant, its templates, another tenant and the installation.
func surprises(t table) []string {
	var found []string
	objects := map[string]Object{"own": {"here", "me", "own", 1}, "foreign": {"here", "you", "web", 7}, "abroad": {"there", "me", "web", 7}, "own account": {Tenant: "here", Owner: "me"}, "another account": {Tenant: "here", Owner: "you"},
		"tenant": {Tenant: "here"}, "template": {Tenant: "here", Template: "web"}, "other tenant": {Tenant: "there"}, "installation": {}}
	for verb, says := range documented {
		roles := map[Role]string{RoleReader: says.reader, RoleUser: says.user, RoleOperator: says.operator, RolePublisher: says.publisher, RoleAdmin: says.admin, RoleSuperadmin: says.admin}
		for _, h := range holdings() {
			for place, o := range objects {
				may := func(cells map[Role]string) bool {
					at := map[string]string{"": "T", "T": "T"}[h.where]
					switch place {
					case "foreign":
						at += strings.Trim(h.where, "Txy")
					case "template":
						at += strings.Trim(h.where, "Tcxy")
					}
					return at != "" && strings.Contains(cells[h.role], at)
				}
				inTenant := !slices.Contains([]string{"abroad", "other tenant", "installation"}, place)
				owns := strings.HasPrefix(place, "own")
				entitled := inTenant && (may(roles) || owns && says.owner || says.member && (h.role != RoleNone || h.where != ""))
				if verb == "install" {
					entitled = h.role == RoleSuperadmin
				}
				sees := map[Role]string{RoleReader: "Ttc", RoleOperator: "Ttc", RoleAdmin: "Ttc", RoleSuperadmin: "T"}
				if place == "another account" { // “users cannot list each other”
					sees = map[Role]string{RoleAdmin: "T", RoleSuperadmin: "T"}
				}
				seen := owns || slices.Contains([]string{"tenant", "template", "installation"}, place) || inTenant && may(sees)
				for _, scopes := range [][]Scope{nil, {"read"}, {"clusters:write"}, {"catalog:write"}, {"admin"}} {
					for _, look := range []bool{false, true} {
						asked, scope := verb, says.scope
						if look {
							asked, scope = verb.Reading(), "read"
						}
						enough := scopes == nil || scopes[0] == scope || scopes[0] == "admin" || scope == "read"
						var want error
						switch {
						case !entitled && !seen:
							want = NotFound
						case !entitled || !enough:
							want = Forbidden
						}
						err := t.may(h.actor(scopes), asked, o)
						if !errors.Is(err, want) {
							found = append(found, fmt.Sprintf("%s as %s at %q with %v on %s: %v, want %v", asked, h.role, h.where, scopes, place, err, want))
						}
					}
				}
			}
		}
	}
	return found
}

func TestVerbsAreAsDocumented(t *testing.T) {
	t.Parallel()
	if len(verbs) != len(documented) {
		t.Errorf("%d verbs, of which %d are documented", len(verbs), len(documented))
	}
	for _, s := range surprises(verbs) {
		t.Error(s)
	}
}

// TestMutantsOfTheTableAreCaught changes one thing of the table at a time: each change of
// a scope, an owner, a role, or a reach, and each verb that is missing.
func TestMutantsOfTheTableAreCaught(t *testing.T) {
	t.Parallel()
	mutants := 0
	mutate := func(verb Verb, what string, change func(r *rule)) {
		mutants++
		mutant := maps.Clone(verbs)
		r := mutant[verb]
		change(&r)
		mutant[verb] = r
		if len(surprises(mutant)) == 0 {
			t.Errorf("%s: nobody notices %s", verb, what)
		}
	}
	toggle := func(roles *[]Role, role Role) {
		*roles = slices.Clone(*roles)
		if i := slices.Index(*roles, role); i >= 0 {
			*roles = slices.Delete(*roles, i, i+1)
		} else {
			*roles = append(*roles, role)
		}
	}
	for verb, r := range verbs {
		for _, scope := range Scopes {
			if scope != r.scope {
				mutate(verb, "the scope "+string(scope), func(r *rule) { r.scope = scope })
			}
		}
		if !r.everywhere && !r.member { // else it makes no difference
			mutate(verb, "the owner", func(r *rule) { r.owner = !r.owner })
		}
		mutate(verb, "the reach", func(r *rule) { r.everywhere = !r.everywhere })
		if r.member || r.everywhere {
			continue
		}
		mutate(verb, "the members", func(r *rule) { r.member = true })
		for _, role := range BoundAt(PlaceTenant) {
			mutate(verb, "the role "+string(role), func(r *rule) { toggle(&r.tenant, role) })
			mutate(verb, "the role at a template "+string(role), func(r *rule) { toggle(&r.template, role) })
			mutate(verb, "the role at a cluster "+string(role), func(r *rule) { toggle(&r.cluster, role) })
		}
	}
	for verb := range verbs {
		mutate(verb, "that it is missing", func(r *rule) { *r = rule{} })
	}
	if mutants < 10 {
		t.Errorf("only %d mutants", mutants)
	}
}

// TestNobodyMayWhatHasNoVerb: an actor of nowhere may nothing, and nobody what is in no table.
func TestNobodyMayWhatHasNoVerb(t *testing.T) {
	t.Parallel()
	admin := Actor{Tenant: SuperTenant, User: AdminUser, Role: RoleSuperadmin}
	for _, verb := range []Verb{"", reading, "open", Verb("see" + reading + reading)} {
		if admin.May(verb, admin.Mine()) == nil {
			t.Errorf("%q is allowed", verb)
		}
	}
	for verb := range verbs {
		if (Actor{}).May(verb, Installation) == nil || (Actor{}).MayAtAll(verb) == nil {
			t.Errorf("nobody may %s", verb)
		}
	}
}
